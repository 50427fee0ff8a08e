//! The connection: its state, and what the caller may ask of it.
//!
//! Follow a packet through the files: `receive` opens, decodes and dispatches it; `key_exchange`,
//! `authentication` and `channel_messages` hold the handlers in the order in which a login meets
//! them; `sessions` sends what the caller wants on channels.

mod arrivals;
mod authentication;
mod channel_messages;
mod forwarded;
mod global_requests;
mod host_keys;
mod keepalive;
mod key_exchange;
mod opening;
mod proxied;
mod receive;
mod sessions;
mod shared;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sshoal_wire::{Disconnect, reason};
use zeroize::Zeroizing;

use crate::channels::{ChannelTable, LocalChannel, RemoteChannel};
use crate::error::{ConnectionError, Misbehaviour, Phase};
use crate::event::Event;
use crate::identification::{Identification, IdentificationReader};
use crate::settings::{Opening, Settings, SettingsError};
use crate::transport::{Incoming, Outgoing};

use arrivals::Kept;
use authentication::Authentication;
use global_requests::OwedReplies;
use host_keys::HostKeys;
use keepalive::Keepalive;
use key_exchange::{Established, Exchange};

pub use arrivals::Arrival;
pub use proxied::Unspoken;

/// Most events kept for the caller; no more input is taken until it has polled them.
const MAX_EVENTS: usize = 256;
/// Most octets queued for the server before input stops: a server that does not read gets no replies.
const MAX_OUTPUT: usize = 1024 * 1024;
/// Most octets of replies to the server that one key re-exchange may hold back, each counted with
/// [`REPLY_OVERHEAD`]: honest servers cause a few replies in the round trip that our KEXINIT takes.
const MAX_HELD_REPLIES: usize = 64 * 1024;
/// Room for a held message, octets: one with a password does not outgrow it and leave copies behind.
const HELD_CAPACITY: usize = 512;
/// What holding a reply costs beside its octets.
const REPLY_OVERHEAD: usize = HELD_CAPACITY;

/// One SSH connection as a client, without I/O.
///
/// The caller loops: write what [`poll_transmit`](Self::poll_transmit) has, give what was read to
/// [`handle_input`](Self::handle_input), answer what [`poll_event`](Self::poll_event) asks. The first
/// error ends the connection and is returned ever after.
pub struct Connection {
    settings: Arc<Settings>,
    opening: Opening,
    incoming: Incoming,
    outgoing: Outgoing,
    /// The server's identification; before it is complete, what there is of it.
    server: Result<Identification, Box<IdentificationReader>>,
    exchange: Exchange,
    /// What the first key exchange established; `None` until its host key is accepted.
    established: Option<Box<Established>>,
    /// `None` before the server's first KEXINIT.
    profile: Option<Box<ServerProfile>>,
    /// For measurements alone.
    kept: Option<Box<Kept>>,
    login: Login,
    channels: ChannelTable,
    /// Whether the server was asked to forward the agent.
    forwards_agent: bool,
    /// Whether the server may open channels for places that it listens at.
    admits_forwarded: bool,
    /// Whether our part of the end of a session may wait for the next message.
    defers_ends: bool,
    /// A session that the server has closed, and we not yet.
    owed_end: Option<RemoteChannel>,
    /// Messages that must wait until our NEWKEYS is sent.
    held: Vec<Held>,
    /// How much of `held` the server caused, in octets.
    held_replies: u32,
    events: VecDeque<Event>,
    keepalive: Keepalive,
    /// Whose the next replies to global requests are.
    replies: OwedReplies,
    host_keys: HostKeys,
    last_exchange: Instant,
    failed: Option<ConnectionError>,
}

/// How far the login is, key exchanges aside.
enum Login {
    /// The first key exchange is not over.
    Unkeyed,
    /// ssh-userauth.
    Authenticating(Box<Authentication>),
    /// ssh-connection.
    Authenticated,
}

