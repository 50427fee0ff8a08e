//! How far a run is.

use crate::Phase;

/// Counts of hosts at one moment. `waiting + backing_off + held + ending + done` and the five phases add up to
/// `total`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// All hosts of the run.
    pub total: u32,
    /// Hosts that have not been started yet, or whose next attempt is due and waits for room.
    pub waiting: u32,
    /// Hosts that were turned away and wait for their next attempt to be due.
    pub backing_off: u32,
    /// Hosts that wait for an answer of the user's.
    pub held: u32,
    /// Hosts in name lookup.
    pub lookup: u32,
    /// Hosts connecting.
    pub connect: u32,
    /// Hosts logging in.
    pub login: u32,
    /// Hosts opening their session.
    pub session: u32,
    /// Hosts whose command runs.
    pub command: u32,
    /// Hosts being torn down.
    pub ending: u32,
    /// Of the hosts in a phase, those that wait at a gate.
    pub at_gates: u32,
    /// Of the hosts connecting or logging in, those so slow that they no longer count against the limits.
    pub slow: u32,
    /// Hosts that have ended, in whatever way.
    pub done: u32,
    /// Of `done`, those that failed: everything but exit status 0 and hosts that were not started.
    pub failed: u32,
    /// Of `done`, those whose command was not started because the run was interrupted.
    pub not_started: u32,
    /// Starts that were not a host's first.
    pub retries: u32,
}

impl Progress {
    pub(crate) fn in_phase(&mut self, phase: Phase) -> &mut u32 {
        match phase {
            Phase::Lookup => &mut self.lookup,
            Phase::Connect => &mut self.connect,
            Phase::Login => &mut self.login,
            Phase::Session => &mut self.session,
            Phase::Command => &mut self.command,
        }
    }

    /// Hosts in flight: in a phase, or being torn down.
    pub fn in_flight(&self) -> u32 {
        self.lookup + self.connect + self.login + self.session + self.command + self.ending
    }
}
