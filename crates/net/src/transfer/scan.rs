//! What is to be sent: a list of all that the user named, with what is in folders.

use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use sshoal_transfer::{Entry, Excludes, Kind, UploadRoot};

use super::device;
use super::source::seconds;

/// What was found.
#[derive(Debug)]
pub struct Scan {
    /// What the user named.
    pub roots: Vec<UploadRoot>,
    /// Everything, each folder before what is in it.
    pub entries: Vec<Entry>,
    /// Where each entry is.
    pub paths: Vec<PathBuf>,
}

/// Why nothing can be sent.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// Something cannot be read.
    #[error("cannot read {}: {error}; nothing was sent (--exclude leaves things out)", path.display())]
    Unreadable {
        /// What.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A folder without `-r`.
    #[error("{} is a folder; add -r to send it with all that is in it", .0.display())]
    Folder(PathBuf),
    /// A device (but a block device that is named itself), a socket or a named pipe.
    #[error("{} is neither a file nor a folder nor a symbolic link; leave it out by --exclude", .0.display())]
    Special(PathBuf),
    /// Two sources of one name.
    #[error("{} and {} have the same name, and one would replace the other", first.display(), second.display())]
    SameName {
        /// The one.
        first: PathBuf,
        /// The other.
        second: PathBuf,
    },
}

/// Lists what is to be sent. Links that the user names are followed, those in folders are not.
///
/// # Errors
///
/// Something cannot be read or sent: then nothing is, on any host.
pub fn scan(paths: &[PathBuf], recursive: bool, excludes: &Excludes) -> Result<Scan, ScanError> {
    let mut walk = Walk {
        scan: Scan {
            roots: Vec::new(),
            entries: Vec::new(),
            paths: Vec::new(),
        },
        excludes,
        names: HashMap::new(),
    };
    for path in paths {
        walk.add_root(path, recursive)?;
    }
    refuse_two_in_one_place(&walk.scan)?;
    Ok(walk.scan)
}

/// Roots without a name go into the same folder, where what they hold may have the same names. Folders become one; of two
/// files neither would be whole, or the last one would be there, as chance has it.
fn refuse_two_in_one_place(scan: &Scan) -> Result<(), ScanError> {
    let is_nameless = |root: &&UploadRoot| root.name.is_empty();
    if scan.roots.len() < 2 || scan.roots.iter().find(is_nameless).is_none() {
        return Ok(());
    }
    let mut places: HashMap<Vec<u8>, usize> = HashMap::new();
    for (number, entry) in scan.entries.iter().enumerate() {
        let name = scan.roots[entry.root].name.as_slice();
        let parts = [name, entry.path.as_slice()];
        let place = parts.into_iter().filter(|part| !part.is_empty());
        let place = place.collect::<Vec<_>>().join(&b'/');
        let Some(before) = places.insert(place, number) else {
            continue;
        };
        let both = [&scan.entries[before].kind, &entry.kind];
        if !both.iter().all(|kind| matches!(kind, Kind::Folder)) {
            return Err(ScanError::SameName {
                first: scan.paths[before].clone(),
                second: scan.paths[number].clone(),
            });
        }
    }
    Ok(())
}

struct Walk<'a> {
    scan: Scan,
    excludes: &'a Excludes,
    /// Files that have several names: device and inode, and their first entry.
    names: HashMap<(u64, u64), usize>,
}

