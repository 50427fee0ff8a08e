//! Public keys: blobs (RFC 4253 section 6.6, RFC 5656, RFC 8709, PROTOCOL.u2f) and lines of `.pub` files.

use aws_lc_rs::digest;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};

use crate::fields::{Fields, Truncated, bit_length};
use crate::key_file;

/// A public key or certificate: its type and its blob.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PublicKey {
    key_type: String,
    blob: Vec<u8>,
}

/// Why something is not a public key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PublicKeyError {
    /// Not `TYPE BASE64 [COMMENT]`.
    #[error("not a public key line: a type, a space and the key in base64 are expected")]
    Line,
    /// The type before the key is not the one inside it.
    #[error("the key's type is not the one that stands before it")]
    TypeMismatch,
    /// The blob does not begin with a type, or is not what its type asks.
    #[error("the public key is damaged")]
    Malformed,
}

impl From<Truncated> for PublicKeyError {
    fn from(_: Truncated) -> Self {
        PublicKeyError::Malformed
    }
}

impl PublicKey {
    /// A key or certificate blob. Keys of known types are checked as to their form; a type that this crate does
    /// not know, or a certificate, is only kept.
    ///
    /// # Errors
    ///
    /// [`PublicKeyError::Malformed`].
    pub fn parse(blob: &[u8]) -> Result<Self, PublicKeyError> {
        let mut fields = Fields::new(blob);
        let key_type = fields.text()?;
        if !key_type.bytes().all(|octet| octet.is_ascii_graphic()) || key_type.is_empty() {
            return Err(PublicKeyError::Malformed);
        }
        match KeyMaterial::read(key_type, &mut fields) {
            Ok(_) if fields.is_empty() => {}
            Err(KeyMaterialError::UnknownType) => {}
            _ => return Err(PublicKeyError::Malformed),
        }
        Ok(PublicKey {
            key_type: key_type.to_owned(),
            blob: blob.to_vec(),
        })
    }

    /// A line of a `.pub` file: the key, and the comment behind it.
    ///
    /// # Errors
    ///
    /// When the line has not that form, or the key in it is damaged.
    pub fn from_openssh_line(line: &str) -> Result<(Self, &str), PublicKeyError> {
        let (key_type, rest) = line
            .trim()
            .split_once([' ', '\t'])
            .ok_or(PublicKeyError::Line)?;
        let rest = rest.trim_start();
        let (base64, comment) = rest.split_once([' ', '\t']).unwrap_or((rest, ""));
        let blob = STANDARD.decode(base64).map_err(|_| PublicKeyError::Line)?;
        let key = PublicKey::parse(&blob)?;
        if key.key_type != key_type {
            return Err(PublicKeyError::TypeMismatch);
        }
        Ok((key, comment.trim()))
    }

    /// The public key that stands in clear in a private key file of OpenSSH's format, encrypted or not; PEM files
    /// have none that could be read without the passphrase.
    pub fn from_private_key_file(file: &[u8]) -> Option<Self> {
        key_file::public_key(file)
    }

    /// Such as "ssh-ed25519".
    pub fn key_type(&self) -> &str {
        &self.key_type
    }

    /// As it travels.
    pub fn blob(&self) -> &[u8] {
        &self.blob
    }

    /// Bits of an RSA modulus or an elliptic curve; `None` for types that this crate does not know.
    pub fn bits(&self) -> Option<usize> {
        KeyMaterial::parse(&self.blob).ok().map(|key| key.bits())
    }

    /// As `ssh-keygen -l` shows it.
    pub fn fingerprint_sha256(&self) -> String {
        fingerprint_sha256(&self.blob)
    }
}

/// "SHA256:" and the hash of a key blob in base64 without padding, as OpenSSH shows it.
pub fn fingerprint_sha256(blob: &[u8]) -> String {
    format!(
        "SHA256:{}",
        STANDARD_NO_PAD.encode(digest::digest(&digest::SHA256, blob))
    )
}

/// The NIST curves of RFC 5656 section 10.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Curve {
    P256,
    P384,
    P521,
}

impl Curve {
    /// The curve of an `ecdsa-sha2-*` key type.
    pub(crate) fn of_key_type(key_type: &str) -> Option<Curve> {
        match key_type {
            "ecdsa-sha2-nistp256" => Some(Curve::P256),
            "ecdsa-sha2-nistp384" => Some(Curve::P384),
            "ecdsa-sha2-nistp521" => Some(Curve::P521),
            _ => None,
        }
    }

