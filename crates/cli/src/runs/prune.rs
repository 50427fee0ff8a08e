//! Journals that are too old, or too many, go.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sshoal_journal::run::RunId;
use sshoal_net::{known_runs, remove_run, run_is_on, run_path, runs_folder};

use super::args::KeepArgs;

const DAYS: u32 = 30;
const SIZE: u64 = 1 << 30;
/// Journals that are kept, whatever their size: a run looks at each of them.
const MOST: usize = 1000;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What was removed.
#[derive(Debug, Default)]
pub(super) struct Pruned {
    /// How many.
    pub(super) removed: usize,
    /// The first that could not be.
    pub(super) failed: Option<PruneError>,
}

/// A journal that is not to be kept, and cannot be removed.
#[derive(Debug, thiserror::Error)]
#[error("cannot remove the journal {}: {error}", path.display())]
pub(super) struct PruneError {
    path: PathBuf,
    error: io::Error,
}

/// Removes what is not to be kept.
///
/// # Errors
///
/// The folder cannot be read.
pub(super) fn prune(folder: &Path, keep: &KeepArgs) -> io::Result<Pruned> {
    prune_by(folder, keep, |run| remove_run(folder, run))
}

/// The same, with what removes one journal and tells whether it did.
fn prune_by(
    folder: &Path,
    keep: &KeepArgs,
    mut remove: impl FnMut(RunId) -> io::Result<bool>,
) -> io::Result<Pruned> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.unwrap_or_default();
    let longest = match keep.keep_days.unwrap_or(DAYS) {
        0 => None,
        days => Some(DAY * days),
    };
    let most = keep.keep_size.unwrap_or(SIZE);
    let (mut kept, mut octets) = (0, 0u64);
    let (mut is_full, mut has_newest) = (false, false);
    let mut pruned = Pruned::default();
    for run in known_runs(folder)?.into_iter().rev() {
        let is_old = longest.is_some_and(|longest| run.began() + longest < now);
        // One that has gone meanwhile takes nothing.
        let len = fs::metadata(run_path(folder, run)).map_or(0, |metadata| metadata.len());
        if !is_old {
            // What is older than one that does not fit is not worth more than that.
            is_full |= kept >= MOST || octets.saturating_add(len) > most;
            let is_newest = !has_newest && matches!(run_is_on(folder, run), Ok(false));
            has_newest |= is_newest;
            if is_newest || !is_full {
                kept += 1;
                octets = octets.saturating_add(len);
                continue;
            }
        }
        match remove(run) {
            Ok(is_removed) => pruned.removed += usize::from(is_removed),
            Err(error) => {
                let path = run_path(folder, run);
                pruned.failed.get_or_insert(PruneError { path, error });
            }
        }
    }
    Ok(pruned)
}

/// The same beside a run that begins, which does not wait for it. What cannot be removed now is left to the next run.
pub(super) fn in_background(keep: &KeepArgs) {
    let keep = KeepArgs { ..*keep };
    let Some(folder) = runs_folder() else { return };
    // Without a thread the next run sees to it.
    let _ = thread::Builder::new()
        .name("prune".to_owned())
        .spawn(move || prune(&folder, &keep));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// A folder with a journal of so many octets for each age, in days.
    fn folder(journals: &[(u64, usize)]) -> (tempfile::TempDir, Vec<RunId>) {
        let dir = tempfile::tempdir().unwrap();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let mut runs = Vec::new();
        for (number, (days, octets)) in journals.iter().enumerate() {
            let began = now - Duration::from_secs(days * 24 * 60 * 60 + 60);
            let run = RunId::new(began, number as u32);
            fs::write(run_path(dir.path(), run), vec![0; *octets]).unwrap();
            runs.push(run);
        }
        (dir, runs)
    }

    fn keep(days: Option<u32>, size: Option<u64>) -> KeepArgs {
        KeepArgs {
            keep_days: days,
            keep_size: size,
        }
    }

    /// Prunes without a failure; how many went.
    fn removed(dir: &tempfile::TempDir, keep: KeepArgs) -> usize {
        let pruned = prune(dir.path(), &keep).unwrap();
        assert!(pruned.failed.is_none(), "{pruned:?}");
        pruned.removed
    }

    #[test]
    fn the_oldest_go_first() {
        let (dir, runs) = folder(&[(40, 1), (31, 1), (29, 10), (2, 10), (0, 10)]);
        let mut expected = runs[2..].to_vec();
        assert_eq!(removed(&dir, keep(Some(0), None)), 0);
        assert_eq!(removed(&dir, keep(None, None)), 2);
        assert_eq!(known_runs(dir.path()).unwrap(), expected);
        assert_eq!(removed(&dir, keep(None, Some(25))), 1);
        expected.remove(0);
        assert_eq!(known_runs(dir.path()).unwrap(), expected);
        assert_eq!(removed(&dir, keep(Some(1), None)), 1);
        assert_eq!(known_runs(dir.path()).unwrap(), expected[1..]);
    }

    #[test]
    fn with_one_that_does_not_fit_all_older_ones_go() {
        let (dir, runs) = folder(&[(4, 1), (3, 1), (2, 50), (1, 10), (0, 10)]);
        assert_eq!(removed(&dir, keep(None, Some(40))), 3);
        assert_eq!(known_runs(dir.path()).unwrap(), runs[3..]);
    }

    #[test]
    fn the_newest_run_that_has_ended_stays_whatever_its_size() {
        let (dir, runs) = folder(&[(3, 1), (2, 1), (1, 50), (0, 10)]);
        let open = fs::File::open(run_path(dir.path(), runs[3])).unwrap();
        rustix::fs::flock(&open, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
        assert_eq!(removed(&dir, keep(None, Some(0))), 2);
        assert_eq!(known_runs(dir.path()).unwrap(), runs[2..]);
        // But it may be too old.
        assert_eq!(removed(&dir, keep(Some(1), Some(0))), 1);
        assert_eq!(known_runs(dir.path()).unwrap(), runs[3..]);
    }

    #[test]
    fn one_that_cannot_be_removed_keeps_no_other() {
        let (dir, runs) = folder(&[(50, 1), (45, 1), (40, 1), (0, 1)]);
        let denied = [runs[2], runs[1]];
        let pruned = prune_by(dir.path(), &keep(None, None), |run| {
            match denied.contains(&run) {
                true => Err(io::ErrorKind::PermissionDenied.into()),
                false => remove_run(dir.path(), run),
            }
        });
        let pruned = pruned.unwrap();
        assert_eq!(pruned.removed, 1);
        assert!(!run_path(dir.path(), runs[0]).exists());
        let said = pruned.failed.unwrap().to_string();
        let path = run_path(dir.path(), runs[2]);
        assert!(said.contains(path.to_str().unwrap()), "{said}");
    }

    #[test]
    fn a_run_that_is_on_stays_whatever_its_age() {
        let (dir, runs) = folder(&[(40, 1), (35, 1)]);
        let open = fs::File::open(run_path(dir.path(), runs[1])).unwrap();
        rustix::fs::flock(&open, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
        assert_eq!(removed(&dir, keep(None, Some(0))), 1);
        assert_eq!(known_runs(dir.path()).unwrap(), runs[1..]);
    }
}
