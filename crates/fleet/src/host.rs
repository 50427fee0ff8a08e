//! What a fleet knows of one host: little while it waits, more while it is in flight.

use std::time::{Duration, Instant};

use crate::{Failure, Fate, Gate, HostId, Phase, PhaseTimes};

/// A host of the run, in flight or not. Small: there may be 50,000 of them.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) id: HostId,
    /// The lane it starts from.
    pub(crate) lane: u32,
    /// Its turn: among hosts that could start, the lowest ticket is first.
    pub(crate) ticket: u64,
    /// How often it was started.
    pub(crate) attempts: u32,
    pub(crate) state: State,
    pub(crate) first_start: Option<Instant>,
}

/// Where a host stands between its job and its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Its batch has not begun.
    Later,
    /// In its lane, to be started.
    Waiting,
    /// Turned away; a timer brings it back to its lane.
    BackingOff,
    /// Its user is to be asked before it goes on.
    Held,
    /// In flight; the index of its [`Flight`].
    InFlight(u32),
    /// Its result is out.
    Ended,
}

/// One attempt of a host, from its start to its end.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(crate) phase: Phase,
    /// Whether a program of this machine performs it that has not been heard of: then the phase is a guess.
    pub(crate) unheard: bool,
    /// The gate it waits at. Its clocks stand still meanwhile.
    pub(crate) at_gate: Option<Gate>,
    /// Whether it waits for a turn of the performer's own.
    pub(crate) queued: bool,
    /// How far it is with its handshake, and which places it holds for it.
    pub(crate) handshake: Handshake,
    /// Whether it holds one of `Limits::signatures`.
    pub(crate) signing: bool,
    /// Whether it may have sent its command.
    pub(crate) passed_session: bool,
    pub(crate) ending: Option<Ending>,
    /// Interrupted, and left alone to end until then.
    pub(crate) grace: Option<Instant>,
    /// Up to when the clocks below are settled.
    settled: Instant,
    /// Time in the present phase, without waiting.
    in_phase: Duration,
    pub(crate) times: PhaseTimes,
}

/// The part of a host's way that `connects`, `logins` and `logins_per_jump` bound.
#[derive(Debug)]
pub(crate) struct Handshake {
    pub(crate) stage: Stage,
    /// Time in this stage, without waiting.
    pub(crate) spent: Duration,
    /// Whether it holds a place of its stage; a slow host has given it up.
    pub(crate) holds_place: bool,
    /// Whether it holds a place of its lane.
    pub(crate) holds_lane: bool,
}

/// The stages of a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Up to the login gate.
    Connecting,
    /// From the login gate to authenticated.
    LoggingIn,
    /// Over, or not needed.
    Over,
}

/// A flight that is being torn down, because the fleet decided so.
#[derive(Debug)]
pub(crate) struct Ending {
    /// What the result will be if the command may have run, and otherwise unless `interrupted`.
    pub(crate) failure: Failure,
    /// Whether the run was interrupted, rather than a deadline missed.
    pub(crate) interrupted: bool,
    /// When the fleet stops waiting for the answer.
    pub(crate) answer_by: Instant,
}

impl Flight {
    /// An attempt that has just begun, holding a place in its lane and one of `Limits::connects`; by a program of this
    /// machine or by our own client.
    pub(crate) fn new(now: Instant, by_program: bool) -> Flight {
        Flight {
            phase: Phase::Lookup,
            unheard: by_program,
            at_gate: None,
            queued: false,
            handshake: Handshake {
                stage: Stage::Connecting,
                spent: Duration::ZERO,
                holds_place: true,
                holds_lane: true,
            },
            signing: false,
            passed_session: false,
            ending: None,
            grace: None,
            settled: now,
            in_phase: Duration::ZERO,
            times: PhaseTimes::default(),
        }
    }

    /// Its turn has come, if it waits for one: its clocks, which are settled, begin anew.
    pub(crate) fn leave_queue(&mut self) {
        if std::mem::take(&mut self.queued) {
            let waited = std::mem::take(&mut self.in_phase);
            self.handshake.spent = self.handshake.spent.saturating_sub(waited);
            self.times.waited += waited;
        }
    }

    /// Brings the clocks up to `now`.
    pub(crate) fn settle(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.settled);
        self.settled = self.settled.max(now);
        if self.ending.is_some() {
            return;
        }
        if self.at_gate.is_some() {
            self.times.waited += passed;
        } else {
            self.in_phase += passed;
            self.handshake.spent += passed;
        }
    }

    /// Leaves the present, settled phase for the next.
    pub(crate) fn enter(&mut self, phase: Phase) {
        self.record_phase();
        self.phase = phase;
        self.in_phase = Duration::ZERO;
    }

    /// The key exchange is over: authentication begins.
    pub(crate) fn keys_exchanged(&mut self) {
        self.times.key_exchange.get_or_insert(self.in_phase);
    }

    /// Writes the settled time of the present phase into the times.
    pub(crate) fn record_phase(&mut self) {
        let spent = Some(self.in_phase);
        match self.phase {
            Phase::Lookup => self.times.lookup = spent,
            Phase::Connect => self.times.connect = spent,
            Phase::Login => {
                self.times.login = spent;
                let kex = self.times.key_exchange;
                self.times.authentication = kex.map(|kex| self.in_phase.saturating_sub(kex));
            }
            Phase::Session => self.times.session = spent,
            Phase::Command => self.times.command = spent,
        }
    }

    /// What is known of the command when the performer says nothing: nothing of it is sent before the session gate,
    /// and in the command phase the server has confirmed it.
    pub(crate) fn concluded_fate(&self) -> Fate {
        match self.passed_session {
            true if self.phase == Phase::Command => Fate::Ran,
            true => Fate::MayHaveRun,
            false => Fate::NotSent,
        }
    }

    /// Whether the present phase has taken `limit` or more.
    pub(crate) fn has_taken(&self, limit: Duration) -> bool {
        self.in_phase >= limit
    }

    /// When the present phase will have taken `limit`; `None` if that is beyond all time.
    pub(crate) fn phase_reaches(&self, limit: Duration) -> Option<Instant> {
        self.settled
            .checked_add(limit.saturating_sub(self.in_phase))
    }

    /// When the present stage of the handshake will have taken `span`.
    pub(crate) fn handshake_reaches(&self, span: Duration) -> Option<Instant> {
        self.settled
            .checked_add(span.saturating_sub(self.handshake.spent))
    }
}
