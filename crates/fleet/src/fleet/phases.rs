//! A host moves on.

use std::time::Instant;

use super::Fleet;
use crate::host::Stage;
use crate::{EventError, Gate, Phase};

impl Fleet {
    /// [`Event::Entered`](crate::Event::Entered).
    pub(super) fn enter(
        &mut self,
        now: Instant,
        index: u32,
        slot: u32,
        phase: Phase,
    ) -> Result<(), EventError> {
        let flight = self.flight(slot);
        flight.unheard = false;
        if flight.queued && phase == flight.phase {
            flight.settle(now);
            flight.leave_queue();
            self.set_timer(index, slot);
        }
        if !self.may_enter(index, slot, phase)? {
            return Ok(());
        }
        let flight = self.flight(slot);
        flight.settle(now);
        flight.leave_queue();
        let from = flight.phase;
        let stage = flight.handshake.stage;
        let spent = flight.handshake.spent;
        flight.enter(phase);
        *self.progress.in_phase(from) -= 1;
        *self.progress.in_phase(phase) += 1;
        if phase >= Phase::Session && stage != Stage::Over {
            if stage == Stage::LoggingIn {
                self.gates.login_patience.learn(spent);
            }
            self.end_handshake(index, slot);
            self.jump_was_of_use(index);
        }
        self.set_timer(index, slot);
        Ok(())
    }

    /// [`Event::Queued`](crate::Event::Queued).
    pub(super) fn queue(&mut self, now: Instant, index: u32, slot: u32) {
        let flight = self.flight(slot);
        if flight.ending.is_some() {
            return;
        }
        flight.settle(now);
        flight.queued = true;
        if flight.handshake.holds_place {
            self.give_up_places(index, slot);
        }
        self.set_timer(index, slot);
    }

    /// Whether entering the phase is news, or an error.
    fn may_enter(&mut self, index: u32, slot: u32, phase: Phase) -> Result<bool, EventError> {
        let host = self.id(index);
        let flight = self.flight(slot);
        if flight.ending.is_some() || phase == flight.phase {
            return Ok(false);
        }
        if let Some(gate) = flight.at_gate {
            return Err(EventError::Waiting { host, gate });
        }
        if phase < flight.phase {
            let (from, to) = (flight.phase, phase);
            return Err(EventError::Backwards { host, from, to });
        }
        if phase == Phase::Login && flight.handshake.stage == Stage::Connecting {
            let gate = Gate::Login;
            return Err(EventError::NotPassed { host, gate });
        }
        if phase == Phase::Command && !flight.passed_session {
            let gate = Gate::Session;
            return Err(EventError::NotPassed { host, gate });
        }
        Ok(true)
    }

    /// [`Event::KeysExchanged`](crate::Event::KeysExchanged). Later key exchanges change nothing.
    pub(super) fn keys_exchanged(
        &mut self,
        now: Instant,
        index: u32,
        slot: u32,
    ) -> Result<(), EventError> {
        let host = self.id(index);
        let flight = self.flight(slot);
        if flight.ending.is_some() {
            return Ok(());
        }
        if flight.phase < Phase::Login {
            let gate = Gate::Login;
            return Err(EventError::NotPassed { host, gate });
        }
        if flight.phase == Phase::Login {
            flight.settle(now);
            flight.keys_exchanged();
        }
        Ok(())
    }
}
