//! Whether a host key is the right one, by known_hosts as sshoal reads it.

use std::net::SocketAddrV4;
use std::time::{SystemTime, UNIX_EPOCH};

use sshoal_crypto::HostCertificate;
use sshoal_known_hosts::{Certificate, HostName, KnownHosts, Presented, Query, Verdict};
use sshoal_proto::HostKeyQuestion;

/// What is known of one host.
pub struct Trust {
    known: KnownHosts,
    name: String,
    port: u16,
}

impl Trust {
    /// By the lines of a known_hosts file.
    pub fn new(address: SocketAddrV4, known_hosts: &str) -> Trust {
        let known = KnownHosts::parse(vec![("known_hosts".to_owned(), known_hosts.into())]);
        assert_eq!(known.problems(), []);
        Trust {
            known,
            name: address.ip().to_string(),
            port: address.port(),
        }
    }

    /// Judges a key or certificate that the server proved to hold; says why not.
    pub fn judge(&self, question: &HostKeyQuestion) -> Result<(), String> {
        let verdict = match question.algorithm.ends_with("-cert-v01@openssh.com") {
            false => self.verdict(&Presented::Key(&question.blob)),
            true => self.certificate_verdict(&question.blob)?,
        };
        match verdict {
            Verdict::Trusted { .. } => Ok(()),
            other => Err(format!("the host key is not trusted: {other:?}")),
        }
    }

    fn certificate_verdict(&self, blob: &[u8]) -> Result<Verdict, String> {
        let certificate = HostCertificate::parse(blob).map_err(|error| error.to_string())?;
        certificate.verify_ca().map_err(|error| error.to_string())?;
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
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let query = Query {
            names: &[HostName::with_port(&self.name, self.port)],
            now: now.as_secs(),
        };
        self.known.judge(&query, presented)
    }
}
