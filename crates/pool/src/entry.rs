//! What is known of a host in all threads.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use sshoal_net::{Identity, Listening};
use tokio::sync::Notify;

use crate::control::{HostStatus, State};

/// A host that is to be kept.
#[derive(Debug, Clone)]
pub struct Member {
    /// As the user named it.
    pub label: String,
    /// Its socket ([`Folder::socket`](crate::Folder::socket)).
    pub socket: PathBuf,
    /// How this side listens for its forwards.
    pub listening: Listening,
    /// What its connection is.
    pub identity: Identity,
}

/// Where a run finds a host that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seating {
    /// Which of the pool's threads has it: whom to [`board`](crate::board).
    pub deck: u32,
    /// Its number there.
    pub host: u32,
}

/// How hosts are kept.
#[derive(Debug, Clone, Copy, Default)]
pub struct Terms {
    /// They are hung up after so long without a session.
    pub idle: Option<Duration>,
    /// They are logged in to when somebody needs them, and not before; and no more once they are hung up, until the next one.
    pub is_lazy: bool,
    /// Those that are lost are logged in to again, with back-off.
    pub reconnects: bool,
}

/// A host.
pub(crate) struct Entry {
    pub(crate) member: Member,
    pub(crate) terms: Terms,
    condition: Mutex<Condition>,
    is_finished: AtomicBool,
    /// For the one who waits for that.
    finished: Notify,
    pub(crate) counts: Counts,
}

struct Condition {
    state: State,
    since: Instant,
    detail: Option<String>,
    connecting: Option<Duration>,
    round_trip: Option<Duration>,
    is_settled: bool,
    /// Where guests find it, for as long as it is up.
    seating: Option<Seating>,
}

/// What is counted of a host.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) connections: AtomicU64,
    pub(crate) logins: AtomicU64,
    pub(crate) sessions: AtomicU64,
    pub(crate) sessions_in_all: AtomicU64,
    forwarded: AtomicU64,
    pub(crate) sent: AtomicU64,
    pub(crate) received: AtomicU64,
}

impl Counts {
    /// A connection is forwarded.
    pub(crate) fn begin_forwarded(&self) {
        self.forwarded.fetch_add(1, Ordering::Relaxed);
    }

    /// It has ended.
    pub(crate) fn end_forwarded(&self) {
        self.forwarded.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether somebody is there.
    pub(crate) fn are_in_use(&self) -> bool {
        self.sessions.load(Ordering::Relaxed) + self.forwarded.load(Ordering::Relaxed) > 0
    }
}

impl Entry {
    pub(crate) fn new(member: Member, terms: Terms) -> Self {
        Entry {
            member,
            terms,
            condition: Mutex::new(Condition {
                state: State::Connecting,
                since: Instant::now(),
                detail: None,
                connecting: None,
                round_trip: None,
                is_settled: false,
                seating: None,
            }),
            is_finished: AtomicBool::new(false),
            finished: Notify::new(),
            counts: Counts::default(),
        }
    }

    /// It is to end, and not to come back.
    pub(crate) fn finish(&self) {
        if !self.is_finished.swap(true, Ordering::SeqCst) {
            self.finished.notify_one();
        }
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.is_finished.load(Ordering::SeqCst)
    }

    /// Waits until it is to end; for one who does.
    pub(crate) async fn told_to_end(&self) {
        while !self.is_finished() {
            self.finished.notified().await;
        }
    }

    pub(crate) fn change(&self, state: State, detail: Option<String>) {
        let mut condition = self.condition();
        (condition.state, condition.detail) = (state, detail);
        condition.since = Instant::now();
    }

    /// It is logged in to; connecting took so long.
    pub(crate) fn note_login(&self, connecting: Duration) {
        self.counts.logins.fetch_add(1, Ordering::Relaxed);
        self.change(State::Up, None);
        let mut condition = self.condition();
        (condition.connecting, condition.round_trip) = (Some(connecting), None);
    }

    /// How long the server last took to answer, from when that was measured.
    pub(crate) fn round_trip(&self) -> Option<Duration> {
        self.condition().round_trip
    }

    pub(crate) fn note_round_trip(&self, time: Duration) {
        self.condition().round_trip = Some(time);
    }

    /// It is known what becomes of it; returns whether it was not before.
    pub(crate) fn settle(&self) -> bool {
        !std::mem::replace(&mut self.condition().is_settled, true)
    }

    /// Guests find it there from now on, while it is up.
    pub(crate) fn is_at(&self, seating: Seating) {
        self.condition().seating = Some(seating);
    }

    /// Where guests find it now.
    pub(crate) fn seating(&self) -> Option<Seating> {
        let condition = self.condition();
        condition.seating.filter(|_| condition.state == State::Up)
    }

    pub(crate) fn state(&self) -> State {
        self.condition().state
    }

    /// Whether it has failed, and not ended as it was told to.
    pub(crate) fn has_failed(&self) -> bool {
        let condition = self.condition();
        condition.state == State::Down && condition.detail.is_some()
    }

    pub(crate) fn status(&self) -> HostStatus {
        let condition = self.condition();
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let milliseconds = |time: Duration| time.as_secs_f64() * 1000.0;
        HostStatus {
            host: self.member.label.clone(),
            state: condition.state,
            detail: condition.detail.clone(),
            control_path: self.member.socket.display().to_string(),
            age_seconds: condition.since.elapsed().as_secs_f64(),
            lazy: self.terms.is_lazy,
            idle_seconds: self.terms.idle.map(|idle| idle.as_secs_f64()),
            connections: count(&self.counts.connections),
            logins: count(&self.counts.logins),
            sessions: count(&self.counts.sessions),
            sessions_in_all: count(&self.counts.sessions_in_all),
            forwarded: count(&self.counts.forwarded),
            connect_ms: condition.connecting.map(milliseconds),
            round_trip_ms: condition.round_trip.map(milliseconds),
            octets_sent: count(&self.counts.sent),
            octets_received: count(&self.counts.received),
        }
    }

    fn condition(&self) -> MutexGuard<'_, Condition> {
        self.condition
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
