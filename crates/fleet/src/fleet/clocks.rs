//! What happens when nothing happens: deadlines, slow hosts, the ends of back-offs.

use std::time::{Duration, Instant};

use super::Fleet;
use crate::host::{Stage, State};
use crate::{Failure, FailureKind, Phase};

/// How many times the deadline of its phase a host may wait for a turn of the performer's own.
const QUEUE_PATIENCE: u32 = 30;

impl Fleet {
    /// Carries out what is due.
    pub(super) fn expire(&mut self, now: Instant) {
        while let Some((at, index)) = self.timers.first()
            && at <= now
        {
            self.timers.remove(index);
            match self.hosts[index as usize].state {
                State::BackingOff => {
                    self.progress.backing_off -= 1;
                    self.requeue(index);
                }
                State::InFlight(slot) => self.wake(now, index, slot),
                State::Waiting | State::Held | State::Later | State::Ended => {}
            }
        }
        self.expire_jumps(now);
    }

    /// Sets the host's one timer to the first moment at which [`Fleet::wake`] may have something to do. Its
    /// clocks are settled.
    pub(super) fn set_timer(&mut self, index: u32, slot: u32) {
        let phase_limit = self.phase_limit(slot);
        let patience = self.patience(slot);
        let flight = self.flight(slot);
        let at = if let Some(ending) = &flight.ending {
            Some(ending.answer_by)
        } else if flight.at_gate.is_some() {
            flight.grace
        } else {
            let deadline = phase_limit.and_then(|limit| flight.phase_reaches(limit));
            let slow = patience.and_then(|span| flight.handshake_reaches(span));
            [deadline, slow, flight.grace].into_iter().flatten().min()
        };
        match at {
            Some(at) => self.timers.set(index, at),
            None => self.timers.remove(index),
        }
    }

    /// A host's timer has gone off.
    fn wake(&mut self, now: Instant, index: u32, slot: u32) {
        let phase_limit = self.phase_limit(slot);
        let patience = self.patience(slot);
        let flight = self.flight(slot);
        flight.settle(now);
        let (phase, unheard) = (flight.phase, flight.unheard);
        let waits = flight.at_gate.is_some();
        if flight.ending.is_some() {
            return self.end_unanswered(now, index, slot);
        }
        if flight.grace.is_some_and(|until| until <= now) {
            return self.give_up_interrupted(now, index, slot);
        }
        if let Some(limit) = phase_limit.filter(|limit| !waits && flight.has_taken(*limit)) {
            let failure = match unheard {
                true => silent(limit),
                false => overdue(phase, limit),
            };
            return self.abort(now, index, slot, failure);
        }
        if patience.is_some_and(|span| flight.handshake.spent >= span) {
            self.give_up_places(index, slot);
        }
        self.set_timer(index, slot);
    }

    /// The deadline of the host's phase.
    fn phase_limit(&self, slot: u32) -> Option<Duration> {
        let flight = &self.flights.slots[slot as usize];
        let limit = match flight.phase {
            Phase::Lookup => self.deadlines.lookup,
            Phase::Connect => self.deadlines.connect,
            Phase::Login | Phase::Session => self.deadlines.login,
            Phase::Command => self.deadlines.command,
        };
        limit.map(|limit| match flight.queued {
            true => limit.saturating_mul(QUEUE_PATIENCE),
            false => limit,
        })
    }

    /// How long the host may take for this stage of its handshake before it counts as slow; `None` if it
    /// holds no place to give up.
    fn patience(&self, slot: u32) -> Option<Duration> {
        let handshake = &self.flights.slots[slot as usize].handshake;
        match handshake.stage {
            _ if !handshake.holds_place => None,
            Stage::Connecting => Some(self.gates.connect_patience.span()),
            Stage::LoggingIn => Some(self.gates.login_patience.span()),
            Stage::Over => None,
        }
    }
}

/// The failure of a host whose program has told nothing in the time for the first phase. What it has done nobody knows.
fn silent(limit: Duration) -> Failure {
    Failure::with_remedy(
        FailureKind::Lost,
        format!(
            "ssh said nothing within {limit:?}: neither that it looks up a name nor that it connects"
        ),
        "check the program that was started (--ssh, ssh if not given), and what it was given (--ssh-word): run it by hand \
         with -v",
    )
}

/// The failure of a host whose phase took too long.
fn overdue(phase: Phase, limit: Duration) -> Failure {
    match phase {
        Phase::Lookup => Failure::new(
            FailureKind::Resolve,
            format!("no answer to the name lookup within {limit:?}"),
        ),
        Phase::Connect => Failure::new(
            FailureKind::ConnectTimeout,
            format!("no connection within {limit:?}"),
        ),
        Phase::Login => Failure::new(
            FailureKind::LoginTimeout,
            format!("connected, but not logged in within {limit:?}"),
        ),
        Phase::Session => Failure::new(
            FailureKind::LoginTimeout,
            format!("logged in, but no session within {limit:?}"),
        ),
        Phase::Command => Failure::new(
            FailureKind::CommandTimeout,
            format!("the command did not end within {limit:?}"),
        ),
    }
}
