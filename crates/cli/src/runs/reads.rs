//! What a run reads beside its command line: by what it is known again.

use std::fs::{self, File};
use std::hash::Hasher;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use siphasher::sip128::{Hasher128, SipHasher24};
use sshoal_journal::run::{FileIdentity, RunState};

/// Octets of a file that are hashed from its beginning, and as many before its end: reading more would keep the run waiting.
const HASHED: u64 = 32 * 1024 * 1024;

/// Why a run cannot be gone on with.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadsError {
    #[error("{role}, {}, cannot be read again: {error}", path.display())]
    Unreadable {
        role: String,
        path: PathBuf,
        error: io::Error,
    },
    #[error(
        "{role}, {}, is not what it was when the run began: its {what} has changed. What is left cannot be done as it was begun; \
         `--retry-failed not-started` begins anew with these hosts", path.display()
    )]
    Changed {
        role: String,
        path: PathBuf,
        what: &'static str,
    },
    #[error(
        "{0}, and cannot be read again: hosts that are left would read nothing or something else. Put it into a file, name that with \
         --stdin, and begin anew with `--retry-failed not-started`"
    )]
    Once(String),
}

/// What a run reads.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    pub(crate) files: Vec<FileIdentity>,
    pub(crate) once: Option<String>,
}

impl Reads {
    /// Of `--stdin` and `--script`.
    pub(crate) fn of(stdin: Option<&Path>, script: Option<&Path>) -> io::Result<Reads> {
        let mut reads = Reads::default();
        match stdin {
            None => {}
            Some(path) if path == Path::new("-") => {
                reads.once = Some("standard input was that of sshoal (--stdin -)".to_owned());
            }
            Some(path) if !fs::metadata(path)?.is_file() => {
                let path = path.display();
                reads.once = Some(format!(
                    "standard input was {path}, which is no file with a content of its own"
                ));
            }
            Some(path) => reads.files.push(identity("standard input", path)?),
        }
        if let Some(path) = script {
            // It was read already: to open it once more might wait for ever.
            if !fs::metadata(path)?.is_file() {
                let path = path.display();
                reads.once = Some(format!(
                    "the script was {path}, which is no file with a content of its own"
                ));
                return Ok(reads);
            }
            reads.files.push(identity("the script", path)?);
        }
        Ok(reads)
    }

    /// Whether all that a run has read is still there, and the same.
    pub(crate) fn check(state: &RunState) -> Result<(), ReadsError> {
        if let Some(why) = &state.once {
            return Err(ReadsError::Once(why.clone()));
        }
        state.files.iter().try_for_each(check)
    }
}

fn check(known: &FileIdentity) -> Result<(), ReadsError> {
    let path = PathBuf::from(std::ffi::OsString::from_vec(known.path.clone()));
    let role = known.role.clone();
    let now = match identity(&known.role, &path) {
        Ok(now) => now,
        Err(error) => return Err(ReadsError::Unreadable { role, path, error }),
    };
    let what = match now {
        _ if now == *known => return Ok(()),
        _ if now.len != known.len => "size",
        _ if now.modified_ns != known.modified_ns => "time of change",
        _ => "content",
    };
    Err(ReadsError::Changed { role, path, what })
}

fn identity(role: &str, path: &Path) -> io::Result<FileIdentity> {
    let path = std::path::absolute(path)?;
    let mut file = File::open(&path)?;
    let metadata = file.metadata()?;
    let seconds = u64::try_from(metadata.mtime()).unwrap_or_default();
    let part = u64::try_from(metadata.mtime_nsec()).unwrap_or_default();
    Ok(FileIdentity {
        role: role.to_owned(),
        path: path.into_os_string().into_vec(),
        len: metadata.len(),
        modified_ns: seconds.saturating_mul(1_000_000_000).saturating_add(part),
        hash: hash(&mut file, metadata.len())?,
    })
}

fn hash(file: &mut File, len: u64) -> io::Result<[u8; 16]> {
    let mut hasher = SipHasher24::new();
    let mut take = |file: &mut File| -> io::Result<()> {
        let mut limited = file.take(HASHED);
        let mut piece = vec![0; 64 * 1024];
        loop {
            match limited.read(&mut piece)? {
                0 => return Ok(()),
                read => hasher.write(&piece[..read]),
            }
        }
    };
    take(file)?;
    if let Some(behind) = len.checked_sub(HASHED).filter(|behind| *behind > 0) {
        file.seek(SeekFrom::Start(behind.max(HASHED)))?;
        take(file)?;
    }
    Ok(hasher.finish128().as_bytes())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::time::SystemTime;

    use super::*;

    fn state(reads: Reads) -> RunState {
        let mut state = RunState::default();
        (state.files, state.once) = (reads.files, reads.once);
        state
    }

    #[test]
    fn a_file_that_was_changed_is_not_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("input");
        fs::write(&path, "one").unwrap();
        let then = SystemTime::now();
        let set_time = || {
            File::options()
                .write(true)
                .open(&path)
                .unwrap()
                .set_modified(then)
                .unwrap()
        };
        set_time();
        let known = state(Reads::of(Some(&path), None).unwrap());
        Reads::check(&known).unwrap();
        for (content, what) in [("four", "size"), ("two", "content")] {
            fs::write(&path, content).unwrap();
            set_time();
            let said = Reads::check(&known).unwrap_err().to_string();
            assert!(said.contains(&format!("its {what} has changed")), "{said}");
        }
        fs::remove_file(&path).unwrap();
        let said = Reads::check(&known).unwrap_err().to_string();
        assert!(
            said.contains("standard input") && said.contains("cannot be read again"),
            "{said}"
        );
    }

    #[test]
    fn what_is_read_once_is_told() {
        for path in ["-", "/dev/null"] {
            let known = state(Reads::of(Some(Path::new(path)), None).unwrap());
            assert!(
                matches!(Reads::check(&known), Err(ReadsError::Once(_))),
                "{path}"
            );
        }
        let nothing = state(Reads::of(None, None).unwrap());
        Reads::check(&nothing).unwrap();
    }

    #[test]
    fn of_a_large_file_both_ends_count() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("large");
        let file = File::create(&path).unwrap();
        file.set_len(2 * HASHED + 4096).unwrap();
        let read = |at: u64| {
            use std::os::unix::fs::FileExt;
            let file = File::options().read(true).write(true).open(&path).unwrap();
            file.write_all_at(b"x", at).unwrap();
            let hash = hash(&mut File::open(&path).unwrap(), 2 * HASHED + 4096).unwrap();
            file.write_all_at(b"\0", at).unwrap();
            hash
        };
        let same = read(HASHED + 100);
        assert_ne!(read(0), same);
        assert_ne!(read(2 * HASHED + 4095), same);
    }
}