/// A message that waits for our NEWKEYS.
struct Held {
    message: Zeroizing<Vec<u8>>,
    /// The session whose command this message starts.
    starts: Option<LocalChannel>,
}

/// What is worth remembering about a server, for the next connection to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerProfile {
    /// Its identification string.
    pub identification: String,
    /// The first key-exchange algorithm of its KEXINIT.
    pub first_kex: String,
    /// The first host-key algorithm of its KEXINIT.
    pub first_host_key: String,
}

/// All that a server offers in its KEXINIT (RFC 4253 section 7.1), each list in its order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerLists {
    /// Key exchange algorithms, and markers such as "kex-strict-s-v00@openssh.com".
    pub kex: Vec<String>,
    /// Host key algorithms.
    pub host_keys: Vec<String>,
    /// Ciphers that it offers in both directions.
    pub ciphers: Vec<String>,
    /// MACs that it offers in both directions.
    pub macs: Vec<String>,
}

impl Connection {
    /// Begins a connection: the identification string and KEXINIT wait in
    /// [`poll_transmit`](Self::poll_transmit) at once (RFC 4253 section 4.2 allows not to wait for the server's).
    ///
    /// # Errors
    ///
    /// [`SettingsError`] if nothing could be negotiated with these settings.
    pub fn new(
        settings: Arc<Settings>,
        opening: Opening,
        now: Instant,
    ) -> Result<Self, SettingsError> {
        settings.validate()?;
        if opening.host_key_algorithms.is_empty() {
            return Err(SettingsError::Empty("host key algorithms"));
        }
        let identification = key_exchange::client_identification(&settings);
        let outgoing = Outgoing::new(&identification, settings.random);
        let keepalive = Keepalive::new(settings.keepalive, now);
        let keeps = settings.keeps_lists || settings.notes_arrivals;
        let kept = keeps.then(Box::default);
        let mut connection = Connection {
            settings,
            opening,
            incoming: Incoming::new(),
            outgoing,
            server: Err(Box::default()),
            exchange: Exchange::Idle,
            established: None,
            profile: None,
            kept,
            login: Login::Unkeyed,
            channels: ChannelTable::default(),
            forwards_agent: false,
            admits_forwarded: false,
            defers_ends: false,
            owed_end: None,
            held: Vec::new(),
            held_replies: 0,
            events: VecDeque::new(),
            keepalive,
            replies: OwedReplies::default(),
            host_keys: HostKeys::Unwanted,
            last_exchange: now,
            failed: None,
        };
        if let Err(error) = connection.start_key_exchange() {
            connection.fail(error);
        }
        Ok(connection)
    }

    /// Octets to write to the server, if any; say [`transmitted`](Self::transmitted) how many went, before
    /// anything else is asked of the connection: [`exec_fate`](Self::exec_fate) depends on it.
    pub fn poll_transmit(&self) -> Option<&[u8]> {
        let pending = self.outgoing.pending();
        (!pending.is_empty()).then_some(pending)
    }

    /// `octets` at the front of [`poll_transmit`](Self::poll_transmit) were handed to the transport below.
    pub fn transmitted(&mut self, octets: usize) {
        self.outgoing.transmitted(octets);
        if self.failed.is_none() {
            self.offer_room();
        }
    }

