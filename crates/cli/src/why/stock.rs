//! A login by ssh taken apart: the lines of its log (LogLevel DEBUG3), with the times at which they came.
//!
//! The words are those of OpenSSH's sources since 7.4, which are named where they are looked for. As with our own login one
//! phase begins where the one before ends.

use std::time::Duration;

use sshoal_net::{Passed, TimedLogin};
use sshoal_why::{Phase, Span};

/// What of a login by ssh is known by itself: how it judges the host key, which is work on this side.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Judging {
    /// Searching known_hosts, before the key exchange and in it.
    pub(super) known_hosts: Option<Duration>,
    /// Asking the name server (VerifyHostKeyDNS).
    pub(super) host_key_dns: Option<Duration>,
}

/// How long a login by ssh judged the host key, as far as it came.
pub(super) fn judging(login: &TimedLogin) -> Judging {
    let mut judging = Judging::default();
    // The keys that are known say which algorithms are offered (sshconnect2.c, order_hostkeyalgs).
    let (mut orders, mut verifies, mut asks) = (None, None, None);
    for mark in &login.marks {
        let Passed::Said(line) = &mark.what else {
            continue;
        };
        let said = line.split_once(": ").map_or("", |(_, said)| said);
        if let Some(since) = asks.take() {
            judging.host_key_dns = Some(mark.at.saturating_sub(since));
            verifies = Some(mark.at);
        }
        if said.starts_with("Authenticating to ") {
            orders = Some(mark.at);
        } else if said.starts_with("SSH2_MSG_KEXINIT sent") {
            judging.known_hosts = orders.take().map(|since| mark.at.saturating_sub(since));
        // sshconnect.c, verify_host_key and check_host_key; dns.c, verify_host_key_dns.
        } else if said.starts_with("Server host key: ") {
            verifies = Some(mark.at);
        } else if said.starts_with("verify_host_key_dns") {
            asks = Some(mark.at);
        } else if said.contains("' is known and matches the ")
            && let Some(since) = verifies.take()
        {
            let before = judging.known_hosts.unwrap_or_default();
            judging.known_hosts = Some(before + mark.at.saturating_sub(since));
        }
    }
    judging
}

/// What is expected next, and what is known of it.
struct Reading {
    spans: Vec<Span>,
    /// Where the last phase ended.
    until: Duration,
    next: Option<Phase>,
    kex: String,
    host_key: String,
    /// What the server judges.
    offered: String,
}

/// The phases of a login by ssh.
pub(super) fn spans(login: &TimedLogin) -> Vec<Span> {
    let mut reading = Reading {
        spans: Vec::new(),
        until: Duration::ZERO,
        next: Some(Phase::Local),
        kex: String::new(),
        host_key: String::new(),
        offered: String::new(),
    };
    for mark in &login.marks {
        match &mark.what {
            Passed::Said(line) => reading.line(mark.at, line),
            Passed::Output if reading.next == Some(Phase::FirstOutput) => {
                reading.end(Phase::FirstOutput, mark.at, String::new(), None);
            }
            Passed::Ended => reading.fail(mark.at),
            _ => {}
        }
    }
    reading.spans
}

impl Reading {
    fn line(&mut self, at: Duration, line: &str) {
        // sshconnect2.c, ssh_userauth2.
        if line.starts_with("Authenticated to ") {
            return self.let_in(at);
        }
        let Some((level, said)) = line.split_once(": ") else {
            return;
        };
        match level {
            "debug1" => self.debug(at, said),
            // ssh.c, main.
            "debug2" if said.starts_with("resolving \"") => self.resolve(at),
            _ => {}
        }
    }

