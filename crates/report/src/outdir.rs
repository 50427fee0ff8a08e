//! `--outdir DIR`: each host's output in its own files, `HOST.out` and `HOST.err`, bytes untouched.

use std::{
    collections::HashSet,
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use rustix::fs::OFlags;

use crate::console::Stream;

/// How many files are kept open, however many hosts there are.
const MAX_OPEN: usize = 64;

/// The longest name without its ending, in bytes: file systems allow 255 in all.
const MAX_FILE_NAME: usize = 240;

/// The files of a run. Each is emptied when its host's first bytes come, or when the host ends.
pub(crate) struct OutDir {
    dir: PathBuf,
    names: Vec<String>,
    /// Which files have been emptied and begun, by host and stream.
    begun: Vec<[bool; 2]>,
    /// The files written last, the latest at the end.
    open: Vec<((usize, Stream), File)>,
}

impl OutDir {
    /// Makes the directory if it is not there.
    ///
    /// # Errors
    /// It cannot be made, or has something else than a file where one of ours is to be.
    pub(crate) fn create(dir: PathBuf, labels: &[String]) -> io::Result<OutDir> {
        fs::create_dir_all(&dir).map_err(|error| {
            io::Error::new(
                error.kind(),
                format!(
                    "cannot create the output directory {}: {error}",
                    dir.display()
                ),
            )
        })?;
        let names = file_names(labels);
        check_entries(&dir, &names)?;
        Ok(OutDir {
            dir,
            names,
            begun: vec![[false; 2]; labels.len()],
            open: Vec::new(),
        })
    }

    pub(crate) fn push(&mut self, host: usize, stream: Stream, bytes: &[u8]) -> io::Result<()> {
        let key = (host, stream);
        let result = self.file(key).and_then(|mut file| file.write_all(bytes));
        result.map_err(|error| self.failed("write", key, error))
    }

    /// The host has ended: its `.out` exists, if only empty, and no file of an earlier run is left.
    pub(crate) fn end(&mut self, host: usize) -> io::Result<()> {
        if !self.begun[host][Stream::Stdout as usize] {
            self.push(host, Stream::Stdout, b"")?;
        }
        self.open.retain(|(key, _)| key.0 != host);
        if self.begun[host][Stream::Stderr as usize] {
            return Ok(());
        }
        match fs::remove_file(self.path((host, Stream::Stderr))) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(self.failed("remove the old", (host, Stream::Stderr), error))
            }
            _ => Ok(()),
        }
    }

    /// The file, open for appending; the one unused longest is closed for it.
    fn file(&mut self, key: (usize, Stream)) -> io::Result<&File> {
        let file = match self.open.iter().position(|(open, _)| *open == key) {
            Some(position) => self.open.remove(position).1,
            None => self.open_file(key)?,
        };
        if self.open.len() >= MAX_OPEN {
            self.open.remove(0);
        }
        self.open.push((key, file));
        Ok(&self.open[self.open.len() - 1].1)
    }

    fn open_file(&mut self, key: (usize, Stream)) -> io::Result<File> {
        // Whoever else may write to the directory must not choose what is overwritten (NOFOLLOW), nor keep us waiting
        // for the other end of a FIFO (NONBLOCK, which means nothing to a regular file).
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        options.custom_flags(flags.bits().cast_signed());
        let file = options.open(self.path(key))?;
        if !file.metadata()?.is_file() {
            return Err(not_a_file());
        }
        let begun = &mut self.begun[key.0][key.1 as usize];
        if !std::mem::replace(begun, true) {
            file.set_len(0)?;
        }
        Ok(file)
    }

    fn path(&self, (host, stream): (usize, Stream)) -> PathBuf {
        let ending = match stream {
            Stream::Stdout => "out",
            Stream::Stderr => "err",
        };
        self.dir.join(format!("{}.{ending}", self.names[host]))
    }

    fn failed(&self, what: &str, key: (usize, Stream), error: io::Error) -> io::Error {
        io::Error::new(
            error.kind(),
            format!(
                "cannot {what} output file {}: {error}",
                self.path(key).display()
            ),
        )
    }
}

fn not_a_file() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file")
}

/// Looks for what would only be refused when hosts have run their command: symbolic links, FIFOs, directories under
/// names of ours.
fn check_entries(dir: &Path, names: &[String]) -> io::Result<()> {
    // A directory that may be written to and not listed is checked file by file.
    let Ok(entries) = fs::read_dir(dir) else {
        return Ok(());
    };
    let names: HashSet<&str> = names.iter().map(String::as_str).collect();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let stem = name.to_str().and_then(|name| name.rsplit_once('.'));
        let is_ours = stem
            .is_some_and(|(stem, ending)| ["out", "err"].contains(&ending) && names.contains(stem));
        if is_ours && !entry.file_type()?.is_file() {
            let (path, error) = (entry.path(), not_a_file());
            let text = format!(
                "cannot write output file {}: {error}; remove it or take another directory",
                path.display()
            );
            return Err(io::Error::new(error.kind(), text));
        }
    }
    Ok(())
}

/// A file name for each label. Letters, digits and `._@:+=,-` stand for themselves, other bytes become
/// `%XX`, a leading dot too: different labels get different names, and none leaves the directory. Names that
/// are too long, and so could meet, are cut and numbered: `~2`.
pub fn file_names(labels: &[String]) -> Vec<String> {
    let mut taken = HashSet::with_capacity(labels.len());
    let name = |label: &String| {
        let mut name = String::with_capacity(label.len());
        for (index, byte) in label.bytes().enumerate() {
            match byte {
                b'.' if index == 0 => name.push_str("%2E"),
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' => name.push(byte.into()),
                b'.' | b'_' | b'@' | b':' | b'+' | b'=' | b',' | b'-' => name.push(byte.into()),
                _ => name.push_str(&format!("%{byte:02X}")),
            }
        }
        name.truncate(MAX_FILE_NAME); // all ASCII by now
        let mut unique = name.clone();
        for number in 2.. {
            if taken.insert(unique.clone()) {
                break;
            }
            unique = format!("{name}~{number}");
        }
        unique
    };
    labels.iter().map(name).collect()
}

#[cfg(test)]
mod tests;
