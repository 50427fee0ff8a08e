//! How a pool is asked how it is, told to end hosts, and told to keep more: JSON, an object a line, over a socket in its
//! folder. All but [`Ask::Up`] are one question and one answer; what follows that is in `conversation`.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sshoal_net::Identity;

use crate::entry::Seating;
use crate::folder::{Folder, FolderError};
use crate::limits::Limits;

/// The longest question, octets: 50,000 names with all that is said of them.
pub(crate) const MAX_QUESTION: u64 = 16 * 1024 * 1024;
/// The version of what follows [`Ask::Share`]: both ends must have the same.
pub(crate) const SHARING_VERSION: u32 = 1;
/// How long whoever asks may take for the question, and for reading the answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// What a pool can be asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Ask {
    /// How it is.
    Status,
    /// To end these hosts' connections; all, and itself, if none is named. The answer tells how it was before.
    Down {
        /// As the user named them for `up`.
        hosts: Vec<String>,
    },
    /// Where these hosts are kept ([`find`]).
    Find {
        /// What their connections are.
        identities: Vec<String>,
    },
    /// To take whoever asks as a guest ([`board`]).
    Board {
        /// The guests' protocol.
        version: u32,
        /// In that thread.
        deck: u32,
    },
    /// To have whoever asks share a host's connection ([`share`]).
    Share {
        /// The protocol that follows.
        version: u32,
        /// In which thread the host is, and which one it is.
        seating: Seating,
        /// What its connection has to be: another host may have the number.
        identity: String,
    },
    /// To keep more hosts; a conversation follows.
    Up {
        /// For whoever logs in to them: JSON in a string, which takes the least memory on its way.
        request: String,
    },
}

/// How a pool is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Its process.
    pub pid: u32,
    /// Connections to all hosts, further ones and those in the making included.
    pub connections: u64,
    /// Its resident memory, octets.
    pub memory_octets: u64,
    /// What it may take.
    pub limits: Limits,
    /// How often no connection was made because of those.
    pub refused: u64,
    /// How often all connections were doubted, and asked for a sign of life.
    pub alarms: u64,
    /// Why, the last time.
    pub last_alarm: Option<Alarm>,
    /// Its hosts, in the order in which they were named.
    pub hosts: Vec<HostStatus>,
}

/// Why all connections are doubtful.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Alarm {
    /// The machine slept.
    Sleep,
    /// The process was stopped, or the machine did nothing for long.
    Stop,
    /// Addresses, routes or interfaces have changed.
    NetworkChange,
}

/// How a host is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostStatus {
    /// As the user named it.
    pub host: String,
    /// How far it is.
    pub state: State,
    /// Why it is down or lost, or why the last login came to nothing; `None` if it is as it was told to be.
    pub detail: Option<String>,
    /// The socket for `ssh -S`.
    pub control_path: String,
    /// Since when it is in that state, seconds.
    pub age_seconds: f64,
    /// Whether it is logged in to when somebody needs it only.
    pub lazy: bool,
    /// After so many seconds without a session it is hung up; `None` if never.
    pub idle_seconds: Option<f64>,
    /// Connections to it.
    pub connections: u64,
    /// How often it was logged in to, further connections not counted.
    pub logins: u64,
    /// Sessions and stdio forwards that are open.
    pub sessions: u64,
    /// Those that were opened ever, these included.
    pub sessions_in_all: u64,
    /// Connections that are open through forwards.
    #[serde(default)]
    pub forwarded: u64,
    /// How long connecting took the last time, milliseconds: a round trip, and what TCP adds to it.
    pub connect_ms: Option<f64>,
    /// How long the server took to answer the last keepalive request, milliseconds.
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
    /// Not logged in to until somebody needs it.
    Lazy,
    /// Not logged in to yet, or not again.
    Connecting,
    /// Logged in to.
    Up,
    /// Its connection was lost, and it is logged in to again before long.
    Lost,
    /// It failed, or was told to end.
    Down,
}

