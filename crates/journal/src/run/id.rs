//! What a run is called.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Crockford's alphabet for base 32: in the order of ASCII, without letters that look like digits.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// Characters of an identifier.
const LEN: usize = 12;
/// Parts of a second that are told from one another, and bits of them behind the seconds.
const TICKS_A_SECOND: u64 = 256;
/// Bits of chance behind the time.
const CHANCE: u32 = 20;

/// A run's identifier: the time at which it began, in 1/256 s, and chance, in twelve digits and letters. In the order of their
/// text runs are in the order in which they began; two of the same moment, perhaps on two machines, are called differently
/// but for one time in a million.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(u64);

/// A text that is no identifier of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a run is called by {LEN} digits and small letters, without i, l, o and u")]
pub struct NoRunId;

impl RunId {
    /// The identifier of a run that begins now, which is so long after 1970; until 2106.
    pub fn new(now: Duration, chance: u32) -> RunId {
        let seconds = now.as_secs() & u64::from(u32::MAX);
        let part = u64::from(now.subsec_nanos()) * TICKS_A_SECOND / 1_000_000_000;
        let ticks = seconds * TICKS_A_SECOND + part;
        RunId(ticks << CHANCE | u64::from(chance) & ((1 << CHANCE) - 1))
    }

    /// When the run began, since 1970.
    pub fn began(self) -> Duration {
        let ticks = self.0 >> CHANCE;
        let nanoseconds = (ticks % TICKS_A_SECOND) * 1_000_000_000 / TICKS_A_SECOND;
        Duration::new(ticks / TICKS_A_SECOND, nanoseconds as u32)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(LEN);
        for place in (0..LEN).rev() {
            text.push(char::from(ALPHABET[(self.0 >> (5 * place)) as usize & 31]));
        }
        formatter.pad(&text)
    }
}

impl FromStr for RunId {
    type Err = NoRunId;

    fn from_str(text: &str) -> Result<Self, NoRunId> {
        if text.len() != LEN {
            return Err(NoRunId);
        }
        let digits = text.bytes().map(|byte| {
            let digit = ALPHABET.iter().position(|known| *known == byte);
            digit.map(|digit| digit as u64).ok_or(NoRunId)
        });
        let mut number = 0;
        for digit in digits {
            number = number << 5 | digit?;
        }
        Ok(RunId(number))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read_and_later_runs_sort_behind(
            first in (0..u64::from(u32::MAX), 0..1_000_000_000u32, any::<u32>()),
            second in (0..u64::from(u32::MAX), 0..1_000_000_000u32, any::<u32>()),
        ) {
            let ids = [first, second].map(|(seconds, nanoseconds, chance)| {
                RunId::new(Duration::new(seconds, nanoseconds), chance)
            });
            for id in ids {
                prop_assert_eq!(id.to_string().parse(), Ok(id));
            }
            let [one, other] = ids;
            prop_assert_eq!(one.cmp(&other), one.to_string().cmp(&other.to_string()));
            prop_assert!(first.0 >= second.0 || one < other);
            let off = Duration::new(first.0, first.1) - one.began();
            prop_assert!(off <= Duration::from_nanos(1_000_000_000 / TICKS_A_SECOND + 1), "{off:?}");
        }
    }

    #[test]
    fn other_texts_are_none() {
        for text in [
            "",
            "0",
            "dc3qq07qjw1hh",
            "dc3qq07qjil0",
            "DC3QQ07QJW1H",
            "../../../etc",
        ] {
            assert_eq!(text.parse::<RunId>(), Err(NoRunId), "{text}");
        }
        let id = RunId::new(Duration::from_secs(1_700_000_000), 7);
        assert_eq!(id.to_string().len(), LEN);
    }
}
