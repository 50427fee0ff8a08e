//! Deleting what is surplus in a host's folder. As where things are written, every folder on the way is opened by its name in
//! the one above it, and no link is followed.

use std::collections::HashSet;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{AtFlags, Dir, FileType, unlinkat};
use rustix::io::Errno;
use sshoal_transfer::{Fetched, SurplusHere};

use super::disk::Stop;
use super::folder::{Folder, join, split};

/// Deletes it, or only tells it.
pub(super) fn delete(folder: &Folder, surplus: &SurplusHere, stop: &Stop) -> Fetched {
    let mut deleting = Deleting {
        folder,
        surplus,
        stop,
        needed: HashSet::new(),
        deleted: Vec::new(),
        failed: Vec::new(),
    };
    for scope in surplus.scopes() {
        deleting.delete_below(scope);
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
}

/// What is in a folder.
type Names = Vec<(Vec<u8>, FileType)>;

impl Deleting<'_> {
    /// Files and links as they are met, folders afterwards, the innermost first.
    fn delete_below(&mut self, scope: &[u8]) {
        let mut to_list = vec![(scope.to_vec(), false)];
        let mut going = Vec::new();
        while let Some((place, goes)) = to_list.pop() {
            if let Err(error) = self.stop.check() {
                return self.fail(&place, false, &error);
            }
            let (opened, names) = match self.list(&place, goes) {
                Ok(Some(found)) => found,
                Ok(None) => continue,
                Err(error) => {
                    self.fail(&place, goes, &error);
                    continue;
                }
            };
            if goes {
                going.push(place.clone());
            }
            for (name, file_type) in names {
                let inner = join(&place, &name);
                let is_folder = file_type == FileType::Directory;
                match self.surplus.is_fetched(&inner) {
                    true if is_folder && !goes => to_list.push((inner, false)),
                    true => self.need(&place, goes),
                    false if self.surplus.is_spared(&inner) => self.need(&place, goes),
                    false if is_folder => to_list.push((inner, true)),
                    false => match self.remove(&opened, &name, AtFlags::empty()) {
                        Ok(()) => self.tell(&inner, ""),
                        Err(error) => {
                            self.need(&place, goes);
                            self.fail(&inner, false, &error);
                        }
                    },
                }
            }
        }
        for place in going.into_iter().rev() {
            if self.needed.contains(&place) {
                self.need_above(&place);
                continue;
            }
            let (above, name) = split(&place);
            let opened = self.folder.open_there(above);
            let removed = opened.and_then(|it| match it {
                Some(above) => self.remove(&above, name, AtFlags::REMOVEDIR),
                None => Ok(()),
            });
            match removed {
                Ok(()) => {
                    self.folder.lent().forget(&place);
                    self.tell(&place, "/");
                }
                Err(error) => {
                    self.need_above(&place);
                    self.fail(&place, false, &error);
                }
            }
        }
    }

    /// A folder and what is in it; `None` if it is not there.
    fn list(&self, place: &[u8], goes: bool) -> io::Result<Option<(OwnedFd, Names)>> {
        // As where something is put into it.
        if goes && !self.surplus.only_told {
            let (above, name) = split(place);
            if let Some(above) = self.folder.open_there(above)? {
                self.folder.lent().lend(&above, name, place);
            }
        }
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
        Ok(Some((opened, names)))
    }

    fn remove(&self, above: &OwnedFd, name: &[u8], flags: AtFlags) -> io::Result<()> {
        if self.surplus.only_told {
            return Ok(());
        }
        match unlinkat(above, name, flags) {
            // Somebody else was faster.
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Something stays in this folder.
    fn need(&mut self, place: &[u8], goes: bool) {
        if goes {
            self.needed.insert(place.to_vec());
        }
    }

    /// So the one above stays, too.
    fn need_above(&mut self, place: &[u8]) {
        let (above, _) = split(place);
        self.needed.insert(above.to_vec());
    }

    fn tell(&mut self, place: &[u8], slash: &str) {
        let path = self.folder.place(place).into_os_string();
        let path = [path.as_bytes(), slash.as_bytes()].concat();
        self.deleted.push(path);
    }

    /// `stays`: the one above has this folder still.
    fn fail(&mut self, place: &[u8], stays: bool, error: &io::Error) {
        if stays {
            self.need_above(place);
        }
        self.failed.push(self.folder.told(place, error));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs;
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
        assert_eq!((gone.len(), failed.len()), (0, 1));
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
    fn nothing_here_is_nothing_to_delete() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::new(dir.path().join("host"), PartNames(PartTag(1)), None);
        let told = surplus(&["site"], &["site"], true);
        assert_eq!(deleted(&folder, &told), (vec![], vec![]));
        assert!(!dir.path().join("host").exists());
    }
}
