//! Journals that are too old, or too many, go.

use std::fs;
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sshoal_net::{known_runs, remove_run, run_path, runs_folder};

use super::args::KeepArgs;

const DAYS: u32 = 30;
const SIZE: u64 = 1 << 30;
/// Journals that are kept, whatever their size: a run looks at each of them.
const MOST: usize = 1000;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Removes what is not to be kept; returns how many.
///
/// # Errors
///
/// The folder cannot be read, or one of them not be removed.
pub(super) fn prune(folder: &Path, keep: &KeepArgs) -> io::Result<usize> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.unwrap_or_default();
    let longest = match keep.keep_days.unwrap_or(DAYS) {
        0 => None,
        days => Some(DAY * days),
    };
    let most = keep.keep_size.unwrap_or(SIZE);
    let (mut kept, mut octets, mut removed) = (0, 0u64, 0);
    for run in known_runs(folder)?.into_iter().rev() {
        let is_old = longest.is_some_and(|longest| run.began() + longest < now);
        // One that has gone meanwhile takes nothing.
        let len = fs::metadata(run_path(folder, run)).map_or(0, |metadata| metadata.len());
        if !is_old && kept < MOST && octets + len <= most {
            kept += 1;
            octets += len;
            continue;
        }
        removed += usize::from(remove_run(folder, run)?);
    }
    Ok(removed)
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

    use sshoal_journal::run::RunId;

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

    #[test]
    fn the_oldest_go_first() {
        let (dir, runs) = folder(&[(40, 1), (31, 1), (29, 10), (2, 10), (0, 10)]);
        let mut expected = runs[2..].to_vec();
        assert_eq!(prune(dir.path(), &keep(Some(0), None)).unwrap(), 0);
        assert_eq!(prune(dir.path(), &keep(None, None)).unwrap(), 2);
        assert_eq!(known_runs(dir.path()).unwrap(), expected);
        assert_eq!(prune(dir.path(), &keep(None, Some(25))).unwrap(), 1);
        expected.remove(0);
        assert_eq!(known_runs(dir.path()).unwrap(), expected);
        assert_eq!(prune(dir.path(), &keep(Some(1), None)).unwrap(), 1);
        assert_eq!(known_runs(dir.path()).unwrap(), expected[1..]);
    }

    #[test]
    fn a_run_that_is_on_stays_whatever_its_age() {
        let (dir, runs) = folder(&[(40, 1), (35, 1)]);
        let open = fs::File::open(run_path(dir.path(), runs[1])).unwrap();
        rustix::fs::flock(&open, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
        assert_eq!(prune(dir.path(), &keep(None, Some(0))).unwrap(), 1);
        assert_eq!(known_runs(dir.path()).unwrap(), runs[1..]);
    }
}
