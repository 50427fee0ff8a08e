//! The one pass over the files.

use std::ops::Range;
use std::sync::Arc;

use crate::index::{NameIndex, is_indexable};
use crate::key::{self, KeyType};
use crate::known_hosts::{Extent, File, Kind, KnownHosts, LineProblem, LineStart, Record};
use crate::line::{self, Line, Marker};
use crate::line_index::IndexedLines;
use crate::revocation::{self, RevokedKey, Salvaged};
use crate::search::{HashedEntries, Learned};

/// Collects files.
#[derive(Default)]
pub(crate) struct Parser {
    known: KnownHosts,
    /// If only some hosts will be asked about, how known_hosts writes them.
    wanted: Option<Vec<String>>,
}

/// Collects the entries of one file.
struct FileParser {
    label: Arc<str>,
    records: Vec<Record>,
    problems: Vec<LineProblem>,
    names: NameIndex,
    patterns: Vec<u32>,
    hashed: Vec<u32>,
    always: Vec<LineStart>,
}

/// Where a line is: its number, and the file's bytes.
struct Place<'a> {
    line: usize,
    /// Where the line begins.
    start: usize,
    bytes: &'a [u8],
}

impl Place<'_> {
    /// Where `part`, a piece of the file's bytes, lies in them.
    fn range(&self, part: &[u8]) -> Range<usize> {
        let start = part.as_ptr().addr() - self.bytes.as_ptr().addr();
        start..start + part.len()
    }
}

impl Parser {
    /// Passes lines over that are about none of the `wanted` names.
    pub(crate) fn for_names(wanted: impl IntoIterator<Item = String>) -> Parser {
        Parser {
            wanted: Some(wanted.into_iter().collect()),
            ..Parser::default()
        }
    }

    /// Reads all lines of a file.
    pub(crate) fn add_file(&mut self, label: &str, bytes: Vec<u8>) {
        let mut file = FileParser::new(label);
        if self.wanted.is_none() {
            let lines = memchr::memchr_iter(b'\n', &bytes).count() + 1;
            file.records.reserve(lines);
        }
        let mut start = 0;
        for (index, end) in memchr::memchr_iter(b'\n', &bytes)
            .chain([bytes.len()])
            .enumerate()
        {
            let place = Place {
                line: index + 1,
                start,
                bytes: &bytes,
            };
            let line = &bytes[start..end];
            if !self.is_about_others(line) {
                file.add_line(&place, line);
            }
            start = end + 1;
        }
        let extent = match self.wanted {
            None => Extent::Whole,
            Some(_) => Extent::Wanted,
        };
        self.known.files.push(Arc::new(file.finish(bytes, extent)));
    }

    /// Reads the lines of a file that its index picked, and takes what it says of hashed ones.
    pub(crate) fn add_lines(&mut self, label: &str, picked: IndexedLines) {
        let mut file = FileParser::new(label);
        for (range, number) in &picked.lines {
            let place = Place {
                line: *number,
                start: range.start,
                bytes: &picked.bytes,
            };
            file.add_line(&place, &picked.bytes[range.clone()]);
        }
        let mut file = file.finish(picked.bytes, Extent::Indexed(picked.content));
        let marked = file.marked();
        for (name, starts) in picked.hashed {
            let start = |id: &u32| file.records[*id as usize].start;
            let position = |place| file.hashed.ids().binary_search_by_key(&place, start).ok();
            let positions = starts.into_iter().filter_map(position);
            let mut positions = positions.map(|position| position as u32).collect();
            file.add_marked(&marked, &name, &mut positions);
            let learned = Learned {
                positions,
                searched: file.hashed.len(),
            };
            file.hashed.learn(name, learned);
        }
        self.known.files.push(Arc::new(file));
    }

    pub(crate) fn finish(self) -> KnownHosts {
        self.known
    }

    /// Whether a line, whole or broken, can say nothing of the wanted names: it is a plain list
    /// without them. A line with an `@` anywhere may be a revocation.
    fn is_about_others(&self, line: &[u8]) -> bool {
        let Some(wanted) = &self.wanted else {
            return false;
        };
        let (hosts, _) = line::split_word(line.trim_ascii_start());
        if hosts.starts_with(b"|")
            || !is_indexable(hosts)
            || memchr::memchr2(b'@', 0, line).is_some()
        {
            return false;
        }
        let is_wanted = |name: &[u8]| {
            let mut wanted = wanted.iter();
            wanted.any(|wanted| wanted.as_bytes().eq_ignore_ascii_case(name))
        };
        !hosts.split(|&c| c == b',').any(is_wanted)
    }
}

