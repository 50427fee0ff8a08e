//! Searching many names among hashed entries: one HMAC a pair of a name and an entry, which the
//! caller may spread over as many threads as it has.

use std::collections::{BTreeSet, HashMap};
use std::iter;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::hashed::HashedName;
use crate::host_name::HostName;
use crate::known_hosts::KnownHosts;

/// A file's entries with hashed names, and what was learned of them.
#[derive(Default)]
pub(crate) struct HashedEntries {
    /// Their records, in the order of the lines. A *position* counts in this list.
    ids: Vec<u32>,
    /// Their salts and hashes, decoded when first needed.
    decoded: OnceLock<Arc<[Option<HashedName>]>>,
    /// Positions of the entries of names that were looked up before, by the written name.
    learned: HashMap<String, Vec<u32>>,
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

    /// The names that were looked up before, with the positions of their entries.
    pub(crate) fn learned(&self) -> impl Iterator<Item = (&str, &[u32])> {
        let learned = self.learned.iter();
        learned.map(|(name, positions)| (name.as_str(), positions.as_slice()))
    }

    pub(crate) fn knows(&self, name: &str) -> bool {
        self.learned.contains_key(name)
    }

    pub(crate) fn learn(&mut self, name: String, positions: Vec<u32>) {
        self.learned.insert(name, positions);
    }

    /// The records that are `name`: remembered, or found with an HMAC each.
    pub(crate) fn find<'f>(&self, name: &str, hosts: impl Fn(u32) -> &'f [u8]) -> Vec<u32> {
        if let Some(positions) = self.learned.get(name) {
            let ids = positions.iter();
            return ids.map(|&position| self.ids[position as usize]).collect();
        }
        let entries = self.decoded(hosts).iter().zip(&self.ids);
        let is_name = |entry: &Option<HashedName>| entry.is_some_and(|e| e.is(name.as_bytes()));
        entries
            .filter(|(entry, _)| is_name(entry))
            .map(|(_, &id)| id)
            .collect()
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
    entries: Arc<[Option<HashedName>]>,
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
        self.files.iter().map(|file| file.entries.len()).sum()
    }

    /// How many HMACs the whole search takes.
    pub fn pairs(&self) -> u64 {
        let pairs = |file: &FileSearch| file.entries.len() as u64 * file.names.len() as u64;
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
            let clip = |at: usize| at.clamp(first, first + file.entries.len()) - first;
            let (start, end) = (clip(range.start), clip(range.end));
            for position in start..end.max(start) {
                if let Some(entry) = &file.entries[position] {
                    let places = entry.which(&names);
                    hits.extend(places.map(|place| (search, place, position as u32)));
                }
            }
            first += file.entries.len();
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
                self.files[file].hashed.learn(name, positions.collect());
            }
        }
    }

    fn search(&self, hosts: &[HostName<'_>]) -> HashedSearch {
        let names = searched_names(hosts);
        let mut files = Vec::new();
        for (number, file) in self.files.iter().enumerate() {
            let unknown = names.iter().filter(|name| !file.hashed.knows(name));
            let names: Vec<String> = unknown.cloned().collect();
            if !names.is_empty() && !file.hashed.is_empty() {
                files.push(FileSearch {
                    file: number,
                    names,
                    entries: Arc::clone(file.hashed.decoded(|id| self.hosts_of(file, id))),
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
