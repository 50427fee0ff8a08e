//! Our own login taken apart: marks become phases.
//!
//! One phase begins where the one before ends, with the arrival of the server's message that the phase waits for, so that
//! they add up to the whole. A login that fails ends in the phase that was next.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use sshoal_net::{Passed, TimedLogin};
use sshoal_why::{Phase, Span};

/// A login's phases, and what else its marks tell.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Apart {
    pub(super) spans: Vec<Span>,
    /// What TCP took to the address that answered: a round trip.
    pub(super) connect: Option<Duration>,
    /// That address.
    pub(super) address: Option<String>,
    /// Addresses that did not answer, and why.
    pub(super) failed_addresses: Vec<(String, Duration)>,
    /// Keys that were offered.
    pub(super) probes: u32,
    /// What let the user in.
    pub(super) method: Option<String>,
    /// Whether the command has written anything.
    pub(super) has_output: bool,
}

/// What the next message of the server's will end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Phase(Phase),
    /// All is measured.
    Nothing,
}

impl Apart {
    /// The family of all addresses that did not answer, and of the one that did: `inet`, `inet6`, or `both`.
    pub(super) fn families(&self) -> Option<[&'static str; 2]> {
        let mut failed = self.failed_addresses.iter();
        let first = family(&failed.next()?.0)?;
        let is_other = |(address, _): &(String, Duration)| family(address) != Some(first);
        let failed = match failed.any(is_other) {
            true => "both",
            false => first,
        };
        Some([failed, family(self.address.as_deref()?)?])
    }
}

fn family(address: &str) -> Option<&'static str> {
    let address: SocketAddr = address.parse().ok()?;
    Some(match address.ip().to_canonical() {
        IpAddr::V4(_) => "inet",
        IpAddr::V6(_) => "inet6",
    })
}

struct Taking<'a> {
    login: &'a TimedLogin,
    apart: Apart,
    /// Where the last phase ended.
    until: Duration,
    next: Next,
    /// What the server judges.
    offered: String,
}

/// Takes a login by sshoal apart.
pub(super) fn apart(login: &TimedLogin) -> Apart {
    let mut taking = Taking {
        login,
        apart: Apart::default(),
        until: Duration::ZERO,
        next: Next::Phase(Phase::Lookup),
        offered: String::new(),
    };
    for mark in &login.marks {
        taking.take(mark.at, &mark.what);
    }
    taking.apart
}

impl Taking<'_> {
    fn take(&mut self, at: Duration, what: &Passed) {
        match what {
            Passed::LookedUp(addresses) => {
                let detail = match addresses {
                    1 => "1 address".to_owned(),
                    number => format!("{number} addresses"),
                };
                self.end(Phase::Lookup, at, detail, Phase::Connect);
            }
            Passed::NotConnected(address, _, took) => {
                let address = address.to_string();
                self.apart.failed_addresses.push((address, *took));
            }
            Passed::Connected(way) => {
                let detail = match way {
                    Some((address, took)) => {
                        self.apart.connect = Some(*took);
                        self.apart.address = Some(address.to_string());
                        address.to_string()
                    }
                    None => "by way of others".to_owned(),
                };
                self.end(Phase::Connect, at, detail, Phase::Banner);
            }
            Passed::Arrived(message) => self.arrive(at, message),
            Passed::Offered(offered) => self.offered.clone_from(offered),
            Passed::Ended => self.fail(at),
            Passed::Said(_) | Passed::Output => {}
        }
    }

    /// The messages of the server's, in the order of a login.
    fn arrive(&mut self, at: Duration, message: &str) {
        match (self.next, message) {
            (Next::Phase(Phase::Banner), "identification") => {
                let detail = self.login.identification.clone().unwrap_or_default();
                self.end(Phase::Banner, at, detail, Phase::KeyExchangeInit);
            }
            (Next::Phase(Phase::KeyExchangeInit), "KEXINIT") => {
                let next = Phase::KeyExchange;
                self.end(Phase::KeyExchangeInit, at, String::new(), next);
            }
            (Next::Phase(Phase::KeyExchange), "NEWKEYS") => {
                let names = [self.login.kex, self.login.host_key];
                let detail = names.into_iter().flatten().collect::<Vec<_>>().join(", ");
                self.end(Phase::KeyExchange, at, detail, Phase::FirstRequest);
            }
            (Next::Phase(Phase::FirstRequest), "USERAUTH_FAILURE") => {
                self.end(Phase::FirstRequest, at, "none".to_owned(), Phase::KeyProbe);
            }
            (Next::Phase(Phase::FirstRequest), "USERAUTH_SUCCESS") => {
                self.end(
                    Phase::FirstRequest,
                    at,
                    "none".to_owned(),
                    Phase::ChannelOpen,
                );
                self.apart.method = Some("none".to_owned());
            }
            (Next::Phase(Phase::KeyProbe | Phase::SignedRequest), _) => self.judge(at, message),
            (Next::Phase(Phase::ChannelOpen), "CHANNEL_OPEN_CONFIRMATION") => {
                let next = Phase::FirstOutput;
                self.end(Phase::ChannelOpen, at, String::new(), next);
            }
            (Next::Phase(Phase::FirstOutput), "CHANNEL_DATA" | "CHANNEL_EXTENDED_DATA") => {
                self.apart.has_output = true;
                self.finish(at, String::new());
            }
            (Next::Phase(Phase::FirstOutput), "CHANNEL_EOF" | "CHANNEL_CLOSE") => {
                self.finish(at, "it ended without any output".to_owned());
            }
            _ => {}
        }
    }

    /// What the server says of a credential: a key is probed before it signs, anything else is not.
    fn judge(&mut self, at: Duration, message: &str) {
        let is_key = self.offered.starts_with("publickey ");
        let probes = is_key && self.next == Next::Phase(Phase::KeyProbe);
        let phase = match probes {
            true => Phase::KeyProbe,
            false => Phase::SignedRequest,
        };
        let next = match message {
            "USERAUTH_PK_OK" => Phase::SignedRequest,
            "USERAUTH_FAILURE" => Phase::KeyProbe,
            "USERAUTH_INFO_REQUEST" => Phase::SignedRequest,
            "USERAUTH_SUCCESS" => Phase::ChannelOpen,
            _ => return,
        };
        self.apart.probes += u32::from(probes);
        let detail = match (message, probes) {
            ("USERAUTH_FAILURE", _) => format!("{}: refused", self.offered),
            _ => self.offered.clone(),
        };
        if message == "USERAUTH_SUCCESS" {
            let method = self.offered.split(' ').next().unwrap_or_default();
            self.apart.method = Some(method.to_owned());
        }
        self.end(phase, at, detail, next);
    }

    fn end(&mut self, phase: Phase, at: Duration, detail: String, next: Phase) {
        self.add(phase, at, detail);
        self.next = Next::Phase(next);
    }

    fn finish(&mut self, at: Duration, detail: String) {
        self.add(Phase::FirstOutput, at, detail);
        self.next = Next::Nothing;
    }

    /// The attempt is over before all was measured.
    fn fail(&mut self, at: Duration) {
        if let Next::Phase(phase) = self.next {
            self.add(phase, at, "it failed here".to_owned());
            self.next = Next::Nothing;
        }
    }

    fn add(&mut self, phase: Phase, at: Duration, detail: String) {
        self.apart.spans.push(Span {
            phase,
            start: self.until,
            duration: at.saturating_sub(self.until),
            detail,
        });
        self.until = self.until.max(at);
    }
}

#[cfg(test)]
#[path = "ours_tests.rs"]
mod tests;
