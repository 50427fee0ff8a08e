//! The parsed files and the look-up of hosts in them.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::host_name::HostName;
use crate::index::NameIndex;
use crate::key::{self, KeyType};
use crate::line::Marker;
use crate::line_index::{ContentTag, IndexedLines};
use crate::parse::Parser;
use crate::pattern::{self, ListMatch};
use crate::revocation::RevokedKey;
use crate::search::{HashedEntries, searched_names};

/// A file and a line in it, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Location {
    /// The label that the file was given to [`KnownHosts::parse`] with, usually its path.
    pub file: Arc<str>,
    /// The line's number.
    pub line: usize,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// A line that could not be understood, or not wholly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineProblem {
    /// The file's label.
    pub file: Arc<str>,
    /// The line's number, from 1.
    pub line: usize,
    /// What is wrong with the line, and what was made of it.
    pub why: String,
}

impl fmt::Display for LineProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.why)
    }
}

/// A file as it was read; entries are offsets into it.
#[derive(Clone)]
pub(crate) struct File {
    pub(crate) label: Arc<str>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) extent: Extent,
    pub(crate) records: Vec<Record>,
    pub(crate) problems: Vec<LineProblem>,
    /// Entries that are lists of exact names.
    pub(crate) names: NameIndex,
    /// Entries with wildcards or negations, or for all hosts: matched one by one.
    pub(crate) patterns: Vec<u32>,
    pub(crate) hashed: HashedEntries,
    /// Lines that no index leaves out: with wildcards, negations or markers, and those that are not understood.
    pub(crate) always: Vec<LineStart>,
}

/// How much of a file was looked at.
#[derive(Clone)]
pub(crate) enum Extent {
    /// All of it.
    Whole,
    /// All of it is there, but lines that are not about some hosts were passed over.
    Wanted,
    /// An index picked the lines for some hosts; the rest was not read.
    Indexed(ContentTag),
}

/// A line's first byte and its number.
#[derive(Clone, Copy)]
pub(crate) struct LineStart {
    pub(crate) start: usize,
    pub(crate) number: usize,
}

/// What is to be parsed of a file.
pub enum Content {
    /// All of it.
    Whole(Vec<u8>),
    /// What its index says of some hosts ([`LineIndex::lines_for`](crate::LineIndex::lines_for)).
    Indexed(IndexedLines),
}

/// What an entry is for.
#[derive(Clone)]
pub(crate) enum Kind {
    Host,
    Authority,
    Revocation(Box<RevokedKey>),
}

/// One line that means something.
#[derive(Clone)]
pub(crate) struct Record {
    pub(crate) line: usize,
    /// Where the line begins.
    pub(crate) start: usize,
    /// The host field; empty only for a damaged revocation, which then applies to all hosts.
    pub(crate) hosts: Range<usize>,
    /// The base64 key; empty only for a damaged revocation.
    pub(crate) key: Range<usize>,
    /// As the line says it; a damaged revocation may not say it, and a host's key may be of a type that is not known here.
    pub(crate) key_type: Option<KeyType>,
    pub(crate) kind: Kind,
}

/// Which record of which file; they are in the order of files and lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RecordId {
    file: u32,
    record: u32,
}

/// All known_hosts files of a user, in the order in which they are consulted. A file may be among several users' files:
/// a copy shares it.
#[derive(Clone, Default)]
pub struct KnownHosts {
    pub(crate) files: Vec<Arc<File>>,
}

impl KnownHosts {
    /// Takes files in the order in which they are consulted: those of `UserKnownHostsFile`, then
    /// those of `GlobalKnownHostsFile`. A file is named by its label in every [`Location`].
    ///
    /// One pass; no key is decoded, except on `@revoked` lines. Damaged lines go into
    /// [`problems`](Self::problems) and keep none of the others from working.
    pub fn parse(files: Vec<(String, Vec<u8>)>) -> KnownHosts {
        let mut parser = Parser::default();
        for (label, bytes) in files {
            parser.add_file(&label, bytes);
        }
        parser.finish()
    }

