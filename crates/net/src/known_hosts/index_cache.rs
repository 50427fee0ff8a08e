//! Where the indexes of known_hosts lines are kept: docs/known-hosts-index.md.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sshoal_crypto::{Digest, HashAlgorithm};
use sshoal_known_hosts::{INDEX_KEY_LEN, IndexBase, KnownHosts, LineIndex, MAX_INDEX_LEN, Octets};

use super::files::{FileOctets, FileState};
use crate::cache_folder;

/// Octets of the digest of a path that name its index.
const NAME_OCTETS: usize = 8;

/// The user's indexes of known_hosts lines, one for each known_hosts file.
#[derive(Debug, Clone)]
pub struct IndexCache {
    folder: PathBuf,
}

impl IndexCache {
    /// That of this user, by XDG_CACHE_HOME and HOME.
    pub fn of_user() -> Option<Self> {
        cache_folder::path().map(|folder| IndexCache { folder })
    }

    #[cfg(test)]
    pub(super) fn in_folder(folder: PathBuf) -> Self {
        IndexCache { folder }
    }

    /// Where a known_hosts file's index is.
    fn path(&self, known_hosts: &str) -> PathBuf {
        let whole = Path::new(known_hosts).canonicalize();
        let whole = whole.unwrap_or_else(|_| PathBuf::from(known_hosts));
        let mut digest = Digest::new(HashAlgorithm::Sha256);
        digest.update(whole.as_os_str().as_encoded_bytes());
        let digest = digest.finish();
        let octets = digest.as_ref()[..NAME_OCTETS].iter();
        let name: String = octets.map(|octet| format!("{octet:02x}")).collect();
        self.folder.join(format!("known_hosts-{name}.index"))
    }

    /// The index of a file in this state, if there is one that is proof of the content; in memory, if most of it will be
    /// needed.
    pub(super) fn of_state(&self, file: &FileState, in_memory: bool) -> Option<CachedIndex> {
        let index = self.open(file, in_memory)?;
        (index.is_of(&file.identity) && index.is_settled()).then_some(index)
    }

    /// The index of a file that was read in whole, if there is one of these very bytes, whenever they were written.
    pub(super) fn of_content(&self, file: &FileState, content: &[u8]) -> Option<CachedIndex> {
        if file.has_false_index {
            return None;
        }
        let index = self.open(file, true)?;
        index.is_of_content(content).then_some(index)
    }

    fn open(&self, file: &FileState, in_memory: bool) -> Option<CachedIndex> {
        let (mut index, len) =
            cache_folder::open_own(&self.path(&file.path), MAX_INDEX_LEN as u64)?;
        let source = match in_memory {
            false => IndexSource::File(FileOctets(index)),
            true => {
                let mut octets = Vec::with_capacity(usize::try_from(len).ok()? + 1);
                index.read_to_end(&mut octets).ok()?;
                IndexSource::Memory(octets)
            }
        };
        LineIndex::open(source, len).ok()
    }

    /// Keeps what was learned of a file, beside what other runs have kept meanwhile.
    pub(super) fn save(
        &self,
        known: &KnownHosts,
        number: usize,
        file: &FileState,
    ) -> io::Result<()> {
        let path = self.path(&file.path);
        let _lock = cache_folder::lock(&path)?;
        let old = self.of_content(file, known.content(number));
        let base = match &old {
            Some(old) => IndexBase::Extend(old),
            None => {
                let mut key = [0; INDEX_KEY_LEN];
                sshoal_crypto::random(&mut key);
                IndexBase::New(key)
            }
        };
        match known.write_index(number, &file.identity, file.settled, base) {
            Some(index) => cache_folder::replace_file(&path, &index),
            None => Ok(()),
        }
    }
}

/// An index that was found.
pub(super) type CachedIndex = LineIndex<IndexSource>;

/// An index's bytes: in its file, of which a few pages are needed for a host, or read at once.
pub(super) enum IndexSource {
    File(FileOctets<File>),
    Memory(Vec<u8>),
}

impl Octets for IndexSource {
    fn read_at(&self, start: u64, len: usize) -> Option<Vec<u8>> {
        match self {
            IndexSource::File(file) => file.read_at(start, len),
            IndexSource::Memory(octets) => octets.read_at(start, len),
        }
    }
}
