//! Shortcuts of one connection, and what becomes of those that a server does not bear.
//!
//! A guessed key exchange and merged flights rest on what servers of this name and key were like before. Servers change,
//! and some do not do what the RFCs say: asyncssh 2.24.1 takes a guess for right whose host-key algorithm was wrong
//! (RFC 4253 section 7.1 has it ignored), so that its signature is one of another key exchange. A connection that may
//! have ended because of a shortcut says nothing about the host: the next one goes without it.

use std::cell::RefCell;
use std::collections::HashMap;

use sshoal_proto::{Connection, ConnectionError, ExecFate, Phase};

use crate::plan::Endpoint;
use crate::server_cache::KnownServer;
use crate::worker::{Report, Worker};

/// The shortcuts that a connection takes.
pub(crate) struct Shortcuts {
    /// The first message of the key exchange is guessed.
    pub(super) guesses: bool,
    /// Login and command may share a flight, as far as this side knows.
    pub(super) merges: bool,
    /// What an earlier connection of this run has put in doubt, and this one does without.
    pub(super) doubt: Option<Doubt>,
    /// What is remembered of the server, by the fingerprint of its key.
    pub(super) known: Option<(String, KnownServer)>,
}

/// A shortcut that a server may not bear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// A guessed key exchange.
    Guessing,
    /// Login and command in one flight; guesses are left out then, too.
    Merging,
}

/// The doubts of one thread's run, by the address of the endpoint, which the plan keeps alive.
#[derive(Default)]
pub(crate) struct Doubts(RefCell<HashMap<usize, Doubt>>);

impl Doubts {
    pub(super) fn about(&self, endpoint: &Endpoint) -> Option<Doubt> {
        self.0.borrow().get(&key(endpoint)).copied()
    }

    fn raise(&self, endpoint: &Endpoint, doubt: Doubt) {
        self.0.borrow_mut().insert(key(endpoint), doubt);
    }
}

fn key(endpoint: &Endpoint) -> usize {
    std::ptr::from_ref(endpoint) as usize
}

impl Shortcuts {
    /// A connection that takes none.
    pub(crate) fn none() -> Shortcuts {
        Shortcuts {
            guesses: false,
            merges: false,
            doubt: None,
            known: None,
        }
    }

    /// Whether the connection, which has ended with `error` or below it, may have ended because of a shortcut, so that
    /// another attempt without it is due. `command` is what is known of the command: it must not have been sent.
    pub(crate) fn are_to_blame(
        &self,
        worker: &Worker,
        endpoint: &Endpoint,
        connection: &Connection,
        error: Option<&ConnectionError>,
        command: ExecFate,
    ) -> bool {
        let doubt = self
            .suspect(connection, error)
            .filter(|_| command.safe_to_resend());
        if let Some(doubt) = doubt {
            tracing::debug!(
                host = endpoint.label,
                ?doubt,
                "tried again without a shortcut"
            );
            worker.doubts.raise(endpoint, doubt);
        }
        doubt.is_some()
    }

    fn suspect(&self, connection: &Connection, error: Option<&ConnectionError>) -> Option<Doubt> {
        let is_about_something_else = matches!(
            error,
            Some(ConnectionError::HostKeyRefused | ConnectionError::NoCommonAlgorithm { .. })
        );
        // Before its KEXINIT a server has seen nothing of a guess.
        let has_answered = connection.server_profile().is_some();
        match (connection.phase(), error) {
            (Phase::KeyExchange, _) if self.guesses && has_answered && !is_about_something_else => {
                Some(Doubt::Guessing)
            }
            (Phase::Authentication, Some(ConnectionError::Disconnected { .. })) if self.merges => {
                Some(Doubt::Merging)
            }
            _ => None,
        }
    }

    /// Remembers what the server is, if that is news; `pipelining` if merged flights have worked or would.
    pub(crate) fn learn(&self, worker: &Worker, connection: &Connection, pipelining: bool) {
        let guess_was_right = self
            .known
            .as_ref()
            .is_some_and(|(_, known)| connection.server_profile() == Some(&known.profile));
        let bears_guesses = self.doubt != Some(Doubt::Guessing) || !guess_was_right;
        let pipelining = pipelining && self.merges && bears_guesses;
        let Some((fingerprint, server)) =
            worker
                .servers
                .news(connection, self.known.as_ref(), pipelining)
        else {
            return;
        };
        // The server may show another key than the one that it was remembered by.
        if let Some((misleading, _)) = self
            .known
            .as_ref()
            .filter(|(known, _)| *known != fingerprint)
        {
            worker.report(Report::Learned(misleading.clone(), server.clone()));
        }
        worker.report(Report::Learned(fingerprint, server));
    }
}

#[cfg(test)]
#[path = "shortcuts_tests.rs"]
mod tests;
