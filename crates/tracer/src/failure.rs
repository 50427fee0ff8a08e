//! Why there is no trace: a word for the program on the other side, and a sentence for the user.

use std::fmt;
use std::io;
use std::path::Path;

/// Why there is no trace.
#[derive(Debug)]
pub(crate) struct Failure {
    /// Which kind: `not-root`, `not-wanted`, `no-tracefs`, `no-connector`, `no-proc`, `not-permitted`, `too-old`, `no-server`, `system`.
    pub(crate) kind: &'static str,
    pub(crate) words: String,
}

impl Failure {
    pub(crate) fn new(kind: &'static str, words: impl Into<String>) -> Failure {
        let words = words.into();
        Failure { kind, words }
    }

    /// Something of the system's that failed, with the file that it was about.
    pub(crate) fn system(what: &str, path: &Path, error: &io::Error) -> Failure {
        Failure::new("system", format!("{what} {}: {error}", path.display()))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.words)
    }
}