    /// The next event, oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        let event = self.events.pop_front();
        if event.is_none() {
            // Idle connections stay small.
            self.events = VecDeque::new();
        }
        event
    }

    /// When [`handle_timeout`](Self::handle_timeout) is to be called at the latest.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.failed.is_some() {
            return None;
        }
        let keepalive = match &self.login {
            Login::Authenticated => self.keepalive.due(),
            Login::Unkeyed | Login::Authenticating(_) => None,
        };
        self.rekey_due().into_iter().chain(keepalive).min()
    }

    /// Does what is due at `now`: keepalive requests, rekeying by time.
    ///
    /// # Errors
    ///
    /// [`ConnectionError::KeepaliveTimeout`], or the error that ended the connection before.
    pub fn handle_timeout(&mut self, now: Instant) -> Result<(), ConnectionError> {
        self.check()?;
        let result = self.rekey_if_due(now).and_then(|()| self.keep_alive(now));
        result.map_err(|error| self.fail(error))
    }

    /// There is reason to doubt that the server can be reached: asks for a sign of life now, and more often than else until
    /// one comes. Does nothing before the login, and where keepalive is off ([`Settings::keepalive`]).
    ///
    /// # Errors
    ///
    /// The error that ended the connection.
    pub fn doubt_server(&mut self, now: Instant) -> Result<(), ConnectionError> {
        self.check()?;
        match self.login {
            Login::Authenticated => self.doubt(now).map_err(|error| self.fail(error)),
            Login::Unkeyed | Login::Authenticating(_) => Ok(()),
        }
    }

    /// How long the server took to answer the last keepalive request; `None` before the first answer.
    pub fn round_trip(&self) -> Option<Duration> {
        self.keepalive.round_trip()
    }

    /// The byte stream from the server ended. Returns why the connection is over.
    pub fn handle_eof(&mut self) -> ConnectionError {
        let error = match &self.server {
            Err(reader) => match reader.said() {
                Some(said) => ConnectionError::NotSsh { said },
                None => ConnectionError::Closed {
                    during: Phase::Identification,
                },
            },
            Ok(_) => ConnectionError::Closed {
                during: self.phase(),
            },
        };
        self.fail(error)
    }

    /// How far the connection is, for messages to people.
    pub fn phase(&self) -> Phase {
        match (&self.server, &self.exchange, &self.login) {
            (Err(_), ..) => Phase::Identification,
            (_, Exchange::ExpectVerdict(_), _) => Phase::HostKey,
            (_, _, Login::Unkeyed) => Phase::KeyExchange,
            (_, _, Login::Authenticating(_)) => Phase::Authentication,
            (_, _, Login::Authenticated) => Phase::Connection,
        }
    }

    /// What the server called itself.
    pub fn server(&self) -> Option<&Identification> {
        self.server.as_ref().ok()
    }

    /// What the server offered in its first KEXINIT, if the settings have it kept
    /// ([`Settings::keeps_lists`](crate::Settings::keeps_lists)).
    pub fn server_lists(&self) -> Option<&ServerLists> {
        self.kept.as_deref()?.lists.as_ref()
    }

    /// What to remember about the server; `None` before its first KEXINIT.
    pub fn server_profile(&self) -> Option<&ServerProfile> {
        self.profile.as_deref()
    }

    /// The session identifier (RFC 4253 section 7.2), for an agent's session-bind.
    pub fn session_id(&self) -> Option<&[u8]> {
        self.established
            .as_deref()
            .map(|established| established.session_id.as_slice())
    }

    /// The algorithm of the first key exchange, for example "curve25519-sha256", where arrivals are noted; `None` before the
    /// server's part of it.
    pub fn kex_algorithm(&self) -> Option<&'static str> {
        self.kept.as_deref()?.kex
    }

    /// The algorithm of the host key that was accepted first, for example "rsa-sha2-512".
    pub fn host_key_algorithm(&self) -> Option<&'static str> {
        let established = self.established.as_deref();
        established.map(|established| established.host_key_algorithm)
    }

    /// The accepted host key and its signature of the session identifier, for an agent's session-bind.
    pub fn host_key_proof(&self) -> Option<(&[u8], &[u8])> {
        self.established.as_deref().map(|established| {
            (
                established.host_key.as_slice(),
                established.proof.as_slice(),
            )
        })
    }

    /// Ends the connection in order: queues DISCONNECT (RFC 4253 section 11.1). Write what
    /// [`poll_transmit`](Self::poll_transmit) has, then close.
    ///
    /// A command that has not wholly left by then never leaves: its fate stays
    /// [`ExecFate::NotSent`](crate::ExecFate::NotSent).
    pub fn disconnect(&mut self) {
        self.fail(ConnectionError::Ended);
    }

    /// The connection's final answer, if it is over.
    pub fn error(&self) -> Option<&ConnectionError> {
        self.failed.as_ref()
    }

    fn check(&self) -> Result<(), ConnectionError> {
        match &self.failed {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// Makes `error` the connection's answer and tells the server, if it can still be told.
    ///
    /// What is queued is thrown away where nobody will read it, and where a command is in it: its fate is
    /// NotSent, and the caller may send it elsewhere already.
    fn fail(&mut self, error: ConnectionError) -> ConnectionError {
        if let Some(first) = &self.failed {
            return first.clone();
        }
        match goodbye(&error) {
            // Whoever shares the connection hears of our end by that of the stream; the server is not ours to part from.
            Some(reason_code) if !self.has_queued_command() && !self.is_shared() => {
                let message = Disconnect {
                    reason_code,
                    description: b"",
                    language_tag: b"",
                };
                // The connection is over whether or not this can be sealed.
                let _ = self.outgoing.seal(|out| message.encode(out));
            }
            _ => self.outgoing.abandon(),
        }
        self.held = Vec::new();
        self.failed = Some(error.clone());
        error
    }

    /// Sends a message, or holds it while only key-exchange messages may be sent (RFC 4253 section 7.1).
    fn send(&mut self, encode: impl FnOnce(&mut Vec<u8>)) -> Result<(), ConnectionError> {
        self.send_owed_end()?;
        self.send_alone(encode)
    }

    /// As [`send`](Self::send), before what is owed.
    fn send_alone(&mut self, encode: impl FnOnce(&mut Vec<u8>)) -> Result<(), ConnectionError> {
        if self.exchange.holds_messages() {
            self.hold(encode);
        } else {
            self.outgoing.seal(encode)?;
        }
        Ok(())
    }

    /// As [`send`](Self::send), for messages that the server causes by its own: no more are held than a limit.
    fn reply(&mut self, encode: impl FnOnce(&mut Vec<u8>)) -> Result<(), ConnectionError> {
        self.send_owed_end()?;
        if !self.exchange.holds_messages() {
            self.outgoing.seal(encode)?;
            return Ok(());
        }
        let held = u32::try_from(self.hold(encode) + REPLY_OVERHEAD).unwrap_or(u32::MAX);
        self.held_replies = self.held_replies.saturating_add(held);
        if self.held_replies as usize > MAX_HELD_REPLIES {
            return Err(Misbehaviour::Flood {
                what: "octets of replies held back by a key exchange",
                limit: MAX_HELD_REPLIES,
            }
            .into());
        }
        Ok(())
    }

    /// Holds a message; returns its octets.
    fn hold(&mut self, encode: impl FnOnce(&mut Vec<u8>)) -> usize {
        let mut message = Zeroizing::new(Vec::with_capacity(HELD_CAPACITY));
        encode(&mut message);
        let octets = message.len();
        self.held.push(Held {
            message,
            starts: None,
        });
        octets
    }

    fn tell(&mut self, event: Event) {
        self.events.push_back(event);
    }
}

/// The reason to give in DISCONNECT (RFC 4253 section 11.1); `None` when the server is not there to read it.
fn goodbye(error: &ConnectionError) -> Option<u32> {
    match error {
        ConnectionError::Closed { .. }
        | ConnectionError::NotSsh { .. }
        | ConnectionError::Disconnected { .. } => None,
        ConnectionError::Ended => Some(reason::DISCONNECT_BY_APPLICATION),
        ConnectionError::HostKeyRefused
        | ConnectionError::HostKeySignature(_)
        | ConnectionError::HostCertificate(_) => Some(reason::DISCONNECT_HOST_KEY_NOT_VERIFIABLE),
        ConnectionError::NoCommonAlgorithm { .. } | ConnectionError::KeyExchange(_) => {
            Some(reason::DISCONNECT_KEY_EXCHANGE_FAILED)
        }
        ConnectionError::KeepaliveTimeout { .. } => Some(reason::DISCONNECT_CONNECTION_LOST),
        _ => Some(reason::DISCONNECT_PROTOCOL_ERROR),
    }
}
