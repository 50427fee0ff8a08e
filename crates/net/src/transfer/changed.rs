//! Folders of a host's that something was put into: they are brought to the disk when all is over.

use std::collections::HashSet;
use std::io;

use rustix::fs::{fsync, syncfs};

use super::folder::Folder;

/// Octets of paths that are remembered. Beyond, the whole file system is brought to the disk in place of each folder.
const MOST: usize = 16 * 1024 * 1024;
/// What a path takes beside its octets.
const PATH: usize = 64;

/// Which folders.
#[derive(Debug, Default)]
pub(super) struct Changed {
    paths: HashSet<Vec<u8>>,
    octets: usize,
    are_many: bool,
}

impl Changed {
    /// Something is put into this folder.
    pub(super) fn insert(&mut self, path: Vec<u8>) {
        if self.are_many || self.paths.contains(&path) {
            return;
        }
        self.octets += path.len() + PATH;
        self.paths.insert(path);
        if self.octets > MOST {
            self.are_many = true;
            (self.paths, self.octets) = (HashSet::new(), 0);
        }
    }

    /// This folder is brought to the disk by itself, and nothing is put into it any more.
    pub(super) fn remove(&mut self, path: &[u8]) {
        if self.paths.remove(path) {
            self.octets -= path.len() + PATH;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.paths.is_empty() && !self.are_many
    }

    /// Brings them to the disk.
    pub(super) fn sync(&self, folder: &Folder) -> io::Result<()> {
        let sync = |path: &[u8]| -> io::Result<()> {
            let opened = folder.open(path)?;
            match self.are_many {
                true => Ok(syncfs(opened)?),
                false => Ok(fsync(opened)?),
            }
        };
        let told =
            |path: &[u8]| sync(path).map_err(|error| io::Error::other(folder.told(path, &error)));
        match self.are_many {
            true => told(b""),
            false => self.paths.iter().try_for_each(|path| told(path)),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use sshoal_transfer::PartTag;

    use super::super::folder::PartNames;
    use super::*;

    #[test]
    fn many_folders_are_not_remembered_one_by_one() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::new(dir.path().join("host"), PartNames(PartTag(1)), None);
        let mut changed = Changed::default();
        assert!(changed.is_empty());
        changed.insert(b"a".to_vec());
        assert!(changed.sync(&folder).is_err(), "there is none of this name");
        changed.remove(b"a");
        changed.remove(b"a");
        assert!(changed.is_empty());
        for number in 0..200_000 {
            changed.insert(format!("{number:040}").into_bytes());
            assert!(changed.octets <= MOST);
        }
        assert!(changed.paths.is_empty() && !changed.is_empty());
        changed.sync(&folder).unwrap();
    }
}
