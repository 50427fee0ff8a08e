//! A set of descriptors that programs are not to have, which changes while programs are started.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

const BITS: usize = u64::BITS as usize;
const WORDS: usize = DescriptorSet::LIMIT as usize / BITS;

/// Descriptors that a program is not to have: see [`Command::withhold`](crate::Command::withhold).
///
/// The new process looks at the set after its birth, when it has its own copy of the table of descriptors. So who puts a
/// descriptor in *before* making it inheritable, and takes it out only when it is no longer, withholds it from every such
/// program, with no lock that starts would have to wait for.
#[derive(Debug)]
pub struct DescriptorSet {
    words: [AtomicU64; WORDS],
    /// All words from here on are zero.
    used: AtomicUsize,
}

impl DescriptorSet {
    /// Descriptors are below this.
    pub const LIMIT: RawFd = 65_536;

    /// An empty set.
    pub const fn new() -> DescriptorSet {
        DescriptorSet {
            words: [const { AtomicU64::new(0) }; WORDS],
            used: AtomicUsize::new(0),
        }
    }

    /// Puts a descriptor in. False: it is none, or not below [`DescriptorSet::LIMIT`].
    #[must_use]
    pub fn insert(&self, descriptor: RawFd) -> bool {
        let Some((at, word, bit)) = self.place(descriptor) else {
            return false;
        };
        self.used.fetch_max(at + 1, Ordering::SeqCst);
        word.fetch_or(bit, Ordering::SeqCst);
        true
    }

    /// Takes a descriptor out.
    pub fn remove(&self, descriptor: RawFd) {
        if let Some((_, word, bit)) = self.place(descriptor) {
            word.fetch_and(!bit, Ordering::SeqCst);
        }
    }

    fn place(&self, descriptor: RawFd) -> Option<(usize, &AtomicU64, u64)> {
        let number = usize::try_from(descriptor).ok()?;
        let at = number / BITS;
        Some((at, self.words.get(at)?, 1 << (number % BITS)))
    }

    /// What is in it now, ascending. Neither allocates nor panics: the child calls it.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = RawFd> {
        let used = self.words.iter().take(self.used.load(Ordering::SeqCst));
        used.enumerate().flat_map(|(at, word)| {
            let bits = word.load(Ordering::SeqCst);
            let set = (0..BITS).filter(move |bit| bits >> bit & 1 == 1);
            set.map(move |bit| (at * BITS + bit) as RawFd)
        })
    }
}

impl Default for DescriptorSet {
    fn default() -> DescriptorSet {
        DescriptorSet::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_in_is_there_until_it_is_taken_out() {
        static SET: DescriptorSet = DescriptorSet::new();
        assert_eq!(SET.numbers().count(), 0);
        for number in [3, 64, 0, 65_535] {
            assert!(SET.insert(number));
        }
        assert_eq!(SET.numbers().collect::<Vec<_>>(), [0, 3, 64, 65_535]);
        SET.remove(64);
        SET.remove(5);
        assert_eq!(SET.numbers().collect::<Vec<_>>(), [0, 3, 65_535]);
    }

    #[test]
    fn what_is_no_descriptor_or_too_high_is_refused() {
        static SET: DescriptorSet = DescriptorSet::new();
        assert!(!SET.insert(-1) && !SET.insert(DescriptorSet::LIMIT));
        SET.remove(-1);
        assert_eq!(SET.numbers().count(), 0);
    }
}
