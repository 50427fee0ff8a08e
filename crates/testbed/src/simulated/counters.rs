//! What has happened on all hosts together.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

/// Totals over all hosts of a simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// TCP connections accepted.
    pub connections: u64,
    /// Authentications accepted.
    pub logins: u64,
    /// Authentication requests refused; OpenSSH's first request, `none`, is not counted.
    pub refusals: u64,
    /// Commands started.
    pub execs: u64,
    /// Authenticated connections open now.
    pub open: u64,
    /// The most authenticated connections ever open at once.
    pub peak_open: u64,
}

impl Totals {
    /// The totals of both. Their peaks add up as if they had come at the same moment.
    #[must_use]
    pub fn plus(self, other: Totals) -> Totals {
        Totals {
            connections: self.connections + other.connections,
            logins: self.logins + other.logins,
            refusals: self.refusals + other.refusals,
            execs: self.execs + other.execs,
            open: self.open + other.open,
            peak_open: self.peak_open + other.peak_open,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    connections: AtomicU64,
    logins: AtomicU64,
    refusals: AtomicU64,
    execs: AtomicU64,
    open: AtomicU64,
    peak_open: AtomicU64,
}

impl Counters {
    pub(super) fn connection(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn login(&self) {
        self.logins.fetch_add(1, Ordering::Relaxed);
        let open = self.open.fetch_add(1, Ordering::Relaxed) + 1;
        self.peak_open.fetch_max(open, Ordering::Relaxed);
    }

    pub(super) fn logout(&self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn refusal(&self) {
        self.refusals.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn exec(&self) {
        self.execs.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn totals(&self) -> Totals {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Totals {
            connections: read(&self.connections),
            logins: read(&self.logins),
            refusals: read(&self.refusals),
            execs: read(&self.execs),
            open: read(&self.open),
            peak_open: read(&self.peak_open),
        }
    }
}
