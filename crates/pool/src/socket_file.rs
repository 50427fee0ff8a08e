//! Unix sockets in the file system whose rights are there before anybody can connect.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

/// SSH_LISTEN_BACKLOG.
pub(crate) const BACKLOG: u32 = 128;

/// A unix socket in the file system.
pub(crate) struct SocketFile {
    path: PathBuf,
    device_and_inode: (u64, u64),
}

impl SocketFile {
    /// Listens at a path that is free, without blocking.
    pub(crate) fn bind(path: PathBuf, mode: u32) -> io::Result<(UnixListener, SocketFile)> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let kind = SocketType::STREAM;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, kind, flags, None)?;
        rustix::net::bind(&socket, &SocketAddrUnix::new(&path)?)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
        let found = fs::symlink_metadata(&path)?;
        rustix::net::listen(&socket, BACKLOG as i32)?;
        let device_and_inode = (found.dev(), found.ino());
        let file = SocketFile {
            path,
            device_and_inode,
        };
        Ok((UnixListener::from(socket), file))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is still there, and nothing else in its place.
    pub(crate) fn is_there(&self) -> bool {
        let found = fs::symlink_metadata(&self.path);
        found.is_ok_and(|found| (found.dev(), found.ino()) == self.device_and_inode)
    }

    /// Removes it, unless somebody has put something else there.
    pub(crate) fn remove(&self) {
        if self.is_there() {
            // If it cannot be removed, whoever connects to it is refused.
            let _ = fs::remove_file(&self.path);
        }
    }
}
