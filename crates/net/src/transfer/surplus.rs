//! Deleting what is surplus in a host's folder. As where things are written, every folder on the way is opened by its name in
//! the one above it, and no link is followed.

use std::collections::HashSet;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;

use rustix::fs::{AtFlags, Dir, FileType, unlinkat};
use rustix::io::Errno;
use sshoal_transfer::{Fetched, SurplusHere, Trouble, join_path as join};

use super::disk::Stop;
use super::folder::{Folder, split};

/// Deletes it, or only tells it. First all folders are looked through: where a name is missing that was just fetched, or a folder cannot
/// be read, nothing is deleted.
pub(super) fn delete(folder: &Folder, surplus: &SurplusHere, stop: &Stop) -> Fetched {
    let mut deleting = Deleting {
        folder,
        surplus,
        stop,
        needed: HashSet::new(),
        deleted: Vec::new(),
        failed: Vec::new(),
        is_stopped: false,
    };
    let found = deleting.look_through();
    if deleting.failed.is_empty() {
        found
            .into_iter()
            .for_each(|(place, is_folder)| deleting.delete(&place, is_folder));
    } else {
        let nothing = Trouble::NothingDeleted;
        deleting
            .failed
            .push(format!("{}: {nothing}", folder.place(b"").display()));
    }
    Fetched::Deleted {
        deleted: deleting.deleted,
        failed: deleting.failed,
    }
}

struct Deleting<'a> {
    folder: &'a Folder,
    surplus: &'a SurplusHere,
    stop: &'a Stop,
    /// Surplus folders in which something stays.
    needed: HashSet<Vec<u8>>,
    deleted: Vec<Vec<u8>>,
    failed: Vec<String>,
    /// Nobody wants to know any more: that was told.
    is_stopped: bool,
}

/// What is in a folder.
type Names = Vec<(Vec<u8>, FileType)>;

