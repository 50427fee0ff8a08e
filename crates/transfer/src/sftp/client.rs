//! One channel's conversation: the handshake, requests in flight, replies to whom they belong.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::time::Duration;

use sshoal_wire::Decoder;

use super::dialect::Dialect;
use super::flow::{Flow, Sent};
use super::outgoing::{Outgoing, Pieces, SharedOctets, greeting};
use super::packets::Packets;
use super::reply::{self, Reply};
use super::request::{Expected, Request};
use super::{Handle, SftpError, Status, StatusCode};

/// The version of the protocol (draft section 4).
const PROTOCOL_VERSION: u32 = 3;
/// Requests that one channel may have in flight.
pub const MAX_PENDING: usize = 1024;
/// Extensions that are read of a server's VERSION.
const MAX_EXTENSIONS: usize = 256;
/// What every server of version 3 must bear in one packet (draft section 3), and no more is sent to those that name no
/// limits.
const SAFE_LEN: u32 = 32_768;
/// The most that is read or written by one request: whole pages of any file system, and well below what fills
/// [`MAX_PACKET`](super::MAX_PACKET).
const MAX_LEN: u32 = 128 * 1024;
/// Handles that a server is asked for where it names no limit.
const DEFAULT_HANDLES: u64 = 64;

/// OpenSSH's extensions (PROTOCOL section 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // named as PROTOCOL has them
pub enum Extension {
    PosixRename,
    Hardlink,
    Fsync,
    Statvfs,
    Lsetstat,
    Limits,
    ExpandPath,
    UsersGroupsById,
}

impl Extension {
    const ALL: [Extension; 8] = [
        Extension::PosixRename,
        Extension::Hardlink,
        Extension::Fsync,
        Extension::Statvfs,
        Extension::Lsetstat,
        Extension::Limits,
        Extension::ExpandPath,
        Extension::UsersGroupsById,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Extension::PosixRename => "posix-rename@openssh.com",
            Extension::Hardlink => "hardlink@openssh.com",
            Extension::Fsync => "fsync@openssh.com",
            Extension::Statvfs => "statvfs@openssh.com",
            Extension::Lsetstat => "lsetstat@openssh.com",
            Extension::Limits => "limits@openssh.com",
            Extension::ExpandPath => "expand-path@openssh.com",
            Extension::UsersGroupsById => "users-groups-by-id@openssh.com",
        }
    }

    fn bit(self) -> u16 {
        1 << (self as u8)
    }
}

/// What one request may carry, octets, and how many files may be open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Octets asked for by one READ.
    pub read: u32,
    /// Octets of one WRITE.
    pub write: u32,
    /// Files and folders open at a time.
    pub handles: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            read: SAFE_LEN,
            write: SAFE_LEN,
            handles: DEFAULT_HANDLES as usize,
        }
    }
}

impl Limits {
    /// What is made of a server's own (PROTOCOL section 4.8); 0 is no answer.
    pub(super) fn told(packet: u64, read: u64, write: u64, handles: u64) -> Limits {
        // A packet has some octets beside its data: the handle and two dozen more.
        let room = packet.saturating_sub(1024);
        let clamp = |len: u64| match len.min(room) {
            0 => SAFE_LEN,
            len => u32::try_from(len).unwrap_or(MAX_LEN).min(MAX_LEN),
        };
        let handles = match handles {
            0 => DEFAULT_HANDLES,
            // Some for whoever else shares the account's limit, and for folders.
            told => (told / 2).clamp(1, 256),
        };
        Limits {
            read: clamp(read),
            write: clamp(write),
            handles: handles as usize,
        }
    }
}

/// The client's side of one channel. Each request carries a token of the caller's, which comes back with its reply.
#[derive(Debug)]
pub struct Client<T> {
    stage: Stage,
    packets: Packets,
    out: Outgoing,
    dialect: Dialect,
    extensions: u16,
    limits: Limits,
    /// Whether the server has been asked for its limits and has not answered: until then those count that all bear.
    awaits_limits: bool,
    next_id: u32,
    pending: HashMap<u32, Pending<T>>,
    replies: VecDeque<(T, Reply)>,
    flow: Flow,
    now: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    ExpectVersion,
    /// The same, of a server that is known: requests are made meanwhile.
    Confirm,
    Ready,
    /// The channel has ended.
    Lost,
}

