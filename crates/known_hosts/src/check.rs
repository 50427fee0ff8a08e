//! What is wrong, weak or superfluous in known_hosts files.

use std::collections::hash_map::Entry as Slot;
use std::collections::{BTreeSet, HashMap};
use std::fmt;

use crate::key::{KeyFields, KeyType};
use crate::known_hosts::{Entry, KnownHosts, LineProblem, Location, RecordId};
use crate::line::{Marker, UNKNOWN_TYPE};
use crate::pattern;

/// RSA keys with fewer bits are refused by default (`RequiredRSASize` is 1024 in OpenSSH, 2048
/// here).
const MIN_RSA_BITS: usize = 2048;

/// What [`KnownHosts::check`] found, each list in the order of files and lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Lines that are not understood, or whose key is damaged.
    pub broken: Vec<LineProblem>,
    /// Lines that say again what an earlier one says.
    pub duplicates: Vec<Duplicate>,
    /// Keys that ought to be replaced.
    pub weak: Vec<Weakness>,
    /// Names with two keys of one type: one of them is usually left over.
    pub two_keys: Vec<TwoKeys>,
}

/// A name, pattern or hashed name that has the same key twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Duplicate {
    /// The name, or the whole host field if it is not a plain list.
    pub name: String,
    /// The line that says it first.
    pub first: Location,
    /// The line that says it again.
    pub again: Location,
}

/// A key that is too weak.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weakness {
    /// The line.
    pub at: Location,
    /// The key's type: RSA or DSA.
    pub key_type: KeyType,
    /// Its size.
    pub bits: usize,
}

impl fmt::Display for Weakness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Weakness { at, key_type, bits } = self;
        let name = key_type.name();
        match key_type {
            KeyType::Dsa => write!(f, "{at}: {name} keys are not accepted any more"),
            _ => write!(
                f,
                "{at}: the {name} key has {bits} bits; fewer than {MIN_RSA_BITS} are refused"
            ),
        }
    }
}

/// A name that has two keys of one type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TwoKeys {
    /// The name.
    pub name: String,
    /// The type of both keys.
    pub key_type: KeyType,
    /// The line with the first key.
    pub first: Location,
    /// The line with another.
    pub other: Location,
}

impl KnownHosts {
    /// The names that lines without wildcards, negations and hashes have, as they are looked up, each once.
    pub fn plain_names(&self) -> BTreeSet<String> {
        let plain = self.entries().filter(|entry| is_plain(entry.hosts()));
        let fields = plain.map(|entry| String::from_utf8_lossy(entry.hosts()).to_ascii_lowercase());
        let names = |field: String| field.split(',').map(str::to_owned).collect::<Vec<_>>();
        let names = fields.flat_map(names);
        names.filter(|name| !name.is_empty()).collect()
    }

    /// Looks for what should be tidied up. Names are compared as written: what a wildcard stands for is not asked, and a
    /// hashed name is another one than it looks like only if it is one of `names`, which are written as
    /// [`plain_names`](Self::plain_names) are.
    ///
    /// Costs an HMAC for each pair of a name and a hashed line, unless the names were [learned](Self::learn).
    pub fn check(&self, names: &BTreeSet<String>) -> Report {
        let recognised = self.recognised(names);
        let mut report = Report {
            broken: self.problems().into_iter().cloned().collect(),
            ..Report::default()
        };
        let mut seen = Seen::default();
        for (id, entry) in self.numbered_entries() {
            let Some(blob) = entry.key_blob() else {
                report.broken.extend(damaged_key(&entry));
                continue;
            };
            let Some(key) = KeyFields::parse(&blob) else {
                continue;
            };
            if entry.marker() != Marker::Revoked {
                report.weak.extend(weakness(&entry, &key));
            }
            seen.add(&entry, recognised.get(&id).copied(), &key, &mut report);
        }
        report.broken.sort_by_key(|problem| self.order(problem));
        report
    }

    /// Which hashed lines are about which of the names.
    fn recognised<'n>(&self, names: &'n BTreeSet<String>) -> HashMap<RecordId, &'n str> {
        let mut recognised = HashMap::new();
        if self.files.iter().all(|file| file.hashed.is_empty()) {
            return recognised;
        }
        for name in names {
            let matches = self.lookup_written(name);
            let lines = matches.ids().zip(matches.iter());
            let hashed = lines.filter(|(_, entry)| is_hashed(entry.hosts()));
            recognised.extend(hashed.map(|(id, _)| (id, name.as_str())));
        }
        recognised
    }

    fn order(&self, problem: &LineProblem) -> (Option<usize>, usize) {
        let file = self
            .files
            .iter()
            .position(|file| file.label == problem.file);
        (file, problem.line)
    }
}

#[derive(Default)]
struct Seen {
    /// A marker, a name and a key, and where they were met.
    lines: HashMap<(Marker, Vec<u8>, Vec<u8>), Location>,
    /// A name's first key of a type.
    keys: HashMap<(Vec<u8>, KeyType), Location>,
}

impl Seen {
    /// `recognised` is the name of a hashed line, if that is known.
    fn add(
        &mut self,
        entry: &Entry<'_>,
        recognised: Option<&str>,
        key: &KeyFields<'_>,
        report: &mut Report,
    ) {
        let hosts = entry.hosts();
        let names: Vec<Vec<u8>> = match recognised {
            Some(name) => vec![name.into()],
            None if is_plain(hosts) => hosts
                .split(|&c| c == b',')
                .map(<[u8]>::to_ascii_lowercase)
                .collect(),
            None => vec![hosts.to_vec()],
        };
        let are_names = is_plain(hosts) || is_hashed(hosts);
        for name in names {
            let shown = String::from_utf8_lossy(&name).into_owned();
            let said = (entry.marker(), name.clone(), key.canonical());
            match self.lines.entry(said) {
                Slot::Occupied(first) => {
                    report.duplicates.push(Duplicate {
                        name: shown,
                        first: first.get().clone(),
                        again: entry.location(),
                    });
                    continue;
                }
                Slot::Vacant(slot) => slot.insert(entry.location()),
            };
            if !are_names || entry.marker() != Marker::None {
                continue;
            }
            match self.keys.entry((name, key.key_type)) {
                Slot::Vacant(slot) => {
                    slot.insert(entry.location());
                }
                Slot::Occupied(first) => report.two_keys.push(TwoKeys {
                    name: shown,
                    key_type: key.key_type,
                    first: first.get().clone(),
                    other: entry.location(),
                }),
            }
        }
    }
}

fn is_hashed(hosts: &[u8]) -> bool {
    hosts.starts_with(b"|")
}

fn is_plain(hosts: &[u8]) -> bool {
    !hosts.is_empty() && !is_hashed(hosts) && pattern::is_plain_list(hosts)
}

/// A damaged revocation is among the problems already.
fn damaged_key(entry: &Entry<'_>) -> Option<LineProblem> {
    let Location { file, line } = entry.location();
    let why = match entry.key_type() {
        _ if entry.marker() == Marker::Revoked => return None,
        Some(key_type) => format!("the key is not a whole {} key", key_type.name()),
        None => format!("{UNKNOWN_TYPE}; the host counts as known by another key"),
    };
    Some(LineProblem { file, line, why })
}

fn weakness(entry: &Entry<'_>, key: &KeyFields<'_>) -> Option<Weakness> {
    let bits = key.bits()?;
    let weak = key.key_type == KeyType::Dsa || bits < MIN_RSA_BITS;
    weak.then(|| Weakness {
        at: entry.location(),
        key_type: key.key_type,
        bits,
    })
}

#[cfg(test)]
mod tests;
