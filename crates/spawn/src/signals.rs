//! Sets of signals, as the kernel has them.

use std::iter;

use rustix::process::Signal;

/// A set of signals: bit `n - 1` stands for signal `n`, real-time signals included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignalSet(u64);

impl SignalSet {
    /// No signal.
    pub const EMPTY: SignalSet = SignalSet(0);
    /// Every signal there is.
    pub const ALL: SignalSet = SignalSet(u64::MAX);

    /// This set and one signal more.
    #[must_use]
    pub const fn with(self, signal: Signal) -> SignalSet {
        SignalSet(self.0 | bit(signal.as_raw()))
    }

    /// This set without one signal.
    #[must_use]
    pub const fn without(self, signal: Signal) -> SignalSet {
        SignalSet(self.0 & !bit(signal.as_raw()))
    }

    /// Whether the signal is in the set.
    pub const fn contains(self, signal: Signal) -> bool {
        self.0 & bit(signal.as_raw()) != 0
    }

    /// The kernel's `sigset_t`.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// From the kernel's `sigset_t`.
    pub const fn from_bits(bits: u64) -> SignalSet {
        SignalSet(bits)
    }

    /// The signals that are not in the set.
    pub(crate) const fn complement(self) -> SignalSet {
        SignalSet(!self.0)
    }

    /// The numbers of its signals, ascending.
    pub(crate) fn numbers(self) -> impl Iterator<Item = i32> {
        let mut left = self.0;
        iter::from_fn(move || {
            let lowest = (left != 0).then(|| left.trailing_zeros())?;
            left &= left.wrapping_sub(1);
            Some(lowest as i32 + 1)
        })
    }
}

impl FromIterator<Signal> for SignalSet {
    fn from_iter<I: IntoIterator<Item = Signal>>(signals: I) -> SignalSet {
        signals.into_iter().fold(SignalSet::EMPTY, SignalSet::with)
    }
}

/// The bit of a signal's number; signals go from 1 to 64.
const fn bit(number: i32) -> u64 {
    1u64.rotate_left(number.wrapping_sub(1) as u32)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_the_kernel_s() {
        assert_eq!(SignalSet::EMPTY.with(Signal::HUP).bits(), 1);
        assert_eq!(SignalSet::EMPTY.with(Signal::PIPE).bits(), 1 << 12);
        assert!(!SignalSet::ALL.without(Signal::TERM).contains(Signal::TERM));
        assert!(SignalSet::ALL.without(Signal::TERM).contains(Signal::INT));
    }

    #[test]
    fn numbers_are_those_that_were_put_in() {
        let set: SignalSet = [Signal::TERM, Signal::HUP].into_iter().collect();
        assert_eq!(set.numbers().collect::<Vec<_>>(), [1, 15]);
        assert_eq!(SignalSet::ALL.numbers().count(), 64);
    }
}
