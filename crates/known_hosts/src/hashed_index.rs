//! A cached index of hashed names: which entries are which names, from one run to the next.
//!
//! docs/known-hosts-index.md describes the format and what the index weakens. In short: names
//! are stored as keyed hashes only, the key lies in the index itself, and so the index must be
//! kept from others (0600) like the known_hosts file itself. An index is believed only if it is
//! of these very bytes of the known_hosts file, whole, and written by this format's version; and
//! every entry that it points at is proven by its own HMAC before it counts.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::host_name::HostName;
use crate::known_hosts::{File, KnownHosts};
use crate::search::searched_names;

mod layout;
mod seal;

use layout::{HIT_LEN, Head, NAME_LEN};
use seal::{Keys, TAG_LEN};

pub use layout::FileIdentity;
pub use seal::INDEX_KEY_LEN;

/// Longest index that is read or written, in bytes.
pub const MAX_INDEX_LEN: usize = 64 << 20;

/// Most names that an index holds; further ones are left out, and cost their search every time.
pub const MAX_INDEX_NAMES: usize = 1 << 20;

/// Why an index is not used. None of this is the user's fault: the caller searches, and writes
/// a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    /// It is cut short, overlong, altered, or no index at all.
    #[error("the index of hashed host names is damaged")]
    Damaged,
    /// Another version of sshoal wrote it.
    #[error("the index of hashed host names has version {0}, which is not known here")]
    Version(u32),
    /// The known_hosts file is another one than the index was made of, or was changed since.
    #[error("the index of hashed host names is of another state of the known_hosts file")]
    Stale,
    /// It names an entry that does not prove to be the name: it was tampered with.
    #[error("the index of hashed host names contradicts the known_hosts file")]
    Contradicted,
}

/// An index that belongs to a known_hosts file as it is.
pub struct HashedIndex {
    bytes: Vec<u8>,
    head: Head,
    keys: Keys,
}

impl HashedIndex {
    /// Takes the `bytes` of an index, if it is one of the known_hosts file with this `identity`
    /// and `content`.
    ///
    /// Costs a pass over both at the speed of AES-GCM's authentication.
    pub fn parse(
        bytes: Vec<u8>,
        identity: &FileIdentity,
        content: &[u8],
    ) -> Result<HashedIndex, IndexError> {
        let head = Head::read(&bytes)?;
        let keys = Keys::derive(&head.key);
        let (body, tag) = bytes.split_at(bytes.len() - TAG_LEN);
        if keys.tag_of_index(body) != *tag {
            return Err(IndexError::Damaged);
        }
        if head.identity != *identity || keys.tag_of_content(content) != head.content {
            return Err(IndexError::Stale);
        }
        Ok(HashedIndex { bytes, head, keys })
    }

    /// How many names it holds, those without any entry included.
    pub fn names(&self) -> usize {
        self.head.names
    }

    /// The positions of the entries that are said to be `name`; `None` if nothing is said.
    fn find(&self, name: &str) -> Result<Option<Vec<u32>>, IndexError> {
        let wanted = self.keys.tag_of_name(name);
        let names = &self.bytes[self.head.names_range()];
        let (rows, _) = names.as_chunks::<NAME_LEN>();
        let Ok(row) = rows.binary_search_by(|row| row[..TAG_LEN].cmp(&wanted)) else {
            return Ok(None);
        };
        self.positions(&rows[row]).map(Some)
    }

    fn positions(&self, row: &[u8; NAME_LEN]) -> Result<Vec<u32>, IndexError> {
        let (all, _) = self.bytes[self.head.hits_range()].as_chunks::<HIT_LEN>();
        let hits = layout::hits_of(row);
        let hits = all.get(hits).ok_or(IndexError::Damaged)?;
        let positions: Vec<u32> = hits.iter().map(|hit| u32::from_be_bytes(*hit)).collect();
        let in_order = positions.is_sorted_by(|a, b| a < b);
        let in_range = positions
            .last()
            .is_none_or(|&last| last < self.head.entries);
        let sound = in_order && in_range;
        sound.then_some(positions).ok_or(IndexError::Damaged)
    }

    /// All that it says, for the next index.
    fn rows(&self) -> Result<BTreeMap<[u8; TAG_LEN], Vec<u32>>, IndexError> {
        let (rows, _) = self.bytes[self.head.names_range()].as_chunks::<NAME_LEN>();
        let rows = rows.iter().map(|row| {
            let mut tag = [0; TAG_LEN];
            tag.copy_from_slice(&row[..TAG_LEN]);
            Ok((tag, self.positions(row)?))
        });
        rows.collect()
    }
}

/// What a written index starts from.
pub enum IndexBase<'i> {
    /// Nothing: fresh random bytes for its key.
    New([u8; INDEX_KEY_LEN]),
    /// An index of the same state of the file, whose names are kept.
    Extend(&'i HashedIndex),
}

