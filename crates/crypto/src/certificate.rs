//! OpenSSH certificates (PROTOCOL.certkeys): a key, what it may be used for, and an authority's signature.

mod host;
mod user;

use crate::fields::{Fields, Truncated, put_string};
use crate::public_key::{KeyMaterial, KeyMaterialError};
use crate::verify::{VerifyError, verify_with_minimum};

pub use host::HostCertificate;
pub use user::UserCertificate;

/// What every certificate type ends in.
const SUFFIX: &str = "-cert-v01@openssh.com";
/// OpenSSH's `SSHKEY_CERT_MAX_PRINCIPALS` (sshkey.h).
const MAX_PRINCIPALS: usize = 256;
/// Options of one list. OpenSSH knows four; a certificate is at most one packet anyway.
const MAX_OPTIONS: usize = 256;

/// Why a certificate is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// Not a certificate, or a damaged one.
    #[error("the certificate is damaged")]
    Malformed,
    /// A type that this crate does not know.
    #[error("certificates of type {0:?} are not supported")]
    UnsupportedType(String),
    /// A user certificate where a host's is needed, or the reverse.
    #[error("it is a {found} certificate, not a {expected} certificate")]
    WrongKind {
        /// What was needed.
        expected: CertificateKind,
        /// What it is.
        found: CertificateKind,
    },
    /// PROTOCOL.certkeys: a certificate with a critical option that is not understood must be refused.
    #[error("the certificate has the critical option {0:?}, which is not understood")]
    CriticalOption(String),
    /// PROTOCOL.certkeys: chained certificates are not allowed.
    #[error("the certificate is signed by another certificate")]
    Chained,
    /// The authority's signature.
    #[error("the certificate is not signed by the authority it names: {0}")]
    Signature(#[from] VerifyError),
}

impl From<Truncated> for CertificateError {
    fn from(_: Truncated) -> Self {
        CertificateError::Malformed
    }
}

/// The u32 `type` of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CertificateKind {
    /// SSH_CERT_TYPE_USER.
    User,
    /// SSH_CERT_TYPE_HOST.
    Host,
}

impl std::fmt::Display for CertificateKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            CertificateKind::User => "user",
            CertificateKind::Host => "host",
        })
    }
}

/// The fields that both kinds have.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Certificate {
    key_type: String,
    public_key: Vec<u8>,
    serial: u64,
    kind: CertificateKind,
    key_id: String,
    principals: Vec<String>,
    valid_after: u64,
    valid_before: u64,
    critical_options: Vec<String>,
    ca_key: Vec<u8>,
    signed: Vec<u8>,
    signature: Vec<u8>,
}

impl Certificate {
    fn parse(blob: &[u8]) -> Result<Self, CertificateError> {
        let mut fields = Fields::new(blob);
        let key_type = fields.text()?;
        let plain_type = key_type.strip_suffix(SUFFIX).map(plain_key_type);
        let plain_type =
            plain_type.ok_or_else(|| CertificateError::UnsupportedType(key_type.to_owned()))?;
        fields.string()?; // nonce
        let public_key =
            read_public_key(&plain_type, &mut fields).map_err(|error| match error {
                KeyMaterialError::UnknownType => {
                    CertificateError::UnsupportedType(key_type.to_owned())
                }
                KeyMaterialError::Malformed => CertificateError::Malformed,
            })?;
        let serial = fields.u64()?;
        let kind = match fields.u32()? {
            1 => CertificateKind::User,
            2 => CertificateKind::Host,
            _ => return Err(CertificateError::Malformed),
        };
        let key_id = text(fields.string()?)?;
        let principals = read_principals(fields.string()?)?;
        let (valid_after, valid_before) = (fields.u64()?, fields.u64()?);
        let critical_options = read_option_names(fields.string()?)?;
        read_option_names(fields.string()?)?; // extensions: none concerns a client
        fields.string()?; // reserved
        let ca_key = fields.string()?.to_vec();
        let signed = blob[..blob.len() - fields.rest().len()].to_vec();
        let signature = fields.string()?.to_vec();
        if !fields.is_empty() {
            return Err(CertificateError::Malformed);
        }
        Ok(Certificate {
            key_type: key_type.to_owned(),
            public_key,
            serial,
            kind,
            key_id,
            principals,
            valid_after,
            valid_before,
            critical_options,
            ca_key,
            signed,
            signature,
        })
    }

    fn of_kind(self, expected: CertificateKind) -> Result<Self, CertificateError> {
        match self.kind == expected {
            true => Ok(self),
            false => Err(CertificateError::WrongKind {
                expected,
                found: self.kind,
            }),
        }
    }

    fn verify_ca(&self, minimum_rsa_bits: usize) -> Result<(), CertificateError> {
        if Fields::new(&self.ca_key).text()?.ends_with(SUFFIX) {
            return Err(CertificateError::Chained);
        }
        // The algorithm is the signature's own: its name must fit the key, and SHA-1 is not among them.
        let algorithm = Fields::new(&self.signature).text()?;
        verify_with_minimum(
            algorithm,
            &self.ca_key,
            &self.signature,
            &self.signed,
            minimum_rsa_bits,
        )?;
        Ok(())
    }
}

/// The type of the key inside: for RSA "rsa-sha2-*-cert-v01" names only signatures (PROTOCOL.certkeys).
fn plain_key_type(without_suffix: &str) -> String {
    match without_suffix.strip_prefix("sk-") {
        // "sk-ssh-ed25519-cert-v01@openssh.com" certifies "sk-ssh-ed25519@openssh.com".
        Some(_) => format!("{without_suffix}@openssh.com"),
        None => without_suffix.to_owned(),
    }
}

/// The key's fields, as the blob of a plain key.
fn read_public_key(plain_type: &str, fields: &mut Fields<'_>) -> Result<Vec<u8>, KeyMaterialError> {
    let before = fields.rest();
    KeyMaterial::read(plain_type, fields)?;
    let material = &before[..before.len() - fields.rest().len()];
    let mut blob = Vec::with_capacity(4 + plain_type.len() + material.len());
    put_string(&mut blob, plain_type.as_bytes());
    blob.extend_from_slice(material);
    Ok(blob)
}

fn read_principals(list: &[u8]) -> Result<Vec<String>, CertificateError> {
    let mut fields = Fields::new(list);
    let mut principals = Vec::new();
    while !fields.is_empty() {
        if principals.len() == MAX_PRINCIPALS {
            return Err(CertificateError::Malformed);
        }
        principals.push(text(fields.string()?)?);
    }
    Ok(principals)
}

/// Pairs of name and data, in any order but lexical per PROTOCOL.certkeys, which OpenSSH does not check.
fn read_option_names(list: &[u8]) -> Result<Vec<String>, CertificateError> {
    let mut fields = Fields::new(list);
    let mut names = Vec::new();
    while !fields.is_empty() {
        if names.len() == MAX_OPTIONS {
            return Err(CertificateError::Malformed);
        }
        names.push(text(fields.string()?)?);
        fields.string()?;
    }
    Ok(names)
}

fn text(octets: &[u8]) -> Result<String, CertificateError> {
    String::from_utf8(octets.to_vec()).map_err(|_| CertificateError::Malformed)
}

#[cfg(test)]
mod tests;
