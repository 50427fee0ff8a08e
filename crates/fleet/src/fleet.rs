//! The fan-out itself. This is its interface alone; the next commits carry it out.

use std::time::Instant;

use crate::{
    Action, Deadlines, Event, EventError, Gate, HostId, HostResult, Job, Limits, PlanError,
    Progress, RetryPolicy,
};

/// A run over many hosts: says what to do next, is told what happened, yields one result a host.
///
/// After each call of [`Fleet::handle`], and when [`Fleet::poll_timeout`] is due, drain
/// [`Fleet::poll_action`] and then [`Fleet::poll_result`]. The run is over when [`Fleet::is_done`].
#[derive(Debug)]
pub struct Fleet {}

#[allow(unused_variables)]
impl Fleet {
    /// A run of `jobs`, started in their order. `seed` decides the jitter of back-offs.
    pub fn new(
        jobs: impl IntoIterator<Item = Job>,
        limits: Limits,
        deadlines: Deadlines,
        retry: RetryPolicy,
        seed: u64,
    ) -> Result<Fleet, PlanError> {
        unimplemented!()
    }

    /// The next thing to do, or `None` until an event or [`Fleet::poll_timeout`].
    pub fn poll_action(&mut self, now: Instant) -> Option<Action> {
        unimplemented!()
    }

    /// Takes note of what happened to a host.
    pub fn handle(&mut self, now: Instant, host: HostId, event: Event) -> Result<(), EventError> {
        unimplemented!()
    }

    /// Passes a gate if there is room: `Event::Reached` without the round trip of an action. `false` means
    /// that the host now waits there and an `Action::Admit` or `Action::Abort` will come.
    pub fn try_pass(&mut self, now: Instant, host: HostId, gate: Gate) -> Result<bool, EventError> {
        unimplemented!()
    }

    /// The next result.
    pub fn poll_result(&mut self) -> Option<HostResult> {
        unimplemented!()
    }

    /// When to call [`Fleet::poll_action`] again if nothing happens before.
    pub fn poll_timeout(&self) -> Option<Instant> {
        unimplemented!()
    }

    /// Starts no more hosts, and asks the running commands to end.
    pub fn interrupt(&mut self, now: Instant) {
        unimplemented!()
    }

    /// Ends every host at once.
    pub fn abandon(&mut self, now: Instant) {
        unimplemented!()
    }

    /// How far the run is.
    pub fn progress(&self) -> Progress {
        unimplemented!()
    }

    /// Whether every host has ended. Results may still wait to be polled.
    pub fn is_done(&self) -> bool {
        unimplemented!()
    }
}
