//! The conversation with a host's hashing program, one for all files of a transfer.
//!
//! Paths are asked for in groups: while one is hashed the next collects, so that a round trip is shared by all that were
//! asked for meanwhile.

use std::collections::VecDeque;

use super::FileHash;
use super::command::{GREETING, command, host_path, put_path};
use crate::conversation::{Lines, ToHost};

/// Files of one group.
const GROUP: usize = 128;
/// Octets of contents after which a group has enough.
const GROUP_OCTETS: u64 = 64 * 1024 * 1024;
/// Octets from which on a file is hashed by itself, and by a program of which the start costs more.
const LARGE: u64 = 4 * 1024 * 1024;
/// Groups that the host has been sent and not answered: one it hashes, and the next.
const GROUPS: usize = 2;

const READY: &[u8] = b"sshoal-ready";
const END: &[u8] = b"sshoal-end";

/// Why there is no hashing at all.
const NO_PROGRAM: &str =
    "the host runs no hashing program for this account (sha256sum, shasum, sha256 or openssl)";
/// Why there is none beside the files' own session.
const NO_SESSION: &str = "the server opens no further session in a connection, which hashing needs (sshd_config: MaxSessions)";
/// Why there is none any more.
const ENDED: &str = "the host's hashing program has ended";

/// What a host answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostHash {
    /// The hash.
    Is(FileHash),
    /// Its program cannot read the file.
    Unreadable,
    /// Nobody answers any more.
    Gone,
}

/// How far a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// There is none, and none is wanted yet.
    Unopened,
    /// The host has not said that it is ready.
    Opening,
    Ready,
    /// There will be none, for this reason.
    Over(&'static str),
}

/// What a hash is for: an upload's entry, or a download's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HashKey {
    /// What is there and has the size of what is to come.
    There(u64),
    /// What has arrived, or what it came from.
    Arrived(u64),
}

/// The hashes of a host's files, and the session that they are asked for in: the command's standard input is what
/// [`transmit`](Self::transmit) gives, its standard output is for [`hear`](Self::hear). Whenever something has been heard or
/// has ended, its upload or download is told ([`Upload::handle_hashes`](crate::Upload::handle_hashes),
/// [`Download::handle_hashes`](crate::Download::handle_hashes)).
pub struct HostHashes {
    stage: Stage,
    is_wanted: bool,
    /// Files that have joined no group, with the octets that they have.
    waiting: VecDeque<(HashKey, Vec<u8>, u64)>,
    /// Groups that the host has been sent.
    asked: VecDeque<Group>,
    answers: VecDeque<(HashKey, HostHash)>,
    /// What has been answered of the first group.
    lines: Vec<HostHash>,
    /// What it says, line by line: hashes stand before names.
    said: Lines,
    out: ToHost,
    has_answered: bool,
}

struct Group {
    files: Vec<HashKey>,
    octets: u64,
}

impl HostHashes {
    pub(crate) fn new() -> Self {
        HostHashes {
            stage: Stage::Unopened,
            is_wanted: false,
            waiting: VecDeque::new(),
            asked: VecDeque::new(),
            answers: VecDeque::new(),
            lines: Vec::new(),
            said: Lines::default(),
            out: ToHost::default(),
            has_answered: false,
        }
    }

    /// Whether the host has said that it hashes.
    pub(crate) fn is_ready(&self) -> bool {
        self.stage == Stage::Ready
    }

    /// Whether the host has yet to say that it hashes.
    pub fn is_opening(&self) -> bool {
        self.stage == Stage::Opening
    }

