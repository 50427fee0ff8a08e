//! Output of one stream of one host, kept until it can be shown: in memory first, then in the spill file.

use std::{
    hash::{BuildHasher as _, Hasher as _, RandomState},
    io::{self, Read, Write},
};

use crate::{
    sanitise::push_visible_lines,
    spill::{Extent, Spill},
};

/// How much of one stream stays in memory before it is moved to the spill file, in bytes.
pub(crate) const MAX_IN_MEMORY: usize = 64 * 1024;

/// How much all captures together may hold in memory while each of them still may grow to
/// [`MAX_IN_MEMORY`]. Above it a stream moves when it has [`MIN_EXTENT`].
pub(crate) const MAX_IN_MEMORY_TOTAL: usize = 64 * 1024 * 1024;

/// The least that is moved to the spill file at once: smaller pieces would cost more to find than to keep.
pub(crate) const MIN_EXTENT: usize = 4 * 1024;

/// A growing run of bytes. The last ones are in memory, those before them in the spill file.
#[derive(Default)]
pub(crate) struct Capture {
    extents: Vec<Extent>,
    spilled: u64,
    tail: Vec<u8>,
    last: Option<u8>,
}

impl Capture {
    pub(crate) fn len(&self) -> u64 {
        self.spilled + self.tail.len() as u64
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The byte that came last.
    pub(crate) fn last(&self) -> Option<u8> {
        self.last
    }

    pub(crate) fn push(&mut self, bytes: &[u8], spill: &mut Spill) -> io::Result<()> {
        self.tail.extend_from_slice(bytes);
        self.last = bytes.last().copied().or(self.last);
        spill.in_memory += bytes.len();
        let crowded = spill.in_memory > MAX_IN_MEMORY_TOTAL;
        let limit = if crowded { MIN_EXTENT } else { MAX_IN_MEMORY };
        if self.tail.len() < limit {
            return Ok(());
        }
        let extent = spill.append(&self.tail)?;
        spill.in_memory -= self.tail.len();
        self.spilled += extent.len;
        self.tail = Vec::new();
        match self.extents.last_mut() {
            Some(last) if last.offset + last.len == extent.offset => last.len += extent.len,
            _ => self.extents.push(extent),
        }
        Ok(())
    }

    /// Frees memory and space, and leaves an empty capture.
    pub(crate) fn clear(&mut self, spill: &mut Spill) -> io::Result<()> {
        let Capture { extents, tail, .. } = std::mem::take(self);
        spill.in_memory -= tail.len();
        if extents.is_empty() {
            Ok(())
        } else {
            spill.release(&extents)
        }
    }

    /// The bytes from the first one on.
    pub(crate) fn reader<'a>(&'a self, spill: &'a Spill) -> CaptureReader<'a> {
        CaptureReader {
            extents: &self.extents,
            done: 0,
            tail: &self.tail,
            spill,
        }
    }

    /// Hands the bytes over in blocks, of which none ends inside a UTF-8 character or between CR and LF.
    pub(crate) fn for_each_text_block(
        &self,
        spill: &Spill,
        mut each: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        if self.extents.is_empty() {
            return each(&self.tail);
        }
        let mut reader = self.reader(spill);
        let mut block = vec![0; MAX_IN_MEMORY];
        let mut carried = 0;
        loop {
            let filled = carried + fill(&mut reader, &mut block[carried..])?;
            if filled < block.len() {
                return each(&block[..filled]);
            }
            let cut = filled - unfinished_text(&block);
            each(&block[..cut])?;
            block.copy_within(cut.., 0);
            carried = filled - cut;
        }
    }

    /// Writes the bytes as a terminal may show them.
    pub(crate) fn write_visible(&self, spill: &Spill, out: &mut impl Write) -> io::Result<()> {
        let mut visible = Vec::new();
        self.for_each_text_block(spill, |block| {
            visible.clear();
            push_visible_lines(block, &mut visible);
            out.write_all(&visible)
        })
    }

    /// A hash of the bytes, the same however they came and wherever they are kept.
    pub(crate) fn hash(&self, spill: &Spill, state: &RandomState) -> io::Result<u64> {
        let mut hasher = state.build_hasher();
        if self.extents.is_empty() {
            hasher.write(&self.tail);
            return Ok(hasher.finish());
        }
        let mut reader = self.reader(spill);
        let mut block = vec![0; MAX_IN_MEMORY];
        loop {
            let count = fill(&mut reader, &mut block)?;
            hasher.write(&block[..count]);
            if count < block.len() {
                return Ok(hasher.finish());
            }
        }
    }

    pub(crate) fn same_as(&self, other: &Capture, spill: &Spill) -> io::Result<bool> {
        if self.len() != other.len() {
            return Ok(false);
        }
        if self.extents.is_empty() && other.extents.is_empty() {
            return Ok(self.tail == other.tail);
        }
        let (mut left, mut right) = (self.reader(spill), other.reader(spill));
        let (mut a, mut b) = (vec![0; MAX_IN_MEMORY], vec![0; MAX_IN_MEMORY]);
        loop {
            let count = fill(&mut left, &mut a)?;
            fill(&mut right, &mut b)?;
            if a[..count] != b[..count] {
                return Ok(false);
            }
            if count < a.len() {
                return Ok(true);
            }
        }
    }
}

/// How many bytes at the end of a block only mean something together with the next: the beginning of a
/// UTF-8 character (RFC 3629 section 3), or a CR.
fn unfinished_text(block: &[u8]) -> usize {
    if block.ends_with(b"\r") {
        return 1;
    }
    let beginning = |back: &usize| match block[block.len() - back] {
        0xc0..=0xdf => *back < 2,
        0xe0..=0xef => *back < 3,
        0xf0..=0xff => *back < 4,
        _ => false,
    };
    (1..=block.len().min(3)).find(beginning).unwrap_or(0)
}

/// Reads until `into` is full or the reader ends; returns how much.
pub(crate) fn fill(reader: &mut impl Read, into: &mut [u8]) -> io::Result<usize> {
    let mut count = 0;
    while count < into.len() {
        match reader.read(&mut into[count..])? {
            0 => break,
            read => count += read,
        }
    }
    Ok(count)
}

/// Reads a [`Capture`]'s bytes in order.
pub(crate) struct CaptureReader<'a> {
    extents: &'a [Extent],
    /// How much of the first extent has been read.
    done: u64,
    tail: &'a [u8],
    spill: &'a Spill,
}

impl Read for CaptureReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Some((extent, behind)) = self.extents.split_first() else {
            return self.tail.read(into);
        };
        let left = usize::try_from(extent.len - self.done).unwrap_or(usize::MAX);
        let count = left.min(into.len());
        self.spill
            .read_at(extent.offset + self.done, &mut into[..count])?;
        self.done += count as u64;
        if self.done == extent.len {
            (self.extents, self.done) = (behind, 0);
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests;
