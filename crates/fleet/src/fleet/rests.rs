//! Places among the sessions that rest between two hosts (`Limits::place_rest`).

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::Limits;

/// Which places may be used when. Remembers nothing where places do not rest.
#[derive(Debug)]
pub(super) struct Rests {
    rest: Duration,
    /// Places that no host has used yet.
    unused: u32,
    /// From when the next of them may be.
    next_unused: Option<Instant>,
    /// From when those may be used again that hosts have left: earliest first, since all rest equally long.
    left: VecDeque<Instant>,
}

impl Rests {
    pub(super) fn new(limits: &Limits) -> Rests {
        Rests {
            rest: limits.place_rest,
            unused: limits.sessions,
            next_unused: None,
            left: VecDeque::new(),
        }
    }

    /// Until when all free places rest, if they ever did. Meaningful while one is free.
    pub(super) fn until(&self) -> Option<Instant> {
        let left = self.left.front().copied();
        match (left, self.unused) {
            (_, 0) => left,
            (None, _) => self.next_unused,
            // None: the very first may be used at once.
            (Some(left), _) => self.next_unused.map(|unused| unused.min(left)),
        }
    }

    /// A host takes the place that has rested longest.
    pub(super) fn end(&mut self, now: Instant) {
        if self.rest.is_zero() {
            return;
        }
        match self.left.front() {
            Some(at) if *at <= now || self.unused == 0 => {
                self.left.pop_front();
            }
            _ => {
                self.unused = self.unused.saturating_sub(1);
                self.next_unused = now.checked_add(self.rest);
            }
        }
    }

    /// A host has left its place.
    pub(super) fn begin(&mut self, now: Instant) {
        if !self.rest.is_zero() {
            self.left
                .push_back(now.checked_add(self.rest).unwrap_or(now));
        }
    }
}
