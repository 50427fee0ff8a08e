//! Certificates of hosts.

use super::{Certificate, CertificateError, CertificateKind};
use crate::fields::Fields;
use crate::verify::DEFAULT_MINIMUM_RSA_BITS;

/// A certificate that a host shows as its host key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostCertificate {
    pub(super) certificate: Certificate,
}

impl HostCertificate {
    /// Reads a certificate blob and refuses what OpenSSH refuses before it looks at names and times: another
    /// kind, and critical options, of which there are none for hosts. Its signature is checked by
    /// [`HostCertificate::verify_ca`].
    ///
    /// # Errors
    ///
    /// As described.
    pub fn parse(blob: &[u8]) -> Result<Self, CertificateError> {
        let certificate = HostCertificate::read(blob)?;
        certificate.check_use()?;
        Ok(certificate)
    }

    /// Reads a certificate blob, whatever the certificate is for: its plain key may be trusted although it is not. Ask
    /// [`check_use`](HostCertificate::check_use) before trust is put into its authority.
    ///
    /// # Errors
    ///
    /// It is damaged, or of a type that is not known here.
    pub fn read(blob: &[u8]) -> Result<Self, CertificateError> {
        let certificate = Certificate::parse(blob)?;
        Ok(HostCertificate { certificate })
    }

    /// Whether it is a host's, and demands nothing that is not understood.
    ///
    /// # Errors
    ///
    /// [`CertificateError::WrongKind`] or [`CertificateError::CriticalOption`].
    pub fn check_use(&self) -> Result<(), CertificateError> {
        let Certificate {
            kind,
            critical_options,
            ..
        } = &self.certificate;
        if *kind != CertificateKind::Host {
            return Err(CertificateError::WrongKind {
                expected: CertificateKind::Host,
                found: *kind,
            });
        }
        match critical_options.first() {
            Some(option) => Err(CertificateError::CriticalOption(option.clone())),
            None => Ok(()),
        }
    }

    /// The algorithm that the authority signed with, such as "rsa-sha2-512": what CASignatureAlgorithms is about.
    ///
    /// # Errors
    ///
    /// [`CertificateError::Malformed`].
    pub fn signature_algorithm(&self) -> Result<&str, CertificateError> {
        Ok(Fields::new(&self.certificate.signature).text()?)
    }

    /// Such as "ssh-ed25519-cert-v01@openssh.com".
    pub fn key_type(&self) -> &str {
        &self.certificate.key_type
    }

    /// Blob of the plain key inside: the one that signs exchange hashes.
    pub fn public_key(&self) -> &[u8] {
        &self.certificate.public_key
    }

    /// The authority's number for it.
    pub fn serial(&self) -> u64 {
        self.certificate.serial
    }

    /// The authority's name for it.
    pub fn key_id(&self) -> &str {
        &self.certificate.key_id
    }

    /// The host names it is for. OpenSSH's client also takes patterns here.
    pub fn principals(&self) -> &[String] {
        &self.certificate.principals
    }

    /// First second of its validity, since 1970.
    pub fn valid_after(&self) -> u64 {
        self.certificate.valid_after
    }

    /// First second after its validity, since 1970; `u64::MAX` for ever.
    pub fn valid_before(&self) -> u64 {
        self.certificate.valid_before
    }

    /// Blob of the authority's key.
    pub fn ca_key(&self) -> &[u8] {
        &self.certificate.ca_key
    }

    /// Whether the authority that it names has signed it. Whether that authority is trusted, known_hosts says.
    /// RSA authorities under 2048 bits are refused.
    ///
    /// # Errors
    ///
    /// [`CertificateError::Signature`] or [`CertificateError::Chained`].
    pub fn verify_ca(&self) -> Result<(), CertificateError> {
        self.verify_ca_with_minimum(DEFAULT_MINIMUM_RSA_BITS)
    }

    /// [`HostCertificate::verify_ca`] with another least size of RSA keys (RequiredRSASize), in bits.
    ///
    /// # Errors
    ///
    /// As [`HostCertificate::verify_ca`].
    pub fn verify_ca_with_minimum(&self, minimum_rsa_bits: usize) -> Result<(), CertificateError> {
        self.certificate.verify_ca(minimum_rsa_bits)
    }

    /// Whether it is valid for the host `name` at `now` (seconds since 1970), as OpenSSH's client judges
    /// (sshkey.c, `sshkey_cert_check_authority`): names are compared in lower case; a principal may be a
    /// pattern with `*` and `?`.
    ///
    /// # Errors
    ///
    /// Which of both it is not.
    pub fn check(&self, name: &str, now: u64) -> Result<(), CertificateError> {
        self.certificate.check_time(now)?;
        let principals = self.principals();
        if principals.is_empty() {
            return Err(CertificateError::NoPrincipals);
        }
        let lower = name.to_ascii_lowercase();
        match principals
            .iter()
            .any(|pattern| matches_pattern(pattern.as_bytes(), lower.as_bytes()))
        {
            true => Ok(()),
            false => Err(CertificateError::WrongPrincipal {
                name: name.to_owned(),
                principals: principals.to_vec(),
            }),
        }
    }
}

/// `*` and `?` as in OpenSSH's match.c. Only the last star is ever taken back, so that a hostile pattern
/// costs no more than the product of both lengths.
pub(super) fn matches_pattern(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut matched) = (0, 0);
    let mut last_star: Option<(usize, usize)> = None;
    while matched < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                last_star = Some((at, matched));
                at += 1;
            }
            Some(octet) if *octet == b'?' || *octet == name[matched] => {
                at += 1;
                matched += 1;
            }
            _ => {
                let Some((star, taken)) = last_star else {
                    return false;
                };
                last_star = Some((star, taken + 1));
                (at, matched) = (star + 1, taken + 1);
            }
        }
    }
    pattern[at..].iter().all(|octet| *octet == b'*')
}
