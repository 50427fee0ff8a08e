//! What a passenger can do wrong. It ends that passenger and nobody else.

use sshoal_wire::DecodeError;

use crate::passenger::{MAX_MESSAGE_LEN, MAX_OUTPUT, MAX_UNANSWERED};
use crate::proxy::{MAX_PACKET_LEN, MAX_PAYLOAD_LEN, MAX_PROXY_CHANNELS};

/// Why a passenger is served no longer. It stays the answer to everything that follows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PassengerError {
    /// The passenger speaks another version (PROTOCOL.mux section 1).
    #[error("the passenger speaks version {version} of the multiplexing protocol, not 4")]
    Version {
        /// Its version.
        version: u32,
    },
    /// Something came before its hello (PROTOCOL.mux section 1).
    #[error("the passenger sent message {number:#010x} in place of its hello")]
    NoHello {
        /// The message's number.
        number: u32,
    },
    /// A second hello.
    #[error("the passenger said hello twice")]
    SecondHello,
    /// A message without room for its number, or over [`MAX_MESSAGE_LEN`].
    #[error(
        "the passenger sent a message of {len} octets, where 4 to {MAX_MESSAGE_LEN} are accepted"
    )]
    Length {
        /// Its length in octets.
        len: u32,
    },
    /// A message that does not follow its format.
    #[error(transparent)]
    Malformed(#[from] DecodeError),
    /// An octet that a descriptor was to come with came without (PROTOCOL.mux section 2).
    #[error("the passenger's descriptors did not come")]
    NoDescriptors,
    /// A descriptor came that nothing was said of.
    #[error("the passenger sent a descriptor that it had not announced")]
    UnaskedDescriptors,
    /// More requests than may wait for their answers.
    #[error("the passenger sent more than {MAX_UNANSWERED} requests without waiting for an answer")]
    Flood,
    /// The passenger does not read what it asked for.
    #[error("the passenger left more than {MAX_OUTPUT} octets of answers unread")]
    Unread,
    /// In proxy mode: a packet without room for its padding length and number, or over [`MAX_PACKET_LEN`].
    #[error(
        "the passenger sent an SSH packet of {len} octets, where 2 to {MAX_PACKET_LEN} are accepted"
    )]
    PacketLength {
        /// Its length in octets.
        len: u32,
    },
    /// In proxy mode: a packet with padding (PROTOCOL.mux section 9).
    #[error("the passenger sent an SSH packet with {padding} octets of padding, where none may be")]
    Padding {
        /// How many.
        padding: u8,
    },
}

/// What a passenger in proxy mode, or the server behind it, may not send.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProxyError {
    /// A message that does not follow its format.
    #[error(transparent)]
    Malformed(#[from] DecodeError),
    /// A payload that may be longer with its padding than a server takes.
    #[error(
        "the passenger sent an SSH message of {len} octets, where {MAX_PAYLOAD_LEN} are passed on"
    )]
    PayloadLength {
        /// Its length in octets.
        len: usize,
    },
    /// Only messages of the connection protocol go through (RFC 4254).
    #[error("SSH message number {number} is not one of the connection protocol")]
    NotOfConnection {
        /// The message's number.
        number: u8,
    },
    /// A message for a channel that is another passenger's, or nobody's.
    #[error("SSH message number {number} is for channel {channel}, which is not the passenger's")]
    NotOwned {
        /// The message's number.
        number: u8,
        /// The channel's number, as in the message.
        channel: u32,
    },
    /// A message that does not fit how far its channel is (RFC 4254 sections 5.1 and 5.3).
    #[error(
        "SSH message number {number} is for channel {channel} out of its turn: a channel is confirmed or refused once, before all \
         else, and has no data behind its end"
    )]
    OutOfTurn {
        /// The message's number.
        number: u8,
        /// The server's number of the channel.
        channel: u32,
    },
    /// More global requests than are kept (RFC 4254 section 4).
    #[error("the passenger sent another global request where {limit} have no answer yet")]
    Unanswered {
        /// How many are kept.
        limit: usize,
    },
    /// "Protocol error: you already have a pty" is the end of the connection in OpenSSH's server (session.c).
    #[error("the passenger asked for a second terminal on channel {channel}")]
    SecondTerminal {
        /// The server's number of the channel.
        channel: u32,
    },
    /// More data than the other side has room for (RFC 4254 section 5.2): the server would end the connection of all.
    #[error("the passenger sent {len} octets on channel {channel}, where there is room for {room}")]
    WindowOverrun {
        /// The server's number of the channel.
        channel: u32,
        /// How many octets.
        len: usize,
        /// How many may be sent at a time now.
        room: u32,
    },
    /// "The window MUST NOT be increased above 2^32 - 1 bytes" (RFC 4254 section 5.2).
    #[error("the passenger gave channel {channel} a window of more than 2^32 - 1 octets")]
    WindowOverflow {
        /// The server's number of the channel.
        channel: u32,
    },
    /// The passenger uses a number of its own for two channels at a time (RFC 4254 section 5.1).
    #[error("the passenger gave two channels the number {channel}")]
    NumberInUse {
        /// The number.
        channel: u32,
    },
    /// More channels than a passenger may have, or than the connection has room for.
    #[error("the passenger has no room for another channel ({MAX_PROXY_CHANNELS} at most)")]
    NoRoom,
}
