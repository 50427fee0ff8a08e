//! One direction of the line, without clock or device: packets go in with the time, and come out when due.
//!
//! ```text
//! offer -> lost? -> room in the queue? -> wait for the rate -> fly for the delay -> take_due
//! ```
//!
//! Every segment of a large packet is judged alone; what survives of it flies on together.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use super::packet::Packet;
use super::spec::LineSpec;

/// Bytes that one direction keeps in memory at most, and a packet's length on top: 100 ms at 40 Gbit/s.
const MAX_FLYING_BYTES: usize = 512 * 1024 * 1024;

/// One direction of a delay line. `T` goes along with each packet. Times count from the line's start.
#[derive(Debug)]
pub(super) struct Queue<T> {
    delay: Duration,
    rate_bits: Option<u64>,
    limit: u64,
    loss: f64,
    draws: SplitMix64,
    /// When the last admitted segment has been sent at the line's rate.
    sent_until: Duration,
    flying: VecDeque<Flying<T>>,
    flying_bytes: usize,
    max_flying_bytes: usize,
}

#[derive(Debug)]
struct Flying<T> {
    due: Duration,
    packet: Packet,
    tag: T,
}

/// What became of a packet's segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Admission {
    /// Segments that will arrive.
    pub(super) admitted: u64,
    /// Segments lost by chance.
    pub(super) lost: u64,
    /// Segments for which the queue had no room.
    pub(super) overflowed: u64,
}

enum Fate {
    Admitted,
    Lost,
    Overflowed,
}

impl<T: Copy> Queue<T> {
    /// A queue as the line's specification says. `stream` sets one direction's losses apart from the other's.
    pub(super) fn new(spec: &LineSpec, stream: u64) -> Queue<T> {
        Queue {
            delay: spec.delay,
            rate_bits: spec.rate_bits,
            limit: spec.queue_limit(),
            loss: spec.loss,
            draws: SplitMix64::new(spec.seed, stream),
            sent_until: Duration::ZERO,
            flying: VecDeque::new(),
            flying_bytes: 0,
            max_flying_bytes: MAX_FLYING_BYTES,
        }
    }

    /// Take in a packet that was sent at `now`. Times must not go backwards.
    pub(super) fn offer(&mut self, now: Duration, packet: Packet, tag: T) -> Admission {
        let segments = packet.segments();
        let mut admission = Admission::default();
        let mut run = 0..0;
        for segment in 0..segments {
            match self.judge(now, packet.segment_len(segment)) {
                Fate::Admitted => {
                    admission.admitted += 1;
                    run.end = segment + 1;
                    continue;
                }
                Fate::Lost => admission.lost += 1,
                Fate::Overflowed => admission.overflowed += 1,
            }
            self.send_run(now, &packet, run, tag);
            run = segment + 1..segment + 1;
        }
        if run == (0..segments) {
            self.send(now, packet, tag);
        } else {
            self.send_run(now, &packet, run, tag);
        }
        admission
    }

    /// When [`Queue::take_due`] will next have something.
    pub(super) fn next_due(&self) -> Option<Duration> {
        self.flying.front().map(|flying| flying.due)
    }

    /// The next packet that has arrived by `now`.
    pub(super) fn take_due(&mut self, now: Duration) -> Option<(Packet, T)> {
        self.next_due().filter(|&due| due <= now)?;
        let flying = self.flying.pop_front()?;
        self.flying_bytes -= flying.packet.bytes().len();
        Some((flying.packet, flying.tag))
    }

    /// Decide one segment, and let an admitted one take its time at the line's rate.
    fn judge(&mut self, now: Duration, length: usize) -> Fate {
        if self.loss > 0.0 && self.draws.fraction() < self.loss {
            return Fate::Lost;
        }
        if self.flying_bytes >= self.max_flying_bytes {
            return Fate::Overflowed;
        }
        let Some(rate) = self.rate_bits else {
            return Fate::Admitted;
        };
        if self.waiting_bytes(now, rate) + length as u64 > self.limit {
            return Fate::Overflowed;
        }
        let nanoseconds = (length as u64 * 8 * 1_000_000_000).div_ceil(rate);
        self.sent_until = self.sent_until.max(now) + Duration::from_nanos(nanoseconds);
        Fate::Admitted
    }

    /// How much the rate still holds back.
    fn waiting_bytes(&self, now: Duration, rate: u64) -> u64 {
        let waiting = self.sent_until.saturating_sub(now).as_nanos();
        u64::try_from(waiting * u128::from(rate) / 8_000_000_000).unwrap_or(u64::MAX)
    }

    fn send_run(&mut self, now: Duration, packet: &Packet, run: Range<usize>, tag: T) {
        if !run.is_empty() {
            self.send(now, packet.cut(run), tag);
        }
    }

    /// A packet arrives when its last bit does.
    fn send(&mut self, now: Duration, packet: Packet, tag: T) {
        self.flying_bytes += packet.bytes().len();
        let due = self.sent_until.max(now) + self.delay;
        self.flying.push_back(Flying { due, packet, tag });
    }
}

/// Vigna's SplitMix64: enough chance for losses, and the same on every machine.
#[derive(Debug)]
struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

    fn new(seed: u64, stream: u64) -> SplitMix64 {
        let mut draws = SplitMix64 { state: seed };
        draws.state = draws.next().wrapping_add(stream);
        draws.state = draws.next();
        draws
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(Self::GAMMA);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Evenly from 0 up to, not including, 1: the upper 53 bits, which an f64 holds exactly.
    fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
