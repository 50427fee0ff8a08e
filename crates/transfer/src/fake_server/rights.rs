//! What modes let the account do, where they bind it.

use super::{DENIED, FAILURE, FakeServer, MODIFIED, Node, OK};

/// The owner's rights (stat(2)).
const READ: u32 = 0o400;
const WRITE: u32 = 0o200;
const SEARCH: u32 = 0o100;

impl FakeServer {
    fn has(&self, path: &[u8], rights: u32) -> bool {
        let mode = self.attributes(path).and_then(|it| it.mode);
        mode.is_none_or(|mode| mode & rights == rights)
    }

    /// Whether all folders above it can be searched.
    pub(super) fn reaches(&self, path: &[u8]) -> bool {
        let slashes = (1..path.len()).filter(|&at| path[at] == b'/');
        let mut above = slashes.map(|at| &path[..at]);
        !self.modes_bind || above.all(|folder| self.has(folder, SEARCH))
    }

    /// Whether a name can be made, and taken away, in the folder that it is in.
    pub(super) fn may_change(&self, path: &[u8]) -> bool {
        let slash = path.iter().rposition(|&octet| octet == b'/');
        let folder = &path[..slash.unwrap_or(0)];
        !self.modes_bind || self.reaches(path) && self.has(folder, WRITE | SEARCH)
    }

    /// Whether a file can be opened with these flags, as far as rights go.
    pub(super) fn may_open(&self, path: &[u8], flags: u32) -> bool {
        let is_there = self.nodes.contains_key(path);
        let reads = if flags & 1 != 0 { READ } else { 0 };
        let writes = if flags & 2 != 0 { WRITE } else { 0 };
        match is_there {
            _ if !self.modes_bind => true,
            true => self.reaches(path) && (flags & 0x20 != 0 || self.has(path, reads | writes)),
            false => self.may_change(path),
        }
    }

    /// Whether a program that runs there can read it.
    pub(crate) fn may_read(&self, path: &[u8]) -> bool {
        !self.modes_bind || self.reaches(path) && self.has(path, READ)
    }

    pub(super) fn note_mode(&mut self, path: &[u8], mode: Option<u32>) {
        if let Some(mode) = mode.filter(|_| self.modes_bind) {
            self.modes.insert(path.to_vec(), (mode, MODIFIED));
        }
    }

    pub(super) fn make_folder(&mut self, path: Vec<u8>, mode: Option<u32>) -> u32 {
        if self.nodes.contains_key(&path) && self.reaches(&path) {
            return FAILURE;
        }
        if !self.may_change(&path) {
            return DENIED;
        }
        self.note_mode(&path, mode);
        self.nodes.insert(path, Node::Folder);
        OK
    }
}
