//! One connection to an agent.
//!
//! A request passes through here in the order of the functions: [`AgentConnection::sign`] and its like queue it,
//! [`poll_transmit`](AgentConnection::poll_transmit) and [`transmitted`](AgentConnection::transmitted) bring it to the
//! agent, [`handle_input`](AgentConnection::handle_input) reads the answer,
//! [`poll_event`](AgentConnection::poll_event) hands it out.
//!
//! An agent serves one request at a time a connection, so one is in flight and the others wait here.

use std::collections::VecDeque;

use crate::answer::{Answer, decode_answer};
use crate::error::{ConnectionError, RequestError, SubmitError};
use crate::request::{MAX_MESSAGE_LEN, Request, SessionBind};

/// Most requests that one connection holds: waiting, in flight, or answered and not yet polled.
pub const MAX_REQUESTS: usize = 64;

/// Bytes of the length that comes before every message.
const LENGTH_LEN: usize = 4;

/// Which request an event answers. Unique in its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(u64);

/// The end of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The request.
    pub request: RequestId,
    /// How it ended.
    pub outcome: Result<Answer, RequestError>,
}

/// A connection to an agent, without its socket.
///
/// Once [bound](Self::bind_session) it serves one SSH session; a fleet that binds needs a connection a host.
#[derive(Debug, Default)]
pub struct AgentConnection {
    /// In order; the first is in flight as soon as a byte of it was transmitted.
    requests: VecDeque<(RequestId, Request)>,
    /// Bytes of the first request that were transmitted.
    transmitted: usize,
    /// The beginning of an answer.
    input: Vec<u8>,
    events: VecDeque<Event>,
    next_id: u64,
    bound: bool,
    failed: Option<ConnectionError>,
}

impl AgentConnection {
    /// A connection just opened.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks which keys the agent holds; answered with [`Answer::Identities`].
    ///
    /// # Errors
    /// The connection has failed, or holds [`MAX_REQUESTS`].
    pub fn request_identities(&mut self) -> Result<RequestId, SubmitError> {
        self.submit(Request::identities())
    }

    /// Asks to sign `data` with the private half of `key`, a public key blob or certificate, by the authentication
    /// algorithm of that name; answered with [`Answer::Signature`].
    ///
    /// For a security key the answer comes when its user has touched it: it may take a minute, or never come.
    ///
    /// # Errors
    /// As [`request_identities`](Self::request_identities); the key's type is unknown or does not sign with
    /// `algorithm`; key and data are together over [`MAX_MESSAGE_LEN`].
    pub fn sign(
        &mut self,
        key: &[u8],
        algorithm: &str,
        data: &[u8],
    ) -> Result<RequestId, SubmitError> {
        self.submit(Request::sign(key, algorithm, data))
    }

    /// Binds the connection to an SSH session, so that keys restricted to certain hosts can be used; answered with
    /// [`Answer::Bound`]. To be asked before signatures. A refusal is no obstacle for unrestricted keys: OpenSSH's
    /// client goes on as well (sshconnect2.c, `get_agent_identities`).
    ///
    /// # Errors
    /// As [`request_identities`](Self::request_identities); a binding for user authentication was asked before, after
    /// which an agent takes no other (ssh-agent.c, `process_ext_session_bind`).
    pub fn bind_session(&mut self, bind: SessionBind<'_>) -> Result<RequestId, SubmitError> {
        if self.bound {
            return Err(SubmitError::AlreadyBound);
        }
        let id = self.submit(Request::session_bind(bind))?;
        self.bound = !bind.is_forwarding;
        Ok(id)
    }

    fn submit(&mut self, request: Result<Request, SubmitError>) -> Result<RequestId, SubmitError> {
        if let Some(error) = &self.failed {
            return Err(error.clone().into());
        }
        if self.requests.len() + self.events.len() >= MAX_REQUESTS {
            return Err(SubmitError::Full);
        }
        let id = RequestId(self.next_id);
        self.requests.push_back((id, request?));
        self.next_id += 1;
        Ok(id)
    }

    /// Bytes to write to the agent's socket, if any; say [`transmitted`](Self::transmitted) how many went.
    #[must_use]
    pub fn poll_transmit(&self) -> Option<&[u8]> {
        let (_, first) = self.requests.front()?;
        let pending = &first.bytes[self.transmitted..];
        (!pending.is_empty()).then_some(pending)
    }

    /// `len` bytes at the front of [`poll_transmit`](Self::poll_transmit) were written.
    pub fn transmitted(&mut self, len: usize) {
        if let Some((_, first)) = self.requests.front() {
            self.transmitted = first.bytes.len().min(self.transmitted + len);
        }
    }

    /// Takes all bytes read from the agent's socket.
    ///
    /// # Errors
    /// The agent does not follow its protocol. The connection is over: every request has got its event.
    pub fn handle_input(&mut self, bytes: &[u8]) -> Result<(), ConnectionError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.read_answer(bytes).map_err(|error| self.fail(error))
    }

    /// The agent closed its socket, or reading or writing failed: whatever is unanswered has failed.
    pub fn handle_close(&mut self) {
        if self.failed.is_none() {
            self.fail(ConnectionError::Closed);
        }
    }

    /// The end of the oldest request that has ended.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Whether a request waits for its answer.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        !self.requests.is_empty()
    }

    fn read_answer(&mut self, bytes: &[u8]) -> Result<(), ConnectionError> {
        // Only the request in flight can be answered: the next one is not even written yet.
        let asked = self
            .requests
            .front()
            .is_some_and(|(_, first)| first.bytes.len() == self.transmitted);
        if !asked && !bytes.is_empty() {
            return Err(ConnectionError::Unasked { len: bytes.len() });
        }
        self.input.extend_from_slice(bytes);
        let Some((length, rest)) = self.input.split_first_chunk::<LENGTH_LEN>() else {
            return Ok(());
        };
        let claimed = u32::from_be_bytes(*length);
        let len = match usize::try_from(claimed) {
            Ok(len @ 1..=MAX_MESSAGE_LEN) => len,
            _ => return Err(ConnectionError::MessageLength { len: claimed }),
        };
        let Some((message, beyond)) = rest.split_at_checked(len) else {
            return Ok(());
        };
        if !beyond.is_empty() {
            return Err(ConnectionError::Unasked { len: beyond.len() });
        }
        if let Some((request, asked)) = self.requests.front() {
            let outcome = decode_answer(message, asked.kind)?;
            self.events.push_back(Event {
                request: *request,
                outcome,
            });
        }
        self.requests.pop_front();
        self.transmitted = 0;
        self.input.clear();
        Ok(())
    }

    /// Ends the connection, and every request with it.
    fn fail(&mut self, error: ConnectionError) -> ConnectionError {
        let unanswered = self.requests.drain(..).map(|(request, _)| Event {
            request,
            outcome: Err(error.clone().into()),
        });
        self.events.extend(unanswered);
        self.transmitted = 0;
        self.input = Vec::new();
        self.failed = Some(error.clone());
        error
    }
}

#[cfg(test)]
mod tests;
