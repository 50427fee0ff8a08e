//! The lines of a file that an index points at for some hosts: read, and made to prove themselves.

use std::collections::BTreeMap;
use std::ops::Range;

use super::layout::{Span, Table};
use super::seal::{INDEX_KEY_LEN, Keys, Tag};
use super::{IndexError, LineIndex, Octets};
use crate::hashed::HashedName;
use crate::host_name::HostName;
use crate::index::is_indexable;
use crate::line::{self, Line, Marker};
use crate::pattern::{self, ListMatch};
use crate::search::searched_names;

/// Bytes between two lines that are read along, since a further read costs more.
const GAP: u64 = 512;

/// All lines of a file that can say anything of some hosts.
pub struct IndexedLines {
    /// The lines, each with a line feed.
    pub(crate) bytes: Vec<u8>,
    /// Where each is in `bytes`, without the line feed, and its number in the file.
    pub(crate) lines: Vec<(Range<usize>, usize)>,
    /// Where the hashed lines of each name begin in `bytes`.
    pub(crate) hashed: Vec<(String, Vec<usize>)>,
    pub(crate) content: ContentTag,
}

/// What the bytes of a file were that are not at hand.
#[derive(Clone)]
pub(crate) struct ContentTag {
    key: [u8; INDEX_KEY_LEN],
    tag: Tag,
    len: u64,
}

impl ContentTag {
    /// How long the content is, if `now` begins with it.
    pub(crate) fn prefix_of(&self, now: &[u8]) -> Option<usize> {
        let len = usize::try_from(self.len).ok()?;
        let tag = Keys::derive(&self.key).tag_of_content(now.get(..len)?);
        (tag == self.tag).then_some(len)
    }
}

/// Lines that the index names, by their first byte, and for which of the names.
#[derive(Default)]
struct Named {
    spans: BTreeMap<u32, Span>,
    plain: Vec<(u32, usize)>,
    hashed: Vec<(u32, usize)>,
}

impl Named {
    fn add(&mut self, span: Span) -> Result<u32, IndexError> {
        match self.spans.insert(span.start, span) {
            Some(other) if other != span => Err(IndexError::Damaged),
            _ => Ok(span.start),
        }
    }
}

