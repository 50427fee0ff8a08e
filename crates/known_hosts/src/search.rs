//! Searching many names among hashed entries: one HMAC a pair of a name and an entry, which the
//! caller may spread over as many threads as it has.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::iter;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::hashed::HashedName;
use crate::host_name::HostName;
use crate::known_hosts::KnownHosts;

/// A file's entries with hashed names, and what was learned of them.
#[derive(Clone, Default)]
pub(crate) struct HashedEntries {
    /// Their records, in the order of the lines. A *position* counts in this list.
    ids: Vec<u32>,
    /// Their salts and hashes, decoded when first needed.
    decoded: OnceLock<Arc<[Option<HashedName>]>>,
    /// What was found out of names that were looked up before, by the written name.
    learned: HashMap<String, Learned>,
}

/// Where a name is among the entries from the first one on.
#[derive(Clone)]
pub(crate) struct Learned {
    pub(crate) positions: Vec<u32>,
    /// How many entries were searched.
    pub(crate) searched: usize,
}

impl HashedEntries {
    pub(crate) fn new(ids: Vec<u32>) -> HashedEntries {
        HashedEntries {
            ids,
            ..HashedEntries::default()
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    pub(crate) fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// The names that were looked up in all entries before, with the positions of theirs.
    pub(crate) fn learned(&self) -> impl Iterator<Item = (&str, &[u32])> {
        let whole = |learned: &&Learned| learned.searched == self.len();
        let learned = self
            .learned
            .iter()
            .filter(move |(_, learned)| whole(learned));
        learned.map(|(name, learned)| (name.as_str(), learned.positions.as_slice()))
    }

    /// How many entries, from the first on, need not be searched for a name.
    fn searched(&self, name: &str) -> usize {
        self.learned.get(name).map_or(0, |learned| learned.searched)
    }

    /// Remembers what is known of a name; of more entries than there are, nothing is.
    pub(crate) fn learn(&mut self, name: String, learned: Learned) {
        if learned.searched <= self.len() {
            self.learned.insert(name, learned);
        }
    }

    /// Adds what a search of the entries that were left found.
    fn learn_rest(&mut self, name: String, rest: impl Iterator<Item = u32>) {
        let before = self.learned.remove(&name);
        let mut positions = before.map_or(Vec::new(), |learned| learned.positions);
        positions.extend(rest);
        let searched = self.len();
        self.learn(
            name,
            Learned {
                positions,
                searched,
            },
        );
    }

    /// The records that are `name`: remembered, or found with an HMAC each.
    pub(crate) fn find<'f>(&self, name: &str, hosts: impl Fn(u32) -> &'f [u8]) -> Vec<u32> {
        let learned = self.learned.get(name);
        let remembered = learned.into_iter().flat_map(|learned| &learned.positions);
        let mut found: Vec<u32> = remembered
            .map(|&position| self.ids[position as usize])
            .collect();
        let searched = self.searched(name);
        if searched < self.len() {
            let rest = self.decoded(hosts).iter().zip(&self.ids).skip(searched);
            let is_name = |entry: &Option<HashedName>| entry.is_some_and(|e| e.is(name.as_bytes()));
            found.extend(rest.filter(|(entry, _)| is_name(entry)).map(|(_, &id)| id));
        }
        found
    }

    fn decoded<'f>(&self, hosts: impl Fn(u32) -> &'f [u8]) -> &Arc<[Option<HashedName>]> {
        self.decoded.get_or_init(|| {
            let ids = self.ids.iter();
            ids.map(|&id| HashedName::decode(hosts(id))).collect()
        })
    }
}

/// Names that are to be found among the hashed entries of all files.
///
/// The entries are numbered through from 0 to [`entries`](Self::entries); any range of them can be
/// [scanned](Self::scan) on any thread.
pub struct HashedSearch {
    files: Vec<FileSearch>,
}

struct FileSearch {
    file: usize,
    names: Vec<String>,
    /// All entries of the file; those before `first` are known.
    entries: Arc<[Option<HashedName>]>,
    first: usize,
}

impl FileSearch {
    fn len(&self) -> usize {
        self.entries.len() - self.first
    }
}

/// What a range of entries held.
pub struct Found {
    range: Range<usize>,
    /// File search, name, and the entry's position in the file.
    hits: Vec<(usize, usize, u32)>,
}

impl HashedSearch {
    /// How many entries are to be searched.
    pub fn entries(&self) -> usize {
        self.files.iter().map(FileSearch::len).sum()
    }

