//! What is there, and what becomes of it.

use super::{DENIED, FakeServer, MODIFIED, Node, OK};
use crate::sftp::Attributes;

impl FakeServer {
    /// Gives a file another name.
    pub(super) fn link(&mut self, old: &[u8], new: &[u8]) {
        let next = self.inodes.values().max().map_or(0, |last| last + 1);
        let inode = *self.inodes.entry(old.to_vec()).or_insert(next);
        self.inodes.insert(new.to_vec(), inode);
    }

    fn are_one_file(&self, one: &[u8], other: &[u8]) -> bool {
        let (one, other) = (self.inodes.get(one), self.inodes.get(other));
        one.is_some() && one == other
    }

    pub(super) fn set_attributes(&mut self, path: Vec<u8>, set: Attributes) -> u32 {
        self.set.push((path.clone(), set));
        if set.owner.is_some() && self.refuses_owners {
            return DENIED;
        }
        if let (Some(size), Some(Node::File(contents))) = (set.size, self.nodes.get_mut(&path)) {
            contents.resize(size as usize, 0);
        }
        if let Some(owner) = set.owner {
            self.owners.insert(path.clone(), owner);
        }
        if let Some((accessed, _)) = set.times.filter(|_| !self.forgets_access) {
            self.accessed.insert(path.clone(), accessed);
        }
        if set.mode.is_some() || set.times.is_some() {
            let before = self.modes.get(&path).copied().unwrap_or((0, MODIFIED));
            let mode = set.mode.unwrap_or(before.0);
            let modified = set.modified().unwrap_or(before.1);
            self.modes.insert(path, (mode, modified));
        }
        OK
    }

    pub(super) fn rename(&mut self, old: &[u8], new: &[u8]) -> bool {
        if !self.may_change(old) || !self.may_change(new) {
            return false;
        }
        // rename(2) does nothing where both are names of one file.
        if self.are_one_file(old, new) {
            return true;
        }
        let inode = self.inodes.remove(old);
        self.inodes.remove(new);
        self.inodes.extend(inode.map(|inode| (new.to_vec(), inode)));
        let Some(node) = self.nodes.remove(old) else {
            return false;
        };
        let owner = self.owners.remove(old);
        self.owners.remove(new);
        self.owners.extend(owner.map(|owner| (new.to_vec(), owner)));
        let accessed = self.accessed.remove(old);
        self.accessed.remove(new);
        let accessed = accessed.map(|accessed| (new.to_vec(), accessed));
        self.accessed.extend(accessed);
        let mode = self.modes.remove(old);
        self.modes.remove(new);
        self.modes.extend(mode.map(|mode| (new.to_vec(), mode)));
        self.nodes.insert(new.to_vec(), node);
        true
    }

    pub(crate) fn attributes(&self, path: &[u8]) -> Option<Attributes> {
        let folder = Node::Folder;
        let node = match path {
            b"." | b"/" => &folder,
            path => self.nodes.get(path)?,
        };
        let set = self.modes.get(path);
        let (file_type, size) = match node {
            Node::Folder => (0o040_000, 0),
            Node::File(contents) => (0o100_000, contents.len() as u64),
            Node::Link(target) => (0o120_000, target.len() as u64),
            Node::Device(_) => (0o060_000, 0),
        };
        let mode = match (set.map_or(0, |(mode, _)| *mode & 0o7777), node) {
            (0, Node::Folder) => 0o755,
            (0, _) => 0o644,
            (mode, _) => mode,
        };
        let modified = set.map_or(MODIFIED, |(_, modified)| *modified);
        Some(Attributes {
            size: Some(size),
            mode: Some(file_type | mode),
            times: Some((
                self.accessed.get(path).copied().unwrap_or(modified),
                modified,
            )),
            owner: self.owners.get(path).copied().or(self.account),
        })
    }
}
