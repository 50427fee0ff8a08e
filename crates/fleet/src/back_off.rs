//! When a host that was turned away comes back.

use std::time::Duration;

use crate::{HostId, JumpId, RetryPolicy};

/// A retry policy with the seed of its jitter.
#[derive(Debug)]
pub(crate) struct BackOff {
    pub(crate) policy: RetryPolicy,
    pub(crate) seed: u64,
}

impl BackOff {
    /// The delay after a host's attempt number `attempt`, 1 for the first. See [`RetryPolicy`].
    pub(crate) fn delay(&self, host: HostId, attempt: u32) -> Duration {
        self.draw(u64::from(host.0) << 32 | u64::from(attempt), attempt)
    }

    /// The same for a jump host.
    pub(crate) fn jump_delay(&self, jump: JumpId, attempt: u32) -> Duration {
        // No attempt has a number so high: hosts and jump hosts draw apart.
        let lot = u64::from(jump.0) << 32 | 1 << 31 | u64::from(attempt);
        self.draw(lot, attempt)
    }

    fn draw(&self, lot: u64, attempt: u32) -> Duration {
        let doublings = attempt.saturating_sub(1).min(31);
        let longest = self
            .policy
            .first_delay
            .saturating_mul(1 << doublings)
            .min(self.policy.max_delay);
        let drawn = mix(self.seed ^ mix(lot));
        let half = longest / 2;
        longest - half.mul_f64(drawn as f64 / u64::MAX as f64)
    }
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
/// 2014): spreads every bit of the input over the whole output.
fn mix(input: u64) -> u64 {
    let mut mixed = input.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
#[path = "back_off_tests.rs"]
mod tests;
