//! How many connections a host's transfer has: begun by the round trip, added while they gain.
//!
//! A connection moves at most about 3 MB a round trip, by what Linux lets TCP buffer, so far hosts get several at once.
//! Whether more of them move more is measured: if not, those that came last get nothing more to do.

use std::time::{Duration, Instant};

/// Connections that are logged in at the same time: well below where sshd begins to refuse some (MaxStartups 10:30:100).
pub(super) const AT_ONCE: usize = 8;
/// Octets left for each connection: a login takes about as many round trips as these.
const WORTH_A_LANE: u64 = 32 * 1024 * 1024;
/// Octets left without which none is begun: nobody would divide them.
const LEAST_LEFT: u64 = 8 * 1024 * 1024;
/// Round trips until a new connection's congestion window is about what it will be, and as many again to measure.
const ROUND_TRIPS: u32 = 6;
/// What is left must take so many times as long as one of these, by what was measured, for an attempt with more.
const WORTH_AN_ATTEMPT: u32 = 16;
/// What those that were added last must have gained to be kept.
const LEAST_GAIN: f64 = 1.1;
/// The least time for either.
const LEAST_TIME: Duration = Duration::from_millis(150);
/// Connections that may fail, or end before their time, before no more are begun.
const FAILURES: u32 = 6;
/// From a failure to the next attempt, doubled by each.
const PAUSE: Duration = Duration::from_secs(1);

/// Who sends what is transferred: of how much of it is on its way at once, its kernel decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sender {
    Us,
    Host,
}

/// How many connections there are to be.
#[derive(Debug)]
pub(super) struct Growth {
    /// At most, with the first.
    most: usize,
    /// Whether the user has said how many.
    is_fixed: bool,
    /// As many as are wanted now.
    goal: usize,
    at_once: usize,
    /// How long it takes until new ones are at their speed, and how long to measure that.
    time: Duration,
    measuring: Measuring,
    /// How many connections moved how much, octets a second.
    last: Option<(usize, f64)>,
    /// Do with so many, which were as fast as all.
    kept: Option<usize>,
    failures: u32,
    not_before: Option<Instant>,
    /// Nothing is to be done at any moment: what is left is little, or too many have failed.
    rests: bool,
}

#[derive(Debug, Clone, Copy)]
enum Measuring {
    /// Connections are still begun.
    Not,
    /// They are at their speed from this moment.
    From(Instant),
    /// So many octets had arrived at this moment.
    Since(Instant, u64),
    /// More would not gain.
    Over,
}

/// What there is now.
#[derive(Debug, Clone, Copy)]
pub(super) struct Now {
    pub(super) at: Instant,
    /// Octets that have arrived.
    pub(super) moved: u64,
    /// Octets that are still to come.
    pub(super) left: u64,
    /// Connections that transfer, with the first.
    pub(super) up: usize,
    /// Connections that are being made.
    pub(super) begun: usize,
}

impl Growth {
    /// `wanted` is the user's number, with the first; `most` is never exceeded.
    pub(super) fn new(
        wanted: Option<usize>,
        most: usize,
        round_trip: Duration,
        sender: Sender,
    ) -> Growth {
        let goal = wanted.unwrap_or_else(|| at_first(round_trip, sender));
        Growth {
            most: wanted.map_or(most, |wanted| wanted.min(most)).max(1),
            is_fixed: wanted.is_some(),
            goal,
            at_once: AT_ONCE,
            time: (round_trip * ROUND_TRIPS).max(LEAST_TIME),
            measuring: Measuring::Not,
            last: None,
            kept: None,
            failures: 0,
            not_before: None,
            rests: false,
        }
    }

    /// How many connections to begin now.
    pub(super) fn due(&mut self, now: Now) -> usize {
        self.not_before = self.not_before.filter(|moment| now.at < *moment);
        self.rests = now.left < LEAST_LEFT || self.failures >= FAILURES;
        if self.rests {
            return 0;
        }
        if !self.is_fixed {
            self.measure(now);
        }
        let worth = match self.is_fixed {
            true => usize::MAX,
            false => usize::try_from(now.left / WORTH_A_LANE).unwrap_or(usize::MAX),
        };
        let goal = self.goal.min(self.most).min(worth);
        if self.not_before.is_some() {
            return 0;
        }
        let missing = goal.saturating_sub(now.up + now.begun);
        missing.min(self.at_once.saturating_sub(now.begun))
    }

