//! The order people expect: `web2` before `web10`.

use std::cmp::Ordering;

/// Compares names by their parts: digits as numbers, the rest as bytes; equal numbers by their width
/// (`7` before `07`). A total order that is equal only for equal names.
pub fn natural_cmp(left: &str, right: &str) -> Ordering {
    let (mut left, mut right) = (left.as_bytes(), right.as_bytes());
    loop {
        let ((a, left_rest), (b, right_rest)) = (split_part(left), split_part(right));
        let order = match (a.first(), b.first()) {
            (None, None) => return Ordering::Equal,
            (Some(x), Some(y)) if x.is_ascii_digit() && y.is_ascii_digit() => compare_digits(a, b),
            _ => a.cmp(b),
        };
        if order.is_ne() {
            return order;
        }
        (left, right) = (left_rest, right_rest);
    }
}

/// Splits the longest run of digits, or of other bytes, off the front.
pub(crate) fn split_part(text: &[u8]) -> (&[u8], &[u8]) {
    let Some(first) = text.first() else {
        return (text, text);
    };
    let digits = first.is_ascii_digit();
    let end = text
        .iter()
        .position(|byte| byte.is_ascii_digit() != digits)
        .unwrap_or(text.len());
    text.split_at(end)
}

fn compare_digits(a: &[u8], b: &[u8]) -> Ordering {
    let significant = |digits: &[u8]| {
        digits
            .iter()
            .position(|d| *d != b'0')
            .unwrap_or(digits.len())
    };
    let (x, y) = (&a[significant(a)..], &b[significant(b)..]);
    x.len()
        .cmp(&y.len())
        .then_with(|| x.cmp(y))
        .then(a.len().cmp(&b.len()))
}
