//! The hosts of one `up`: a run of their own, in the pool's process.

use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use sshoal_fleet::{Failure, FailureKind, HostId};
use sshoal_net::{Keeper, Kept, More, RunHandle};

use crate::control::State;
use crate::conversation::Settled;
use crate::entry::{Entry, Member, Terms};
use crate::folder::Folder;
use crate::host::Host;
use crate::pool::Pool;

/// What one run's connections are kept for. Copies are of the same.
#[derive(Clone)]
pub struct Round(Arc<Shared>);

struct Shared {
    pool: Pool,
    /// In the order of the run's hosts.
    entries: Vec<Arc<Entry>>,
    run: OnceLock<RunHandle>,
    /// Hosts of which it is not known yet whether they can be kept.
    unsettled: Mutex<usize>,
    /// Fewer of them, or the run has begun.
    settled: Condvar,
    /// Whether a signal has ended it.
    is_interrupted: AtomicBool,
}

/// What became of the hosts that a round was to be of.
pub struct TakenIn {
    /// The round of the new ones.
    pub round: Round,
    /// Of each host that was named, whether it is new. One that is not is kept already, under the name that is given.
    pub new: Vec<Result<(), String>>,
}

impl Round {
    /// Takes in those hosts that are not kept yet; they are those of the run, in this order.
    pub fn begin(pool: &Pool, members: &[Member], terms: Terms) -> TakenIn {
        let mut entries = Vec::new();
        let taken = pool.take_in(members, terms).into_iter();
        let new = taken
            .map(|entry| entry.map(|entry| entries.push(entry)))
            .collect();
        let round = Round(Arc::new(Shared {
            pool: pool.clone(),
            unsettled: Mutex::new(entries.len()),
            entries,
            run: OnceLock::new(),
            settled: Condvar::new(),
            is_interrupted: AtomicBool::new(false),
        }));
        TakenIn { round, new }
    }

    /// A host has failed for good.
    pub fn failed(&self, host: HostId, why: &str) {
        if let Some(entry) = self.0.entries.get(host.0 as usize) {
            let detail = (!entry.is_finished()).then(|| why.to_owned());
            entry.change(State::Down, detail);
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

    /// The run has come to nothing, or is over: what is not down is now.
    pub fn is_over(&self, why: Option<&str>) {
        for entry in &self.0.entries {
            if entry.state() != State::Down {
                entry.change(State::Down, why.map(str::to_owned));
                // If it cannot be removed, whoever connects to it is refused.
                let _ = Folder::clear(&entry.member.socket);
            }
            self.settle(entry);
        }
    }

    /// None of its hosts is listed any more.
    pub fn forget(&self) {
        self.0.pool.forget(&self.0.entries);
    }

    /// All its hosts end.
    pub fn abandon(&self) {
        if let Some(run) = self.0.run.get() {
            run.abandon();
        }
        for entry in &self.0.entries {
            entry.finish();
        }
    }

    /// Waits until its run has begun, or has come to nothing.
    pub fn wait_until_begun(&self) {
        let mut unsettled = locked(&self.0.unsettled);
        while *unsettled > 0 && self.0.run.get().is_none() {
            let woken = self.0.settled.wait(unsettled);
            unsettled = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until it is known of every host whether it can be kept; returns how many are, and how many are not.
    pub fn wait_until_settled(&self) -> Settled {
        let mut unsettled = locked(&self.0.unsettled);
        while *unsettled > 0 {
            let woken = self.0.settled.wait(unsettled);
            unsettled = woken.unwrap_or_else(PoisonError::into_inner);
        }
        drop(unsettled);
        if let Some(run) = self.0.run.get() {
            run.record_host_keys();
        }
        let mut settled = Settled::default();
        for entry in &self.0.entries {
            *match entry.state() {
                State::Down => &mut settled.failed,
                State::Lazy => &mut settled.lazy,
                _ => &mut settled.up,
            } += 1;
        }
        settled
    }

    /// How many hosts the pool has beside these.
    pub fn hosts_beside(&self) -> usize {
        let all = self.0.pool.hosts();
        all.saturating_sub(self.0.entries.len())
    }

    /// Whether it is known of all hosts.
    pub(crate) fn is_settled(&self) -> bool {
        *locked(&self.0.unsettled) == 0
    }

    /// Whether a host has failed, and not ended as it was told to.
    pub fn has_failures(&self) -> bool {
        self.0.entries.iter().any(|entry| entry.has_failed())
    }

    /// Whether a signal has told its hosts to end.
    pub fn is_interrupted(&self) -> bool {
        self.0.is_interrupted.load(Ordering::SeqCst)
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.0.pool
    }

    /// It is known of a host whether it can be kept.
    pub(crate) fn settle(&self, entry: &Entry) {
        if entry.settle() {
            *locked(&self.0.unsettled) -= 1;
            self.0.settled.notify_all();
        }
    }
}

impl Keeper for Round {
    fn started(&self, run: RunHandle) {
        let waiting = locked(&self.0.unsettled);
        // It is started once.
        let _ = self.0.run.set(run);
        drop(waiting);
        self.0.settled.notify_all();
    }

    fn interrupted(&self) {
        self.0.is_interrupted.store(true, Ordering::SeqCst);
        for entry in &self.0.entries {
            entry.finish();
        }
    }

    fn attend(&self, host: HostId, more: More) -> Result<Rc<dyn Kept>, Failure> {
        let entry = &self.0.entries[host.0 as usize];
        match Host::attend(self.clone(), entry.clone(), more) {
            Ok(host) => Ok(host),
            Err(error) => Err(no_socket(entry, &error)),
        }
    }
}

/// A host's socket cannot be made.
pub(crate) fn no_socket(entry: &Entry, error: &std::io::Error) -> Failure {
    let path = entry.member.socket.display();
    Failure::new(
        FailureKind::Internal,
        format!("its socket, {path}, cannot be made: {error}"),
    )
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
