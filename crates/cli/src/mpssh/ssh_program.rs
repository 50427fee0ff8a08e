//! The ssh that is started where sshoal's own client is not wanted.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::io::Errno;

/// Where it usually is.
const USUAL: &str = "/usr/bin/ssh";

/// The installed ssh: the first in PATH.
pub(super) fn installed() -> PathBuf {
    let mut candidates = in_path(Path::new("ssh")).into_iter();
    let found = candidates.find(|file| is_executable(file).is_ok());
    found.unwrap_or_else(|| PathBuf::from(USUAL))
}

/// Whether a program can be started, and the system's error if not (execvp(3)).
pub(super) fn check(program: &Path) -> io::Result<()> {
    let candidates = match program.components().count() {
        1 if !program.has_root() => in_path(program),
        _ => vec![program.to_owned()],
    };
    let mut error = Errno::NOENT;
    for file in candidates {
        match is_executable(&file) {
            Ok(()) => return Ok(()),
            Err(Errno::NOENT | Errno::NOTDIR) => {}
            Err(other) => error = other,
        }
    }
    Err(error.into())
}

/// What keeps an ssh from asking on the terminal, where it would be stopped: it is no process of the foreground. Whom it
/// asks instead has no answer (readpass.c, read_passphrase; ssh 8.4 and later).
pub(super) fn variables() -> Vec<(OsString, OsString)> {
    let variables = [
        ("SSH_ASKPASS_REQUIRE", "force"),
        ("SSH_ASKPASS", "/bin/false"),
    ];
    let variables = variables.into_iter();
    variables
        .map(|(name, value)| (name.into(), value.into()))
        .collect()
}

fn in_path(name: &Path) -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path);
    folders.map(|folder| folder.join(name)).collect()
}

fn is_executable(file: &Path) -> Result<(), Errno> {
    access(file, Access::EXEC_OK)?;
    match file.is_dir() {
        true => Err(Errno::ACCESS),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn error(program: &str) -> Option<i32> {
        check(Path::new(program)).unwrap_err().raw_os_error()
    }

    #[test]
    fn what_cannot_be_started_is_known_beforehand() {
        assert_eq!(error("/"), Some(13));
        assert_eq!(error("/etc/passwd"), Some(13));
        assert_eq!(error("/nonexistent/ssh"), Some(2));
        assert_eq!(error("no-such-program-anywhere"), Some(2));
        assert!(check(Path::new("/bin/sh")).is_ok());
        assert!(check(Path::new("sh")).is_ok());
    }
}
