//! A cached index of a known_hosts file: where the lines of a name are, from one run to the next.
//!
//! docs/known-hosts-index.md describes the format and what the index weakens. In short: an index
//! spares reading and parsing the file, and for hashed names their HMACs. Names are stored as
//! keyed hashes only, the key lies in the index itself, and so the index must be kept from others
//! (0600) like the known_hosts file itself. It is believed only of a file in the very state that
//! it was made of; and every line that it points at is read, and must prove to be a whole line of
//! the file that names the host, before it counts.

use std::sync::Arc;

use crate::host_name::HostName;
use crate::known_hosts::{Extent, File, Kind, KnownHosts};
use crate::search::{Learned, searched_names};

mod layout;
mod lines;
mod seal;
mod write;

use layout::{Head, ROW_LEN, Row, SPAN_LEN, Span, Table};
use seal::{Keys, TAG_LEN, Tag};

pub use layout::FileIdentity;
pub(crate) use lines::ContentTag;
pub use lines::IndexedLines;
pub use seal::INDEX_KEY_LEN;
pub use write::IndexBase;
#[cfg(feature = "fuzzing")]
pub use write::forge_index;

/// Longest index that is read or written, in bytes.
pub const MAX_INDEX_LEN: usize = 64 << 20;

/// Most names of either kind that an index holds. A file with more plain ones has no index; hashed ones beyond are left
/// out, and cost their search every time.
pub const MAX_INDEX_NAMES: usize = 1 << 20;

/// How much of an index is read at once: in a middling one, all that says where the names are.
const FRONT_LEN: usize = 8192;

/// Why an index is not used. None of this is the user's fault: the caller reads the whole file, and
/// writes a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    /// It is cut short, overlong, altered, or no index at all.
    #[error("the index of known_hosts lines is damaged")]
    Damaged,
    /// Another version of sshoal wrote it.
    #[error("the index of known_hosts lines has version {0}, which is not known here")]
    Version(u32),
    /// The known_hosts file is another one than the index was made of, or was changed since.
    #[error("the index of known_hosts lines is of another state of the known_hosts file")]
    Stale,
    /// It names a line that does not prove to be the name's: it was tampered with, or the file was
    /// changed while it was read.
    #[error("the index of known_hosts lines contradicts the known_hosts file")]
    Contradicted,
}

/// Bytes that are read piece by piece: those of a file.
pub trait Octets {
    /// `len` bytes from `start` on; `None` if they are not there or cannot be read.
    fn read_at(&self, start: u64, len: usize) -> Option<Vec<u8>>;
}

impl Octets for Vec<u8> {
    fn read_at(&self, start: u64, len: usize) -> Option<Vec<u8>> {
        let start = usize::try_from(start).ok()?;
        let part = self.get(start..start.checked_add(len)?)?;
        Some(part.to_vec())
    }
}

/// An index, of which only its head has been read and found whole.
pub struct LineIndex<S> {
    source: S,
    front: Vec<u8>,
    head: Head,
    keys: Keys,
}

impl<S: Octets> LineIndex<S> {
    /// Takes the index that `source`, of `len` bytes, holds.
    ///
    /// # Errors
    ///
    /// It is none, or of another version.
    pub fn open(source: S, len: u64) -> Result<LineIndex<S>, IndexError> {
        let front = usize::try_from(len).unwrap_or(usize::MAX).min(FRONT_LEN);
        let front = source.read_at(0, front).ok_or(IndexError::Damaged)?;
        let head = Head::read(&front, len)?;
        let keys = Keys::derive(&head.key);
        Ok(LineIndex {
            source,
            front,
            head,
            keys,
        })
    }

    /// Whether it was made of the file that has this identity, in this state. That alone is proof of the content only
    /// if the index [is settled](Self::is_settled).
    pub fn is_of(&self, identity: &FileIdentity) -> bool {
        self.head.identity == *identity
    }

