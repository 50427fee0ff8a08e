//! /proc, looked at again and again: where nothing better is to be had, and without root. What lives for less than the time between
//! two looks may be missed, and who had lost its parent before it was seen is not known to belong to the family.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use crate::failure::Failure;
use crate::told::{Told, Watching, locked};
use crate::{kernel, process};

/// The least pause between two looks; and how many times as long as a look it is, so that a processor has time for others.
const LEAST_PAUSE: Duration = Duration::from_millis(2);
const LOOKS_A_PAUSE: u32 = 4;
/// Clock ticks are of 10 ms, on every Linux of today.
const TICK: u64 = 10_000_000;

/// Follows a process by it.
///
/// # Errors
///
/// /proc cannot be read.
pub(crate) fn follow(followed: u32) -> Result<Watching, Failure> {
    if !pids().contains(&followed) {
        let words = "/proc does not show the server's processes";
        return Err(Failure::new("no-proc", words));
    }
    let mut looks = Looks {
        known: pids(),
        last: kernel::monotonic(),
    };
    let step = move |told: &Mutex<Told>| {
        let took = looks.look(&mut locked(told));
        thread::sleep((took * LOOKS_A_PAUSE).max(LEAST_PAUSE));
        false
    };
    Watching::start(followed, step)
        .map_err(|error| Failure::new("system", format!("no thread can be started: {error}")))
}

struct Looks {
    /// All processes that were there at the last look.
    known: BTreeSet<u32>,
    /// When that was.
    last: u64,
}

impl Looks {
    /// One look at all processes; how long it took.
    fn look(&mut self, told: &mut Told) -> Duration {
        let now = kernel::monotonic();
        let all = pids();
        for pid in told.living() {
            let has_ended = !all.contains(&pid) || process::has_ended(pid);
            match has_ended {
                true => told.exit(now, pid),
                false => told.look(now, pid),
            }
        }
        let mut born: Vec<(u64, u32)> = all
            .difference(&self.known)
            .filter_map(|pid| Some((process::started(*pid)?, *pid)))
            .collect();
        born.sort_unstable();
        let sleep = kernel::since_boot().saturating_sub(kernel::monotonic());
        // Whose parent is new itself is found in the next round.
        while let Some(place) = born
            .iter()
            .position(|(_, pid)| parent(*pid).is_some_and(|it| told.has(it)))
        {
            let (started, pid) = born.remove(place);
            let Some(parent) = parent(pid) else { continue };
            // It was not there at the last look, whatever the clock of its ticks says.
            let at = (started * TICK).saturating_sub(sleep);
            told.fork(at.clamp(self.last, now), parent, pid);
            told.look(now, pid);
        }
        self.known = all;
        self.last = now;
        Duration::from_nanos(kernel::monotonic().saturating_sub(now))
    }
}

fn parent(pid: u32) -> Option<u32> {
    process::parent(pid)
}

fn pids() -> BTreeSet<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.collect()
}
