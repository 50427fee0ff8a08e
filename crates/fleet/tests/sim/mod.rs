//! A seeded world of simulated hosts with a clock of its own: it performs what a fleet asks, in one thread
//! and without a socket, and watches that the fleet keeps its promises at every instant.

mod crowd;
pub(crate) mod jumps;
pub(crate) mod machine;
pub(crate) mod scenario;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use sshoal_fleet::{
    Action, Event, Failure, FailureKind, Fate, Fleet, Gate, HostId, HostResult, Job, JumpId,
    Outcome, Phase,
};

use crowd::Crowd;
use jumps::Jumps;
use machine::{Step, Strike, signal};
use scenario::{Report, Scenario};

/// How far a machine has got with the command, as its own server knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exec {
    NotSent,
    Sent,
    Started,
}

/// A machine's state in the present attempt.
#[derive(Debug)]
struct Course {
    /// Distinguishes the present attempt's steps from those of earlier ones that never came to pass.
    epoch: u32,
    attempts: u32,
    in_flight: bool,
    retry_is_safe: bool,
    exec: Exec,
    /// How often the command may have been carried out.
    executions: u32,
    result: Option<(Duration, HostResult)>,
}

type Entry = Reverse<(Instant, u64, u32, u32, Step)>;

struct World {
    scenario: Scenario,
    fleet: Fleet,
    origin: Instant,
    now: Instant,
    courses: Vec<Course>,
    agenda: BinaryHeap<Entry>,
    entries: u64,
    connecting: Crowd,
    logging_in: Crowd,
    signing: Crowd,
    in_flight: Crowd,
    behind: Vec<Crowd>,
    jumps: Jumps,
    last_start: Option<Instant>,
    starts: u64,
    stopped: bool,
    abandoned: bool,
    most_slow: u32,
    trace: DefaultHasher,
}

impl World {
    fn new(scenario: Scenario) -> World {
        let jobs = scenario
            .machines
            .iter()
            .enumerate()
            .map(|(host, machine)| Job {
                host: HostId(host as u32),
                via: machine.via.map(JumpId),
            });
        let Scenario {
            limits,
            deadlines,
            retry,
            seed,
            strict,
            ..
        } = scenario;
        let fleet = Fleet::new(jobs, limits, deadlines, retry, seed).unwrap();
        let vias = scenario.machines.iter().filter_map(|machine| machine.via);
        let jumps = vias.max().map_or(0, |most| most + 1);
        let behind =
            (0..jumps).map(|_| Crowd::new("logins per jump", limits.logins_per_jump, strict));
        let course = |_| Course {
            epoch: 0,
            attempts: 0,
            in_flight: false,
            retry_is_safe: true,
            exec: Exec::NotSent,
            executions: 0,
            result: None,
        };
        // Any origin will do: the world only ever adds to it.
        let origin = Instant::now();
        World {
            fleet,
            origin,
            now: origin,
            courses: scenario.machines.iter().map(course).collect(),
            agenda: BinaryHeap::new(),
            entries: 0,
            connecting: Crowd::new("connects", limits.connects, strict),
            logging_in: Crowd::new("logins", limits.logins, strict),
            signing: Crowd::new("signatures", limits.signatures, true),
            in_flight: Crowd::new("sessions", limits.sessions, true),
            behind: behind.collect(),
            jumps: Jumps::new(jumps, &scenario.jumps),
            last_start: None,
            starts: 0,
            stopped: false,
            abandoned: false,
            most_slow: 0,
            trace: DefaultHasher::new(),
            scenario,
        }
    }

    fn run(mut self) -> Report {
        loop {
            self.drain();
            if self.fleet.is_done() {
                return self.report();
            }
            let agenda = self.agenda.peek().map(|Reverse(entry)| entry.0);
            let users = [self.scenario.interrupt, self.scenario.abandon];
            let user = users
                .into_iter()
                .flatten()
                .map(|after| self.origin + after)
                .min();
            let next = [agenda, self.jumps.next(), self.fleet.poll_timeout(), user];
            let next = next.into_iter().flatten().min();
            let next = next.unwrap_or_else(|| panic!("stuck: {:?}", self.fleet.progress()));
            self.now = self.now.max(next);
            self.user_acts();
            self.machines_act();
            self.jumps_act();
        }
    }

