//! Gates: waiting at them, passing them, and giving back the places behind them.

use std::time::{Duration, Instant};

use super::{Fleet, Gates};
use crate::host::Stage;
use crate::places::Places;
use crate::{Action, EventError, Gate, Phase};

/// Waiting hosts are let through in this order: the nearer to the end, the sooner.
const ADMISSION: [Gate; 3] = [Gate::Session, Gate::Signature, Gate::Login];

impl Gates {
    pub(super) fn places(&mut self, gate: Gate) -> &mut Places {
        match gate {
            Gate::Login => &mut self.logins,
            Gate::Signature => &mut self.signatures,
            Gate::Session => &mut self.session,
        }
    }
}

impl Fleet {
    /// [`Event::Reached`](crate::Event::Reached): waits at a gate, be there room or not.
    pub(super) fn reach(
        &mut self,
        now: Instant,
        index: u32,
        slot: u32,
        gate: Gate,
    ) -> Result<(), EventError> {
        if self.may_approach(index, slot, gate)? {
            self.wait_at(now, index, slot, gate);
        }
        Ok(())
    }

    /// Passes a gate if there is room and nobody is waiting, and waits there otherwise.
    pub(super) fn pass_or_wait(
        &mut self,
        now: Instant,
        index: u32,
        slot: u32,
        gate: Gate,
    ) -> Result<bool, EventError> {
        if !self.may_approach(index, slot, gate)? {
            return Ok(false);
        }
        let places = self.gates.places(gate);
        if !places.has_room() || places.line.first().is_some() {
            self.wait_at(now, index, slot, gate);
            return Ok(false);
        }
        self.flight(slot).settle(now);
        self.pass(index, slot, gate);
        Ok(true)
    }

    /// The next host to be let through a gate.
    pub(super) fn admit_next(&mut self, now: Instant) -> Option<Action> {
        if self.progress.at_gates == 0 {
            return None;
        }
        for gate in ADMISSION {
            let places = self.gates.places(gate);
            let Some(index) = places.line.first().filter(|_| places.has_room()) else {
                continue;
            };
            let Some(slot) = self.in_flight(index) else {
                continue;
            };
            self.flight(slot).settle(now);
            self.leave_line(index, slot);
            self.pass(index, slot, gate);
            let host = self.id(index);
            return Some(Action::Admit { host, gate });
        }
        None
    }

    /// Whether the host is at a point where this gate makes sense; `false` if it is being torn down.
    fn may_approach(&mut self, index: u32, slot: u32, gate: Gate) -> Result<bool, EventError> {
        let host = self.id(index);
        let flight = self.flight(slot);
        if flight.ending.is_some() {
            return Ok(false);
        }
        if let Some(gate) = flight.at_gate {
            return Err(EventError::Waiting { host, gate });
        }
        let past = match gate {
            Gate::Login => flight.handshake.stage != Stage::Connecting,
            Gate::Signature => flight.signing || flight.phase > Phase::Login,
            Gate::Session => flight.passed_session,
        };
        if past {
            return Err(EventError::PastGate { host, gate });
        }
        Ok(true)
    }

    fn wait_at(&mut self, now: Instant, index: u32, slot: u32, gate: Gate) {
        let flight = self.flight(slot);
        flight.settle(now);
        flight.at_gate = Some(gate);
        self.progress.at_gates += 1;
        self.links.join(&mut self.gates.places(gate).line, index);
        self.set_timer(index, slot);
    }

    /// Takes a host out of the line at its gate, if it stands in one.
    pub(super) fn leave_line(&mut self, index: u32, slot: u32) {
        if let Some(gate) = self.flight(slot).at_gate.take() {
            self.progress.at_gates -= 1;
            self.links.leave(&mut self.gates.places(gate).line, index);
        }
    }

    /// Lets a host whose clocks are settled through.
    fn pass(&mut self, index: u32, slot: u32, gate: Gate) {
        match gate {
            Gate::Login => self.begin_login(slot),
            Gate::Signature => {
                self.gates.signatures.take();
                self.flight(slot).signing = true;
            }
            Gate::Session => self.flight(slot).passed_session = true,
        }
        self.set_timer(index, slot);
    }

    /// Exchanges the host's place among `connects` for one among `logins`.
    fn begin_login(&mut self, slot: u32) {
        let spent = self.flight(slot).handshake.spent;
        self.gates.connect_patience.learn(spent);
        self.free_handshake_place(slot);
        self.gates.logins.take();
        let handshake = &mut self.flight(slot).handshake;
        handshake.stage = Stage::LoggingIn;
        handshake.spent = Duration::ZERO;
        handshake.holds_place = true;
    }

    /// Gives back all that a host holds on its way to be authenticated.
    pub(super) fn end_handshake(&mut self, index: u32, slot: u32) {
        self.free_signature(slot);
        self.free_handshake_place(slot);
        self.free_lane(index, slot);
        self.flight(slot).handshake.stage = Stage::Over;
    }

    /// Takes the places of a slow host back; it goes on without them.
    pub(super) fn give_up_places(&mut self, index: u32, slot: u32) {
        self.free_handshake_place(slot);
        self.free_lane(index, slot);
        self.progress.slow += 1;
    }

    /// [`Event::Left`](crate::Event::Left) of the signature gate.
    pub(super) fn leave_gate(
        &mut self,
        index: u32,
        slot: u32,
        gate: Gate,
    ) -> Result<(), EventError> {
        let host = self.id(index);
        let flight = self.flight(slot);
        match gate {
            Gate::Signature if flight.signing => self.free_signature(slot),
            Gate::Signature if flight.ending.is_none() => {
                return Err(EventError::NotPassed { host, gate });
            }
            Gate::Signature | Gate::Login | Gate::Session => {}
        }
        Ok(())
    }

    fn free_signature(&mut self, slot: u32) {
        if std::mem::take(&mut self.flight(slot).signing) {
            self.gates.signatures.give_back();
        }
    }

    /// Gives the place of the present stage back, or counts a slow host that gave it up earlier as one no
    /// more.
    fn free_handshake_place(&mut self, slot: u32) {
        let handshake = &mut self.flight(slot).handshake;
        let held = std::mem::take(&mut handshake.holds_place);
        match handshake.stage {
            Stage::Over => {}
            _ if !held => self.progress.slow -= 1,
            Stage::Connecting => self.gates.connects.give_back(),
            Stage::LoggingIn => self.gates.logins.give_back(),
        }
    }

    fn free_lane(&mut self, index: u32, slot: u32) {
        if std::mem::take(&mut self.flight(slot).handshake.holds_lane) {
            self.free_lane_place(index);
        }
    }
}