    fn debug(&mut self, at: Duration, said: &str) {
        let behind = |words: &str| said.strip_prefix(words).map(str::trim);
        // sshconnect.c, ssh_connect_direct and ssh_proxy_connect.
        if let Some(to) = behind("Connecting to ") {
            self.connect(at, to.trim_end_matches('.'));
        } else if said.starts_with("Executing proxy") {
            self.connect(at, "by way of others");
            self.end_if(Phase::Connect, at, "by way of others", Phase::Banner);
        } else if said.starts_with("Connection established") {
            self.end_if(Phase::Connect, at, "", Phase::Banner);
        // kex.c, kex_exchange_identification and kex_choose_conf.
        } else if let Some(version) = behind("Remote protocol version ") {
            self.end_if(Phase::Banner, at, version, Phase::KeyExchangeInit);
        } else if said.starts_with("SSH2_MSG_KEXINIT received") {
            self.end_if(Phase::KeyExchangeInit, at, "", Phase::KeyExchange);
        } else if let Some(name) = behind("kex: algorithm: ") {
            name.clone_into(&mut self.kex);
        } else if let Some(name) = behind("kex: host key algorithm: ") {
            name.clone_into(&mut self.host_key);
        } else if said.starts_with("SSH2_MSG_NEWKEYS received") {
            let names = format!("{}, {}", self.kex, self.host_key);
            self.end_if(Phase::KeyExchange, at, &names, Phase::FirstRequest);
        // sshconnect2.c.
        } else if said.starts_with("Authentications that can continue") {
            self.refuse(at);
        } else if let Some(method) = behind("Next authentication method: ") {
            self.turn_to(at, method);
        } else if let Some(key) = behind("Offering public key: ") {
            self.offered = format!("publickey {key}");
        } else if said.starts_with("Server accepts key") {
            let offered = self.offered.clone();
            self.end_if(Phase::KeyProbe, at, &offered, Phase::SignedRequest);
        } else if said.starts_with("Authentication succeeded") {
            self.let_in(at);
        // clientloop.c, client_session2_setup: called for the channel's confirmation.
        } else if said.starts_with("Sending command: ") {
            self.end_if(Phase::ChannelOpen, at, "", Phase::FirstOutput);
        }
    }

    fn resolve(&mut self, at: Duration) {
        if self.next == Some(Phase::Local) {
            self.end(Phase::Local, at, String::new(), Some(Phase::Lookup));
        }
    }

    /// The first address; where the name is looked up by others, or before ssh said so, that took no time of its own.
    fn connect(&mut self, at: Duration, to: &str) {
        self.resolve(at);
        if self.next == Some(Phase::Lookup) {
            self.end(Phase::Lookup, at, to.to_owned(), Some(Phase::Connect));
        }
    }

    /// The answer to `none`, or a credential that is refused.
    fn refuse(&mut self, at: Duration) {
        match self.next {
            Some(Phase::FirstRequest) => {
                self.end_if(Phase::FirstRequest, at, "none", Phase::KeyProbe);
            }
            Some(phase @ (Phase::KeyProbe | Phase::SignedRequest)) => {
                let detail = format!("{}: refused", self.offered);
                self.end(
                    phase_of(phase, &self.offered),
                    at,
                    detail,
                    Some(Phase::KeyProbe),
                );
            }
            _ => {}
        }
    }

    /// Another method is turned to: one that did not get as far as to ask the server was work on this side.
    fn turn_to(&mut self, at: Duration, method: &str) {
        let is_judged = matches!(self.next, Some(Phase::KeyProbe | Phase::SignedRequest));
        let is_open = !self.offered.is_empty() && !self.offered.starts_with("publickey");
        if is_judged && is_open {
            let detail = format!("{}: given up", self.offered);
            self.end(Phase::SignedRequest, at, detail, Some(Phase::KeyProbe));
        }
        method.clone_into(&mut self.offered);
    }

    fn let_in(&mut self, at: Duration) {
        let next = Some(Phase::ChannelOpen);
        match self.next {
            Some(Phase::FirstRequest) => {
                self.end(Phase::FirstRequest, at, "none".to_owned(), next);
            }
            Some(Phase::KeyProbe | Phase::SignedRequest) => {
                let offered = self.offered.clone();
                self.end(Phase::SignedRequest, at, offered, next);
            }
            _ => {}
        }
    }

    fn fail(&mut self, at: Duration) {
        if let Some(phase) = self.next {
            let detail = match phase {
                Phase::FirstOutput => "it ended without any output",
                _ => "it failed here",
            };
            self.end(phase, at, detail.to_owned(), None);
        }
    }

    fn end_if(&mut self, phase: Phase, at: Duration, detail: &str, next: Phase) {
        if self.next == Some(phase) {
            self.end(phase, at, detail.to_owned(), Some(next));
        }
    }

    fn end(&mut self, phase: Phase, at: Duration, detail: String, next: Option<Phase>) {
        self.spans.push(Span {
            phase,
            start: self.until,
            duration: at.saturating_sub(self.until),
            detail,
        });
        self.until = self.until.max(at);
        self.next = next;
    }
}

/// Only keys are probed.
fn phase_of(next: Phase, offered: &str) -> Phase {
    match offered.starts_with("publickey") {
        true => next,
        false => Phase::SignedRequest,
    }
}

#[cfg(test)]
#[path = "stock_tests.rs"]
mod tests;
