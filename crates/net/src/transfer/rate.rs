//! `--limit`: octets a second, of all hosts together.

use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The most that is given at once, so that many hosts get their turns.
const PORTION: usize = 64 * 1024;
/// What may be saved up.
const SAVED: Duration = Duration::from_millis(100);

/// The shortest wait: what is lacking may be less than the clock can tell, and a wait of nothing would spin.
const SHORTEST: Duration = Duration::from_micros(50);

/// A bucket that fills with time.
#[derive(Debug)]
pub struct Rate {
    octets_a_second: f64,
    bucket: Mutex<Bucket>,
}

#[derive(Debug)]
struct Bucket {
    octets: f64,
    at: Instant,
}

/// What may be moved now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grant {
    /// So many octets, at least one.
    Octets(usize),
    /// Nothing before this moment.
    Not(Instant),
}

impl Rate {
    /// So many octets a second, at least 1.
    pub fn new(octets_a_second: u64) -> Rate {
        Rate {
            octets_a_second: octets_a_second.max(1) as f64,
            bucket: Mutex::new(Bucket {
                octets: 0.0,
                at: Instant::now(),
            }),
        }
    }

    /// Takes what may be moved of `wanted` octets.
    pub(super) fn take(&self, now: Instant, wanted: usize) -> Grant {
        let mut bucket = match self.bucket.lock() {
            Ok(bucket) => bucket,
            // Numbers are as good after a panic as before.
            Err(poisoned) => poisoned.into_inner(),
        };
        let passed = now.saturating_duration_since(bucket.at);
        bucket.at = bucket.at.max(now);
        let most = (self.octets_a_second * SAVED.as_secs_f64()).max(PORTION as f64);
        bucket.octets = (bucket.octets + passed.as_secs_f64() * self.octets_a_second).min(most);
        // Small grants would make small packets.
        let portion = wanted.min(PORTION);
        let lacking = portion as f64 - bucket.octets;
        if lacking > 0.0 {
            let wait = Duration::try_from_secs_f64(lacking / self.octets_a_second);
            let wait = wait.unwrap_or(Duration::from_secs(3600)).max(SHORTEST);
            return Grant::Not(now + wait);
        }
        bucket.octets -= portion as f64;
        Grant::Octets(portion)
    }

    /// Puts back what was not moved after all.
    pub(super) fn give_back(&self, octets: usize) {
        if let Ok(mut bucket) = self.bucket.lock() {
            bucket.octets += octets as f64;
        }
    }
}

/// What of `wanted` octets may be moved now; where it is nothing, `wake` is no later than when it will be more.
pub(super) fn granted(rate: Option<&Rate>, wanted: usize, wake: &mut Option<Instant>) -> usize {
    match rate.map(|rate| rate.take(Instant::now(), wanted)) {
        None => wanted,
        Some(Grant::Octets(granted)) => granted,
        Some(Grant::Not(until)) => {
            *wake = wake.iter().copied().chain([until]).min();
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_granted_than_the_rate() {
        let rate = Rate::new(1_000_000);
        let begun = Instant::now();
        let (mut now, mut moved) = (begun, 0);
        while now < begun + Duration::from_secs(10) {
            match rate.take(now, 1_000_000) {
                Grant::Octets(octets) => moved += octets,
                Grant::Not(until) => {
                    assert!(until > now);
                    now = until;
                }
            }
        }
        assert!((9_800_000..=10_200_000).contains(&moved), "{moved}");
    }
}
