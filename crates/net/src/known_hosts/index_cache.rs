//! Where the indexes of hashed host names are kept: docs/known-hosts-index.md.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::process::geteuid;
use sshoal_crypto::{Digest, HashAlgorithm};
use sshoal_known_hosts::{HashedIndex, INDEX_KEY_LEN, IndexBase, KnownHosts, MAX_INDEX_LEN};

use super::files::FileState;
use crate::cache_folder;

/// Group and others may do anything.
const OPEN_TO_OTHERS: u32 = 0o077;
/// Octets of the digest of a path that name its index.
const NAME_OCTETS: usize = 8;

/// The user's indexes of hashed host names, one for each known_hosts file.
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

    /// The index of a file in this state, if there is one to be believed.
    pub(super) fn read(&self, file: &FileState, content: &[u8]) -> Option<HashedIndex> {
        let octets = read_own(&self.path(&file.path))?;
        HashedIndex::parse(octets, &file.identity, content).ok()
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
        let old = self.read(file, known.content(&file.path));
        let base = match &old {
            Some(old) => IndexBase::Extend(old),
            None => {
                let mut key = [0; INDEX_KEY_LEN];
                sshoal_crypto::random(&mut key);
                IndexBase::New(key)
            }
        };
        match known.write_index(number, &file.identity, base) {
            Some(index) => cache_folder::replace_file(&path, &index),
            None => Ok(()),
        }
    }
}

/// The content of a file that nobody but this user can have written or can read.
fn read_own(path: &Path) -> Option<Vec<u8>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
        .ok()?;
    let metadata = file.metadata().ok()?;
    let is_own = metadata.is_file()
        && metadata.uid() == geteuid().as_raw()
        && metadata.mode() & OPEN_TO_OTHERS == 0
        && metadata.len() <= MAX_INDEX_LEN as u64;
    let mut octets = Vec::new();
    (is_own && file.read_to_end(&mut octets).is_ok()).then_some(octets)
}
