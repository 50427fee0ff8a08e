//! What makes a host well: lines to change in its files.

use std::fmt;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// One change to a host. Paths are the host's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A line gets a `#` before it.
    CommentOut {
        /// The file.
        file: String,
        /// The whole line.
        line: String,
    },
    /// A line becomes another.
    Replace {
        /// The file.
        file: String,
        /// The whole line.
        line: String,
        /// The line in its place.
        with: String,
    },
    /// A line is put before all others.
    Before {
        /// The file.
        file: String,
        /// The new line.
        line: String,
    },
    /// The file gets another text, with the same owner and mode.
    Rewrite {
        /// The file.
        file: String,
        /// All of its text.
        text: String,
    },
    /// The file gets another mode.
    Mode {
        /// The file.
        file: String,
        /// The permissions, as for chmod(1).
        mode: u32,
    },
    /// The file goes.
    Remove {
        /// The file.
        file: String,
    },
    /// The control group's limit goes, which is no file of the host's but the kernel's.
    LiftQuota,
}

impl Change {
    /// The host's file that it changes.
    pub fn file(&self) -> Option<&str> {
        match self {
            Change::CommentOut { file, .. }
            | Change::Replace { file, .. }
            | Change::Before { file, .. }
            | Change::Rewrite { file, .. }
            | Change::Mode { file, .. }
            | Change::Remove { file } => Some(file),
            Change::LiftQuota => None,
        }
    }

    /// Does it to the host whose files are below `root`; nothing for the quota.
    pub(super) fn apply(&self, root: &Path) -> io::Result<()> {
        let path = |file: &str| -> PathBuf { root.join(file.trim_start_matches('/')) };
        match self {
            Change::CommentOut { file, line } => edit(&path(file), line, &format!("#{line}")),
            Change::Replace { file, line, with } => edit(&path(file), line, with),
            Change::Before { file, line } => {
                let path = path(file);
                let text = fs::read_to_string(&path)?;
                fs::write(&path, format!("{line}\n{text}"))
            }
            Change::Rewrite { file, text } => fs::write(path(file), text),
            Change::Mode { file, mode } => {
                fs::set_permissions(path(file), Permissions::from_mode(*mode))
            }
            Change::Remove { file } => fs::remove_file(path(file)),
            Change::LiftQuota => Ok(()),
        }
    }
}

/// Puts one line in another's place, in the same file: its owner and mode stay.
fn edit(path: &Path, line: &str, with: &str) -> io::Result<()> {
    let text = fs::read_to_string(path)?;
    if !text.lines().any(|there| there == line) {
        let problem = format!("no line '{line}'");
        return Err(io::Error::new(io::ErrorKind::NotFound, problem));
    }
    let lines = text.lines().map(|there| match there == line {
        true => with,
        false => there,
    });
    let edited: String = lines.map(|line| format!("{line}\n")).collect();
    fs::write(path, edited)
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::CommentOut { file, line } => write!(f, "{file}: without '{line}'"),
            Change::Replace { file, line, with } => {
                write!(f, "{file}: '{with}' in place of '{line}'")
            }
            Change::Before { file, line } => write!(f, "{file}: '{line}' before all else"),
            Change::Rewrite { file, text } => {
                write!(f, "{file}: {} lines only", text.lines().count())
            }
            Change::Mode { file, mode } => write!(f, "chmod {mode:o} {file}"),
            Change::Remove { file } => write!(f, "rm {file}"),
            Change::LiftQuota => f.write_str("the control group without a limit of CPU time"),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn lines_are_changed_in_place_and_missing_ones_are_an_error() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("conf");
        fs::write(&path, "one\ntwo\nthree\n").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let file = || "/conf".to_owned();
        let apply = |change: Change| change.apply(root.path());
        apply(Change::CommentOut {
            file: file(),
            line: "one".into(),
        })
        .unwrap();
        apply(Change::Replace {
            file: file(),
            line: "two".into(),
            with: "2".into(),
        })
        .unwrap();
        apply(Change::Before {
            file: file(),
            line: "zero".into(),
        })
        .unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "zero\n#one\n2\nthree\n");
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o640
        );
        let missing = apply(Change::CommentOut {
            file: file(),
            line: "thr".into(),
        });
        assert_eq!(missing.unwrap_err().kind(), io::ErrorKind::NotFound);
        apply(Change::Remove { file: file() }).unwrap();
        assert!(!path.exists());
    }
}
