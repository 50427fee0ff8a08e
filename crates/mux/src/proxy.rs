//! Proxy mode (PROTOCOL.mux section 9): SSH packets without encryption, padding or MAC, and whose channels are whose.
//!
//! A channel has three numbers: the passenger's own, ours on the connection, and the server's. The server's is the same for
//! all, and passes unchanged in what the passenger sends; ours and the passenger's change places where either
//! side names its own end.
//!
//! ```text
//!   passenger --- sender 0 ---> master --- sender 5 ---> server          CHANNEL_OPEN
//!   passenger <-- to 0, from 9  master <-- to 5, from 9  server          CHANNEL_OPEN_CONFIRMATION
//!   passenger --- to 9 -------> master --- to 9 -------> server          CHANNEL_DATA
//! ```

use sshoal_wire::{
    ChannelClose, ChannelData, ChannelEof, ChannelExtendedData, ChannelFailure, ChannelOpen,
    ChannelOpenConfirmation, ChannelOpenFailure, ChannelRequest, ChannelWindowAdjust, Decoder,
    Dialect, GlobalRequest, Message, RequestFailure,
};

use crate::bodies;
use crate::error::{PassengerError, ProxyError};
use crate::listening::decode_open;

/// Longest packet of a passenger, octets behind its length: as OpenSSH's PACKET_MAX_SIZE.
pub const MAX_PACKET_LEN: usize = 256 * 1024;
/// Longest payload that is passed on, octets: whatever padding it gets (255 octets at most, RFC 4253 section 6), a server that takes
/// packets as long as OpenSSH's does takes it.
pub const MAX_PAYLOAD_LEN: usize = MAX_PACKET_LEN - 256;
/// Most channels of one passenger.
pub const MAX_PROXY_CHANNELS: usize = 256;

/// Where the recipient's number is in all messages from CHANNEL_OPEN_CONFIRMATION on: behind the message's.
const RECIPIENT: usize = 1;

/// The payload of the packet at the front, if it is whole.
pub(crate) fn packet_in<'a>(unread: &mut &'a [u8]) -> Result<Option<&'a [u8]>, PassengerError> {
    let Some((length, rest)) = unread.split_first_chunk::<4>() else {
        return Ok(None);
    };
    let claimed = u32::from_be_bytes(*length);
    let len = match usize::try_from(claimed) {
        Ok(len @ 2..=MAX_PACKET_LEN) => len,
        _ => return Err(PassengerError::PacketLength { len: claimed }),
    };
    let Some((packet, beyond)) = rest.split_at_checked(len) else {
        return Ok(None);
    };
    *unread = beyond;
    match packet[0] {
        0 => Ok(Some(&packet[1..])),
        padding => Err(PassengerError::Padding { padding }),
    }
}

/// The channels of a passenger in proxy mode.
#[derive(Debug, Default)]
pub struct ProxyChannels {
    channels: Vec<ProxyChannel>,
}

#[derive(Debug)]
struct ProxyChannel {
    /// The passenger's number.
    own: u32,
    /// Ours on the connection.
    ours: u32,
    /// The server's, from when it is known.
    servers: Option<u32>,
    /// How much the server takes, in all and at a time.
    window: u32,
    max_data: u32,
    /// How much it may send.
    granted: u32,
    /// Whether a terminal was asked for.
    has_terminal: bool,
    /// The passenger sends no more data.
    ended_here: bool,
    closed_here: bool,
    closed_there: bool,
}

/// A channel of a passenger that is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeftChannel {
    /// Our number.
    pub ours: u32,
    /// The server's, if it is known.
    pub servers: Option<u32>,
    /// Whether the server has opened it, and the passenger not answered.
    pub is_offered: bool,
    /// Whether the passenger has closed it.
    pub closed_here: bool,
    /// Whether the server has.
    pub closed_there: bool,
}

impl ProxyChannel {
    fn new(own: u32, ours: u32) -> Self {
        ProxyChannel {
            own,
            ours,
            servers: None,
            window: 0,
            max_data: 0,
            granted: 0,
            has_terminal: false,
            ended_here: false,
            closed_here: false,
            closed_there: false,
        }
    }
}

impl ProxyChannels {
    /// No channels.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Our numbers of all channels that are open: what is left when the passenger is gone.
    pub fn ours(&self) -> impl Iterator<Item = u32> {
        self.channels.iter().map(|channel| channel.ours)
    }

    /// What is left of a passenger that is gone.
    pub fn left(&self) -> impl Iterator<Item = LeftChannel> {
        self.channels.iter().map(|channel| LeftChannel {
            ours: channel.ours,
            servers: channel.servers,
            is_offered: channel.own == UNKNOWN,
            closed_here: channel.closed_here,
            closed_there: channel.closed_there,
        })
    }

    /// Whether there is a channel of ours with this number.
    #[must_use]
    pub fn has(&self, ours: u32) -> bool {
        self.channels.iter().any(|channel| channel.ours == ours)
    }