    /// How many HMACs the whole search takes.
    pub fn pairs(&self) -> u64 {
        let pairs = |file: &FileSearch| file.len() as u64 * file.names.len() as u64;
        self.files.iter().map(pairs).sum()
    }

    /// Splits the work into at most `parts` ranges of about the same size.
    pub fn ranges(&self, parts: usize) -> Vec<Range<usize>> {
        let entries = self.entries();
        let step = entries.div_ceil(parts.max(1)).max(1);
        let starts = (0..entries).step_by(step);
        starts
            .map(|start| start..entries.min(start + step))
            .collect()
    }

    /// Compares the entries of `range` with all names.
    pub fn scan(&self, range: Range<usize>) -> Found {
        let mut hits = Vec::new();
        let mut first = 0;
        for (search, file) in self.files.iter().enumerate() {
            let names: Vec<&[u8]> = file.names.iter().map(String::as_bytes).collect();
            let clip = |at: usize| at.clamp(first, first + file.len()) - first + file.first;
            let (start, end) = (clip(range.start), clip(range.end));
            for position in start..end.max(start) {
                if let Some(entry) = &file.entries[position] {
                    let places = entry.which(&names);
                    hits.extend(places.map(|place| (search, place, position as u32)));
                }
            }
            first += file.len();
        }
        Found { range, hits }
    }

    /// The ranges that none of `found` covers.
    fn uncovered(&self, found: &[Found]) -> Vec<Range<usize>> {
        let mut covered: Vec<Range<usize>> =
            found.iter().map(|found| found.range.clone()).collect();
        covered.sort_by_key(|range| range.start);
        let end = self.entries()..usize::MAX;
        let (mut next, mut missing) = (0, Vec::new());
        for range in covered.into_iter().chain(iter::once(end)) {
            if next < range.start {
                missing.push(next..range.start);
            }
            next = next.max(range.end);
        }
        missing
    }
}

impl KnownHosts {
    /// Looks many hosts up in the hashed entries at once and remembers the result, so that
    /// looking them up and judging their keys later computes nothing. Of a host on another port
    /// the bare name is looked up as well, because it is asked for when nothing else is known.
    ///
    /// Costs one HMAC for each pair of a hashed entry and a host that was neither learned nor
    /// [recalled](Self::recall) before; nothing if there is none. `run` is to
    /// [scan](HashedSearch::scan) all [ranges](HashedSearch::ranges), on threads of its own if it
    /// likes; what it leaves out is scanned here.
    pub fn learn(&mut self, hosts: &[HostName<'_>], run: impl FnOnce(&HashedSearch) -> Vec<Found>) {
        let search = self.search(hosts);
        if search.pairs() == 0 {
            return;
        }
        let mut found = run(&search);
        for range in search.uncovered(&found) {
            found.push(search.scan(range));
        }
        let hits: BTreeSet<_> = found.into_iter().flat_map(|found| found.hits).collect();
        let mut hits = hits.into_iter().peekable();
        for (number, FileSearch { file, names, .. }) in search.files.into_iter().enumerate() {
            for (place, name) in names.into_iter().enumerate() {
                let own = |hit: &(usize, usize, u32)| (hit.0, hit.1) == (number, place);
                let positions = iter::from_fn(|| hits.next_if(own)).map(|hit| hit.2);
                Arc::make_mut(&mut self.files[file])
                    .hashed
                    .learn_rest(name, positions);
            }
        }
    }

    fn search(&self, hosts: &[HostName<'_>]) -> HashedSearch {
        let names = searched_names(hosts);
        let mut files = Vec::new();
        for (number, file) in self.files.iter().enumerate() {
            let mut unknown: BTreeMap<usize, Vec<String>> = BTreeMap::new();
            for name in &names {
                let first = file.hashed.searched(name);
                if first < file.hashed.len() {
                    unknown.entry(first).or_default().push(name.clone());
                }
            }
            for (first, names) in unknown {
                files.push(FileSearch {
                    file: number,
                    names,
                    entries: Arc::clone(file.hashed.decoded(|id| file.hosts_of(id))),
                    first,
                });
            }
        }
        HashedSearch { files }
    }
}

/// The names under which known_hosts is asked about hosts, each once: as written, and bare.
pub(crate) fn searched_names(hosts: &[HostName<'_>]) -> BTreeSet<String> {
    let bare = hosts.iter().filter(|host| !host.is_default_port());
    let bare = bare.map(|host| HostName::new(host.name).written());
    hosts.iter().map(HostName::written).chain(bare).collect()
}

#[cfg(test)]
mod tests;
