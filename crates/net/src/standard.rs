//! Standard streams that the user has named for contents: whether they can carry any.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{OFlags, fcntl_getfl};

use crate::hints::was_closed;

/// Why a standard stream carries no contents, and what to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// Standard input was closed when the program began (`<&-`).
    #[error("it is closed; give it a file or a pipe (< FILE)")]
    InputClosed,
    /// Standard input is open, but not for reading.
    #[error("it is open for writing alone; give it a file or a pipe (< FILE)")]
    InputUnreadable,
    /// Standard input is a folder.
    #[error("it is a folder; give it a file or a pipe (< FILE)")]
    InputFolder,
    /// Standard output was closed when the program began (`>&-`).
    #[error("it is closed; give it a file or a pipe (> FILE)")]
    OutputClosed,
    /// Standard output is open, but not for writing.
    #[error("it is open for reading alone; give it a file or a pipe (> FILE)")]
    OutputUnwritable,
}

/// Standard input, to be read as contents.
///
/// # Errors
///
/// It carries none ([`StreamError`]), or no descriptor is left.
pub fn standard_input() -> io::Result<File> {
    let stdin = io::stdin();
    if was_closed(0) {
        return Err(io::Error::other(StreamError::InputClosed));
    }
    if is_open_as(stdin.as_fd(), OFlags::WRONLY)? {
        return Err(io::Error::other(StreamError::InputUnreadable));
    }
    let file = File::from(rustix::io::dup(stdin)?);
    match file.metadata()?.is_dir() {
        true => Err(io::Error::other(StreamError::InputFolder)),
        false => Ok(file),
    }
}

/// Whether standard output can be written to.
///
/// # Errors
///
/// It cannot ([`StreamError`]).
pub fn check_standard_output() -> io::Result<()> {
    if was_closed(1) {
        return Err(io::Error::other(StreamError::OutputClosed));
    }
    match is_open_as(io::stdout().as_fd(), OFlags::RDONLY)? {
        true => Err(io::Error::other(StreamError::OutputUnwritable)),
        false => Ok(()),
    }
}

/// Whether a descriptor has this access mode (open(2)), one of RDONLY, WRONLY and RDWR.
fn is_open_as(descriptor: BorrowedFd<'_>, access: OFlags) -> io::Result<bool> {
    Ok(fcntl_getfl(descriptor)? & OFlags::RWMODE == access)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn what_a_descriptor_is_open_for_is_told() {
        let (reader, writer) = io::pipe().unwrap();
        let both = File::options()
            .read(true)
            .write(true)
            .open("/dev/null")
            .unwrap();
        let all = [reader.as_fd(), writer.as_fd(), both.as_fd()];
        for access in [OFlags::RDONLY, OFlags::WRONLY, OFlags::RDWR] {
            let found = all.map(|descriptor| is_open_as(descriptor, access).unwrap());
            assert_eq!(found.iter().filter(|it| **it).count(), 1, "{access:?}");
        }
        assert!(is_open_as(all[0], OFlags::RDONLY).unwrap());
        assert!(is_open_as(all[1], OFlags::WRONLY).unwrap());
    }
}
