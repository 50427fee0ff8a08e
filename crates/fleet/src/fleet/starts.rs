//! Who starts when: one lane of waiting hosts for each jump host and one for those reached directly.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::jumps::Jump;
use super::rests::Rests;
use super::{Course, Fleet};
use crate::host::{Flight, Host, State};
use crate::line::Links;
use crate::places::Places;
use crate::schedule::Schedule;
use crate::{Action, Job, JumpId, Limits, MAX_JOBS, PlanError};

/// The lane of hosts that are reached without a jump host.
const DIRECT: u32 = 0;

/// The lanes and their next turns. A jump host's lane that is full or not connected keeps nobody else waiting.
#[derive(Debug)]
pub(super) struct Starts {
    pub(super) lanes: Vec<Lane>,
    lane_of: BTreeMap<JumpId, u32>,
    /// The lanes that have a waiting host and room for it, and whose jump host is there or to be connected, by
    /// that host's ticket.
    ready: Schedule<u64>,
    /// The ends of jump hosts' back-offs, by lane.
    pub(super) jump_timers: Schedule<Instant>,
    next_ticket: u64,
    interval: Duration,
    /// The earliest next start.
    next_start: Option<Instant>,
    rests: Rests,
}

/// The hosts that wait for their start, and what bounds their number.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) places: Places,
    /// The jump host that they are behind.
    pub(super) jump: Option<Jump>,
}

impl Lane {
    /// Whether a host may start, or its jump host be connected for it.
    fn is_open(&self) -> bool {
        self.places.has_room() && self.jump.as_ref().is_none_or(Jump::lets_start)
    }
}

impl Starts {
    pub(super) fn lane_of(&self, jump: JumpId) -> Option<u32> {
        self.lane_of.get(&jump).copied()
    }

    /// When the first jump host's back-off ends.
    pub(super) fn jump_due(&self) -> Option<Instant> {
        self.jump_timers.first().map(|(at, _)| at)
    }

    /// Until when pacing forbids a start, if it ever did.
    pub(super) fn paced_until(&self) -> Option<Instant> {
        self.next_start.max(self.rests.until())
    }

    fn is_paced(&self, now: Instant) -> bool {
        self.paced_until().is_some_and(|at| now < at)
    }

    /// A host has left its place among the sessions.
    pub(super) fn free_session(&mut self, now: Instant) {
        self.rests.begin(now);
    }
}

/// Every job in its lane, in order; the hosts sorted by id.
pub(super) fn queue_up(
    jobs: impl IntoIterator<Item = Job>,
    limits: &Limits,
) -> Result<(Vec<Host>, Starts, Links), PlanError> {
    let mut lane_of: BTreeMap<JumpId, u32> = BTreeMap::new();
    let mut lanes = vec![Lane {
        places: Places::new(u32::MAX),
        jump: None,
    }];
    let jobs = jobs.into_iter();
    let mut hosts: Vec<Host> = Vec::with_capacity(jobs.size_hint().0.min(MAX_JOBS));
    for (ticket, job) in jobs.enumerate() {
        let lane = job.via.map_or(DIRECT, |jump| {
            *lane_of.entry(jump).or_insert_with(|| {
                let places = match jump {
                    JumpId::PROGRAM => limits.logins_by_program,
                    _ => limits.logins_per_jump,
                };
                lanes.push(Lane {
                    places: Places::new(places),
                    jump: Some(Jump::new(jump)),
                });
                lanes.len() as u32 - 1
            })
        });
        hosts.push(Host {
            id: job.host,
            lane,
            ticket: ticket as u64,
            attempts: 0,
            state: State::Waiting,
            first_start: None,
        });
        if hosts.len() > MAX_JOBS {
            return Err(PlanError::TooManyJobs);
        }
    }
    let by_ticket = sort_by_id(&mut hosts)?;
    let mut links = Links::new(hosts.len());
    let mut ready = Schedule::new(lanes.len());
    for index in by_ticket {
        let host = &hosts[index as usize];
        let line = &mut lanes[host.lane as usize].places.line;
        if line.first().is_none() {
            ready.set(host.lane, host.ticket);
        }
        links.join(line, index);
    }
    let starts = Starts {
        jump_timers: Schedule::new(lanes.len()),
        lanes,
        lane_of,
        ready,
        next_ticket: hosts.len() as u64,
        interval: limits.start_interval,
        next_start: None,
        rests: Rests::new(limits),
    };
    Ok((hosts, starts, links))
}

