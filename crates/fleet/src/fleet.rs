//! The fan-out itself: one state machine over all hosts of a run.
//!
//! A host's way, and the file that carries each step:
//!
//! 1. `starts`    it waits in its lane, is started, and comes back here after a back-off; behind a jump host
//!    (`jumps`) only once that is logged in to, and in a place that has rested (`rests`);
//! 2. `gates`     it waits at gates, passes them, and gives up places as it moves on;
//! 3. `phases`    it enters phases;
//! 4. `clocks`    meanwhile deadlines pass, slow hosts give up places, back-offs end;
//! 5. `endings`   it fails, is aborted, or finishes: one result. `interruption` ends it early; `holds` has it wait for
//!    an answer of the user's, and start anew; `batches` begins hosts batch by batch, and no more after too many failures.

mod batches;
mod clocks;
mod endings;
mod gates;
mod holds;
mod interruption;
mod jumps;
mod phases;
mod rests;
mod starts;

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use crate::back_off::BackOff;
use crate::host::{Flight, Host, State};
use crate::line::Links;
use crate::patience::Patience;
use crate::places::Places;
use crate::schedule::Schedule;
use crate::{
    Action, Deadlines, Event, EventError, Failure, Fate, Gate, HostId, HostResult, Job, JumpEvent,
    JumpId, Limits, PlanError, Progress, RetryPolicy,
};

use batches::Batches;
use starts::Starts;

/// How long a connection may take before the first one is there to compare with: TCP's own initial timeout
/// (RFC 6298 section 2.1).
const INITIAL_CONNECT_PATIENCE: Duration = Duration::from_secs(1);

/// How long a login may take before the first one is there to compare with: a dozen slow round trips.
const INITIAL_LOGIN_PATIENCE: Duration = Duration::from_secs(5);

/// A run over many hosts: says what to do next, is told what happened, yields one result a host.
///
/// # Order of calls
///
/// After every call of [`handle`](Fleet::handle), [`handle_jump`](Fleet::handle_jump),
/// [`interrupt`](Fleet::interrupt) or [`abandon`](Fleet::abandon), and whenever [`poll_timeout`](Fleet::poll_timeout) is due, drain
/// [`poll_action`](Fleet::poll_action), then [`poll_result`](Fleet::poll_result), then ask for the timeout
/// anew. `now` must not run backwards (time that does is counted as none). The run is over when
/// [`is_done`](Fleet::is_done).
///
/// # A host's way
///
/// `Action::Start`; `Event::Entered(Connect)`; the login gate; `Event::Entered(Login)`;
/// `Event::KeysExchanged`; for keys in an agent the signature gate, then `Event::Left(Signature)`; the session
/// gate before the first octet of the command; `Event::Entered(Session)`, `Event::Entered(Command)`;
/// `Event::Finished`. Gates are passed with [`try_pass`](Fleet::try_pass), or with `Event::Reached` and
/// `Action::Admit`. A warm connection goes from the start straight to the session gate.
///
/// Hosts behind a jump host wait until that has been logged in to (`Action::Connect`, answered by
/// [`handle_jump`](Fleet::handle_jump)): they hold no place and no clock of theirs runs meanwhile. The performer
/// sets the deadlines of a jump host's own login.
///
/// # Who holds what
///
/// One host's trouble is not another's delay:
///
/// - A host in back-off, or held until its user has answered, holds nothing.
/// - A host that has been connecting, or logging in, for much longer than the others needed gives up its
///   place among `connects`, `logins` and `logins_per_jump`; it goes on, holding only its place among
///   `sessions`. "Much longer" is TCP's timeout formula over the run's own hosts (RFC 6298), at least twice
///   their mean and at least 100 ms. [`Progress::slow`] counts such hosts; all others keep to the limits.
/// - A host that waits at the login gate keeps its place among `connects`, so that connections do not pile
///   up faster than logins are done.
///
/// # Deadlines
///
/// When one passes, the fleet says `Action::Abort`, and takes back all the host's places but that of its
/// session, which the answer frees, since the descriptor is in use until then. The answer is
/// `Event::Failed`: the result is the deadline's failure with the answer's fate. If the host turns out to have
/// finished, `Event::Finished` counts instead. Without an answer within 5 s (for a command whose time is over,
/// [`Deadlines::kill`] more) the result is issued anyway.
///
/// A result's kind never hides that a command may have run: see [`FailureKind::command_may_have_run`].
///
/// [`FailureKind::command_may_have_run`]: crate::FailureKind::command_may_have_run
#[derive(Debug)]
pub struct Fleet {
    /// Sorted by their ids.
    hosts: Vec<Host>,
    flights: Flights,
    /// The lines at gates and in lanes.
    links: Links,
    starts: Starts,
    gates: Gates,
    /// At most one timer a host.
    timers: Schedule<Instant>,
    deadlines: Deadlines,
    back_off: BackOff,
    /// Hosts that were cut off and are tried once more, and what was said of them then.
    cuts: HashMap<u32, Cut>,
    /// Aborts and interrupts to be polled.
    orders: VecDeque<Action>,
    results: VecDeque<HostResult>,
    progress: Progress,
    batches: Batches,
    course: Course,
}

