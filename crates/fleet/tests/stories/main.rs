//! Single promises of the fleet, each told as a short story with a clock that is moved by hand.

#![allow(clippy::unwrap_used)]

mod batches;
mod endings;
mod holds;
mod interruption;
mod jumps;
mod limits;
mod misuse;

use std::time::{Duration, Instant};

use sshoal_fleet::{
    Action, Deadlines, Event, EventError, Failure, FailureKind, Fate, Fleet, Gate, HostId,
    HostResult, Job, Limits, Outcome, Phase, RetryPolicy,
};

const SECOND: Duration = Duration::from_secs(1);

/// A fleet, its clock, and what it has said.
struct Story {
    fleet: Fleet,
    now: Instant,
}

fn direct(host: u32) -> Job {
    Job {
        host: HostId(host),
        via: None,
    }
}

fn story(hosts: u32, limits: Limits) -> Story {
    let deadlines = Deadlines {
        command: Some(30 * SECOND),
        ..Deadlines::default()
    };
    let jobs = (0..hosts).map(direct);
    Story {
        fleet: Fleet::new(jobs, limits, deadlines, RetryPolicy::default(), 1).unwrap(),
        now: Instant::now(),
    }
}

impl Story {
    fn actions(&mut self) -> Vec<Action> {
        std::iter::from_fn(|| self.fleet.poll_action(self.now)).collect()
    }

    /// The hosts that are told to start now, when nothing else is said.
    fn started(&mut self) -> Vec<u32> {
        let host = |action| match action {
            Action::Start { host, .. } => host.0,
            other => panic!("{other:?} instead of a start"),
        };
        self.actions().into_iter().map(host).collect()
    }

    fn results(&mut self) -> Vec<HostResult> {
        std::iter::from_fn(|| self.fleet.poll_result()).collect()
    }

    /// The only result there is.
    fn outcome(&mut self) -> Outcome {
        let results = self.results();
        assert_eq!(results.len(), 1, "{results:?}");
        results.into_iter().next().unwrap().outcome
    }

    fn event(&mut self, host: u32, event: Event) -> Result<(), EventError> {
        self.fleet.handle(self.now, HostId(host), event)
    }

    fn tell(&mut self, host: u32, event: Event) {
        self.event(host, event).unwrap();
    }

    fn pass(&mut self, host: u32, gate: Gate) -> bool {
        self.fleet.try_pass(self.now, HostId(host), gate).unwrap()
    }

    /// Brings a started host into a phase, through the gates on the way.
    fn bring(&mut self, host: u32, phase: Phase) {
        self.tell(host, Event::Entered(Phase::Connect));
        if phase >= Phase::Login {
            assert!(self.pass(host, Gate::Login));
            self.tell(host, Event::Entered(Phase::Login));
        }
        if phase >= Phase::Session {
            assert!(self.pass(host, Gate::Session));
            self.tell(host, Event::Entered(Phase::Session));
        }
        self.tell(host, Event::Entered(phase));
    }

    fn fail(&mut self, host: u32, kind: FailureKind, safe_to_retry: bool, fate: Fate) {
        let failure = Failure::new(kind, "as the story wants");
        self.tell(
            host,
            Event::Failed {
                failure,
                safe_to_retry,
                fate,
            },
        );
    }
}

fn one_at_a_time() -> Limits {
    Limits {
        sessions: 1,
        ..Limits::default()
    }
}

fn kind_of_abort(actions: &[Action]) -> FailureKind {
    match actions {
        [Action::Abort { failure, .. }] => failure.kind,
        other => panic!("{other:?} instead of one abort"),
    }
}