impl KnownHosts {
    /// How many entries of a file, counted from 0 as given to [`parse`](Self::parse), are
    /// hashed: without any, no index is needed.
    pub fn hashed_entries(&self, file: usize) -> usize {
        self.files.get(file).map_or(0, |file| file.hashed.len())
    }

    /// Remembers what the index of a file says of hosts, each entry proven by its own HMAC.
    /// [`learn`](Self::learn) then searches only for the names that the index does not hold.
    ///
    /// Gives the number of names found in the index. On an error nothing is remembered.
    pub fn recall(
        &mut self,
        file: usize,
        index: &HashedIndex,
        hosts: &[HostName<'_>],
    ) -> Result<usize, IndexError> {
        let known = self.files.get(file).ok_or(IndexError::Stale)?;
        if known.hashed.len() != index.head.entries as usize {
            return Err(IndexError::Stale);
        }
        let mut recalled = Vec::new();
        for name in searched_names(hosts) {
            if let Some(positions) = index.find(&name)? {
                if !positions.iter().all(|&at| self.proves(known, at, &name)) {
                    return Err(IndexError::Contradicted);
                }
                recalled.push((name, positions));
            }
        }
        let count = recalled.len();
        for (name, positions) in recalled {
            self.files[file].hashed.learn(name, positions);
        }
        Ok(count)
    }

    /// The bytes of an index of all names that were learned or recalled for a file, found or
    /// not; `None` if none of its entries is hashed, if it has outgrown [`MAX_INDEX_LEN`], or
    /// if what is to be extended is of another state of the file.
    pub fn write_index(
        &self,
        file: usize,
        identity: &FileIdentity,
        base: IndexBase<'_>,
    ) -> Option<Vec<u8>> {
        let known = self
            .files
            .get(file)
            .filter(|file| !file.hashed.is_empty())?;
        let (key, mut rows) = match base {
            IndexBase::New(key) => (key, BTreeMap::new()),
            IndexBase::Extend(index) => (index.head.key, index.rows().ok()?),
        };
        let keys = Keys::derive(&key);
        let content = keys.tag_of_content(&known.bytes);
        if let IndexBase::Extend(HashedIndex { head, .. }) = base
            && (head.content != content || head.identity != *identity)
        {
            return None;
        }
        for (name, positions) in known.hashed.learned() {
            let tag = keys.tag_of_name(name);
            if rows.len() < MAX_INDEX_NAMES || rows.contains_key(&tag) {
                rows.insert(tag, positions.to_vec());
            }
        }
        let head = Head {
            key,
            identity: *identity,
            content,
            entries: u32::try_from(known.hashed.len()).ok()?,
            names: rows.len(),
            hits: rows.values().map(Vec::len).sum(),
        };
        (head.index_len() <= MAX_INDEX_LEN).then(|| written(&head, &keys, &rows))
    }

    fn proves(&self, file: &File, position: u32, name: &str) -> bool {
        let id = file.hashed.ids()[position as usize];
        let hashed = crate::hashed::HashedName::decode(self.hosts_of(file, id));
        hashed.is_some_and(|hashed| hashed.is(name.as_bytes()))
    }
}

fn written(head: &Head, keys: &Keys, rows: &BTreeMap<[u8; TAG_LEN], Vec<u32>>) -> Vec<u8> {
    let mut out = Vec::with_capacity(head.index_len());
    head.put(&mut out);
    let mut first = 0;
    for (tag, positions) in rows {
        let hits: Range<usize> = first..first + positions.len();
        layout::put_name(&mut out, tag, &hits);
        first = hits.end;
    }
    for position in rows.values().flatten() {
        out.extend(position.to_be_bytes());
    }
    let tag = keys.tag_of_index(&out);
    out.extend(tag);
    out
}

/// Makes the tags, the file's identity and the counts of `index` right, whatever else it says;
/// `None` if it is shorter than any index. For the fuzz targets.
#[cfg(feature = "fuzzing")]
pub fn seal_index(index: &[u8], identity: &FileIdentity, content: &[u8]) -> Option<Vec<u8>> {
    let mut head = Head::read_leniently(index)?;
    let keys = Keys::derive(&head.key);
    head.identity = *identity;
    head.content = keys.tag_of_content(content);
    let rest = index.get(head.names_range().start..index.len() - TAG_LEN)?;
    head.names %= rest.len() / NAME_LEN + 1;
    head.hits = (rest.len() - head.names * NAME_LEN) / HIT_LEN;
    let mut sealed = Vec::new();
    head.put(&mut sealed);
    sealed.extend(&rest[..head.names * NAME_LEN + head.hits * HIT_LEN]);
    let tag = keys.tag_of_index(&sealed);
    sealed.extend(tag);
    Some(sealed)
}

#[cfg(test)]
mod tests;