    /// Whether the file had been left alone for so long when it was read that no change of it can have been missed.
    pub fn is_settled(&self) -> bool {
        self.head.settled
    }

    /// Whether these are the bytes of the file that it was made of, and perhaps further lines behind them. Costs a pass
    /// at the speed of AES-GCM's authentication.
    pub fn is_of_content(&self, content: &[u8]) -> bool {
        let size = usize::try_from(self.head.identity.size);
        let parts = size.ok().and_then(|size| content.split_at_checked(size));
        parts.is_some_and(|(before, added)| {
            (added.is_empty() || before.ends_with(b"\n") || before.is_empty())
                && self.keys.tag_of_content(before) == self.head.content
        })
    }

    /// How many rows there are of names that were looked up in hashed lines: one for each name and line, and one for
    /// a name without any.
    pub fn hashed_rows(&self) -> usize {
        self.head.tables[Table::Hashed as usize].rows as usize
    }

    fn read(&self, (start, len): (u64, usize)) -> Result<Vec<u8>, IndexError> {
        let at = usize::try_from(start).map_err(|_| IndexError::Damaged)?;
        match self.front.get(at..at.saturating_add(len)) {
            Some(part) => Ok(part.to_vec()),
            None => self.source.read_at(start, len).ok_or(IndexError::Damaged),
        }
    }

    /// The lines to be looked at whoever is asked for.
    fn always(&self) -> Result<Vec<Span>, IndexError> {
        let mut bytes = self.read(self.head.always_at())?;
        let tag = bytes.split_off(bytes.len() - TAG_LEN);
        if self.keys.tag_of_always(&bytes) != *tag {
            return Err(IndexError::Damaged);
        }
        let (spans, _) = bytes.as_chunks::<SPAN_LEN>();
        Ok(spans.iter().map(Span::read).collect())
    }

    /// What a table says of a name: its rows; [`Span::NONE`] in a single one for no line, none at all if nothing is
    /// said.
    fn rows_of(&self, table: Table, tag: &Tag) -> Result<Vec<Row>, IndexError> {
        let bucket = self.head.tables[table as usize].bucket_of(tag);
        let bytes = self.bucket(table, bucket)?;
        let (rows, _) = bytes.as_chunks::<ROW_LEN>();
        let own = rows.iter().filter(|row| row.starts_with(tag));
        Ok(own.map(Row::read).collect())
    }

    /// The rows of a bucket, as they are written.
    fn bucket(&self, table: Table, bucket: u32) -> Result<Vec<u8>, IndexError> {
        let directory = self.read(self.head.directory_at(table, bucket))?;
        let (places, _) = directory.as_chunks::<4>();
        let [first, end] = [places[0], places[1]].map(u32::from_be_bytes);
        if first > end || end > self.head.tables[table as usize].rows {
            return Err(IndexError::Damaged);
        }
        let mut bytes = self.read(self.head.bucket_at(table, bucket, first, end))?;
        let tag = bytes.split_off(bytes.len() - TAG_LEN);
        match self.keys.tag_of_bucket(table, bucket, &bytes) == *tag {
            true => Ok(bytes),
            false => Err(IndexError::Damaged),
        }
    }

    /// All that it says of names in hashed lines, for the next index.
    fn all_hashed(&self) -> Result<Vec<Row>, IndexError> {
        let mut all = Vec::with_capacity(self.hashed_rows());
        for bucket in 0..self.head.tables[Table::Hashed as usize].buckets() {
            let bytes = self.bucket(Table::Hashed, bucket)?;
            all.extend(bytes.as_chunks::<ROW_LEN>().0.iter().map(Row::read));
        }
        Ok(all)
    }
}

impl KnownHosts {
    /// How many entries of a file, counted from 0 as given to [`parse`](Self::parse), are hashed.
    pub fn hashed_entries(&self, file: usize) -> usize {
        self.files.get(file).map_or(0, |file| file.hashed.len())
    }

