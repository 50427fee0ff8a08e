//! How much of a file may be under way on a channel: what the line holds, and a little more that waits somewhere on it.
//!
//! What waits, waits at a cost. sshd keeps what its program or the line has not taken yet in one buffer for each channel, which it
//! allocates anew, clears and copies for every packet by which that grows (sshbuf.c, `sshbuf_allocate`): the first time that two
//! megabytes wait costs it some tenths of a second, for each channel. So a channel does not simply fill its window.
//!
//! How much the line holds is told by the answers: what was under way when a request was made has been answered by the
//! time that the request is. That is a rate; by the fastest answer it comes to octets. (Wei, Jin, Low and Hegde, "FAST TCP",
//! 2006, has its window from the same equation.)

use std::time::Duration;

/// Octets that may wait on the way: the slowest part of it always has something to do, though answers are looked at together.
const WAITING: usize = 512 * 1024;
/// Octets that are under way at most, whatever the line holds. Windows are smaller, most of the time.
const MOST: usize = 8 * 1024 * 1024;
/// One answer changes the limit by its part of what was under way with it, or by a quarter.
const LEAST_PART: usize = 4;

/// One channel's limit.
#[derive(Debug)]
pub(super) struct Flow {
    /// Octets that are to be under way.
    limit: usize,
    under_way: usize,
    /// The fastest answer so far.
    fastest: Option<Duration>,
}

/// What is known of a request until its answer comes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent {
    at: Duration,
    octets: usize,
    /// Octets under way, with its own.
    with: usize,
}

impl Default for Flow {
    fn default() -> Flow {
        Flow {
            limit: WAITING,
            under_way: 0,
            fastest: None,
        }
    }
}

impl Flow {
    /// Whether more may be asked for or sent.
    pub(super) fn has_room(&self) -> bool {
        self.under_way < self.limit
    }

    /// A request is made that carries so many octets of a file, or will be answered by them.
    pub(super) fn begin(&mut self, now: Duration, octets: usize) -> Sent {
        self.under_way += octets;
        Sent {
            at: now,
            octets,
            with: self.under_way,
        }
    }

    /// It has been answered.
    pub(super) fn end(&mut self, now: Duration, sent: Sent) {
        self.under_way -= sent.octets;
        let taken = now.saturating_sub(sent.at);
        let fastest = self.fastest.map_or(taken, |fastest| fastest.min(taken));
        self.fastest = Some(fastest);
        if sent.octets == 0 {
            return;
        }
        let held = match taken.is_zero() {
            true => sent.with,
            false => (sent.with as f64 * fastest.as_secs_f64() / taken.as_secs_f64()) as usize,
        };
        let target = (held + WAITING).min(MOST);
        let part = (sent.with / sent.octets).max(LEAST_PART);
        self.limit = match target >= self.limit {
            true => self.limit + (target - self.limit) / part,
            false => self.limit - (self.limit - target) / part,
        };
    }
}

#[cfg(test)]
#[path = "flow_tests.rs"]
mod tests;
