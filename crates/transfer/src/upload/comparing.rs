//! Files that are there with the size of what is to be sent: unchanged if both ends' hashes are equal (`--checksum`).

use std::collections::VecDeque;

use super::files::{FileStep, Stage};
use super::small::SmallStep;
use super::{Phase, Upload, UploadNeed};
use crate::Trouble;
use crate::hashing::{FileHash, HashKey, HostHash};
use crate::sftp::{Attributes, Request};

/// What is told of a failure to set an unchanged file's mode and times.
pub(super) const SETTING: &str = "setting mode and times";

/// A file that is hashed at both ends.
pub(super) struct Comparison {
    /// What is there.
    there: Attributes,
    is_small: bool,
    here: Option<Result<FileHash, String>>,
    host: Option<HostHash>,
}

/// What came of it.
enum Found {
    Same,
    Other,
    Failed(Trouble),
}

impl Upload {
    /// A host that cannot hash gets nothing where hashes must be had.
    pub(super) fn await_hashes(&mut self) {
        let flag = self.plan.hashing.insists();
        let flag = flag.filter(|_| self.plan.has_contents());
        let Some(flag) = flag.filter(|_| !self.interrupted) else {
            self.phase = Phase::Owners;
            return;
        };
        if let Some(why) = self.hashes.why_over() {
            self.tally.failed += self.plan.entries.len().saturating_sub(1) as u64;
            self.failed(self.plan.target.clone(), Trouble::NoHashes { flag, why });
            self.phase = Phase::Ended;
        } else if self.hashes.is_ready() {
            self.phase = Phase::Owners;
        }
    }

    /// The session with the host's hashing program.
    pub fn hashes(&mut self) -> &mut crate::HostHashes {
        &mut self.hashes
    }

    /// Takes note of what became of the session.
    pub fn handle_hashes(&mut self) {
        self.advance();
    }

    pub(super) fn take_hashes(&mut self) {
        while let Some((key, hash)) = self.hashes.poll_answer() {
            match key {
                HashKey::There(entry) => self.handle_hash_there(entry as usize, hash),
                HashKey::Arrived(entry) => self.handle_hash_arrived(entry as usize, hash),
            }
        }
    }

    /// Has both ends hash a file.
    pub(super) fn compare(&mut self, entry: usize, there: Attributes, is_small: bool) {
        let comparison = Comparison {
            there,
            is_small,
            here: None,
            host: None,
        };
        self.comparisons.insert(entry, comparison);
        let path = self.path(entry);
        let octets = there.size.unwrap_or(0);
        let key = HashKey::There(entry as u64);
        self.hashes.ask(key, &path, octets);
        self.needs.push_back(UploadNeed::Hash { entry });
    }

    /// The answer to [`UploadNeed::Hash`].
    pub fn provide_hash(&mut self, entry: usize, hash: Result<FileHash, String>) {
        if let Some(it) = self.comparisons.get_mut(&entry) {
            it.here = Some(hash);
        }
        self.conclude(entry);
        self.advance();
    }

    fn handle_hash_there(&mut self, entry: usize, hash: HostHash) {
        if let Some(it) = self.comparisons.get_mut(&entry) {
            it.host = Some(hash);
        }
        self.conclude(entry);
    }

    fn conclude(&mut self, entry: usize) {
        let Some(it) = self.comparisons.get(&entry) else {
            return;
        };
        let found = match (&it.here, it.host) {
            (_, Some(HostHash::Gone)) => Found::Failed(Trouble::NoHashes {
                flag: "--checksum",
                why: self.hashes.why_over().unwrap_or_default(),
            }),
            (Some(Err(error)), Some(_)) => Found::Failed(Trouble::Local {
                doing: "reading",
                error: error.clone(),
            }),
            (Some(Ok(here)), Some(HostHash::Is(host))) if *here == host => Found::Same,
            // What cannot be read there is not known to be the same.
            (Some(Ok(_)), Some(_)) => Found::Other,
            _ => return,
        };
        let Some(it) = self.comparisons.remove(&entry) else {
            return;
        };
        match it.is_small {
            true => self.small_compared(entry, &it.there, found),
            false => self.file_compared(entry, &it.there, found),
        }
    }

    fn file_compared(&mut self, entry: usize, there: &Attributes, found: Found) {
        let is_awaited = |stage| stage == Stage::Compare;
        let file = self.files.get_mut(&entry);
        let Some(file) = file.filter(|file| is_awaited(file.stage)) else {
            return;
        };
        match found {
            Found::Same => self.file_is_there(entry, there),
            Found::Other => {
                file.stage = Stage::OpenHere;
                self.needs.push_back(UploadNeed::Open { entry });
            }
            Found::Failed(trouble) => self.fail_file(entry, trouble),
        }
    }

    /// Its contents are there already.
    pub(super) fn file_is_there(&mut self, entry: usize, there: &Attributes) {
        let lacks = self.lacks(entry, there);
        if let Some(file) = self.files.get_mut(&entry) {
            file.lacks = lacks;
            self.touch(entry);
        }
    }

    /// Gives an unchanged file what it lacks next: what makes somebody else of it is not set before it belongs to him.
    pub(super) fn touch(&mut self, entry: usize) {
        let Some(file) = self.files.get_mut(&entry) else {
            return;
        };
        let Some(&attributes) = file.lacks.front() else {
            return self.file_done(entry, true);
        };
        file.stage = Stage::Touch;
        let (channel, path) = (file.channel, file.path.clone());
        let path = &path;
        let (step, request) = match attributes.owner {
            Some(owner) => (FileStep::Own, self.own(path, owner)),
            None => (
                FileStep::Settle(SETTING),
                Request::Setstat { path, attributes },
            ),
        };
        self.ask_file(channel, entry, step, request);
    }

    fn small_compared(&mut self, entry: usize, there: &Attributes, found: Found) {
        self.small_is_seen();
        match found {
            _ if self.interrupted => {}
            Found::Same => self.small_is_there(entry, there),
            Found::Other => self.small_joins(entry, there.permissions()),
            Found::Failed(trouble) => self.small_failed(entry, trouble),
        }
    }

    /// The same of a small file.
    pub(super) fn small_is_there(&mut self, entry: usize, there: &Attributes) {
        self.small_leaves(entry);
        let lacks = self.lacks(entry, there);
        self.small.lacks.insert(entry, lacks);
        self.touch_small(entry);
    }

    fn touch_small(&mut self, entry: usize) {
        let lacks = self.small.lacks.get_mut(&entry);
        let Some(attributes) = lacks.and_then(VecDeque::pop_front) else {
            self.small.lacks.remove(&entry);
            return self.done(entry, true);
        };
        let path = &self.path(entry);
        let (step, request) = match attributes.owner {
            Some(owner) => (SmallStep::TouchOwner, self.own(path, owner)),
            None => (SmallStep::Touch, Request::Setstat { path, attributes }),
        };
        self.ask_small(entry, step, request);
    }

    /// An unchanged small file has what it lacked, or not.
    pub(super) fn handle_small_touched(&mut self, entry: usize, refused: Option<Trouble>) {
        match refused {
            None => self.touch_small(entry),
            Some(trouble) => {
                self.small.lacks.remove(&entry);
                self.failed_files.insert(entry);
                self.failed(self.path(entry), trouble);
            }
        }
    }
}