    /// When to ask again if nothing happens before: later than when was asked last.
    pub(super) fn wake(&self) -> Option<Instant> {
        if self.rests {
            return None;
        }
        let measured = match self.measuring {
            Measuring::From(moment) => Some(moment),
            Measuring::Since(moment, _) => Some(moment + self.time),
            Measuring::Not | Measuring::Over => None,
        };
        measured.into_iter().chain(self.not_before).min()
    }

    /// A connection could not be made, or has ended, while `others` go on.
    pub(super) fn handle_failure(&mut self, at: Instant, others: usize) {
        self.failures += 1;
        self.at_once = (self.at_once / 2).max(1);
        self.not_before = Some(at + PAUSE * 2u32.saturating_pow(self.failures - 1));
        if !self.is_fixed {
            self.goal = others;
            self.measuring = Measuring::Over;
        }
    }

    fn measure(&mut self, now: Now) {
        match self.measuring {
            Measuring::Not if now.begun == 0 && now.up >= self.goal.min(self.most) => {
                self.measuring = Measuring::From(now.at + self.time);
            }
            Measuring::From(moment) if now.at >= moment => {
                self.measuring = Measuring::Since(now.at, now.moved);
            }
            Measuring::Since(since, moved) if now.at >= since + self.time => {
                let seconds = now.at.duration_since(since).as_secs_f64();
                self.judge(now, now.moved.saturating_sub(moved) as f64 / seconds);
            }
            _ => {}
        }
    }

    /// Twice as many, if the last ones moved at least a third of what as many before them did, and enough is left for it to
    /// be of use. As many as before, if with the last ones it was no faster.
    fn judge(&mut self, now: Now, rate: f64) {
        let up = now.up;
        let gained = |(before, rate_before): (usize, f64)| {
            let more = up as f64 / before as f64 - 1.0;
            rate >= rate_before * (1.0 + more / 3.0)
        };
        let gains = self.last.is_none_or(gained);
        let is_of_use = now.left as f64 >= rate * (self.time * WORTH_AN_ATTEMPT).as_secs_f64();
        if let Some((before, rate_before)) = self.last
            && rate < rate_before * LEAST_GAIN
        {
            self.kept = Some(before);
        }
        self.last = Some((up, rate));
        self.measuring = Measuring::Over;
        if gains && is_of_use && up < self.most {
            self.goal = 2 * up;
            self.measuring = Measuring::Not;
        }
    }

    /// With how many connections to go on, of those that there are: told once, when the last ones did not gain.
    pub(super) fn take_kept(&mut self) -> Option<usize> {
        self.kept.take()
    }
}

