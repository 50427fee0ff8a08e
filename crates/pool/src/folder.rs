//! Where the sockets are, and who may put some there.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::process::geteuid;

/// The folder's name in XDG_RUNTIME_DIR.
const NAME: &str = "sshoal";
/// The name of the socket where the pool itself is asked.
const CONTROL: &str = "control";
/// The longest path of a socket: `sun_path` of unix(7) with the zero at its end. ssh refuses longer ones as well.
const MAX_PATH: usize = 107;

/// A user's folder: nobody else may look into it.
#[derive(Debug, Clone)]
pub struct Folder {
    path: PathBuf,
}

/// Why there is no folder to be used, or no place in it.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// It cannot be made, or looked at.
    #[error("the folder for warm connections, {}: {error}", path.display())]
    Unusable {
        /// The folder, or a file in it.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// Somebody else could reach what is in it.
    #[error(
        "{} is not a folder that only you can open (owner {owner}, mode {mode:o}); remove it, or set XDG_RUNTIME_DIR to a folder of yours",
        path.display()
    )]
    NotPrivate {
        /// The folder.
        path: PathBuf,
        /// Its owner's number.
        owner: u32,
        /// Its mode.
        mode: u32,
    },
    /// A host's socket would have a name that no socket can have.
    #[error(
        "{path}: no socket can have this path, for it has a slash in the host's name or more than {MAX_PATH} octets; leave the host out (-x)"
    )]
    NoSocket {
        /// The path.
        path: String,
    },
}

/// Held for as long as the pool lives. The kernel gives it back, however that ends.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Folder {
    /// The folder `sshoal` in XDG_RUNTIME_DIR, or `/tmp/sshoal-UID` where that is not set. It is made if it is not there.
    ///
    /// # Errors
    ///
    /// It cannot be made, or is not the user's alone.
    pub fn of_user() -> Result<Folder, FolderError> {
        Folder::at(Folder::path_of_user())
    }

    /// The same folder, if a pool may be there; it is not made, and not complained of.
    pub fn in_use() -> Option<Folder> {
        let path = Folder::path_of_user();
        let is_there = path.join(CONTROL).exists();
        is_there.then(|| Folder::at(path).ok()).flatten()
    }

    fn path_of_user() -> PathBuf {
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        match runtime.filter(|path| path.is_absolute()) {
            Some(runtime) => runtime.join(NAME),
            None => PathBuf::from(format!("/tmp/{NAME}-{}", geteuid().as_raw())),
        }
    }

    fn at(path: PathBuf) -> Result<Folder, FolderError> {
        let unusable = |error| FolderError::Unusable {
            path: path.clone(),
            error,
        };
        match DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(unusable(error));
            }
            _ => {}
        }
        // Not through a symbolic link: in /tmp anybody could have left one.
        let found = fs::symlink_metadata(&path).map_err(unusable)?;
        let (owner, mode) = (found.uid(), found.mode() & 0o7777);
        match found.is_dir() && owner == geteuid().as_raw() && mode & 0o077 == 0 {
            true => Ok(Folder { path }),
            false => Err(FolderError::NotPrivate { path, owner, mode }),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the pool itself is asked.
    pub(crate) fn control(&self) -> PathBuf {
        self.path.join(CONTROL)
    }

    /// The socket of a host, in ssh's terms `%r@%h:%p`.
    ///
    /// # Errors
    ///
    /// No socket can have that name.
    pub fn socket(&self, user: &str, name: &str, port: u16) -> Result<PathBuf, FolderError> {
        let file = format!("{user}@{name}:{port}");
        let path = self.path.join(&file);
        match file.contains('/') || path.as_os_str().len() > MAX_PATH {
            true => Err(FolderError::NoSocket {
                path: path.display().to_string(),
            }),
            false => Ok(path),
        }
    }

    /// The ControlPath for all hosts, as it stands in ssh_config.
    pub fn control_path(&self) -> OsString {
        let mut escaped = Vec::new();
        for octet in self.path.as_os_str().as_bytes() {
            escaped.extend(std::iter::repeat_n(*octet, 1 + usize::from(*octet == b'%')));
        }
        escaped.extend(b"/%r@%h:%p");
        OsString::from_vec(escaped)
    }

    /// Takes the lock; `None` if another pool has it.
    ///
    /// # Errors
    ///
    /// Its file cannot be opened.
    pub fn lock(&self) -> Result<Option<Lock>, FolderError> {
        let (file, path) = self.lock_file()?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Lock { _file: file })),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(FolderError::Unusable {
                path,
                error: error.into(),
            }),
        }
    }

    /// Whether no pool has the lock.
    ///
    /// # Errors
    ///
    /// Its file cannot be opened.
    pub fn is_free(&self) -> Result<bool, FolderError> {
        self.lock().map(|lock| lock.is_some())
    }

    fn lock_file(&self) -> Result<(File, PathBuf), FolderError> {
        let path = self.path.join("lock");
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        match options.open(&path) {
            Ok(file) => Ok((file, path)),
            Err(error) => Err(FolderError::Unusable { path, error }),
        }
    }

    /// Makes room for a socket. Only whoever has the lock may: what is there is left from a pool that was killed.
    pub(crate) fn clear(path: &Path) -> io::Result<()> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_folder_that_others_can_open_or_that_is_a_link_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sshoal");
        let folder = Folder::at(path.clone()).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        assert!(Folder::at(path.clone()).is_ok());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
        let refused = Folder::at(path.clone()).unwrap_err();
        assert!(matches!(
            refused,
            FolderError::NotPrivate { mode: 0o750, .. }
        ));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        let link = dir.path().join("link");
        symlink(folder.path(), &link).unwrap();
        assert!(matches!(
            Folder::at(link),
            Err(FolderError::NotPrivate { .. })
        ));
    }

    #[test]
    fn the_lock_is_held_once_until_it_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::at(dir.path().join("sshoal")).unwrap();
        let lock = folder.lock().unwrap();
        assert!(lock.is_some());
        assert!(folder.lock().unwrap().is_none());
        drop(lock);
        assert!(folder.lock().unwrap().is_some());
    }

    #[test]
    fn sockets_are_named_as_ssh_expands_the_control_path() {
        let folder = Folder {
            path: PathBuf::from("/run/100%/sshoal"),
        };
        assert_eq!(folder.control_path(), "/run/100%%/sshoal/%r@%h:%p");
        let socket = folder.socket("me", "::1", 22).unwrap();
        assert_eq!(socket, Path::new("/run/100%/sshoal/me@::1:22"));
        assert!(folder.socket("me", "../x", 22).is_err());
        assert!(folder.socket("me", &"x".repeat(90), 22).is_err());
    }
}
