//! `--outdir DIR`: each host's output in its own files, `HOST.out` and `HOST.err`, bytes untouched.

use std::{
    collections::HashSet,
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    path::PathBuf,
};

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
        Ok(OutDir {
            dir,
            names: file_names(labels),
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
        let begun = self.begun[key.0][key.1 as usize];
        let mut options = OpenOptions::new();
        if begun {
            options.append(true);
        } else {
            options.write(true).create(true).truncate(true);
        }
        let file = options.open(self.path(key))?;
        self.begun[key.0][key.1 as usize] = true;
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

/// A file name for each label. Letters, digits and `._@:+=,-` stand for themselves, other bytes become
/// `%XX`, a leading dot too: different labels get different names, and none leaves the directory. Names that
/// are too long, and so could meet, are cut and numbered: `~2`.
fn file_names(labels: &[String]) -> Vec<String> {
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