    /// As [`parse`](Self::parse), for a program that will ask about a few `hosts` only, such as a
    /// `KnownHostsCommand`: the answers for them are the same at a fraction of the cost, those for
    /// other hosts are not. Damaged lines of others are not reported.
    pub fn parse_for(files: Vec<(String, Vec<u8>)>, hosts: &[HostName<'_>]) -> KnownHosts {
        let mut parser = Parser::for_names(searched_names(hosts));
        for (label, bytes) in files {
            parser.add_file(&label, bytes);
        }
        parser.finish()
    }

    /// Takes files in whole, and of others the lines that an index picked for some hosts: the answers for these hosts
    /// are the same as if all were there in whole, those for other hosts are not. Damaged lines are reported in either
    /// case.
    pub fn assemble(files: Vec<(String, Content)>) -> KnownHosts {
        let mut parser = Parser::default();
        for (label, content) in files {
            match content {
                Content::Whole(bytes) => parser.add_file(&label, bytes),
                Content::Indexed(lines) => parser.add_lines(&label, lines),
            }
        }
        parser.finish()
    }

    /// Consults all files of the `lists`, one list after the other. They are shared, not copied.
    pub fn chain<'l>(lists: impl IntoIterator<Item = &'l KnownHosts>) -> KnownHosts {
        let files = lists
            .into_iter()
            .flat_map(|list| list.files.iter().cloned());
        KnownHosts {
            files: files.collect(),
        }
    }

    /// The lines that could not be understood, in the order of the files.
    pub fn problems(&self) -> Vec<&LineProblem> {
        self.files.iter().flat_map(|file| &file.problems).collect()
    }

    /// What a file, counted from 0, held; of one that was not read in whole, the lines that were.
    pub fn content(&self, file: usize) -> &[u8] {
        self.files.get(file).map_or(&[], |file| &file.bytes)
    }

    /// How many bytes of the file with this label, which holds `now` by now, were there when it was read: all that it
    /// held, if that is the beginning of `now`, else none.
    pub fn seen_of(&self, label: &str, now: &[u8]) -> usize {
        let file = self.files.iter().find(|file| &*file.label == label);
        let seen = file.and_then(|file| match &file.extent {
            Extent::Whole | Extent::Wanted => {
                now.starts_with(&file.bytes).then_some(file.bytes.len())
            }
            Extent::Indexed(content) => content.prefix_of(now),
        });
        seen.unwrap_or(0)
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.files.iter().map(|file| file.records.len()).sum()
    }

    /// Whether there is no entry at all.
    pub fn is_empty(&self) -> bool {
        self.files.iter().all(|file| file.records.is_empty())
    }

    /// All entries, in the order of files and lines.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        self.numbered_entries().map(|(_, entry)| entry)
    }

    /// As [`entries`](Self::entries), with the numbers of their records.
    pub(crate) fn numbered_entries(&self) -> impl Iterator<Item = (RecordId, Entry<'_>)> {
        (0..).zip(&self.files).flat_map(move |(number, file)| {
            (0..).zip(&file.records).map(move |(record, _)| {
                let id = RecordId {
                    file: number,
                    record,
                };
                (id, self.entry(id))
            })
        })
    }

    fn entry(&self, id: RecordId) -> Entry<'_> {
        let file = &self.files[id.file as usize];
        Entry {
            number: id.file as usize,
            file,
            record: &file.records[id.record as usize],
        }
    }

    /// The entries that apply to a host, in the order of files and lines.
    ///
    /// Costs a look into the index, a match for each entry with wildcards, and an HMAC for each
    /// hashed entry unless the host was [learned](Self::learn).
    pub fn lookup(&self, host: &HostName<'_>) -> Matches<'_> {
        self.lookup_written(&host.written())
    }

    /// As [`lookup`](Self::lookup), for a name as known_hosts writes it: lowercase, with brackets
    /// and port unless that is 22.
    pub fn lookup_written(&self, name: &str) -> Matches<'_> {
        let mut entries = Vec::new();
        for (number, file) in (0..).zip(&self.files) {
            let own = file.lookup_written(name).into_iter();
            entries.extend(own.map(|record| RecordId {
                file: number,
                record,
            }));
        }
        Matches {
            known: self,
            entries,
        }
    }
}