    /// Performs all actions and takes all results.
    fn drain(&mut self) {
        while let Some(action) = self.fleet.poll_action(self.now) {
            (self.now - self.origin, &action).hash(&mut self.trace);
            self.perform(action);
        }
        while let Some(result) = self.fleet.poll_result() {
            let at = self.now - self.origin;
            (at, &result).hash(&mut self.trace);
            let course = &mut self.courses[result.host.0 as usize];
            assert_eq!(course.attempts, result.attempts);
            let earlier = course.result.replace((at, result));
            assert!(earlier.is_none(), "a second result after {earlier:?}");
        }
        let progress = self.fleet.progress();
        let waiting = progress.waiting + progress.backing_off + progress.held;
        assert_eq!(
            waiting + progress.in_flight() + progress.done,
            progress.total
        );
        self.most_slow = self.most_slow.max(progress.slow);
    }

    fn perform(&mut self, action: Action) {
        let Some(HostId(host)) = action.host() else {
            return self.perform_on_jump(action);
        };
        let course = &mut self.courses[host as usize];
        assert!(
            course.result.is_none() || self.abandoned,
            "{action:?} after the end"
        );
        match action {
            Action::Start { attempt, .. } => self.start(host, attempt),
            Action::Admit { gate, .. } => self.through(host, gate),
            Action::Abort { .. } => self.tear_down(host),
            Action::Interrupt { .. } if course.exec == Exec::NotSent => self.tear_down(host),
            Action::Interrupt { .. } if self.scenario.machines[host as usize].deaf => {}
            Action::Interrupt { .. } => {
                course.epoch += 1;
                self.plan(host, Step::Signalled);
            }
            Action::Connect { .. } | Action::AgreeToBatch { .. } => {}
        }
    }

    /// Something connects: a host or a jump host.
    fn pace(&mut self) {
        assert!(!self.stopped, "a start after the interruption");
        let pace = self.scenario.limits.start_interval;
        assert!(self.last_start.is_none_or(|last| self.now - last >= pace));
        self.last_start = Some(self.now);
    }

    fn start(&mut self, host: u32, attempt: u32) {
        self.pace();
        self.starts += 1;
        let course = &mut self.courses[host as usize];
        assert!(!course.in_flight, "host {host} is started twice at a time");
        assert!(
            course.retry_is_safe,
            "host {host} must not be started again"
        );
        assert_eq!(attempt, course.attempts + 1);
        course.attempts = attempt;
        course.in_flight = true;
        course.exec = Exec::NotSent;
        course.epoch += 1;
        self.in_flight.join(self.now, host);
        self.connecting.join(self.now, host);
        let machine = &self.scenario.machines[host as usize];
        if let Some(jump) = machine.via {
            assert!(self.jumps.is_up(jump), "host {host} before its jump host");
            self.behind[jump as usize].join(self.now, host);
        }
        if machine.warm {
            self.approach(host, Gate::Session);
        } else {
            self.plan(host, Step::LookedUp);
        }
    }

    fn tear_down(&mut self, host: u32) {
        self.courses[host as usize].epoch += 1;
        self.leave_handshake(host);
        self.plan(host, Step::TornDown);
    }

    /// The next step comes after the time that the machine takes for it.
    fn plan(&mut self, host: u32, step: Step) {
        let at = self.now + self.scenario.machines[host as usize].takes(step);
        let epoch = self.courses[host as usize].epoch;
        self.entries += 1;
        self.agenda
            .push(Reverse((at, self.entries, host, epoch, step)));
    }

    fn user_acts(&mut self) {
        let elapsed = self.now - self.origin;
        if self
            .scenario
            .interrupt
            .take_if(|at| *at <= elapsed)
            .is_some()
        {
            self.stopped = true;
            self.fleet.interrupt(self.now);
        }
        if self.scenario.abandon.take_if(|at| *at <= elapsed).is_some() {
            self.stopped = true;
            self.abandoned = true;
            self.fleet.abandon(self.now);
        }
    }

    fn machines_act(&mut self) {
        while let Some(Reverse((at, _, host, epoch, step))) = self.agenda.peek().copied()
            && at <= self.now
        {
            self.agenda.pop();
            if self.courses[host as usize].epoch == epoch {
                self.occur(host, step);
            }
        }
    }