    /// The server has opened a channel by this CHANNEL_OPEN that is the passenger's to confirm or to refuse.
    ///
    /// # Errors
    /// The passenger has too many, or the message does not follow its format.
    pub fn offered(&mut self, open: &[u8], ours: u32) -> Result<(), ProxyError> {
        self.check_room()?;
        let open = decode_open(open)?;
        self.channels.push(ProxyChannel {
            servers: Some(open.sender_channel),
            window: open.initial_window_size,
            max_data: open.maximum_packet_size,
            // Its own number comes with its confirmation.
            ..ProxyChannel::new(UNKNOWN, ours)
        });
        Ok(())
    }

    /// Makes a payload from the passenger one for the server, in place. `allot` gives a new channel our number.
    ///
    /// # Errors
    /// It is not of the connection protocol, or for a channel that is not the passenger's. Nothing is to be sent.
    pub fn from_passenger(
        &mut self,
        payload: &mut [u8],
        allot: impl FnOnce() -> Option<u32>,
    ) -> Result<(), ProxyError> {
        let number = kind(payload)?;
        // The server would end the connection of all for a message without form.
        check_len(payload)?;
        bodies::check(&Message::decode(payload, Dialect::default())?)?;
        match number {
            GlobalRequest::NUMBER..=RequestFailure::NUMBER => Ok(()),
            ChannelOpen::NUMBER => {
                let at = sender_of_open(payload)?;
                let own = number_at(payload, at)?;
                self.check_number(own)?;
                self.check_room()?;
                let ours = allot().ok_or(ProxyError::NoRoom)?;
                self.channels.push(ProxyChannel {
                    granted: number_at(payload, at + 4)?,
                    ..ProxyChannel::new(own, ours)
                });
                put_at(payload, at, ours);
                Ok(())
            }
            _ => {
                let servers = number_at(payload, RECIPIENT)?;
                let not_owned = ProxyError::NotOwned {
                    number,
                    channel: servers,
                };
                let found = self.channels.iter();
                let mut found = found.enumerate().filter(|(_, channel)| {
                    channel.servers == Some(servers) && !channel.closed_here
                });
                let (at, _) = found.next().ok_or(not_owned)?;
                self.note_sent(number, at, payload)
            }
        }
    }

    /// What the passenger's message does to a channel.
    fn note_sent(&mut self, number: u8, at: usize, payload: &mut [u8]) -> Result<(), ProxyError> {
        self.check_turn(number, at)?;
        match number {
            ChannelOpenConfirmation::NUMBER => {
                let own = number_at(payload, RECIPIENT + 4)?;
                let granted = number_at(payload, RECIPIENT + 8)?;
                self.check_number(own)?;
                let channel = &mut self.channels[at];
                channel.own = own;
                channel.granted = granted;
                put_at(payload, RECIPIENT + 4, channel.ours);
            }
            ChannelWindowAdjust::NUMBER => {
                let more = number_at(payload, RECIPIENT + 4)?;
                let channel = &mut self.channels[at];
                let granted = channel.granted.checked_add(more);
                channel.granted = granted.ok_or(ProxyError::WindowOverflow {
                    channel: channel.servers.unwrap_or(UNKNOWN),
                })?;
            }
            ChannelData::NUMBER | ChannelExtendedData::NUMBER => {
                let len = data_len(number, payload)?;
                let channel = &mut self.channels[at];
                let room = channel.window.min(channel.max_data);
                let octets = u32::try_from(len).ok().filter(|octets| *octets <= room);
                let Some(octets) = octets else {
                    return Err(ProxyError::WindowOverrun {
                        channel: channel.servers.unwrap_or(UNKNOWN),
                        len,
                        room,
                    });
                };
                channel.window -= octets;
            }
            ChannelRequest::NUMBER if bodies::asks_for_terminal(payload) => {
                let channel = &mut self.channels[at];
                if std::mem::replace(&mut channel.has_terminal, true) {
                    return Err(ProxyError::SecondTerminal {
                        channel: channel.servers.unwrap_or(UNKNOWN),
                    });
                }
            }
            ChannelEof::NUMBER => self.channels[at].ended_here = true,
            ChannelOpenFailure::NUMBER => drop(self.channels.swap_remove(at)),
            ChannelClose::NUMBER => {
                self.channels[at].closed_here = true;
                self.forget_closed(at);
            }
            _ => {}
        }
        Ok(())
    }

    /// A channel that the server has offered is confirmed or refused, once and before all else, and none has data behind its end:
    /// OpenSSH's server ends the connection for either (channels.c, "non-opening channel" and "after EOF").
    fn check_turn(&self, number: u8, at: usize) -> Result<(), ProxyError> {
        let channel = &self.channels[at];
        let is_fitting = match number {
            ChannelOpenConfirmation::NUMBER | ChannelOpenFailure::NUMBER => channel.own == UNKNOWN,
            ChannelData::NUMBER | ChannelExtendedData::NUMBER => {
                channel.own != UNKNOWN && !channel.ended_here
            }
            _ => channel.own != UNKNOWN,
        };
        match is_fitting {
            true => Ok(()),
            false => Err(ProxyError::OutOfTurn {
                number,
                channel: channel.servers.unwrap_or(UNKNOWN),
            }),
        }
    }

