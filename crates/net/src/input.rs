//! Standard input for commands: one source, read once, sent to all hosts.
//!
//! A regular file is read by each host at its own pace. A pipe goes straight to a single host, as fast as
//! that takes it; for several hosts it is copied into an unlinked file first, so that a slow host delays no
//! other and memory stays bounded.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use sshoal_proto::{Connection, ConnectionError, LocalChannel, Secret};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{Mutex, mpsc, watch};

use crate::standard::standard_input;

/// Octets read at a time: eight data messages.
const CHUNK: usize = 256 * 1024;
/// Chunks of a pipe read ahead of the host that takes them.
const READ_AHEAD: usize = 4;

/// What the commands of a run read.
#[derive(Clone)]
pub struct Input {
    /// Comes first, for every host: a password that the command line reads before all else.
    preamble: Option<Secret>,
    source: Source,
}

#[derive(Clone)]
enum Source {
    /// Nothing.
    Empty,
    /// A file that is there whole.
    File(Arc<File>),
    /// A pipe that is being copied to a file.
    Spool {
        file: Arc<File>,
        copied: watch::Receiver<Copied>,
    },
    /// A pipe or a terminal for one host.
    Pipe(Arc<Mutex<Pipe>>),
}

/// What is read only once.
enum Pipe {
    /// Nothing is taken of it before its reader asks: until then a terminal is there for questions.
    Unread(File),
    Read(mpsc::Receiver<io::Result<Vec<u8>>>),
    /// No thread could be had to read it.
    Lost,
}

/// How far the copy of a pipe is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Copied {
    pub(crate) octets: u64,
    pub(crate) complete: bool,
    /// Why there is no more of it.
    pub(crate) broken: Option<Broken>,
}

/// Why a copy ended before its time.
#[derive(Debug, Clone)]
pub(crate) struct Broken {
    pub(crate) why: Arc<str>,
    /// The copy could not be written, whatever was still to be read.
    is_unkept: bool,
}

impl Copied {
    /// Why it ended, where that is because we cannot keep it.
    pub(crate) fn unkept(&self) -> Option<Arc<str>> {
        let broken = self.broken.as_ref();
        let broken = broken.filter(|broken| broken.is_unkept);
        broken.map(|broken| broken.why.clone())
    }
}

impl Input {
    /// No standard input, but `preamble` and then `input`.
    pub fn with_preamble(preamble: Secret, input: Option<Input>) -> Input {
        let source = input.map_or(Source::Empty, |input| input.source);
        Input {
            preamble: Some(preamble),
            source,
        }
    }

    /// Whether a password comes first.
    pub fn begins_with_secret(&self) -> bool {
        self.preamble.is_some()
    }

    /// Why no host can have all of it, where that is because we cannot keep it.
    pub(crate) fn unkept(&self) -> Option<Arc<str>> {
        let Source::Spool { copied, .. } = &self.source else {
            return None;
        };
        copied.borrow().unkept()
    }

    /// What comes out of a pipe, for one host.
    pub fn of(pipe: File) -> Input {
        Input {
            preamble: None,
            source: Source::Pipe(Arc::new(Mutex::new(Pipe::Unread(pipe)))),
        }
    }

    /// Standard input, or a file. `hosts` is how many will read it.
    ///
    /// # Errors
    ///
    /// It cannot be opened, or no temporary file can be made.
    pub fn open(path: &Path, hosts: usize) -> io::Result<Input> {
        let file = match path == Path::new("-") {
            true => standard_input()?,
            false => File::open(path)?,
        };
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if metadata.is_file() && path != Path::new("-") {
            return Ok(Input {
                preamble: None,
                source: Source::File(Arc::new(file)),
            });
        }
        let source = match hosts {
            0 | 1 => Source::Pipe(Arc::new(Mutex::new(Pipe::Unread(file)))),
            _ => spool(file)?,
        };
        Ok(Input {
            preamble: None,
            source,
        })
    }
}

