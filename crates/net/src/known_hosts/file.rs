//! A known_hosts file that is to be changed: locked against other runs, and appended to in one write or replaced as
//! a whole.
//!
//! ssh and ssh-keygen take no lock. What ssh appends meanwhile survives an append of ours, because both are made with
//! O_APPEND; a replacement looks at the file once more just before it takes its place, and starts again if it has
//! changed.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

/// How long another program may hold the lock before this one gives up, and how often that is tried.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);
const LOCK_GLANCE: Duration = Duration::from_millis(5);
/// How often a replacement is made anew because the file was changed meanwhile.
const REPLACEMENTS: usize = 20;

/// A known_hosts file, locked until this is dropped.
#[derive(Debug)]
pub struct KnownHostsFile {
    /// Where the file itself is: symbolic links stay what they are.
    path: PathBuf,
    file: File,
}

impl KnownHostsFile {
    /// Opens and locks a file that is there.
    ///
    /// # Errors
    ///
    /// It cannot be opened for writing, is no regular file, or another program keeps it locked.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::open_while(path, &|| true)
    }

    /// The same, for somebody who may not wait until another program unlocks it.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open); or nobody `waits` any more.
    pub(crate) fn open_while(path: &Path, waits: &dyn Fn() -> bool) -> io::Result<Self> {
        Self::open_with(path, OpenOptions::new().read(true).append(true), waits)
    }

    /// The same; a file that is missing is created, mode 0600, and so is its folder if that is a `.ssh`, mode 0700
    /// (hostfile_create_user_ssh_dir, hostfile.c).
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open); or it cannot be created.
    pub fn open_or_create(path: &Path) -> io::Result<Self> {
        Self::open_or_create_while(path, &|| true)
    }

    /// The same, for somebody who may not wait until another program unlocks it.
    ///
    /// # Errors
    ///
    /// As [`open_or_create`](Self::open_or_create); or nobody `waits` any more.
    pub(crate) fn open_or_create_while(path: &Path, waits: &dyn Fn() -> bool) -> io::Result<Self> {
        let folder = path.parent();
        if let Some(folder) = folder.filter(|folder| folder.ends_with(".ssh")) {
            match DirBuilder::new().mode(0o700).create(folder) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
        }
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true).mode(0o600);
        Self::open_with(path, &mut options, waits)
    }

    fn open_with(
        path: &Path,
        options: &mut OpenOptions,
        waits: &dyn Fn() -> bool,
    ) -> io::Result<Self> {
        // A pipe must not keep us.
        options.custom_flags(OFlags::NONBLOCK.bits().cast_signed());
        let begun = Instant::now();
        loop {
            let file = options.open(path)?;
            if !file.metadata()?.is_file() {
                return Err(io::Error::other("it is no regular file"));
            }
            lock(&file, begun, waits)?;
            // Who held the lock may have put another file into this one's place.
            if is_at(&file, path)? {
                let path = path.canonicalize()?;
                return Ok(KnownHostsFile { path, file });
            }
        }
    }

    /// What the file holds.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    pub fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        self.file.seek(SeekFrom::Start(0))?;
        self.file.read_to_end(&mut content)?;
        Ok(content)
    }

    /// Appends whole lines in one write. What could be written of them only in part is taken away again.
    ///
    /// # Errors
    ///
    /// The lines could not be written.
    pub fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        let before = self.file.metadata()?.len();
        let result = self.file.write_all(lines);
        if result.is_err() {
            let now = self.file.metadata()?.len();
            if now > before && now < before + lines.len() as u64 {
                self.file.set_len(before)?;
            }
        }
        result
    }

    /// Puts what `change` makes of the file's content in its place, with the same mode and owner; leaves the file alone
    /// if that is the same. `change` is called again if the file was changed by others meanwhile.
    ///
    /// # Errors
    ///
    /// The new file cannot be written beside the old one, or the file is being changed all the time.
    pub fn edit<T>(self, change: impl FnMut(&[u8]) -> (Vec<u8>, T)) -> io::Result<T> {
        let (outcome, _) = self.replace(change, false)?;
        Ok(outcome)
    }

    /// The same, and what was replaced is kept as a file with `.old` behind its name, as ssh-keygen does. Where that
    /// is comes back if it was written.
    ///
    /// # Errors
    ///
    /// As [`edit`](Self::edit); or the copy cannot be written.
    pub fn edit_and_keep_old<T>(
        self,
        change: impl FnMut(&[u8]) -> (Vec<u8>, T),
    ) -> io::Result<(T, Option<PathBuf>)> {
        self.replace(change, true)
    }

    fn replace<T>(
        mut self,
        mut change: impl FnMut(&[u8]) -> (Vec<u8>, T),
        keep_old: bool,
    ) -> io::Result<(T, Option<PathBuf>)> {
        for _ in 0..REPLACEMENTS {
            let old = self.read()?;
            let (new, outcome) = change(&old);
            if new == old {
                return Ok((outcome, None));
            }
            let replacement = self.beside(&new)?;
            let copy = keep_old.then(|| self.beside(&old)).transpose()?;
            if self.read()? == old && is_at(&self.file, &self.path)? {
                let kept = copy.map(|copy| self.put_aside(copy)).transpose()?;
                replacement
                    .persist(&self.path)
                    .map_err(|error| error.error)?;
                return Ok((outcome, kept));
            }
        }
        let problem = "another program changes it all the time";
        Err(io::Error::new(io::ErrorKind::WouldBlock, problem))
    }

    /// Gives a copy of the file its name; an older copy is replaced.
    fn put_aside(&self, copy: tempfile::NamedTempFile) -> io::Result<PathBuf> {
        let mut name = self.path.clone().into_os_string();
        name.push(".old");
        let path = PathBuf::from(name);
        copy.persist(&path).map_err(|error| error.error)?;
        Ok(path)
    }

    /// A new file in the same folder, written to the disk.
    fn beside(&self, content: &[u8]) -> io::Result<tempfile::NamedTempFile> {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        let mut new = tempfile::NamedTempFile::new_in(folder)?;
        new.write_all(content)?;
        let (old, own) = (self.file.metadata()?, new.as_file().metadata()?);
        if (old.uid(), old.gid()) != (own.uid(), own.gid()) {
            fchown(new.as_file(), Some(old.uid()), Some(old.gid()))?;
        }
        let mode = Permissions::from_mode(old.mode() & 0o7777);
        new.as_file().set_permissions(mode)?;
        new.as_file().sync_all()?;
        Ok(new)
    }
}

/// Waits for the lock, until so long after `begun`.
fn lock(file: &File, begun: Instant, waits: &dyn Fn() -> bool) -> io::Result<()> {
    while begun.elapsed() < LOCK_PATIENCE {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK) if waits() => thread::sleep(LOCK_GLANCE),
            Err(Errno::WOULDBLOCK) => {
                let problem = "another program keeps it locked, and you did not wait for it";
                return Err(io::Error::new(io::ErrorKind::Interrupted, problem));
            }
            Err(error) => return Err(error.into()),
        }
    }
    let problem = format!("other programs have kept it locked for {LOCK_PATIENCE:?}");
    Err(io::Error::new(io::ErrorKind::WouldBlock, problem))
}

/// Whether the file is the one that the path leads to.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    match fs::metadata(path) {
        Ok(there) => Ok(identity(there) == identity(file.metadata()?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
