//! Names written back as ranges: the exact inverse of expansion.
//!
//! Names that differ only in their numbers form a family. In a family every name starts as a row of
//! singleton sets, one a number; then, from the last number to the first, rows that agree in all other
//! numbers are united. Each step only writes equal things once, so the result stands for exactly the names
//! that went in.

use std::collections::{BTreeSet, HashMap};

use crate::{
    natural::{natural_cmp, split_part},
    number::Number,
};

/// Folds names (or whole specs, `user@host:port`) into a list that expands to exactly these, each once, in
/// natural order: `db1,web[1-40,42]`. Widths are kept: `node[008-010]`. Users and ports are never folded.
pub fn fold<I, S>(names: I) -> String
where
    I: IntoIterator<Item = S>,
    S: AsRef<str>,
{
    let mut families: HashMap<String, Family> = HashMap::new();
    for name in names {
        let (skeleton, numbers) = dissect(name.as_ref());
        families.entry(skeleton).or_default().insert(&numbers);
    }
    let mut rows: Vec<Row> = families
        .into_iter()
        .flat_map(|(skeleton, family)| family.unite(&skeleton))
        .collect();
    rows.sort_unstable_by(|a, b| natural_cmp(&a.first_name, &b.first_name));
    let mut out = String::new();
    for row in rows {
        if !out.is_empty() {
            out.push(',');
        }
        out.push_str(&row.folded);
    }
    out
}

/// Stands in a skeleton where a number was. No host name holds it.
const HOLE: char = '\0';

/// Splits a spec into its literal text, with a [`HOLE`] for each number of the host name, and the numbers.
fn dissect(spec: &str) -> (String, Vec<Number>) {
    let host_at = spec.rfind('@').map_or(0, |at| at + 1);
    let host = &spec[host_at..];
    let host_end = match host.bytes().filter(|byte| *byte == b':').count() {
        _ if host.starts_with('[') => 0, // [::1]:22 would need brackets inside brackets
        1 => host.find(':').unwrap_or(host.len()),
        _ => host.len(),
    };
    let mut skeleton = String::with_capacity(spec.len());
    let mut numbers = Vec::new();
    skeleton.push_str(&spec[..host_at]);
    let mut rest = &host[..host_end];
    while !rest.is_empty() {
        let part;
        (part, rest) = rest.split_at(split_part(rest.as_bytes()).0.len());
        match Number::parse(part) {
            Some(number) => {
                skeleton.push(HOLE);
                numbers.push(number);
            }
            None => skeleton.push_str(part),
        }
    }
    skeleton.push_str(&host[host_end..]);
    (skeleton, numbers)
}

/// An index into [`Family::sets`].
type SetId = usize;

/// Names of one skeleton.
#[derive(Default)]
struct Family {
    /// Every set of numbers met, once: equal sets have equal ids, so rows compare by ids.
    sets: Vec<Vec<Number>>,
    ids: HashMap<Vec<Number>, SetId>,
    rows: BTreeSet<Vec<SetId>>,
}

/// One element of the folded list.
struct Row {
    folded: String,
    /// The name that expansion yields first, by which elements are ordered.
    first_name: String,
}

impl Family {
    fn insert(&mut self, numbers: &[Number]) {
        let row = numbers
            .iter()
            .map(|number| self.intern(vec![*number]))
            .collect();
        self.rows.insert(row);
    }

    fn intern(&mut self, set: Vec<Number>) -> SetId {
        if let Some(id) = self.ids.get(&set) {
            return *id;
        }
        self.sets.push(set.clone());
        self.ids.insert(set, self.sets.len() - 1);
        self.sets.len() - 1
    }

    fn unite(mut self, skeleton: &str) -> Vec<Row> {
        let columns = skeleton.matches(HOLE).count();
        for column in (0..columns).rev() {
            self.unite_column(column);
        }
        self.rows
            .iter()
            .map(|row| self.write(skeleton, row))
            .collect()
    }

    /// Unites the sets of one column among rows that agree in all others.
    fn unite_column(&mut self, column: usize) {
        let mut united: HashMap<Vec<SetId>, Vec<Number>> = HashMap::with_capacity(self.rows.len());
        for row in std::mem::take(&mut self.rows) {
            let mut others = row.clone();
            others[column] = SetId::MAX;
            united
                .entry(others)
                .or_default()
                .extend(&self.sets[row[column]]);
        }
        for (mut row, mut set) in united {
            set.sort_unstable();
            row[column] = self.intern(set);
            self.rows.insert(row);
        }
    }

    fn write(&self, skeleton: &str, row: &[SetId]) -> Row {
        let mut written = Row {
            folded: String::new(),
            first_name: String::new(),
        };
        let mut sets = row.iter();
        for (index, literal) in skeleton.split(HOLE).enumerate() {
            if let Some(set) = (index > 0).then(|| sets.next()).flatten() {
                let set = &self.sets[*set];
                write_set(set, &mut written.folded);
                set[0].push_to(&mut written.first_name);
            }
            written.folded.push_str(literal);
            written.first_name.push_str(literal);
        }
        written
    }
}

/// `7`, or `[1-40,42]`. The set is sorted by value, then width.
fn write_set(set: &[Number], out: &mut String) {
    if let [number] = set {
        return number.push_to(out);
    }
    out.push('[');
    for (index, (first, last)) in runs(set).into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        first.push_to(out);
        if last != first {
            out.push('-');
            last.push_to(out);
        }
    }
    out.push(']');
}

/// The ranges of a sorted set: each number joins the run that counts on to it in just that width. Runs of
/// several widths may be open at once (`9, 09, 10, 010`).
fn runs(set: &[Number]) -> Vec<(Number, Number)> {
    let mut runs: Vec<(Number, Number)> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    for number in set {
        open.retain(|run| runs[*run].1.value + 1 >= number.value);
        let joined = open.iter().find(|run| {
            let (first, last) = runs[**run];
            Number::padded(last.value + 1, first.padding()) == *number
        });
        match joined {
            Some(run) => runs[*run].1 = *number,
            None => {
                open.push(runs.len());
                runs.push((*number, *number));
            }
        }
    }
    runs
}

#[cfg(test)]
mod tests;
