//! OpenSSH's own format of private keys (PROTOCOL.key).

use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::cipher::{
    self, AES_128, AES_192, AES_256, DecryptingKey, DecryptionContext, EncryptingKey,
    EncryptionContext, UnboundCipherKey,
};
use aws_lc_rs::iv::FixedLength;
use aws_lc_rs::rsa::{self, KeyPairComponents, PublicKeyComponents};
use aws_lc_rs::signature::{EcdsaKeyPair, Ed25519KeyPair};
use crypto_bigint::{BoxedUint, NonZero};
use zeroize::{Zeroize, Zeroizing};

use super::KeyFileError;
use crate::fields::{Fields, Truncated, bit_length, left_padded};
use crate::public_key::{Curve, PublicKey};
use crate::sign::{Pair, PrivateKey};

/// Between "-----BEGIN " and "-----".
pub(super) const LABEL: &str = "OPENSSH PRIVATE KEY";
const MAGIC: &[u8; 15] = b"openssh-key-v1\0";
/// The least RSA key that the library signs with, bits.
const MIN_RSA_BITS: usize = 2048;

impl From<Truncated> for KeyFileError {
    fn from(_: Truncated) -> Self {
        KeyFileError::Malformed("it ends too early")
    }
}

/// The unencrypted frame.
struct Envelope<'a> {
    cipher: &'a str,
    kdf: &'a str,
    kdf_options: &'a [u8],
    public: &'a [u8],
    private: &'a [u8],
    /// The tag of an AEAD cipher.
    tag: &'a [u8],
}

impl<'a> Envelope<'a> {
    fn read(body: &'a [u8]) -> Result<Self, KeyFileError> {
        let mut fields = Fields::new(body);
        if fields.octets::<15>()? != MAGIC {
            return Err(KeyFileError::Malformed("its magic octets are wrong"));
        }
        let (cipher, kdf, kdf_options) = (fields.text()?, fields.text()?, fields.string()?);
        if fields.u32()? != 1 {
            return Err(KeyFileError::Malformed("it does not hold exactly one key"));
        }
        let (public, private) = (fields.string()?, fields.string()?);
        Ok(Envelope {
            cipher,
            kdf,
            kdf_options,
            public,
            private,
            tag: fields.rest(),
        })
    }
}

pub(super) fn public_key(body: &[u8]) -> Option<PublicKey> {
    PublicKey::parse(Envelope::read(body).ok()?.public).ok()
}

pub(super) fn parse(body: &[u8], passphrase: Option<&[u8]>) -> Result<PrivateKey, KeyFileError> {
    let envelope = Envelope::read(body)?;
    let encrypted = envelope.cipher != "none";
    if !encrypted && (envelope.kdf, envelope.kdf_options, envelope.tag) != ("none", b"", b"") {
        return Err(KeyFileError::Malformed(
            "it names no cipher but has a key derivation or a tag",
        ));
    }
    let private = match encrypted {
        false => Zeroizing::new(envelope.private.to_vec()),
        true => decrypt(&envelope, passphrase.ok_or(KeyFileError::Encrypted)?)?,
    };
    let mut fields = Fields::new(&private);
    if fields.u32()? != fields.u32()? {
        return Err(match encrypted {
            true => KeyFileError::WrongPassphrase,
            false => KeyFileError::Malformed("its check numbers differ"),
        });
    }
    let begin = private.len() - fields.rest().len();
    let pair = read_pair(&mut fields)?;
    let end = private.len() - fields.rest().len();
    let comment = String::from_utf8_lossy(fields.string()?).into_owned();
    // PROTOCOL.key: "padded with the bytes 1, 2, 3, ..."
    if !fields
        .rest()
        .iter()
        .zip(1u8..)
        .all(|(octet, expected)| *octet == expected)
    {
        return Err(KeyFileError::Malformed("its padding is wrong"));
    }
    let key = PrivateKey::new(pair, comment).with_agent_form(&private[begin..end]);
    if key.public_blob() != envelope.public {
        return Err(KeyFileError::Malformed(
            "its public and private halves differ",
        ));
    }
    Ok(key)
}

