//! What can be wrong with a configuration.

use std::fmt;

use crate::origin::Origin;
use crate::question::Question;

/// One line that ssh would refuse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line.
    pub origin: Origin,
    /// What is wrong with it, and what to do.
    pub why: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.origin, self.why)
    }
}

/// Why a configuration cannot be used at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// Lines that are wrong: all that were found, in the order of reading.
    #[error("{}", join(.0))]
    Lines(Vec<Problem>),
    /// The file named by `-F` cannot be read.
    #[error("cannot read the configuration file {path}: {why}")]
    Unreadable {
        /// The file.
        path: String,
        /// The system's answer.
        why: String,
    },
}

/// Why the settings of one host cannot be determined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// The host's name has characters that ssh refuses because shells interpret them.
    #[error("\"{0}\" is not a host name: it begins with \"-\" or has blanks or shell characters")]
    HostName(String),
    /// The user's name has characters that ssh refuses because shells interpret them.
    #[error("\"{0}\" is not a user name: it is empty, begins with \"-\" or has shell characters")]
    UserName(String),
    /// A line that holds for this host cannot be honoured.
    #[error("{0}")]
    Line(Problem),
    /// The name has no address, and the lines say that it must have one.
    #[error("could not resolve hostname {0}")]
    NotFound(String),
    /// What is asked for does not go together, as with ssh itself.
    #[error("{0}")]
    Conflict(&'static str),
    /// A file that is included for this host only cannot be used.
    #[error(transparent)]
    Include(#[from] LoadError),
}

/// Why a host is not resolved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unresolved {
    /// This has to be known first: answer it and try again.
    #[error("{0}")]
    Asks(Question),
    /// It cannot be resolved: ssh would exit with status 255.
    #[error(transparent)]
    Refused(#[from] ResolveError),
}

fn join(problems: &[Problem]) -> String {
    problems
        .iter()
        .map(Problem::to_string)
        .collect::<Vec<_>>()
        .join("\n")
}
