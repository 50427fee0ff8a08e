//! How hosts end: failures and retries, deadlines missed, results.

use std::time::{Duration, Instant};

use super::{Course, Cut, Fleet};
use crate::host::{Ending, State};
use crate::{Action, Failure, FailureKind, Fate, HostResult, Outcome, PhaseTimes};

/// How long an [`Action::Abort`] may stay unanswered before the result is issued without an answer. Tearing
/// a connection down waits for nobody: this only keeps a defect elsewhere from stalling a run.
const ANSWER_TIME: Duration = Duration::from_secs(5);

impl Fleet {
    /// [`Event::Failed`](crate::Event::Failed) or [`Event::Stranded`](crate::Event::Stranded): an attempt's own
    /// failure, after which `allowed` attempts may have been made in all, or the answer to an abort.
    pub(super) fn fail(
        &mut self,
        now: Instant,
        index: u32,
        slot: u32,
        failure: Failure,
        fate: Fate,
        allowed: u32,
    ) {
        if self.is_survived(now, index, slot, &failure) {
            let attempts = self.hosts[index as usize].attempts;
            return self.wait_for_retry(now, index, slot, attempts);
        }
        if let Some(ending) = &self.flight(slot).ending {
            let outcome = ending.outcome(fate);
            return self.end(now, index, slot, outcome);
        }
        let attempts = self.hosts[index as usize].attempts;
        let again = attempts < allowed && !self.is_cut_off(index);
        if again && fate.is_proven_not_run() && self.course == Course::Running {
            return self.wait_for_retry(now, index, slot, attempts);
        }
        let interrupted = self.flight(slot).grace.is_some();
        let outcome = if interrupted && fate.is_proven_not_run() {
            Outcome::NotStarted
        } else {
            failed(failure, fate)
        };
        self.end(now, index, slot, outcome);
    }

    /// Whether a host that was cut off has not been reached again, and may yet be.
    fn is_survived(&mut self, now: Instant, index: u32, slot: u32, failure: &Failure) -> bool {
        let until = self.cuts.get(&index).and_then(|cut| cut.until);
        if until.is_none_or(|until| now >= until) || self.is_cut_off(index) {
            return false;
        }
        let goes_on = matches!(self.course, Course::Running | Course::Halted);
        let flight = self.flight(slot);
        let kind = match &flight.ending {
            Some(ending) if ending.interrupted => return false,
            Some(ending) => ending.failure.kind,
            None => failure.kind,
        };
        goes_on && flight.grace.is_none() && kind.is_of_the_way()
    }

    /// [`Event::Cut`](crate::Event::Cut): once in a run a host is tried again after it, or for as long as that is to be survived.
    pub(super) fn cut(&mut self, now: Instant, index: u32, slot: u32, cut: Cut) {
        let flight = self.flight(slot);
        let is_wanted = flight.ending.is_none() && flight.grace.is_none();
        let may_again = is_wanted
            && match cut.until {
                Some(_) => matches!(self.course, Course::Running | Course::Halted),
                None => {
                    self.course == Course::Running
                        && self.back_off.policy.attempts > 1
                        && !self.cuts.contains_key(&index)
                }
            }
            && !self.is_cut_off(index);
        if !may_again {
            return self.fail(now, index, slot, cut.failure, cut.fate, 1);
        }
        self.cuts.insert(index, cut);
        let attempts = self.hosts[index as usize].attempts;
        self.wait_for_retry(now, index, slot, attempts);
    }

    /// [`Event::Finished`](crate::Event::Finished). It counts even if an abort was on its way.
    pub(super) fn finish(&mut self, now: Instant, index: u32, slot: u32, outcome: Outcome) {
        let outcome = match outcome {
            Outcome::Failed { failure, fate } => failed(failure, fate),
            other => other,
        };
        self.end(now, index, slot, outcome);
    }

    /// Has the performer tear the host down, because a deadline passed.
    pub(super) fn abort(&mut self, now: Instant, index: u32, slot: u32, failure: Failure) {
        self.tear_down(now, index, slot, failure, false);
    }

    /// Nobody has answered an abort.
    pub(super) fn end_unanswered(&mut self, now: Instant, index: u32, slot: u32) {
        let flight = self.flight(slot);
        let fate = flight.concluded_fate();
        if let Some(outcome) = flight.ending.as_ref().map(|ending| ending.outcome(fate)) {
            self.end(now, index, slot, outcome);
        }
    }

