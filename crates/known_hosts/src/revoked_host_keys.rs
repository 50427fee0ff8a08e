//! `RevokedHostKeys`: a list of public keys, or a key revocation list (`sshkey_check_revoked`,
//! authfile.c).
//!
//! A file that cannot be read to its end revokes everything: [`RevokedHostKeys::parse`] is an
//! error then, and the caller must accept no host key at all, as OpenSSH does not.

use std::collections::HashSet;

use crate::key::{self, KeyFields, KeyType};
use crate::krl::{self, Krl, KrlError};
use crate::line;

/// Why a file of revoked host keys cannot be used. No host key may be accepted then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RevokedHostKeysError {
    /// A line of a list is no public key.
    #[error(
        "line {line} of the revoked host keys is no public key, so that no host key can be \
         accepted; correct the line or remove it"
    )]
    Line {
        /// The line's number, from 1.
        line: usize,
    },
    /// The key revocation list is malformed.
    #[error(
        "the key revocation list cannot be read, so that no host key can be accepted: {0}; make \
         it anew with ssh-keygen -k"
    )]
    Krl(#[from] KrlError),
}

/// Why a host key must not be accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Revoked {
    /// The key itself, or the key in the certificate, is revoked.
    #[error("the host key is revoked")]
    Key,
    /// The authority that signed the certificate is revoked.
    #[error("the authority that signed the host certificate is revoked")]
    Authority,
    /// The certificate's serial number is revoked.
    #[error("the host certificate with serial number {0} is revoked")]
    Serial(u64),
    /// The certificate's key ID is revoked.
    #[error("the host certificate's key ID is revoked")]
    KeyId,
}

/// What of a certificate can be revoked (PROTOCOL.certkeys).
#[derive(Clone, Copy, Debug)]
pub struct CertificateIdentity<'a> {
    /// The blob of the plain key that is certified.
    pub key: &'a [u8],
    /// The blob of the authority's key.
    pub authority: &'a [u8],
    /// The serial number; 0 means that the authority gave none, and is never revoked.
    pub serial: u64,
    /// The key ID.
    pub key_id: &'a [u8],
}

/// The keys and certificates that a file revokes.
#[derive(Debug)]
pub struct RevokedHostKeys {
    content: Content,
}

#[derive(Debug)]
enum Content {
    Krl(Box<Krl>),
    List(HashSet<Vec<u8>>),
}

impl RevokedHostKeys {
    /// Reads a file: a key revocation list if it begins as one, else public keys, one a line.
    pub fn parse(file: &[u8]) -> Result<RevokedHostKeys, RevokedHostKeysError> {
        let content = match file.starts_with(krl::MAGIC) {
            true => Content::Krl(Box::new(Krl::parse(file)?)),
            false => Content::List(parse_list(file)?),
        };
        Ok(RevokedHostKeys { content })
    }

    /// Whether a plain key may be accepted.
    pub fn check_key(&self, blob: &[u8]) -> Result<(), Revoked> {
        let revoked = match &self.content {
            Content::Krl(krl) => krl.revokes_key(blob),
            Content::List(keys) => forms_of(blob).any(|form| keys.contains(&form)),
        };
        if revoked { Err(Revoked::Key) } else { Ok(()) }
    }

    /// Whether a certificate may be accepted: its key, its authority, its serial number, its ID.
    ///
    /// A certificate that is not accepted as such may still be judged by its plain key, which is
    /// then to be asked about on its own.
    pub fn check_certificate(&self, certificate: &CertificateIdentity<'_>) -> Result<(), Revoked> {
        self.check_key(certificate.key)?;
        if let Content::Krl(krl) = &self.content {
            krl.check_certificate(certificate)?;
        }
        self.check_key(certificate.authority)
            .map_err(|_| Revoked::Authority)
    }
}

/// The spellings under which a key is looked for: as it came, and as OpenSSH would write it.
pub(crate) fn forms_of(blob: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let plain = KeyFields::parse_leniently(blob).map(|key| key.canonical());
    [Some(blob.to_vec()), plain].into_iter().flatten()
}

/// `sshkey_in_file` (authfile.c). A line with a certificate revokes the key in it.
fn parse_list(file: &[u8]) -> Result<HashSet<Vec<u8>>, RevokedHostKeysError> {
    let mut keys = HashSet::new();
    for (index, text) in file.split(|&c| c == b'\n').enumerate() {
        let text = text.trim_ascii();
        if text.is_empty() || text[0] == b'#' {
            continue;
        }
        let key = parse_key(text).ok_or(RevokedHostKeysError::Line { line: index + 1 })?;
        keys.insert(key);
    }
    Ok(keys)
}

/// A line of type, key and comment: the plain key's canonical blob.
fn parse_key(text: &[u8]) -> Option<Vec<u8>> {
    let (name, rest) = line::split_word(text);
    let (blob, _comment) = line::split_word(rest);
    let blob = key::decode(blob)?;
    let kind = |name: &[u8]| KeyType::of_algorithm(std::str::from_utf8(name).ok()?);
    let (key_type, certificate) = kind(name)?;
    if kind(key::claimed_name(&blob)?)? != (key_type, certificate) {
        return None;
    }
    let key = match certificate {
        true => KeyFields::parse_leniently(&blob)?,
        false => KeyFields::parse(&blob)?,
    };
    Some(key.canonical())
}

#[cfg(test)]
mod tests;