/// Sorts the hosts by id, and returns their new places in the order of the jobs.
fn sort_by_id(hosts: &mut [Host]) -> Result<Vec<u32>, PlanError> {
    hosts.sort_unstable_by_key(|host| host.id);
    if let Some(twins) = hosts.windows(2).find(|pair| pair[0].id == pair[1].id) {
        return Err(PlanError::DuplicateHost(twins[0].id));
    }
    let mut by_ticket = vec![0; hosts.len()];
    for (index, host) in hosts.iter().enumerate() {
        by_ticket[host.ticket as usize] = index as u32;
    }
    Ok(by_ticket)
}

impl Fleet {
    /// Whether a host could start but for pacing. In a run that was halted only those that were cut off wait: their commands run.
    pub(super) fn may_start(&self) -> bool {
        matches!(self.course, Course::Running | Course::Halted)
            && self.gates.connects.has_room()
            && self.progress.in_flight() < self.gates.sessions
            && self.starts.ready.first().is_some()
    }

    pub(super) fn start_next(&mut self, now: Instant) -> Option<Action> {
        if !self.may_start() || self.starts.is_paced(now) {
            return None;
        }
        let (_, lane) = self.starts.ready.first()?;
        if !self.starts.interval.is_zero() {
            self.starts.next_start = now.checked_add(self.starts.interval);
        }
        if let Some(action) = self.connect_jump(lane) {
            return Some(action);
        }
        let index = self.starts.lanes[lane as usize].places.line.first()?;
        self.leave_lane(index);
        self.starts.lanes[lane as usize].places.take();
        self.refresh_lane(lane);
        self.gates.connects.take();
        self.starts.rests.end(now);

        let jump = self.starts.lanes[lane as usize].jump.as_ref();
        let by_program = jump.is_some_and(Jump::is_program);
        let slot = self.flights.add(Flight::new(now, by_program));
        let host = &mut self.hosts[index as usize];
        host.state = State::InFlight(slot);
        host.first_start.get_or_insert(now);
        host.attempts += 1;
        let (host, attempt) = (host.id, host.attempts);
        self.progress.waiting -= 1;
        self.progress.lookup += 1;
        self.progress.retries += u32::from(attempt > 1);
        self.set_timer(index, slot);
        Some(Action::Start { host, attempt })
    }

    /// Lets a host wait for its next attempt, at the end of its lane: those that have not had a turn yet go
    /// first.
    pub(super) fn requeue(&mut self, index: u32) {
        let host = &mut self.hosts[index as usize];
        host.state = State::Waiting;
        host.ticket = self.starts.next_ticket;
        self.starts.next_ticket += 1;
        let lane = host.lane;
        self.links
            .join(&mut self.starts.lanes[lane as usize].places.line, index);
        self.refresh_lane(lane);
        self.progress.waiting += 1;
    }

    /// Takes a waiting host out of its lane.
    pub(super) fn leave_lane(&mut self, index: u32) {
        let lane = self.hosts[index as usize].lane;
        self.links
            .leave(&mut self.starts.lanes[lane as usize].places.line, index);
        self.refresh_lane(lane);
    }

    /// A host that is not in flight waits no more, in whatever way it did.
    pub(super) fn leave_wait(&mut self, index: u32) {
        match self.hosts[index as usize].state {
            State::Waiting => {
                self.leave_lane(index);
                self.progress.waiting -= 1;
            }
            State::BackingOff => {
                self.timers.remove(index);
                self.progress.backing_off -= 1;
            }
            State::Held => self.progress.held -= 1,
            State::Later => self.progress.waiting -= 1,
            State::InFlight(_) | State::Ended => {}
        }
    }

    /// Gives a place of the host's lane back.
    pub(super) fn free_lane_place(&mut self, index: u32) {
        let lane = self.hosts[index as usize].lane;
        self.starts.lanes[lane as usize].places.give_back();
        self.refresh_lane(lane);
    }

    /// Notes whether the lane can start a host now, and whose turn it is.
    pub(super) fn refresh_lane(&mut self, lane: u32) {
        let queue = &self.starts.lanes[lane as usize];
        match queue.places.line.first() {
            Some(first) if queue.is_open() => {
                let ticket = self.hosts[first as usize].ticket;
                self.starts.ready.set(lane, ticket);
            }
            _ => self.starts.ready.remove(lane),
        }
    }
}
