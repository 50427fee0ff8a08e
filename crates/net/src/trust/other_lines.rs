//! What a program knows of a host beside the files (KnownHostsCommand), and the order of algorithms that comes of both.

use std::net::SocketAddr;
use std::pin::Pin;

use sshoal_crypto::HostCertificate;
use sshoal_fleet::Failure;
use sshoal_known_hosts::{Further, HostName, KnownHosts};
use sshoal_proto::HostKeyQuestion;
use sshoal_wire::Decoder;

use crate::known_hosts::{Invocation, ShownKey};
use crate::plan::HostTrust;

/// What KnownHostsCommand says of a host.
#[derive(Default)]
pub(crate) struct OtherLines {
    of_host: Option<KnownHosts>,
    of_address: Option<KnownHosts>,
}

impl OtherLines {
    pub(super) fn further(&self) -> Further<'_> {
        Further {
            of_host: self.of_host.as_ref(),
            of_address: self.of_address.as_ref(),
        }
    }
}

/// Lines that a program is being asked for.
pub(crate) type Consultation = Pin<Box<dyn Future<Output = Result<OtherLines, Failure>>>>;

impl HostTrust {
    /// The host-key algorithms to offer, those of known keys first: so no false "changed" can come.
    ///
    /// # Errors
    ///
    /// KnownHostsCommand has failed.
    pub(crate) async fn ordered_algorithms(&self) -> Result<Vec<&'static str>, Failure> {
        let Some(command) = self.command.as_ref().filter(|command| command.orders) else {
            return Ok(self.algorithms_by(None));
        };
        let name = HostName::new(&command.host).written();
        let lines = command.run(Invocation::Order, &name, None).await?;
        Ok(self.algorithms_by(Some((&lines, HostName::new(&command.host)))))
    }

    /// The algorithms, ordered by the files and, perhaps, further lines.
    pub(crate) fn algorithms_by(
        &self,
        further: Option<(&KnownHosts, HostName<'_>)>,
    ) -> Vec<&'static str> {
        let name = self.host_name();
        let mut types = self.known.key_types(&name);
        if let Some((further, bare)) = further {
            types.add(further.key_types(&name));
            types.add(further.key_types(&bare));
        }
        types.order(&self.algorithms)
    }

    /// Has KnownHostsCommand asked about a key that was shown, if there is one to ask (sshconnect.c, check_host_key).
    pub(crate) fn consult(
        &self,
        question: &HostKeyQuestion,
        peer: Option<SocketAddr>,
    ) -> Option<Consultation> {
        let command = self.command.clone().filter(|_| !self.is_unchecked(peer))?;
        let name = self.host_name().written();
        let certificate = HostCertificate::read(&question.blob).ok();
        let address = self
            .address_to_check(peer)
            .filter(|_| certificate.is_none());
        let plain = certificate.map(|certificate| certificate.public_key().to_vec());
        let key = ShownKey {
            key_type: shown_type(&question.blob),
            plain: plain.unwrap_or_else(|| question.blob.clone()),
            blob: question.blob.clone(),
        };
        Some(Box::pin(async move {
            let of_host = command.run(Invocation::HostName, &name, Some(&key)).await?;
            let of_address = match address {
                Some(address) => {
                    let name = address.host_name().written();
                    Some(command.run(Invocation::Address, &name, Some(&key)).await?)
                }
                None => None,
            };
            Ok(OtherLines {
                of_host: Some(of_host),
                of_address,
            })
        }))
    }
}

/// The type that a key or certificate names itself (RFC 4253 section 6.6).
fn shown_type(blob: &[u8]) -> String {
    let name = Decoder::new(blob).string().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}
