//! Is this the right host? What known_hosts says of a host key, and what StrictHostKeyChecking makes of it.

mod certificates;
mod other_lines;

use std::net::{IpAddr, SocketAddr};
use std::time::{SystemTime, UNIX_EPOCH};

use sshoal_crypto::{HostCertificate, fingerprint_sha256};
use sshoal_fleet::{Failure, FailureKind};
use sshoal_known_hosts::{Further, HostName, Location, Marker, Presented, Query, Unknown, Verdict};
use sshoal_proto::HostKeyQuestion;

use crate::interfaces;
use crate::known_hosts::NewKeys;
use crate::link::Link;
use crate::plan::{HostTrust, Strictness};
use certificates::invalid;

pub(crate) use other_lines::{Consultation, OtherLines};

/// What VerifyHostKeyDNS comes to.
const NO_DNS: &str =
    "VerifyHostKeyDNS is not supported natively: fingerprints in the DNS are not looked up";

/// Why a host key is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accepted {
    /// known_hosts vouches for it.
    Known,
    /// It is the first that was ever seen of the host.
    New,
    /// The same, and the user has accepted it.
    Confirmed,
    /// Nothing was asked of it: it is this machine's own loopback.
    Unchecked,
    /// known_hosts has another, and the user wants to go on all the same.
    Changed,
}

/// What is to be made of a host key.
pub(crate) enum Judgement {
    Accepted(Accepted),
    /// The same, and what the server says of its other keys may be believed (UpdateHostKeys), with the address that
    /// known_hosts is asked for besides.
    Vouched(Accepted, Option<AddressName>),
    /// The user is to be asked.
    Asks(Box<UnknownKey>),
}

/// A key of a host that nothing is known of.
#[derive(Debug)]
pub(crate) struct UnknownKey {
    /// The plain key.
    pub(crate) key: Vec<u8>,
    /// Where the host was reached; not known behind a jump host.
    pub(crate) address: Option<IpAddr>,
    /// The address that is to be recorded as well.
    address_name: Option<AddressName>,
    /// What the user should know of it besides.
    pub(crate) notes: Vec<String>,
    /// That it is not known, for messages.
    pub(crate) detail: String,
}

/// An address and a port as known_hosts may have them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AddressName {
    address: String,
    port: u16,
}

impl AddressName {
    pub(crate) fn host_name(&self) -> HostName<'_> {
        HostName::with_port(&self.address, self.port)
    }
}

/// How one connection's key is judged.
#[derive(Clone, Copy)]
struct Occasion<'a> {
    peer: Option<SocketAddr>,
    /// The address that known_hosts is asked for besides the name (CheckHostIP).
    address: Option<&'a AddressName>,
    further: Further<'a>,
    new_keys: &'a NewKeys,
}

impl HostTrust {
    /// The server's address, if any of the rules wants to know it: that costs a system call.
    pub(crate) fn peer(&self, link: &Link) -> Option<SocketAddr> {
        let asks = self.strictness == Strictness::Ask;
        let is_of_use = self.checks_address || self.trusts_loopback || asks;
        is_of_use.then(|| link.peer_address()).flatten()
    }

    /// Judges a proven host key of the server at `peer`, where its address is known.
    pub(crate) fn judge(
        &self,
        question: &HostKeyQuestion,
        peer: Option<SocketAddr>,
        lines: &OtherLines,
        new_keys: &NewKeys,
    ) -> Result<Judgement, Failure> {
        let address = self.address_to_check(peer);
        let occasion = Occasion {
            peer,
            address: address.as_ref(),
            further: lines.further(),
            new_keys,
        };
        if !question.algorithm.ends_with("-cert-v01@openssh.com") {
            self.check_revoked(&question.blob, None)?;
            if self.is_unchecked(peer) {
                return Ok(Judgement::Accepted(Accepted::Unchecked));
            }
            return self.judge_key(&question.blob, &occasion);
        }
        let certificate = HostCertificate::read(&question.blob).map_err(invalid)?;
        self.check_revoked(certificate.public_key(), Some(&certificate))?;
        if self.is_unchecked(peer) {
            return Ok(Judgement::Accepted(Accepted::Unchecked));
        }
        let verdict = self.judge_certificate(&certificate, &occasion)?;
        self.decide(verdict, certificate.public_key(), &occasion)
    }

    /// NoHostAuthenticationForLocalhost (sshconnect.c, check_host_key): what is revoked stays so.
    fn is_unchecked(&self, peer: Option<SocketAddr>) -> bool {
        self.trusts_loopback && peer.is_some_and(is_loopback)
    }