fn read_pair(fields: &mut Fields<'_>) -> Result<Pair, KeyFileError> {
    let key_type = fields.text()?;
    if let Some(curve) = Curve::of_key_type(key_type) {
        return read_ecdsa(curve, fields);
    }
    match key_type {
        "ssh-ed25519" => read_ed25519(fields),
        "ssh-rsa" => read_rsa(fields),
        _ if key_type.starts_with("sk-") => Err(KeyFileError::Unsupported(format!(
            "{key_type} is a FIDO key: add it to ssh-agent, which talks to the authenticator"
        ))),
        _ => Err(KeyFileError::Unsupported(format!(
            "keys of type {key_type:?} are not supported"
        ))),
    }
}

/// string public key, string seed || public key.
fn read_ed25519(fields: &mut Fields<'_>) -> Result<Pair, KeyFileError> {
    let public = fields.string()?;
    let (seed, repeated) = fields.string()?.split_at_checked(32).ok_or(Truncated)?;
    if public != repeated {
        return Err(KeyFileError::Malformed(
            "its public and private halves differ",
        ));
    }
    let pair = Ed25519KeyPair::from_seed_and_public_key(seed, public)
        .map_err(|_| KeyFileError::Malformed("its public and private halves differ"))?;
    Ok(Pair::Ed25519(pair))
}

/// string curve, string point, mpint scalar.
fn read_ecdsa(curve: Curve, fields: &mut Fields<'_>) -> Result<Pair, KeyFileError> {
    let (name, point, scalar) = (fields.string()?, fields.string()?, fields.mpint()?);
    if name != curve.name().as_bytes() {
        return Err(KeyFileError::Malformed(
            "its curve is not the one of its type",
        ));
    }
    let scalar = left_padded(scalar, curve.scalar_len())
        .ok_or(KeyFileError::Malformed("its scalar is too large"))?;
    let pair = EcdsaKeyPair::from_private_key_and_public_key(curve.signing(), &scalar, point)
        .map_err(|_| KeyFileError::Malformed("its public and private halves differ"))?;
    Ok(Pair::Ecdsa(curve, pair))
}

/// mpints n, e, d, iqmp, p, q.
fn read_rsa(fields: &mut Fields<'_>) -> Result<Pair, KeyFileError> {
    let (n, e, d) = (fields.mpint()?, fields.mpint()?, fields.mpint()?);
    let (iqmp, p, q) = (fields.mpint()?, fields.mpint()?, fields.mpint()?);
    if bit_length(n) < MIN_RSA_BITS {
        return Err(too_small());
    }
    let pair = rsa::KeyPair::from_components(&KeyPairComponents {
        public_key: PublicKeyComponents { n, e },
        d,
        p,
        q,
        dP: &crt_exponent(d, p)?[..],
        dQ: &crt_exponent(d, q)?[..],
        qInv: iqmp,
    })
    .map_err(|_| KeyFileError::Malformed("its RSA numbers do not fit together"))?;
    Ok(Pair::Rsa(Box::new(pair)))
}

fn too_small() -> KeyFileError {
    KeyFileError::Unsupported(format!(
        "RSA keys under {MIN_RSA_BITS} bits are not supported: make a new key with ssh-keygen"
    ))
}

/// d mod (prime - 1), which the file leaves out (RFC 8017 section 3.2 has it).
fn crt_exponent(d: &[u8], prime: &[u8]) -> Result<Zeroizing<Vec<u8>>, KeyFileError> {
    let bits = (d.len().max(prime.len()) * 8) as u32;
    let malformed = |_| KeyFileError::Malformed("its RSA numbers are too large");
    let d = Zeroizing::new(BoxedUint::from_be_slice(d, bits).map_err(malformed)?);
    let prime = Zeroizing::new(BoxedUint::from_be_slice(prime, bits).map_err(malformed)?);
    let below = prime.wrapping_sub(BoxedUint::one_with_precision(bits));
    let mut below = NonZero::new(below)
        .into_option()
        .ok_or(KeyFileError::Malformed(
            "its RSA numbers do not fit together",
        ))?;
    let exponent = Zeroizing::new(d.rem(&below));
    below.zeroize();
    Ok(Zeroizing::new(exponent.to_be_bytes().into_vec()))
}

