//! Is this the right host? What known_hosts says of a host key, and what StrictHostKeyChecking makes of it.

use std::time::{SystemTime, UNIX_EPOCH};

use sshoal_crypto::{HostCertificate, fingerprint_sha256};
use sshoal_fleet::{Failure, FailureKind};
use sshoal_known_hosts::{Certificate, HostName, Presented, Query, Verdict};
use sshoal_proto::HostKeyQuestion;

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
    pub(crate) fn judge(&self, question: &HostKeyQuestion) -> Result<Accepted, Failure> {
        let verdict = match question.algorithm.ends_with("-cert-v01@openssh.com") {
            false => self.verdict(&Presented::Key(&question.blob)),
            true => self.judge_certificate(&question.blob)?,
        };
        self.decide(verdict, &question.blob)
    }

    fn judge_certificate(&self, blob: &[u8]) -> Result<Verdict, Failure> {
        let certificate = HostCertificate::parse(blob)
            .and_then(|certificate| certificate.verify_ca().map(|()| certificate))
            .map_err(|error| {
                Failure::new(
                    FailureKind::Protocol,
                    format!("the host certificate is not valid: {error}"),
                )
            })?;
        let principals: Vec<&str> = certificate
            .principals()
            .iter()
            .map(String::as_str)
            .collect();
        Ok(self.verdict(&Presented::Certificate(Certificate {
            key: certificate.public_key(),
            authority: certificate.ca_key(),
            principals: &principals,
            valid_after: certificate.valid_after(),
            valid_before: certificate.valid_before(),
            refused: None,
        })))
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

    fn decide(&self, verdict: Verdict, blob: &[u8]) -> Result<Accepted, Failure> {
        let name = self.host_name().written();
        let shown = fingerprint_sha256(blob);
        match (verdict, self.strictness) {
            (Verdict::Trusted { .. }, _) => Ok(Accepted::Known),
            (Verdict::Revoked { by }, _) => Err(Failure::new(
                FailureKind::HostKeyRevoked,
                format!("the host key {shown} of {name} is revoked by {by}"),
            )),
            (Verdict::Unknown(_), Strictness::AcceptNew | Strictness::No) => Ok(Accepted::New),
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
}
