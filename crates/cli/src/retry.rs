//! `--retry-failed`: the hosts of the last run that ended in a given way.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use sshoal_fleet::{FailureKind, HostId, Outcome};
use sshoal_journal::run::RunId;
use sshoal_net::{FindError, ReadError, find_run, read_run, result_of, run_path, runs_folder};
use sshoal_report::{LastRunError, PastEnding, PastHost, last_run_id, read_last_run};
use sshoal_targets::Target;

use crate::runs;
use crate::say::say;

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

/// Why it is not known how a run's hosts ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RetryError {
    #[error(transparent)]
    LastRun(#[from] LastRunError),
    #[error(transparent)]
    Find(#[from] FindError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("the run {0} goes on: it is not known yet how all of its hosts end")]
    GoesOn(RunId),
}

/// The hosts of these kinds of a run, or of the last one.
pub(crate) fn targets(
    of: Option<&str>,
    results: Option<PathBuf>,
    kinds: &[RetryKind],
) -> Result<Vec<Target>, RetryError> {
    let past = match (of, results) {
        (Some(run), _) => of_journal(find_run(run)?)?,
        (None, Some(path)) => of_last_run(&path)?,
        (None, None) => Vec::new(),
    };
    let selected = past
        .into_iter()
        .filter(|host| kinds.iter().any(|kind| kind.selects(host.ending)));
    Ok(selected.map(|host| host.target).collect())
}

/// The last run's hosts: its journal's, which knows more, or those of the result file.
fn of_last_run(path: &Path) -> Result<Vec<PastHost>, RetryError> {
    let run = last_run_id(path)?.and_then(|run| run.parse().ok());
    let is_kept =
        |run: &RunId| runs_folder().is_some_and(|folder| run_path(&folder, *run).exists());
    match run.filter(is_kept) {
        Some(run) => of_journal(run),
        None => Ok(read_last_run(path)?),
    }
}

/// The hosts of a run with a journal. One whose command was sent and whose end is not known is lost.
fn of_journal(run: RunId) -> Result<Vec<PastHost>, RetryError> {
    let known = read_run(run, |_| {})?;
    if known.is_on {
        return Err(RetryError::GoesOn(run));
    }
    known.undamaged()?;
    let may_lack_records = known.may_lack_records();
    if may_lack_records {
        say(runs::doubt(&known));
    }
    let hosts = known.state.hosts.iter().zip(&known.state.states);
    Ok(hosts
        .map(|(host, state)| PastHost {
            target: runs::target(host),
            ending: match result_of(HostId(0), state).outcome {
                Outcome::NotStarted if may_lack_records => PastEnding::Failed(FailureKind::Lost),
                Outcome::NotStarted => PastEnding::NotStarted,
                outcome => match outcome.failure_kind() {
                    Some(kind) => PastEnding::Failed(kind),
                    None => PastEnding::Ok,
                },
            },
        })
        .collect())
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
