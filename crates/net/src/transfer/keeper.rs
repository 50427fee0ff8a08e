//! The journal of one host's transfer, in a file of its own.
//!
//! It is made when the first file that is worth it begins, and removed when the transfer has ended with nothing left half
//! done. Whoever runs the same command again finds it. Only one process writes it: the caller holds a lock.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use sshoal_journal::{Journal, MAX_JOURNAL, Segments};
use sshoal_transfer::CHECKPOINT;

/// Files of fewer octets are transferred whole again: a note would come when they are done.
const LEAST: u64 = 2 * CHECKPOINT;

/// A host's journal. All that is done with it waits for the disk.
#[derive(Debug)]
pub(super) struct Keeper {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    journal: Journal,
    /// The journal's file, and its length; `None` before it is needed, and when it cannot be written.
    file: Option<(File, usize)>,
    is_read: bool,
}

impl Keeper {
    /// Touches nothing yet.
    pub(super) fn new(path: PathBuf) -> Keeper {
        Keeper {
            path,
            state: Mutex::default(),
        }
    }

    /// A file of so many octets begins; returns what is proven of it. `None` if nothing is noted of it.
    ///
    /// # Errors
    ///
    /// Something is proven of what it was, and that could not be forgotten.
    pub(super) fn begin(
        &self,
        key: &[u8],
        identity: &[u8],
        size: u64,
    ) -> io::Result<Option<Segments>> {
        let mut state = self.lock();
        state.read(&self.path);
        if size < LEAST {
            // It may have been larger: what comes now takes the place of what was proven.
            return self.forget_in(&mut state, key).map(|()| None);
        }
        if let Some(proven) = state.journal.proven(key, identity) {
            return Ok(Some(proven.clone()));
        }
        let is_known = state.journal.knows(key);
        let Some(octets) = state.journal.begin(key, identity) else {
            return Ok(None);
        };
        match state.append(&self.path, &octets, is_known) {
            Ok(()) => Ok(Some(Segments::default())),
            // Nothing is noted, and nothing wrong either.
            Err(_) if !is_known => Ok(None),
            Err(error) => Err(self.told(&error)),
        }
    }

    /// A failure of the journal's, which need not be on the disk of what is copied.
    fn told(&self, error: &io::Error) -> io::Error {
        io::Error::other(format!("its journal {}: {error}", self.path.display()))
    }

    /// Segments of a file are proven. What cannot be noted is transferred again.
    pub(super) fn prove(&self, key: &[u8], segments: &Segments) {
        let mut state = self.lock();
        if let Some(octets) = state.journal.prove(key, segments) {
            let _ = state.append(&self.path, &octets, false);
        }
    }

    /// A file is in place, or given up: it makes room for others. Where that cannot be noted, it does not for the next transfer.
    pub(super) fn end(&self, key: &[u8]) {
        let mut state = self.lock();
        if let Some(octets) = state.journal.end(key) {
            let _ = state.append(&self.path, &octets, false);
        }
    }

    /// A file begins from nothing, whatever was proven of it.
    ///
    /// # Errors
    ///
    /// That could not be noted for good: its part must not be made anew.
    pub(super) fn forget(&self, key: &[u8]) -> io::Result<()> {
        self.forget_in(&mut self.lock(), key)
    }

    fn forget_in(&self, state: &mut State, key: &[u8]) -> io::Result<()> {
        let identity = state.journal.identity(key).map(<[u8]>::to_vec);
        let begun = identity.and_then(|identity| state.journal.begin(key, &identity));
        match begun {
            Some(octets) => {
                let noted = state.append(&self.path, &octets, true);
                noted.map_err(|error| self.told(&error))
            }
            None => Ok(()),
        }
    }

    /// Nothing is half done any more.
    pub(super) fn remove(&self) -> io::Result<()> {
        let mut state = self.lock();
        *state = State::default();
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.told(&error)),
            _ => Ok(()),
        }
    }

    /// What a journal says is whole after every statement, whoever panicked.
    fn lock(&self) -> MutexGuard<'_, State> {
        match self.state.lock() {
            Ok(state) => state,
            Err(poisoned) => poisoned.into_inner(),
        }
    }
}

impl State {
    /// Reads what an earlier transfer has noted. What is no journal proves nothing, and is replaced.
    fn read(&mut self, path: &Path) {
        if std::mem::replace(&mut self.is_read, true) {
            return;
        }
        let mut octets = Vec::new();
        let opened = OpenOptions::new().read(true).append(true).open(path);
        let Ok(mut file) = opened else { return };
        let limit = MAX_JOURNAL as u64 + 1;
        if (&mut file).take(limit).read_to_end(&mut octets).is_err() {
            return;
        }
        if let Ok((journal, valid)) = Journal::replay(&octets)
            && file.set_len(valid as u64).is_ok()
        {
            self.journal = journal;
            self.file = Some((file, valid));
        }
    }

    /// Appends records; `for_good`: they outlive a loss of power.
    fn append(&mut self, path: &Path, octets: &[u8], for_good: bool) -> io::Result<()> {
        let is_full = |len: usize| len + octets.len() > MAX_JOURNAL;
        let appended = match &mut self.file {
            Some((file, len)) if !is_full(*len) => {
                *len += octets.len();
                file.write_all(octets)
            }
            // The journal says already what is to be appended.
            _ => self.rewrite(path),
        };
        let synced = appended.and_then(|()| match &self.file {
            Some((file, _)) if for_good => file.sync_data(),
            _ => Ok(()),
        });
        if synced.is_err() {
            // Behind half a record nothing would be found: the next one is written with all before it.
            self.file = None;
        }
        synced
    }