impl Deleting<'_> {
    /// What is surplus in folders that the host has, and whether it is a folder.
    fn look_through(&mut self) -> Vec<(Vec<u8>, bool)> {
        let mut found = Vec::new();
        let mut to_list = self.surplus.scopes().to_vec();
        while let Some(place) = to_list.pop() {
            if self.is_stopped() {
                break;
            }
            let names = match self.list(&place) {
                Ok(Some(names)) => names,
                // Nothing was made that is only told of.
                Ok(None) if self.surplus.only_told => continue,
                Ok(None) => {
                    self.fail(&place, &io::ErrorKind::NotFound.into());
                    continue;
                }
                Err(error) => {
                    self.fail(&place, &error);
                    continue;
                }
            };
            let mut fetched = 0;
            for (name, file_type) in names {
                let inner = join(&place, &name);
                let is_folder = file_type == FileType::Directory;
                if self.surplus.is_fetched(&inner) {
                    fetched += 1;
                    if is_folder {
                        to_list.push(inner);
                    }
                } else if !self.surplus.is_spared(&inner) {
                    found.push((inner, is_folder));
                }
            }
            if fetched < self.surplus.names(&place) && !self.surplus.only_told {
                let missing = Trouble::NamesMissing.to_string();
                self.fail(&place, &io::Error::other(missing));
            }
        }
        found
    }

    /// Files and links as they are met, folders afterwards, the innermost first.
    fn delete(&mut self, place: &[u8], is_folder: bool) {
        if !is_folder {
            return self.delete_one(place, AtFlags::empty());
        }
        let mut to_list = vec![place.to_vec()];
        let mut going = Vec::new();
        while let Some(place) = to_list.pop() {
            going.push(place.clone());
            if self.is_stopped() {
                return;
            }
            let listed = self.lend(&place).and_then(|()| self.list(&place));
            let names = match listed {
                Ok(found) => found.unwrap_or_default(),
                Err(error) => {
                    self.needed.insert(place.clone());
                    self.fail(&place, &error);
                    continue;
                }
            };
            for (name, file_type) in names {
                let inner = join(&place, &name);
                if self.surplus.is_spared(&inner) {
                    self.needed.insert(place.clone());
                } else if file_type == FileType::Directory {
                    to_list.push(inner);
                } else {
                    self.delete_one(&inner, AtFlags::empty());
                }
            }
        }
        for place in going.into_iter().rev() {
            match self.needed.contains(&place) {
                true => self.need_above(&place),
                false => self.delete_one(&place, AtFlags::REMOVEDIR),
            }
        }
    }

    fn delete_one(&mut self, place: &[u8], flags: AtFlags) {
        let (above, name) = split(place);
        if self.is_stopped() {
            return self.need_above(place);
        }
        let opened = self.folder.open_there(above);
        let removed = opened.and_then(|above| match above {
            Some(above) if !self.surplus.only_told => remove(&above, name, flags),
            _ => Ok(()),
        });
        if let Err(error) = removed {
            self.need_above(place);
            return self.fail(place, &error);
        }
        let mut path = self.folder.place(place).into_os_string().into_vec();
        if flags == AtFlags::REMOVEDIR {
            self.folder.lent().forget(place);
            path.push(b'/');
        }
        self.deleted.push(path);
    }

    /// Whether nothing more is done; the first time that is told.
    fn is_stopped(&mut self) -> bool {
        if let Err(error) = self.stop.check()
            && !self.is_stopped
        {
            self.is_stopped = true;
            self.fail(b"", &error);
        }
        self.is_stopped
    }

    /// As where something is put into it.
    fn lend(&self, place: &[u8]) -> io::Result<()> {
        let (above, name) = split(place);
        if !self.surplus.only_told
            && let Some(above) = self.folder.open_there(above)?
        {
            self.folder.lent().lend(&above, name, place);
        }
        Ok(())
    }

    /// A folder and what is in it; `None` if it is not there.
    fn list(&self, place: &[u8]) -> io::Result<Option<Names>> {
        let Some(opened) = self.folder.open_there(place)? else {
            return Ok(None);
        };
        let mut names = Vec::new();
        for entry in Dir::read_from(&opened)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            let file_type = match entry.file_type() {
                FileType::Unknown => {
                    let stat = rustix::fs::statat(&opened, name, AtFlags::SYMLINK_NOFOLLOW)?;
                    FileType::from_raw_mode(stat.st_mode)
                }
                known => known,
            };
            names.push((name.to_vec(), file_type));
        }
        names.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Ok(Some(names))
    }

    /// The folder that it is in stays.
    fn need_above(&mut self, place: &[u8]) {
        let (above, _) = split(place);
        self.needed.insert(above.to_vec());
    }

    fn fail(&mut self, place: &[u8], error: &io::Error) {
        self.failed.push(self.folder.told(place, error));
    }
}

