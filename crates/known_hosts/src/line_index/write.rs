//! Writing an index of a file that was read and parsed in whole.

use std::collections::BTreeMap;

use super::layout::{FileIdentity, HEAD_LEN, Head, Row, Span, Table, TableSize};
use super::seal::{INDEX_KEY_LEN, Keys, Tag};
use super::{LineIndex, MAX_INDEX_LEN, MAX_INDEX_NAMES, Octets};
use crate::index::is_indexable;
use crate::known_hosts::{File, Kind, KnownHosts, Record};

/// What a written index starts from.
pub enum IndexBase<'i, S> {
    /// Nothing: fresh random bytes for its key.
    New([u8; INDEX_KEY_LEN]),
    /// An index of the same bytes, to which lines may have been added since. Its hashed names are kept.
    Extend(&'i LineIndex<S>),
}

/// What an index says, before it is ordered and sealed.
struct Statements {
    always: Vec<Span>,
    tables: [Vec<Row>; 2],
}

impl KnownHosts {
    /// The bytes of an index of a file: of all names that it holds in the clear, and of those that were learned or
    /// recalled for its hashed lines, found or not. `settled` is whether the file was, by the clock, when it was read
    /// ([`FileIdentity::is_settled`]).
    ///
    /// `None` if the file was not read in whole, if the index would outgrow [`MAX_INDEX_LEN`] or [`MAX_INDEX_NAMES`],
    /// or if what is to be extended is of other bytes.
    pub fn write_index<S: Octets>(
        &self,
        file: usize,
        identity: &FileIdentity,
        settled: bool,
        base: IndexBase<'_, S>,
    ) -> Option<Vec<u8>> {
        // Within these bounds the places below fit into 32 bits.
        let known = self.files.get(file).filter(|_| self.is_whole(file))?;
        u32::try_from(known.bytes.len()).ok()?;
        let (key, hashed) = match &base {
            IndexBase::New(key) => (*key, Vec::new()),
            IndexBase::Extend(index) => (index.head.key, index.all_hashed().ok()?),
        };
        let keys = Keys::derive(&key);
        if let IndexBase::Extend(index) = base
            && !index.is_of_content(&known.bytes)
        {
            return None;
        }
        let statements = Statements {
            always: known
                .always
                .iter()
                .map(|line| span(known, line.start, line.number))
                .collect(),
            tables: [known.plain_rows(&keys)?, known.hashed_rows(&keys, hashed)],
        };
        let head = Head {
            key,
            identity: *identity,
            settled,
            content: keys.tag_of_content(&known.bytes),
            hashed: known.hashed.len() as u32,
            always: statements.always.len() as u32,
            tables: statements
                .tables
                .each_ref()
                .map(|rows| TableSize::of(rows.len())),
        };
        (head.index_len() <= MAX_INDEX_LEN as u64).then(|| sealed(&head, &keys, statements))
    }
}

impl File {
    /// The names of lines without wildcard, negation, marker or fault; `None` if they are too many.
    fn plain_rows(&self, keys: &Keys) -> Option<Vec<Row>> {
        let mut rows = Vec::new();
        let is_plain = |record: &&Record| {
            let hosts = self.hosts(record);
            matches!(record.kind, Kind::Host) && !hosts.starts_with(b"|") && is_indexable(hosts)
        };
        for record in self.records.iter().filter(is_plain) {
            let span = span(self, record.start, record.line);
            for name in self.hosts(record).split(|&c| c == b',') {
                rows.push(Row {
                    tag: keys.tag_of_name(name),
                    span,
                    searched: 0,
                });
            }
        }
        (rows.len() <= MAX_INDEX_NAMES).then_some(rows)
    }

