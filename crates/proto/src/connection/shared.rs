//! A connection that somebody else has made and logged in, and that is shared by its packets (PROTOCOL.mux section 9, the
//! passenger's side): there is neither key exchange nor login here, only channels.

use std::sync::Arc;
use std::time::Instant;

use sshoal_wire::{ChannelFailure, Disconnect, GlobalRequest};

use super::{Connection, Exchange, HostKeys, Keepalive, Login, OwedReplies};
use crate::channels::ChannelTable;
use crate::error::ConnectionError;
use crate::identification::Identification;
use crate::settings::{Opening, Settings};
use crate::transport::{Incoming, Outgoing};

impl Connection {
    /// A connection to a server that calls itself `server`, shared by whoever is at the other end of the byte stream: channels
    /// may be opened at once. Host key, keys and signs of life are the other's concern; of the settings only the window counts.
    /// Its end, for whatever reason, is that of the stream: no DISCONNECT is sent.
    ///
    /// # Errors
    ///
    /// No server calls itself so.
    pub fn shared(
        settings: Arc<Settings>,
        server: &str,
        now: Instant,
    ) -> Result<Self, ConnectionError> {
        Ok(Connection {
            opening: Opening {
                user: String::new(),
                host_key_algorithms: Vec::new(),
                guess_key_exchange: false,
            },
            incoming: Incoming::bare(),
            outgoing: Outgoing::bare(settings.random),
            server: Ok(Identification::parse(server.as_bytes())?),
            exchange: Exchange::Idle,
            established: None,
            profile: None,
            kept: None,
            login: Login::Authenticated,
            channels: ChannelTable::default(),
            forwards_agent: false,
            admits_forwarded: false,
            defers_ends: false,
            owed_end: None,
            held: Vec::new(),
            held_replies: 0,
            events: Default::default(),
            keepalive: Keepalive::new(None, now),
            replies: OwedReplies::default(),
            host_keys: HostKeys::Unwanted,
            last_exchange: now,
            failed: None,
            settings,
        })
    }

    /// Whether the connection is somebody else's.
    pub(super) fn is_shared(&self) -> bool {
        self.outgoing.is_bare()
    }

    /// Whether a message may come by this connection: all but the connection protocol is for whoever shares it, who says by
    /// DISCONNECT why there is nothing more.
    pub(super) fn may_share(&self, number: u8) -> bool {
        let is_of_connection = (GlobalRequest::NUMBER..=ChannelFailure::NUMBER).contains(&number);
        !self.is_shared() || is_of_connection || number == Disconnect::NUMBER
    }
}