fn remove(above: &OwnedFd, name: &[u8], flags: AtFlags) -> io::Result<()> {
    match unlinkat(above, name, flags) {
        // Somebody else was faster.
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;

    use sshoal_transfer::{Excludes, PartTag};

    use super::super::folder::PartNames;
    use super::*;

    /// A host's folder with these files in it, of which the host has some.
    fn tree(path: &Path, files: &[&str]) -> Folder {
        for file in files {
            let file = path.join("host").join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "x").unwrap();
        }
        Folder::new(path.join("host"), PartNames(PartTag(1)), None)
    }

    fn surplus(scopes: &[&str], fetched: &[&str], only_told: bool) -> SurplusHere {
        let excludes = Excludes::new([b"*.log".to_vec()]);
        let mut surplus = SurplusHere::new(excludes, only_told);
        for scope in scopes {
            surplus.note_folder(scope.as_bytes().to_vec());
        }
        for place in fetched {
            surplus.note(place.as_bytes());
        }
        surplus
    }

    fn deleted(folder: &Folder, surplus: &SurplusHere) -> (Vec<String>, Vec<String>) {
        let Fetched::Deleted { deleted, failed } = delete(folder, surplus, &Stop::default()) else {
            panic!("what was asked for");
        };
        let host = [folder.place(b"").as_os_str().as_bytes(), &b"/"[..]].concat();
        let below = |path: Vec<u8>| path.strip_prefix(host.as_slice()).unwrap().to_vec();
        let deleted = deleted.into_iter().map(below);
        let text = |path| String::from_utf8(path).unwrap();
        let mut deleted: Vec<String> = deleted.map(text).collect();
        deleted.sort();
        (deleted, failed)
    }

    #[test]
    fn folders_go_with_all_that_is_in_them_unless_something_stays() {
        let dir = tempfile::tempdir().unwrap();
        let files = [
            "site/x",
            "site/old",
            "site/gone/deep/old",
            "site/stays/deep/a.log",
            "site/stays/old",
            "beside",
        ];
        let folder = tree(dir.path(), &files);
        let told = surplus(&["site"], &["site", "site/x"], true);
        let gone = [
            "site/gone/",
            "site/gone/deep/",
            "site/gone/deep/old",
            "site/old",
            "site/stays/old",
        ];
        let gone = gone.map(str::to_owned).to_vec();
        assert_eq!(deleted(&folder, &told), (gone.clone(), vec![]));
        assert!(
            files
                .iter()
                .all(|it| dir.path().join("host").join(it).exists())
        );
        let done = surplus(&["site"], &["site", "site/x"], false);
        assert_eq!(deleted(&folder, &done), (gone, vec![]));
        let host = dir.path().join("host");
        assert!(host.join("beside").exists() && host.join("site/x").exists());
        assert!(host.join("site/stays/deep/a.log").exists());
        assert!(!host.join("site/gone").exists() && !host.join("site/stays/old").exists());
        assert_eq!(deleted(&folder, &done), (vec![], vec![]));
    }

    #[test]
    fn links_are_deleted_and_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("mine"), "x").unwrap();
        let folder = tree(dir.path(), &["x"]);
        let host = dir.path().join("host");
        symlink(outside.path(), host.join("surplus")).unwrap();
        // In the place of a folder that the host has.
        symlink(outside.path(), host.join("folder")).unwrap();
        let done = surplus(&[""], &["", "x", "folder", "folder/y"], false);
        assert_eq!(
            deleted(&folder, &done),
            (vec!["surplus".to_owned()], vec![])
        );
        // Nor where one is what is looked through.
        let linked = surplus(&["folder"], &["folder"], false);
        let (gone, failed) = deleted(&folder, &linked);
        assert_eq!((gone.len(), failed.len()), (0, 2));
        assert!(
            failed[0].contains("is there, and is no folder"),
            "{failed:?}"
        );
        assert!(outside.path().join("mine").exists());
    }

    #[test]
    fn closed_folders_go_too() {
        let dir = tempfile::tempdir().unwrap();
        let folder = tree(dir.path(), &["gone/deep/old"]);
        let closed = dir.path().join("host/gone/deep");
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o500)).unwrap();
        let done = surplus(&[""], &[""], false);
        let (gone, failed) = deleted(&folder, &done);
        assert_eq!((gone.len(), failed), (3, vec![]));
        folder.lent().give_back().unwrap();
        assert!(!dir.path().join("host/gone").exists());
    }

    #[test]
    fn where_a_fetched_name_is_missing_nothing_is_deleted() {
        let dir = tempfile::tempdir().unwrap();
        let folder = tree(dir.path(), &["a/x", "a/old", "b/y", "old"]);
        // As a file system does that folds upper and lower case, or leaves dots out.
        let done = surplus(&[""], &["", "a", "a/x", "b", "b/Y"], false);
        let (gone, failed) = deleted(&folder, &done);
        assert_eq!(gone, Vec::<String>::new());
        assert!(
            failed[0].contains("names that were copied into it are missing"),
            "{failed:?}"
        );
        assert!(failed[1].contains("nothing was deleted"), "{failed:?}");
        assert!(dir.path().join("host/old").exists());
    }

    #[test]
    fn nothing_here_is_nothing_to_delete() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::new(dir.path().join("host"), PartNames(PartTag(1)), None);
        let told = surplus(&["site"], &["site"], true);
        assert_eq!(deleted(&folder, &told), (vec![], vec![]));
        assert!(!dir.path().join("host").exists());
    }
}
