//! What can end a connection. The first error is final and stays the connection's answer.

use sshoal_crypto::{CertificateError, CryptoError, KexError, SignError, VerifyError};
use sshoal_wire::DecodeError;

/// How far a connection had come, for messages to people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Waiting for the server's identification string (RFC 4253 section 4.2).
    Identification,
    /// Negotiating algorithms and exchanging keys (RFC 4253 sections 7 and 8).
    KeyExchange,
    /// The host key is being judged by the caller.
    HostKey,
    /// The ssh-userauth service (RFC 4252).
    Authentication,
    /// The ssh-connection service (RFC 4254).
    Connection,
}

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Phase::Identification => "before it identified itself",
            Phase::KeyExchange => "during key exchange",
            Phase::HostKey => "while its host key was checked",
            Phase::Authentication => "during authentication",
            Phase::Connection => "after login",
        })
    }
}

/// Why a connection ended early.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionError {
    /// The byte stream ended (a bare close).
    #[error("the server closed the connection {during}")]
    Closed {
        /// When it happened.
        during: Phase,
    },
    /// The server closed after text that is no identification string; OpenSSH says this way that it
    /// throttles (sshd.c, "Exceeded MaxStartups"; "Not allowed at this time" from 9.8).
    #[error("the server sent no SSH identification but {said:?}")]
    NotSsh {
        /// The first octets it sent, with control characters escaped.
        said: String,
    },
    /// SSH_MSG_DISCONNECT (RFC 4253 section 11.1).
    #[error("the server disconnected {during}: {description} (reason {reason_code})")]
    Disconnected {
        /// RFC 4250 section 4.2.2.
        reason_code: u32,
        /// The server's words, control characters escaped.
        description: String,
        /// When it happened.
        during: Phase,
    },
    /// Both sides' lists for one purpose have no common name (RFC 4253 section 7.1).
    #[error("no common {purpose}: we offered {ours}; the server has {theirs}")]
    NoCommonAlgorithm {
        /// "key exchange algorithm", "cipher (client to server)", and so on.
        purpose: &'static str,
        /// What we offered, comma separated.
        ours: String,
        /// What the server offered, comma separated.
        theirs: String,
    },
    /// The server broke the protocol.
    #[error("the server broke the SSH protocol: {0}")]
    Misbehaved(#[from] Misbehaviour),
    /// A message could not be decoded.
    #[error("the server broke the SSH protocol: {0}")]
    Malformed(#[from] DecodeError),
    /// A packet could not be opened: corrupt, forged, or of an impossible length.
    #[error("a packet from the server could not be opened: {0}")]
    Packet(#[from] CryptoError),
    /// The server's half of the key exchange is not valid.
    #[error("key exchange failed: {0}")]
    KeyExchange(#[from] KexError),
    /// The host key's signature of the exchange hash is wrong: an impostor, or a broken server.
    #[error("the host key did not sign this key exchange: {0}")]
    HostKeySignature(#[source] VerifyError),
    /// The host certificate is broken.
    #[error("the host certificate is not valid: {0}")]
    HostCertificate(#[source] CertificateError),
    /// The caller refused the host key.
    #[error("the host key was refused")]
    HostKeyRefused,
    /// Our own key could not sign.
    #[error("could not sign with the key: {0}")]
    Sign(#[from] SignError),
    /// No answer to keepalive requests (ServerAliveCountMax).
    #[error("no answer to {unanswered} keepalive requests")]
    KeepaliveTimeout {
        /// How many went unanswered.
        unanswered: u32,
    },
    /// The caller ended the connection.
    #[error("the connection was ended by this side")]
    Ended,
}

/// How a server broke the protocol: the rule, with its source.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Misbehaviour {
    /// RFC 4253 section 4.2 allows lines before the identification; we allow a limited amount.
    #[error("over {limit} octets before the identification string")]
    EndlessPrelude {
        /// The limit in octets.
        limit: usize,
    },
    /// RFC 4253 section 4.2: at most 255 octets.
    #[error("an identification string of over 255 octets")]
    LongIdentification,
    /// RFC 4253 section 5.1: only protocol versions 2.0 and 1.99 are SSH 2.
    #[error("protocol version {0:?}; only SSH 2.0 is spoken")]
    ProtocolVersion(String),
    /// A message that is not allowed now (RFC 4253 section 7.1, RFC 4252 section 6).
    #[error("{message} {during} where it is not allowed")]
    Unexpected {
        /// Name of the message.
        message: &'static str,
        /// When it came.
        during: Phase,
    },
    /// A number that no SSH message has, where nothing unknown is tolerated (strict key exchange).
    #[error("unknown message {number} during strict key exchange")]
    UnknownDuringStrictKeyExchange {
        /// The message number.
        number: u8,
    },
    /// PROTOCOL, "strict key exchange": KEXINIT must be the first packet.
    #[error("strict key exchange was offered, but KEXINIT was not the first packet")]
    StrictKexInitNotFirst,
    /// The host key blob's type is not the negotiated algorithm's (RFC 4253 section 8).
    #[error("a host key of type {found:?} where {negotiated} was negotiated")]
    HostKeyType {
        /// The type inside the blob.
        found: String,
        /// The negotiated algorithm.
        negotiated: &'static str,
    },
    /// A rekeying with another host key than the one that was accepted.
    #[error("another host key when rekeying")]
    HostKeyChangedOnRekey,
    /// A message for a channel that does not exist (RFC 4254 section 5).
    #[error("{message} for channel {number}, which is not open")]
    NoSuchChannel {
        /// Name of the message.
        message: &'static str,
        /// Our channel number as the server gave it.
        number: u32,
    },
    /// RFC 4254 section 5.2: data over the window.
    #[error("{excess} octets over the window of channel {channel}")]
    WindowOverrun {
        /// Our channel number.
        channel: u32,
        /// By how much.
        excess: usize,
    },
    /// RFC 4254 section 5.2: data over the channel's maximum packet size.
    #[error("{len} octets in one message; channel {channel} allows {max}")]
    OversizedData {
        /// Our channel number.
        channel: u32,
        /// Octets in the message.
        len: usize,
        /// The maximum we announced.
        max: u32,
    },
    /// RFC 4254 section 5.2: a window may not grow over 2^32-1.
    #[error("the window of channel {channel} was raised over 2^32-1")]
    WindowOverflow {
        /// Our channel number.
        channel: u32,
    },
    /// Extended data after EOF, or anything after CLOSE (RFC 4254 section 5.3).
    #[error("{message} on channel {channel} after its end")]
    AfterEnd {
        /// Name of the message.
        message: &'static str,
        /// Our channel number.
        channel: u32,
    },
    /// A reply that answers nothing we asked.
    #[error("{message} without a request")]
    UnaskedReply {
        /// Name of the message.
        message: &'static str,
    },
    /// The server's first channel does not have number 0: a command that went ahead went astray.
    #[error("its first channel has number {number}; a command was sent ahead to channel 0")]
    UnguessedChannel {
        /// The number that it gave.
        number: u32,
    },
    /// A service that we did not ask for.
    #[error("SERVICE_ACCEPT for {0:?}")]
    WrongService(String),
    /// The server accepted a key that we did not offer.
    #[error("USERAUTH_PK_OK for a key that was not offered")]
    WrongPkOk,
    /// More of something than any honest server sends.
    #[error("over {limit} {what}")]
    Flood {
        /// What there was too much of.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
}

/// Text from a server made safe to show: control characters and what steers bidirectional text are
/// escaped, the length is limited.
pub(crate) fn printable(bytes: &[u8]) -> String {
    const SHOWN: usize = 256;
    let steers = |c: char| matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN)]);
    let mut shown = String::with_capacity(text.len());
    for c in text.trim_end().chars() {
        match c.is_control() || steers(c) {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
    }
    shown
}
