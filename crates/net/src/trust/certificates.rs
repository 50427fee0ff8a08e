//! Host certificates, and the lists of what is revoked.

use sshoal_crypto::{CertificateError, HostCertificate, VerifyError, fingerprint_sha256};
use sshoal_fleet::{Failure, FailureKind};
use sshoal_known_hosts::{Certificate, CertificateIdentity, KeyType, Presented, Verdict};

use super::Occasion;
use crate::plan::HostTrust;

impl HostTrust {
    /// A certificate that is no good leaves its plain key to be judged (sshconnect.c, check_host_key, "retry").
    pub(super) fn judge_certificate(
        &self,
        certificate: &HostCertificate,
        occasion: &Occasion<'_>,
    ) -> Result<Verdict, Failure> {
        let refused = self.refused(certificate).map_err(invalid)?;
        let principals: Vec<&str> = certificate
            .principals()
            .iter()
            .map(String::as_str)
            .collect();
        let verdict = self.verdict(
            &Presented::Certificate(Certificate {
                key: certificate.public_key(),
                authority: certificate.ca_key(),
                principals: &principals,
                valid_after: certificate.valid_after(),
                valid_before: certificate.valid_before(),
                refused: refused.as_deref(),
            }),
            None,
            &occasion.further,
        );
        match verdict {
            Verdict::Trusted {
                authority: true, ..
            }
            | Verdict::Revoked { .. } => Ok(verdict),
            _ if self.takes_plain_key(certificate) => Ok(verdict),
            _ => Err(self.only_as_certificate(refused)),
        }
    }

    /// RevokedHostKeys (sshconnect.c, verify_host_key): before anything else is asked, and whatever the strictness.
    pub(super) fn check_revoked(
        &self,
        key: &[u8],
        certificate: Option<&HostCertificate>,
    ) -> Result<(), Failure> {
        for (path, revoked) in self.revoked.iter() {
            let checked = match certificate {
                None => revoked.check_key(key),
                Some(certificate) => revoked.check_certificate(&CertificateIdentity {
                    key,
                    authority: certificate.ca_key(),
                    serial: certificate.serial(),
                    key_id: certificate.key_id().as_bytes(),
                }),
            };
            checked.map_err(|why| {
                let name = self.host_name().written();
                let shown = fingerprint_sha256(key);
                let detail = format!("{name}: {why} by {path} (RevokedHostKeys), {shown}");
                Failure::new(FailureKind::HostKeyRevoked, detail)
            })?;
        }
        Ok(())
    }

    /// Why a certificate is not relied on, whoever its authority is (sshkey.c, sshkey_cert_check_host).
    ///
    /// # Errors
    ///
    /// The authority did not sign it: OpenSSH does not go on with such a key at all (sshkey.c, cert_parse).
    fn refused(&self, certificate: &HostCertificate) -> Result<Option<String>, CertificateError> {
        let algorithm = certificate.signature_algorithm()?;
        if !self.ca_signature_algorithms.contains(&algorithm) {
            return Ok(Some(format!(
                "the host certificate is signed with {algorithm}, which is not among CASignatureAlgorithms"
            )));
        }
        match certificate.verify_ca() {
            Err(error @ CertificateError::Signature(VerifyError::RsaKeySize { .. })) => {
                return Ok(Some(error.to_string()));
            }
            result => result?,
        }
        Ok(certificate.check_use().err().map(|error| error.to_string()))
    }

    /// Whether HostKeyAlgorithms allows the plain key (sshconnect.c, hostkey_accepted_by_hostkeyalgs).
    fn takes_plain_key(&self, certificate: &HostCertificate) -> bool {
        let certified = KeyType::of_algorithm(certificate.key_type()).map(|(key_type, _)| key_type);
        let mut allowed = self
            .algorithms
            .iter()
            .filter_map(|name| KeyType::of_algorithm(name));
        allowed.any(|(key_type, is_certificate)| !is_certificate && Some(key_type) == certified)
    }

    fn only_as_certificate(&self, refused: Option<String>) -> Failure {
        let name = self.host_name().written();
        let why = refused.unwrap_or_else(|| "no known_hosts line vouches for it".to_owned());
        let detail = format!(
            "the host certificate of {name} was not accepted: {why}; HostKeyAlgorithms does not allow its plain key"
        );
        Failure::new(FailureKind::HostKeyUnknown, detail)
    }
}

pub(super) fn invalid(error: CertificateError) -> Failure {
    let detail = format!("the host certificate is not valid: {error}");
    Failure::new(FailureKind::Protocol, detail)
}