impl<S: Octets> LineIndex<S> {
    /// The lines of `file` that matter for hosts: theirs, and those to be looked at whoever is asked for. `None` if
    /// the file has hashed lines in which a host, or a host's bare name, was not looked for yet.
    ///
    /// The caller has made sure that the index [is of](Self::is_of) this file and [settled](Self::is_settled).
    ///
    /// # Errors
    ///
    /// The index is damaged, or the file does not hold what it says.
    pub fn lines_for(
        &self,
        hosts: &[HostName<'_>],
        file: &impl Octets,
    ) -> Result<Option<IndexedLines>, IndexError> {
        let names: Vec<String> = searched_names(hosts).into_iter().collect();
        let mut named = Named::default();
        for span in self.always()? {
            named.add(span)?;
        }
        for (place, name) in names.iter().enumerate() {
            let tag = self.keys.tag_of_name(name.as_bytes());
            for row in self.rows_of(Table::Plain, &tag)? {
                let start = named.add(row.span)?;
                named.plain.push((start, place));
            }
            if self.head.hashed == 0 {
                continue;
            }
            let rows = self.rows_of(Table::Hashed, &tag)?;
            let searched = rows.first().map(|row| row.searched);
            if searched != Some(self.head.hashed) {
                return Ok(None);
            }
            for row in rows.into_iter().filter(|row| row.span != Span::NONE) {
                let start = named.add(row.span)?;
                named.hashed.push((start, place));
            }
        }
        self.proven(names, &named, file).map(Some)
    }

    fn proven(
        &self,
        names: Vec<String>,
        named: &Named,
        file: &impl Octets,
    ) -> Result<IndexedLines, IndexError> {
        let spans: Vec<Span> = named.spans.values().copied().collect();
        let (bytes, lines) = read_lines(&spans, self.head.identity.size, file)?;
        let line_at = |start: u32| {
            let place = spans.binary_search_by_key(&start, |span| span.start);
            let place = place.map_err(|_| IndexError::Contradicted)?;
            Ok(lines[place].0.clone())
        };
        for &(start, place) in &named.plain {
            if !names_plainly(&bytes[line_at(start)?], &names[place]) {
                return Err(IndexError::Contradicted);
            }
        }
        let mut hashed: Vec<(String, Vec<usize>)> =
            names.into_iter().map(|name| (name, Vec::new())).collect();
        for &(start, place) in &named.hashed {
            let range = line_at(start)?;
            let (name, starts) = &mut hashed[place];
            if !is_hashed_name(&bytes[range.clone()], name) {
                return Err(IndexError::Contradicted);
            }
            starts.push(range.start);
        }
        let content = ContentTag {
            key: self.head.key,
            tag: self.head.content,
            len: self.head.identity.size,
        };
        Ok(IndexedLines {
            bytes,
            lines,
            hashed,
            content,
        })
    }
}

/// The lines with a line feed each, where they are, and their numbers.
type Lines = (Vec<u8>, Vec<(Range<usize>, usize)>);

/// Reads lines in their order. Each must be a whole line of the file, which has `size` bytes, and there is no byte in
/// two of them: what an index makes us read is no more than the file.
fn read_lines(spans: &[Span], size: u64, file: &impl Octets) -> Result<Lines, IndexError> {
    let (mut bytes, mut lines) = (Vec::new(), Vec::with_capacity(spans.len()));
    let is_close = |a: &Span, b: &Span| u64::from(b.start) <= a.end() + GAP;
    for near in spans.chunk_by(is_close) {
        let (Some(first), Some(last)) = (near.first(), near.last()) else {
            continue;
        };
        // With the line feeds before and behind.
        let start = u64::from(first.start).saturating_sub(1);
        let end = (last.end() + 1).min(size);
        let len = usize::try_from(end.saturating_sub(start)).map_err(|_| IndexError::Damaged)?;
        if last.end() > size || !near.is_sorted_by(|a, b| a.end() < u64::from(b.start)) {
            return Err(IndexError::Damaged);
        }
        let read = file.read_at(start, len).ok_or(IndexError::Contradicted)?;
        for span in near {
            let at = (u64::from(span.start) - start) as usize;
            let line = whole_line(&read, at, span.len as usize).ok_or(IndexError::Contradicted)?;
            let place = bytes.len();
            bytes.extend(line);
            lines.push((place..bytes.len(), span.line as usize));
            bytes.push(b'\n');
        }
    }
    Ok((bytes, lines))
}

/// The bytes, if they are one line from its beginning to its end.
fn whole_line(read: &[u8], start: usize, len: usize) -> Option<&[u8]> {
    let line = read.get(start..start + len)?;
    let begins = start == 0 || read[start - 1] == b'\n';
    let ends = read.get(start + len).is_none_or(|&next| next == b'\n');
    (begins && ends && memchr::memchr(b'\n', line).is_none()).then_some(line)
}

fn hosts_without_marker(line: &[u8]) -> Option<&[u8]> {
    match line::parse(line) {
        Line::Entry {
            marker: Marker::None,
            hosts,
            ..
        } => Some(hosts),
        _ => None,
    }
}

fn names_plainly(line: &[u8], name: &str) -> bool {
    hosts_without_marker(line).is_some_and(|hosts| {
        is_indexable(hosts) && pattern::matches_list(hosts, name.as_bytes()) == ListMatch::Matched
    })
}

fn is_hashed_name(line: &[u8], name: &str) -> bool {
    let hosts = match line::parse(line) {
        Line::Entry { hosts, .. } => HashedName::decode(hosts),
        _ => None,
    };
    hosts.is_some_and(|hashed| hashed.is(name.as_bytes()))
}