    fn occur(&mut self, host: u32, step: Step) {
        let machine = &self.scenario.machines[host as usize];
        let trouble = machine.trouble;
        let agent = machine.agent;
        let attempts = self.courses[host as usize].attempts;
        match trouble.strikes(attempts) {
            Some((at, Strike::Silence)) if at == step => return,
            Some((at, Strike::Fails(kind, fate))) if at == step => {
                return self.fail(host, Failure::new(kind, "simulated"), fate);
            }
            _ => {}
        }
        match step {
            Step::LookedUp => {
                self.tell(host, Event::Entered(Phase::Connect));
                self.plan(host, Step::Connected);
            }
            Step::Connected => self.approach(host, Gate::Login),
            Step::KeysExchanged => {
                self.tell(host, Event::KeysExchanged);
                let gate = if agent {
                    Gate::Signature
                } else {
                    Gate::Session
                };
                self.approach(host, gate);
            }
            Step::Signed => {
                self.signing.leave(host);
                self.tell(host, Event::Left(Gate::Signature));
                self.approach(host, Gate::Session);
            }
            Step::Authenticated => {
                self.leave_handshake(host);
                self.tell(host, Event::Entered(Phase::Session));
                self.plan(host, Step::CommandStarted);
            }
            Step::CommandStarted => {
                self.courses[host as usize].exec = Exec::Started;
                self.tell(host, Event::Entered(Phase::Command));
                self.plan(host, Step::CommandEnded);
            }
            Step::CommandEnded => self.finish(host, trouble.command_ends()),
            Step::Signalled => self.finish(host, signal("INT")),
            Step::TornDown => {
                let fate = match self.courses[host as usize].exec {
                    Exec::NotSent => Fate::NotSent,
                    Exec::Sent => Fate::MayHaveRun,
                    Exec::Started => Fate::Ran,
                };
                self.fail(host, Failure::new(FailureKind::Lost, "torn down"), fate);
            }
        }
    }

    fn tell(&mut self, host: u32, event: Event) {
        self.fleet.handle(self.now, HostId(host), event).unwrap();
    }

    fn approach(&mut self, host: u32, gate: Gate) {
        if self.scenario.machines[host as usize].queues {
            self.tell(host, Event::Reached(gate));
        } else if self.fleet.try_pass(self.now, HostId(host), gate).unwrap() {
            self.through(host, gate);
        }
    }

    fn through(&mut self, host: u32, gate: Gate) {
        match gate {
            Gate::Login => {
                self.connecting.leave(host);
                self.logging_in.join(self.now, host);
                self.tell(host, Event::Entered(Phase::Login));
                self.plan(host, Step::KeysExchanged);
            }
            Gate::Signature => {
                self.signing.join(self.now, host);
                self.plan(host, Step::Signed);
            }
            Gate::Session => {
                assert!(
                    !self.stopped,
                    "host {host} is sent its command after the interruption"
                );
                let course = &mut self.courses[host as usize];
                course.exec = Exec::Sent;
                course.executions += 1;
                assert_eq!(
                    course.executions, 1,
                    "host {host} is sent its command twice"
                );
                match self.scenario.machines[host as usize].warm {
                    true => self.occur(host, Step::Authenticated),
                    false => self.plan(host, Step::Authenticated),
                }
            }
        }
    }

    fn fail(&mut self, host: u32, failure: Failure, fate: Fate) {
        if fate.is_proven_not_run() {
            self.courses[host as usize].executions = 0;
        }
        let safe_to_retry = fate.is_proven_not_run();
        self.leave_everything(host, safe_to_retry);
        self.tell(
            host,
            Event::Failed {
                failure,
                safe_to_retry,
                fate,
            },
        );
    }

    fn finish(&mut self, host: u32, outcome: Outcome) {
        self.leave_everything(host, false);
        self.tell(host, Event::Finished(outcome));
    }

    fn leave_handshake(&mut self, host: u32) {
        self.signing.leave(host);
        self.connecting.leave(host);
        self.logging_in.leave(host);
        if let Some(jump) = self.scenario.machines[host as usize].via {
            self.behind[jump as usize].leave(host);
        }
    }

    fn leave_everything(&mut self, host: u32, retry_is_safe: bool) {
        self.leave_handshake(host);
        self.in_flight.leave(host);
        let course = &mut self.courses[host as usize];
        course.epoch += 1;
        course.in_flight = false;
        course.retry_is_safe = retry_is_safe;
    }

    fn report(self) -> Report {
        assert_eq!(self.fleet.poll_timeout(), None, "a timer outlives the run");
        let hosts = self.courses.into_iter();
        Report {
            hosts: hosts
                .map(|course| course.result.expect("a host without a result"))
                .collect(),
            trace: self.trace.finish(),
            starts: self.starts,
            jumps: self.jumps.attempts(),
            most: [
                &self.connecting,
                &self.logging_in,
                &self.signing,
                &self.in_flight,
            ]
            .map(|crowd| crowd.most),
            most_slow: self.most_slow,
            end: self.now - self.origin,
        }
    }
}