/// Whether the run goes its course.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Course {
    Running,
    /// Nothing starts any more, and what runs goes on.
    Halted,
    /// Nothing starts any more.
    Interrupted,
    /// All hosts have ended, whatever became of them.
    Abandoned,
}

/// How a host was cut off.
#[derive(Debug)]
struct Cut {
    failure: Failure,
    fate: Fate,
    /// Until when it is tried again, however that fails; `None`: once.
    until: Option<Instant>,
}

/// The flights, in slots that are used again.
#[derive(Debug, Default)]
struct Flights {
    slots: Vec<Flight>,
    free: Vec<u32>,
}

/// The bounds between a start and an end, and what is known of how long hosts take.
#[derive(Debug)]
struct Gates {
    sessions: u32,
    connects: Places,
    logins: Places,
    signatures: Places,
    /// Always has room; its line lets [`Action::Admit`] come in turn.
    session: Places,
    connect_patience: Patience,
    login_patience: Patience,
}

impl Fleet {
    /// A run of `jobs`, started in their order. `seed` decides the jitter of back-offs and nothing else: the
    /// same calls with the same seed give the same answers.
    pub fn new(
        jobs: impl IntoIterator<Item = Job>,
        limits: Limits,
        deadlines: Deadlines,
        retry: RetryPolicy,
        seed: u64,
    ) -> Result<Fleet, PlanError> {
        check_limits(&limits)?;
        let (hosts, starts, links) = starts::queue_up(jobs, &limits)?;
        Ok(Fleet {
            flights: Flights::default(),
            links,
            starts,
            gates: Gates {
                sessions: limits.sessions,
                connects: Places::new(limits.connects),
                logins: Places::new(limits.logins),
                signatures: Places::new(limits.signatures),
                session: Places::new(u32::MAX),
                connect_patience: Patience::new(INITIAL_CONNECT_PATIENCE),
                login_patience: Patience::new(INITIAL_LOGIN_PATIENCE),
            },
            timers: Schedule::new(hosts.len()),
            deadlines,
            back_off: BackOff {
                policy: retry,
                seed,
            },
            cuts: HashMap::new(),
            orders: VecDeque::new(),
            results: VecDeque::new(),
            progress: Progress {
                total: hosts.len() as u32,
                waiting: hosts.len() as u32,
                ..Progress::default()
            },
            batches: Batches::one(hosts.len() as u32),
            course: Course::Running,
            hosts,
        })
    }

    /// The next thing to do, or `None` until an event or [`Fleet::poll_timeout`].
    pub fn poll_action(&mut self, now: Instant) -> Option<Action> {
        self.expire(now);
        self.next_order()
            .or_else(|| self.admit_next(now))
            .or_else(|| self.start_next(now))
            .or_else(|| self.ask_for_batch())
    }

    /// Takes note of what happened to a host. An error leaves everything as it was, and means that the
    /// caller has lost track of the host.
    pub fn handle(&mut self, now: Instant, host: HostId, event: Event) -> Result<(), EventError> {
        let Some((index, slot)) = self.find(host)? else {
            return Ok(());
        };
        match event {
            Event::Entered(phase) => self.enter(now, index, slot, phase),
            Event::Queued => {
                self.queue(now, index, slot);
                Ok(())
            }
            Event::KeysExchanged => self.keys_exchanged(now, index, slot),
            Event::Reached(gate) => self.reach(now, index, slot, gate),
            Event::Left(gate) => self.leave_gate(index, slot, gate),
            Event::Failed {
                failure,
                safe_to_retry,
                fate,
            } => {
                let allowed = match safe_to_retry {
                    true => failure.kind.attempts(self.back_off.policy.attempts),
                    false => 1,
                };
                self.fail(now, index, slot, failure, fate, allowed);
                Ok(())
            }
            Event::Stranded { failure, fate } => {
                let allowed = self.back_off.policy.attempts;
                self.fail(now, index, slot, failure, fate, allowed);
                Ok(())
            }
            Event::Cut { failure, fate } => {
                let survive = self.deadlines.survive;
                let until = survive.map(|limit| now.checked_add(limit).unwrap_or(now));
                let cut = Cut {
                    failure,
                    fate,
                    until,
                };
                self.cut(now, index, slot, cut);
                Ok(())
            }
            Event::Held => {
                self.hold(now, index, slot);
                Ok(())
            }
            Event::Parked => {
                self.park(now, index, slot);
                Ok(())
            }
            Event::Crashed(failure) => {
                let fate = self.flight(slot).concluded_fate();
                self.fail(now, index, slot, failure, fate, 1);
                Ok(())
            }
            Event::Finished(outcome) => {
                self.finish(now, index, slot, outcome);
                Ok(())
            }
        }
    }

