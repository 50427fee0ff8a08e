//! The folder of the journals, and what they are called there.

use std::fs;
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};
use sshoal_journal::run::RunId;

use crate::cache_folder::make_folder;

/// What a journal's name ends with.
const EXTENSION: &str = "run";
/// Stands for the run that began last.
const LAST: &str = "last";

/// Why no run is meant.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// There is no place for them.
    #[error("neither XDG_STATE_HOME nor HOME is set to an absolute path, so no runs are kept")]
    NoFolder,
    /// The folder cannot be read.
    #[error("cannot read {path}: {error}")]
    Unreadable {
        /// The folder.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// No journal was kept yet.
    #[error("no run is kept in {0}")]
    NoRuns(PathBuf),
    /// None is called so.
    #[error("no run is called {0}; `sshoal runs` lists them")]
    Unknown(String),
    /// Several begin so.
    #[error("{text} may be {first}, {second} or others: type more of it")]
    Ambiguous {
        /// What was typed.
        text: String,
        /// One of them.
        first: RunId,
        /// Another.
        second: RunId,
    },
}

/// Where journals are kept: `$XDG_STATE_HOME/sshoal/runs`, or under `~/.local/state`. `None` if no home is known.
pub fn runs_folder() -> Option<PathBuf> {
    let absolute = |name| {
        let value = std::env::var_os(name).map(PathBuf::from);
        value.filter(|path| path.is_absolute())
    };
    let state =
        absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    Some(state.join("sshoal/runs"))
}

/// The journal of a run.
pub fn run_path(folder: &Path, run: RunId) -> PathBuf {
    folder.join(format!("{run}.{EXTENSION}"))
}

/// All runs that are kept, in the order in which they began. What is no regular file is none of them.
///
/// # Errors
///
/// The folder cannot be read. One that is not there has none.
pub fn known_runs(folder: &Path) -> io::Result<Vec<RunId>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut runs = Vec::new();
    for entry in entries {
        let entry = entry?;
        let path = PathBuf::from(entry.file_name());
        let is_journal = path
            .extension()
            .is_some_and(|extension| extension == EXTENSION)
            // One that has gone meanwhile is none either.
            && entry.file_type().is_ok_and(|kind| kind.is_file());
        let name = path.file_stem().and_then(|stem| stem.to_str());
        runs.extend(
            name.filter(|_| is_journal)
                .and_then(|name| name.parse::<RunId>().ok()),
        );
    }
    runs.sort_unstable();
    Ok(runs)
}

/// The run that is meant by its identifier, by the beginning of it, or by `last`.
///
/// # Errors
///
/// There is none such, or several.
pub fn find_run(text: &str) -> Result<RunId, FindError> {
    let folder = runs_folder().ok_or(FindError::NoFolder)?;
    let runs = known_runs(&folder).map_err(|error| FindError::Unreadable {
        path: folder.clone(),
        error,
    })?;
    if text == LAST {
        return runs.last().copied().ok_or(FindError::NoRuns(folder));
    }
    let mut meant = runs
        .into_iter()
        .filter(|run| !text.is_empty() && run.to_string().starts_with(text));
    match (meant.next(), meant.next()) {
        (Some(run), None) => Ok(run),
        (None, _) => Err(FindError::Unknown(text.to_owned())),
        (Some(first), Some(second)) => Err(FindError::Ambiguous {
            text: text.to_owned(),
            first,
            second,
        }),
    }
}

/// Removes a run's journal, unless its run is on. Returns whether it did.
///
/// # Errors
///
/// It cannot be removed.
pub fn remove_run(folder: &Path, run: RunId) -> io::Result<bool> {
    let path = run_path(folder, run);
    // Over NFS only who may write gets a lock that nobody shares (flock(2)).
    let file = match open(&path, fs::OpenOptions::new().read(true).append(true)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        file => file?,
    };
    match locked(&file) {
        Ok(true) => fs::remove_file(&path).map(|()| true),
        Ok(false) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether a process carries the run out now.
///
/// # Errors
///
/// Its journal cannot be opened.
pub fn run_is_on(folder: &Path, run: RunId) -> io::Result<bool> {
    is_locked(&open(
        &run_path(folder, run),
        fs::OpenOptions::new().read(true),
    )?)
}

/// Opens a journal. What else may stand in its place, a pipe above all, does not keep anybody waiting.
pub(super) fn open(path: &Path, options: &mut fs::OpenOptions) -> io::Result<fs::File> {
    options.custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    let file = options.open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is no regular file")),
    }
}

/// Whether somebody carries the run out.
pub(super) fn is_locked(file: &fs::File) -> io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => {
            flock(file, FlockOperation::Unlock)?;
            Ok(false)
        }
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// Takes the lock of whoever carries a run out; false if another process has it.
pub(super) fn locked(file: &fs::File) -> io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Makes the folder, for the user alone.
pub(super) fn make(folder: &Path) -> io::Result<()> {
    make_folder(folder)?;
    let mut rights = fs::metadata(folder)?.permissions();
    if rights.mode() & 0o077 != 0 {
        rights.set_mode(0o700);
        fs::set_permissions(folder, rights)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::os::unix::fs::symlink;
    use std::time::Duration;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn what_is_no_regular_file_is_no_journal_and_keeps_nobody_waiting() {
        let dir = tempfile::tempdir().unwrap();
        let run = |seconds| RunId::new(Duration::from_secs(seconds), 0);
        let path = |seconds| run_path(dir.path(), run(seconds));
        fs::write(path(1), "").unwrap();
        fs::create_dir(path(2)).unwrap();
        symlink(path(1), path(3)).unwrap();
        mknodat(CWD, path(4), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert_eq!(known_runs(dir.path()).unwrap(), [run(1)]);
        assert!(remove_run(dir.path(), run(2)).is_err());
        assert!(remove_run(dir.path(), run(4)).is_err());
        assert!(open(&path(4), fs::OpenOptions::new().append(true)).is_err());
        assert!(path(4).exists());
    }
}
