//! Where a value comes from.

use std::fmt;
use std::sync::Arc;

/// The place that set a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// Nobody set it: this is what ssh assumes.
    Default,
    /// It was given with the host itself, as in `user@host:port`.
    Query,
    /// An `-o` option.
    CommandLine,
    /// A line of a configuration file, counted from 1.
    File {
        /// The file's path.
        file: Arc<str>,
        /// The line's number.
        line: usize,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::Query => f.write_str("given with the host"),
            Origin::CommandLine => f.write_str("command line"),
            Origin::File { file, line } => write!(f, "{file}:{line}"),
        }
    }
}

/// A value and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting<T> {
    /// The value.
    pub value: T,
    /// What set it.
    pub origin: Origin,
}

impl<T> Setting<T> {
    pub(crate) fn new(value: T, origin: Origin) -> Setting<T> {
        Setting { value, origin }
    }

    pub(crate) fn default(value: T) -> Setting<T> {
        Setting {
            value,
            origin: Origin::Default,
        }
    }

    /// The same origin with another value.
    pub(crate) fn map<U>(self, how: impl FnOnce(T) -> U) -> Setting<U> {
        Setting {
            value: how(self.value),
            origin: self.origin,
        }
    }

    /// Whether a line or an option set the value.
    pub fn is_configured(&self) -> bool {
        self.origin != Origin::Default
    }
}

impl Setting<&str> {
    pub(crate) fn owned(self) -> Setting<String> {
        self.map(String::from)
    }
}