/// How many connections a transfer begins with, by what two busy cores moved most with (ADR 0024). A host has about 2 MB on
/// its way by each, we have 3. The first and [`AT_ONCE`] further ones are there a login earlier than one more would be.
fn at_first(round_trip: Duration, sender: Sender) -> usize {
    let (us, host) = match round_trip.as_millis() {
        0..2 => (1, 1),
        2..8 => (2, 2),
        8..30 => (5, 4),
        30..75 => (9, 12),
        75..150 => (17, 22),
        _ => (20, 28),
    };
    match sender {
        Sender::Us => us,
        Sender::Host => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const PLENTY: u64 = 1 << 40;

    /// Lets a transfer run over a line on which so many connections move `rate(connections)` octets a second. Returns how
    /// many there are in the end.
    fn connections(mut growth: Growth, rate: impl Fn(usize) -> u64) -> usize {
        let (mut at, mut up, mut moved) = (Instant::now(), 1, 0);
        for _ in 0..10_000 {
            let begun = growth.due(Now {
                at,
                moved,
                left: PLENTY,
                up,
                begun: 0,
            });
            assert!(begun <= AT_ONCE);
            up += begun;
            at += 10 * MS;
            moved += rate(up) / 100;
        }
        up
    }

    #[test]
    fn connections_are_added_while_they_gain() {
        let auto = |most| Growth::new(None, most, 100 * MS, Sender::Us);
        assert_eq!(connections(auto(64), |up| up as u64 * 30_000_000), 64);
        assert_eq!(connections(auto(20), |up| up as u64 * 30_000_000), 20);
        // The line is full with ten.
        assert_eq!(
            connections(auto(64), |up| up.min(10) as u64 * 30_000_000),
            34
        );
        let near = Growth::new(None, 64, MS, Sender::Us);
        assert_eq!(connections(near, |_| 500_000_000), 2, "one was tried");
        assert_eq!(
            connections(Growth::new(Some(7), 64, MS, Sender::Us), |_| 1_000_000),
            7
        );
        assert_eq!(
            connections(Growth::new(Some(7), 3, MS, Sender::Us), |_| 1_000_000),
            3
        );
    }

    #[test]
    fn nobody_is_woken_for_a_moment_that_has_passed() {
        let rates = [PLENTY, LEAST_LEFT, 0];
        for wanted in [None, Some(3)] {
            for (failures, left) in (0..=FAILURES).zip(rates.into_iter().cycle()) {
                let mut growth = Growth::new(wanted, 64, 100 * MS, Sender::Us);
                let begun = Instant::now();
                let mut moved = 0;
                for step in 0..1_000 {
                    let at = begun + step * 100 * MS;
                    // What is left may become little while something is waited for.
                    let left = if step % 7 == 6 { 0 } else { left };
                    moved += 10_000_000;
                    let (up, begun) = (3, 0);
                    growth.due(Now {
                        at,
                        moved,
                        left,
                        up,
                        begun,
                    });
                    assert!(growth.wake().is_none_or(|moment| moment > at));
                    if step < failures {
                        growth.handle_failure(at, 2);
                    }
                }
            }
        }
    }

    #[test]
    fn connections_that_do_not_gain_are_done_without() {
        let judged = |rate: fn(usize) -> u64, left| {
            let mut growth = Growth::new(None, 64, 100 * MS, Sender::Us);
            let (mut at, mut up, mut moved, mut kept) = (Instant::now(), 1, 0, None);
            for _ in 0..1_000 {
                let begun = 0;
                up += growth.due(Now {
                    at,
                    moved,
                    left,
                    up,
                    begun,
                });
                kept = kept.or(growth.take_kept());
                at += 10 * MS;
                moved += rate(up) / 100;
            }
            (up, kept)
        };
        let full = |up: usize| 300_000_000 - up as u64 * 1_000_000;
        assert_eq!(judged(full, PLENTY), (34, Some(17)));
        let line = |up: usize| up as u64 * 30_000_000;
        assert_eq!(judged(line, PLENTY), (64, None));
        // What is left would be there before more connections are at their speed.
        assert_eq!(judged(line, 4_000_000_000), (17, None));
        assert_eq!(judged(line, 5_200_000_000), (34, None));
    }

    #[test]
    fn little_is_not_worth_a_connection() {
        let now = |left| Now {
            at: Instant::now(),
            moved: 0,
            left,
            up: 1,
            begun: 0,
        };
        let mut auto = Growth::new(None, 64, 100 * MS, Sender::Us);
        assert_eq!(auto.due(now(40 << 20)), 0);
        assert_eq!(auto.due(now(100 << 20)), 2);
        let mut fixed = Growth::new(Some(4), 64, 100 * MS, Sender::Us);
        assert_eq!(fixed.due(now(40 << 20)), 3);
        assert_eq!(fixed.due(now(4 << 20)), 0);
    }

    #[test]
    fn a_server_that_refuses_some_is_asked_for_fewer_later_and_at_last_for_none() {
        let mut growth = Growth::new(Some(20), 64, MS, Sender::Us);
        let mut at = Instant::now();
        let now = |at, begun| Now {
            at,
            moved: 0,
            left: PLENTY,
            up: 1,
            begun,
        };
        assert_eq!(growth.due(now(at, 0)), 8);
        assert_eq!(growth.due(now(at, 8)), 0);
        growth.handle_failure(at, 8);
        assert_eq!(growth.due(now(at, 0)), 0);
        at += PAUSE;
        assert_eq!(growth.due(now(at, 0)), 4);
        for _ in 1..FAILURES {
            growth.handle_failure(at, 1);
            at += 100 * PAUSE;
        }
        assert_eq!(growth.due(now(at, 0)), 0);
        let mut auto = Growth::new(None, 64, 100 * MS, Sender::Us);
        assert_eq!(auto.due(now(at, 0)), 8);
        // `connections` has a clock of its own.
        auto.handle_failure(Instant::now(), 5);
        assert_eq!(connections(auto, |up| up as u64 * 30_000_000), 5);
    }
}