    /// Makes a payload from the server one for the passenger, in place, if it is for one of its channels.
    ///
    /// # Errors
    /// It is not of the connection protocol, or for a channel that is not the passenger's.
    pub fn to_passenger(&mut self, payload: &mut [u8]) -> Result<(), ProxyError> {
        let number = kind(payload)?;
        if let GlobalRequest::NUMBER..=RequestFailure::NUMBER | ChannelOpen::NUMBER = number {
            return Ok(());
        }
        let ours = number_at(payload, RECIPIENT)?;
        let not_owned = ProxyError::NotOwned {
            number,
            channel: ours,
        };
        let is_meant = |channel: &ProxyChannel| channel.ours == ours && channel.own != UNKNOWN;
        let at = self.channels.iter().position(is_meant).ok_or(not_owned)?;
        let channel = &mut self.channels[at];
        match number {
            ChannelOpenConfirmation::NUMBER if channel.servers.is_none() => {
                channel.window = number_at(payload, RECIPIENT + 8)?;
                channel.max_data = number_at(payload, RECIPIENT + 12)?;
                channel.servers = Some(number_at(payload, RECIPIENT + 4)?);
            }
            ChannelWindowAdjust::NUMBER => {
                let more = number_at(payload, RECIPIENT + 4)?;
                channel.window = channel.window.saturating_add(more);
            }
            ChannelData::NUMBER | ChannelExtendedData::NUMBER => {
                let octets = u32::try_from(data_len(number, payload)?).unwrap_or(u32::MAX);
                // Whether it may send as much is the passenger's to judge.
                channel.granted = channel.granted.saturating_sub(octets);
            }
            _ => {}
        }
        put_at(payload, RECIPIENT, channel.own);
        match number {
            ChannelOpenFailure::NUMBER => drop(self.channels.swap_remove(at)),
            ChannelClose::NUMBER => {
                channel.closed_there = true;
                self.forget_closed(at);
            }
            _ => {}
        }
        Ok(())
    }

    fn forget_closed(&mut self, at: usize) {
        if self.channels[at].closed_here && self.channels[at].closed_there {
            self.channels.swap_remove(at);
        }
    }

    fn check_room(&self) -> Result<(), ProxyError> {
        match self.channels.len() < MAX_PROXY_CHANNELS {
            true => Ok(()),
            false => Err(ProxyError::NoRoom),
        }
    }

    /// Two channels must not be called the same, nor as one without a name.
    fn check_number(&self, own: u32) -> Result<(), ProxyError> {
        let mut taken = self.channels.iter();
        match own == UNKNOWN || taken.any(|channel| channel.own == own) {
            true => Err(ProxyError::NumberInUse { channel: own }),
            false => Ok(()),
        }
    }
}

/// The number of a channel to which the passenger has given none yet.
const UNKNOWN: u32 = u32::MAX;

/// A server would end the connection for a longer one.
pub(crate) fn check_len(payload: &[u8]) -> Result<(), ProxyError> {
    match payload.len() {
        0..=MAX_PAYLOAD_LEN => Ok(()),
        len => Err(ProxyError::PayloadLength { len }),
    }
}

/// The number of a message that may go through.
fn kind(payload: &[u8]) -> Result<u8, ProxyError> {
    let number = Decoder::named("SSH packet", payload)
        .field("message number")
        .u8()?;
    match number {
        GlobalRequest::NUMBER..=RequestFailure::NUMBER
        | ChannelOpen::NUMBER..=ChannelFailure::NUMBER => Ok(number),
        number => Err(ProxyError::NotOfConnection { number }),
    }
}

/// Where CHANNEL_OPEN has its sender's number: behind the channel's type.
fn sender_of_open(payload: &[u8]) -> Result<usize, ProxyError> {
    let mut fields = Decoder::named("CHANNEL_OPEN", payload);
    fields.u8()?;
    let channel_type = fields.field("channel type").string()?;
    Ok(RECIPIENT + 4 + channel_type.len())
}

/// The channel number that stands there.
fn number_at(payload: &[u8], at: usize) -> Result<u32, ProxyError> {
    let rest = payload.get(at..).unwrap_or_default();
    let mut fields = Decoder::named("SSH packet", rest);
    Ok(fields.field("channel number").u32()?)
}

/// How many octets of data a message has.
fn data_len(number: u8, payload: &[u8]) -> Result<usize, ProxyError> {
    let head = match number {
        ChannelData::NUMBER => 4,
        _ => 8,
    };
    let rest = payload.get(RECIPIENT + head..).unwrap_or_default();
    let mut fields = Decoder::named("CHANNEL_DATA", rest);
    Ok(fields.field("data").string()?.len())
}

/// `number_at` has found one there.
fn put_at(payload: &mut [u8], at: usize, number: u32) {
    payload[at..at + 4].copy_from_slice(&number.to_be_bytes());
}

#[cfg(test)]
mod tests;
