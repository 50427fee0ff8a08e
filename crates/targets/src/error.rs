//! What can be wrong with a host list, in words that say what to write instead.

use std::fmt;

use thiserror::Error;

use crate::{MAX_NAME_LEN, MAX_TARGETS, number::MAX_DIGITS};

/// How much of a bad spec a message quotes, in characters.
const QUOTED_CHARS: usize = 80;

/// A line of a file of targets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// What the caller called the file: its path, or `standard input`.
    pub label: String,
    /// The line, counted from 1.
    pub line: usize,
}

/// Why a host list was refused. Nothing of a list is used when any part of it is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub struct TargetError {
    /// Where it stands; `None` for a list from the command line.
    pub place: Option<Place>,
    /// The part that is wrong, as it was written (shortened when long).
    pub spec: String,
    /// What is wrong with it and what to do.
    #[source]
    pub problem: TargetProblem,
}

impl TargetError {
    pub(crate) fn new(spec: &str, problem: TargetProblem) -> TargetError {
        let mut quoted: String = spec.chars().take(QUOTED_CHARS).collect();
        if quoted.len() < spec.len() {
            quoted.push_str("...");
        }
        TargetError {
            place: None,
            spec: quoted,
            problem,
        }
    }

    pub(crate) fn at(mut self, label: &str, line: usize) -> TargetError {
        self.place = Some(Place {
            label: label.to_owned(),
            line,
        });
        self
    }
}

impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Place { label, line }) = &self.place {
            write!(f, "{label}:{line}: ")?;
        }
        if self.spec.is_empty() {
            write!(f, "{}", self.problem)
        } else {
            write!(f, "{:?}: {}", self.spec, self.problem)
        }
    }
}

/// The kinds of mistakes in a host list.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TargetProblem {
    /// Nothing between two commas, or no name beside a user or a port.
    #[error("the host name is missing")]
    EmptyName,
    /// `@host`, or `@group`, which this list cannot hold.
    #[error("the user name before '@' is missing (groups are not read here: write the host names)")]
    EmptyUser,
    /// A name that OpenSSH would refuse, or that could be mistaken for an option or a path.
    #[error("{0:?} cannot stand in a host name: remove it")]
    NameCharacter(char),
    /// A user name that OpenSSH would refuse.
    #[error("{0:?} cannot stand in a user name: remove it")]
    UserCharacter(char),
    /// A name that begins with a dash would be read as an option by programs that get it.
    #[error("a host or user name cannot begin with '-'")]
    LeadingDash,
    /// A name longer than [`MAX_NAME_LEN`].
    #[error("the host name has more than {MAX_NAME_LEN} bytes")]
    NameTooLong,
    /// What follows the colon is not a port.
    #[error(
        "{0:?} is not a port: write a number from 1 to 65535 after ':' (an IPv6 address with a port is written [::1]:22)"
    )]
    Port(String),
    /// Colons, but no IPv6 address.
    #[error(
        "{0:?} is not an IPv6 address: write HOST:PORT with one colon, or an address such as ::1 or [::1]:22"
    )]
    Address(String),
    /// `[` without `]`.
    #[error("'[' is not closed: write a range such as [1-100,150]")]
    UnclosedBracket,
    /// `]` without `[`, or `[` inside brackets.
    #[error("brackets do not pair: write ranges such as web[1-3]-[01-20]")]
    StrayBracket,
    /// `[]` or `[1,,3]`.
    #[error("a number is missing in the brackets: write a range such as [1-100,150]")]
    EmptyRange,
    /// Not a number, a range or a range with a step.
    #[error("{0:?} is not a range: write numbers such as 7, 1-100, 001-100 or 1-99/2")]
    Range(String),
    /// `[9-1]`.
    #[error("the range {first}-{last} runs downwards: write {last}-{first}")]
    Downwards {
        /// The first number as written.
        first: String,
        /// The last number as written.
        last: String,
    },
    /// `[1-010]`: it is not clear whether zeros are wanted.
    #[error(
        "the numbers of {0:?} are padded to different widths: pad the first as the last, such as 001-100"
    )]
    Padding(String),
    /// A number of more than [`MAX_DIGITS`] digits.
    #[error("a number has more than {MAX_DIGITS} digits")]
    NumberTooLong,
    /// More than [`MAX_TARGETS`] names.
    #[error("more than {MAX_TARGETS} hosts: narrow the range, or split the run")]
    TooMany,
    /// Two words on a line of a file.
    #[error("a space inside a line: write one target a line, or separate targets with commas")]
    Space,
    /// `^file` with nothing behind it.
    #[error("the file's name after '^' is missing: write ^PATH")]
    EmptyFile,
    /// `^file` inside a file.
    #[error("a file cannot name another file: name both on the command line")]
    NestedFile,
    /// Bytes that are no UTF-8.
    #[error("the line is not UTF-8: save the file as UTF-8 text")]
    NotUtf8,
}
