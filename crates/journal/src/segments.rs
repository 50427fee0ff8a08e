//! Sets of octets of one file.

use std::ops::Range;

/// Segments that one file's set may have: as many as there are lanes that write it, with room to spare. The caller joins what
/// lies on both sides of a hole.
pub const MAX_SEGMENTS: usize = 4096;

/// Octets of a file, as segments in order that neither overlap nor touch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Segments(Vec<Range<u64>>);

impl Segments {
    /// The segments, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Range<u64>> {
        self.0.iter()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Octets in all.
    pub fn octets(&self) -> u64 {
        self.0
            .iter()
            .map(|segment| segment.end - segment.start)
            .sum()
    }

    /// Where the last one ends.
    pub fn end(&self) -> u64 {
        self.0.last().map_or(0, |segment| segment.end)
    }

    /// Adds a segment. Where they would be more than [`MAX_SEGMENTS`] the shortest is left out: it is transferred again.
    pub fn insert(&mut self, new: Range<u64>) {
        if new.start >= new.end {
            return;
        }
        let first = self.0.partition_point(|segment| segment.end < new.start);
        let last = self.0.partition_point(|segment| segment.start <= new.end);
        if first == last {
            self.0.insert(first, new);
            if self.0.len() > MAX_SEGMENTS {
                self.leave_shortest_out();
            }
            return;
        }
        let start = self.0[first].start.min(new.start);
        let end = self.0[last - 1].end.max(new.end);
        self.0.drain(first + 1..last);
        self.0[first] = start..end;
    }

    fn leave_shortest_out(&mut self) {
        let segments = self.0.iter().enumerate();
        let shortest = segments.min_by_key(|(_, segment)| segment.end - segment.start);
        if let Some((shortest, _)) = shortest {
            self.0.remove(shortest);
        }
    }

    /// Adds all of another set.
    pub fn extend(&mut self, others: &Segments) {
        for segment in others.iter() {
            self.insert(segment.clone());
        }
    }

    /// What of `from`, which is in order, is not in this set.
    pub fn missing(&self, from: &[Range<u64>]) -> Vec<Range<u64>> {
        let mut missing = Vec::new();
        for wanted in from {
            let mut at = wanted.start;
            let first = self.0.partition_point(|segment| segment.end <= at);
            for segment in &self.0[first..] {
                if segment.start >= wanted.end {
                    break;
                }
                if at < segment.start {
                    missing.push(at..segment.start);
                }
                at = segment.end;
            }
            if at < wanted.end {
                missing.push(at..wanted.end);
            }
        }
        missing
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn piece() -> impl Strategy<Value = Range<u64>> {
        (0u64..200, 0u64..40).prop_map(|(start, len)| start..start + len)
    }

    proptest! {
        /// Against a set that has every octet by itself.
        #[test]
        fn they_hold_what_was_put_in_and_miss_the_rest(
            pieces in prop::collection::vec(piece(), 0..30),
            wanted in piece(),
        ) {
            let mut segments = Segments::default();
            let mut naive = std::collections::BTreeSet::new();
            for piece in pieces {
                segments.insert(piece.clone());
                naive.extend(piece);
            }
            let held: Vec<u64> = segments.iter().cloned().flatten().collect();
            prop_assert_eq!(&held, &naive.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(segments.octets(), naive.len() as u64);
            prop_assert_eq!(segments.end(), naive.last().map_or(0, |last| last + 1));
            for pair in segments.0.windows(2) {
                prop_assert!(pair[0].end < pair[1].start, "they touch: {:?}", segments);
            }
            let missing: Vec<u64> = segments.missing(std::slice::from_ref(&wanted)).into_iter().flatten().collect();
            let expected: Vec<u64> = wanted.filter(|octet| !naive.contains(octet)).collect();
            prop_assert_eq!(missing, expected);
        }
    }

    #[test]
    fn no_more_are_kept_than_the_limit() {
        let mut segments = Segments::default();
        for number in 0..2 * MAX_SEGMENTS as u64 {
            segments.insert(2 * number..2 * number + 1);
        }
        assert_eq!(segments.iter().len(), MAX_SEGMENTS);
        let last = 4 * MAX_SEGMENTS as u64;
        segments.insert(last - 1..last);
        assert_eq!(segments.iter().len(), MAX_SEGMENTS);
        segments.insert(last - 3..last - 1);
        assert_eq!(segments.iter().len(), MAX_SEGMENTS - 1, "two became one");
    }

    #[test]
    fn beyond_the_limit_the_shortest_goes() {
        let mut segments = Segments::default();
        let starts = (0..MAX_SEGMENTS as u64).map(|number| 1000 * number);
        for start in starts.clone() {
            segments.insert(start..start + 100);
        }
        let before = segments.clone();
        segments.insert(200..299);
        assert_eq!(segments, before);
        segments.insert(200..301);
        assert_eq!(segments.iter().len(), MAX_SEGMENTS);
        assert_eq!(segments.octets(), before.octets() + 1);
    }
}