    pub(super) fn tear_down(
        &mut self,
        now: Instant,
        index: u32,
        slot: u32,
        failure: Failure,
        interrupted: bool,
    ) {
        let flight = self.flight(slot);
        flight.settle(now);
        flight.record_phase();
        let phase = flight.phase;
        *self.progress.in_phase(phase) -= 1;
        self.progress.ending += 1;
        self.leave_line(index, slot);
        self.end_handshake(index, slot);
        let host = self.id(index);
        // An interrupted command has had its time, and one that was not begun needs none.
        let kill = match failure.kind {
            FailureKind::CommandTimeout => self.deadlines.kill,
            _ => Duration::ZERO,
        };
        self.orders.push_back(Action::Abort {
            host,
            failure: failure.clone(),
        });
        self.flight(slot).ending = Some(Ending {
            failure,
            interrupted,
            answer_by: now.checked_add(ANSWER_TIME + kill).unwrap_or(now),
        });
        self.set_timer(index, slot);
    }

    fn wait_for_retry(&mut self, now: Instant, index: u32, slot: u32, attempt: u32) {
        self.land(now, index, slot);
        let host = &mut self.hosts[index as usize];
        host.state = State::BackingOff;
        let delay = self.back_off.delay(host.id, attempt);
        self.progress.backing_off += 1;
        self.timers
            .set(index, now.checked_add(delay).unwrap_or(now));
    }

    pub(super) fn end(&mut self, now: Instant, index: u32, slot: u32, outcome: Outcome) {
        let times = self.land(now, index, slot);
        self.issue(now, index, outcome, times);
    }

    /// Takes back everything that a flight holds, and frees its slot.
    pub(super) fn land(&mut self, now: Instant, index: u32, slot: u32) -> PhaseTimes {
        self.flight(slot).settle(now);
        self.leave_line(index, slot);
        self.end_handshake(index, slot);
        self.timers.remove(index);
        let flight = self.flight(slot);
        let phase = flight.phase;
        let aborted = flight.ending.take().is_some();
        if !aborted {
            flight.record_phase();
        }
        let times = std::mem::take(&mut flight.times);
        *match aborted {
            true => &mut self.progress.ending,
            false => self.progress.in_phase(phase),
        } -= 1;
        self.flights.free(slot);
        self.starts.free_session(now);
        times
    }

    /// Issues the result of a host that is not in flight any more.
    pub(super) fn issue(
        &mut self,
        now: Instant,
        index: u32,
        outcome: Outcome,
        mut times: PhaseTimes,
    ) {
        let outcome = match self.cuts.remove(&index) {
            Some(cut) => cut.then(outcome),
            None => outcome,
        };
        let host = &mut self.hosts[index as usize];
        let had_begun = std::mem::replace(&mut host.state, State::Ended) != State::Later;
        times.total = host
            .first_start
            .map(|start| now.saturating_duration_since(start));
        self.progress.done += 1;
        let failed = outcome.failure_kind().is_some();
        self.progress.failed += u32::from(failed);
        self.progress.not_started += u32::from(outcome == Outcome::NotStarted);
        self.results.push_back(HostResult {
            host: host.id,
            outcome,
            attempts: host.attempts,
            times,
        });
        self.count_in_batch(now, had_begun, failed);
    }

    /// The next order that still has somebody to obey it.
    pub(super) fn next_order(&mut self) -> Option<Action> {
        loop {
            let order = self.orders.pop_front()?;
            let obeyed = order
                .host()
                .is_some_and(|host| matches!(self.find(host), Ok(Some(_))));
            if obeyed || self.course == Course::Abandoned {
                return Some(order);
            }
        }
    }
}

impl Ending {
    /// The result, once the command's fate is known.
    pub(super) fn outcome(&self, fate: Fate) -> Outcome {
        if self.interrupted && fate.is_proven_not_run() {
            Outcome::NotStarted
        } else {
            failed(self.failure.clone(), fate)
        }
    }
}

impl Cut {
    /// What is to be said of the host in the end: how it was cut off, if it has not come so far again.
    fn then(mut self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Failed { failure, fate } if fate.is_proven_not_run() => {
                let again = format!("; logging in again: {failure}");
                self.failure.detail.push_str(&again);
            }
            Outcome::NotStarted => {}
            other => return other,
        }
        let Cut { failure, fate, .. } = self;
        failed(failure, fate)
    }
}

/// Keeps the promise of [`FailureKind::command_may_have_run`].
fn failed(failure: Failure, fate: Fate) -> Outcome {
    let failure = if fate.is_proven_not_run() || failure.kind.command_may_have_run() {
        failure
    } else {
        Failure::new(FailureKind::Lost, failure.to_string())
    };
    Outcome::Failed { failure, fate }
}

#[cfg(test)]
#[path = "endings_tests.rs"]
mod tests;