    /// CheckHostIP: not on the loopback, and not behind a jump host, whose end of the connection says nothing.
    fn address_to_check(&self, peer: Option<SocketAddr>) -> Option<AddressName> {
        let peer = peer.filter(|peer| self.checks_address && !is_loopback(*peer))?;
        Some(AddressName {
            address: numeric(peer),
            port: peer.port(),
        })
    }

    fn judge_key(&self, key: &[u8], occasion: &Occasion<'_>) -> Result<Judgement, Failure> {
        let verdict = self.verdict(&Presented::Key(key), occasion.address, &occasion.further);
        let contradicts =
            |verdict: &Verdict| matches!(verdict, Verdict::Changed(changed) if changed.by_address);
        if self.strictness == Strictness::No && contradicts(&verdict) {
            tracing::warn!(
                host = self.name,
                "known_hosts has another key for the address"
            );
            let by_name = self.verdict(&Presented::Key(key), None, &occasion.further);
            return self.decide(
                by_name,
                key,
                &Occasion {
                    address: None,
                    ..*occasion
                },
            );
        }
        if let (Verdict::Trusted { by, .. }, Some(address)) = (&verdict, occasion.address)
            && self.is_known_by_name(by)
        {
            occasion.new_keys.accept_address(self, address, key);
        }
        self.decide(verdict, key, occasion)
    }

    /// Whether the line is about the name with its port, and not about the bare name.
    fn is_known_by_name(&self, by: &Location) -> bool {
        let entries = self.known.lookup(&self.host_name());
        entries.iter().any(|entry| entry.location() == *by)
    }

