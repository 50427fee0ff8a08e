//! An image on its way onto a device: read ahead, and handed on in order.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use crate::Trouble;
use crate::sftp::SharedOctets;
use crate::upload::contents::octets_of;

/// What is read of an image, and what of that has been handed on.
pub(super) struct Contents {
    /// Octets in all, if they are known from the beginning.
    size: Option<u64>,
    /// Where it ends, as soon as that is known.
    end: Option<u64>,
    block: usize,
    ahead: usize,
    /// From where is read next.
    next: u64,
    /// Reads without an answer.
    reading: usize,
    /// What came before its turn.
    early: BTreeMap<u64, SharedOctets>,
    /// What waits to be handed on, in order, and its octets.
    waiting: VecDeque<SharedOctets>,
    waits: usize,
    /// Octets of the first of them that have been handed on.
    used: usize,
    /// Octets handed on.
    pub(super) put: u64,
}

impl Contents {
    pub(super) fn new(size: Option<u64>, block: usize, ahead: usize) -> Contents {
        Contents {
            size,
            end: size,
            block,
            ahead,
            next: 0,
            reading: 0,
            early: BTreeMap::new(),
            waiting: VecDeque::new(),
            waits: 0,
            used: 0,
            put: 0,
        }
    }

    /// Octets in all, if they are known from the beginning.
    pub(super) fn size(&self) -> Option<u64> {
        self.size
    }

    /// The image is open, and has so many octets.
    pub(super) fn set_size(&mut self, size: Option<u64>) {
        (self.size, self.end) = (size, size);
    }

    /// Where it ends, if that is known: a read beyond the end of what ends when it ends may be answered first, and tells no more than
    /// where nothing is.
    pub(super) fn end(&self) -> Option<u64> {
        let is_known = |&end: &u64| self.size.is_some() || self.known_to() == end;
        self.end.filter(is_known)
    }

    /// Octets that have come one after the other.
    pub(super) fn known_to(&self) -> u64 {
        self.put + self.waits as u64
    }

    /// Whether anything has been handed on.
    pub(super) fn has_begun(&self) -> bool {
        self.put > 0
    }

    pub(super) fn is_reading(&self) -> bool {
        self.reading > 0
    }

    /// Whether all has been handed on.
    pub(super) fn is_over(&self) -> bool {
        self.end == Some(self.put)
    }

    /// What to read next, where `sent_later` octets wait for their channel. What ends when it ends is announced by whole
    /// large blocks, and so one of them must find room.
    pub(super) fn next_read(&mut self, sent_later: usize, large: u64) -> Option<(u64, usize)> {
        let room = match self.size {
            Some(_) => self.block * self.ahead,
            None => self.block * self.ahead + large as usize,
        };
        let early: usize = self.early.values().map(octets_of).sum();
        let held = sent_later + self.waits + early + self.reading * self.block;
        let left = self.end.unwrap_or(u64::MAX).saturating_sub(self.next);
        if self.reading >= self.ahead || held + self.block > room || left == 0 {
            return None;
        }
        let len = left.min(self.block as u64);
        let offset = self.next;
        self.next += len;
        self.reading += 1;
        Some((offset, len as usize))
    }

    /// Takes what was read.
    pub(super) fn take(
        &mut self,
        offset: u64,
        wanted: usize,
        data: Result<SharedOctets, String>,
    ) -> Result<(), Trouble> {
        self.reading -= 1;
        let data = data.map_err(|error| Trouble::Local {
            doing: "reading",
            error,
        })?;
        let len = octets_of(&data);
        if len < wanted {
            if self.size.is_some() {
                return Err(Trouble::Changed);
            }
            let end = offset + len as u64;
            self.end = Some(self.end.map_or(end, |earlier| earlier.min(end)));
        }
        if len > 0 {
            self.early.insert(offset, data);
        }
        while let Some(data) = self.early.remove(&self.known_to()) {
            self.waits += octets_of(&data);
            self.waiting.push_back(data);
        }
        Ok(())
    }

    /// Hands on the next octets, at most `most`: where they stand in what was read.
    pub(super) fn hand_on(
        &mut self,
        most: u64,
        to: impl FnOnce(&SharedOctets, Range<usize>),
    ) -> Option<u64> {
        let first = self.waiting.front()?;
        let rest = octets_of(first) - self.used;
        let len = usize::try_from(most).unwrap_or(usize::MAX).min(rest);
        to(first, self.used..self.used + len);
        self.used += len;
        if len == rest {
            self.waiting.pop_front();
            self.used = 0;
        }
        self.waits -= len;
        self.put += len as u64;
        Some(len as u64)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::Arc;

    use super::*;

    /// Reads answered in this order give the image in its own.
    #[test]
    fn octets_are_handed_on_in_order_whatever_comes_first() {
        for size in [None, Some(1050)] {
            let mut contents = Contents::new(size, 100, 4);
            let image: Vec<u8> = (0..1050u32).map(|at| (at / 5) as u8).collect();
            let mut got = Vec::new();
            while !contents.is_over() {
                let mut reads = Vec::new();
                while let Some(read) = contents.next_read(0, 0) {
                    reads.push(read);
                }
                assert!(!reads.is_empty() && reads.len() <= 4);
                for (offset, len) in reads.into_iter().rev() {
                    let at = (offset as usize).min(image.len());
                    let data = image[at..image.len().min(at + len)].to_vec();
                    contents.take(offset, len, Ok(Arc::new(data))).unwrap();
                    assert!(contents.end().is_none_or(|end| end == 1050), "too early");
                }
                while contents
                    .hand_on(70, |octets, range| {
                        got.extend_from_slice(&(**octets).as_ref()[range])
                    })
                    .is_some()
                {}
            }
            assert!(got == image && contents.known_to() == 1050);
        }
    }

    #[test]
    fn what_became_shorter_has_changed() {
        let mut contents = Contents::new(Some(100), 100, 2);
        let (offset, len) = contents.next_read(0, 0).unwrap();
        let short: Result<SharedOctets, String> = Ok(Arc::new(vec![1; 99]));
        assert_eq!(contents.take(offset, len, short), Err(Trouble::Changed));
    }
}
