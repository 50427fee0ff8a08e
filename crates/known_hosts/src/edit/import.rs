//! Taking over the lines of another file.

use std::collections::{HashMap, HashSet};

use super::end_last_line;
use crate::hashed::HashedName;
use crate::key::{self, KeyFields, KeyType};
use crate::key_types::revoking;
use crate::known_hosts::KnownHosts;
use crate::line::{self, Damaged, Line, Marker};
use crate::pattern;

/// A file with another one's lines behind its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The new content.
    pub bytes: Vec<u8>,
    /// Numbers of the other file's lines that were taken over.
    pub added: Vec<usize>,
    /// Numbers of the other file's lines that say nothing new.
    pub duplicates: Vec<usize>,
    /// Lines left out, because they contradict what is known.
    pub conflicts: Vec<Conflict>,
    /// Lines that are not understood.
    pub problems: Vec<ImportProblem>,
}

/// A line of the other file that gives a host another key than the one that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The line's number in the other file.
    pub line: usize,
    /// The name that has a key of that type, or for which the key is revoked.
    pub name: String,
}

/// A line of the other file that is not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImportProblem {
    /// The line's number in the other file.
    pub line: usize,
    /// What is wrong with it.
    pub why: &'static str,
    /// Whether it was taken over all the same, because it revokes something.
    pub kept: bool,
}

/// Appends the lines of `other` that are not in `file` yet; comments are not taken over.
///
/// A line for plain names is left out if all of them have the key already, and reported if one of
/// them has another key of that type: a known key is never joined by a second one unasked.
/// Hashed names of `other` are compared with the plain names that have the same key; patterns and
/// marked lines only as they are written. Costs one HMAC for each pair of a plain name in `other`
/// and a hashed line of `file`.
pub fn import(file: &[u8], other: &[u8]) -> Imported {
    let known = KnownHosts::parse(vec![(String::new(), file.to_vec())]);
    let mut import = Import::new(&known);
    let mut imported = Imported {
        bytes: file.to_vec(),
        added: Vec::new(),
        duplicates: Vec::new(),
        conflicts: Vec::new(),
        problems: Vec::new(),
    };
    for (index, text) in other.split(|&c| c == b'\n').enumerate() {
        let line = index + 1;
        let judged = match import.judge_line(line::parse(text)) {
            Ok(judged) => judged,
            Err((why, kept)) => {
                imported.problems.push(ImportProblem { line, why, kept });
                match kept {
                    true => Judged::Raw,
                    false => continue,
                }
            }
        };
        match judged {
            Judged::Blank => {}
            Judged::Known => imported.duplicates.push(line),
            Judged::Conflict(name) => imported.conflicts.push(Conflict { line, name }),
            Judged::Raw if file.split(|&c| c == b'\n').any(|own| own == text) => {
                imported.duplicates.push(line);
            }
            Judged::New | Judged::Raw => {
                end_last_line(&mut imported.bytes);
                imported.bytes.extend(text);
                imported.bytes.push(b'\n');
                imported.added.push(line);
            }
        }
    }
    imported
}

enum Judged {
    Blank,
    New,
    Known,
    Conflict(String),
    /// Not compared with anything.
    Raw,
}

/// A marker, a host field in lowercase, and a key: what a line says.
type Said = (Marker, Vec<u8>, Vec<u8>);

struct Import<'k> {
    known: &'k KnownHosts,
    /// What lines of the file, and lines taken over, say.
    said: HashSet<Said>,
    /// The plain names that have a key.
    names: HashMap<Vec<u8>, Vec<Vec<u8>>>,
    /// Keys of plain names that were taken over.
    taken: HashMap<(Vec<u8>, KeyType), Vec<u8>>,
}

