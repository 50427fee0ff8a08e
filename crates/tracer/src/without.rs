//! What the tracer does without although the kernel may have it: to try what comes of that, and for hosts on which something of it is
//! not wanted. The same words name what is lacking in any case.

/// The kernel's tracing.
pub(crate) const TRACEFS: &str = "tracefs";
/// Its instances.
pub(crate) const INSTANCES: &str = "instances";
/// That it follows forks.
pub(crate) const EVENT_FORK: &str = "event-fork";
/// Probes in programs and libraries.
pub(crate) const UPROBES: &str = "uprobes";
/// Of these, those that time functions of PAM's modules and of the name service,
pub(crate) const FUNCTIONS: &str = "functions";
/// of the name service alone,
pub(crate) const NAME_SERVICE: &str = "name-service";
/// and those that tell names of files and arguments of programs.
pub(crate) const NAMES: &str = "names";
/// The proc connector.
pub(crate) const CONNECTOR: &str = "proc-connector";
/// /proc, looked at again and again.
pub(crate) const PROC: &str = "proc";

/// Words, as they follow `--without`, a comma between them.
#[derive(Debug, Default)]
pub(crate) struct Without(Vec<String>);

impl Without {
    /// Reads them. What no version knows is no harm.
    pub(crate) fn of(words: &str) -> Without {
        Without(words.split(',').map(str::to_owned).collect())
    }

    /// Whether this is one of them.
    pub(crate) fn has(&self, word: &str) -> bool {
        self.0.iter().any(|known| known == word)
    }
}
