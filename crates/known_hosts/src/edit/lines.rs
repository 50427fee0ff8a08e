//! A file's lines as `ssh-keygen` sees them when it edits: keys are not looked into, so that a
//! line with a damaged key can still be removed.

use crate::hashed::HashedName;
use crate::key::{self, KeyType};
use crate::line::{self, Marker};
use crate::pattern::{self, ListMatch};

/// One line.
pub(super) struct FileLine<'a> {
    /// Counted from 1.
    pub(super) number: usize,
    /// All of it, with the line feed if it has one.
    pub(super) text: &'a [u8],
    pub(super) view: View<'a>,
}

/// What a line is (`hostkeys_foreach_file` without `HKF_WANT_PARSE_KEY`, hostfile.c).
pub(super) enum View<'a> {
    /// Empty, or a comment.
    Blank,
    /// Not understood; `ssh-keygen` then changes nothing in the whole file.
    Broken,
    Entry(EntryLine<'a>),
}

/// A line for hosts.
#[derive(Clone, Copy)]
pub(super) struct EntryLine<'a> {
    pub(super) marker: Marker,
    pub(super) hosts: &'a [u8],
    /// Type, key and comment, without the line feed.
    pub(super) raw_key: &'a [u8],
}

/// All lines of a file.
pub(super) fn lines(file: &[u8]) -> impl Iterator<Item = FileLine<'_>> {
    let lines = file.split_inclusive(|&c| c == b'\n').enumerate();
    lines.map(|(index, text)| FileLine {
        number: index + 1,
        text,
        view: view(text.strip_suffix(b"\n").unwrap_or(text)),
    })
}

fn view(text: &[u8]) -> View<'_> {
    let text = text.trim_ascii_start();
    if text.is_empty() || text[0] == b'#' {
        return View::Blank;
    }
    entry(text).map_or(View::Broken, View::Entry)
}

fn entry(text: &[u8]) -> Option<EntryLine<'_>> {
    let (marker, rest) = match text.first() {
        Some(b'@') => split_marker(text)?,
        _ => (Marker::None, text),
    };
    let (hosts, raw_key) = line::split_word(rest);
    let unreadable = hosts.starts_with(b"|") && HashedName::decode(hosts).is_none();
    if hosts.starts_with(b"@") && marker != Marker::None || unreadable {
        return None;
    }
    let (name, key) = line::split_word(raw_key);
    if key.is_empty() || key[0] == b'#' {
        return None;
    }
    let known = KeyType::of_algorithm(std::str::from_utf8(name).ok()?);
    if known.is_none() && !key::names_type(line::split_word(key).0.trim_ascii_end(), name) {
        return None;
    }
    Some(EntryLine {
        marker,
        hosts,
        raw_key,
    })
}

/// `check_markers`: a marker ends at the line's first space, and at a tab only if there is none.
fn split_marker(text: &[u8]) -> Option<(Marker, &[u8])> {
    let (word, rest) = line::split_word(text);
    let by_tab = text[word.len()..].starts_with(b"\t") && rest.contains(&b' ');
    let marker = match word {
        b"@cert-authority" if !by_tab => Marker::CertAuthority,
        b"@revoked" if !by_tab => Marker::Revoked,
        _ => return None,
    };
    Some((marker, rest))
}

impl EntryLine<'_> {
    /// Which of the lowercase `names` the line is for, as their places.
    pub(super) fn which(&self, names: &[&[u8]]) -> Vec<usize> {
        if let Some(hashed) = HashedName::decode(self.hosts) {
            return hashed.which(names).collect();
        }
        let applies = |name: &[u8]| pattern::matches_list(self.hosts, name) == ListMatch::Matched;
        let places = names.iter().enumerate();
        places
            .filter_map(|(place, name)| applies(name).then_some(place))
            .collect()
    }

    pub(super) fn is_hashed(&self) -> bool {
        self.hosts.starts_with(b"|")
    }
}