impl File {
    fn lookup_written(&self, name: &str) -> Vec<u32> {
        let named = self
            .names
            .candidates(name.as_bytes())
            .chain(self.patterns.iter().copied());
        let mut records: Vec<u32> = named
            .filter(|&id| self.applies(id, name.as_bytes()))
            .collect();
        if !self.hashed.is_empty() {
            records.extend(self.hashed.find(name, |id| self.hosts_of(id)));
        }
        records.sort_unstable();
        records
    }

    /// Whether an entry that is not hashed applies to the lowercase `name`.
    fn applies(&self, id: u32, name: &[u8]) -> bool {
        let hosts = self.hosts_of(id);
        hosts.is_empty() || pattern::matches_list(hosts, name) == ListMatch::Matched
    }

    /// The host field of a record.
    pub(crate) fn hosts_of(&self, id: u32) -> &[u8] {
        self.hosts(&self.records[id as usize])
    }

    pub(crate) fn hosts(&self, record: &Record) -> &[u8] {
        &self.bytes[record.hosts.clone()]
    }
}

/// The entries that apply to one host.
#[derive(Clone)]
pub struct Matches<'k> {
    known: &'k KnownHosts,
    entries: Vec<RecordId>,
}

impl<'k> Matches<'k> {
    /// The entries in the order of files and lines.
    pub fn iter(&self) -> impl Iterator<Item = Entry<'k>> + '_ {
        let known = self.known;
        self.entries.iter().map(move |&id| known.entry(id))
    }

    /// The numbers of the entries' records.
    pub(crate) fn ids(&self) -> impl Iterator<Item = RecordId> + '_ {
        self.entries.iter().copied()
    }

    /// Whether the host is not mentioned anywhere.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many entries apply.
    pub fn len(&self) -> usize {
        self.entries.len()
    }
}

/// One line that applies to a host.
#[derive(Clone, Copy)]
pub struct Entry<'k> {
    /// Which of the files it is in.
    number: usize,
    file: &'k File,
    record: &'k Record,
}

impl<'k> Entry<'k> {
    /// What the line is for.
    pub fn marker(&self) -> Marker {
        match self.record.kind {
            Kind::Host => Marker::None,
            Kind::Authority => Marker::CertAuthority,
            Kind::Revocation(_) => Marker::Revoked,
        }
    }

    /// The key's type as the line names it; `None` on a damaged revocation, and where the type is not known here.
    pub fn key_type(&self) -> Option<KeyType> {
        self.record.key_type
    }

    /// The host field as written: names, patterns, or a hashed name.
    pub fn hosts(&self) -> &'k [u8] {
        self.file.hosts(self.record)
    }

    /// Which of the files it is in.
    pub(crate) fn file(&self) -> usize {
        self.number
    }

    /// The key as it is written, in base64.
    pub(crate) fn key_text(&self) -> &'k [u8] {
        &self.file.bytes[self.record.key.clone()]
    }

    /// The whole line as it stands in its file, without the line feed.
    pub fn line_text(&self) -> &'k [u8] {
        let bytes = &self.file.bytes[self.record.start..];
        &bytes[..memchr::memchr(b'\n', bytes).unwrap_or(bytes.len())]
    }

    /// Decodes the key (RFC 4253 section 6.6); `None` if what the line holds is not a whole key of
    /// the type it names.
    pub fn key_blob(&self) -> Option<Vec<u8>> {
        key::decode_as(self.record.key_type?, self.key_text())
    }

    /// The file and line.
    pub fn location(&self) -> Location {
        Location {
            file: Arc::clone(&self.file.label),
            line: self.record.line,
        }
    }

    /// Whether the line has a key of the host's that cannot be compared with others, since its type is not known here.
    pub(crate) fn is_foreign(&self) -> bool {
        matches!(self.record.kind, Kind::Host) && self.record.key_type.is_none()
    }

    /// For a revocation, what it revokes.
    pub(crate) fn revoked_key(&self) -> Option<&'k RevokedKey> {
        match &self.record.kind {
            Kind::Revocation(key) => Some(key),
            Kind::Host | Kind::Authority => None,
        }
    }
}

#[cfg(test)]
mod tests;
