//! What tells the parts of this transfer from those of others: the same command has the same tag when it is run again, so
//! that it replaces what an earlier run has left half done.
//!
//! A run holds a lock for its tag; a second one at the same time gets a tag of its own. Tags of different users and
//! machines differ by a secret of each user's.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::hash::{Hash, Hasher};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use siphasher::sip::SipHasher13;
use sshoal_crypto::random;
use sshoal_report::Host;
use sshoal_transfer::PartTag;

/// A transfer's tag, and its lock for as long as this lives.
pub(super) struct PartTags {
    tag: PartTag,
    lock: Option<(File, PathBuf)>,
}

impl PartTags {
    /// The tag of a command with these words.
    pub(super) fn of(words: &[impl AsRef<OsStr>]) -> PartTags {
        match folder().and_then(|folder| locked(&folder, words)) {
            Ok(tags) => tags,
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

    /// A journal for each host; none if an earlier run's could not be told from others'.
    pub(super) fn journals(&self, hosts: &[Host]) -> Vec<PathBuf> {
        let Some(folder) = self.journals_folder() else {
            return Vec::new();
        };
        let names = hosts.iter().map(|host| {
            let mut hasher = SipHasher13::new();
            host.label.hash(&mut hasher);
            folder.join(format!("{:016x}.journal", hasher.finish()))
        });
        names.collect()
    }

    fn journals_folder(&self) -> Option<PathBuf> {
        let (_, path) = self.lock.as_ref()?;
        Some(path.with_extension("journals"))
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
    let path = folder.join(format!("{tag}.lock"));
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(&path)?;
    file.try_lock().map_err(io::Error::other)?;
    Ok(PartTags {
        tag,
        lock: Some((file, path)),
    })
}

/// A few octets that nobody else has, made on first use.
fn secret(path: &Path) -> io::Result<Vec<u8>> {
    let mut octets = vec![0; 16];
    random(&mut octets);
    let made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| io::Write::write_all(&mut file, &octets));
    match made {
        Ok(()) => Ok(octets),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            octets.clear();
            File::open(path)?.read_to_end(&mut octets)?;
            Ok(octets)
        }
        Err(error) => Err(error),
    }
}