impl<'k> Import<'k> {
    fn new(known: &'k KnownHosts) -> Import<'k> {
        let mut import = Import {
            known,
            said: HashSet::new(),
            names: HashMap::new(),
            taken: HashMap::new(),
        };
        for entry in known.entries() {
            if let Some(key) = entry.key_blob() {
                let hosts = entry.hosts().to_ascii_lowercase();
                import.note(entry.marker(), &hosts, key);
            }
        }
        import
    }

    fn note(&mut self, marker: Marker, hosts: &[u8], key: Vec<u8>) {
        if marker == Marker::None && is_plain(hosts) {
            let names = hosts.split(|&c| c == b',').map(<[u8]>::to_vec);
            self.names.entry(key.clone()).or_default().extend(names);
        }
        self.said.insert((marker, hosts.to_vec(), key));
    }

    /// What to do with a line; or what is wrong with it, and whether it is kept all the same.
    fn judge_line(&mut self, line: Line<'_>) -> Result<Judged, (&'static str, bool)> {
        let (marker, hosts, key_type, key) = match line {
            Line::Blank => return Ok(Judged::Blank),
            Line::Broken { why, damaged } => return Err((why, damaged != Damaged::Grant)),
            Line::Entry {
                marker,
                hosts,
                key_type,
                key,
            } => (marker, hosts, key_type, key),
        };
        let Some(key_type) = key_type else {
            return Err((line::UNKNOWN_TYPE, false));
        };
        let why = "the key is not a whole key of its type";
        match key::decode_as(key_type, key) {
            Some(blob) => Ok(self.judge(marker, hosts, key_type, blob)),
            // A revoked key need not be whole, but then there is nothing to compare it with.
            None => Err((why, marker == Marker::Revoked)),
        }
    }

    fn judge(&mut self, marker: Marker, hosts: &[u8], key_type: KeyType, blob: Vec<u8>) -> Judged {
        let hosts = match hosts.first() {
            Some(b'|') => hosts.to_vec(),
            _ => hosts.to_ascii_lowercase(),
        };
        let said = (marker, hosts, blob);
        if self.said.contains(&said) {
            return Judged::Known;
        }
        let (_, hosts, blob) = said;
        let judged = match marker {
            Marker::None if is_plain(&hosts) => self.judge_names(&hosts, key_type, &blob),
            Marker::None if self.hashes_a_name(&hosts, &blob) => Judged::Known,
            _ => Judged::New,
        };
        if matches!(judged, Judged::New) {
            self.note(marker, &hosts, blob);
        }
        judged
    }

    /// Whether a hashed name is a plain one that has the same key.
    fn hashes_a_name(&self, hosts: &[u8], blob: &[u8]) -> bool {
        let hashed = HashedName::decode(hosts);
        let names = self.names.get(blob);
        hashed.zip(names).is_some_and(|(hashed, names)| {
            let names: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
            hashed.which(&names).next().is_some()
        })
    }

    fn judge_names(&mut self, hosts: &[u8], key_type: KeyType, blob: &[u8]) -> Judged {
        let names = || hosts.split(|&c| c == b',');
        let mut all_known = true;
        for name in names() {
            let text = String::from_utf8_lossy(name);
            let matches = self.known.lookup_written(&text);
            let taken = self.taken.get(&(name.to_vec(), key_type));
            let own = matches
                .iter()
                .filter(|entry| entry.marker() == Marker::None);
            let keys: Vec<Vec<u8>> = own
                .filter_map(|entry| entry.key_blob())
                .chain(taken.cloned())
                .collect();
            let same = |key: &Vec<u8>| {
                let (a, b) = (KeyFields::parse(key), KeyFields::parse(blob));
                a.zip(b).is_some_and(|(a, b)| a.same(&b))
            };
            let of_type = |key: &Vec<u8>| key::claimed_type(key) == Some(key_type);
            let known = keys.iter().any(same);
            let entries: Vec<_> = matches.iter().collect();
            if revoking(&entries, blob).is_some() || (!known && keys.iter().any(of_type)) {
                return Judged::Conflict(text.into_owned());
            }
            all_known &= known;
        }
        if all_known {
            return Judged::Known;
        }
        for name in names() {
            let own = (name.to_vec(), key_type);
            self.taken.insert(own, blob.to_vec());
        }
        Judged::New
    }
}

fn is_plain(hosts: &[u8]) -> bool {
    !hosts.starts_with(b"|") && pattern::is_plain_list(hosts)
}
