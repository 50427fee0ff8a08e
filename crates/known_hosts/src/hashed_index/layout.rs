//! Where what stands in an index: docs/known-hosts-index.md, version 1. Integers are big-endian.

use std::ops::Range;

use super::seal::{INDEX_KEY_LEN, TAG_LEN};
use super::{IndexError, MAX_INDEX_LEN, MAX_INDEX_NAMES};
use crate::reader::Reader;

const MAGIC: &[u8; 8] = b"SSHOALKH";
const VERSION: u32 = 1;
/// Magic, version, key, identity, content tag, three counts.
const HEAD_LEN: usize = 8 + 4 + INDEX_KEY_LEN + IDENTITY_LEN + TAG_LEN + 3 * 4;
const IDENTITY_LEN: usize = 4 * 8 + 4;
/// A name's tag, and where its hits begin and how many they are.
pub(super) const NAME_LEN: usize = TAG_LEN + 4 + 4;
/// The position of an entry among the hashed ones of the file.
pub(super) const HIT_LEN: usize = 4;

/// Which file on this machine, and in which state (`stat`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileIdentity {
    /// `st_dev`
    pub device: u64,
    /// `st_ino`
    pub inode: u64,
    /// `st_size`, in bytes
    pub size: u64,
    /// `st_mtim`, whole seconds since 1970
    pub modified_seconds: i64,
    /// `st_mtim`, nanoseconds of the second
    pub modified_nanoseconds: u32,
}

/// All that stands before the names.
pub(super) struct Head {
    pub(super) key: [u8; INDEX_KEY_LEN],
    pub(super) identity: FileIdentity,
    pub(super) content: [u8; TAG_LEN],
    pub(super) entries: u32,
    pub(super) names: usize,
    pub(super) hits: usize,
}

impl Head {
    /// Reads the head of a whole index, whose length must be what the head says.
    pub(super) fn read(index: &[u8]) -> Result<Head, IndexError> {
        let mut reader = Reader(index);
        if reader.array().as_ref() != Some(MAGIC) || index.len() > MAX_INDEX_LEN {
            return Err(IndexError::Damaged);
        }
        match reader.u32() {
            Some(VERSION) => {}
            Some(other) => return Err(IndexError::Version(other)),
            None => return Err(IndexError::Damaged),
        }
        let head = Head::fields(&mut reader).ok_or(IndexError::Damaged)?;
        let sound = head.names <= MAX_INDEX_NAMES && index.len() == head.index_len();
        sound.then_some(head).ok_or(IndexError::Damaged)
    }

    /// Whatever stands where a head does.
    #[cfg(feature = "fuzzing")]
    pub(super) fn read_leniently(index: &[u8]) -> Option<Head> {
        Head::fields(&mut Reader(
            index.get(12..index.len().checked_sub(TAG_LEN)?)?,
        ))
    }

    fn fields(reader: &mut Reader<'_>) -> Option<Head> {
        Some(Head {
            key: reader.array()?,
            identity: FileIdentity {
                device: reader.u64()?,
                inode: reader.u64()?,
                size: reader.u64()?,
                modified_seconds: reader.array().map(i64::from_be_bytes)?,
                modified_nanoseconds: reader.u32()?,
            },
            content: reader.array()?,
            entries: reader.u32()?,
            names: reader.u32()? as usize,
            hits: reader.u32()? as usize,
        })
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.extend(MAGIC);
        out.extend(VERSION.to_be_bytes());
        out.extend(self.key);
        out.extend(self.identity.device.to_be_bytes());
        out.extend(self.identity.inode.to_be_bytes());
        out.extend(self.identity.size.to_be_bytes());
        out.extend(self.identity.modified_seconds.to_be_bytes());
        out.extend(self.identity.modified_nanoseconds.to_be_bytes());
        out.extend(self.content);
        out.extend(self.entries.to_be_bytes());
        out.extend((self.names as u32).to_be_bytes());
        out.extend((self.hits as u32).to_be_bytes());
    }

    pub(super) fn names_range(&self) -> Range<usize> {
        HEAD_LEN..HEAD_LEN + self.names * NAME_LEN
    }

    pub(super) fn hits_range(&self) -> Range<usize> {
        let start = self.names_range().end;
        start..start + self.hits * HIT_LEN
    }

    pub(super) fn index_len(&self) -> usize {
        self.hits_range().end + TAG_LEN
    }
}

pub(super) fn put_name(out: &mut Vec<u8>, tag: &[u8; TAG_LEN], hits: &Range<usize>) {
    out.extend(tag);
    out.extend((hits.start as u32).to_be_bytes());
    out.extend((hits.len() as u32).to_be_bytes());
}

/// Which hits are a name's.
pub(super) fn hits_of(row: &[u8; NAME_LEN]) -> Range<usize> {
    let number = |at: usize| {
        let bytes = [row[at], row[at + 1], row[at + 2], row[at + 3]];
        u32::from_be_bytes(bytes) as usize
    };
    let (first, count) = (number(TAG_LEN), number(TAG_LEN + 4));
    first..first.saturating_add(count)
}
