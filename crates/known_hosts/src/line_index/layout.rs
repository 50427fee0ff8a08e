//! Where what stands in an index: docs/known-hosts-index.md, version 3. Integers are big-endian.

use super::seal::{INDEX_KEY_LEN, Keys, TAG_LEN, Tag};
use super::{IndexError, MAX_INDEX_LEN, MAX_INDEX_NAMES};
use crate::reader::Reader;

const MAGIC: &[u8; 8] = b"SSHOALKH";
const VERSION: u32 = 3;
const IDENTITY_LEN: usize = 5 * 8 + 2 * 4;
/// Magic, version, key, identity, whether it is settled, content tag, six counts, tag.
pub(super) const HEAD_LEN: usize =
    8 + 4 + INDEX_KEY_LEN + IDENTITY_LEN + 4 + TAG_LEN + 6 * 4 + TAG_LEN;
/// A line's place.
pub(super) const SPAN_LEN: usize = 3 * 4;
/// A name's tag, a line's place, and how many hashed lines were searched.
pub(super) const ROW_LEN: usize = TAG_LEN + SPAN_LEN + 4;
/// A bucket's first row, in a table's directory.
const DIRECTORY_LEN: usize = 4;
/// Rows that a bucket is made for; it may hold more.
const BUCKET_ROWS: usize = 64;
/// Most buckets of a table, as a power of two.
const MAX_BITS: u32 = 16;

/// Which file on this machine, and in which state (`stat`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileIdentity {
    /// `st_dev`
    pub device: u64,
    /// `st_ino`
    pub inode: u64,
    /// `st_size`, in bytes
    pub size: u64,
    /// `st_mtim`: whole seconds since 1970, and nanoseconds of the second
    pub modified: (i64, u32),
    /// `st_ctim`: no program can set it as it likes
    pub changed: (i64, u32),
}

impl FileIdentity {
    /// Seconds after which a further change of a file shows in `st_ctim`: the coarsest clock of a file system ticks
    /// every two.
    const SETTLING: i64 = 3;

    /// Whether the next change of the file, `now` (seconds since 1970) or later, will show in the identity: not so
    /// within a tick of the file system's clock.
    pub fn is_settled(&self, now: i64) -> bool {
        self.changed.0.saturating_add(Self::SETTLING) <= now
    }
}

/// The place of a line in a known_hosts file: its first byte, its length without the line feed, its number from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: u32,
    pub(super) len: u32,
    pub(super) line: u32,
}

impl Span {
    /// In place of the lines of a name that has none.
    pub(super) const NONE: Span = Span {
        start: 0,
        len: 0,
        line: 0,
    };

    /// Where the line's line feed is, or the end of the file.
    pub(super) fn end(&self) -> u64 {
        u64::from(self.start) + u64::from(self.len)
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        for number in [self.start, self.len, self.line] {
            out.extend(number.to_be_bytes());
        }
    }

    pub(super) fn read(bytes: &[u8; SPAN_LEN]) -> Span {
        let number = |at: usize| {
            u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        Span {
            start: number(0),
            len: number(4),
            line: number(8),
        }
    }
}

/// A name's tag and one of its lines, or [`Span::NONE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) tag: Tag,
    pub(super) span: Span,
    /// Of a name that was looked up in hashed lines: in how many of them, from the first on. The same in all its rows.
    pub(super) searched: u32,
}

impl Row {
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.extend(self.tag);
        self.span.put(out);
        out.extend(self.searched.to_be_bytes());
    }

    pub(super) fn read(bytes: &[u8; ROW_LEN]) -> Row {
        let (mut tag, mut span, mut searched) = ([0; TAG_LEN], [0; SPAN_LEN], [0; 4]);
        tag.copy_from_slice(&bytes[..TAG_LEN]);
        span.copy_from_slice(&bytes[TAG_LEN..TAG_LEN + SPAN_LEN]);
        searched.copy_from_slice(&bytes[TAG_LEN + SPAN_LEN..]);
        Row {
            tag,
            span: Span::read(&span),
            searched: u32::from_be_bytes(searched),
        }
    }
}

/// Names as they stand in the file, or names that were looked up in its hashed lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Table {
    Plain = 0,
    Hashed = 1,
}

/// How many rows a table has, and how many buckets (a power of two) it parts them into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TableSize {
    pub(super) rows: u32,
    pub(super) bits: u32,
}

impl TableSize {
    pub(super) fn of(rows: usize) -> TableSize {
        let buckets = rows.div_ceil(BUCKET_ROWS).max(1).next_power_of_two();
        TableSize {
            rows: rows as u32,
            bits: buckets.trailing_zeros().min(MAX_BITS),
        }
    }

    pub(super) fn buckets(&self) -> u32 {
        1 << self.bits
    }

    /// Which bucket a name's rows are in: the first bits of its tag say so.
    pub(super) fn bucket_of(&self, tag: &Tag) -> u32 {
        let start = u32::from_be_bytes([tag[0], tag[1], tag[2], tag[3]]);
        start.checked_shr(u32::BITS - self.bits).unwrap_or(0)
    }

    fn directory_len(&self) -> u64 {
        (u64::from(self.buckets()) + 1) * DIRECTORY_LEN as u64
    }

