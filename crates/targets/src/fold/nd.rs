//! Names with several numbers: points united into rows of sets, in ClusterShell's way.
//!
//! ClusterShell (`RangeSetND`, its multivariate folding) sorts the points, then walks over them in passes and
//! unites a row with a later one when they agree in all columns but one. The first passes look at the next row
//! only; when nothing changes any more, passes that look at all later rows follow. What comes out depends on
//! the order of these steps, and so the same steps are made here. ClusterShell compares every pair of rows,
//! which takes hours for 100,000 names; here a row finds its partners by hash, and sets are compared by number.
//!
//! Rows are products of sets and never overlap: they begin as distinct points, and uniting two rows that
//! differ in one column gives just their union.

use std::{
    cmp::{Ordering, Reverse},
    collections::{BTreeSet, HashMap},
};

use crate::number::Number;

/// Unites points, each with the same number of columns (two or more), into rows of sorted sets.
pub(super) fn unite(points: BTreeSet<Vec<Number>>) -> Vec<Vec<Vec<Number>>> {
    let mut sets = Sets::default();
    let mut rows: Vec<Row> = points
        .into_iter()
        .map(|point| point.into_iter().map(|n| sets.intern(vec![n])).collect())
        .collect();
    let mut is_thorough = false;
    loop {
        sets.sort(&mut rows);
        let before = rows.len();
        rows = match is_thorough {
            false => unite_neighbours(rows, &mut sets),
            true => unite_all(rows, &mut sets),
        };
        if rows.len() == before {
            if is_thorough {
                break;
            }
            is_thorough = true;
        }
    }
    let sets = &sets;
    let members = |row: Row| {
        row.into_iter()
            .map(|id| sets.members(id).to_vec())
            .collect()
    };
    rows.into_iter().map(members).collect()
}

/// A set of each column.
type Row = Vec<SetId>;

type SetId = usize;

/// Every set met, once: equal sets have equal ids.
#[derive(Default)]
struct Sets {
    entries: Vec<SetEntry>,
    by_digest: HashMap<Digest, Vec<SetId>>,
}

struct SetEntry {
    members: Vec<Number>,
    digest: Digest,
    /// The first and last member as text: ClusterShell sorts rows by these, as strings.
    ends: (String, String),
}

/// Tells sets apart without comparing them; that of disjoint sets' union is the sum of theirs. Sets of one
/// digest are compared before they count as equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Digest {
    len: usize,
    sum: u64,
}

impl Digest {
    fn of(members: &[Number]) -> Digest {
        let sum = members.iter().map(|n| mixed(*n)).fold(0, u64::wrapping_add);
        Digest {
            len: members.len(),
            sum,
        }
    }

    fn plus(self, other: Digest) -> Digest {
        Digest {
            len: self.len + other.len,
            sum: self.sum.wrapping_add(other.sum),
        }
    }
}