impl FileParser {
    fn new(label: &str) -> FileParser {
        FileParser {
            label: label.into(),
            records: Vec::new(),
            problems: Vec::new(),
            names: NameIndex::default(),
            patterns: Vec::new(),
            hashed: Vec::new(),
            always: Vec::new(),
        }
    }

    /// Makes the index usable.
    fn finish(mut self, bytes: Vec<u8>, extent: Extent) -> File {
        self.names.seal();
        File {
            label: self.label,
            bytes,
            extent,
            records: self.records,
            problems: self.problems,
            names: self.names,
            patterns: self.patterns,
            hashed: HashedEntries::new(self.hashed),
            always: self.always,
        }
    }

    fn add_line(&mut self, place: &Place<'_>, line: &[u8]) {
        let parsed = line::parse(line);
        if !is_found_by_name(&parsed) {
            self.always.push(LineStart {
                start: place.start,
                number: place.line,
            });
        }
        match parsed {
            Line::Blank => {}
            Line::Entry {
                marker,
                hosts,
                key_type,
                key,
            } => {
                let kind = match marker {
                    Marker::None => Kind::Host,
                    Marker::CertAuthority => Kind::Authority,
                    Marker::Revoked => {
                        let revoked = RevokedKey::read(key_type, key);
                        let whole = key_type.and_then(|key_type| key::decode_as(key_type, key));
                        if whole.is_none() {
                            let salvaged = Salvaged {
                                hosts: Some(hosts),
                                key: revoked.clone(),
                            };
                            self.report(
                                place,
                                "the revoked key is damaged or of another type",
                                Some(&salvaged),
                            );
                        }
                        Kind::Revocation(Box::new(revoked))
                    }
                };
                self.add_record(place, Some(hosts), (key_type, Some(key)), kind);
            }
            Line::Broken { why, damaged } => {
                let salvaged = revocation::salvage(damaged);
                self.report(place, why, salvaged.as_ref());
                if let Some(Salvaged { hosts, key }) = salvaged {
                    let kind = Kind::Revocation(Box::new(key));
                    self.add_record(place, hosts, (None, None), kind);
                }
            }
        }
    }

    fn add_record(
        &mut self,
        place: &Place<'_>,
        hosts: Option<&[u8]>,
        (key_type, key): (Option<KeyType>, Option<&[u8]>),
        kind: Kind,
    ) {
        let id = self.records.len() as u32;
        match hosts {
            Some(hosts) if hosts[0] == b'|' => self.hashed.push(id),
            Some(hosts) if is_indexable(hosts) => self.names.add(hosts, id),
            Some(_) | None => self.patterns.push(id),
        }
        self.records.push(Record {
            line: place.line,
            start: place.start,
            hosts: hosts.map_or(0..0, |hosts| place.range(hosts)),
            key: key.map_or(0..0, |text| place.range(text)),
            key_type,
            kind,
        });
    }

    /// Notes a damaged line, and what it still revokes.
    fn report(&mut self, place: &Place<'_>, why: &str, revokes: Option<&Salvaged<'_>>) {
        let mut why = format!("{why}; the line grants no trust");
        if let Some(Salvaged { hosts, key }) = revokes {
            let hosts = if hosts.is_some() {
                "for its hosts"
            } else {
                "for all hosts"
            };
            why = match key {
                RevokedKey::Blob(_) => format!("{why}, and the key in it is refused {hosts}"),
                RevokedKey::Unreadable(Some(key_type)) => {
                    format!(
                        "{why}, and every {} key is refused {hosts}",
                        key_type.name()
                    )
                }
                RevokedKey::Unreadable(None) => format!("{why}, and every key is refused {hosts}"),
            };
        }
        self.problems.push(LineProblem {
            file: Arc::clone(&self.label),
            line: place.line,
            why,
        });
    }
}

/// Whether a line says nothing but that some hosts, which it names one by one or hashed, have a key; or nothing at all.
fn is_found_by_name(line: &Line<'_>) -> bool {
    match line {
        Line::Blank => true,
        Line::Entry {
            marker: Marker::None,
            hosts,
            ..
        } => hosts.starts_with(b"|") || is_indexable(hosts),
        Line::Entry { .. } | Line::Broken { .. } => false,
    }
}