#[derive(Debug)]
struct Pending<T> {
    token: T,
    request: &'static str,
    expected: Expected,
    sent: Sent,
}

/// The request that asks for the limits, the first of all.
const LIMITS_ID: u32 = 0;

impl<T> Default for Client<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Client<T> {
    /// Begins with SSH_FXP_INIT.
    pub fn new() -> Self {
        Client {
            stage: Stage::ExpectVersion,
            packets: Packets::default(),
            out: greeting(PROTOCOL_VERSION),
            dialect: Dialect::default(),
            extensions: 0,
            limits: Limits::default(),
            awaits_limits: false,
            next_id: LIMITS_ID + 1,
            pending: HashMap::new(),
            replies: VecDeque::new(),
            flow: Flow::default(),
            now: Duration::ZERO,
        }
    }

    /// It is so late, by any clock that does not go backwards.
    pub fn set_time(&mut self, now: Duration) {
        self.now = now;
    }

    /// Takes the server for one that speaks so.
    pub fn speak(&mut self, dialect: Dialect) {
        self.dialect = dialect;
    }

    /// Takes the server for the one that `known` has greeted: what that was told is not waited for once more.
    ///
    /// Only for a server that has named its limits, as OpenSSH's does: it reads one packet after the other. Its VERSION must
    /// name the same extensions.
    pub fn assume(&mut self, known: &Self) {
        let has_told = known.has(Extension::Limits) && !known.awaits_limits;
        let is_known = known.stage == Stage::Ready && has_told;
        if self.stage == Stage::ExpectVersion && is_known {
            self.stage = Stage::Confirm;
            self.extensions = known.extensions;
            self.limits = known.limits;
        }
    }

    /// Whether requests may be made.
    pub fn is_ready(&self) -> bool {
        matches!(self.stage, Stage::Ready | Stage::Confirm)
    }

    /// What the server bears.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Whether the server has this extension, in the version that we know.
    pub fn has(&self, extension: Extension) -> bool {
        self.extensions & extension.bit() != 0
    }

    /// Whether [`MAX_PENDING`] requests wait for their replies.
    pub fn is_full(&self) -> bool {
        self.pending.len() >= MAX_PENDING
    }

    /// Whether more of files may be under way than is: the line holds it, or nothing is known of that yet.
    pub fn has_room(&self) -> bool {
        self.flow.has_room()
    }

    /// Requests without a reply.
    pub fn pending(&self) -> usize {
        let greets = match self.stage {
            Stage::ExpectVersion | Stage::Confirm => true,
            Stage::Ready => self.awaits_limits,
            Stage::Lost => false,
        };
        self.pending.len() + usize::from(greets)
    }

    /// The tokens of requests without a reply, in no order.
    pub fn asked(&self) -> impl Iterator<Item = &T> {
        self.pending.values().map(|pending| &pending.token)
    }

