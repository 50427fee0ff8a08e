//! A host name with bracketed ranges, and counting through it.

use crate::{
    MAX_TARGETS, TargetProblem,
    number::{MAX_DIGITS, Number},
};

/// `web[1-3]-[01-20]` in pieces.
#[derive(Debug)]
pub(crate) struct Pattern<'a> {
    pieces: Vec<Piece<'a>>,
}

#[derive(Debug)]
enum Piece<'a> {
    Literal(&'a str),
    Numbers(Vec<Range>),
}

/// `first-last/step`, both ends included.
#[derive(Debug)]
struct Range {
    first: u64,
    last: u64,
    step: u64,
    padding: usize,
}

impl<'a> Pattern<'a> {
    pub(crate) fn parse(text: &'a str) -> Result<Pattern<'a>, TargetProblem> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find(['[', ']']) {
            if rest.as_bytes()[at] == b']' {
                return Err(TargetProblem::StrayBracket);
            }
            if at > 0 {
                pieces.push(Piece::Literal(&rest[..at]));
            }
            let inside = &rest[at + 1..];
            let end = inside
                .find(['[', ']'])
                .ok_or(TargetProblem::UnclosedBracket)?;
            if inside.as_bytes()[end] == b'[' {
                return Err(TargetProblem::StrayBracket);
            }
            let ranges: Result<Vec<Range>, _> =
                inside[..end].split(',').map(Range::parse).collect();
            pieces.push(Piece::Numbers(ranges?));
            rest = &inside[end + 1..];
        }
        if !rest.is_empty() {
            pieces.push(Piece::Literal(rest));
        }
        Ok(Pattern { pieces })
    }

    /// The parts outside brackets.
    pub(crate) fn literals(&self) -> impl Iterator<Item = &'a str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Literal(text) => Some(*text),
            Piece::Numbers(_) => None,
        })
    }

    /// How many names it stands for, duplicates counted; [`TargetProblem::TooMany`] above [`MAX_TARGETS`].
    pub(crate) fn count(&self) -> Result<usize, TargetProblem> {
        let total = self.pieces.iter().fold(1u64, |total, piece| match piece {
            Piece::Literal(_) => total,
            Piece::Numbers(ranges) => total.saturating_mul(
                ranges
                    .iter()
                    .fold(0, |sum, range| range.count().saturating_add(sum)),
            ),
        });
        usize::try_from(total)
            .ok()
            .filter(|count| *count <= MAX_TARGETS)
            .ok_or(TargetProblem::TooMany)
    }

    /// Calls `each` with every name, the last bracket running fastest. The count must have been checked.
    pub(crate) fn expand<E>(&self, mut each: impl FnMut(&str) -> Result<(), E>) -> Result<(), E> {
        let mut name = String::new();
        expand_from(&self.pieces, &mut name, &mut each)
    }
}

/// Appends the names of the first piece to `name` in turn, and for each goes on with the pieces behind it.
fn expand_from<E>(
    pieces: &[Piece<'_>],
    name: &mut String,
    each: &mut impl FnMut(&str) -> Result<(), E>,
) -> Result<(), E> {
    let Some((piece, behind)) = pieces.split_first() else {
        return each(name);
    };
    let before = name.len();
    match piece {
        Piece::Literal(text) => {
            name.push_str(text);
            expand_from(behind, name, each)?;
            name.truncate(before);
        }
        Piece::Numbers(ranges) => {
            for number in ranges.iter().flat_map(Range::numbers) {
                number.push_to(name);
                expand_from(behind, name, each)?;
                name.truncate(before);
            }
        }
    }
    Ok(())
}

impl Range {
    /// `first-last/step`, spaces ignored. Ends with leading zeros are of one width, as ClusterShell wants
    /// since 1.9: in `[01-100]` it is not clear what comes after 99.
    fn parse(text: &str) -> Result<Range, TargetProblem> {
        let text = text.trim();
        if text.is_empty() {
            return Err(TargetProblem::EmptyRange);
        }
        let bad = || TargetProblem::Range(text.to_owned());
        let number = |part: &str| {
            let part = part.trim();
            if part.len() > MAX_DIGITS && part.bytes().all(|b| b.is_ascii_digit()) {
                return Err(TargetProblem::NumberTooLong);
            }
            Number::parse(part).ok_or_else(bad)
        };
        let (ends, step) = match text.split_once('/') {
            Some((ends, step)) => (ends, number(step)?.value),
            None => (text, 1),
        };
        let (first_text, last_text) = match ends.split_once('-') {
            Some(both) => both,
            None if step != 1 => return Err(bad()),
            None => (ends, ends),
        };
        let (first, last) = (number(first_text)?, number(last_text)?);
        if step == 0 {
            return Err(bad());
        }
        if first.value > last.value {
            return Err(TargetProblem::Downwards {
                first: first_text.trim().to_owned(),
                last: last_text.trim().to_owned(),
            });
        }
        if (first.is_padded() || last.is_padded()) && last.digits != first.digits {
            return Err(TargetProblem::Padding(ends.to_owned()));
        }
        Ok(Range {
            first: first.value,
            last: last.value,
            step,
            padding: first.padding(),
        })
    }

    fn count(&self) -> u64 {
        (self.last - self.first) / self.step + 1
    }

    fn numbers(&self) -> impl Iterator<Item = Number> {
        (0..self.count()).map(|i| Number::padded(self.first + i * self.step, self.padding))
    }
}