impl Pipe {
    /// What comes next; nothing at its end.
    async fn next(&mut self) -> io::Result<Vec<u8>> {
        if let Pipe::Unread(_) = self
            && let Pipe::Unread(file) = std::mem::replace(self, Pipe::Lost)
        {
            *self = Pipe::Read(read_ahead(file)?);
        }
        match self {
            Pipe::Read(chunks) => chunks.recv().await.unwrap_or(Ok(Vec::new())),
            Pipe::Unread(_) | Pipe::Lost => Err(io::Error::other("nothing reads it")),
        }
    }
}

fn read_ahead(mut file: File) -> io::Result<mpsc::Receiver<io::Result<Vec<u8>>>> {
    let (sender, receiver) = mpsc::channel(READ_AHEAD);
    thread::Builder::new()
        .name("stdin".to_owned())
        .spawn(move || {
            loop {
                let mut chunk = vec![0; CHUNK];
                let end = match file.read(&mut chunk) {
                    Ok(0) => return,
                    Ok(octets) => {
                        chunk.truncate(octets);
                        sender.blocking_send(Ok(chunk)).is_err()
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => false,
                    Err(error) => {
                        // The host is told; if it is gone, nobody needs to know.
                        let _ = sender.blocking_send(Err(error));
                        true
                    }
                };
                if end {
                    return;
                }
            }
        })?;
    Ok(receiver)
}

fn spool(mut from: File) -> io::Result<Source> {
    let file =
        tempfile::tempfile().map_err(|error| io::Error::new(error.kind(), unkept(&error)))?;
    let file = Arc::new(file);
    let (progress, copied) = watch::channel(Copied::default());
    let to = file.clone();
    thread::Builder::new()
        .name("stdin".to_owned())
        .spawn(move || {
            let mut chunk = vec![0; CHUNK];
            loop {
                let octets = match from.read(&mut chunk) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => {
                        return end(&progress, error.to_string(), false);
                    }
                    Ok(octets) => octets,
                };
                if octets > 0
                    && let Err(error) = (&*to).write_all(&chunk[..octets])
                {
                    return end(&progress, unkept(&error), true);
                }
                progress.send_modify(|copied| {
                    copied.octets += octets as u64;
                    copied.complete = octets == 0;
                });
                if octets == 0 {
                    return;
                }
            }
        })?;
    Ok(Source::Spool { file, copied })
}

/// The copy has ended before its time.
pub(crate) fn end(progress: &watch::Sender<Copied>, why: String, is_unkept: bool) {
    let why = why.into();
    progress.send_modify(|copied| copied.broken = Some(Broken { why, is_unkept }));
}

/// Says that input could not be kept for hosts that are slower than it comes.
pub(crate) fn unkept(error: &io::Error) -> String {
    let dir = std::env::temp_dir();
    let dir = dir.display();
    format!(
        "cannot keep standard input in a temporary file in {dir} until all hosts have it: {error}; free space there, or set \
         TMPDIR to another folder"
    )
}

/// One host's reading of the input, and what of it waits to be sent.
pub(crate) struct Feeder {
    preamble: Option<Secret>,
    source: Source,
    /// Octets read from a file so far.
    at: u64,
    chunk: Vec<u8>,
    /// Octets of `chunk` that the connection has taken.
    taken: usize,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Reading,
    /// All was read; EOF follows the last chunk.
    Read,
    /// EOF was sent.
    Ended,
}

impl Feeder {
    pub(crate) fn new(input: &Input) -> Self {
        Feeder {
            preamble: input.preamble.clone(),
            source: input.source.clone(),
            at: 0,
            chunk: Vec::new(),
            taken: 0,
            state: State::Reading,
        }
    }

    /// Whether [`next`](Self::next) has something to wait for.
    pub(crate) fn is_hungry(&self) -> bool {
        self.preamble.is_none() && self.state == State::Reading && self.taken == self.chunk.len()
    }

