//! A run in batches: the next one begins once all hosts of the one before have ended and the performer agrees. After too many
//! failures nothing is begun any more.

use std::collections::VecDeque;
use std::time::Instant;

use super::{Course, Fleet};
use crate::host::State;
use crate::{Action, Rolling};

/// The batches of a run.
#[derive(Debug)]
pub(super) struct Batches {
    /// Hosts of batches that have not begun, in the order of the jobs.
    later: VecDeque<Vec<u32>>,
    /// Hosts of the present batch that have not ended.
    open: u32,
    /// Batches that have begun.
    begun: u32,
    /// Whether one failure in the present batch is one too many.
    is_canary: bool,
    max_failures: Option<u32>,
    /// Whether the performer has been asked for the next batch.
    is_asked: bool,
}

impl Batches {
    /// One batch of all hosts.
    pub(super) fn one(hosts: u32) -> Batches {
        Batches {
            later: VecDeque::new(),
            open: hosts,
            begun: 1,
            is_canary: false,
            max_failures: None,
            is_asked: false,
        }
    }
}

impl Fleet {
    /// The same run in batches. To be called before anything else is.
    #[must_use]
    pub fn rolling(mut self, rolling: &Rolling) -> Fleet {
        let mut order: Vec<u32> = (0..self.hosts.len() as u32).collect();
        order.sort_unstable_by_key(|&index| self.hosts[index as usize].ticket);
        let canaries = (rolling.canaries as usize).min(order.len());
        let (canaries, others) = order.split_at(canaries);
        let size = rolling.batch.map_or(usize::MAX, |size| size.get() as usize);
        let batches = [canaries].into_iter().chain(others.chunks(size));
        let mut batches = batches.filter(|batch| !batch.is_empty());
        let first = batches.next().map_or(0, <[u32]>::len);
        self.batches = Batches {
            later: batches.map(<[u32]>::to_vec).collect(),
            is_canary: !canaries.is_empty(),
            max_failures: rolling.max_failures,
            ..Batches::one(first as u32)
        };
        for index in order.split_off(first) {
            self.leave_lane(index);
            self.hosts[index as usize].state = State::Later;
        }
        self
    }

    /// Asks the performer for the next batch, once, when its turn has come.
    pub(super) fn ask_for_batch(&mut self) -> Option<Action> {
        let batches = &mut self.batches;
        let is_due = self.course == Course::Running && batches.open == 0 && !batches.is_asked;
        if !is_due {
            return None;
        }
        // Those behind a jump host that was given up have failed already.
        while let Some(next) = batches.later.front_mut() {
            next.retain(|&index| self.hosts[index as usize].state == State::Later);
            if !next.is_empty() {
                break;
            }
            batches.later.pop_front();
        }
        batches.later.front()?;
        batches.is_asked = true;
        Some(Action::AgreeToBatch {
            ended: batches.begun,
        })
    }

    /// The answer to [`Action::AgreeToBatch`]: the next batch begins. Does nothing unasked.
    pub fn begin_batch(&mut self) {
        if !std::mem::take(&mut self.batches.is_asked) {
            return;
        }
        let mut batch = self.batches.later.pop_front().unwrap_or_default();
        // Meanwhile, too.
        batch.retain(|&index| self.hosts[index as usize].state == State::Later);
        self.batches.open = batch.len() as u32;
        self.batches.begun += 1;
        self.batches.is_canary = false;
        for index in batch {
            let host = &mut self.hosts[index as usize];
            host.state = State::Waiting;
            let lane = host.lane;
            let line = &mut self.starts.lanes[lane as usize].places.line;
            self.links.join(line, index);
            self.refresh_lane(lane);
        }
    }

    /// Begins nothing any more: not a host, not a command of one that is logging in. What may run already runs to its end.
    pub fn halt(&mut self, now: Instant) {
        if self.course != Course::Running {
            return;
        }
        self.course = Course::Halted;
        for index in 0..self.hosts.len() as u32 {
            // Its command runs, and is being reached again.
            if self.cuts.get(&index).is_some_and(|cut| cut.until.is_some()) {
                continue;
            }
            match self.hosts[index as usize].state {
                State::Waiting | State::BackingOff | State::Held | State::Later => {
                    self.cancel(now, index);
                }
                State::InFlight(slot) => {
                    let flight = self.flight(slot);
                    if !flight.passed_session && flight.ending.is_none() {
                        self.tear_down(now, index, slot, super::interruption::interruption(), true);
                    }
                }
                State::Ended => {}
            }
        }
    }

    /// Whether nothing is begun any more because too many hosts have failed, or the performer has halted the run.
    pub fn is_halted(&self) -> bool {
        self.course == Course::Halted
    }

    /// A host that was in a batch that has begun, or not, has ended.
    pub(super) fn count_in_batch(&mut self, now: Instant, had_begun: bool, failed: bool) {
        self.batches.open -= u32::from(had_begun);
        let most = self.batches.max_failures;
        let too_many = most.is_some_and(|most| self.progress.failed > most);
        if failed && (too_many || self.batches.is_canary && had_begun) {
            self.halt(now);
        }
    }
}
