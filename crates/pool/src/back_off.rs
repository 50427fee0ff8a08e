//! When a host that was lost is logged in to again.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use sshoal_fleet::FailureKind;

/// The longest first delay.
const FIRST: Duration = Duration::from_secs(1);
/// No delay is longer: a host that was away for hours is back within minutes, and asked no more than a monitor would.
const LONGEST: Duration = Duration::from_secs(300);
/// A connection that stood for so long was no failure: the next delay is a first one again.
const STEADY: Duration = Duration::from_secs(60);

/// Attempts in a row that came to nothing.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BackOff {
    failures: u32,
}

impl BackOff {
    /// The next delay, drawn from the upper half of what doubles with each failure: hosts that were lost together come back
    /// apart. `stood` is how long the connection was there, if it was.
    pub(crate) fn next(&mut self, stood: Option<Duration>) -> Duration {
        if stood.is_some_and(|stood| stood >= STEADY) {
            self.failures = 0;
        }
        let longest = FIRST
            .saturating_mul(1 << self.failures.min(16))
            .min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        // As good as random, and different in every process.
        let random = RandomState::new().hash_one(self.failures) % 1024;
        longest / 2 + longest * random as u32 / 2048
    }

    /// There is reason to begin anew.
    pub(crate) fn forget(&mut self) {
        self.failures = 0;
    }
}

/// Whether a host that failed so is worth trying again with nobody there: what the server or its key says will be the same,
/// and every login that is refused is one more in its log.
pub(crate) fn may_pass(kind: FailureKind) -> bool {
    !matches!(
        kind,
        FailureKind::Protocol
            | FailureKind::NoCommonAlgorithm
            | FailureKind::HostKeyUnknown
            | FailureKind::HostKeyChanged
            | FailureKind::HostKeyRevoked
            | FailureKind::AuthDenied
            | FailureKind::PasswordExpired
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_longest_and_begin_anew_after_a_steady_connection() {
        let mut back_off = BackOff::default();
        let delays: Vec<_> = (0..12).map(|_| back_off.next(None)).collect();
        for (place, delay) in delays.iter().enumerate() {
            let longest = FIRST.saturating_mul(1 << place).min(LONGEST);
            assert!(*delay >= longest / 2 && *delay <= longest, "{delays:?}");
        }
        assert!(back_off.next(Some(Duration::from_secs(1))) >= LONGEST / 2);
        assert!(back_off.next(Some(STEADY)) <= FIRST);
        back_off.forget();
        assert!(back_off.next(None) <= FIRST);
    }
}
