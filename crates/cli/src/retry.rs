//! `--retry-failed`: the hosts of the last run that ended in a given way.

use std::path::PathBuf;
use std::str::FromStr;

use sshoal_fleet::FailureKind;
use sshoal_report::{LastRunError, PastEnding, read_last_run};
use sshoal_targets::Target;

/// Which endings of the last run are to be tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetryKind {
    /// All that did not end with status 0, but those whose command may have run.
    All,
    /// Hosts whose turn never came.
    NotStarted,
    /// One kind of failure, chosen by name: the user knows what running again means.
    Kind(FailureKind),
}

impl FromStr for RetryKind {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "all" => Ok(RetryKind::All),
            "not-started" => Ok(RetryKind::NotStarted),
            kind => kind.parse().map(RetryKind::Kind).map_err(|_| {
                let names: Vec<&str> = names().collect();
                format!(
                    "{kind:?} is no failure kind; there are: {}",
                    names.join(", ")
                )
            }),
        }
    }
}

/// All that may be chosen.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let kinds = FailureKind::all().map(FailureKind::name);
    ["all", "not-started"].into_iter().chain(kinds)
}

impl RetryKind {
    fn selects(self, ending: PastEnding) -> bool {
        match (self, ending) {
            (_, PastEnding::Ok) => false,
            (RetryKind::All, PastEnding::Failed(kind)) => !kind.command_may_have_run(),
            (RetryKind::All | RetryKind::NotStarted, PastEnding::NotStarted) => true,
            (RetryKind::Kind(wanted), PastEnding::Failed(kind)) => wanted == kind,
            _ => false,
        }
    }
}

/// The last run's hosts of these kinds, in the order in which they ended.
pub(crate) fn targets(
    results: Option<PathBuf>,
    kinds: &[RetryKind],
) -> Result<Vec<Target>, LastRunError> {
    let Some(path) = results else {
        return Ok(Vec::new());
    };
    let past = read_last_run(&path)?;
    let selected = past
        .into_iter()
        .filter(|host| kinds.iter().any(|kind| kind.selects(host.ending)));
    Ok(selected.map(|host| host.target).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_leaves_out_what_may_have_run() {
        let all = RetryKind::All;
        assert!(all.selects(PastEnding::Failed(FailureKind::Refused)));
        assert!(all.selects(PastEnding::NotStarted));
        assert!(!all.selects(PastEnding::Ok));
        for kind in FailureKind::all().filter(|kind| kind.command_may_have_run()) {
            assert!(!all.selects(PastEnding::Failed(kind)), "{}", kind.name());
            assert!(
                RetryKind::Kind(kind).selects(PastEnding::Failed(kind)),
                "{}",
                kind.name()
            );
        }
    }

    #[test]
    fn a_wrong_name_lists_the_right_ones() {
        let error = "brokn".parse::<RetryKind>().expect_err("no such kind");
        assert!(
            error.contains("auth-denied") && error.contains("not-started"),
            "{error}"
        );
    }
}
