//! What all hosts of a pool share: who they are, how they are, and what they count.

use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;
use sshoal_fleet::{Failure, FailureKind, HostId};
use sshoal_net::{Keeper, Kept, More};
use tokio::sync::watch;

use crate::control::{self, HostStatus, State, Status};
use crate::folder::{Folder, Lock};
use crate::host::Host;

/// Most connections to one host.
pub const MAX_CONNECTIONS: usize = 128;
/// Most passengers of one host; others wait to be accepted.
pub const MAX_PASSENGERS: usize = 2048;

/// A host that is to be kept.
#[derive(Debug, Clone)]
pub struct Member {
    /// As the user named it.
    pub label: String,
    /// Its socket ([`Folder::socket`]).
    pub socket: PathBuf,
}

/// The connections of a user that are kept. Copies are of the same pool.
#[derive(Clone)]
pub struct Pool(Arc<Shared>);

struct Shared {
    folder: Folder,
    _lock: Lock,
    idle: Option<Duration>,
    entries: Vec<Arc<Entry>>,
    /// When the last session ended, or the pool began.
    last_used: Mutex<Instant>,
    /// Hosts of which it is not known yet whether they can be kept.
    unsettled: Mutex<usize>,
    settled: Condvar,
}

/// What is known of a host in all threads.
pub(crate) struct Entry {
    pub(crate) member: Member,
    condition: Mutex<Condition>,
    /// Whether it is to end.
    end: watch::Sender<bool>,
    pub(crate) counts: Counts,
}

struct Condition {
    state: State,
    since: Instant,
    detail: Option<String>,
    round_trip: Option<Duration>,
    is_settled: bool,
}

/// What is counted of a host.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) connections: AtomicU64,
    pub(crate) sessions: AtomicU64,
    pub(crate) sessions_in_all: AtomicU64,
    pub(crate) sent: AtomicU64,
    pub(crate) received: AtomicU64,
}

impl Pool {
    /// A pool for these hosts, in the order of the run's. With `idle` it ends after so long without a session.
    pub fn new(folder: Folder, lock: Lock, members: Vec<Member>, idle: Option<Duration>) -> Pool {
        let unsettled = members.len();
        let entries = members.into_iter().map(|member| {
            Arc::new(Entry {
                member,
                condition: Mutex::new(Condition {
                    state: State::Connecting,
                    since: Instant::now(),
                    detail: None,
                    round_trip: None,
                    is_settled: false,
                }),
                end: watch::Sender::new(false),
                counts: Counts::default(),
            })
        });
        Pool(Arc::new(Shared {
            folder,
            _lock: lock,
            idle,
            entries: entries.collect(),
            last_used: Mutex::new(Instant::now()),
            unsettled: Mutex::new(unsettled),
            settled: Condvar::new(),
        }))
    }

    /// Begins to answer [`Ask`](crate::Ask)s, in a thread of its own.
    ///
    /// # Errors
    ///
    /// There is no socket or no thread for it.
    pub fn answer_questions(&self) -> io::Result<()> {
        control::answer(self.clone())
    }

    /// A host has failed for good.
    pub fn failed(&self, host: HostId, why: &str) {
        if let Some(entry) = self.0.entries.get(host.0 as usize) {
            entry.change(State::Down, Some(why.to_owned()));
            self.settle(entry);
        }
    }

    /// A host has ended as it was told to.
    pub fn ended(&self, host: HostId) {
        if let Some(entry) = self.0.entries.get(host.0 as usize) {
            entry.change(State::Down, None);
            self.settle(entry);
        }
    }

    /// Waits until it is known of every host whether it can be kept; returns how many are, and how many are not.
    pub fn wait_until_settled(&self) -> (usize, usize) {
        let mut unsettled = locked(&self.0.unsettled);
        while *unsettled > 0 {
            let woken = self.0.settled.wait(unsettled);
            unsettled = woken.unwrap_or_else(PoisonError::into_inner);
        }
        drop(unsettled);
        let entries = self.0.entries.iter();
        let up = entries.filter(|entry| entry.state() == State::Up).count();
        (up, self.0.entries.len() - up)
    }

    /// Whether a host has failed, and not ended as it was told to.
    pub fn has_failures(&self) -> bool {
        let mut entries = self.0.entries.iter();
        entries.any(|entry| locked(&entry.condition).detail.is_some())
    }

