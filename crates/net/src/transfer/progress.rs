//! How far a fetched file is, in a journal: what an earlier transfer has left is gone on with.
//!
//! An octet is proven when it was written and fdatasync(2) has been called since. A part that is there is taken over only if
//! it is a regular file of ours with no other name, as long as what is proven.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::{Arc, Mutex, MutexGuard};

use rustix::fs::{Mode, OFlags, fdatasync, openat};
use rustix::process::geteuid;
use sshoal_journal::Segments;
use sshoal_transfer::CHECKPOINT;

use super::keeper::Keeper;

/// One file's progress.
#[derive(Debug)]
pub(super) struct Progress {
    keeper: Arc<Keeper>,
    key: Vec<u8>,
    /// What an earlier transfer has proven.
    pub(super) proven: Segments,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    written: Segments,
    /// Octets written since the disk was last waited for.
    since: u64,
    is_syncing: bool,
}

impl Progress {
    /// A file of this size and time of modification begins; `None` if nothing is noted of it.
    pub(super) fn begin(
        keeper: &Arc<Keeper>,
        path: &[u8],
        (size, modified): (u64, u32),
    ) -> io::Result<Option<Progress>> {
        let identity = [size.to_be_bytes(), u64::from(modified).to_be_bytes()].concat();
        let proven = keeper.begin(path, &identity, size)?;
        Ok(proven.map(|proven| Progress {
            keeper: keeper.clone(),
            key: path.to_vec(),
            state: Mutex::new(State {
                written: proven.clone(),
                ..State::default()
            }),
            proven,
        }))
    }

    /// The part that an earlier transfer has left, and its length.
    pub(super) fn open(&self, folder: &OwnedFd, part: &[u8]) -> Option<(File, u64)> {
        if self.proven.is_empty() {
            return None;
        }
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(openat(folder, part, flags, Mode::empty()).ok()?);
        let found = file.metadata().ok()?;
        let is_ours = found.is_file()
            && found.uid() == geteuid().as_raw()
            && found.nlink() == 1
            && found.size() >= self.proven.end();
        is_ours.then(|| (file, found.size()))
    }

    /// The part is made anew: nothing is proven of it.
    pub(super) fn anew(self) -> io::Result<Progress> {
        if !self.proven.is_empty() {
            self.keeper.forget(&self.key)?;
        }
        Ok(Progress {
            proven: Segments::default(),
            state: Mutex::default(),
            ..self
        })
    }

    /// Octets have been written; `true` if they are to be brought to the disk now, and noted.
    pub(super) fn written(&self, octets: Range<u64>) -> bool {
        let mut state = self.lock();
        state.since += octets.end - octets.start;
        state.written.insert(octets);
        let is_due = state.since >= CHECKPOINT && !state.is_syncing;
        if is_due {
            (state.since, state.is_syncing) = (0, true);
        }
        is_due
    }

    /// Brings what is written to the disk, and notes it.
    pub(super) fn note(&self, file: &File) -> io::Result<()> {
        let written = self.lock().written.clone();
        let synced = lengthen(file, written.end()).and_then(|()| Ok(fdatasync(file)?));
        if synced.is_ok() {
            self.keeper.prove(&self.key, &written);
        }
        self.lock().is_syncing = false;
        synced
    }

    /// The part is in place, or gone.
    pub(super) fn end(&self) {
        self.keeper.end(&self.key);
    }

    /// What it holds is whole after every statement, whoever panicked.
    fn lock(&self) -> MutexGuard<'_, State> {
        match self.state.lock() {
            Ok(state) => state,
            Err(poisoned) => poisoned.into_inner(),
        }
    }
}

/// Makes a part as long as what is written of it: zeros at its end were left out. Where it is shorter nobody writes its last octet.
fn lengthen(part: &File, end: u64) -> io::Result<()> {
    match end.checked_sub(1) {
        Some(last) if part.metadata()?.len() <= last => part.write_all_at(&[0], last),
        _ => Ok(()),
    }
}