    fn verdict(
        &self,
        presented: &Presented<'_>,
        address: Option<&AddressName>,
        further: &Further<'_>,
    ) -> Verdict {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs());
        let address = address.map(AddressName::host_name);
        let names: Vec<HostName<'_>> = [Some(self.host_name()), address]
            .into_iter()
            .flatten()
            .collect();
        let query = Query { names: &names, now };
        self.known.judge_with(further, &query, presented)
    }

    pub(crate) fn host_name(&self) -> HostName<'_> {
        HostName::with_port(&self.name, self.port)
    }

    /// What StrictHostKeyChecking makes of the verdict on a plain key, or on the one that a certificate is about.
    fn decide(
        &self,
        verdict: Verdict,
        key: &[u8],
        occasion: &Occasion<'_>,
    ) -> Result<Judgement, Failure> {
        let name = self.host_name().written();
        let shown = fingerprint_sha256(key);
        match (verdict, self.strictness) {
            (verdict @ Verdict::Trusted { .. }, _) => Ok(self.known_by(&verdict, occasion)),
            (Verdict::Revoked { by }, _) => Err(Failure::new(
                FailureKind::HostKeyRevoked,
                format!("the host key {shown} of {name} is revoked by {by}"),
            )),
            (Verdict::Unknown(_), Strictness::AcceptNew | Strictness::No) => {
                let address = self.new_address(occasion.address);
                let accepted = self.accept_new(key, address, occasion.new_keys)?;
                Ok(Judgement::Accepted(accepted))
            }
            (Verdict::Unknown(unknown), Strictness::Ask) => self.ask(unknown, key, occasion),
            (Verdict::Unknown(unknown), Strictness::Yes) => {
                let mut detail = vec![self.not_known(key)];
                detail.extend(self.notes(unknown));
                Err(Failure::new(FailureKind::HostKeyUnknown, detail.join("; ")))
            }
            (Verdict::Changed(_), Strictness::No) => Ok(Judgement::Accepted(Accepted::Changed)),
            (Verdict::Changed(changed), _) => Err(Failure::new(
                FailureKind::HostKeyChanged,
                format!(
                    "the host key of {} is now {shown}; {} has another",
                    changed.name, changed.known
                ),
            )),
        }
    }

    /// A server may change what is known of its keys if a plain line of the user's own vouches for it by its full name,
    /// or the user just has (sshconnect.c, check_host_key).
    fn known_by(&self, verdict: &Verdict, occasion: &Occasion<'_>) -> Judgement {
        let user_files = self.known.leading_files(&self.user_files);
        let may = self.updates_keys && self.known.allows_update(verdict, user_files);
        match verdict {
            Verdict::Trusted { by, .. } if may && self.is_known_by_name(by) => {
                self.vouched(Accepted::Known, occasion)
            }
            _ => Judgement::Accepted(Accepted::Known),
        }
    }

    fn vouched(&self, accepted: Accepted, occasion: &Occasion<'_>) -> Judgement {
        match self.updates_keys {
            true => Judgement::Vouched(accepted, occasion.address.cloned()),
            false => Judgement::Accepted(accepted),
        }
    }

    /// What the user should know of a host that is not known.
    fn notes(&self, unknown: Unknown) -> Vec<String> {
        let certificate = unknown
            .certificate
            .map(|why| format!("its certificate was not accepted: {why}"));
        let lines = unknown.unusable.iter().map(ToString::to_string);
        let dns = self.wants_dns.then(|| NO_DNS.to_owned());
        certificate.into_iter().chain(lines).chain(dns).collect()
    }

    fn not_known(&self, key: &[u8]) -> String {
        let (name, shown) = (self.host_name().written(), fingerprint_sha256(key));
        format!("no known_hosts line for {name} has its key {shown}")
    }

    /// The address, if known_hosts says nothing of it either.
    fn new_address<'a>(&self, address: Option<&'a AddressName>) -> Option<&'a AddressName> {
        address.filter(|address| {
            let entries = self.known.lookup(&address.host_name());
            // Certificates' authorities are no keys of the address.
            let has_key = entries.iter().any(|entry| entry.marker() == Marker::None);
            !has_key && address.host_name().written() != self.host_name().written()
        })
    }

    /// A key that the user has been asked about already is the host's; of another one the user is asked.
    fn ask(
        &self,
        unknown: Unknown,
        key: &[u8],
        occasion: &Occasion<'_>,
    ) -> Result<Judgement, Failure> {
        let address = self.new_address(occasion.address);
        if occasion.new_keys.has_one_of(self) {
            let accepted = self.accept_new(key, address, occasion.new_keys)?;
            return Ok(self.vouched(accepted, occasion));
        }
        let notes = self.notes(unknown);
        let mut detail = vec![self.not_known(key)];
        detail.extend(notes.iter().cloned());
        Ok(Judgement::Asks(Box::new(UnknownKey {
            key: key.to_vec(),
            address: occasion.peer.map(|peer| peer.ip()),
            address_name: address.cloned(),
            notes,
            detail: detail.join("; "),
        })))
    }

    /// The user has accepted the key.
    ///
    /// # Errors
    ///
    /// Another one was accepted meanwhile, for a host that goes by the same name.
    pub(crate) fn accept_asked(
        &self,
        unknown: &UnknownKey,
        new_keys: &NewKeys,
    ) -> Result<(), Failure> {
        let address = unknown.address_name.as_ref();
        self.accept_new(&unknown.key, address, new_keys).map(drop)
    }

    /// The first key that a run sees of a host nothing is known of is the host's: another one is then a changed key,
    /// as it would be if ssh had connected to one after the other.
    fn accept_new(
        &self,
        key: &[u8],
        address: Option<&AddressName>,
        new_keys: &NewKeys,
    ) -> Result<Accepted, Failure> {
        match (new_keys.accept(self, address, key), self.strictness) {
            (Ok(()), Strictness::Ask) => Ok(Accepted::Confirmed),
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

/// The address as ssh names it: a scope by its interface, if that is one of this machine's (getnameinfo(3)).
fn numeric(peer: SocketAddr) -> String {
    let SocketAddr::V6(v6) = peer else {
        return peer.ip().to_string();
    };
    match v6.scope_id() {
        0 => v6.ip().to_string(),
        scope => format!("{}%{}", v6.ip(), interfaces::name_of_scope(scope)),
    }
}

fn is_loopback(peer: SocketAddr) -> bool {
    peer.ip().is_loopback()
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv6Addr, SocketAddrV6};

    use super::*;

    #[test]
    fn an_address_keeps_its_scope() {
        let scoped =
            |address: Ipv6Addr, scope| numeric(SocketAddrV6::new(address, 22, 0, scope).into());
        let link_local = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
        assert_eq!(scoped(Ipv6Addr::LOCALHOST, 0), "::1");
        let lo = nix::net::if_::if_nametoindex("lo").unwrap_or_default();
        assert_eq!(scoped(link_local, lo), "fe80::1%lo");
        assert_eq!(
            scoped(link_local, u32::MAX),
            format!("fe80::1%{}", u32::MAX)
        );
        assert_eq!(numeric(([127, 0, 0, 1], 22).into()), "127.0.0.1");
    }
}