    /// Whether a file was read and parsed in whole, so that an index of it can be written.
    pub fn is_whole(&self, file: usize) -> bool {
        let file = self.files.get(file);
        file.is_some_and(|file| matches!(file.extent, Extent::Whole))
    }

    /// Remembers what the index of a file that was read in whole says of hosts in hashed lines, each proven by its own
    /// HMAC. [`learn`](Self::learn) then searches only for the names that the index does not hold, and in lines that
    /// were added since. The caller has made sure that the index [is of this content](LineIndex::is_of_content).
    ///
    /// Gives the number of names found in the index. On an error nothing is remembered.
    pub fn recall<S: Octets>(
        &mut self,
        file: usize,
        index: &LineIndex<S>,
        hosts: &[HostName<'_>],
    ) -> Result<usize, IndexError> {
        let known = self.files.get(file).ok_or(IndexError::Stale)?;
        if known.hashed_before(index.head.identity.size) != index.head.hashed as usize {
            return Err(IndexError::Stale);
        }
        let marked = known.marked();
        let mut recalled = Vec::new();
        for name in searched_names(hosts) {
            let tag = index.keys.tag_of_name(name.as_bytes());
            let rows = index.rows_of(Table::Hashed, &tag)?;
            let Some(Row { searched, .. }) = rows.first() else {
                continue;
            };
            let searched = *searched as usize;
            let mut positions = known.proven(&name, &rows)?;
            known.add_marked(&marked, &name, &mut positions);
            positions.retain(|&position| (position as usize) < searched);
            let learned = Learned {
                positions,
                searched,
            };
            recalled.push((name, learned));
        }
        let count = recalled.len();
        for (name, learned) in recalled {
            Arc::make_mut(&mut self.files[file])
                .hashed
                .learn(name, learned);
        }
        Ok(count)
    }
}

impl File {
    /// How many hashed lines begin within the first `size` bytes.
    fn hashed_before(&self, size: u64) -> usize {
        let is_before = |id: &u32| (self.records[*id as usize].start as u64) < size;
        self.hashed.ids().partition_point(is_before)
    }

    /// The positions of a name's hashed lines: all that the index names must be there and be the name.
    fn proven(&self, name: &str, rows: &[Row]) -> Result<Vec<u32>, IndexError> {
        let start = |id: &u32| self.records[*id as usize].start;
        let mut positions = Vec::new();
        for Row { span, .. } in rows.iter().filter(|row| row.span != Span::NONE) {
            let ids = self.hashed.ids();
            let found = ids.binary_search_by_key(&(span.start as usize), start);
            let position = found.map_err(|_| IndexError::Contradicted)? as u32;
            if !self.is_hashed_name(position, name) {
                return Err(IndexError::Contradicted);
            }
            positions.push(position);
        }
        Ok(positions)
    }

    /// The positions of hashed lines that have a marker. No index is asked about those: a revocation cannot be
    /// hidden.
    pub(crate) fn marked(&self) -> Vec<u32> {
        let is_marked = |id: &u32| !matches!(self.records[*id as usize].kind, Kind::Host);
        let positions = (0..).zip(self.hashed.ids());
        let marked = positions.filter(|(_, id)| is_marked(id));
        marked.map(|(position, _)| position).collect()
    }

    /// Adds those of the `marked` lines that are the name.
    pub(crate) fn add_marked(&self, marked: &[u32], name: &str, positions: &mut Vec<u32>) {
        let own = marked.iter().copied();
        positions.extend(own.filter(|&position| self.is_hashed_name(position, name)));
        positions.sort_unstable();
        positions.dedup();
    }

    fn is_hashed_name(&self, position: u32, name: &str) -> bool {
        let id = self.hashed.ids()[position as usize];
        let hashed = crate::hashed::HashedName::decode(self.hosts_of(id));
        hashed.is_some_and(|hashed| hashed.is(name.as_bytes()))
    }
}

#[cfg(test)]
mod tests;