    fn rewrite(&mut self, path: &Path) -> io::Result<()> {
        if let Some(folder) = path.parent() {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)?;
        }
        let octets = self.journal.rewrite();
        let new = path.with_extension("new");
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .mode(0o600)
            .open(&new)?;
        file.write_all(&octets)?;
        file.sync_data()?;
        fs::rename(&new, path)?;
        self.file = Some((file, octets.len()));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::os::unix::fs::MetadataExt;

    use sshoal_journal::MAX_FILES;

    use super::*;

    fn segments(end: u64) -> Segments {
        let mut segments = Segments::default();
        segments.insert(0..end);
        segments
    }

    #[test]
    fn what_was_noted_is_found_by_the_next_and_by_nobody_after_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("made/journal");
        let keeper = Keeper::new(path.clone());
        assert_eq!(keeper.begin(b"small", b"v1", LEAST - 1).unwrap(), None);
        assert!(!path.exists(), "nothing is worth a journal yet");
        let begun = keeper.begin(b"f", b"v1", LEAST).unwrap();
        assert_eq!(begun, Some(Segments::default()));
        keeper.prove(b"f", &segments(7));
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let next = Keeper::new(path.clone());
        assert_eq!(next.begin(b"f", b"v1", LEAST).unwrap(), Some(segments(7)));
        next.prove(b"f", &segments(9));
        // A torn tail.
        let mut octets = fs::read(&path).unwrap();
        octets.pop();
        fs::write(&path, &octets).unwrap();
        let torn = Keeper::new(path.clone());
        assert_eq!(torn.begin(b"f", b"v1", LEAST).unwrap(), Some(segments(7)));
        torn.prove(b"f", &segments(8));
        let after = Keeper::new(path.clone());
        assert_eq!(after.begin(b"f", b"v1", LEAST).unwrap(), Some(segments(8)));
        after.remove().unwrap();
        after.remove().unwrap();
        let begun = Keeper::new(path).begin(b"f", b"v1", LEAST).unwrap();
        assert_eq!(begun, Some(Segments::default()));
    }

    #[test]
    fn what_has_changed_or_is_forgotten_begins_from_nothing_for_the_next_too() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let keeper = Keeper::new(path.clone());
        for key in [b"f", b"g"] {
            keeper.begin(key, b"v1", LEAST).unwrap();
            keeper.prove(key, &segments(7));
        }
        let none = Some(Segments::default());
        assert_eq!(keeper.begin(b"f", b"v2", LEAST).unwrap(), none);
        keeper.forget(b"g").unwrap();
        let next = Keeper::new(path.clone());
        assert_eq!(next.begin(b"g", b"v1", LEAST).unwrap(), none);
        // Not even when the source is what it was again.
        assert_eq!(next.begin(b"f", b"v1", LEAST).unwrap(), none);
        // Nor where it was so small meanwhile that nothing is noted of it.
        next.prove(b"f", &segments(7));
        let small = Keeper::new(path.clone());
        assert_eq!(small.begin(b"f", b"v2", LEAST - 1).unwrap(), None);
        let again = Keeper::new(path);
        assert_eq!(again.begin(b"f", b"v1", LEAST).unwrap(), none);
    }

    #[test]
    fn files_that_are_in_place_make_room_for_others_for_the_next_too() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let key = |number: usize| number.to_be_bytes();
        let keeper = Keeper::new(path.clone());
        for number in 0..3 * MAX_FILES {
            let begun = keeper.begin(&key(number), b"v1", LEAST).unwrap();
            assert_eq!(begun, Some(Segments::default()), "file {number}");
            keeper.prove(&key(number), &segments(7));
            keeper.end(&key(number));
        }
        let next = Keeper::new(path);
        let begun = next.begin(b"f", b"v1", LEAST).unwrap();
        assert_eq!(begun, Some(Segments::default()));
        let last = next.begin(&key(3 * MAX_FILES - 1), b"v1", LEAST).unwrap();
        assert_eq!(last, Some(segments(7)), "nobody needed the room");
    }

    #[test]
    fn a_journal_of_a_release_that_knew_less_of_a_source_proves_nothing_and_is_gone_on_with() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let (older, newer) = ([7; 40], [7; 56]);
        let keeper = Keeper::new(path.clone());
        keeper.begin(b"f", &older, LEAST).unwrap();
        keeper.prove(b"f", &segments(7));
        let next = Keeper::new(path.clone());
        let begun = next.begin(b"f", &newer, LEAST).unwrap();
        assert_eq!(begun, Some(Segments::default()), "it is sent whole");
        next.prove(b"f", &segments(9));
        let found = Keeper::new(path).begin(b"f", &newer, LEAST).unwrap();
        assert_eq!(found, Some(segments(9)));
    }

    #[test]
    fn what_is_no_journal_is_replaced_and_no_place_for_one_is_no_hindrance() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        fs::write(&path, "something else").unwrap();
        let keeper = Keeper::new(path.clone());
        keeper.begin(b"f", b"v1", LEAST).unwrap();
        keeper.prove(b"f", &segments(7));
        let found = Keeper::new(path.clone()).begin(b"f", b"v1", LEAST).unwrap();
        assert_eq!(found, Some(segments(7)));
        let nowhere = Keeper::new(path.join("below/a/file"));
        assert_eq!(nowhere.begin(b"f", b"v1", LEAST).unwrap(), None);
    }
}
