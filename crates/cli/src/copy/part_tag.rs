//! What tells the parts of this transfer from those of others: the same command has the same tag when it is run again, so
//! that it replaces what an earlier run has left half done.
//!
//! A run holds a lock for its tag; a second one at the same time gets a tag of its own. Tags of different users and
//! machines differ by a secret of each user's. What is kept of transfers that nobody has repeated for a month goes.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::hash::{Hash, Hasher};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use siphasher::sip::SipHasher13;
use sshoal_crypto::random;
use sshoal_transfer::PartTag;

/// How long a journal is kept that nothing is added to: as long as that of a run.
const KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Octets of what tells users apart.
const SECRET: usize = 16;

/// A transfer's tag, and its lock for as long as this lives.
pub(super) struct PartTags {
    tag: PartTag,
    lock: Option<(File, PathBuf)>,
}

impl PartTags {
    /// The tag of a command with these words.
    pub(super) fn of(words: &[impl AsRef<OsStr>]) -> PartTags {
        match folder().and_then(|folder| locked(&folder, words)) {
            Ok(tags) => {
                tags.prune(SystemTime::now());
                tags
            }
            // Nobody can tell what an earlier run has left; all else works.
            Err(_) => PartTags {
                tag: by_chance(),
                lock: None,
            },
        }
    }

    pub(super) fn tag(&self) -> PartTag {
        self.tag
    }

    /// A journal for each host, by what tells its parts from others'; none if an earlier run's could not be told.
    pub(super) fn journals(&self, hosts: impl IntoIterator<Item = impl Hash>) -> Vec<PathBuf> {
        let Some(folder) = self.journals_folder() else {
            return Vec::new();
        };
        let names = hosts.into_iter().map(|host| {
            let mut hasher = SipHasher13::new();
            host.hash(&mut hasher);
            folder.join(format!("{:016x}.journal", hasher.finish()))
        });
        names.collect()
    }

    fn journals_folder(&self) -> Option<PathBuf> {
        let (_, path) = self.lock.as_ref()?;
        Some(path.with_extension(JOURNALS))
    }

    /// Removes what is left of other transfers that were given up long ago. What cannot be removed now is left to the next.
    fn prune(&self, now: SystemTime) {
        let folder = self.lock.as_ref().and_then(|(_, path)| path.parent());
        let entries = folder.and_then(|folder| fs::read_dir(folder).ok());
        for path in entries.into_iter().flatten().flatten().map(|it| it.path()) {
            let is_ours = path
                .extension()
                .is_some_and(|it| it == JOURNALS || it == LOCK);
            if is_ours && is_old(&path, now) {
                let _ = remove_old(&path, now);
            }
        }
    }
}

const JOURNALS: &str = "journals";
const LOCK: &str = "lock";

/// Whether nothing has been written to it, nor to what is in it, for so long.
fn is_old(path: &Path, now: SystemTime) -> bool {
    let is_old = |path: &Path| {
        let written = fs::symlink_metadata(path).and_then(|it| it.modified());
        written.is_ok_and(|written| now.duration_since(written).is_ok_and(|age| age > KEPT))
    };
    let mut within = fs::read_dir(path).into_iter().flatten().flatten();
    is_old(path) && within.all(|it| is_old(&it.path()))
}

/// Removes a transfer's lock and journals, unless it is under way.
fn remove_old(path: &Path, now: SystemTime) -> io::Result<()> {
    // The lock goes with it, as at a transfer's end.
    let _lock = PartTags {
        tag: PartTag(0),
        lock: Some(lock(path.with_extension(LOCK))?),
    };
    let journals = path.with_extension(JOURNALS);
    // It may have been repeated before we had the lock.
    match is_old(&journals, now) {
        true => fs::remove_dir_all(journals),
        false => Ok(()),
    }
}

impl Drop for PartTags {
    fn drop(&mut self) {
        if let Some(folder) = self.journals_folder() {
            // Unless there is one left, for the next run.
            let _ = fs::remove_dir(folder);
        }
        if let Some((_, path)) = &self.lock {
            // While the lock is held: who opens the name next makes a new file.
            let _ = fs::remove_file(path);
        }
    }
}

fn by_chance() -> PartTag {
    let mut octets = [0; 4];
    random(&mut octets);
    PartTag(u32::from_be_bytes(octets))
}

/// `$XDG_STATE_HOME/sshoal/transfers`, or under `~/.local/state`.
fn folder() -> io::Result<PathBuf> {
    let last_run = crate::hosts::results_path().ok_or(io::ErrorKind::NotFound)?;
    let folder = last_run.with_file_name("transfers");
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder)?;
    Ok(folder)
}

