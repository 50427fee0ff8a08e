//! Simulated jump hosts: how long their logins take, how often they refuse, when they are lost.

use std::time::{Duration, Instant};

use sshoal_fleet::{Action, Event, Failure, FailureKind, Fate, HostId, JumpEvent, JumpId};

use super::{Exec, World};

/// What a jump host is like.
#[derive(Debug, Clone)]
pub(crate) struct JumpHost {
    /// From the order to connect to its end, good or bad.
    pub(crate) login: Duration,
    /// How many attempts fail before one succeeds, and how.
    pub(crate) fails: (u32, FailureKind),
    /// When connections are lost, after the beginning of the run.
    pub(crate) losses: Vec<Duration>,
}

impl Default for JumpHost {
    fn default() -> JumpHost {
        JumpHost {
            login: Duration::from_millis(40),
            fails: (0, FailureKind::Throttled),
            losses: Vec::new(),
        }
    }
}

/// All jump hosts of a world, by their numbers.
pub(super) struct Jumps(Vec<Course>);

#[derive(Debug, Default)]
struct Course {
    host: JumpHost,
    attempts: u32,
    up: bool,
    /// When the present attempt is over.
    answers: Option<Instant>,
    /// The next loss.
    lost: Option<Instant>,
}

impl Jumps {
    pub(super) fn new(count: u32, hosts: &[JumpHost]) -> Jumps {
        let course = |number: u32| Course {
            host: hosts.get(number as usize).cloned().unwrap_or_default(),
            ..Course::default()
        };
        Jumps((0..count).map(course).collect())
    }

    pub(super) fn is_up(&self, jump: u32) -> bool {
        self.0[jump as usize].up
    }

    pub(super) fn attempts(&self) -> Vec<u32> {
        self.0.iter().map(|course| course.attempts).collect()
    }

    /// When something happens to a jump host.
    pub(super) fn next(&self) -> Option<Instant> {
        let times = |course: &Course| [course.answers, course.lost];
        self.0.iter().flat_map(times).flatten().min()
    }
}

impl World {
    pub(super) fn perform_on_jump(&mut self, action: Action) {
        let Action::Connect { jump, .. } = action else {
            panic!("{action:?} is about no host");
        };
        self.pace();
        let course = &mut self.jumps.0[jump.0 as usize];
        assert!(!course.up && course.answers.is_none(), "{jump:?} twice");
        course.attempts += 1;
        course.answers = Some(self.now + course.host.login);
    }

    pub(super) fn jumps_act(&mut self) {
        for number in 0..self.jumps.0.len() {
            let now = self.now;
            let origin = self.origin;
            let jump = JumpId(number as u32);
            let course = &mut self.jumps.0[number];
            if course.answers.take_if(|at| *at <= now).is_some() {
                let (failing, kind) = course.host.fails;
                if course.attempts <= failing {
                    let failure = Failure::new(kind, "the simulated jump host fails");
                    self.fleet.handle_jump(now, jump, JumpEvent::Down(failure));
                    continue;
                }
                course.up = true;
                let losses = course.host.losses.iter().map(|after| origin + *after);
                course.lost = losses.filter(|at| *at > now).min();
                self.fleet.handle_jump(now, jump, JumpEvent::Up);
            } else if course.lost.take_if(|at| *at <= now).is_some() {
                course.up = false;
                self.lose(jump);
            }
        }
    }

    /// The jump host's connection ends, and everything behind it.
    fn lose(&mut self, jump: JumpId) {
        let failure = Failure::new(FailureKind::Unreachable, "the simulated jump host is lost");
        self.fleet
            .handle_jump(self.now, jump, JumpEvent::Down(failure.clone()));
        for host in 0..self.courses.len() as u32 {
            let behind = self.scenario.machines[host as usize].via == Some(jump.0);
            if !behind || !self.courses[host as usize].in_flight {
                continue;
            }
            let fate = match self.courses[host as usize].exec {
                Exec::NotSent => Fate::NotSent,
                Exec::Sent => Fate::MayHaveRun,
                Exec::Started => Fate::Ran,
            };
            self.leave_everything(host, fate.is_proven_not_run());
            let failure = failure.clone();
            let event = Event::Stranded { failure, fate };
            self.fleet.handle(self.now, HostId(host), event).unwrap();
        }
    }
}
