//! How a pool is asked how it is, and told to end: one JSON object a line each way, over a socket in its folder.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::folder::{Folder, FolderError};
use crate::pool::{Pool, is_welcome};

/// The longest question, octets: 50,000 names.
const MAX_QUESTION: u64 = 4 * 1024 * 1024;
/// How long whoever asks may take for the question, and for reading the answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a pool can be asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Ask {
    /// How it is.
    Status,
    /// To end these hosts' connections; all, and itself, if none is named. The answer tells how it was before.
    Down {
        /// As the user named them for `up`.
        hosts: Vec<String>,
    },
}

/// How a pool is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Its process.
    pub pid: u32,
    /// After so many seconds without a session it ends; `None` if never.
    pub idle_seconds: Option<u64>,
    /// Its hosts, in the order in which they were named.
    pub hosts: Vec<HostStatus>,
}

/// How a host is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostStatus {
    /// As the user named it.
    pub host: String,
    /// How far it is.
    pub state: State,
    /// Why it is down, if it is and did not end as it was told to.
    pub detail: Option<String>,
    /// The socket for `ssh -S`.
    pub control_path: String,
    /// Since when it is in that state, seconds.
    pub age_seconds: f64,
    /// Connections to it.
    pub connections: u64,
    /// Sessions and stdio forwards that are open.
    pub sessions: u64,
    /// Those that were opened ever, these included.
    pub sessions_in_all: u64,
    /// How long connecting took, milliseconds: a round trip, and what TCP adds to it.
    pub round_trip_ms: Option<f64>,
    /// Octets that passengers have sent to the host.
    pub octets_sent: u64,
    /// Octets that passengers have got from it.
    pub octets_received: u64,
}

/// How far a host is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Not logged in to yet, or not again.
    Connecting,
    /// Logged in to.
    Up,
    /// It failed, was lost, or was told to end.
    Down,
}

/// Why a pool did not answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// There is none.
    #[error("no connections are kept: `sshoal up HOSTS` logs in to hosts and keeps them")]
    NoPool,
    /// Its folder cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// It does not answer, or not so that it can be understood.
    #[error("the process that keeps the connections gave no answer: {0}")]
    NoAnswer(#[from] io::Error),
}

/// Asks the user's pool.
///
/// # Errors
///
/// There is none, or it does not answer.
pub fn ask(folder: &Folder, question: &Ask) -> Result<Status, AskError> {
    use io::ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, NotFound};
    match answer_to(folder, question) {
        Ok(Some(status)) => Ok(status),
        // It ends just now.
        Ok(None) => Err(AskError::NoPool),
        Err(error) => Err(match error.kind() {
            NotFound | ConnectionRefused | ConnectionReset | BrokenPipe => AskError::NoPool,
            _ => AskError::NoAnswer(error),
        }),
    }
}

/// The answer; `None` if the pool hung up in place of one.
fn answer_to(folder: &Folder, question: &Ask) -> io::Result<Option<Status>> {
    let mut stream = UnixStream::connect(folder.control())?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    write_line(&mut stream, question)?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    match line.is_empty() {
        true => Ok(None),
        false => Ok(Some(serde_json::from_str(&line)?)),
    }
}

/// Begins to answer questions, in a thread of its own, which also ends the pool when it has been idle for long enough.
pub(crate) fn answer(pool: Pool) -> io::Result<()> {
    let path = pool.folder().control();
    Folder::clear(&path)?;
    let listener = UnixListener::bind(path)?;
    listener.set_nonblocking(true)?;
    thread::Builder::new()
        .name("control".to_owned())
        .spawn(move || {
            loop {
                let idle = pool.end_if_idle();
                let timeout = idle.and_then(|left| Timespec::try_from(left).ok());
                let mut waiting = [PollFd::new(&listener, PollFlags::IN)];
                match poll(&mut waiting, timeout.as_ref()) {
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(error) => return tracing::error!(%error, "no questions are heard any more"),
                }
                if let Ok((stream, _)) = listener.accept()
                    && let Err(error) = reply(&pool, stream)
                {
                    tracing::debug!(%error, "a question was not answered");
                }
            }
        })?;
    Ok(())
}

fn reply(pool: &Pool, mut stream: UnixStream) -> io::Result<()> {
    if !is_welcome(&stream) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(Read::take(&mut stream, MAX_QUESTION)).read_line(&mut line)?;
    let question = serde_json::from_str(&line)?;
    let status = pool.status();
    if let Ask::Down { hosts } = question {
        pool.end(&hosts);
    }
    write_line(&mut stream, &status)
}

fn write_line(stream: &mut UnixStream, what: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    stream.write_all(&line)
}
