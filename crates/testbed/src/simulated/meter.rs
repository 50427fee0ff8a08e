//! How many bytes a connection has carried, and where in them it authenticated.

use std::sync::atomic::{AtomicU64, Ordering};

/// The bytes of one connection to a simulated host, as the host sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes received and read.
    pub input: u64,
    /// Bytes sent.
    pub output: u64,
    /// `(input, output)` at the moment the host accepted the authentication: the accepted request is
    /// in the former, USERAUTH_SUCCESS not yet in the latter.
    pub at_authentication: Option<(u64, u64)>,
}

/// No authentication yet. A connection of so many bytes does not happen.
const NEVER: u64 = u64::MAX;

/// Shared by a connection's stream, which counts, and its handler, which knows of authentication.
#[derive(Debug)]
pub(super) struct Meter {
    input: AtomicU64,
    output: AtomicU64,
    input_at_login: AtomicU64,
    output_at_login: AtomicU64,
}

impl Meter {
    pub(super) fn new() -> Meter {
        Meter {
            input: AtomicU64::new(0),
            output: AtomicU64::new(0),
            input_at_login: AtomicU64::new(NEVER),
            output_at_login: AtomicU64::new(NEVER),
        }
    }

    pub(super) fn input(&self) -> u64 {
        self.input.load(Ordering::Relaxed)
    }

    pub(super) fn output(&self) -> u64 {
        self.output.load(Ordering::Relaxed)
    }

    pub(super) fn add_input(&self, bytes: usize) {
        self.input.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn add_output(&self, bytes: usize) {
        self.output.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn authenticated(&self) {
        self.input_at_login.store(self.input(), Ordering::Relaxed);
        self.output_at_login.store(self.output(), Ordering::Relaxed);
    }

    pub(super) fn input_at_login(&self) -> Option<u64> {
        Some(self.input_at_login.load(Ordering::Relaxed)).filter(|&bytes| bytes != NEVER)
    }

    pub(super) fn output_at_login(&self) -> Option<u64> {
        Some(self.output_at_login.load(Ordering::Relaxed)).filter(|&bytes| bytes != NEVER)
    }

    pub(super) fn traffic(&self) -> Traffic {
        Traffic {
            input: self.input(),
            output: self.output(),
            at_authentication: self.input_at_login().zip(self.output_at_login()),
        }
    }
}