    /// The names that were looked up in hashed lines, by this run or those before; as many as there may be.
    fn hashed_rows(&self, keys: &Keys, before: Vec<Row>) -> Vec<Row> {
        let mut names: BTreeMap<Tag, Vec<Row>> = BTreeMap::new();
        for row in before {
            names.entry(row.tag).or_default().push(row);
        }
        let mut count: usize = names.values().map(Vec::len).sum();
        for (name, positions) in self.hashed.learned() {
            let tag = keys.tag_of_name(name.as_bytes());
            let row = |span| Row {
                tag,
                span,
                searched: self.hashed.len() as u32,
            };
            let span = |&position: &u32| {
                let record = &self.records[self.hashed.ids()[position as usize] as usize];
                span(self, record.start, record.line)
            };
            let mut rows: Vec<Row> = positions.iter().map(span).map(row).collect();
            if rows.is_empty() {
                rows.push(row(Span::NONE));
            }
            let old = names.get(&tag).map_or(0, Vec::len);
            if count - old + rows.len() <= MAX_INDEX_NAMES {
                count = count - old + rows.len();
                names.insert(tag, rows);
            }
        }
        names.into_values().flatten().collect()
    }
}

/// The place of a line, which ends at its line feed.
fn span(known: &File, start: usize, number: usize) -> Span {
    let rest = &known.bytes[start..];
    Span {
        start: start as u32,
        len: memchr::memchr(b'\n', rest).unwrap_or(rest.len()) as u32,
        line: number as u32,
    }
}

fn sealed(head: &Head, keys: &Keys, mut statements: Statements) -> Vec<u8> {
    let mut out = Vec::with_capacity(head.index_len() as usize);
    head.put(&mut out);
    statements.always.iter().for_each(|span| span.put(&mut out));
    let tag = keys.tag_of_always(&out[HEAD_LEN..]);
    out.extend(tag);
    for (rows, size) in statements.tables.iter_mut().zip(&head.tables) {
        rows.sort_unstable_by_key(|row| (row.tag, row.span.start));
        for bucket in 0..=size.buckets() {
            let first = rows.partition_point(|row| size.bucket_of(&row.tag) < bucket);
            out.extend((first as u32).to_be_bytes());
        }
    }
    for table in [Table::Plain, Table::Hashed] {
        let (size, mut rest) = (
            &head.tables[table as usize],
            &statements.tables[table as usize][..],
        );
        for bucket in 0..size.buckets() {
            let rows;
            (rows, rest) =
                rest.split_at(rest.partition_point(|row| size.bucket_of(&row.tag) <= bucket));
            let start = out.len();
            rows.iter().for_each(|row| row.put(&mut out));
            let tag = keys.tag_of_bucket(table, bucket, &out[start..]);
            out.extend(tag);
        }
    }
    out
}

/// An index that says anything at all of a file, sealed as a true one is.
#[cfg(any(test, feature = "fuzzing"))]
pub(super) fn forged(
    identity: &FileIdentity,
    content: &[u8],
    hashed: u32,
    always: Vec<Span>,
    tables: [Vec<Row>; 2],
) -> Vec<u8> {
    let key = [0; INDEX_KEY_LEN];
    let keys = Keys::derive(&key);
    let head = Head {
        key,
        identity: *identity,
        settled: true,
        content: keys.tag_of_content(content),
        hashed,
        always: always.len() as u32,
        tables: tables.each_ref().map(|rows| TableSize::of(rows.len())),
    };
    sealed(&head, &keys, Statements { always, tables })
}

/// A forged index of a file: each name has a line in either table, given by first byte, length and number; further such
/// lines are always looked at. For the fuzz targets.
#[cfg(feature = "fuzzing")]
pub fn forge_index(
    identity: &FileIdentity,
    content: &[u8],
    hashed: u32,
    always: &[[u32; 3]],
    tables: [&[(&str, [u32; 3])]; 2],
) -> Vec<u8> {
    let keys = Keys::derive(&[0; INDEX_KEY_LEN]);
    let span = |[start, len, line]: [u32; 3]| Span { start, len, line };
    let row = |&(name, place): &(&str, [u32; 3])| Row {
        tag: keys.tag_of_name(name.as_bytes()),
        span: span(place),
        searched: hashed,
    };
    let always = always.iter().copied().map(span).collect();
    let tables = tables.map(|rows| rows.iter().map(row).collect());
    forged(identity, content, hashed, always, tables)
}
