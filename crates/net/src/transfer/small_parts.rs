//! Small files of a download, many in one job: looked for, written into their parts, put in place.

use std::io::{self, Write};
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, fchmod, fstat, fsync, ftruncate, renameat, unlinkat};
use sshoal_transfer::{FetchedSmall, SmallNeed, SmallPart};

use super::changed::Changed;
use super::disk::Jobs;
use super::engine::Answer;
use super::folder::{
    Folder, Identity, Kept, LEAST_HOLE, There, adjust_at, create, expect, keep, split, there,
};
use super::performing::PANICKED;

/// A folder in a host's, open for as long as files in it follow each other.
struct Opened<'a> {
    folder: &'a Folder,
    last: Option<(Vec<u8>, OwnedFd)>,
}

impl<'a> Opened<'a> {
    fn new(folder: &'a Folder) -> Opened<'a> {
        Opened { folder, last: None }
    }

    /// The folder that `path` is in, and its name there.
    fn above<'p>(&mut self, path: &'p [u8]) -> io::Result<(&OwnedFd, &'p [u8])> {
        let (above, name) = split(path);
        let opened = match self.last.take().filter(|(path, _)| path == above) {
            Some(last) => last,
            None => (above.to_vec(), self.folder.open(above)?),
        };
        let (_, folder) = self.last.insert(opened);
        Ok((folder, name))
    }
}

/// Has done what is needed; `changed`: folders that something is put into.
pub(super) fn perform_small(
    need: SmallNeed,
    folder: &Folder,
    changed: &mut Changed,
    jobs: &Jobs<Answer>,
) {
    let folder = folder.clone();
    let panicked = || Err(PANICKED.to_owned());
    match need {
        SmallNeed::Look { id, files } => {
            let answer = move |seen| Answer::FetchedSmall(FetchedSmall::Seen { id, seen });
            let failed = files.iter().map(|_| Err(PANICKED.to_owned())).collect();
            jobs.perform(answer(failed), move || {
                let mut opened = Opened::new(&folder);
                let seen = files.iter().map(|it| {
                    let mut look = || -> io::Result<bool> {
                        let (above, name) = opened.above(&it.path)?;
                        let there = there(above, name, Some(it.like))?;
                        let is_there = matches!(there, There::Unchanged);
                        if is_there {
                            adjust_at(above, name, it.owner, it.mode)?;
                        }
                        Ok(is_there)
                    };
                    look().map_err(|error| folder.told(&it.path, &error))
                });
                answer(seen.collect())
            });
        }
        SmallNeed::Store { files } => {
            let answer = |stored| Answer::FetchedSmall(FetchedSmall::Stored(stored));
            let failed = files.iter().map(|part| (part.number, panicked()));
            jobs.perform(answer(failed.collect()), move || {
                let mut opened = Opened::new(&folder);
                let stored = files.iter().map(|part| {
                    let stored = store(&mut opened, part);
                    let told = |error| folder.told(&part.path, &error);
                    (part.number, stored.map_err(told))
                });
                answer(stored.collect())
            });
        }
        SmallNeed::Place { files } => {
            let paths = files.iter().map(|(_, path)| split(path).0.to_vec());
            paths.for_each(|path| changed.insert(path));
            let answer = |placed| Answer::FetchedSmall(FetchedSmall::Placed(placed));
            let failed = files.iter().map(|(id, _)| (*id, panicked()));
            jobs.perform(answer(failed.collect()), move || {
                let mut opened = Opened::new(&folder);
                let placed = files.iter().map(|(id, path)| {
                    let placed = place(&mut opened, path);
                    (*id, placed.map_err(|error| folder.told(path, &error)))
                });
                answer(placed.collect())
            });
        }
        SmallNeed::Clear { files } => {
            let ids = || files.iter().map(|(id, _)| *id).collect();
            let answer = |ids| Answer::FetchedSmall(FetchedSmall::Cleared(ids));
            jobs.perform(answer(ids()), {
                let cleared = ids();
                move || {
                    discard(&folder, files.iter().map(|(_, path)| path));
                    answer(cleared)
                }
            });
        }
        SmallNeed::Discard { paths } => jobs.perform(Answer::Discarded, move || {
            discard(&folder, paths.iter());
            Answer::Discarded
        }),
    }
}

/// Brings a file to the disk, under its part's name.
fn store(opened: &mut Opened<'_>, it: &SmallPart) -> io::Result<()> {
    let folder = opened.folder;
    let (above, name) = opened.above(&it.path)?;
    let (mode, times) = it.kept;
    let kept = Kept {
        owner: it.owner,
        mode,
        times,
    };
    let replaces = match there(above, name, None)? {
        There::File(mode) => Some(mode),
        There::Unchanged | There::Other => None,
    };
    let part = folder.part(name);
    let made_with = replaces.unwrap_or(rustix::fs::Mode::from_raw_mode(it.mode & 0o777));
    let mut file = create(above, &part, made_with)?;
    let mut write = || -> io::Result<Identity> {
        let is_hole = it.data.len() >= LEAST_HOLE && it.data.iter().all(|&octet| octet == 0);
        match is_hole {
            true => ftruncate(&file, it.data.len() as u64)?,
            false => file.write_all(&it.data)?,
        }
        if let Some(mode) = replaces.filter(|_| kept.mode.is_none()) {
            fchmod(&file, mode)?;
        }
        keep(&file, kept)?;
        fsync(&file)?;
        Ok(Identity::of(&fstat(&file)?))
    };
    let written = write();
    match written {
        Ok(identity) => folder.note_small(&it.path, identity),
        // What cannot be removed is told by its name.
        Err(_) => drop(unlinkat(above, part.as_slice(), AtFlags::empty())),
    }
    written.map(drop)
}

