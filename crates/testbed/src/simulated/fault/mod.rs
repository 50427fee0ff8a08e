//! What can be wrong with a simulated host, and how it is written on a command line.
//!
//! A rule is `HOSTS=FAULT` or `HOSTS=FAULT@N`: HOSTS are indices as in `3`, `10-19`, `1,4-6` or `*`;
//! with `@N` only the first N connections to each of these hosts suffer. One host may have several.

use std::num::ParseIntError;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

mod cut;
mod parse;
#[cfg(test)]
mod tests;

pub use cut::{Action, Cut, Position, Side};

/// One thing wrong with a host. [`Fault::from_str`] documents the spelling of each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fault {
    /// `refuse`: nothing listens; connecting draws ECONNREFUSED.
    Refuse,
    /// `connect-hang`: a full accept queue, so that the kernel drops every SYN and connect never ends.
    ConnectHang,
    /// `silent-after-connect`: accepts and never sends a byte.
    SilentAfterConnect,
    /// `garbage-banner`: 64 KiB of noise without one line end, then silence.
    GarbageBanner,
    /// `endless-banner`: lines of text (RFC 4253, 4.2 allows them) for ever, never a version line.
    EndlessBanner,
    /// `max-startups`: the text of sshd up to 9.7 in place of the banner, then a close.
    MaxStartups,
    /// `not-allowed`: the text of sshd 9.8 and later in place of the banner, then a close.
    NotAllowed,
    /// `wrong-host-key`: presents another key than known_hosts says.
    WrongHostKey,
    /// `changed-host-key:N`: the known key for the first N connections, another from then on.
    ChangedHostKey(u64),
    /// `unknown-host-key`: known_hosts has no line for the host.
    UnknownHostKey,
    /// `revoked-host-key`: known_hosts lists the host's key as `@revoked`.
    RevokedHostKey,
    /// `auth-denied`: no key and no password is accepted.
    AuthDenied,
    /// `reset-at:P`, `close-at:P`, `silent-at:P`, `silent-after-message:N` and, for the host's input,
    /// `reset-input-at:P`, `close-input-at:P`, `silent-input-at:P`.
    Cut(Cut),
    /// `slow-output:N`: N bytes a second once authenticated.
    SlowOutput(u64),
    /// `flood` or `flood:N`: every command is `yes-bytes N` instead; N is 1 GiB if not given.
    Flood(u64),
    /// `exit-signal:NAME`: every command is `kill-self NAME` instead.
    ExitSignal(String),
    /// `never-close`: a command's exit-status is sent, its channel's EOF and CLOSE never.
    NeverClose,
    /// `latency:MS`: each direction is so much later; connect(2) itself is not.
    Latency(Duration),
}

/// Bytes that `flood` sends when it names no number.
pub const FLOOD_DEFAULT: u64 = 1 << 30;

impl Fault {
    /// Whether the fault is in the listening socket or in known_hosts, hence the same for every
    /// connection.
    fn is_of_the_host(&self) -> bool {
        matches!(
            self,
            Fault::Refuse | Fault::ConnectHang | Fault::UnknownHostKey | Fault::RevokedHostKey
        )
    }
}

/// A [`Fault`] and the hosts and connections that it is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultRule {
    hosts: Vec<RangeInclusive<u32>>,
    fault: Fault,
    first_connections: Option<u64>,
}

impl FaultRule {
    /// `fault` for the hosts of one range of indices, on every connection.
    pub fn new(hosts: RangeInclusive<u32>, fault: Fault) -> FaultRule {
        FaultRule {
            hosts: vec![hosts],
            fault,
            first_connections: None,
        }
    }

    /// The same, on the first `connections` connections to each host only. Has no effect on faults
    /// that no single connection has ([`Fault::Refuse`] and the like).
    #[must_use]
    pub fn first(mut self, connections: u64) -> FaultRule {
        self.first_connections = Some(connections);
        self
    }

    pub(super) fn concerns(&self, host: u32) -> bool {
        self.hosts.iter().any(|range| range.contains(&host))
    }

    pub(super) fn fault(&self) -> &Fault {
        &self.fault
    }

    /// Whether the host's connection `number`, counted from 0, suffers.
    pub(super) fn applies(&self, number: u64) -> bool {
        self.fault.is_of_the_host() || self.first_connections.is_none_or(|first| number < first)
    }
}

/// Why the text of a fault rule is not one.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum FaultError {
    /// No `=`.
    #[error("'{0}' is not HOSTS=FAULT, for example 10-19=silent-after-connect")]
    NoHosts(String),
    /// The part before `=`.
    #[error("'{0}' is not a list of host indices, for example 3 or 10-19 or 1,4-6 or *")]
    Hosts(String),
    /// A name that no fault has.
    #[error("no fault is called '{0}'")]
    Name(String),
    /// A fault that needs a number or name after `:`.
    #[error("'{fault}' needs {needs} after a colon")]
    Missing {
        /// The fault's name.
        fault: String,
        /// What is missing.
        needs: &'static str,
    },
    /// A fault that takes nothing after it.
    #[error("'{0}' takes nothing after a colon")]
    Superfluous(String),
    /// Not a number, or too large a one.
    #[error("'{text}' is not a number: {source}")]
    Number {
        /// What stood there.
        text: String,
        /// What is wrong with it.
        source: ParseIntError,
    },
    /// `@N` on a fault that is the same for every connection.
    #[error("'{0}' is the same for every connection: leave out the @")]
    EveryConnection(String),
}
