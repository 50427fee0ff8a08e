//! The session in which a host hashes its files, beside the SFTP channels.

use std::time::{Duration, Instant};

use sshoal_proto::{Connection, ConnectionError, Event, LocalChannel, Stream};
use sshoal_transfer::HostHashes;

use super::beside::{self, PATIENCE};
use super::engine::Engine;
use super::rate::{Rate, granted};

/// How long it may take to hash nothing: a disk may have to be woken.
const SLOWNESS: Duration = Duration::from_secs(600);
/// Octets of contents that it hashes in a second at the least, beyond that.
const LEAST_PACE: u64 = 4 * 1024 * 1024;

/// A host's session.
#[derive(Default)]
pub(super) struct HashSession {
    session: Option<Session>,
    /// When it was opened, or last asked or answered something.
    since: Option<Instant>,
    is_busy: bool,
}

struct Session {
    number: LocalChannel,
    started: bool,
    ended: bool,
    /// Octets that have come and that the server has not been told of.
    owed: usize,
}

impl HashSession {
    /// Takes what is about the session; returns whether it is.
    pub(super) fn handle(&mut self, engine: &mut Engine, event: &Event, input: &[u8]) -> bool {
        let session = self.session.as_mut();
        let Some(session) = session.filter(|it| beside::channel(event) == Some(it.number)) else {
            return false;
        };
        match event {
            Event::Data { stream, range, .. } => {
                session.owed += range.len();
                self.since = Some(Instant::now());
                // What a program says of a file that it cannot read is told by its answer, too.
                if *stream == Stream::Stdout {
                    engine.hashes().hear(&input[range.clone()]);
                    engine.handle_hashes();
                }
            }
            Event::Started(_) => session.started = true,
            Event::ExitStatus { .. } | Event::ExitSignal { .. } => {}
            _ => {
                session.ended = true;
                engine.hashes().end();
                engine.handle_hashes();
            }
        }
        true
    }

    /// Opens the session if it is wanted, and gives it up if nothing comes of it.
    pub(super) fn attend(
        &mut self,
        engine: &mut Engine,
        connection: &mut Connection,
        wake: &mut Option<Instant>,
    ) -> Result<(), ConnectionError> {
        let now = Instant::now();
        if engine.hashes().wants_session() {
            let number = connection.open_session(beside::request(HostHashes::command()))?;
            engine.hashes().opened();
            self.session = Some(Session {
                number,
                started: false,
                ended: false,
                owed: 0,
            });
            self.since = Some(now);
        }
        let is_busy = engine.hashes().hashing().is_some();
        if is_busy && !std::mem::replace(&mut self.is_busy, is_busy) {
            self.since = Some(now);
        }
        self.is_busy = is_busy;
        let deadline = patience(engine.hashes()).zip(self.since);
        if let Some(by) = deadline.map(|(patience, since)| since + patience) {
            if by <= now {
                engine.hashes().end();
                engine.handle_hashes();
            } else {
                *wake = wake.iter().copied().chain([by]).min();
            }
        }
        if let Some(session) = &mut self.session {
            let owed = std::mem::take(&mut session.owed);
            if owed > 0 {
                connection.consumed(session.number, owed)?;
            }
        }
        Ok(())
    }

    /// Sends which files are to be hashed; returns how many octets.
    pub(super) fn send(
        &mut self,
        engine: &mut Engine,
        connection: &mut Connection,
        rate: Option<&Rate>,
        wake: &mut Option<Instant>,
    ) -> Result<usize, ConnectionError> {
        let session = self.session.as_ref();
        let Some(session) = session.filter(|session| session.started && !session.ended) else {
            return Ok(0);
        };
        let hashes = engine.hashes();
        let waiting = hashes.transmit().len();
        if waiting == 0 {
            return Ok(0);
        }
        let len = granted(rate, waiting, wake);
        let taken = connection.send_data(session.number, &hashes.transmit()[..len])?;
        if let Some(rate) = rate {
            rate.give_back(len - taken);
        }
        hashes.transmitted(taken);
        Ok(taken)
    }
}

/// How long the host may say nothing; `None` if nothing is waited for.
fn patience(hashes: &HostHashes) -> Option<Duration> {
    match hashes.hashing() {
        _ if hashes.is_opening() => Some(PATIENCE),
        Some(octets) => Some(SLOWNESS + Duration::from_secs(octets / LEAST_PACE)),
        None => None,
    }
}
