//! What is asked of the server for the connection as a whole, and whose the replies are (RFC 4254 section 4).

use std::collections::VecDeque;

use sshoal_wire::GlobalRequest;

use super::Connection;
use crate::error::{ConnectionError, Misbehaviour};
use crate::event::Event;

/// Most requests of the caller's that may wait for their replies.
const MAX_GLOBAL_REQUESTS: u32 = 256;

/// Who waits for a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asker {
    /// Any reply is a sign of life.
    Keepalive,
    /// The proof of host keys.
    HostKeys,
    Caller,
}

/// The replies that the server owes, in the order of their requests; how many for each in a row. There is no list while it owes
/// none: idle connections stay small.
#[expect(
    clippy::box_collection,
    reason = "a connection has one for a moment at a time"
)]
#[derive(Debug, Default)]
pub(super) struct OwedReplies(Option<Box<VecDeque<(Asker, u32)>>>);

impl OwedReplies {
    pub(super) fn push(&mut self, asker: Asker) {
        let owed = self.0.get_or_insert_default();
        match owed.back_mut() {
            Some((last, number)) if *last == asker => *number = number.saturating_add(1),
            _ => owed.push_back((asker, 1)),
        }
    }

    /// Whose the next reply is.
    fn pop(&mut self) -> Option<Asker> {
        let owed = self.0.as_mut()?;
        let (asker, number) = owed.front_mut()?;
        let asker = *asker;
        *number -= 1;
        if *number == 0 {
            owed.pop_front();
        }
        if owed.is_empty() {
            self.0 = None;
        }
        Some(asker)
    }

    /// How many are owed to somebody.
    pub(super) fn count(&self, asker: Asker) -> u32 {
        let all = self.0.iter().flat_map(|owed| owed.iter());
        let owed = all.filter(|(owed, _)| *owed == asker);
        owed.map(|(_, number)| number).sum()
    }
}

impl Connection {
    /// Asks the server for something that concerns the whole connection, for example "tcpip-forward" (RFC 4254 section 7.1). An
    /// [`Event::GlobalReply`] brings the answer; they come in the order of the requests. Returns whether it was sent: not
    /// before the login, and not while too many are unanswered.
    ///
    /// # Errors
    ///
    /// The error that ended the connection.
    pub fn send_global_request(
        &mut self,
        name: &[u8],
        data: &[u8],
    ) -> Result<bool, ConnectionError> {
        self.check()?;
        let is_too_early = !matches!(self.login, super::Login::Authenticated);
        if is_too_early || self.replies.count(Asker::Caller) >= MAX_GLOBAL_REQUESTS {
            return Ok(false);
        }
        let sent = self.ask(Asker::Caller, name, data);
        sent.map_err(|error| self.fail(error))?;
        Ok(true)
    }

    /// Sends a request whose reply is for `asker`.
    pub(super) fn ask(
        &mut self,
        asker: Asker,
        request_name: &[u8],
        data: &[u8],
    ) -> Result<(), ConnectionError> {
        self.replies.push(asker);
        let request = GlobalRequest {
            request_name,
            want_reply: true,
            data,
        };
        self.send(|out| request.encode(out))
    }

    /// REQUEST_SUCCESS with its data, or REQUEST_FAILURE.
    pub(super) fn handle_global_reply(
        &mut self,
        message: &'static str,
        data: Option<&[u8]>,
    ) -> Result<(), ConnectionError> {
        let reply = || data.map(<[u8]>::to_vec);
        match self.replies.pop() {
            Some(Asker::Keepalive) => self.keepalive.handle_reply(),
            Some(Asker::HostKeys) => self.tell(Event::HostKeysProven(reply())),
            Some(Asker::Caller) => self.tell(Event::GlobalReply(reply())),
            None => return Err(Misbehaviour::UnaskedReply { message }.into()),
        }
        Ok(())
    }
}