fn locked(folder: &Path, words: &[impl AsRef<OsStr>]) -> io::Result<PartTags> {
    let mut hasher = SipHasher13::new();
    secret(&folder.join("secret"))?.hash(&mut hasher);
    std::env::current_dir()?.hash(&mut hasher);
    words
        .iter()
        .for_each(|word| word.as_ref().hash(&mut hasher));
    let tag = PartTag(hasher.finish() as u32);
    let lock = lock(folder.join(format!("{tag}.{LOCK}")))?;
    Ok(PartTags {
        tag,
        lock: Some(lock),
    })
}

/// Takes the lock that has this name.
///
/// # Errors
///
/// Somebody has it, or had it just now.
fn lock(path: PathBuf) -> io::Result<(File, PathBuf)> {
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(&path)?;
    file.try_lock().map_err(io::Error::other)?;
    // Whoever had it may have removed its name in the meantime: then it keeps nobody out.
    match fs::metadata(&path)?.ino() == file.metadata()?.ino() {
        true => Ok((file, path)),
        false => Err(io::ErrorKind::NotFound.into()),
    }
}

/// A few octets that nobody else has, made on first use. They have their name when all of them are there: of several that make
/// some at a time, the first one's are everybody's.
fn secret(path: &Path) -> io::Result<[u8; SECRET]> {
    let known = || -> io::Result<[u8; SECRET]> {
        let octets = fs::read(path)?;
        octets
            .try_into()
            .map_err(|_| io::ErrorKind::InvalidData.into())
    };
    match known() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        // What a full disk has left there is of no use.
        Err(error) if error.kind() == io::ErrorKind::InvalidData => fs::remove_file(path)?,
        known => return known,
    }
    let mut octets = [0; SECRET];
    random(&mut octets);
    let new = path.with_extension(std::process::id().to_string());
    let made = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&new)
        .and_then(|mut file| io::Write::write_all(&mut file, &octets))
        .and_then(|()| match fs::hard_link(&new, path) {
            // Where there are no hard links, the last one's are everybody's.
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => fs::rename(&new, path),
            linked => linked,
        });
    // It has the other name, or is of no use.
    let _ = fs::remove_file(&new);
    match made {
        Ok(()) => Ok(octets),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => known(),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let names = entries.map(|it| it.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name != "secret").collect();
        names.sort();
        names
    }

    /// What a transfer leaves that is interrupted: a journal.
    fn leave(folder: &Path, name: &str) -> PathBuf {
        let tags = locked(folder, &[name]).unwrap();
        let journals = tags.journals_folder().unwrap();
        fs::create_dir(&journals).unwrap();
        fs::write(journals.join("0.journal"), name).unwrap();
        journals
    }

    #[test]
    fn what_nobody_repeats_goes_after_a_month_and_what_is_under_way_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (given_up, under_way) = (leave(dir.path(), "given up"), leave(dir.path(), "on"));
        let on = locked(dir.path(), &["on"]).unwrap();
        fs::write(dir.path().join("killed.lock"), "").unwrap();
        fs::write(dir.path().join("of somebody else"), "").unwrap();
        let now = SystemTime::now();
        let mut all = names(dir.path());
        assert_eq!(all.len(), 5);
        let this = locked(dir.path(), &["this"]).unwrap();
        this.prune(now + 29 * DAY);
        drop(this);
        assert_eq!(names(dir.path()), all);
        let this = locked(dir.path(), &["this"]).unwrap();
        this.prune(now + 31 * DAY);
        drop(this);
        let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
        all.retain(|it| *it != name(&given_up) && it != "killed.lock");
        assert_eq!(names(dir.path()), all);
        assert!(under_way.join("0.journal").exists());
        drop(on);
    }

    #[test]
    fn a_journal_that_something_was_added_to_is_kept_with_all_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let journals = leave(dir.path(), "large");
        let now = SystemTime::now();
        let added = File::create(journals.join("1.journal")).unwrap();
        added.set_modified(now + 20 * DAY).unwrap();
        let this = locked(dir.path(), &["this"]).unwrap();
        this.prune(now + 40 * DAY);
        assert_eq!(names(&journals).len(), 2);
        this.prune(now + 51 * DAY);
        assert!(!journals.exists());
    }

    #[test]
    fn each_account_of_a_host_has_a_journal_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let tags = locked(dir.path(), &["large"]).unwrap();
        let accounts = ["web1\0alice\0web1\x0022", "web1\0bob\0web1\x0022"];
        let [one, other] = &tags.journals(accounts)[..] else {
            panic!("a journal for each");
        };
        assert_ne!(one, other);
        assert_eq!(tags.journals(accounts)[0], *one);
    }

    #[test]
    fn a_lock_whose_name_is_gone_keeps_nobody_out() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.lock");
        let first = lock(path.clone()).unwrap();
        assert!(lock(path.clone()).is_err(), "somebody has it");
        fs::remove_file(&path).unwrap();
        let second = lock(path).unwrap();
        drop((first, second));
    }
}