impl State {
    /// Its name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            State::Lazy => "lazy",
            State::Connecting => "connecting",
            State::Up => "up",
            State::Lost => "lost",
            State::Down => "down",
        }
    }
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

impl AskError {
    pub(crate) fn of(error: io::Error) -> AskError {
        use io::ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, NotFound};
        match error.kind() {
            NotFound | ConnectionRefused | ConnectionReset | BrokenPipe => AskError::NoPool,
            _ => AskError::NoAnswer(error),
        }
    }
}

/// Asks the user's pool how it is, or to end hosts.
///
/// # Errors
///
/// There is none, or it does not answer.
pub fn ask(folder: &Folder, question: &Ask) -> Result<Status, AskError> {
    answer_to(folder, question).map(|(status, _)| status)
}

/// Asks the user's pool where it keeps hosts: those that are up, by connections that are these.
///
/// # Errors
///
/// There is none, or it does not answer.
pub fn find(folder: &Folder, identities: &[Identity]) -> Result<Vec<Option<Seating>>, AskError> {
    let question = Ask::Find {
        identities: identities.iter().map(Identity::to_string).collect(),
    };
    let (mut found, _): (Vec<Option<Seating>>, _) = answer_to(folder, &question)?;
    found.resize(identities.len(), None);
    Ok(found)
}

/// Becomes a guest of one of the pool's threads: what is said on the stream is `sshoal-warm`'s.
///
/// # Errors
///
/// There is no pool, or not that thread.
pub fn board(folder: &Folder, deck: u32) -> Result<UnixStream, AskError> {
    let version = sshoal_warm::VERSION;
    let question = Ask::Board { version, deck };
    match answer_to(folder, &question)? {
        (true, stream) => Ok(stream),
        (false, _) => Err(AskError::NoPool),
    }
}

/// What there is to know of a connection that is shared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shared {
    /// The server's identification string.
    pub server: String,
    /// How long its packets need there and back, about.
    pub round_trip: Duration,
    /// Its address; `None` behind a jump host.
    pub address: Option<SocketAddr>,
    /// The algorithm of its host key that was accepted, and the key.
    pub host_key: (String, Vec<u8>),
}

/// Shares a host's connection by packets: what is said on the stream is PROTOCOL.mux, section 9, behind the answer that proxy mode
/// has. `None` if the host is not kept there any more.
///
/// # Errors
///
/// There is no pool, or it does not answer.
pub fn share(
    folder: &Folder,
    seating: Seating,
    identity: &Identity,
) -> Result<Option<(Shared, UnixStream)>, AskError> {
    let question = Ask::Share {
        version: SHARING_VERSION,
        seating,
        identity: identity.to_string(),
    };
    let (shared, stream): (Option<Shared>, _) = answer_to(folder, &question)?;
    Ok(shared.map(|shared| (shared, stream)))
}

/// The answer, and the stream that it came by.
fn answer_to<T: DeserializeOwned>(
    folder: &Folder,
    question: &Ask,
) -> Result<(T, UnixStream), AskError> {
    let asked = || {
        let stream = put(folder, question)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line)?;
        match line.is_empty() {
            // It ends just now.
            true => Err(io::ErrorKind::ConnectionReset.into()),
            false => Ok((serde_json::from_str(&line)?, stream)),
        }
    };
    asked().map_err(AskError::of)
}

/// Connects and asks.
pub(crate) fn put(folder: &Folder, question: &Ask) -> io::Result<UnixStream> {
    let mut stream = UnixStream::connect(folder.control())?;
    stream.set_write_timeout(Some(PATIENCE))?;
    write_line(&mut stream, question)?;
    Ok(stream)
}

/// Reads a question.
pub(crate) fn heard(stream: &UnixStream) -> io::Result<Ask> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(Read::take(stream, MAX_QUESTION)).read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}

pub(crate) fn write_line(stream: &mut impl Write, what: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    stream.write_all(&line)
}