    /// Why there are no hashes, or none any more.
    pub(crate) fn why_over(&self) -> Option<&'static str> {
        match self.stage {
            Stage::Over(why) => Some(why),
            _ => None,
        }
    }

    /// Whether the host has read any file so far.
    pub(crate) fn has_answered(&self) -> bool {
        self.has_answered
    }

    /// Hashes will be asked for.
    pub(crate) fn want(&mut self) {
        self.is_wanted = true;
    }

    /// Asks for the hash of a file of about so many octets; [`flush`](Self::flush) sends it.
    pub(crate) fn ask(&mut self, key: HashKey, path: &[u8], octets: u64) {
        match self.stage {
            Stage::Over(_) => self.answers.push_back((key, HostHash::Gone)),
            _ => self.waiting.push_back((key, host_path(path), octets)),
        }
    }

    /// The next answer.
    pub(crate) fn poll_answer(&mut self) -> Option<(HashKey, HostHash)> {
        self.answers.pop_front()
    }

    /// Sends what is to be sent now.
    pub(crate) fn flush(&mut self) {
        while self.stage == Stage::Ready
            && !self.waiting.is_empty()
            && (self.asked.is_empty() || self.asked.len() < GROUPS && self.waiting.len() >= GROUP)
        {
            self.put_group();
        }
    }

    fn put_group(&mut self) {
        let mut group = Group {
            files: Vec::new(),
            octets: 0,
        };
        while group.files.len() < GROUP
            && group.octets < GROUP_OCTETS
            && let Some((key, path, octets)) = self.waiting.pop_front()
        {
            // A name of several lines would be printed as such by some.
            let is_alone = octets >= LARGE || path.contains(&b'\n');
            if is_alone && !group.files.is_empty() {
                self.waiting.push_front((key, path, octets));
                break;
            }
            self.out.put_by(|out| put_path(out, &path));
            group.files.push(key);
            group.octets += octets;
            if is_alone {
                break;
            }
        }
        let end: &[u8] = match group.octets >= LARGE && group.files.len() == 1 {
            true => b":\n",
            false => b".\n",
        };
        self.out.put(end);
        self.asked.push_back(group);
    }

    /// What the session runs.
    pub fn command() -> String {
        command()
    }

    /// Whether a session is to be opened.
    pub fn wants_session(&self) -> bool {
        self.is_wanted && self.stage == Stage::Unopened
    }

    /// It is being opened.
    pub fn opened(&mut self) {
        self.stage = Stage::Opening;
        self.out.put(GREETING);
    }

    /// Octets for the host.
    pub fn transmit(&self) -> &[u8] {
        self.out.waiting()
    }

    /// So many of them have left.
    pub fn transmitted(&mut self, octets: usize) {
        self.out.transmitted(octets);
    }

    /// Octets of contents that the host is hashing; `None` if it is asked nothing.
    pub fn hashing(&self) -> Option<u64> {
        let asked = self.asked.iter().map(|group| group.octets);
        (!self.asked.is_empty()).then(|| asked.sum())
    }

    /// Takes what the host says.
    pub fn hear(&mut self, mut input: &[u8]) {
        while let Some(line) = self.said.next(&mut input) {
            self.handle_line(&line);
        }
    }

    fn handle_line(&mut self, line: &[u8]) {
        match self.stage {
            // What comes before is a shell's greeting.
            Stage::Opening if line == READY => self.stage = Stage::Ready,
            Stage::Ready if line == END => self.end_group(),
            // More than was asked for makes the group's answers worthless: one is enough to know.
            Stage::Ready => {
                let most = self.asked.front().map_or(0, |group| group.files.len());
                if self.lines.len() <= most {
                    let hash = FileHash::of_line(line);
                    self.lines
                        .push(hash.map_or(HostHash::Unreadable, HostHash::Is));
                }
            }
            _ => {}
        }
    }

    fn end_group(&mut self) {
        let lines = std::mem::take(&mut self.lines);
        let Some(group) = self.asked.pop_front() else {
            return;
        };
        let is_whole = lines.len() == group.files.len();
        let none = std::iter::repeat(HostHash::Unreadable);
        let hashes = lines.into_iter().filter(|_| is_whole).chain(none);
        for (key, hash) in group.files.into_iter().zip(hashes) {
            self.has_answered |= hash != HostHash::Unreadable;
            self.answers.push_back((key, hash));
        }
    }

    /// The server does not open the session.
    pub fn refuse(&mut self) {
        self.close(NO_SESSION);
    }

    /// Nothing more comes of the session, or its command was refused.
    pub fn end(&mut self) {
        let why = match self.stage {
            Stage::Ready => ENDED,
            _ => NO_PROGRAM,
        };
        self.close(why);
    }

    /// Nothing more is asked.
    pub(crate) fn close(&mut self, why: &'static str) {
        if let Stage::Over(_) = self.stage {
            return;
        }
        self.stage = Stage::Over(why);
        self.out = ToHost::default();
        let asked = self.asked.drain(..).flat_map(|group| group.files);
        let waiting = self.waiting.drain(..).map(|(key, ..)| key);
        let keys = asked.chain(waiting);
        self.answers.extend(keys.map(|key| (key, HostHash::Gone)));
    }
}

#[cfg(test)]
mod tests;