    pub(crate) fn key_type(self) -> &'static str {
        match self {
            Curve::P256 => "ecdsa-sha2-nistp256",
            Curve::P384 => "ecdsa-sha2-nistp384",
            Curve::P521 => "ecdsa-sha2-nistp521",
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Curve::P256 => "nistp256",
            Curve::P384 => "nistp384",
            Curve::P521 => "nistp521",
        }
    }

    pub(crate) fn bits(self) -> usize {
        match self {
            Curve::P256 => 256,
            Curve::P384 => 384,
            Curve::P521 => 521,
        }
    }

    /// Octets of a coordinate or a scalar.
    pub(crate) fn scalar_len(self) -> usize {
        self.bits().div_ceil(8)
    }
}

/// What a public key consists of, by its type.
#[derive(Clone, Copy)]
pub(crate) enum KeyMaterial<'a> {
    /// RFC 8709 section 4.
    Ed25519(&'a [u8; 32]),
    /// RFC 5656 section 3.1.
    Ecdsa { curve: Curve, point: &'a [u8] },
    /// RFC 4253 section 6.6.
    Rsa { e: &'a [u8], n: &'a [u8] },
    /// PROTOCOL.u2f: a FIDO authenticator's Ed25519 key.
    SkEd25519 {
        public: &'a [u8; 32],
        application: &'a [u8],
    },
    /// PROTOCOL.u2f: a FIDO authenticator's key on nistp256.
    SkEcdsa {
        point: &'a [u8],
        application: &'a [u8],
    },
}

/// Why key material cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyMaterialError {
    UnknownType,
    Malformed,
}

impl From<Truncated> for KeyMaterialError {
    fn from(_: Truncated) -> Self {
        KeyMaterialError::Malformed
    }
}

impl<'a> KeyMaterial<'a> {
    /// A whole plain key blob.
    pub(crate) fn parse(blob: &'a [u8]) -> Result<Self, KeyMaterialError> {
        let mut fields = Fields::new(blob);
        let key_type = fields.text()?;
        let key = KeyMaterial::read(key_type, &mut fields)?;
        if fields.is_empty() {
            Ok(key)
        } else {
            Err(KeyMaterialError::Malformed)
        }
    }

    /// The fields behind the type, as they stand in keys and, behind a nonce, in certificates.
    pub(crate) fn read(key_type: &str, fields: &mut Fields<'a>) -> Result<Self, KeyMaterialError> {
        if let Some(curve) = Curve::of_key_type(key_type) {
            return Ok(KeyMaterial::Ecdsa {
                curve,
                point: point(curve, fields)?,
            });
        }
        match key_type {
            "ssh-ed25519" => Ok(KeyMaterial::Ed25519(ed25519_public(fields)?)),
            "ssh-rsa" => Ok(KeyMaterial::Rsa {
                e: fields.mpint()?,
                n: fields.mpint()?,
            }),
            "sk-ssh-ed25519@openssh.com" => {
                let public = ed25519_public(fields)?;
                Ok(KeyMaterial::SkEd25519 {
                    public,
                    application: fields.string()?,
                })
            }
            "sk-ecdsa-sha2-nistp256@openssh.com" => {
                let point = point(Curve::P256, fields)?;
                Ok(KeyMaterial::SkEcdsa {
                    point,
                    application: fields.string()?,
                })
            }
            _ => Err(KeyMaterialError::UnknownType),
        }
    }

    pub(crate) fn bits(&self) -> usize {
        match self {
            KeyMaterial::Rsa { n, .. } => bit_length(n),
            KeyMaterial::Ecdsa { curve, .. } => curve.bits(),
            KeyMaterial::Ed25519(_)
            | KeyMaterial::SkEd25519 { .. }
            | KeyMaterial::SkEcdsa { .. } => 256,
        }
    }
}

fn ed25519_public<'a>(fields: &mut Fields<'a>) -> Result<&'a [u8; 32], KeyMaterialError> {
    fields
        .string()?
        .try_into()
        .map_err(|_| KeyMaterialError::Malformed)
}

/// The curve's name, then a point, uncompressed (RFC 5656 section 3.1 allows compressed ones, which
/// OpenSSH neither makes nor accepts: ssh-ecdsa.c). Whether it lies on the curve, the library checks.
fn point<'a>(curve: Curve, fields: &mut Fields<'a>) -> Result<&'a [u8], KeyMaterialError> {
    let name = fields.string()?;
    let point = fields.string()?;
    let uncompressed = point.first() == Some(&4) && point.len() == 1 + 2 * curve.scalar_len();
    if name == curve.name().as_bytes() && uncompressed {
        Ok(point)
    } else {
        Err(KeyMaterialError::Malformed)
    }
}

#[cfg(test)]
mod tests;
