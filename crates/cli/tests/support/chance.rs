//! Moments and contents by chance, the same in each run unless somebody wants others.

use std::env;

/// A number from the environment, or this one.
pub(crate) fn number(variable: &str, otherwise: u64) -> u64 {
    env::var(variable).map_or(otherwise, |text| text.parse().unwrap())
}

/// Marsaglia's xorshift64.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    /// That of kills: SSHOAL_KILL_SEED, which is told, or this one.
    pub(crate) fn of_kills(otherwise: u64) -> Chance {
        let seed = number("SSHOAL_KILL_SEED", otherwise);
        println!("SSHOAL_KILL_SEED={seed}");
        Chance(seed)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}
