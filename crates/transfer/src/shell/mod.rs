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
//! Files have no handles there: each request opens its path anew.

mod answers;
mod handles;
mod requests;
mod words;

use std::collections::VecDeque;

use answers::{Answer, Answers};
use handles::{Handles, Listing, Open};
use requests::{Requests, Wanted};
use sshoal_wire::Put;
use words::Call;

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

const OK: u32 = 0;
const EOF: u32 = 1;
const NO_SUCH_FILE: u32 = 2;
const PERMISSION_DENIED: u32 = 3;
const FAILURE: u32 = 4;
const OP_UNSUPPORTED: u32 = 8;

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
    replies: Vec<u8>,
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
            replies: Vec::new(),
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
        std::mem::take(&mut self.replies)
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

    fn begin(&mut self, id: u32, wanted: Wanted) {
        let asked = match self.ask(id, wanted) {
            Ok(asked) => asked,
            Err(code) => return self.status(id, code, ""),
        };
        if let Some(asked) = asked {
            self.moving += usize::from(asked.moves());
            self.answers.expect(match &asked {
                Asked::Looked(ids) => answers::Expected::Lines(ids.len()),
                Asked::Listed(..) => answers::Expected::Names,
                Asked::Read { .. } => answers::Expected::Contents,
                Asked::Written { .. } => answers::Expected::Written,
                Asked::Path(_) => answers::Expected::Path,
                _ => answers::Expected::Lines(1),
            });
            self.asked.push_back(asked);
        }
    }

    /// Has the host do something; `None` if that needs no host. An error is a status' code.
    fn ask(&mut self, id: u32, wanted: Wanted) -> Result<Option<Asked>, u32> {
        let mut call = Call::new(&self.word, &mut self.out);
        Ok(Some(match wanted {
            Wanted::Look { follow, path } => {
                let mut ids = VecDeque::from([id]);
                let mut paths = vec![path];
                while let Some((id, path)) = self.requests.pop_look(follow, paths.len() < PATHS) {
                    ids.push_back(id);
                    paths.push(path);
                }
                call.name("st").raw(if follow { "-L" } else { "''" });
                for path in &paths {
                    call.path(path);
                }
                call.end();
                Asked::Looked(ids)
            }
            Wanted::LookOpen(handle) => {
                let path = self.handles.path(handle).ok_or(FAILURE)?;
                call.name("st").raw("-L").path(path);
                call.end();
                Asked::Looked(VecDeque::from([id]))
            }
            Wanted::OpenRead(path) => {
                call.name("rd").path(&path);
                call.end();
                Asked::Opened(id, path)
            }
            Wanted::OpenWrite(path) => {
                call.name("wr").path(&path);
                call.end();
                Asked::Opened(id, path)
            }
            Wanted::OpenNew(path, mode) => {
                call.name("nw").path(&path).mode(mode & !self.umask);
                call.end();
                Asked::Opened(id, path)
            }
            Wanted::OpenFolder(path) => {
                call.name("li").path(&path);
                call.end();
                Asked::Listed(id, path, None)
            }
            Wanted::Names(handle) => {
                let listing = self.handles.listing(handle).ok_or(FAILURE)?;
                listing.asked.push_back(id);
                self.tell_names(handle);
                return Ok(None);
            }
            Wanted::Close(handle) => {
                let code = if self.handles.close(handle) {
                    OK
                } else {
                    FAILURE
                };
                return Err(code);
            }
            Wanted::Limits => {
                self.limits(id);
                return Ok(None);
            }
            Wanted::Read {
                handle,
                offset,
                len,
            } => {
                let (path, identity) = self.handles.file(handle).ok_or(FAILURE)?;
                let mut parts = vec![(id, len)];
                let mut all = u64::from(len);
                while all < TOGETHER
                    && let Some(part) = self.requests.pop_read(handle, offset + all)
                {
                    all += u64::from(part.1);
                    parts.push(part);
                }
                call.name("ge").path(path).raw(identity).number(offset);
                call.number(all / words::BLOCK).number(all % words::BLOCK);
                call.number(all);
                call.end();
                Asked::Read {
                    handle,
                    offset,
                    parts,
                }
            }
            Wanted::Write {
                handle,
                offset,
                data,
            } => {
                let (path, identity) = self.handles.file(handle).ok_or(FAILURE)?;
                let (mut ids, mut all) = (vec![id], data.len() as u64);
                let mut parts = vec![data];
                while all < TOGETHER
                    && let Some((id, data)) = self.requests.pop_write(handle, offset + all)
                {
                    all += data.len() as u64;
                    ids.push(id);
                    parts.push(data);
                }
                call.name("pu").path(path).raw(identity).number(offset);
                call.number(all / words::BLOCK).number(all % words::BLOCK);
                call.end();
                parts.iter().for_each(|data| self.out.put_bytes(data));
                Asked::Written { ids, octets: all }
            }
            Wanted::Set {
                path,
                attributes,
                is_link,
            } => return self.set(id, &path, attributes, is_link),
            Wanted::SetOpen(handle, attributes) => {
                let path = self.handles.path(handle).ok_or(FAILURE)?.to_vec();
                return self.set(id, &path, attributes, false);
            }
            Wanted::Sync(handle) => {
                let path = self.handles.path(handle).ok_or(FAILURE)?;
                call.name("sy").path(path);
                call.end();
                Asked::Status(id)
            }
            Wanted::Remove(path) => {
                call.name("rm_").path(&path);
                call.end();
                Asked::Status(id)
            }
            Wanted::MakeFolder(path, mode) => {
                call.name("md").path(&path).mode(mode & !self.umask);
                call.end();
                Asked::Status(id)
            }
            Wanted::RemoveFolder(path) => {
                call.name("is rmdir").path(&path);
                call.end();
                Asked::Status(id)
            }
            Wanted::Rename { from, to, replaces } => {
                call.name(if replaces { "mv_" } else { "rn" });
                call.path(&from).path(&to);
                call.end();
                Asked::Status(id)
            }
            Wanted::Symlink { target, link } => {
                call.name("ln_ -s").words(&target).path(&link);
                call.end();
                Asked::Status(id)
            }
            Wanted::Hardlink { from, to } => {
                call.name("ln_ ''").path(&from).path(&to);
                call.end();
                Asked::Status(id)
            }
            Wanted::LinkTarget(path) => {
                call.name("rl").path(&path);
                call.end();
                Asked::Path(id)
            }
            Wanted::WholePath(path) => {
                call.name("rp").path(&path);
                call.end();
                Asked::Path(id)
            }
            Wanted::Filesystem(path) => {
                call.name("vf").path(&path);
                call.end();
                Asked::Filesystem(id)
            }
            Wanted::Nothing => return Err(OP_UNSUPPORTED),
        }))
    }

    fn set(
        &mut self,
        id: u32,
        path: &[u8],
        attributes: Attributes,
        is_link: bool,
    ) -> Result<Option<Asked>, u32> {
        let Attributes {
            size,
            owner,
            mode,
            times,
        } = attributes;
        // Neither can be set of a link on Linux.
        if is_link && (mode.is_some() || size.is_some()) {
            return Err(OP_UNSUPPORTED);
        }
        let number = |number: Option<u64>| number.map_or("''".to_owned(), |it| it.to_string());
        let mut call = Call::new(&self.word, &mut self.out);
        call.name("se").path(path);
        call.raw(if is_link { "-h" } else { "''" });
        call.raw(&owner.map_or("''".to_owned(), |(user, group)| format!("{user}:{group}")));
        match mode {
            Some(mode) => call.mode(mode & 0o7777),
            None => call.raw("''"),
        };
        call.raw(&number(times.map(|(_, modified)| modified.into())));
        call.raw(&number(times.map(|(accessed, _)| accessed.into())));
        call.raw(&number(size));
        call.end();
        Ok(Some(Asked::Status(id)))
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
                self.greet();
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
                    self.handle(id, opened);
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
                        Answer::Attributes(attributes) => self.attributes(id, &attributes),
                        Answer::Failed(words) => self.failed(id, &words),
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
                        None => self.status(id, OK, ""),
                        Some(words) => self.failed(id, words),
                    }
                }
            }
            (Asked::Listed(id, _, None), Answer::Failed(words)) => self.failed(id, &words),
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
                    self.failed(id, &words);
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
                        self.status(id, FAILURE, why);
                    }
                }
            },
            (
                Asked::Status(id) | Asked::Opened(id, _) | Asked::Path(id) | Asked::Filesystem(id),
                Answer::Failed(words),
            ) => {
                self.failed(id, &words);
            }
            (Asked::Status(id), Answer::Done) => self.status(id, OK, ""),
            (Asked::Opened(id, path), Answer::Opened(identity)) => {
                let handle = self.handles.open(path, Open::File(identity));
                self.handle(id, handle);
            }
            (Asked::Path(id), Answer::Path(path)) => {
                self.reply(104, id, |out| {
                    out.put_u32(1);
                    out.put_string(&path);
                    out.put_string(b"");
                    Attributes::default().encode(out);
                });
            }
            (Asked::Filesystem(id), Answer::Filesystem([size, available, files, free])) => {
                self.reply(201, id, |out| {
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
                Some(data) if !data.is_empty() => self.reply(103, id, |out| out.put_string(data)),
                _ if at == 0 => self.status(id, EOF, ""),
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
                self.failed(id, &words);
                continue;
            }
            if is_over {
                self.status(id, EOF, "");
                continue;
            }
            let names = listing.take(NAMES);
            self.reply(104, id, |out| {
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

    /// SSH_FXP_VERSION, with what is done here as OpenSSH's extensions.
    fn greet(&mut self) {
        let start = self.replies.len();
        self.replies.put_u32(0);
        self.replies.put_u8(2);
        self.replies.put_u32(3);
        for (name, version) in requests::EXTENSIONS {
            self.replies.put_string(name);
            self.replies.put_string(version);
        }
        self.close_packet(start);
    }

    fn limits(&mut self, id: u32) {
        self.reply(201, id, |out| {
            // Nothing is open on the host.
            for number in [256 * 1024, 128 * 1024, 128 * 1024, 512] {
                out.put_u64(number);
            }
        });
    }

    fn handle(&mut self, id: u32, handle: u32) {
        self.reply(102, id, |out| out.put_string(&handle.to_be_bytes()));
    }

    fn attributes(&mut self, id: u32, attributes: &Attributes) {
        self.reply(105, id, |out| attributes.encode(out));
    }

    /// By what a program has said.
    fn failed(&mut self, id: u32, words: &str) {
        let (code, reason) = words::understood(words);
        self.status(id, code, reason);
    }

    fn status(&mut self, id: u32, code: u32, message: &str) {
        self.reply(101, id, |out| {
            out.put_u32(code);
            out.put_string(message.as_bytes());
            out.put_string(b"");
        });
    }

    fn reply(&mut self, kind: u8, id: u32, body: impl FnOnce(&mut Vec<u8>)) {
        let start = self.replies.len();
        self.replies.put_u32(0);
        self.replies.put_u8(kind);
        self.replies.put_u32(id);
        body(&mut self.replies);
        self.close_packet(start);
    }

    fn close_packet(&mut self, start: usize) {
        let len = (self.replies.len() - start - 4) as u32;
        self.replies[start..start + 4].copy_from_slice(&len.to_be_bytes());
    }
}

#[cfg(test)]
mod tests;
