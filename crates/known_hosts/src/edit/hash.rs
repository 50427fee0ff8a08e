//! Hashing the names of a file, as `ssh-keygen -H` does.

use super::Salts;
use super::lines::{EntryLine, View, lines};
use crate::hashed::HashedName;
use crate::line::Marker;
use crate::pattern;

/// A file whose names are hashed as far as they can be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hashed {
    /// The new content.
    pub bytes: Vec<u8>,
    /// How many lines were hashed; each became one line for each of its names.
    pub lines: usize,
    /// Lines whose names stay readable.
    pub kept: Vec<KeptPlain>,
    /// Numbers of lines that are not understood, and stay: they may hold names.
    pub broken: Vec<usize>,
}

/// A line whose names cannot be hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptPlain {
    /// The line with this number has wildcards or negations.
    Wildcard(usize),
    /// The line with this number has a marker.
    Marked(usize),
}

/// Replaces every plain line by one hashed line for each of its names (`known_hosts_hash`,
/// ssh-keygen.c). Empty names in a list are left out; `ssh-keygen` drops the names behind one.
pub fn hash(file: &[u8], salts: Salts<'_>) -> Hashed {
    let mut hashed = Hashed {
        bytes: Vec::with_capacity(file.len() * 2),
        lines: 0,
        kept: Vec::new(),
        broken: Vec::new(),
    };
    for line in lines(file) {
        match line.view {
            View::Entry(entry) if entry.is_hashed() => {}
            View::Entry(entry) if entry.marker != Marker::None => {
                hashed.kept.push(KeptPlain::Marked(line.number));
            }
            View::Entry(entry) if !pattern::is_plain_list(entry.hosts) => {
                hashed.kept.push(KeptPlain::Wildcard(line.number));
            }
            View::Entry(entry) => {
                hashed.lines += 1;
                let ended = line.text.ends_with(b"\n");
                put_hashed(&mut hashed.bytes, &entry, ended, salts);
                continue;
            }
            View::Broken => hashed.broken.push(line.number),
            View::Blank => {}
        }
        hashed.bytes.extend(line.text);
    }
    hashed
}

fn put_hashed(out: &mut Vec<u8>, entry: &EntryLine<'_>, ended: bool, salts: Salts<'_>) {
    let names = entry.hosts.split(|&c| c == b',');
    let mut written = false;
    for name in names.filter(|name| !name.is_empty()) {
        if written {
            super::end_last_line(out);
        }
        let hosts = HashedName::of(&name.to_ascii_lowercase(), salts()).written();
        out.extend(hosts.into_bytes());
        out.push(b' ');
        out.extend(entry.raw_key);
        written = true;
    }
    if written && ended {
        out.push(b'\n');
    }
}