    /// Takes note of what happened to a jump host.
    pub fn handle_jump(&mut self, now: Instant, jump: JumpId, event: JumpEvent) {
        if let Some(lane) = self.starts.lane_of(jump) {
            match event {
                JumpEvent::Up => self.jump_is_up(lane),
                JumpEvent::Down(failure) => self.jump_is_down(now, lane, failure),
            }
        }
    }

    /// Passes a gate if there is room: [`Event::Reached`] without an action's round trip. `false` means that
    /// the host waits there now, and that an [`Action::Admit`] will come, or an [`Action::Abort`].
    pub fn try_pass(&mut self, now: Instant, host: HostId, gate: Gate) -> Result<bool, EventError> {
        let Some((index, slot)) = self.find(host)? else {
            return Ok(false);
        };
        self.pass_or_wait(now, index, slot, gate)
    }

    /// The next result.
    pub fn poll_result(&mut self) -> Option<HostResult> {
        self.results.pop_front()
    }

    /// When to call [`Fleet::poll_action`] again if nothing happens before. Meaningful once
    /// [`Fleet::poll_action`] has answered `None`.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let timer = self.timers.first().map(|(at, _)| at);
        let jump = self.starts.jump_due().filter(|_| self.may_need_jump());
        let pace = self.starts.paced_until().filter(|_| self.may_start());
        [timer, jump, pace].into_iter().flatten().min()
    }

    /// How far the run is.
    pub fn progress(&self) -> Progress {
        self.progress
    }

    /// Whether every host has ended. Results may still wait to be polled.
    pub fn is_done(&self) -> bool {
        self.progress.done == self.progress.total
    }

    /// The host's place in `hosts` and its flight, or `None` if it has ended: what is said of it then has
    /// crossed the fleet's own decision.
    fn find(&self, id: HostId) -> Result<Option<(u32, u32)>, EventError> {
        let index = self.index_of(id)?;
        match self.hosts[index as usize].state {
            State::InFlight(slot) => Ok(Some((index, slot))),
            State::Ended => Ok(None),
            State::Waiting | State::BackingOff | State::Held | State::Later => {
                Err(EventError::NotRunning(id))
            }
        }
    }

    fn index_of(&self, id: HostId) -> Result<u32, EventError> {
        match self.hosts.get(id.0 as usize) {
            Some(host) if host.id == id => Ok(id.0),
            _ => match self.hosts.binary_search_by_key(&id, |host| host.id) {
                Ok(index) => Ok(index as u32),
                Err(_) => Err(EventError::UnknownHost(id)),
            },
        }
    }

    fn id(&self, index: u32) -> HostId {
        self.hosts[index as usize].id
    }

    fn in_flight(&self, index: u32) -> Option<u32> {
        match self.hosts[index as usize].state {
            State::InFlight(slot) => Some(slot),
            State::Waiting | State::BackingOff | State::Held | State::Later | State::Ended => None,
        }
    }

    fn flight(&mut self, slot: u32) -> &mut Flight {
        &mut self.flights.slots[slot as usize]
    }
}

impl Flights {
    fn add(&mut self, flight: Flight) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = flight;
                slot
            }
            None => {
                self.slots.push(flight);
                self.slots.len() as u32 - 1
            }
        }
    }

    fn free(&mut self, slot: u32) {
        self.free.push(slot);
    }
}

fn check_limits(limits: &Limits) -> Result<(), PlanError> {
    let named = [
        ("connects", limits.connects),
        ("logins", limits.logins),
        ("logins per jump host", limits.logins_per_jump),
        ("logins by a program", limits.logins_by_program),
        ("signatures", limits.signatures),
        ("sessions", limits.sessions),
    ];
    match named.iter().find(|(_, limit)| *limit == 0) {
        Some((name, _)) => Err(PlanError::ZeroLimit(name)),
        None => Ok(()),
    }
}