    /// Reads the next chunk. Cancelling loses nothing.
    pub(crate) async fn next(&mut self) -> io::Result<()> {
        let chunk = match &mut self.source {
            Source::Empty => Vec::new(),
            Source::File(file) => read_at(file.clone(), self.at, CHUNK).await?,
            Source::Spool { file, copied } => {
                let at = self.at;
                let now = copied
                    .wait_for(|now| now.octets > at || now.complete || now.broken.is_some())
                    .await
                    .map_err(|_| io::Error::other("nothing reads it"))?
                    .clone();
                if now.octets == at
                    && let Some(broken) = now.broken
                {
                    return Err(io::Error::other(broken.why.to_string()));
                }
                let there = usize::try_from(now.octets - at).unwrap_or(CHUNK).min(CHUNK);
                read_at(file.clone(), at, there).await?
            }
            Source::Pipe(pipe) => pipe.lock().await.next().await?,
        };
        self.at += chunk.len() as u64;
        if chunk.is_empty() {
            self.state = State::Read;
        }
        (self.chunk, self.taken) = (chunk, 0);
        Ok(())
    }

    /// Gives the connection as much as it takes; returns how many octets that were.
    pub(crate) fn feed(
        &mut self,
        connection: &mut Connection,
        channel: LocalChannel,
    ) -> Result<usize, ConnectionError> {
        if let Some(preamble) = &self.preamble {
            let rest = &preamble.expose()[self.taken..];
            let taken = connection.send_data(channel, rest)?;
            self.taken += taken;
            if taken < rest.len() {
                return Ok(taken);
            }
            (self.preamble, self.taken) = (None, 0);
        }
        let taken = connection.send_data(channel, &self.chunk[self.taken..])?;
        self.taken += taken;
        if self.state == State::Read {
            connection.send_eof(channel)?;
            self.state = State::Ended;
        }
        Ok(taken)
    }
}

// For a command that somebody else sends it to.
impl Feeder {
    /// Gives at most `room` octets away; returns how many those were, and whether there will be no more.
    pub(crate) fn hand_out(&mut self, room: usize, mut take: impl FnMut(&[u8])) -> (usize, bool) {
        let rest = &self.chunk[self.taken..];
        let octets = &rest[..rest.len().min(room)];
        if !octets.is_empty() {
            take(octets);
            self.taken += octets.len();
        }
        let handed = octets.len();
        let is_all = self.state == State::Read && self.taken == self.chunk.len();
        if is_all {
            self.state = State::Ended;
        }
        (handed, is_all)
    }
}

// For a command on this machine.
impl Feeder {
    /// Writes everything to a command, or as much of it as that reads.
    ///
    /// # Errors
    ///
    /// The input cannot be read.
    pub(crate) async fn pour(mut self, mut into: impl AsyncWrite + Unpin) -> io::Result<()> {
        if let Some(preamble) = self.preamble.take()
            && into.write_all(preamble.expose()).await.is_err()
        {
            return Ok(());
        }
        while self.state == State::Reading {
            self.next().await?;
            if into.write_all(&self.chunk).await.is_err() {
                return Ok(());
            }
        }
        Ok(())
    }
}

async fn read_at(file: Arc<File>, at: u64, most: usize) -> io::Result<Vec<u8>> {
    // A file may be on a disk that hangs: never on the thread that serves all hosts.
    let read = tokio::task::spawn_blocking(move || {
        let mut chunk = vec![0; most];
        let octets = file.read_at(&mut chunk, at)?;
        chunk.truncate(octets);
        Ok(chunk)
    });
    read.await.map_err(io::Error::other)?
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[tokio::test]
    async fn a_pipe_that_cannot_be_read_is_told_with_its_reason() {
        let unreadable = File::options().write(true).open("/dev/null").unwrap();
        let input = Input {
            preamble: None,
            source: spool(unreadable).unwrap(),
        };
        let told = Feeder::new(&input).next().await.unwrap_err().to_string();
        assert!(told.contains("Bad file descriptor"), "{told}");
        assert!(input.unkept().is_none(), "we could have kept it");
    }

    #[test]
    fn a_full_folder_for_temporary_files_is_named() {
        let told = unkept(&io::ErrorKind::StorageFull.into());
        let dir = std::env::temp_dir();
        assert!(told.contains(&*dir.to_string_lossy()), "{told}");
        assert!(told.contains("TMPDIR"), "{told}");
    }
}
