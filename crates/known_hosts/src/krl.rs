//! Key revocation lists: OpenSSH's PROTOCOL.krl, read as `ssh_krl_from_blob` (krl.c) does.

use std::collections::HashSet;

use aws_lc_rs::digest;

use crate::key::KeyFields;
use crate::reader::Reader;
use crate::revoked_host_keys::{CertificateIdentity, Revoked, forms_of};

mod certificates;

use certificates::RevokedCertificates;

/// How a key revocation list begins (`KRL_MAGIC`).
pub(crate) const MAGIC: &[u8; 8] = b"SSHKRL\n\0";
/// Longest list that is read, in bytes; OpenSSH's limit for any file (sshbuf.h) is twice that.
pub const MAX_KRL_LEN: usize = 64 << 20;
const FORMAT_VERSION: u32 = 1;

/// `KRL_SECTION_*` (krl.h).
mod section {
    pub(super) const CERTIFICATES: u8 = 1;
    pub(super) const EXPLICIT_KEY: u8 = 2;
    pub(super) const FINGERPRINT_SHA1: u8 = 3;
    pub(super) const SIGNATURE: u8 = 4;
    pub(super) const FINGERPRINT_SHA256: u8 = 5;
    pub(super) const EXTENSION: u8 = 255;
}

/// What is wrong with a key revocation list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KrlError {
    /// It is longer than [`MAX_KRL_LEN`].
    #[error("it is longer than {MAX_KRL_LEN} bytes")]
    TooLong,
    /// A `KRL_FORMAT_VERSION` that is not known.
    #[error("format version {0} is not supported")]
    Version(u32),
    /// It ends, or a part of it ends, before it should, or not where it should.
    #[error("{0} is cut short, overlong or malformed")]
    Malformed(&'static str),
    /// A section of a type that is not known.
    #[error("section type {0} is not supported")]
    Section(u8),
    /// A part of a certificate section of a type that is not known.
    #[error("certificate section type {0} is not supported")]
    CertificateSection(u8),
    /// An extension that must be understood, and is not.
    #[error("the critical extension {0:?} is not supported")]
    CriticalExtension(String),
    /// Serial number 0, a range that ends before it begins, or a bitmap beyond 2^64.
    #[error("serial numbers are out of order")]
    Serials,
}

/// A whole key revocation list.
#[derive(Debug, Default)]
pub(crate) struct Krl {
    keys: HashSet<Vec<u8>>,
    sha1s: HashSet<Vec<u8>>,
    sha256s: HashSet<Vec<u8>>,
    certificates: Vec<RevokedCertificates>,
}

impl Krl {
    /// Reads a list that begins with [`MAGIC`].
    pub(crate) fn parse(file: &[u8]) -> Result<Krl, KrlError> {
        if file.len() > MAX_KRL_LEN {
            return Err(KrlError::TooLong);
        }
        let mut reader = Reader(&file[MAGIC.len()..]);
        let version = reader.u32().ok_or(KrlError::Malformed("the header"))?;
        if version != FORMAT_VERSION {
            return Err(KrlError::Version(version));
        }
        skip_header(&mut reader).ok_or(KrlError::Malformed("the header"))?;
        let mut krl = Krl::default();
        while !reader.is_empty() {
            krl.read_section(&mut reader)?;
        }
        Ok(krl)
    }

    fn read_section(&mut self, reader: &mut Reader<'_>) -> Result<(), KrlError> {
        let malformed = KrlError::Malformed;
        let number = reader.u8().ok_or(malformed("a section"))?;
        let data = reader.string().ok_or(malformed("a section"))?;
        match number {
            section::CERTIFICATES => {
                self.certificates.push(RevokedCertificates::parse(data)?);
                Ok(())
            }
            section::EXPLICIT_KEY => {
                read_blobs(data, None, |blob| self.keys.extend(forms_of(blob)))
                    .ok_or(malformed("a section of keys"))
            }
            section::FINGERPRINT_SHA1 => read_blobs(data, Some(20), |hash| {
                self.sha1s.insert(hash.to_vec());
            })
            .ok_or(malformed("a section of SHA-1 fingerprints")),
            section::FINGERPRINT_SHA256 => read_blobs(data, Some(32), |hash| {
                self.sha256s.insert(hash.to_vec());
            })
            .ok_or(malformed("a section of SHA-256 fingerprints")),
            section::EXTENSION => check_extension(data),
            // The key that signed was `data`. OpenSSH checks no signature, and goes on behind it.
            section::SIGNATURE => reader
                .string()
                .map(|_signature| ())
                .ok_or(malformed("a signature")),
            other => Err(KrlError::Section(other)),
        }
    }

    /// Whether a plain key, or the plain key in a certificate, is revoked (`is_key_revoked`).
    pub(crate) fn revokes_key(&self, blob: &[u8]) -> bool {
        forms_of(blob).any(|form| {
            let hash = |algorithm| digest::digest(algorithm, &form);
            self.keys.contains(&form)
                || (!self.sha1s.is_empty()
                    && self
                        .sha1s
                        .contains(hash(&digest::SHA1_FOR_LEGACY_USE_ONLY).as_ref()))
                || (!self.sha256s.is_empty()
                    && self.sha256s.contains(hash(&digest::SHA256).as_ref()))
        })
    }

    /// Whether a certificate is revoked by what its authority's sections, and those for all
    /// authorities, say of its key ID and serial number (`is_cert_revoked`).
    pub(crate) fn check_certificate(
        &self,
        certificate: &CertificateIdentity<'_>,
    ) -> Result<(), Revoked> {
        let authority = KeyFields::parse(certificate.authority);
        let sections = self.certificates.iter();
        sections
            .filter(|section| section.is_of(authority.as_ref()))
            .try_for_each(|section| section.check(certificate.serial, certificate.key_id))
    }
}

/// Version, date, flags, a reserved string, a comment: none of them decides anything.
fn skip_header(reader: &mut Reader<'_>) -> Option<()> {
    let (_version, _generated, _flags) = (reader.u64()?, reader.u64()?, reader.u64()?);
    let _reserved = reader.string()?;
    c_string(reader.string()?).map(|_comment| ())
}

/// Gives every string of a section to `revoke`; `None` if one is not of the wanted length.
fn read_blobs(data: &[u8], len: Option<usize>, mut revoke: impl FnMut(&[u8])) -> Option<()> {
    let mut reader = Reader(data);
    while !reader.is_empty() {
        let blob = reader.string()?;
        if len.is_some_and(|len| blob.len() != len) {
            return None;
        }
        revoke(blob);
    }
    Some(())
}

/// `extension_section` and `cert_extension_subsection` (krl.c): none is known, so that critical
/// ones make the list unusable.
fn check_extension(data: &[u8]) -> Result<(), KrlError> {
    let mut reader = Reader(data);
    let mut parts = || {
        let name = c_string(reader.string()?)?;
        let critical = reader.u8()? != 0;
        reader.string()?;
        reader.is_empty().then_some((name, critical))
    };
    match parts() {
        None => Err(KrlError::Malformed("an extension")),
        Some((name, true)) => {
            let name = String::from_utf8_lossy(name).into_owned();
            Err(KrlError::CriticalExtension(name))
        }
        Some((_, false)) => Ok(()),
    }
}

/// What a C string holds: a NUL may only end it (`sshbuf_get_cstring`).
fn c_string(text: &[u8]) -> Option<&[u8]> {
    let text = text.strip_suffix(b"\0").unwrap_or(text);
    (!text.contains(&0)).then_some(text)
}

#[cfg(test)]
mod tests;
