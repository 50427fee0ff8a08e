//! The user wants the run to end.

use std::time::{Duration, Instant};

use super::{Course, Fleet};
use crate::host::State;
use crate::{Action, Failure, FailureKind, Outcome, PhaseTimes};

/// How long an interrupted command has to end before its host is aborted. A server older than OpenSSH 7.9
/// ignores signals, and a command run by sudo cannot be signalled.
const INTERRUPT_GRACE: Duration = Duration::from_secs(5);

impl Fleet {
    /// Starts no more hosts. Those whose command cannot have been sent end as [`Outcome::NotStarted`]; for
    /// the others the performer is asked to signal the command, which then has 5 s to end, and as long as the performer may
    /// take to end it ([`Deadlines::kill`](crate::Deadlines::kill)). A second call
    /// changes nothing; see [`Fleet::abandon`].
    pub fn interrupt(&mut self, now: Instant) {
        if matches!(self.course, Course::Interrupted | Course::Abandoned) {
            return;
        }
        self.course = Course::Interrupted;
        for index in 0..self.hosts.len() as u32 {
            match self.hosts[index as usize].state {
                State::Waiting | State::BackingOff | State::Held | State::Later => {
                    self.cancel(now, index);
                }
                State::InFlight(slot) => self.interrupt_flight(now, index, slot),
                State::Ended => {}
            }
        }
    }

    fn interrupt_flight(&mut self, now: Instant, index: u32, slot: u32) {
        let host = self.id(index);
        let grace = INTERRUPT_GRACE + self.deadlines.kill;
        let flight = self.flight(slot);
        if flight.ending.is_some() {
            return;
        }
        if !flight.passed_session {
            return self.tear_down(now, index, slot, interruption(), true);
        }
        flight.settle(now);
        flight.grace = now.checked_add(grace);
        self.orders.push_back(Action::Interrupt { host });
        self.set_timer(index, slot);
    }

    /// Ends every host at once, with what is known now, and orders the teardown of those in flight. No answer
    /// is needed.
    pub fn abandon(&mut self, now: Instant) {
        self.course = Course::Abandoned;
        // Nobody waits for an interrupted command any more, so nobody need be asked to signal it.
        self.orders
            .retain(|order| matches!(order, Action::Abort { .. }));
        for index in 0..self.hosts.len() as u32 {
            match self.hosts[index as usize].state {
                State::Waiting | State::BackingOff | State::Held | State::Later => {
                    self.cancel(now, index);
                }
                State::InFlight(slot) => {
                    if self.flight(slot).ending.is_none() {
                        self.tear_down(now, index, slot, interruption(), true);
                    }
                    self.end_unanswered(now, index, slot);
                }
                State::Ended => {}
            }
        }
    }

    /// An interrupted command has not ended.
    pub(super) fn give_up_interrupted(&mut self, now: Instant, index: u32, slot: u32) {
        self.tear_down(now, index, slot, interruption(), true);
    }

    /// Ends a host that is not in flight.
    pub(super) fn cancel(&mut self, now: Instant, index: u32) {
        self.leave_wait(index);
        self.issue(now, index, Outcome::NotStarted, PhaseTimes::default());
    }
}

pub(super) fn interruption() -> Failure {
    Failure::new(FailureKind::Lost, "interrupted; its end was not confirmed")
}
