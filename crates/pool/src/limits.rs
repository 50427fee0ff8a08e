//! How much a pool may take of the machine: connections, and memory.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::param::page_size;
use serde::{Deserialize, Serialize};
use sshoal_fleet::{Failure, FailureKind};

/// What a pool may take; `None` is no limit of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Connections to all hosts together, further ones included.
    pub connections: Option<u64>,
    /// The process's resident memory, octets, from which on no connection is made.
    pub memory: Option<u64>,
}

/// The limits, and what is taken.
#[derive(Default)]
pub(crate) struct Room {
    limits: Mutex<Limits>,
    connections: AtomicU64,
    refused: AtomicU64,
}

/// A connection's place: given back when it is dropped.
pub(crate) struct Place(Arc<Room>);

impl Room {
    /// Changes the limits that are given. What is there stays, even if it is more.
    pub(crate) fn limit(&self, to: Limits) {
        let mut limits = self.locked();
        limits.connections = to.connections.or(limits.connections);
        limits.memory = to.memory.or(limits.memory);
    }

    pub(crate) fn limits(&self) -> Limits {
        *self.locked()
    }

    /// Places that are taken.
    pub(crate) fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    /// How often a place was refused.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// A place for one more connection.
    ///
    /// # Errors
    ///
    /// The limit that is reached.
    pub(crate) fn take(self: &Arc<Self>) -> Result<Place, Failure> {
        let limits = self.limits();
        let memory = limits.memory.filter(|limit| resident() >= *limit);
        let most = limits.connections.unwrap_or(u64::MAX);
        let update = |taken: u64| (taken < most).then_some(taken + 1);
        let (order, failed_order) = (Ordering::Relaxed, Ordering::Relaxed);
        let reached = match memory {
            Some(limit) => format!(
                "{} MB of memory (--max-memory) are in use",
                limit / 1_000_000
            ),
            None => match self.connections.fetch_update(order, failed_order, update) {
                Ok(_) => return Ok(Place(self.clone())),
                Err(_) => format!("{most} connections (--max-connections) are kept"),
            },
        };
        self.refused.fetch_add(1, Ordering::Relaxed);
        Err(Failure::with_remedy(
            FailureKind::Internal,
            reached,
            "end some with `sshoal down HOSTS`, or allow more with `sshoal up`",
        ))
    }

    fn locked(&self) -> MutexGuard<'_, Limits> {
        self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// This process's resident memory, octets (`/proc/self/statm`, proc_pid_statm(5)); 0 where that cannot be told.
pub(crate) fn resident() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split_ascii_whitespace().nth(1);
    let pages: u64 = pages.and_then(|pages| pages.parse().ok()).unwrap_or(0);
    pages * page_size() as u64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn no_more_places_are_taken_than_there_are_and_they_come_back() {
        let room = Arc::new(Room::default());
        room.limit(Limits {
            connections: Some(2),
            memory: None,
        });
        let first = room.take().ok().unwrap();
        let _second = room.take().ok().unwrap();
        let refused = room.take().err().unwrap();
        assert!(refused.detail.contains("2 connections"), "{refused}");
        drop(first);
        assert!(room.take().is_ok());
        assert_eq!((room.connections(), room.refused()), (1, 1));
    }

    #[test]
    fn nothing_is_begun_beyond_the_memory_limit() {
        let room = Arc::new(Room::default());
        room.limit(Limits {
            connections: None,
            memory: Some(1),
        });
        assert!(room.take().is_err());
        room.limit(Limits {
            connections: Some(7),
            memory: Some(u64::MAX),
        });
        assert!(room.take().is_ok());
        assert_eq!(room.limits().connections, Some(7));
    }
}
