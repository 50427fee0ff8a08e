//! A set of known_hosts files, read once; hosts are looked up in their hashed lines with the help of cached indexes.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::thread;

use sshoal_known_hosts::{FileIdentity, Found, HashedIndex, HashedSearch, HostName, KnownHosts};

use super::index_cache::IndexCache;

/// HMACs that are not worth the start of a thread, about a millisecond's; nor to be remembered.
const FEW_PAIRS: u64 = 2000;

/// A known_hosts file that is there and cannot be read: it might revoke a key.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the known_hosts file {path}: {error}")]
pub struct Unreadable {
    /// The file.
    pub path: String,
    /// Why not.
    pub error: io::Error,
}

/// known_hosts files as they were when they were read.
pub struct KnownHostsFiles {
    known: KnownHosts,
    states: Vec<FileState>,
}

/// Which file was read, and in which state it was.
#[derive(Debug, Clone)]
pub(crate) struct FileState {
    pub(crate) path: String,
    pub(crate) identity: FileIdentity,
}

impl KnownHostsFiles {
    /// Reads files in their order. Those that do not exist are left out.
    ///
    /// # Errors
    ///
    /// One is there and cannot be read.
    pub fn read(paths: &[String]) -> Result<Self, Unreadable> {
        Self::read_with(paths, KnownHosts::parse)
    }

    /// The same for some hosts alone, at a fraction of the cost: see [`KnownHosts::parse_for`].
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn read_for(paths: &[String], hosts: &[HostName<'_>]) -> Result<Self, Unreadable> {
        Self::read_with(paths, |contents| KnownHosts::parse_for(contents, hosts))
    }

    fn read_with(
        paths: &[String],
        parse: impl FnOnce(Vec<(String, Vec<u8>)>) -> KnownHosts,
    ) -> Result<Self, Unreadable> {
        let (mut contents, mut states) = (Vec::new(), Vec::new());
        for path in paths {
            match read(path) {
                Ok((content, identity)) => {
                    contents.push((path.clone(), content));
                    let path = path.clone();
                    states.push(FileState { path, identity });
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    let path = path.clone();
                    return Err(Unreadable { path, error });
                }
            }
        }
        let known = parse(contents);
        Ok(KnownHostsFiles { known, states })
    }

    /// What the files say.
    pub fn known(&self) -> &KnownHosts {
        &self.known
    }

    /// Finds the hashed entries of hosts at once: in the cached indexes, and what those do not know with an HMAC for
    /// each pair of a name and an entry, on all cores. Then the indexes know it as well.
    pub fn look_up_hashed(&mut self, hosts: &[HostName<'_>], cache: Option<&IndexCache>) {
        look_up_hashed(&mut self.known, &self.states, hosts, cache);
    }

    pub(crate) fn into_parts(self) -> (KnownHosts, Vec<FileState>) {
        (self.known, self.states)
    }
}

fn read(path: &str) -> io::Result<(Vec<u8>, FileIdentity)> {
    let mut file = File::open(path)?;
    let metadata = file.metadata()?;
    let mut content = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0) + 1);
    file.read_to_end(&mut content)?;
    let identity = FileIdentity {
        device: metadata.dev(),
        inode: metadata.ino(),
        size: metadata.len(),
        modified_seconds: metadata.mtime(),
        modified_nanoseconds: u32::try_from(metadata.mtime_nsec()).unwrap_or(0),
    };
    Ok((content, identity))
}

/// See [`KnownHostsFiles::look_up_hashed`].
pub(crate) fn look_up_hashed(
    known: &mut KnownHosts,
    files: &[FileState],
    hosts: &[HostName<'_>],
    cache: Option<&IndexCache>,
) {
    let hashed: Vec<usize> = (0..files.len())
        .filter(|&file| known.hashed_entries(file) > 0)
        .collect();
    for &file in &hashed {
        let index = cache.and_then(|cache| index_of(cache, known, &files[file]));
        if let Some(index) = index
            && let Err(error) = known.recall(file, &index, hosts)
        {
            tracing::debug!(file = files[file].path, %error, "the index is not used");
        }
    }
    let mut searched = 0;
    known.learn(hosts, |search| {
        searched = search.pairs();
        scan(search)
    });
    let Some(cache) = cache.filter(|_| searched > FEW_PAIRS) else {
        return;
    };
    for &file in &hashed {
        if let Err(error) = cache.save(known, file, &files[file]) {
            let path = &files[file].path;
            tracing::warn!(path, %error, "the index of hashed host names cannot be kept");
        }
    }
}

fn index_of(cache: &IndexCache, known: &KnownHosts, file: &FileState) -> Option<HashedIndex> {
    cache.read(file, known.content(&file.path))
}

/// Where no more threads are to be had, what they would have scanned is left to the caller.
pub(super) fn scan(search: &HashedSearch) -> Vec<Found> {
    if search.pairs() <= FEW_PAIRS {
        return Vec::new();
    }
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let spawn = |range| thread::Builder::new().spawn_scoped(scope, move || search.scan(range));
        let running: Vec<_> = search.ranges(threads).into_iter().map(spawn).collect();
        let running = running.into_iter().filter_map(Result::ok);
        running.filter_map(|thread| thread.join().ok()).collect()
    })
}

#[cfg(test)]
mod tests;
