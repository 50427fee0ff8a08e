//! A server tells all its host keys, and proves that it has them (OpenSSH's PROTOCOL section 2.5). What comes of it is the
//! caller's business: only octets pass here.

use sshoal_wire::GlobalRequest;

use super::global_requests::Asker;
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
        let sent = self.ask(Asker::HostKeys, PROVE, data);
        sent.map_err(|error| self.fail(error))
    }

    /// Passes the first offer on, if it is wanted.
    pub(super) fn handle_offered_host_keys(&mut self, request: &GlobalRequest<'_>) {
        if self.host_keys == HostKeys::Wanted && request.request_name == OFFER {
            self.host_keys = HostKeys::Unwanted;
            self.tell(Event::HostKeysOffered(request.data.to_vec()));
        }
    }
}
