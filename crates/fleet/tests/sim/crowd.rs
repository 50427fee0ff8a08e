//! Counts who is doing what, independently of the fleet, and holds it to the limits.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A host may be counted as slow, and not against the limits, from this age on. The fleet's own least
/// patience, written down a second time.
const MAY_BE_SLOW: Duration = Duration::from_millis(100);

/// The hosts that a limit is about.
#[derive(Debug)]
pub(crate) struct Crowd {
    name: &'static str,
    limit: usize,
    /// Whether slow hosts count too.
    strict: bool,
    since: BTreeMap<u32, Instant>,
    /// The most there ever were.
    pub(crate) most: usize,
}

impl Crowd {
    pub(crate) fn new(name: &'static str, limit: u32, strict: bool) -> Crowd {
        Crowd {
            name,
            limit: limit as usize,
            strict,
            since: BTreeMap::new(),
            most: 0,
        }
    }

    /// A host joins. Panics if that is one too many.
    pub(crate) fn join(&mut self, now: Instant, host: u32) {
        let twice = self.since.insert(host, now);
        assert_eq!(
            twice, None,
            "host {host} takes a second place of {}",
            self.name
        );
        self.most = self.most.max(self.since.len());
        if self.since.len() > self.limit {
            let quick = |since: &&Instant| self.strict || now - **since < MAY_BE_SLOW;
            let quick = self.since.values().filter(quick).count();
            assert!(
                quick <= self.limit,
                "{quick} hosts exceed the limit of {} on {}",
                self.limit,
                self.name
            );
        }
    }

    /// A host leaves, if it is there.
    pub(crate) fn leave(&mut self, host: u32) {
        self.since.remove(&host);
    }
}