    fn buckets_len(&self) -> u64 {
        u64::from(self.rows) * ROW_LEN as u64 + u64::from(self.buckets()) * TAG_LEN as u64
    }
}

/// All that stands before the lines and names.
pub(super) struct Head {
    pub(super) key: [u8; INDEX_KEY_LEN],
    pub(super) identity: FileIdentity,
    pub(super) settled: bool,
    pub(super) content: Tag,
    /// How many of the file's lines are hashed.
    pub(super) hashed: u32,
    /// How many lines are to be looked at whoever is asked for.
    pub(super) always: u32,
    pub(super) tables: [TableSize; 2],
}

impl Head {
    /// Reads the head of an index of `len` bytes, which must be what the head says.
    pub(super) fn read(front: &[u8], len: u64) -> Result<Head, IndexError> {
        let mut reader = Reader(front);
        if reader.array().as_ref() != Some(MAGIC) {
            return Err(IndexError::Damaged);
        }
        match reader.u32() {
            Some(VERSION) => {}
            Some(other) => return Err(IndexError::Version(other)),
            None => return Err(IndexError::Damaged),
        }
        let head = Head::fields(&mut reader).ok_or(IndexError::Damaged)?;
        let tag: Tag = reader.array().ok_or(IndexError::Damaged)?;
        let is_whole = Keys::derive(&head.key).tag_of_head(&front[..HEAD_LEN - TAG_LEN]) == tag;
        let fits =
            |table: &TableSize| table.rows as usize <= MAX_INDEX_NAMES && table.bits <= MAX_BITS;
        let sound = is_whole && head.tables.iter().all(fits) && head.index_len() == len;
        (sound && len <= MAX_INDEX_LEN as u64)
            .then_some(head)
            .ok_or(IndexError::Damaged)
    }

    fn fields(reader: &mut Reader<'_>) -> Option<Head> {
        Some(Head {
            key: reader.array()?,
            identity: FileIdentity {
                device: reader.u64()?,
                inode: reader.u64()?,
                size: reader.u64()?,
                modified: (reader.array().map(i64::from_be_bytes)?, reader.u32()?),
                changed: (reader.array().map(i64::from_be_bytes)?, reader.u32()?),
            },
            settled: reader.u32()? == 1,
            content: reader.array()?,
            hashed: reader.u32()?,
            always: reader.u32()?,
            tables: [table(reader)?, table(reader)?],
        })
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend(MAGIC);
        out.extend(VERSION.to_be_bytes());
        out.extend(self.key);
        let FileIdentity {
            device,
            inode,
            size,
            modified,
            changed,
        } = self.identity;
        for number in [device, inode, size] {
            out.extend(number.to_be_bytes());
        }
        for (seconds, nanoseconds) in [modified, changed] {
            out.extend(seconds.to_be_bytes());
            out.extend(nanoseconds.to_be_bytes());
        }
        out.extend(u32::from(self.settled).to_be_bytes());
        out.extend(self.content);
        let [plain, hashed] = self.tables;
        let tables = [plain.rows, plain.bits, hashed.rows, hashed.bits];
        for number in [self.hashed, self.always].into_iter().chain(tables) {
            out.extend(number.to_be_bytes());
        }
        let tag = Keys::derive(&self.key).tag_of_head(&out[start..]);
        out.extend(tag);
    }

    /// Where the always considered lines are, with their tag.
    pub(super) fn always_at(&self) -> (u64, usize) {
        (HEAD_LEN as u64, self.always as usize * SPAN_LEN + TAG_LEN)
    }

    /// Where the directory says what a bucket's first row is, and the next one's.
    pub(super) fn directory_at(&self, table: Table, bucket: u32) -> (u64, usize) {
        let (always, len) = self.always_at();
        let mut start = always + len as u64;
        if table == Table::Hashed {
            start += self.tables[Table::Plain as usize].directory_len();
        }
        let place = start + u64::from(bucket) * DIRECTORY_LEN as u64;
        (place, 2 * DIRECTORY_LEN)
    }

    /// Where a bucket of these rows is, with its tag.
    pub(super) fn bucket_at(
        &self,
        table: Table,
        bucket: u32,
        first: u32,
        end: u32,
    ) -> (u64, usize) {
        let [plain, hashed] = &self.tables;
        let (directory, _) = self.directory_at(Table::Hashed, 0);
        let mut start = directory + hashed.directory_len();
        if table == Table::Hashed {
            start += plain.buckets_len();
        }
        let before = u64::from(first) * ROW_LEN as u64 + u64::from(bucket) * TAG_LEN as u64;
        (start + before, (end - first) as usize * ROW_LEN + TAG_LEN)
    }

    pub(super) fn index_len(&self) -> u64 {
        let (buckets, _) = self.bucket_at(Table::Hashed, 0, 0, 0);
        buckets + self.tables[Table::Hashed as usize].buckets_len()
    }
}

fn table(reader: &mut Reader<'_>) -> Option<TableSize> {
    Some(TableSize {
        rows: reader.u32()?,
        bits: reader.u32()?.min(u32::BITS - 1),
    })
}
