//! A server tells all its host keys, and proves that it has them (OpenSSH's PROTOCOL section 2.5). What comes of it is the
//! caller's business: only octets pass here.

use sshoal_wire::GlobalRequest;

use super::{Connection, Login};
use crate::error::ConnectionError;
use crate::event::Event;

const OFFER: &[u8] = b"hostkeys-00@openssh.com";
const PROVE: &[u8] = b"hostkeys-prove-00@openssh.com";

/// How far the connection is with the server's host keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HostKeys {
    /// Nobody wants to hear of them, or they have been heard of.
    Unwanted,
    /// The offer is passed on when it comes.
    Wanted,
    /// The server owes a proof, and before it so many other replies.
    ToBeProven {
        /// Replies come in the order of their requests (RFC 4254 section 4).
        replies_before: u32,
    },
}

impl Connection {
    /// Asks for [`Event::HostKeysOffered`], should the server tell its host keys.
    pub fn hear_host_keys(&mut self) {
        if self.host_keys == HostKeys::Unwanted {
            self.host_keys = HostKeys::Wanted;
        }
    }

    /// Has the server prove that it holds keys it has offered: `data` is what follows `want_reply` of
    /// hostkeys-prove-00@openssh.com. [`Event::HostKeysProven`] brings the answer.
    ///
    /// # Errors
    ///
    /// What ended the connection.
    pub fn prove_host_keys(&mut self, data: &[u8]) -> Result<(), ConnectionError> {
        self.check()?;
        if !matches!(self.login, Login::Authenticated) {
            return Ok(());
        }
        self.host_keys = HostKeys::ToBeProven {
            replies_before: self.keepalive.unanswered(),
        };
        let request = GlobalRequest {
            request_name: PROVE,
            want_reply: true,
            data,
        };
        let sent = self.send(|out| request.encode(out));
        sent.map_err(|error| self.fail(error))
    }

    /// Passes the first offer on, if it is wanted.
    pub(super) fn handle_offered_host_keys(&mut self, request: &GlobalRequest<'_>) {
        if self.host_keys == HostKeys::Wanted && request.request_name == OFFER {
            self.host_keys = HostKeys::Unwanted;
            self.tell(Event::HostKeysOffered(request.data.to_vec()));
        }
    }

    /// Takes a reply, `None` for REQUEST_FAILURE, if it is the proof that the server owes.
    pub(super) fn takes_proof(&mut self, reply: Option<&[u8]>) -> bool {
        match &mut self.host_keys {
            HostKeys::ToBeProven { replies_before: 0 } => {
                self.host_keys = HostKeys::Unwanted;
                self.tell(Event::HostKeysProven(reply.map(<[u8]>::to_vec)));
                true
            }
            HostKeys::ToBeProven { replies_before } => {
                *replies_before -= 1;
                false
            }
            HostKeys::Unwanted | HostKeys::Wanted => false,
        }
    }
}
