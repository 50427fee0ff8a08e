//! The cheapest performer there is: keeps a number of healthy hosts in flight and moves each on by a step in
//! turn. What time and memory it takes is the fleet's own.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use sshoal_fleet::{Action, Event, Fleet, Gate, HostId, Outcome, Phase};

/// How long each step takes.
const STEP: Duration = Duration::from_micros(20);

/// A fleet and its hosts in flight, the next to move in front.
pub(crate) struct Conveyor {
    pub(crate) fleet: Fleet,
    pub(crate) now: Instant,
    in_flight: VecDeque<(HostId, Phase)>,
}

impl Conveyor {
    pub(crate) fn new(fleet: Fleet, width: usize) -> Conveyor {
        Conveyor {
            fleet,
            // Any origin will do: only differences count.
            now: Instant::now(),
            in_flight: VecDeque::with_capacity(width),
        }
    }

    /// Runs until this many hosts have ended.
    pub(crate) fn run_until(&mut self, done: u32) {
        while self.fleet.progress().done < done {
            while let Some(action) = self.fleet.poll_action(self.now) {
                match action {
                    Action::Start { host, .. } => self.in_flight.push_back((host, Phase::Lookup)),
                    other => unreachable!("nobody waits, is late or is interrupted: {other:?}"),
                }
            }
            self.now += STEP;
            if let Some((host, phase)) = self.in_flight.pop_front() {
                self.step(host, phase);
            }
            while let Some(result) = self.fleet.poll_result() {
                assert!(result.outcome.is_success());
            }
        }
    }

    fn step(&mut self, host: HostId, phase: Phase) {
        let next = match phase {
            Phase::Lookup => Phase::Connect,
            Phase::Connect => {
                self.pass(host, Gate::Login);
                Phase::Login
            }
            Phase::Login => {
                self.tell(host, Event::KeysExchanged);
                self.pass(host, Gate::Signature);
                self.tell(host, Event::Left(Gate::Signature));
                self.pass(host, Gate::Session);
                Phase::Session
            }
            Phase::Session => Phase::Command,
            Phase::Command => return self.tell(host, Event::Finished(Outcome::Exit(0))),
        };
        self.tell(host, Event::Entered(next));
        self.in_flight.push_back((host, next));
    }

    fn pass(&mut self, host: HostId, gate: Gate) {
        assert_eq!(self.fleet.try_pass(self.now, host, gate), Ok(true));
    }

    fn tell(&mut self, host: HostId, event: Event) {
        assert_eq!(self.fleet.handle(self.now, host, event), Ok(()));
    }
}
