//! What a master answers (PROTOCOL.mux sections 2 to 10).

use sshoal_wire::Put;

use crate::VERSION;
use crate::request::HELLO;

const OK: u32 = 0x8000_0001;
const PERMISSION_DENIED: u32 = 0x8000_0002;
const FAILURE: u32 = 0x8000_0003;
const EXIT_MESSAGE: u32 = 0x8000_0004;
const ALIVE: u32 = 0x8000_0005;
const SESSION_OPENED: u32 = 0x8000_0006;
const REMOTE_PORT: u32 = 0x8000_0007;
const TTY_ALLOC_FAIL: u32 = 0x8000_0008;
const PROXY: u32 = 0x8000_000f;

/// The longest reason that is sent, octets.
const MAX_REASON: usize = 1024;

/// The answer to one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply<'a> {
    /// It is done.
    Ok,
    /// It is not allowed, and why.
    PermissionDenied(&'a str),
    /// It failed, and why.
    Failure(&'a str),
    /// The master's process: a passenger signals it with SIGWINCH when its terminal changes its size.
    Alive {
        /// Its number.
        pid: u32,
    },
    /// The session, or the stdio forward, is open.
    SessionOpened {
        /// What its later messages are about.
        session: u32,
    },
    /// The server listens there.
    RemotePort(u32),
    /// SSH packets from here on.
    Proxy,
}

impl Reply<'_> {
    /// Whether it says no.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, Reply::PermissionDenied(_) | Reply::Failure(_))
    }

    /// Appends the answer to the request with this identifier, its length before it.
    pub(crate) fn encode(&self, id: u32, out: &mut Vec<u8>) {
        let (number, rest) = match *self {
            Reply::Ok => (OK, Vec::new()),
            Reply::PermissionDenied(reason) => (PERMISSION_DENIED, string(reason)),
            Reply::Failure(reason) => (FAILURE, string(reason)),
            Reply::Alive { pid } => (ALIVE, pid.to_be_bytes().to_vec()),
            Reply::SessionOpened { session } => (SESSION_OPENED, session.to_be_bytes().to_vec()),
            Reply::RemotePort(port) => (REMOTE_PORT, port.to_be_bytes().to_vec()),
            Reply::Proxy => (PROXY, Vec::new()),
        };
        message(number, id, &rest, out);
    }
}

/// Our hello, without extensions: none is defined.
pub(crate) fn hello(out: &mut Vec<u8>) {
    message(HELLO, VERSION, &[], out);
}

/// A session's command has ended with this status.
pub(crate) fn exit_message(session: u32, status: u32, out: &mut Vec<u8>) {
    message(EXIT_MESSAGE, session, &status.to_be_bytes(), out);
}

/// The server gave a session no terminal.
pub(crate) fn tty_alloc_fail(session: u32, out: &mut Vec<u8>) {
    message(TTY_ALLOC_FAIL, session, &[], out);
}

fn message(number: u32, first: u32, rest: &[u8], out: &mut Vec<u8>) {
    out.put_u32(8 + rest.len() as u32);
    out.put_u32(number);
    out.put_u32(first);
    out.put_bytes(rest);
}

fn string(reason: &str) -> Vec<u8> {
    let mut end = reason.len().min(MAX_REASON);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    let mut out = Vec::with_capacity(4 + end);
    out.put_string(&reason.as_bytes()[..end]);
    out
}
