//! Hosts whose user is to be asked before they go on, and those that wait until they are needed: they hold nothing meanwhile,
//! and no clock of theirs runs.

use std::time::Instant;

use super::{Course, Fleet};
use crate::host::State;
use crate::{EventError, Failure, Fate, HostId, Outcome, PhaseTimes};

impl Fleet {
    /// [`Event::Held`](crate::Event::Held). The attempt counts for none: it has only found out what to ask.
    pub(super) fn hold(&mut self, now: Instant, index: u32, slot: u32) {
        if let Some(ending) = &self.flight(slot).ending {
            let outcome = ending.outcome(Fate::NotSent);
            return self.end(now, index, slot, outcome);
        }
        self.set_aside(now, index, slot);
    }

    /// [`Event::Parked`](crate::Event::Parked). Only what the user wants goes before it.
    pub(super) fn park(&mut self, now: Instant, index: u32, slot: u32) {
        match &self.flight(slot).ending {
            Some(ending) if ending.interrupted => {
                let outcome = ending.outcome(Fate::NotSent);
                self.end(now, index, slot, outcome);
            }
            _ => self.set_aside(now, index, slot),
        }
    }

    fn set_aside(&mut self, now: Instant, index: u32, slot: u32) {
        if self.course != Course::Running {
            return self.end(now, index, slot, Outcome::NotStarted);
        }
        self.land(now, index, slot);
        let host = &mut self.hosts[index as usize];
        host.state = State::Held;
        host.attempts -= 1;
        self.progress.held += 1;
    }

    /// The user has let a held host go on: it waits for a new start. Does nothing if the host is not held any more.
    ///
    /// # Errors
    ///
    /// [`EventError::UnknownHost`].
    pub fn resume(&mut self, host: HostId) -> Result<(), EventError> {
        if let Some(index) = self.held(host)? {
            self.progress.held -= 1;
            self.requeue(index);
        }
        Ok(())
    }

    /// A held host ends with this failure. Does nothing if the host is not held any more.
    ///
    /// # Errors
    ///
    /// [`EventError::UnknownHost`].
    pub fn give_up(
        &mut self,
        now: Instant,
        host: HostId,
        failure: Failure,
    ) -> Result<(), EventError> {
        if let Some(index) = self.held(host)? {
            self.progress.held -= 1;
            let outcome = Outcome::Failed {
                failure,
                fate: Fate::NotSent,
            };
            self.hosts[index as usize].attempts += 1;
            self.issue(now, index, outcome, PhaseTimes::default());
        }
        Ok(())
    }

    fn held(&self, id: HostId) -> Result<Option<u32>, EventError> {
        let index = self.index_of(id)?;
        let is_held = self.hosts[index as usize].state == State::Held;
        Ok(is_held.then_some(index))
    }
}
