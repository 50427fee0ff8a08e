//! Who transfers which octets of one file: each of several channels has a span, and takes half of another's when its own
//! is done.

use std::ops::Range;

/// Octets of a file that are still to be begun, by one channel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) at: u64,
    pub(crate) end: u64,
}

/// Less than this is not worth the time of a channel that has not opened the file: that costs a round trip, in which a
/// channel moves half as much.
pub(crate) const LEAST_STOLEN: u64 = 4 * 1024 * 1024;
/// Less than this is not worth dividing at all. A channel that is slower than others would end long after them with more.
pub(crate) const LEAST_DIVIDED: u64 = GRAIN;
/// Where spans may be divided: whole requests, whole pages.
const GRAIN: u64 = 256 * 1024;

impl Span {
    pub(crate) fn new(at: u64, len: u64) -> Span {
        let end = at.saturating_add(len);
        Span { at, end }
    }

    /// Adds a span to others, as a part of what it follows or precedes.
    pub(crate) fn merge(spans: &mut Vec<Span>, mut span: Span) {
        if span.left() == 0 {
            return;
        }
        spans.retain(|other| {
            let touches = other.end == span.at || span.end == other.at;
            if touches {
                span = Span {
                    at: span.at.min(other.at),
                    end: span.end.max(other.end),
                };
            }
            !touches
        });
        spans.push(span);
    }

    pub(crate) fn left(&self) -> u64 {
        self.end.saturating_sub(self.at)
    }

    /// Takes the next octets, at most `most`.
    pub(crate) fn take(&mut self, most: u64) -> Option<(u64, u64)> {
        let len = self.left().min(most);
        let at = self.at;
        self.at += len;
        (len > 0).then_some((at, len))
    }

    /// Takes the next octets that are among these ranges, which are in order: those between them are not transferred.
    pub(crate) fn take_of(
        &mut self,
        ranges: Option<&[Range<u64>]>,
        most: u64,
    ) -> Option<(u64, u64)> {
        let Some(ranges) = ranges else {
            return self.take(most);
        };
        let first = ranges.partition_point(|range| range.end <= self.at);
        match ranges.get(first) {
            Some(range) => {
                self.at = self.at.max(range.start).min(self.end);
                self.take(most.min(range.end.saturating_sub(self.at)))
            }
            None => {
                self.at = self.end;
                None
            }
        }
    }

    /// Gives the second half away, if that has at least `least` octets.
    pub(crate) fn give_half(&mut self, least: u64) -> Option<Span> {
        if self.left() < 2 * least.max(GRAIN) {
            return None;
        }
        let middle = (self.at + self.left() / 2) / GRAIN * GRAIN;
        let given = Span {
            at: middle,
            end: self.end,
        };
        self.end = middle;
        Some(given)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// However spans are taken from and divided, every octet is taken once.
        #[test]
        fn every_octet_is_taken_once(size in 0u64..200_000_000, steps in prop::collection::vec((0usize..4, any::<bool>(), any::<bool>()), 0..400)) {
            let mut spans = vec![Span { at: 0, end: size }];
            let mut taken = Vec::new();
            for (who, steals, is_open) in steps {
                let least = if is_open { LEAST_DIVIDED } else { LEAST_STOLEN };
                let who = who % spans.len();
                match steals {
                    true => {
                        if let Some(half) = spans[who].give_half(least) {
                            prop_assert!(half.left() >= least && spans[who].left() > least - GRAIN);
                            spans.push(half);
                        }
                    }
                    false => taken.extend(spans[who].take(1_000_000)),
                }
            }
            for span in &mut spans {
                while let Some(piece) = span.take(3_000_000) {
                    taken.push(piece);
                }
            }
            taken.sort_unstable();
            let mut at = 0;
            for (offset, len) in taken {
                prop_assert_eq!(offset, at);
                at += len;
            }
            prop_assert_eq!(at, size);
        }
    }
}
