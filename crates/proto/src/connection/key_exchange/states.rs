//! The states of a key exchange, and what each of them holds.

use sshoal_crypto::kex::GexGroup;
use sshoal_crypto::{Ephemeral, Opener};
use sshoal_wire::KexDialect;

use super::arithmetic::NextKeys;
use super::dialect;
use crate::negotiation::Chosen;

/// A key exchange, by what it awaits.
///
/// ```text
/// Idle --our KEXINIT--> ExpectKexInit --theirs--> (ExpectGroup -->) ExpectReply
///   ^                                                                  | their reply, signature good
///   |                        first exchange: ExpectVerdict <-----------+
///   |                                            | accepted            | rekeying: same key as before
///   +------------ their NEWKEYS ---- ExpectNewKeys <--- our NEWKEYS ---+
/// ```
pub(in crate::connection) enum Exchange {
    /// No key exchange goes on.
    Idle,
    /// Our KEXINIT is sent; theirs is awaited.
    ExpectKexInit(Box<Offer>),
    /// KEX_DH_GEX_GROUP is awaited (RFC 4419 section 3).
    ExpectGroup(Box<Agreed>),
    /// The server's half, host key and signature are awaited.
    ExpectReply(Box<Agreed>, Box<Ours>),
    /// The caller judges the host key; all else waits.
    ExpectVerdict(Box<Proven>),
    /// Our NEWKEYS is sent; theirs is awaited.
    ExpectNewKeys(Box<Opener>),
}

/// Our side of the negotiation.
pub(in crate::connection) struct Offer {
    /// KEXINIT's payload.
    pub(super) kex_init: Vec<u8>,
    /// The ephemeral key that was sent as a guess.
    pub(super) guess: Option<Ephemeral>,
}

/// What was negotiated, and what the exchange hash needs of it.
pub(in crate::connection) struct Agreed {
    pub(super) chosen: Chosen,
    pub(super) client_kex_init: Vec<u8>,
    pub(super) server_kex_init: Vec<u8>,
    /// The server's next key-exchange message is a wrong guess.
    pub(super) skip_next: bool,
}

/// Our half of the exchange.
pub(in crate::connection) struct Ours {
    pub(super) ephemeral: Ephemeral,
    /// p and g of RFC 4419, as they enter the exchange hash.
    pub(super) group: Option<GexGroup>,
}

/// A finished first exchange whose host key is being judged.
pub(in crate::connection) struct Proven {
    pub(super) keys: NextKeys,
    pub(super) established: Established,
}

/// What the first key exchange left for the rest of the connection.
pub(in crate::connection) struct Established {
    /// The first exchange hash.
    pub(in crate::connection) session_id: Vec<u8>,
    /// The accepted host key or certificate.
    pub(in crate::connection) host_key: Vec<u8>,
    /// What the exchange was negotiated as.
    pub(in crate::connection) kex_algorithm: &'static str,
    /// What the key was negotiated as.
    pub(in crate::connection) host_key_algorithm: &'static str,
    /// Its signature of the session identifier.
    pub(in crate::connection) proof: Vec<u8>,
    pub(super) strict: bool,
    /// As in the keys now in use.
    pub(super) limits: [u64; 2],
    /// server-sig-algs (RFC 8308 section 3.1), comma separated.
    pub(in crate::connection) signature_algorithms: Option<String>,
    /// PROTOCOL, "publickey-hostbound@openssh.com".
    pub(in crate::connection) hostbound: bool,
}

impl Exchange {
    /// Whether our KEXINIT is out and our NEWKEYS is not: only key-exchange messages may be sent.
    pub(in crate::connection) fn holds_messages(&self) -> bool {
        !matches!(self, Exchange::Idle | Exchange::ExpectNewKeys(_))
    }

    pub(in crate::connection) fn awaits_verdict(&self) -> bool {
        matches!(self, Exchange::ExpectVerdict(_))
    }

    /// Whether the server's next message has its algorithms or a key in it.
    pub(in crate::connection) fn awaits_long_message(&self) -> bool {
        matches!(
            self,
            Exchange::ExpectKexInit(_) | Exchange::ExpectGroup(_) | Exchange::ExpectReply(..)
        )
    }

    pub(in crate::connection) fn is_idle(&self) -> bool {
        matches!(self, Exchange::Idle)
    }

    /// Whether the server's KEXINIT has come and its NEWKEYS has not.
    pub(in crate::connection) fn server_is_in(&self) -> bool {
        !matches!(self, Exchange::Idle | Exchange::ExpectKexInit(_))
    }

    /// Whether this message is the server's wrong guess, to be ignored once: RFC 4253 section 7.1, "the next packet MUST be
    /// silently ignored".
    pub(in crate::connection) fn skips_wrong_guess(&mut self, number: Option<u8>) -> bool {
        match self {
            Exchange::ExpectGroup(agreed) | Exchange::ExpectReply(agreed, _) => {
                matches!(number, Some(30..=49)) && std::mem::take(&mut agreed.skip_next)
            }
            _ => false,
        }
    }

    pub(in crate::connection) fn dialect(&self) -> KexDialect {
        match self {
            Exchange::ExpectGroup(agreed) | Exchange::ExpectReply(agreed, _) => {
                dialect(agreed.chosen.kex.method)
            }
            _ => KexDialect::default(),
        }
    }
}
