//! When the server's messages came, for who measures a login.

use std::time::Instant;

use super::global_requests::Asker;
use super::{Connection, Login, ServerLists};
use crate::error::ConnectionError;

/// Most arrivals that are noted: a login has a dozen, and for each key that is refused one more.
const MAX_ARRIVALS: usize = 512;

/// A message of the server's, and when it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// The `now` of the [`handle_input`](Connection::handle_input) that took its last octet.
    pub at: Instant,
    /// Its name as the RFC has it, without `SSH_MSG_`; or [`Arrival::IDENTIFICATION`].
    pub message: &'static str,
}

impl Arrival {
    /// The identification string, which is no message (RFC 4253 section 4.2).
    pub const IDENTIFICATION: &'static str = "identification";
}

/// What is kept for who measures: other connections stay small.
#[derive(Default)]
pub(super) struct Kept {
    /// As long as the settings want it kept.
    pub(super) lists: Option<ServerLists>,
    /// The algorithm of the first key exchange.
    pub(super) kex: Option<&'static str>,
    arrivals: Vec<Arrival>,
}

impl Connection {
    /// What has come so far, the first 512 of it, if the settings have it noted
    /// ([`Settings::notes_arrivals`](crate::Settings::notes_arrivals)).
    pub fn arrivals(&self) -> &[Arrival] {
        self.kept.as_ref().map_or(&[], |kept| &kept.arrivals)
    }

    pub(super) fn note_arrival(&mut self, at: Instant, message: &'static str) {
        if self.settings.notes_arrivals
            && let Some(kept) = &mut self.kept
            && kept.arrivals.len() < MAX_ARRIVALS
        {
            kept.arrivals.push(Arrival { at, message });
        }
    }

    /// Asks the server for a sign of life, which costs it next to nothing: the answer comes after a round trip. Does
    /// nothing before the login.
    ///
    /// # Errors
    ///
    /// The error that ended the connection.
    pub fn ask_for_sign_of_life(&mut self) -> Result<(), ConnectionError> {
        self.check()?;
        match self.login {
            Login::Authenticated => {
                let sent = self.send_keepalive();
                sent.map_err(|error| self.fail(error))
            }
            Login::Unkeyed | Login::Authenticating(_) => Ok(()),
        }
    }

    /// Whether the server owes a sign of life.
    pub fn awaits_sign_of_life(&self) -> bool {
        self.replies.count(Asker::Keepalive) > 0
    }
}
