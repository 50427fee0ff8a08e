//! Jump hosts: logged in to before the hosts behind them start, tried again as hosts are, given up with all of
//! theirs.

use std::time::Instant;

use super::{Course, Fleet};
use crate::host::State;
use crate::{Action, Failure, Fate, JumpId, Outcome, PhaseTimes};

/// A jump host.
#[derive(Debug)]
pub(super) struct Jump {
    id: JumpId,
    state: Standing,
    /// Attempts since it was last of use to a host.
    attempts: u32,
}

/// ```text
///          connect          Up
///   Idle ----------> Asked ----> Up
///    ^                 |          |
///    |           Down  v          | Down
///    +------------ BackingOff <---+
///                      |
///                      +--> GivenUp   no attempts left
/// ```
#[derive(Debug)]
enum Standing {
    /// To be connected when the turn of a host behind it comes.
    Idle,
    /// The performer connects it.
    Asked,
    Up,
    /// A timer brings it back.
    BackingOff,
    GivenUp,
}

impl Jump {
    pub(super) fn new(id: JumpId) -> Jump {
        Jump {
            id,
            state: Standing::Idle,
            attempts: 0,
        }
    }

    /// Whether it stands for a program of this machine.
    pub(super) fn is_program(&self) -> bool {
        self.id == JumpId::PROGRAM
    }

    /// Whether a turn of its lane leads to something: a host's start, or the jump host's own.
    pub(super) fn lets_start(&self) -> bool {
        matches!(self.state, Standing::Idle | Standing::Up)
    }
}

impl Fleet {
    /// The order to connect the lane's jump host, if that has to come before any host.
    pub(super) fn connect_jump(&mut self, lane: u32) -> Option<Action> {
        let jump = self.starts.lanes[lane as usize].jump.as_mut()?;
        if !matches!(jump.state, Standing::Idle) {
            return None;
        }
        jump.state = Standing::Asked;
        jump.attempts += 1;
        let (jump, attempt) = (jump.id, jump.attempts);
        self.refresh_lane(lane);
        Some(Action::Connect { jump, attempt })
    }

    /// [`JumpEvent::Up`](crate::JumpEvent::Up).
    pub(super) fn jump_is_up(&mut self, lane: u32) {
        if let Some(jump) = &mut self.starts.lanes[lane as usize].jump
            && matches!(jump.state, Standing::Asked)
        {
            jump.state = Standing::Up;
            self.refresh_lane(lane);
        }
    }

    /// [`JumpEvent::Down`](crate::JumpEvent::Down).
    pub(super) fn jump_is_down(&mut self, now: Instant, lane: u32, failure: Failure) {
        let policy = self.back_off.policy;
        let Some(jump) = &mut self.starts.lanes[lane as usize].jump else {
            return;
        };
        let allowed = match jump.state {
            Standing::Asked => failure.kind.attempts(policy.attempts),
            Standing::Up => policy.attempts,
            Standing::Idle | Standing::BackingOff | Standing::GivenUp => return,
        };
        let goes_on = matches!(self.course, Course::Running | Course::Halted);
        if jump.attempts < allowed && goes_on {
            jump.state = Standing::BackingOff;
            let delay = self.back_off.jump_delay(jump.id, jump.attempts.max(1));
            let due = now.checked_add(delay).unwrap_or(now);
            self.starts.jump_timers.set(lane, due);
            self.refresh_lane(lane);
        } else {
            jump.state = Standing::GivenUp;
            self.fail_lane(now, lane, &failure);
        }
    }

    /// Whether somebody waits for the end of a jump host's back-off.
    pub(super) fn may_need_jump(&self) -> bool {
        matches!(self.course, Course::Running | Course::Halted) && self.progress.waiting > 0
    }

    /// Ends back-offs that are over.
    pub(super) fn expire_jumps(&mut self, now: Instant) {
        while let Some((at, lane)) = self.starts.jump_timers.first()
            && at <= now
        {
            self.starts.jump_timers.remove(lane);
            if let Some(jump) = &mut self.starts.lanes[lane as usize].jump {
                jump.state = Standing::Idle;
            }
            self.refresh_lane(lane);
        }
    }

    /// A host has been logged in to through its jump host: that works, and has all its attempts again.
    pub(super) fn jump_was_of_use(&mut self, index: u32) {
        let lane = self.hosts[index as usize].lane;
        if let Some(jump) = &mut self.starts.lanes[lane as usize].jump {
            jump.attempts = 0;
        }
    }

    /// Whether the host's jump host has been given up.
    pub(super) fn is_cut_off(&self, index: u32) -> bool {
        let lane = self.hosts[index as usize].lane;
        let jump = self.starts.lanes[lane as usize].jump.as_ref();
        jump.is_some_and(|jump| matches!(jump.state, Standing::GivenUp))
    }

    /// Ends all hosts of a lane that are not in flight: nothing of theirs has been sent.
    fn fail_lane(&mut self, now: Instant, lane: u32, failure: &Failure) {
        for index in 0..self.hosts.len() as u32 {
            let host = &self.hosts[index as usize];
            if host.lane != lane {
                continue;
            }
            if matches!(host.state, State::InFlight(_) | State::Ended) {
                continue;
            }
            self.leave_wait(index);
            let outcome = Outcome::Failed {
                failure: failure.clone(),
                fate: Fate::NotSent,
            };
            self.issue(now, index, outcome, PhaseTimes::default());
        }
    }
}
