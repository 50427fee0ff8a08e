//! Channels for which somebody else speaks the connection protocol (PROTOCOL.mux section 9): their messages pass as they are,
//! and only their numbers are this side's business.

use std::ops::Range;

use super::Connection;
use super::sessions::MAX_QUEUED;
use crate::channels::{Channel, Far, Flow, LocalChannel, Purpose, ReceiveWindow, RemoteChannel};
use crate::error::ConnectionError;
use crate::event::Event;

/// Messages whose first field is the recipient's channel: CHANNEL_OPEN_CONFIRMATION to CHANNEL_FAILURE.
const FOR_A_CHANNEL: std::ops::RangeInclusive<u8> = 91..=100;

/// How far a channel was with whoever spoke for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unspoken {
    /// The server's number for it; `None` if it has not answered CHANNEL_OPEN.
    pub server_number: Option<u32>,
    /// Whether the server has opened it, and has no answer yet.
    pub is_offered: bool,
    /// Whether CHANNEL_CLOSE was sent.
    pub closed_here: bool,
    /// Whether CHANNEL_CLOSE has come.
    pub closed_there: bool,
}

impl Connection {
    /// A number for a channel that somebody else will open by [`send_packet`](Self::send_packet) and speak for: what the
    /// server says to it comes as [`Event::Packet`]. `None` if there is no room for another channel.
    pub fn open_proxied(&mut self) -> Option<LocalChannel> {
        let mut channel = Channel::new(0, Purpose::Proxied);
        channel.asked = true;
        self.channels.insert(channel)
    }

    /// Whether messages of others may be sent: not while the server lags behind, nor while keys are exchanged.
    pub fn takes_packets(&self) -> bool {
        self.failed.is_none()
            && !self.exchange.holds_messages()
            && self.outgoing.pending().len() < MAX_QUEUED
    }

    /// Sends a message of the connection protocol as it is. Whoever made it answers for it.
    ///
    /// # Errors
    ///
    /// The error that ended the connection.
    pub fn send_packet(&mut self, payload: &[u8]) -> Result<(), ConnectionError> {
        self.check()?;
        self.send(|out| out.extend_from_slice(payload))
            .map_err(|error| self.fail(error))
    }

    /// Frees the number of a channel that both sides have closed, or that the server did not open.
    pub fn release_proxied(&mut self, channel: LocalChannel) {
        if self.is_proxied(channel) {
            self.channels.remove(channel);
        }
    }

    /// Nobody speaks for a channel any more: it is closed, or will be as soon as the server has opened it.
    ///
    /// # Errors
    ///
    /// The error that ended the connection.
    pub fn abandon_proxied(
        &mut self,
        channel: LocalChannel,
        unspoken: Unspoken,
    ) -> Result<(), ConnectionError> {
        self.check()?;
        if !self.is_proxied(channel) {
            return Ok(());
        }
        let Some(left) = self.channels.find(channel) else {
            return Ok(());
        };
        if unspoken.is_offered {
            left.purpose = Purpose::Forwarded {
                is_confirmed: false,
            };
            return self.refuse_forwarded(channel, "nobody is there");
        }
        left.purpose = Purpose::Abandoned;
        // How much of it the server has used is not known, nor does it matter.
        left.window = ReceiveWindow::new(u32::MAX);
        left.far = unspoken.server_number.map(|number| Far {
            number: RemoteChannel(number),
            window: 0,
            max_data: 0,
        });
        if unspoken.closed_here {
            left.sending = Flow::Closed;
        }
        let receiving = match unspoken.closed_there {
            true => Flow::Closed,
            false => Flow::Open,
        };
        self.end_unspoken(channel, receiving)
            .map_err(|error| self.fail(error))
    }

    fn is_proxied(&self, channel: LocalChannel) -> bool {
        let found = self.channels.look(channel);
        found.is_some_and(|channel| matches!(channel.purpose, Purpose::Proxied))
    }

    /// Hands a message to whoever speaks for its channel; returns whether somebody does.
    pub(super) fn passes_on(&mut self, octets: &[u8], payload: &Range<usize>) -> bool {
        let Some((number, rest)) = octets.split_first() else {
            return false;
        };
        let Some(recipient) = rest
            .first_chunk()
            .filter(|_| FOR_A_CHANNEL.contains(number))
        else {
            return false;
        };
        let channel = LocalChannel(u32::from_be_bytes(*recipient));
        let is_proxied = self.is_proxied(channel);
        if is_proxied {
            self.tell(Event::Packet {
                channel,
                payload: payload.clone(),
            });
        }
        is_proxied
    }
}
