//! Modes that folders of this machine's user have while something is written into them: one that he may not write into himself
//! (a mode of 0555 that was kept, for example) lets him until then, and has its mode back at the end.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, Once};

use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags, accessat, chmodat, fchmod, fstat, openat};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::folder::{open_in, place};

/// What the owner needs to write into a folder.
const ALL: Mode = Mode::RWXU;

/// Modes that folders in a host's had, by their paths. They have them back at the latest when this is dropped.
#[derive(Debug)]
pub(super) struct Lent {
    root: PathBuf,
    root_lent: Once,
    modes: Mutex<BTreeMap<Vec<u8>, Mode>>,
}

impl Lent {
    pub(super) fn new(root: &Path) -> Lent {
        Lent {
            root: root.to_owned(),
            root_lent: Once::new(),
            modes: Mutex::default(),
        }
    }

    /// Makes it possible to write into the folder of this name in `above`, if it is there and the user's. Links are not followed.
    /// Whoever opens a folder for which that cannot be done is told why.
    pub(super) fn lend(&self, above: &OwnedFd, name: &[u8], path: &[u8]) {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        if let Ok(folder) = openat(above, name, flags, Mode::empty()) {
            self.lend_open(&folder, path);
        }
    }

    /// The same for the host's own folder, once. It is where the user has it: a link to it is his.
    pub(super) fn lend_root(&self) {
        self.root_lent.call_once(|| {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            if let Ok(folder) = openat(CWD, &self.root, flags, Mode::empty()) {
                self.lend_open(&folder, b"");
            }
        });
    }

    fn lend_open(&self, folder: &OwnedFd, path: &[u8]) {
        let access = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
        if accessat(folder, ".", access, AtFlags::empty()) != Err(Errno::ACCESS) {
            return;
        }
        let Ok(stat) = fstat(folder) else {
            return;
        };
        let mode = Mode::from_raw_mode(stat.st_mode & 0o7777);
        if stat.st_uid != geteuid().as_raw() || mode.contains(ALL) {
            return;
        }
        // What is open as a path alone has no fchmod, but this name, which nobody can make another's (proc(5)).
        let own = format!("/proc/self/fd/{}", folder.as_raw_fd());
        if chmodat(CWD, own, mode | ALL, AtFlags::empty()).is_ok() {
            self.lock().entry(path.to_vec()).or_insert(mode);
        }
    }

    /// The folder keeps the mode that it has now.
    pub(super) fn forget(&self, path: &[u8]) {
        self.lock().remove(path);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Gives all folders their modes back, the innermost first.
    ///
    /// # Errors
    ///
    /// The first that could not be given its own; the others have been.
    pub(super) fn give_back(&self) -> io::Result<()> {
        let mut given = Ok(());
        while let Some((path, mode)) = self.take_last() {
            let had = open_in(&self.root, &path).and_then(|folder| Ok(fchmod(folder, mode)?));
            given = given.and(had.map_err(|error| {
                let place = place(&self.root, &path);
                io::Error::other(format!(
                    "giving the folder {} its mode back: {error}",
                    place.display()
                ))
            }));
        }
        given
    }

    /// In the order of paths what is in a folder comes behind it.
    fn take_last(&self) -> Option<(Vec<u8>, Mode)> {
        self.lock().pop_last()
    }

    /// What it holds is whole after every statement, whoever panicked.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Vec<u8>, Mode>> {
        match self.modes.lock() {
            Ok(modes) => modes,
            Err(poisoned) => poisoned.into_inner(),
        }
    }
}

impl Drop for Lent {
    /// The transfer was cut: there is nobody to tell.
    fn drop(&mut self) {
        let _ = self.give_back();
    }
}
