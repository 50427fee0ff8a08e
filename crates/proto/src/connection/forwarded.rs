//! Channels that the server opens for places that it listens at on our behalf: RFC 4254 section 7.2, OpenSSH's PROTOCOL
//! section 2.4. The caller knows what was asked for, and judges each.

use std::ops::Range;

use sshoal_wire::{ChannelOpen, ChannelOpenConfirmation, ChannelOpenFailure, reason};

use super::Connection;
use crate::channels::{Channel, Far, Flow, LocalChannel, MAX_DATA, Purpose, RemoteChannel};
use crate::error::ConnectionError;
use crate::event::Event;

/// What such channels are called.
const FORWARDED: [&[u8]; 2] = [b"forwarded-tcpip", b"forwarded-streamlocal@openssh.com"];
/// Most channels of this kind that one server may have open.
const MAX_FORWARDED_CHANNELS: usize = 512;

// What the caller asks for.
impl Connection {
    /// From now on the server's channels for places that it listens at come as [`Event::ForwardedChannel`]; before, all are
    /// refused.
    pub fn admit_forwarded(&mut self) {
        self.admits_forwarded = true;
    }

    /// Accepts a channel of [`Event::ForwardedChannel`]: from now on it is as any other.
    ///
    /// # Errors
    ///
    /// The error that ended the connection.
    pub fn confirm_forwarded(&mut self, channel: LocalChannel) -> Result<(), ConnectionError> {
        self.check()?;
        let initial_window_size = self.settings.window;
        let Some(offered) = self.channels.find(channel).filter(|it| it.is_offered()) else {
            return Ok(());
        };
        let Some(far) = offered.far else {
            return Ok(());
        };
        offered.purpose = Purpose::Forwarded { is_confirmed: true };
        let confirmation = ChannelOpenConfirmation {
            recipient_channel: far.number.number(),
            sender_channel: channel.number(),
            initial_window_size,
            maximum_packet_size: MAX_DATA,
            data: b"",
        };
        self.send(|out| confirmation.encode(out))
            .map_err(|error| self.fail(error))
    }

    /// Refuses a channel of [`Event::ForwardedChannel`], whose number is free then: nobody is at the other end.
    ///
    /// # Errors
    ///
    /// The error that ended the connection.
    pub fn refuse_forwarded(
        &mut self,
        channel: LocalChannel,
        description: &str,
    ) -> Result<(), ConnectionError> {
        self.check()?;
        let Some(offered) = self.channels.find(channel).filter(|it| it.is_offered()) else {
            return Ok(());
        };
        let far = offered.far;
        self.channels.remove(channel);
        let Some(far) = far else { return Ok(()) };
        let refusal = ChannelOpenFailure {
            recipient_channel: far.number.number(),
            reason_code: reason::OPEN_CONNECT_FAILED,
            description: description.as_bytes(),
            language_tag: b"",
        };
        self.send(|out| refusal.encode(out))
            .map_err(|error| self.fail(error))
    }

    /// Somebody else answers a channel of [`Event::ForwardedChannel`], and speaks for it: as one of
    /// [`open_proxied`](Self::open_proxied).
    pub fn proxy_forwarded(&mut self, channel: LocalChannel) {
        if let Some(offered) = self.channels.find(channel).filter(|it| it.is_offered()) {
            offered.purpose = Purpose::Proxied;
        }
    }
}

// What the server says.
impl Connection {
    /// Whether a channel is one that the caller judges.
    pub(super) fn may_be_forwarded(&self, open: &ChannelOpen<'_>) -> bool {
        self.admits_forwarded && FORWARDED.contains(&open.channel_type)
    }

    /// Has the caller judge it. `payload` is the whole CHANNEL_OPEN.
    pub(super) fn handle_forwarded(
        &mut self,
        open: &ChannelOpen<'_>,
        payload: Range<usize>,
    ) -> Result<(), ConnectionError> {
        let is_forwarded = |channel: &Channel| matches!(channel.purpose, Purpose::Forwarded { .. });
        let channels = self.channels.iter_mut();
        let open_ones = channels
            .filter(|(_, channel)| is_forwarded(channel))
            .count();
        let mut channel = Channel::new(
            self.settings.window,
            Purpose::Forwarded {
                is_confirmed: false,
            },
        );
        channel.asked = true;
        channel.far = Some(Far {
            number: RemoteChannel(open.sender_channel),
            window: open.initial_window_size,
            max_data: open.maximum_packet_size,
        });
        let has_room = open_ones < MAX_FORWARDED_CHANNELS;
        let number = match has_room {
            true => self.channels.insert(channel),
            false => None,
        };
        if let Some(channel) = number {
            self.tell(Event::ForwardedChannel {
                channel,
                open: payload,
            });
            return Ok(());
        }
        let refusal = ChannelOpenFailure {
            recipient_channel: open.sender_channel,
            reason_code: reason::OPEN_RESOURCE_SHORTAGE,
            description: b"too many forwarded connections",
            language_tag: b"",
        };
        self.reply(|out| refusal.encode(out))
    }

    /// A channel that nobody speaks for any more is closed, and what still comes for it is nobody's.
    pub(super) fn end_unspoken(
        &mut self,
        channel: LocalChannel,
        receiving: Flow,
    ) -> Result<(), ConnectionError> {
        let Some(left) = self.channels.find(channel) else {
            return Ok(());
        };
        left.wanted = Flow::Closed;
        left.receiving = receiving;
        let Some(far) = left.far else { return Ok(()) };
        self.send_end(channel, far.number)?;
        let is_over = self.channels.look(channel).is_some_and(Channel::is_over);
        if is_over {
            self.channels.remove(channel);
        }
        Ok(())
    }
}