/// Removes parts.
fn discard<'a>(folder: &Folder, paths: impl Iterator<Item = &'a Vec<u8>>) {
    let mut opened = Opened::new(folder);
    for path in paths {
        if let Ok((above, name)) = opened.above(path) {
            // What cannot be removed is told by its name.
            let _ = unlinkat(above, folder.part(name), AtFlags::empty());
        }
        folder.forget_small(path);
    }
}

/// Puts what is in a part in place of what was there.
fn place(opened: &mut Opened<'_>, path: &[u8]) -> io::Result<()> {
    let folder = opened.folder;
    let (above, name) = opened.above(path)?;
    let part = folder.part(name);
    expect(above, &part, folder.forget_small(path))?;
    Ok(renameat(above, part, above, name)?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::MetadataExt;

    use sshoal_transfer::{Owner, PartTag, SmallNumber};

    use super::super::folder::PartNames;
    use super::*;

    fn part(path: &[u8], data: &[u8]) -> SmallPart {
        SmallPart {
            number: SmallNumber { stream: 0, file: 0 },
            path: path.to_vec(),
            mode: 0o640,
            owner: Owner::default(),
            kept: (None, None),
            data: data.to_vec(),
        }
    }

    fn names(path: &std::path::Path) -> Vec<Vec<u8>> {
        let entries = std::fs::read_dir(path).unwrap();
        let names = entries.map(|it| it.unwrap().file_name().as_bytes().to_vec());
        let mut names: Vec<Vec<u8>> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_has_its_name_only_when_it_is_put_in_place_and_no_link_is_followed() {
        let outside = tempfile::tempdir().unwrap();
        let inside = tempfile::tempdir().unwrap();
        let host = inside.path().join("host");
        let folder = Folder::new(host.clone(), PartNames(PartTag(1)), None);
        let mut opened = Opened::new(&folder);
        let victim = outside.path().join("victim");
        std::fs::write(&victim, "mine").unwrap();
        folder.make(b"a").unwrap();
        folder
            .link(
                b"a/out",
                outside.path().as_os_str().as_bytes(),
                Owner::default(),
            )
            .unwrap();
        folder
            .link(b"a/f", victim.as_os_str().as_bytes(), Owner::default())
            .unwrap();
        assert!(store(&mut opened, &part(b"a/out/x", b"theirs")).is_err());
        // What an earlier transfer has left is no hindrance.
        for data in [&b"cut"[..], b"theirs"] {
            store(&mut opened, &part(b"a/f", data)).unwrap();
        }
        assert_eq!(
            names(&host.join("a")),
            [&b".f.00000001.part"[..], b"f", b"out"]
        );
        assert_eq!(std::fs::read(host.join("a/f")).unwrap(), b"mine");
        place(&mut opened, b"a/f").unwrap();
        assert_eq!(std::fs::read(host.join("a/f")).unwrap(), b"theirs");
        assert_eq!(std::fs::read(&victim).unwrap(), b"mine");
        assert_eq!(names(outside.path()), [b"victim"]);
        // What has its part's name meanwhile is another one's.
        store(&mut opened, &part(b"a/f", b"mine")).unwrap();
        let name = host.join("a/.f.00000001.part");
        let other = outside.path().join("other");
        std::fs::write(&other, "another's").unwrap();
        std::fs::rename(&other, &name).unwrap();
        assert!(place(&mut opened, b"a/f").is_err());
        assert_eq!(std::fs::read(host.join("a/f")).unwrap(), b"theirs");
        std::fs::remove_file(&name).unwrap();
        // Other folders meanwhile are no trouble.
        store(&mut opened, &part(b"g", &[0; 9000])).unwrap();
        place(&mut opened, b"g").unwrap();
        assert_eq!(std::fs::read(host.join("g")).unwrap(), [0; 9000]);
        assert!(folder.make(b"d").is_ok());
        assert!(store(&mut opened, &part(b"d", b"x")).is_err());
        assert_eq!(names(&host), [b"a", b"d", b"g"]);
    }

    #[test]
    fn modes_are_the_plans_or_those_of_what_is_replaced_and_make_nobody_somebody_else() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::new(dir.path().join("host"), PartNames(PartTag(1)), None);
        let mut opened = Opened::new(&folder);
        let mut mode = |kept| {
            store(
                &mut opened,
                &SmallPart {
                    kept,
                    ..part(b"f", b"x")
                },
            )
            .unwrap();
            place(&mut opened, b"f").unwrap();
            let metadata = std::fs::metadata(dir.path().join("host/f")).unwrap();
            (metadata.mode() & 0o7777, metadata.mtime())
        };
        assert_eq!(mode((Some(0o6711), Some((5, 7)))), (0o711, 7));
        assert_eq!(mode((None, None)).0, 0o711);
    }
}
