//! Names written back as ranges: the exact inverse of expansion, in the words of ClusterShell's `nodeset --fold`.
//!
//! Names that differ only in their numbers form a family. A family with one number is written as runs
//! ([`runs`]); one with several is a set of points, united into as few rows of sets as ClusterShell's folding
//! finds ([`nd`]). Families are ordered as ClusterShell orders its patterns, byte by byte.

mod nd;
mod runs;

use std::collections::{BTreeMap, BTreeSet};

use crate::{natural::split_part, number::Number};
use runs::write_set;

/// Folds names (or whole specs, `user@host:port`) into a list that expands to exactly these, each once:
/// `db1,web[1-40,42]`. Widths are kept: `node[008-010]`. Users and ports are never folded. For plain names
/// the result is `nodeset --fold`'s to the byte (the tests compare them).
pub fn fold<I, S>(names: I) -> String
where
    I: IntoIterator<Item = S>,
    S: AsRef<str>,
{
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    for name in names {
        let (pattern, numbers) = dissect(name.as_ref());
        families.entry(pattern).or_default().insert(numbers);
    }
    let mut out = String::new();
    for (pattern, family) in families {
        family.write(&pattern, &mut out);
    }
    out
}

/// Stands in a pattern where a number was, as in ClusterShell's patterns: `web%s`. A percent sign of the name
/// itself is doubled, so that patterns sort as ClusterShell's do.
const HOLE: &str = "%s";

/// Splits a spec into its pattern and the numbers of its host name.
fn dissect(spec: &str) -> (String, Vec<Number>) {
    let host_at = spec.rfind('@').map_or(0, |at| at + 1);
    let host = &spec[host_at..];
    let host_end = match host.bytes().filter(|byte| *byte == b':').count() {
        _ if host.starts_with('[') => 0, // [::1]:22 would need brackets inside brackets
        1 => host.find(':').unwrap_or(host.len()),
        _ => host.len(),
    };
    let mut pattern = spec[..host_at].replace('%', "%%");
    let mut numbers = Vec::new();
    let mut rest = &host[..host_end];
    while !rest.is_empty() {
        let part;
        (part, rest) = rest.split_at(split_part(rest.as_bytes()).0.len());
        match Number::parse(part) {
            Some(number) => {
                pattern.push_str(HOLE);
                numbers.push(number);
            }
            None => pattern.push_str(&part.replace('%', "%%")),
        }
    }
    pattern.push_str(&host[host_end..].replace('%', "%%"));
    (pattern, numbers)
}

/// The names of one pattern.
#[derive(Default)]
struct Family {
    points: BTreeSet<Vec<Number>>,
}

impl Family {
    fn insert(&mut self, numbers: Vec<Number>) {
        self.points.insert(numbers);
    }

    fn write(self, pattern: &str, out: &mut String) {
        let literals = literals(pattern);
        let rows: Vec<Vec<Vec<Number>>> = match literals.len() - 1 {
            0 => vec![Vec::new()],
            1 => vec![vec![self.points.into_iter().flatten().collect()]],
            _ => nd::unite(self.points),
        };
        for row in rows {
            if !out.is_empty() {
                out.push(',');
            }
            out.push_str(&literals[0]);
            for (set, literal) in row.iter().zip(&literals[1..]) {
                write_set(set, out);
                out.push_str(literal);
            }
        }
    }
}

/// The text before, between and after the holes of a pattern.
fn literals(pattern: &str) -> Vec<String> {
    let mut literals = vec![String::new()];
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match (character, literals.last_mut()) {
            ('%', Some(literal)) => match characters.next() {
                Some('%') => literal.push('%'),
                _ => literals.push(String::new()),
            },
            (_, Some(literal)) => literal.push(character),
            (_, None) => {}
        }
    }
    literals
}

#[cfg(test)]
mod tests;
