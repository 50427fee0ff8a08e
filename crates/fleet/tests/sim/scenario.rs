//! What a simulated run is made of, and what came of it.

use std::time::Duration;

use sshoal_fleet::{Deadlines, HostResult, Limits, RetryPolicy};

use super::World;
use super::jumps::JumpHost;
use super::machine::Machine;

/// What a run is made of.
#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    pub(crate) machines: Vec<Machine>,
    /// By the numbers that `Machine::via` gives; those left out are healthy.
    pub(crate) jumps: Vec<JumpHost>,
    pub(crate) limits: Limits,
    pub(crate) deadlines: Deadlines,
    pub(crate) retry: RetryPolicy,
    pub(crate) seed: u64,
    /// When the user interrupts, after the beginning.
    pub(crate) interrupt: Option<Duration>,
    /// When the user interrupts again.
    pub(crate) abandon: Option<Duration>,
    /// Whether slow hosts too must count against the limits: only where no host is slow.
    pub(crate) strict: bool,
}

impl Scenario {
    pub(crate) fn new(machines: Vec<Machine>) -> Scenario {
        Scenario {
            machines,
            jumps: Vec::new(),
            limits: Limits::default(),
            deadlines: Deadlines {
                command: Some(Duration::from_secs(20)),
                ..Deadlines::default()
            },
            retry: RetryPolicy::default(),
            seed: 1,
            interrupt: None,
            abandon: None,
            strict: false,
        }
    }

    /// Runs to the end.
    pub(crate) fn run(self) -> Report {
        World::new(self).run()
    }
}

/// What came of a run.
#[derive(Debug)]
pub(crate) struct Report {
    /// For each host, when its result came, and the result.
    pub(crate) hosts: Vec<(Duration, HostResult)>,
    /// A digest of all actions and results with their times.
    pub(crate) trace: u64,
    pub(crate) starts: u64,
    /// For each jump host, how often it was connected or tried to be.
    pub(crate) jumps: Vec<u32>,
    /// The most hosts that were connecting, logging in, signing and in flight at a time.
    pub(crate) most: [usize; 4],
    /// The most hosts that counted as slow at a time.
    pub(crate) most_slow: u32,
    pub(crate) end: Duration,
}
