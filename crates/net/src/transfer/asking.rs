//! Sessions beside the SFTP channels in which a host is asked something: to hash its files, and for numbers of its accounts.

use std::time::{Duration, Instant};

use sshoal_proto::{Connection, ConnectionError, Event, LocalChannel, Stream};
use sshoal_transfer::{HostAccounts, HostHashes};

use super::beside::{self, PATIENCE};
use super::engine::Engine;
use super::rate::{Rate, granted};

/// How long it may take to hash nothing: a disk may have to be woken.
const SLOWNESS: Duration = Duration::from_secs(600);
/// Octets of contents that it hashes in a second at the least, beyond that.
const LEAST_PACE: u64 = 4 * 1024 * 1024;

/// How long it may take to look an account up: directories are slow at times.
const LOOKUP: Duration = Duration::from_secs(60);

/// What a session is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum About {
    Hashes,
    Accounts,
}

/// The host's part in a session: members are named as those of [`HostHashes`] and [`HostAccounts`].
pub(super) trait Conversation {
    fn command(&self) -> String;
    fn wants_session(&self) -> bool;
    fn opened(&mut self);
    fn transmit(&self) -> &[u8];
    fn transmitted(&mut self, octets: usize);
    fn hear(&mut self, input: &[u8]);
    /// The server does not open the session.
    fn refuse(&mut self);
    fn end(&mut self);
    /// Whether the host has something to do that it was given.
    fn is_busy(&self) -> bool;
    /// How long the host may say nothing; `None` if nothing is waited for.
    fn patience(&self) -> Option<Duration>;
}

/// What both have under the same names.
macro_rules! in_common {
    ($conversation:ident) => {
        fn command(&self) -> String {
            $conversation::command()
        }

        fn wants_session(&self) -> bool {
            self.wants_session()
        }

        fn opened(&mut self) {
            self.opened();
        }

        fn transmit(&self) -> &[u8] {
            self.transmit()
        }

        fn transmitted(&mut self, octets: usize) {
            self.transmitted(octets);
        }

        fn hear(&mut self, input: &[u8]) {
            self.hear(input);
        }

        fn end(&mut self) {
            self.end();
        }
    };
}

impl Conversation for HostHashes {
    in_common!(HostHashes);

    fn refuse(&mut self) {
        self.refuse();
    }

    fn is_busy(&self) -> bool {
        self.hashing().is_some()
    }

    fn patience(&self) -> Option<Duration> {
        match self.hashing() {
            _ if self.is_opening() => Some(PATIENCE),
            Some(octets) => Some(SLOWNESS + Duration::from_secs(octets / LEAST_PACE)),
            None => None,
        }
    }
}

impl Conversation for HostAccounts {
    in_common!(HostAccounts);

    fn refuse(&mut self) {
        self.end();
    }

    fn is_busy(&self) -> bool {
        self.is_asking()
    }

    fn patience(&self) -> Option<Duration> {
        match self.is_asking() {
            _ if self.is_opening() => Some(PATIENCE),
            true => Some(LOOKUP),
            false => None,
        }
    }
}

/// One of a host's sessions.
pub(super) struct Asking {
    about: About,
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

impl Asking {
    pub(super) fn new(about: About) -> Asking {
        Asking {
            about,
            session: None,
            since: None,
            is_busy: false,
        }
    }

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
                    if let Some(host) = engine.conversation(self.about) {
                        host.hear(&input[range.clone()]);
                    }
                    engine.handle_conversation(self.about);
                }
            }
            Event::Started(_) => session.started = true,
            Event::ExitStatus { .. } | Event::ExitSignal { .. } => {}
            _ => {
                session.ended = true;
                if let Some(host) = engine.conversation(self.about) {
                    match event {
                        Event::ChannelRefused { .. } => host.refuse(),
                        _ => host.end(),
                    }
                }
                engine.handle_conversation(self.about);
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
        let Some(host) = engine.conversation(self.about) else {
            return Ok(());
        };
        if host.wants_session() {
            let number = connection.open_session(beside::request(host.command()))?;
            host.opened();
            self.session = Some(Session {
                number,
                started: false,
                ended: false,
                owed: 0,
            });
            self.since = Some(now);
        }
        let is_busy = host.is_busy();
        if is_busy && !std::mem::replace(&mut self.is_busy, is_busy) {
            self.since = Some(now);
        }
        self.is_busy = is_busy;
        let deadline = host.patience().zip(self.since);
        if let Some(by) = deadline.map(|(patience, since)| since + patience) {
            if by <= now {
                host.end();
                engine.handle_conversation(self.about);
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

    /// Sends what the host is asked; returns how many octets.
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
        let Some(host) = engine.conversation(self.about) else {
            return Ok(0);
        };
        let waiting = host.transmit().len();
        if waiting == 0 {
            return Ok(0);
        }
        let len = granted(rate, waiting, wake);
        let taken = connection.send_data(session.number, &host.transmit()[..len])?;
        if let Some(rate) = rate {
            rate.give_back(len - taken);
        }
        host.transmitted(taken);
        Ok(taken)
    }
}
