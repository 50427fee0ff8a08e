//! Is this the right host? What known_hosts says of a host key, and what StrictHostKeyChecking makes of it.

use std::time::{SystemTime, UNIX_EPOCH};

use sshoal_crypto::{CertificateError, HostCertificate, VerifyError, fingerprint_sha256};
use sshoal_fleet::{Failure, FailureKind};
use sshoal_known_hosts::{
    Certificate, CertificateIdentity, HostName, KeyType, Presented, Query, Verdict,
};
use sshoal_proto::HostKeyQuestion;

use crate::known_hosts::NewKeys;
use crate::plan::{HostTrust, Strictness};

/// Why a host key is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accepted {
    /// known_hosts vouches for it.
    Known,
    /// It is the first that was ever seen of the host.
    New,
    /// known_hosts has another, and the user wants to go on all the same.
    Changed,
}

impl HostTrust {
    /// The host-key algorithms to offer, those of known keys first: so no false "changed" can come.
    pub(crate) fn ordered_algorithms(&self) -> Vec<&'static str> {
        self.known
            .key_types(&self.host_name())
            .order(&self.algorithms)
    }

    /// Judges a proven host key.
    pub(crate) fn judge(
        &self,
        question: &HostKeyQuestion,
        new_keys: &NewKeys,
    ) -> Result<Accepted, Failure> {
        if !question.algorithm.ends_with("-cert-v01@openssh.com") {
            self.check_revoked(&question.blob, None)?;
            let verdict = self.verdict(&Presented::Key(&question.blob));
            return self.decide(verdict, &question.blob, new_keys);
        }
        let certificate = HostCertificate::read(&question.blob).map_err(invalid)?;
        let verdict = self.judge_certificate(&certificate)?;
        self.decide(verdict, certificate.public_key(), new_keys)
    }

    /// A certificate that is no good leaves its plain key to be judged (sshconnect.c, check_host_key, "retry").
    fn judge_certificate(&self, certificate: &HostCertificate) -> Result<Verdict, Failure> {
        self.check_revoked(certificate.public_key(), Some(certificate))?;
        let refused = self.refused(certificate).map_err(invalid)?;
        let principals: Vec<&str> = certificate
            .principals()
            .iter()
            .map(String::as_str)
            .collect();
        let verdict = self.verdict(&Presented::Certificate(Certificate {
            key: certificate.public_key(),
            authority: certificate.ca_key(),
            principals: &principals,
            valid_after: certificate.valid_after(),
            valid_before: certificate.valid_before(),
            refused: refused.as_deref(),
        }));
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
    fn check_revoked(
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

    fn verdict(&self, presented: &Presented<'_>) -> Verdict {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs());
        self.known.judge(
            &Query {
                names: &[self.host_name()],
                now,
            },
            presented,
        )
    }

    pub(crate) fn host_name(&self) -> HostName<'_> {
        HostName::with_port(&self.name, self.port)
    }

    /// What StrictHostKeyChecking makes of the verdict on a plain key, or on the one that a certificate is about.
    fn decide(
        &self,
        verdict: Verdict,
        key: &[u8],
        new_keys: &NewKeys,
    ) -> Result<Accepted, Failure> {
        let name = self.host_name().written();
        let shown = fingerprint_sha256(key);
        match (verdict, self.strictness) {
            (Verdict::Trusted { .. }, _) => Ok(Accepted::Known),
            (Verdict::Revoked { by }, _) => Err(Failure::new(
                FailureKind::HostKeyRevoked,
                format!("the host key {shown} of {name} is revoked by {by}"),
            )),
            (Verdict::Unknown(_), Strictness::AcceptNew | Strictness::No) => {
                self.accept_new(key, new_keys)
            }
            (Verdict::Unknown(unknown), Strictness::Yes) => {
                let mut detail = format!("no known_hosts line for {name} has its key {shown}");
                if let Some(why) = unknown.certificate {
                    detail = format!("{detail}; its certificate was not accepted: {why}");
                }
                for line in unknown.unusable {
                    detail = format!("{detail}; {line}");
                }
                Err(Failure::new(FailureKind::HostKeyUnknown, detail))
            }
            (Verdict::Changed(_), Strictness::No) => Ok(Accepted::Changed),
            (Verdict::Changed(changed), _) => Err(Failure::new(
                FailureKind::HostKeyChanged,
                format!(
                    "the host key of {} is now {shown}; {} has another",
                    changed.name, changed.known
                ),
            )),
        }
    }

    /// The first key that a run sees of a host nothing is known of is the host's: another one is then a changed key,
    /// as it would be if ssh had connected to one after the other.
    fn accept_new(&self, key: &[u8], new_keys: &NewKeys) -> Result<Accepted, Failure> {
        match (new_keys.accept(self, key), self.strictness) {
            (Ok(()), _) => Ok(Accepted::New),
            (Err(_), Strictness::No) => Ok(Accepted::Changed),
            (Err(first), _) => {
                let name = self.host_name().written();
                let (shown, first) = (fingerprint_sha256(key), fingerprint_sha256(&first));
                let detail = format!(
                    "the host key of {name} is {shown} here; earlier in this run it was {first}, which was accepted"
                );
                Err(Failure::new(FailureKind::HostKeyChanged, detail))
            }
        }
    }
}

fn invalid(error: CertificateError) -> Failure {
    let detail = format!("the host certificate is not valid: {error}");
    Failure::new(FailureKind::Protocol, detail)
}