impl Walk<'_> {
    fn add_root(&mut self, path: &Path, recursive: bool) -> Result<(), ScanError> {
        let unreadable = |error| ScanError::Unreadable {
            path: path.to_owned(),
            error,
        };
        let real = fs::canonicalize(path).map_err(unreadable)?;
        let metadata = fs::metadata(&real).map_err(unreadable)?;
        if metadata.is_dir() && !recursive {
            return Err(ScanError::Folder(path.to_owned()));
        }
        let octets = path.as_os_str().as_bytes();
        let has_name = !octets.ends_with(b"/") && !octets.ends_with(b"/.") && octets != b".";
        let name = match path.file_name() {
            Some(name) if has_name || !metadata.is_dir() => name.as_bytes().to_vec(),
            // `..` and `/`: what is in them.
            _ => Vec::new(),
        };
        let same = self.scan.roots.iter().position(|root| root.name == name);
        if let Some(first) = same.filter(|_| !name.is_empty()) {
            let of_first = |entry: &Entry| entry.root == first && entry.path.is_empty();
            let first = self.scan.entries.iter().position(of_first);
            return Err(ScanError::SameName {
                first: first.map_or_else(PathBuf::new, |first| self.scan.paths[first].clone()),
                second: path.to_owned(),
            });
        }
        let root = self.scan.roots.len();
        self.scan.roots.push(UploadRoot {
            name,
            is_folder: metadata.is_dir(),
        });
        self.add(root, Vec::new(), None, real, &metadata)
    }

    /// Adds one thing and, if it is a folder, what is in it.
    fn add(
        &mut self,
        root: usize,
        below: Vec<u8>,
        folder: Option<usize>,
        path: PathBuf,
        metadata: &Metadata,
    ) -> Result<(), ScanError> {
        // Folders that are still to be read, the next one last.
        let mut folders = Vec::new();
        folders.extend(self.push(root, below, folder, path, metadata)?);
        while let Some(folder) = folders.pop() {
            folders.extend(self.read_folder(root, folder)?);
        }
        Ok(())
    }

    /// Adds what is in a folder; returns the folders in it.
    fn read_folder(&mut self, root: usize, folder: usize) -> Result<Vec<usize>, ScanError> {
        let path = self.scan.paths[folder].clone();
        let unreadable = |path: &Path, error| ScanError::Unreadable {
            path: path.to_owned(),
            error,
        };
        let list = fs::read_dir(&path).map_err(|error| unreadable(&path, error))?;
        let names: io::Result<Vec<_>> = list.map(|entry| Ok(entry?.file_name())).collect();
        let mut names = names.map_err(|error| unreadable(&path, error))?;
        names.sort();
        let mut folders = Vec::new();
        for name in names {
            let above = &self.scan.entries[folder].path;
            let below = match above.as_slice() {
                b"" => name.as_bytes().to_vec(),
                above => [above, b"/", name.as_bytes()].concat(),
            };
            if self.excludes.covers(&below) {
                continue;
            }
            let path = path.join(&name);
            match fs::symlink_metadata(&path) {
                Ok(metadata) => {
                    folders.extend(self.push(root, below, Some(folder), path, &metadata)?);
                }
                // It was there a moment ago.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(unreadable(&path, error)),
            }
        }
        folders.reverse();
        Ok(folders)
    }

    /// Adds one thing; returns its entry if it is a folder.
    fn push(
        &mut self,
        root: usize,
        below: Vec<u8>,
        folder: Option<usize>,
        path: PathBuf,
        metadata: &Metadata,
    ) -> Result<Option<usize>, ScanError> {
        let entry = self.scan.entries.len();
        let file_type = metadata.file_type();
        let kind = if file_type.is_dir() {
            Kind::Folder
        } else if file_type.is_block_device() && folder.is_none() {
            let size = fs::File::open(&path).and_then(|file| device::size(&file, metadata));
            let size = size.map_err(|error| ScanError::Unreadable {
                path: path.clone(),
                error,
            })?;
            Kind::Device { size }
        } else if file_type.is_file() {
            self.file(entry, metadata)
        } else if file_type.is_symlink() {
            let target = fs::read_link(&path).map_err(|error| ScanError::Unreadable {
                path: path.clone(),
                error,
            })?;
            Kind::Link {
                target: target.into_os_string().into_vec(),
            }
        } else {
            return Err(ScanError::Special(path));
        };
        let is_folder = kind == Kind::Folder;
        self.scan.entries.push(Entry {
            root,
            path: below,
            folder,
            kind,
            mode: metadata.mode() & 0o7777,
            owner: (metadata.uid(), metadata.gid()),
            times: (seconds(metadata.atime()), seconds(metadata.mtime())),
        });
        self.scan.paths.push(path);
        Ok(is_folder.then_some(entry))
    }

    /// A file, or another name of one that is in the list.
    fn file(&mut self, entry: usize, metadata: &Metadata) -> Kind {
        let size = metadata.size();
        if metadata.nlink() > 1 {
            let first = *self
                .names
                .entry((metadata.dev(), metadata.ino()))
                .or_insert(entry);
            if first != entry {
                return Kind::HardLink { to: first, size };
            }
        }
        Kind::File { size }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn what_would_be_in_one_place_is_refused_unless_both_are_folders() {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["one/both", "two/both", "three"] {
            fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        for file in ["one/both/a", "two/both/b", "three/both"] {
            fs::write(dir.path().join(file), file).unwrap();
        }
        let scanned = |names: &[&str]| {
            let paths: Vec<PathBuf> = names.iter().map(|name| dir.path().join(name)).collect();
            scan(&paths, true, &Excludes::default())
        };
        assert_eq!(scanned(&["one/", "two/"]).unwrap().entries.len(), 6);
        assert!(scanned(&["one", "three"]).is_ok());
        for names in [["one/", "three/"], ["three/", "one/both"]] {
            let refused = scanned(&names).unwrap_err();
            assert!(
                matches!(refused, ScanError::SameName { .. }),
                "{names:?}: {refused}"
            );
        }
    }
}
