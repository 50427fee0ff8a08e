//! Numbers inside names: a value and how wide it is written.

use std::{cmp::Ordering, fmt::Write as _};

/// The longest number that ranges count through: every such number fits a `u64`.
pub const MAX_DIGITS: usize = 18;

/// A number as it stands in a name. `07` and `7` differ: both are value 7, one has two digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Number {
    pub(crate) value: u64,
    pub(crate) digits: usize,
}

impl Number {
    /// Reads 1 to [`MAX_DIGITS`] ASCII digits.
    pub(crate) fn parse(text: &str) -> Option<Number> {
        let sane = !text.is_empty()
            && text.len() <= MAX_DIGITS
            && text.bytes().all(|b| b.is_ascii_digit());
        let value = text.parse().ok().filter(|_| sane)?;
        Some(Number {
            value,
            digits: text.len(),
        })
    }

    /// Whether it has leading zeros (`07`, `00`; not `0`).
    pub(crate) fn is_padded(self) -> bool {
        self.digits > decimal_digits(self.value)
    }

    /// The width that counting on from this number keeps: its digits when it has leading zeros, else none.
    pub(crate) fn padding(self) -> usize {
        if self.is_padded() { self.digits } else { 0 }
    }

    /// The number that a range written from a start of that padding has for this value.
    pub(crate) fn padded(value: u64, padding: usize) -> Number {
        Number {
            value,
            digits: decimal_digits(value).max(padding),
        }
    }

    pub(crate) fn push_to(self, out: &mut String) {
        let Number { value, digits } = self;
        write!(out, "{value:0digits$}").expect("writing to a String cannot fail");
    }
}

/// By width, then value: the order of ClusterShell's `RangeSet` since 1.9 (`9, 09, 10, 010`).
impl Ord for Number {
    fn cmp(&self, other: &Number) -> Ordering {
        (self.digits, self.value).cmp(&(other.digits, other.value))
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Number) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn decimal_digits(value: u64) -> usize {
    value.checked_ilog10().map_or(1, |log| log as usize + 1)
}
