//! A set of known_hosts files, read once: in whole, or with the help of cached indexes only the lines of some hosts.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sshoal_known_hosts::{
    Content, FileIdentity, Found, HashedSearch, HostName, IndexError, IndexedLines, KnownHosts,
    Octets,
};

use super::index_cache::{CachedIndex, IndexCache};

/// HMACs that are not worth the start of a thread, about a millisecond's; nor to be remembered.
const FEW_PAIRS: u64 = 2000;
/// Size of a file from which on an index saves more than it costs, in bytes.
const LARGE: u64 = 64 << 10;
/// Names from which on all of an index is read at once.
const MANY_NAMES: usize = 16;

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
pub(super) struct FileState {
    pub(super) path: String,
    pub(super) identity: FileIdentity,
    /// Whether every change since then shows in the identity.
    pub(super) settled: bool,
    /// Whether its index was caught telling what is not so.
    pub(super) has_false_index: bool,
}

/// A search in hashed lines that the indexes did not spare: one HMAC for each pair of a name and a line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Searched {
    /// How many HMACs it took.
    pub hmacs: u64,
    /// On how many threads.
    pub threads: usize,
    /// And how long.
    pub time: Duration,
}

impl FileState {
    fn disbelieve_index(&mut self, error: IndexError) {
        tracing::debug!(file = self.path, %error, "the index is not used");
        self.has_false_index = true;
    }
}

impl Searched {
    fn add(&mut self, other: Searched) {
        self.hmacs += other.hmacs;
        self.threads = self.threads.max(other.threads);
        self.time += other.time;
    }
}

impl std::iter::Sum for Searched {
    fn sum<I: Iterator<Item = Searched>>(all: I) -> Searched {
        let mut sum = Searched::default();
        all.for_each(|one| sum.add(one));
        sum
    }
}

impl KnownHostsFiles {
    /// Reads files in their order, in whole. Those that do not exist are left out.
    ///
    /// # Errors
    ///
    /// One is there and cannot be read.
    pub fn read(paths: &[String]) -> Result<Self, Unreadable> {
        let read = open_all(paths, now(), |file, state| {
            read_whole(file, &state.identity).map(Content::Whole)
        })?;
        let (contents, states) = read;
        let known = KnownHosts::assemble(contents);
        Ok(KnownHostsFiles { known, states })
    }

    /// The same for some hosts alone, whose lines are looked up at once. What the indexes of the cache know costs next
    /// to nothing; what they do not know they know afterwards.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn read_for(
        paths: &[String],
        hosts: &[HostName<'_>],
        cache: Option<&IndexCache>,
    ) -> Result<(Self, Searched), Unreadable> {
        Self::read_for_at(paths, hosts, cache, now())
    }

