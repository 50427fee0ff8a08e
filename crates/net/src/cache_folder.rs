//! The folder of what is kept from run to run to save time: each file is the user's alone, replaced as a whole, and may
//! be deleted at any time.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use rustix::process::geteuid;

/// Group and others may do anything.
const OPEN_TO_OTHERS: u32 = 0o077;
/// How long another run may hold a lock before this one gives up, and how often that is tried.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);
const LOCK_GLANCE: Duration = Duration::from_millis(5);

/// `$XDG_CACHE_HOME/sshoal`, or `~/.cache/sshoal`.
pub(crate) fn path() -> Option<PathBuf> {
    let absolute = |name| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let caches = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(caches.join("sshoal"))
}

/// Opens a file that nobody but this user can have written or can read, and tells its length, which is no more than
/// `longest`. Anything else in its place is as good as nothing.
pub(crate) fn open_own(path: &Path, longest: u64) -> Option<(fs::File, u64)> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = fs::OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
        .ok()?;
    let metadata = file.metadata().ok()?;
    let is_own = metadata.is_file()
        && metadata.uid() == geteuid().as_raw()
        && metadata.mode() & OPEN_TO_OTHERS == 0
        && metadata.len() <= longest;
    is_own.then_some((file, metadata.len()))
}

/// Locks a file of the folder against other runs, by a file beside it; makes the folder if it is missing. Who holds the
/// lock for long is stopped or hangs, and what is kept is only speed.
pub(crate) fn lock(path: &Path) -> io::Result<fs::File> {
    make_folder(parent(path))?;
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).mode(0o600);
    let lock = options
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
        .open(path.with_extension("lock"))?;
    let begun = Instant::now();
    loop {
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(lock),
            Err(Errno::WOULDBLOCK) if begun.elapsed() < LOCK_PATIENCE => thread::sleep(LOCK_GLANCE),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Makes a folder for the user alone, with those above it.
pub(crate) fn make_folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
}

/// Puts a new file of mode 0600 in a file's place: nobody else's is written to.
///
/// # Errors
///
/// The folder is missing or cannot be written to.
pub fn replace_file(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut new = tempfile::NamedTempFile::new_in(parent(path))?;
    new.write_all(content)?;
    new.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// The same for a file that others read, of mode 0644.
///
/// # Errors
///
/// The folder is missing or cannot be written to.
pub fn replace_shared_file(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut new = tempfile::Builder::new()
        .permissions(fs::Permissions::from_mode(0o644))
        .tempfile_in(parent(path))?;
    new.write_all(content)?;
    new.persist(path).map_err(|error| error.error)?;
    Ok(())
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}
