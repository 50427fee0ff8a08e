//! A set of numbers as text: `7`, or `[1-40,42]`.

use crate::number::Number;

/// Writes a set, sorted, not empty.
pub(super) fn write_set(set: &[Number], out: &mut String) {
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

/// What the numbers of a run are padded to.
#[derive(Clone, Copy)]
enum Padding {
    /// To this width; nothing wider joins.
    Width(usize),
    /// Not at all; nothing with leading zeros joins.
    None,
}

impl Padding {
    fn of(number: Number) -> Padding {
        match number.padding() {
            0 => Padding::None,
            width => Padding::Width(width),
        }
    }

    fn admits(self, number: Number) -> bool {
        match self {
            Padding::Width(width) => number.digits == width,
            Padding::None => !number.is_padded(),
        }
    }
}

/// The ranges of a sorted set, cut where ClusterShell cuts them (`RangeSet`, 1.9 and later): where a value is
/// missing, and where the padding changes.
///
/// One of its habits shows in the output and is kept: after a gap, a single number hands its padding on to what
/// follows, a longer run does not. So `05,99,100` stays in three parts while `05-06,99-100` joins the last two.
fn runs(set: &[Number]) -> Vec<(Number, Number)> {
    let Some((first, others)) = set.split_first() else {
        return Vec::new();
    };
    let mut runs = vec![(*first, *first)];
    let mut padding = Padding::of(*first);
    for number in others {
        let (start, last) = runs[runs.len() - 1];
        let follows = number.value == last.value + 1;
        let is_admitted = padding.admits(*number);
        if follows && is_admitted {
            let current = runs.len() - 1;
            runs[current].1 = *number;
            continue;
        }
        if !is_admitted || start != last {
            padding = Padding::of(*number);
        }
        runs.push((*number, *number));
    }
    runs
}
