//! What stands in for a host's SFTP server where it has none: a POSIX shell and the programs that every Linux host has.
//!
//! A [`ShellServer`] takes the octets that are for an SFTP server and gives those that one would answer by. In between a
//! session's shell does what is asked: `host.sh` is what it is sent, and says what it answers. Requests that follow each
//! other in a file are one there, for each costs the host some processes.
//!
//! ```text
//!   Client  -- handle_requests -->  ShellServer  -- transmit ------>  sh on the host
//!           <-- take_replies ----                <-- handle_input --
//! ```
//!
//! Files have no handles there: each request opens its path anew, and looks whether it still is the file that was opened.

mod answers;
mod asking;
mod handles;
mod replies;
mod requests;
mod words;

use std::collections::VecDeque;

use answers::{Answer, Answers};
use handles::{Handles, Listing, Open};
use replies::{EOF, FAILURE, OK, Replies};
use requests::{Requests, Wanted};
use sshoal_wire::Put;

use crate::sftp::{Attributes, SftpError};

/// What a session runs. Nothing is told to it before it has said that it is there.
///
/// A line is evaluated only if it begins with the word that was told first: octets of a file never are, whatever becomes of the
/// program that was to take them. Start-up files may have begun a line, which is ended.
pub const SHELL_COMMAND: &str = "exec sh -c 'echo; echo sshoal-shell; IFS= read -r k; while read -r t l; \
     do test \"$t\" = \"$k\" || { echo out of step >&2; exit 1; }; eval \"$l\"; done'";
/// What is sent first.
const PROGRAM: &str = include_str!("host.sh");

/// Octets of requests that are taken before some of them have left.
const ROOM: usize = 1024 * 1024;
/// Octets of a file that one request of the host's shell moves at most.
const TOGETHER: u64 = 1024 * 1024;
/// Such requests that are under way at a time: one is worked on and the next has arrived meanwhile. What comes in between
/// is put together.
const MOVING: usize = 2;
/// Other requests that are under way at a time.
const UNDER_WAY: usize = 256;
/// Paths that are looked at by one process.
const PATHS: usize = 64;
/// Names that are told by one packet, and the octets that they take at most.
const NAMES: (usize, usize) = (256, 128 * 1024);