    /// Takes all sockets away that are left, when the run is over.
    pub fn clear(&self) {
        let sockets = self
            .0
            .entries
            .iter()
            .map(|entry| entry.member.socket.clone());
        for socket in sockets.chain([self.0.folder.control()]) {
            // If it cannot be removed, the next pool does it.
            let _ = Folder::clear(&socket);
        }
    }

    pub(crate) fn folder(&self) -> &Folder {
        &self.0.folder
    }

    /// How all hosts are.
    pub(crate) fn status(&self) -> Status {
        Status {
            pid: std::process::id(),
            idle_seconds: self.0.idle.map(|idle| idle.as_secs()),
            hosts: self.0.entries.iter().map(|entry| entry.status()).collect(),
        }
    }

    /// Ends these hosts' connections; all if none is named.
    pub(crate) fn end(&self, hosts: &[String]) {
        let is_meant =
            |entry: &&Arc<Entry>| hosts.is_empty() || hosts.contains(&entry.member.label);
        for entry in self.0.entries.iter().filter(is_meant) {
            entry.end.send_replace(true);
        }
    }

    /// Ends all if there was no session for long enough; otherwise returns when to look again.
    pub(crate) fn end_if_idle(&self) -> Option<Duration> {
        let idle = self.0.idle?;
        let in_use = |entry: &Arc<Entry>| entry.counts.sessions.load(Ordering::Relaxed) > 0;
        if self.0.entries.iter().any(in_use) || *locked(&self.0.unsettled) > 0 {
            self.note_use();
        }
        let left = idle.saturating_sub(locked(&self.0.last_used).elapsed());
        if !left.is_zero() {
            return Some(left);
        }
        self.end(&[]);
        None
    }

    /// A session has begun or ended.
    pub(crate) fn note_use(&self) {
        *locked(&self.0.last_used) = Instant::now();
    }

    fn settle(&self, entry: &Entry) {
        if !std::mem::replace(&mut locked(&entry.condition).is_settled, true) {
            *locked(&self.0.unsettled) -= 1;
            self.0.settled.notify_all();
        }
    }
}

impl Keeper for Pool {
    fn begin(
        &self,
        host: HostId,
        round_trip: Duration,
        more: More,
    ) -> Result<Rc<dyn Kept>, Failure> {
        let entry = &self.0.entries[host.0 as usize];
        let kept = Host::begin(self.clone(), entry.clone(), more).map_err(|error| {
            let path = entry.member.socket.display();
            Failure::new(
                FailureKind::Internal,
                format!("its socket, {path}, cannot be made: {error}"),
            )
        })?;
        locked(&entry.condition).round_trip = Some(round_trip);
        entry.change(State::Up, None);
        self.settle(entry);
        Ok(kept)
    }
}

impl Entry {
    /// Whether, and when, it is to end.
    pub(crate) fn ending(&self) -> watch::Receiver<bool> {
        self.end.subscribe()
    }

    pub(crate) fn change(&self, state: State, detail: Option<String>) {
        let mut condition = locked(&self.condition);
        (condition.state, condition.detail) = (state, detail);
        condition.since = Instant::now();
    }

    fn state(&self) -> State {
        locked(&self.condition).state
    }

    fn status(&self) -> HostStatus {
        let condition = locked(&self.condition);
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let round_trip = condition.round_trip.map(|time| time.as_secs_f64() * 1000.0);
        HostStatus {
            host: self.member.label.clone(),
            state: condition.state,
            detail: condition.detail.clone(),
            control_path: self.member.socket.display().to_string(),
            age_seconds: condition.since.elapsed().as_secs_f64(),
            connections: count(&self.counts.connections),
            sessions: count(&self.counts.sessions),
            sessions_in_all: count(&self.counts.sessions_in_all),
            round_trip_ms: round_trip,
            octets_sent: count(&self.counts.sent),
            octets_received: count(&self.counts.received),
        }
    }
}

/// Whether the program at the other end of a socket is the user's, or root's: as mux.c's check.
pub(crate) fn is_welcome(socket: &impl AsFd) -> bool {
    socket_peercred(socket).is_ok_and(|peer| peer.uid.is_root() || peer.uid == geteuid())
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