    /// The same at a moment, in seconds since 1970.
    fn read_for_at(
        paths: &[String],
        hosts: &[HostName<'_>],
        cache: Option<&IndexCache>,
        now: i64,
    ) -> Result<(Self, Searched), Unreadable> {
        let (contents, states) = open_all(paths, now, |file, state| {
            match cache.and_then(|cache| indexed_lines(cache, file, state, hosts)) {
                Some(lines) => Ok(Content::Indexed(lines)),
                None => read_whole(file, &state.identity).map(Content::Whole),
            }
        })?;
        let known = match cache {
            Some(_) => KnownHosts::assemble(contents),
            None => KnownHosts::parse_for(whole(contents), hosts),
        };
        let mut read = KnownHostsFiles { known, states };
        let searched = read.look_up_hashed(hosts, cache);
        Ok((read, searched))
    }

    /// What the files say.
    pub fn known(&self) -> &KnownHosts {
        &self.known
    }

    pub(crate) fn into_known(self) -> KnownHosts {
        self.known
    }

    /// Finds the hashed entries of hosts at once: in the cached indexes, and what those do not know with an HMAC for
    /// each pair of a name and an entry, on all cores. Then the indexes know it as well.
    pub fn look_up_hashed(
        &mut self,
        hosts: &[HostName<'_>],
        cache: Option<&IndexCache>,
    ) -> Searched {
        let mut indexed = Vec::new();
        for (file, state) in self.states.iter_mut().enumerate() {
            // Of a small file without hashed lines there is nothing to recall, and nothing to keep.
            let is_plain = self.known.hashed_entries(file) == 0;
            if !self.known.is_whole(file) || (is_plain && state.identity.size < LARGE) {
                continue;
            }
            let index = cache.and_then(|cache| cache.of_content(state, self.known.content(file)));
            if let Some(index) = &index
                && let Err(error) = self.known.recall(file, index, hosts)
            {
                state.disbelieve_index(error);
            }
            indexed.push((file, index));
        }
        let mut searched = Searched::default();
        self.known.learn(hosts, |search| {
            let begun = Instant::now();
            let found = scan(search);
            searched = Searched {
                hmacs: search.pairs(),
                threads: threads(search),
                time: begun.elapsed(),
            };
            found
        });
        for (file, index) in indexed {
            self.keep(file, index.as_ref(), searched.hmacs, cache);
        }
        searched
    }

    /// Keeps in an index what was found out, if that is worth it and the index did not know.
    fn keep(
        &self,
        file: usize,
        index: Option<&CachedIndex>,
        hmacs: u64,
        cache: Option<&IndexCache>,
    ) {
        let state = &self.states[file];
        let was_searched = hmacs > 0 && self.known.hashed_entries(file) > 0;
        let is_worth_it = (was_searched && hmacs > FEW_PAIRS) || state.identity.size >= LARGE;
        let is_current = |index: &CachedIndex| {
            index.is_of(&state.identity) && (index.is_settled() || !state.settled)
        };
        let knew_all = index.is_some_and(is_current) && !was_searched && !state.has_false_index;
        let Some(cache) = cache.filter(|_| is_worth_it && !knew_all) else {
            return;
        };
        if let Err(error) = cache.save(&self.known, file, state) {
            let path = &state.path;
            tracing::warn!(path, %error, "the index of known_hosts lines cannot be kept");
        }
    }
}

/// Files that are there, by their paths, and the states in which they were opened.
type Opened = (Vec<(String, Content)>, Vec<FileState>);

fn open_all(
    paths: &[String],
    now: i64,
    read: impl Fn(&File, &mut FileState) -> io::Result<Content>,
) -> Result<Opened, Unreadable> {
    let (mut contents, mut states) = (Vec::new(), Vec::new());
    for path in paths {
        let content =
            open(path, now).and_then(|(file, mut state)| Ok((read(&file, &mut state)?, state)));
        match content {
            Ok((content, state)) => {
                contents.push((path.clone(), content));
                states.push(state);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                let path = path.clone();
                return Err(Unreadable { path, error });
            }
        }
    }
    Ok((contents, states))
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs().cast_signed())
}

/// `now` must not be later than the call: a change after it has a later time, if the file is settled by then.
fn open(path: &str, now: i64) -> io::Result<(File, FileState)> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    let nanoseconds = |nanoseconds: i64| u32::try_from(nanoseconds).unwrap_or(0);
    let identity = FileIdentity {
        device: metadata.dev(),
        inode: metadata.ino(),
        size: metadata.len(),
        modified: (metadata.mtime(), nanoseconds(metadata.mtime_nsec())),
        changed: (metadata.ctime(), nanoseconds(metadata.ctime_nsec())),
    };
    let state = FileState {
        path: path.to_owned(),
        identity,
        // What is no regular file has no state.
        settled: metadata.is_file() && identity.is_settled(now),
        has_false_index: false,
    };
    Ok((file, state))
}

fn read_whole(mut file: &File, identity: &FileIdentity) -> io::Result<Vec<u8>> {
    let mut content = Vec::with_capacity(usize::try_from(identity.size).unwrap_or(0) + 1);
    file.read_to_end(&mut content)?;
    Ok(content)
}

fn whole(contents: Vec<(String, Content)>) -> Vec<(String, Vec<u8>)> {
    let bytes = |(label, content)| match content {
        Content::Whole(bytes) => Some((label, bytes)),
        Content::Indexed(_) => None,
    };
    contents.into_iter().filter_map(bytes).collect()
}

/// The lines for hosts by the index of a file, if it has one that is to be believed and knows all of them.
fn indexed_lines(
    cache: &IndexCache,
    file: &File,
    state: &mut FileState,
    hosts: &[HostName<'_>],
) -> Option<IndexedLines> {
    let index = cache.of_state(state, hosts.len() >= MANY_NAMES)?;
    let lines = index.lines_for(hosts, &FileOctets(file));
    lines.unwrap_or_else(|error| {
        state.disbelieve_index(error);
        None
    })
}

/// A file that is read piece by piece.
pub(super) struct FileOctets<F>(pub(super) F);

impl<F: std::borrow::Borrow<File>> Octets for FileOctets<F> {
    fn read_at(&self, start: u64, len: usize) -> Option<Vec<u8>> {
        let file: &File = self.0.borrow();
        let mut octets = vec![0; len];
        file.read_exact_at(&mut octets, start).ok()?;
        Some(octets)
    }
}

fn threads(search: &HashedSearch) -> usize {
    match search.pairs() {
        0..=FEW_PAIRS => 1,
        _ => thread::available_parallelism().map_or(1, usize::from),
    }
}

/// Where no more threads are to be had, what they would have scanned is left to the caller.
pub(super) fn scan(search: &HashedSearch) -> Vec<Found> {
    let threads = threads(search);
    if threads == 1 {
        return vec![search.scan(0..search.entries())];
    }
    thread::scope(|scope| {
        let spawn = |range| thread::Builder::new().spawn_scoped(scope, move || search.scan(range));
        let running: Vec<_> = search.ranges(threads).into_iter().map(spawn).collect();
        let running = running.into_iter().filter_map(Result::ok);
        running.filter_map(|thread| thread.join().ok()).collect()
    })
}

#[cfg(test)]
mod tests;
