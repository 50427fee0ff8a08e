//! What is to be sent: a list of all that the user named, with what is in folders.

use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use sshoal_transfer::{Entry, Excludes, Kind, LeftOut, Trouble, UploadRoot};

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
    /// What is in folders and cannot be sent.
    pub left_out: Vec<LeftOut>,
}

/// Why nothing can be sent.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// Something that the user has named cannot be read.
    #[error("cannot read {}: {error}; nothing was sent", path.display())]
    Unreadable {
        /// What.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A folder without `-r`.
    #[error("{} is a folder; add -r to send it with all that is in it", .0.display())]
    Folder(PathBuf),
    /// The user has named a character device, a socket or a named pipe.
    #[error("{} is neither a file nor a folder nor a symbolic link; nothing was sent", .0.display())]
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

/// Lists what is to be sent. Links that the user names are followed, those in folders are not. What is in a folder and cannot be
/// read, or is no file, folder or symbolic link, is left out; a folder that cannot be read is sent without what is in it.
///
/// # Errors
///
/// Something that the user has named cannot be read or sent: then nothing is, on any host.
pub fn scan(paths: &[PathBuf], recursive: bool, excludes: &Excludes) -> Result<Scan, ScanError> {
    let mut walk = Walk {
        scan: Scan {
            roots: Vec::new(),
            entries: Vec::new(),
            paths: Vec::new(),
            left_out: Vec::new(),
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
        let kind = match metadata.file_type() {
            it if it.is_block_device() => {
                let size = File::open(&real).and_then(|file| device::size(&file, &metadata));
                let size = size.map_err(unreadable)?;
                Some(Kind::Device { size })
            }
            _ => self.kind(&real, &metadata).map_err(unreadable)?,
        };
        let Some(kind) = kind else {
            return Err(ScanError::Special(path.to_owned()));
        };
        let root = self.scan.roots.len();
        self.scan.roots.push(UploadRoot {
            name,
            is_folder: metadata.is_dir(),
        });
        let is_folder = kind == Kind::Folder;
        let entry = self.push(root, Vec::new(), None, real, &metadata, kind);
        match is_folder {
            true => self.add_contents(root, entry).map_err(unreadable),
            false => Ok(()),
        }
    }

    /// Adds what is in a folder that the user has named, and in those in it.
    ///
    /// # Errors
    ///
    /// It cannot be read itself.
    fn add_contents(&mut self, root: usize, folder: usize) -> io::Result<()> {
        // Folders that are still to be read, the next one last.
        let mut folders = self.read_folder(root, folder)?;
        while let Some(folder) = folders.pop() {
            match self.read_folder(root, folder) {
                Ok(found) => folders.extend(found),
                Err(error) => self.leave_out(self.scan.paths[folder].clone(), &error),
            }
        }
        Ok(())
    }

    /// Adds what is in a folder; returns the folders in it.
    fn read_folder(&mut self, root: usize, folder: usize) -> io::Result<Vec<usize>> {
        let path = self.scan.paths[folder].clone();
        let list = fs::read_dir(&path)?;
        let names: io::Result<Vec<_>> = list.map(|entry| Ok(entry?.file_name())).collect();
        let mut names = names?;
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
            let found = fs::symlink_metadata(&path)
                .and_then(|metadata| Ok((self.kind(&path, &metadata)?, metadata)));
            match found {
                Ok((Some(kind), metadata)) => {
                    let is_folder = kind == Kind::Folder;
                    let entry = self.push(root, below, Some(folder), path, &metadata, kind);
                    folders.extend(is_folder.then_some(entry));
                }
                Ok((None, _)) => self.scan.left_out.push(LeftOut {
                    path: path.into_os_string().into_vec(),
                    trouble: Trouble::Special,
                }),
                // It was there a moment ago.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => self.leave_out(path, &error),
            }
        }
        folders.reverse();
        Ok(folders)
    }

    fn leave_out(&mut self, path: PathBuf, error: &io::Error) {
        self.scan.left_out.push(LeftOut {
            path: path.into_os_string().into_vec(),
            trouble: Trouble::Local {
                doing: "reading",
                error: error.to_string(),
            },
        });
    }

    /// What the next entry is; `None` for what is neither a file nor a folder nor a symbolic link.
    fn kind(&mut self, path: &Path, metadata: &Metadata) -> io::Result<Option<Kind>> {
        Ok(match metadata.file_type() {
            it if it.is_dir() => Some(Kind::Folder),
            it if it.is_file() => Some(self.file(self.scan.entries.len(), metadata)),
            it if it.is_symlink() => {
                let target = fs::read_link(path)?.into_os_string().into_vec();
                Some(Kind::Link { target })
            }
            _ => None,
        })
    }

    /// Adds one thing; returns its entry.
    fn push(
        &mut self,
        root: usize,
        below: Vec<u8>,
        folder: Option<usize>,
        path: PathBuf,
        metadata: &Metadata,
        kind: Kind,
    ) -> usize {
        let entry = self.scan.entries.len();
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
        entry
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

    /// Names of a scan's entries.
    fn names(scan: &Scan) -> Vec<&[u8]> {
        let entries = scan.entries.iter();
        entries.map(|entry| entry.path.as_slice()).collect()
    }

    #[test]
    fn what_is_no_file_folder_or_link_is_left_out_and_the_rest_is_listed() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("tree");
        fs::create_dir_all(tree.join("b")).unwrap();
        let (pipe, socket) = (tree.join("a"), tree.join("b/c"));
        let mode = rustix::fs::Mode::RUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
        fs::write(tree.join("b/d"), "d").unwrap();
        fs::write(tree.join("e"), "e").unwrap();
        let found = scan(&[tree], true, &Excludes::default()).unwrap();
        assert_eq!(names(&found), [&b""[..], b"b", b"e", b"b/d"]);
        let left_out = found.left_out.iter().map(|it| (&it.path[..], &it.trouble));
        let special = &Trouble::Special;
        let expected = [&pipe, &socket].map(|path| (path.as_os_str().as_bytes(), special));
        assert_eq!(left_out.collect::<Vec<_>>(), expected);
        // Named itself, it is a mistake.
        let named = scan(std::slice::from_ref(&pipe), true, &Excludes::default());
        assert!(matches!(named, Err(ScanError::Special(path)) if path == pipe));
    }

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