/// SplitMix64's finaliser: neighbouring numbers get sums that have nothing to do with each other.
fn mixed(number: Number) -> u64 {
    let mut x = number.value ^ (number.digits as u64).rotate_right(8);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

impl Sets {
    /// The id of a sorted set that is not empty.
    fn intern(&mut self, members: Vec<Number>) -> SetId {
        let digest = Digest::of(&members);
        let known = self.by_digest.entry(digest).or_default();
        let equal = known
            .iter()
            .find(|id| self.entries[**id].members == members);
        if let Some(id) = equal {
            return *id;
        }
        let text = |number: Option<&Number>| {
            let mut text = String::new();
            number.inspect(|number| number.push_to(&mut text));
            text
        };
        known.push(self.entries.len());
        self.entries.push(SetEntry {
            ends: (text(members.first()), text(members.last())),
            members,
            digest,
        });
        self.entries.len() - 1
    }

    fn members(&self, id: SetId) -> &[Number] {
        &self.entries[id].members
    }

    fn digest(&self, id: SetId) -> Digest {
        self.entries[id].digest
    }

    fn union(&mut self, ids: &[SetId]) -> SetId {
        let mut members: Vec<Number> = ids
            .iter()
            .flat_map(|id| self.members(*id))
            .copied()
            .collect();
        members.sort_unstable();
        self.intern(members)
    }

    /// ClusterShell's order: most names first, then column by column: most members, lowest first member, lowest
    /// last one (as text). The sort is stable, as Python's.
    fn sort(&self, rows: &mut [Row]) {
        let names = |row: &Row| -> u128 {
            row.iter()
                .map(|id| self.members(*id).len() as u128)
                .product()
        };
        rows.sort_by(|a, b| {
            let columns = a.iter().zip(b).map(|(a, b)| self.compare(*a, *b));
            names(b)
                .cmp(&names(a))
                .then(columns.fold(Ordering::Equal, Ordering::then))
        });
    }

    fn compare(&self, a: SetId, b: SetId) -> Ordering {
        let key = |id: SetId| {
            (
                Reverse(self.entries[id].members.len()),
                &self.entries[id].ends,
            )
        };
        key(a).cmp(&key(b))
    }
}

/// A row that takes others in. What it gained in its open column is put together when it is asked for.
struct Growing {
    row: Row,
    open: Option<Open>,
}

struct Open {
    column: usize,
    parts: Vec<SetId>,
    digest: Digest,
}

impl Growing {
    fn new(row: Row) -> Growing {
        Growing { row, open: None }
    }

    /// The only column in which `other` differs, if there is just one.
    fn differing_column(&mut self, other: &Row, sets: &mut Sets) -> Option<usize> {
        let open = self.open.as_ref().map(|open| open.column);
        let mut differing = (0..other.len())
            .filter(|column| Some(*column) != open && self.row[*column] != other[*column]);
        match (differing.next(), differing.next(), open) {
            (None, _, open) => open,
            (Some(column), None, None) => Some(column),
            (Some(column), None, Some(open)) => {
                let digest = self.open.as_ref().map(|open| open.digest);
                let may_agree = digest == Some(sets.digest(other[open]));
                (may_agree && self.close(sets)[open] == other[open]).then_some(column)
            }
            (Some(_), Some(_), _) => None,
        }
    }

    /// Takes in a row that differs in `column` only.
    fn absorb(&mut self, other: &Row, column: usize, sets: &mut Sets) {
        if self.open.as_ref().is_none_or(|open| open.column != column) {
            let own = self.close(sets)[column];
            self.open = Some(Open {
                column,
                parts: vec![own],
                digest: sets.digest(own),
            });
        }
        if let Some(open) = &mut self.open {
            open.parts.push(other[column]);
            open.digest = open.digest.plus(sets.digest(other[column]));
        }
    }

    /// Puts the open column together.
    fn close(&mut self, sets: &mut Sets) -> &Row {
        if let Some(open) = self.open.take() {
            self.row[open.column] = sets.union(&open.parts);
        }
        &self.row
    }

    fn into_row(mut self, sets: &mut Sets) -> Row {
        self.close(sets);
        self.row
    }
}

/// A pass in which each row takes in the ones right behind it.
fn unite_neighbours(rows: Vec<Row>, sets: &mut Sets) -> Vec<Row> {
    let mut united = Vec::new();
    let mut rows = rows.into_iter();
    let Some(first) = rows.next() else {
        return united;
    };
    let mut growing = Growing::new(first);
    for row in rows {
        match growing.differing_column(&row, sets) {
            Some(column) => growing.absorb(&row, column, sets),
            None => {
                let full = std::mem::replace(&mut growing, Growing::new(row));
                united.push(full.into_row(sets));
            }
        }
    }
    united.push(growing.into_row(sets));
    united
}

/// A pass in which each row takes in any later one, in order. A row that was passed over is not looked at again,
/// even when it would fit by now.
fn unite_all(rows: Vec<Row>, sets: &mut Sets) -> Vec<Row> {
    let places = Places::of(&rows);
    let mut is_taken = vec![false; rows.len()];
    let mut united = Vec::new();
    for at in 0..rows.len() {
        if is_taken[at] {
            continue;
        }
        let mut growing = Growing::new(rows[at].clone());
        let mut cursor = at;
        while let Some((partner, column)) =
            places.next_partner(&mut growing, cursor, &is_taken, sets)
        {
            growing.absorb(&rows[partner], column, sets);
            is_taken[partner] = true;
            cursor = partner;
        }
        united.push(growing.into_row(sets));
    }
    united
}

/// Where the rows are that agree in all columns but one: by that column and the sets of the others.
struct Places {
    by_others: HashMap<(usize, Row), Vec<usize>>,
}

impl Places {
    fn of(rows: &[Row]) -> Places {
        let mut by_others: HashMap<(usize, Row), Vec<usize>> = HashMap::new();
        for (at, row) in rows.iter().enumerate() {
            for column in 0..row.len() {
                by_others
                    .entry((column, others(row, column)))
                    .or_default()
                    .push(at);
            }
        }
        Places { by_others }
    }

    /// The first row after `cursor` that `growing` can take in, and the column in which it differs.
    fn next_partner(
        &self,
        growing: &mut Growing,
        cursor: usize,
        is_taken: &[bool],
        sets: &mut Sets,
    ) -> Option<(usize, usize)> {
        let open = growing.open.as_ref().map(|open| (open.column, open.digest));
        // With a column open, another one can differ only if some set equals what that column has become.
        let may_differ_elsewhere =
            open.is_none_or(|(_, digest)| sets.by_digest.contains_key(&digest));
        if may_differ_elsewhere {
            growing.close(sets);
        }
        let columns = match open {
            Some((column, _)) if !may_differ_elsewhere => column..column + 1,
            _ => 0..growing.row.len(),
        };
        let partner = |column| {
            let places = self
                .by_others
                .get(&(column, others(&growing.row, column)))?;
            let later = &places[places.partition_point(|at| *at <= cursor)..];
            let at = later.iter().find(|at| !is_taken[**at])?;
            Some((*at, column))
        };
        columns.filter_map(partner).min()
    }
}

/// The row without the set of one column.
fn others(row: &Row, column: usize) -> Row {
    let mut others = row.clone();
    others[column] = SetId::MAX;
    others
}