/// PROTOCOL.key: the KDF gives key || initialisation vector.
fn decrypt(envelope: &Envelope<'_>, passphrase: &[u8]) -> Result<Zeroizing<Vec<u8>>, KeyFileError> {
    let cipher = FileCipher::by_name(envelope.cipher).ok_or_else(|| {
        KeyFileError::Unsupported(format!(
            "private keys encrypted with {} are not supported: ssh-keygen -p rewrites the file",
            envelope.cipher
        ))
    })?;
    if envelope.kdf != "bcrypt" {
        return Err(KeyFileError::Unsupported(format!(
            "key derivation {:?} is not supported",
            envelope.kdf
        )));
    }
    let mut options = Fields::new(envelope.kdf_options);
    let (salt, rounds) = (options.string()?, options.u32()?);
    let mut derived = Zeroizing::new(vec![0; cipher.key_len() + cipher.iv_len()]);
    // An empty passphrase is refused there, and opens nothing.
    bcrypt_pbkdf::bcrypt_pbkdf(passphrase, salt, rounds, &mut derived)
        .map_err(|_| KeyFileError::WrongPassphrase)?;
    let (key, iv) = derived.split_at(cipher.key_len());
    let mut private = Zeroizing::new(envelope.private.to_vec());
    cipher.decrypt(key, iv, &mut private, envelope.tag)?;
    Ok(private)
}

/// A cipher that `ssh-keygen -Z` can name.
#[derive(Clone, Copy)]
enum FileCipher {
    Ctr(&'static cipher::Algorithm, usize),
    Cbc(&'static cipher::Algorithm, usize),
    Gcm(usize),
}

impl FileCipher {
    fn by_name(name: &str) -> Option<FileCipher> {
        match name {
            "aes128-ctr" => Some(FileCipher::Ctr(&AES_128, 16)),
            "aes192-ctr" => Some(FileCipher::Ctr(&AES_192, 24)),
            "aes256-ctr" => Some(FileCipher::Ctr(&AES_256, 32)),
            "aes128-cbc" => Some(FileCipher::Cbc(&AES_128, 16)),
            "aes192-cbc" => Some(FileCipher::Cbc(&AES_192, 24)),
            "aes256-cbc" => Some(FileCipher::Cbc(&AES_256, 32)),
            "aes128-gcm@openssh.com" => Some(FileCipher::Gcm(16)),
            "aes256-gcm@openssh.com" => Some(FileCipher::Gcm(32)),
            _ => None,
        }
    }

    fn key_len(self) -> usize {
        match self {
            FileCipher::Ctr(_, key_len)
            | FileCipher::Cbc(_, key_len)
            | FileCipher::Gcm(key_len) => key_len,
        }
    }

    fn iv_len(self) -> usize {
        if matches!(self, FileCipher::Gcm(_)) {
            12
        } else {
            16
        }
    }

    fn decrypt(
        self,
        key: &[u8],
        iv: &[u8],
        private: &mut Zeroizing<Vec<u8>>,
        tag: &[u8],
    ) -> Result<(), KeyFileError> {
        const UNALIGNED: KeyFileError =
            KeyFileError::Malformed("it is not a multiple of its cipher's block");
        match self {
            FileCipher::Ctr(algorithm, _) => {
                let iv = FixedLength::try_from(iv).map_err(|_| UNALIGNED)?;
                UnboundCipherKey::new(algorithm, key)
                    .and_then(EncryptingKey::ctr)
                    .and_then(|key| key.less_safe_encrypt(private, EncryptionContext::Iv128(iv)))
                    .map_err(|_| UNALIGNED)?;
            }
            FileCipher::Cbc(algorithm, _) => {
                let iv = FixedLength::try_from(iv).map_err(|_| UNALIGNED)?;
                let key = UnboundCipherKey::new(algorithm, key)
                    .and_then(DecryptingKey::cbc)
                    .map_err(|_| UNALIGNED)?;
                key.decrypt(private, DecryptionContext::Iv128(iv))
                    .map_err(|_| UNALIGNED)?;
            }
            FileCipher::Gcm(key_len) => {
                let algorithm = if key_len == 16 {
                    &AES_128_GCM
                } else {
                    &AES_256_GCM
                };
                let key = UnboundKey::new(algorithm, key).map_err(|_| UNALIGNED)?;
                let nonce = Nonce::try_assume_unique_for_key(iv).map_err(|_| UNALIGNED)?;
                LessSafeKey::new(key)
                    .open_in_place_separate_tag(nonce, Aad::empty(), tag, private)
                    .map_err(|_| KeyFileError::WrongPassphrase)?;
            }
        }
        Ok(())
    }
}