/// Why a host's shell cannot stand in for an SFTP server; nothing more of its session is of use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShellError {
    /// Something else answers: a forced command, or an account without a shell.
    #[error("what the session runs is no POSIX shell; it said {0:?}")]
    Another(String),
    /// Programs are missing, or options of theirs.
    #[error("the host lacks {0}")]
    Lacks(String),
    /// The host has not taken all that was to be written.
    #[error(
        "the host took fewer than the {0} octets that were sent for a file: its dd ended before"
    )]
    NotTaken(u64),
    /// What was said answers nothing that was asked.
    #[error("the host's shell answered by {0:?}, which is no answer to what was asked")]
    NoAnswer(String),
    /// More than is taken.
    #[error("the host's shell said too much: {0}")]
    TooMuch(&'static str),
    /// What we were to pass on is no request; it does not come from the host.
    #[error("not a request: {0}")]
    Request(#[from] SftpError),
}

/// One session's shell in an SFTP server's place.
#[derive(Debug)]
pub struct ShellServer {
    /// What every line for the host begins with.
    word: String,
    /// What the host takes away from modes of what is made (umask(2)).
    umask: u32,
    requests: Requests,
    answers: Answers,
    handles: Handles,
    is_ready: bool,
    /// What the host has been asked, in order.
    asked: VecDeque<Asked>,
    /// How many of them move octets of files.
    moving: usize,
    /// Octets for the host, and how many of them have left.
    out: Vec<u8>,
    left: usize,
    replies: Replies,
}

/// What an answer of the host's is for: requests by their identifiers.
#[derive(Debug)]
enum Asked {
    Status(u32),
    /// The same, for those whose octets went together, so many.
    Written {
        ids: Vec<u32>,
        octets: u64,
    },
    /// One answer for each of them.
    Looked(VecDeque<u32>),
    Opened(u32, Vec<u8>),
    /// Its handle once there is one.
    Listed(u32, Vec<u8>, Option<u32>),
    /// Who has asked for how much, from that offset on.
    Read {
        handle: u32,
        offset: u64,
        parts: Vec<(u32, u32)>,
    },
    Path(u32),
    Filesystem(u32),
}

impl Asked {
    fn moves(&self) -> bool {
        matches!(self, Asked::Written { .. } | Asked::Read { .. })
    }
}

impl ShellServer {
    /// Before the host has said anything. `secret` is nothing that anybody else knows, nor that has been used before.
    pub fn new(secret: [u8; 16]) -> Self {
        ShellServer {
            word: format!("{:032x}", u128::from_be_bytes(secret)),
            umask: 0,
            requests: Requests::default(),
            answers: Answers::default(),
            handles: Handles::default(),
            is_ready: false,
            asked: VecDeque::new(),
            moving: 0,
            out: Vec::new(),
            left: 0,
            replies: Replies::default(),
        }
    }

    /// How many more octets for an SFTP server are taken now.
    pub fn room(&self) -> usize {
        ROOM.saturating_sub(self.requests.held() + self.out.len() - self.left)
    }

    /// Takes what a client has for an SFTP server.
    ///
    /// # Errors
    ///
    /// What no client sends.
    pub fn handle_requests(&mut self, octets: &[u8]) -> Result<(), ShellError> {
        self.requests.handle(octets)?;
        self.advance();
        Ok(())
    }

    /// Octets for the host's shell.
    pub fn transmit(&self) -> &[u8] {
        &self.out[self.left..]
    }

    /// So many of them have left.
    pub fn transmitted(&mut self, octets: usize) {
        self.left += octets;
        // Those behind are moved once at the most for each that has left.
        if self.left * 2 >= self.out.len() {
            self.out.drain(..self.left);
            self.left = 0;
        }
    }

    /// Takes what the host's shell has said.
    ///
    /// # Errors
    ///
    /// What makes it of no use.
    pub fn handle_input(&mut self, mut input: &[u8]) -> Result<(), ShellError> {
        while let Some(answer) = self.answers.next(&mut input)? {
            self.handle_answer(answer)?;
        }
        self.advance();
        Ok(())
    }

    /// What something else than our shell has said last; empty where it has begun.
    pub fn said(&self) -> &str {
        self.answers.said()
    }

    /// What an SFTP server would have answered by now.
    pub fn take_replies(&mut self) -> Vec<u8> {
        self.replies.take()
    }

    /// Asks the host what there is to ask, as far as that may be under way.
    fn advance(&mut self) {
        while self.is_ready && self.asked.len() < UNDER_WAY {
            let Some((id, wanted)) = self.requests.pop(self.moving < MOVING) else {
                return;
            };
            self.begin(id, wanted);
        }
    }

    fn handle_answer(&mut self, answer: Answer) -> Result<(), ShellError> {
        match answer {
            Answer::Here => {
                self.out.put_bytes(self.word.as_bytes());
                self.out.push(b'\n');
                words::put_program(&self.word, PROGRAM, &mut self.out);
            }
            Answer::Ready(umask) => {
                self.umask = umask;
                self.is_ready = true;
                self.replies.greet();
            }
            Answer::Names(names) => {
                if let Some(Asked::Listed(_, _, Some(handle))) = self.asked.front()
                    && let handle = *handle
                    && let Some(listing) = self.handles.listing(handle)
                {
                    listing.add(names)?;
                    self.tell_names(handle);
                }
            }
            Answer::Begun => {
                if let Some(Asked::Listed(id, path, handle)) = self.asked.front_mut() {
                    let opened = self
                        .handles
                        .open(std::mem::take(path), Open::Folder(Listing::default()));
                    *handle = Some(opened);
                    let id = *id;
                    self.replies.handle(id, opened);
                }
            }
            answer => {
                let Some(asked) = self.asked.pop_front() else {
                    return Err(answer.unexpected());
                };
                self.moving -= usize::from(asked.moves());
                self.end(asked, answer)?;
            }
        }
        Ok(())
    }

    /// What was asked has come to its end, or a part of it has.
    fn end(&mut self, asked: Asked, answer: Answer) -> Result<(), ShellError> {
        match (asked, answer) {
            (Asked::Looked(mut ids), answer) => {
                if let Some(id) = ids.pop_front() {
                    match answer {
                        Answer::Attributes(attributes) => self.replies.attributes(id, &attributes),
                        Answer::Failed(words) => self.replies.failed(id, &words),
                        answer => return Err(answer.unexpected()),
                    }
                }
                if !ids.is_empty() {
                    self.asked.push_front(Asked::Looked(ids));
                }
            }
            (Asked::Written { ids, octets }, Answer::Written { counts, failed }) => {
                // Where the next line begins the host does not know any more.
                if !counts.are_whole(octets) {
                    return Err(ShellError::NotTaken(octets));
                }
                for id in ids {
                    match &failed {
                        None => self.replies.status(id, OK, ""),
                        Some(words) => self.replies.failed(id, words),
                    }
                }
            }
            (Asked::Listed(id, _, None), Answer::Failed(words)) => self.replies.failed(id, &words),
            (Asked::Listed(_, _, Some(handle)), Answer::Failed(words)) => {
                if let Some(listing) = self.handles.listing(handle) {
                    listing.failed = Some(words);
                    self.tell_names(handle);
                }
            }
            (Asked::Listed(_, _, Some(handle)), Answer::Done) => {
                if let Some(listing) = self.handles.listing(handle) {
                    listing.is_whole = true;
                    self.tell_names(handle);
                }
            }
            (Asked::Read { parts, .. }, Answer::Failed(words)) => {
                for (id, _) in parts {
                    self.replies.failed(id, &words);
                }
            }
            (
                Asked::Read {
                    handle,
                    offset,
                    parts,
                },
                Answer::Contents { octets, counts },
            ) => match counts.map(|it| it.octets(offset, octets.len() as u64)) {
                Some(Some(len)) => {
                    let read = &octets[..(len as usize).min(octets.len())];
                    self.contents((handle, offset), &parts, read);
                }
                counts => {
                    let why = match counts {
                        None => "another file has taken its place",
                        Some(_) => "it could not be read to its end",
                    };
                    for (id, _) in parts {
                        self.replies.status(id, FAILURE, why);
                    }
                }
            },
            (
                Asked::Status(id) | Asked::Opened(id, _) | Asked::Path(id) | Asked::Filesystem(id),
                Answer::Failed(words),
            ) => {
                self.replies.failed(id, &words);
            }
            (Asked::Status(id), Answer::Done) => self.replies.status(id, OK, ""),
            (Asked::Opened(id, path), Answer::Opened(identity)) => {
                let handle = self.handles.open(path, Open::File(identity));
                self.replies.handle(id, handle);
            }
            (Asked::Path(id), Answer::Path(path)) => {
                self.replies.reply(104, id, |out| {
                    out.put_u32(1);
                    out.put_string(&path);
                    out.put_string(b"");
                    Attributes::default().encode(out);
                });
            }
            (Asked::Filesystem(id), Answer::Filesystem([size, available, files, free])) => {
                self.replies.reply(201, id, |out| {
                    for number in [
                        size, size, 0, available, available, files, free, free, 0, 0, 255,
                    ] {
                        out.put_u64(number);
                    }
                });
            }
            (_, answer) => return Err(answer.unexpected()),
        }
        Ok(())
    }

    /// What has been read from there on, to those who have asked for it. That there is no more only the first one knows: the others
    /// are asked for anew.
    fn contents(&mut self, (handle, offset): (u32, u64), parts: &[(u32, u32)], octets: &[u8]) {
        let (mut at, mut others) = (0, Vec::new());
        for &(id, len) in parts {
            let end = octets.len().min(at + len as usize);
            match octets.get(at..end) {
                Some(data) if !data.is_empty() => {
                    self.replies.reply(103, id, |out| out.put_string(data))
                }
                _ if at == 0 => self.replies.status(id, EOF, ""),
                _ => {
                    let offset = offset + at as u64;
                    others.push((
                        id,
                        Wanted::Read {
                            handle,
                            offset,
                            len,
                        },
                    ));
                }
            }
            at += len as usize;
        }
        self.requests.put_back(others);
    }

    /// Names of a folder that have come, to those who have asked for some.
    fn tell_names(&mut self, handle: u32) {
        while let Some(listing) = self.handles.listing(handle) {
            let is_over = listing.names.is_empty() && listing.is_whole;
            let failed = listing.failed.clone().filter(|_| listing.names.is_empty());
            if listing.names.is_empty() && !is_over && failed.is_none() {
                return;
            }
            let Some(id) = listing.asked.pop_front() else {
                return;
            };
            if let Some(words) = failed {
                self.replies.failed(id, &words);
                continue;
            }
            if is_over {
                self.replies.status(id, EOF, "");
                continue;
            }
            let names = listing.take(NAMES);
            self.replies.reply(104, id, |out| {
                // No more than a packet has room for.
                out.put_u32(names.len() as u32);
                for (name, attributes) in &names {
                    out.put_string(name);
                    out.put_string(b"");
                    attributes.encode(out);
                }
            });
        }
    }
}

#[cfg(test)]
mod tests;