    /// Queues a request. The caller keeps to [`is_ready`](Self::is_ready), [`has`](Self::has), [`limits`](Self::limits) and
    /// [`is_full`](Self::is_full).
    pub fn request(&mut self, request: Request<'_>, token: T) {
        debug_assert!(self.is_ready());
        debug_assert!(
            request
                .extension()
                .is_none_or(|extension| self.has(extension))
        );
        let id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1).max(LIMITS_ID + 1);
        let dialect = self.dialect;
        let sent = self.flow.begin(self.now, request.contents());
        self.out
            .push_request(|out| request.encode(id, dialect, out));
        self.pending.insert(
            id,
            Pending {
                token,
                request: request.name(),
                expected: request.expected(),
                sent,
            },
        );
    }

    /// Queues a WRITE of some of these octets, which are not copied.
    pub fn write(
        &mut self,
        handle: &Handle,
        offset: u64,
        (octets, range): (SharedOctets, Range<usize>),
        token: T,
    ) {
        // No more than the limits allow, which are a few times 32 KiB.
        let len = range.len() as u32;
        let request = Request::Write {
            handle,
            offset,
            len,
        };
        self.request(request, token);
        self.out.push_contents(octets, range);
    }

    /// The channel has ended. Returns the tokens of all requests that were not answered, in no order.
    pub fn lose(&mut self) -> Vec<T> {
        self.stage = Stage::Lost;
        self.out.clear();
        let pending = self.pending.drain();
        pending.map(|(_, pending)| pending.token).collect()
    }

    /// Octets for the channel.
    pub fn transmit(&self) -> Pieces<'_> {
        self.out.pieces()
    }

    /// How many there are.
    pub fn waiting(&self) -> usize {
        self.out.len()
    }

    /// So many of them have left.
    pub fn transmitted(&mut self, octets: usize) {
        self.out.transmitted(octets);
    }

    /// Takes what came on the channel.
    ///
    /// # Errors
    ///
    /// What breaks the protocol; the channel is of no use afterwards.
    pub fn handle_input(&mut self, mut input: &[u8]) -> Result<(), SftpError> {
        while !input.is_empty() {
            if let Some(packet) = self.packets.next(&mut input)? {
                self.handle_packet(packet)?;
            }
        }
        Ok(())
    }

    /// The next reply, and whose it is.
    pub fn poll_reply(&mut self) -> Option<(T, Reply)> {
        self.replies.pop_front()
    }

    fn handle_packet(&mut self, packet: Vec<u8>) -> Result<(), SftpError> {
        if matches!(self.stage, Stage::ExpectVersion | Stage::Confirm) {
            return self.handle_version(&packet);
        }
        let (_, id) = reply::head(&packet)?;
        if self.awaits_limits && id == LIMITS_ID {
            self.awaits_limits = false;
            // A server that names them and does not tell gets what all must bear.
            if let Reply::Limits(limits) = Reply::decode(packet, "limits", Expected::Limits)? {
                self.limits = limits;
            }
            return Ok(());
        }
        let pending = self.pending.remove(&id).ok_or(SftpError::Unasked(id))?;
        self.flow.end(self.now, pending.sent);
        let reply = Reply::decode(packet, pending.request, pending.expected)?;
        // SSH_FX_OK is no answer to a question.
        if let (
            Reply::Status(Status {
                code: StatusCode::Ok,
                ..
            }),
            false,
        ) = (&reply, pending.expected == Expected::Status)
        {
            return Err(SftpError::WrongReply {
                request: pending.request,
                kind: 101,
            });
        }
        self.replies.push_back((pending.token, reply));
        Ok(())
    }

    /// SSH_FXP_VERSION (draft section 4): a version, then pairs of an extension's name and its data.
    fn handle_version(&mut self, packet: &[u8]) -> Result<(), SftpError> {
        let mut fields = Decoder::named("SSH_FXP_VERSION", packet);
        let kind = fields.field("type").u8()?;
        if kind != reply::VERSION {
            return Err(SftpError::WrongReply {
                request: "INIT",
                kind,
            });
        }
        let version = fields.field("version").u32()?;
        if version < PROTOCOL_VERSION {
            return Err(SftpError::Version(version));
        }
        let mut extensions = 0;
        for _ in 0..MAX_EXTENSIONS {
            if fields.unread().is_empty() {
                break;
            }
            let name = fields.field("extension-name").string()?;
            let data = fields.field("extension-data").string()?;
            let known = Extension::ALL
                .into_iter()
                .find(|known| known.name().as_bytes() == name && data == version_of(*known));
            extensions |= known.map_or(0, Extension::bit);
        }
        if self.stage == Stage::Confirm {
            self.stage = Stage::Ready;
            return match extensions == self.extensions {
                true => Ok(()),
                false => Err(SftpError::AnotherServer),
            };
        }
        self.extensions = extensions;
        self.stage = Stage::Ready;
        if self.has(Extension::Limits) {
            let dialect = self.dialect;
            self.out
                .push_request(|out| Request::Limits.encode(LIMITS_ID, dialect, out));
            self.awaits_limits = true;
        }
        Ok(())
    }
}

/// The version of an extension that we know (PROTOCOL section 4).
fn version_of(extension: Extension) -> &'static [u8] {
    match extension {
        Extension::Statvfs => b"2",
        _ => b"1",
    }
}

#[cfg(test)]
mod tests;
