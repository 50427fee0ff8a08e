//! Why a file is no plan.

use std::fmt;

use crate::{MAX_NAME, MAX_PLAN, MAX_STEPS};

/// Why a file is no plan, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", OfStep(.step))]
pub struct PlanError {
    /// The line, from 1.
    pub line: usize,
    /// The step that it is about.
    pub step: Option<String>,
    /// What is wrong.
    pub problem: Problem,
}

/// `step upgrade: `
struct OfStep<'a>(&'a Option<String>);

impl fmt::Display for OfStep<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(step) => write!(formatter, "step {step}: "),
            None => Ok(()),
        }
    }
}

/// What is wrong with a plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// It is no TOML.
    #[error("{0}")]
    Toml(String),
    /// It is larger than anybody writes.
    #[error("a plan is at most {MAX_PLAN} octets")]
    TooLarge,
    /// There are more than are worked with.
    #[error("a plan has at most {MAX_STEPS} steps")]
    TooManySteps,
    /// There is nothing to do.
    #[error("there is no step; each is a table such as [step.upgrade]")]
    NoSteps,
    /// Something beside `defaults` and `step`.
    #[error(
        "{0} is not known here: a plan has a table [defaults], and one for each step such as [step.upgrade]"
    )]
    UnknownTable(String),
    /// What ought to be a table is none.
    #[error("{0} must be a table")]
    NoTable(String),
    /// A name that could not be typed or told apart.
    #[error(
        "{0:?} is no name of a step: letters, digits, - and _, at most {MAX_NAME} of them, a letter or digit first"
    )]
    BadName(String),
    /// It does nothing.
    #[error("it does nothing: one of the keys run, script, each, put, get says what")]
    NoAction,
    /// It does two things.
    #[error("it has both {0} and {1}; make two steps of it")]
    TwoActions(&'static str, &'static str),
    /// A value of another kind than the key takes.
    #[error("{key} must be {wanted}")]
    BadValue {
        /// Of which key.
        key: String,
        /// What it takes.
        wanted: &'static str,
    },
    /// It comes after a step that is not there.
    #[error("it comes after {name}, which is no step; there are: {known}")]
    MissingStep {
        /// As it was written.
        name: String,
        /// All names, comma separated.
        known: String,
    },
    /// It comes after the same step twice.
    #[error("after names {0} twice")]
    NamedTwice(String),
    /// Steps wait for each other.
    #[error("{}", Path(.0))]
    Cycle(Vec<(String, usize)>),
}

/// `it would wait for itself: a (line 3) comes after b (line 7), which comes after a`
struct Path<'a>(&'a [(String, usize)]);

impl fmt::Display for Path<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [(first, line), others @ ..] = self.0 else {
            return Ok(());
        };
        write!(
            formatter,
            "it would wait for itself: {first} (line {line}) comes after"
        )?;
        for (name, line) in others {
            write!(formatter, " {name} (line {line}), which comes after")?;
        }
        write!(formatter, " {first}")
    }
}
