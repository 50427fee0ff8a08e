//! What can go wrong with an agent, and what to do about it.

use sshoal_wire::DecodeError;

use crate::connection::MAX_REQUESTS;
use crate::request::MAX_MESSAGE_LEN;

/// Why the connection to the agent cannot be used any more. It stays the answer to everything that follows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionError {
    /// The agent closed its socket.
    #[error("the ssh-agent closed the connection")]
    Closed,
    /// The agent sent a message over [`MAX_MESSAGE_LEN`], or an empty one.
    #[error(
        "the ssh-agent sent a message of {len} bytes, where 1 to {MAX_MESSAGE_LEN} are accepted"
    )]
    MessageLength {
        /// Its length in bytes.
        len: u32,
    },
    /// The agent sent a message that does not follow its format.
    #[error("the ssh-agent's answer cannot be read: {0}")]
    Malformed(#[from] DecodeError),
    /// The agent answered with a message that does not fit the request.
    #[error("the ssh-agent answered {asked} with message number {number}")]
    UnexpectedAnswer {
        /// The request, as RFC 9987 names it.
        asked: &'static str,
        /// The number of the message that came.
        number: u8,
    },
    /// The agent sent bytes although nothing was asked.
    #[error("the ssh-agent sent {len} bytes without being asked")]
    Unasked {
        /// How many.
        len: usize,
    },
}

impl ConnectionError {
    /// What a user can do about it.
    #[must_use]
    pub const fn remedy(&self) -> &'static str {
        match self {
            Self::Closed => {
                "check with `ssh-add -l` that the agent named by SSH_AUTH_SOCK is alive; \
                 start a new one with `eval $(ssh-agent)` and add the keys with `ssh-add`"
            }
            Self::MessageLength { .. } | Self::Malformed(_) => {
                "check that SSH_AUTH_SOCK, or IdentityAgent, names the socket of an ssh-agent"
            }
            Self::UnexpectedAnswer { .. } | Self::Unasked { .. } => {
                "the agent named by SSH_AUTH_SOCK does not follow RFC 9987: \
                 try OpenSSH's ssh-agent, or name a key file with `-i`"
            }
        }
    }
}

/// Why a request was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// As many requests are waiting as one connection may have.
    #[error("{MAX_REQUESTS} requests to the ssh-agent are waiting already")]
    Full,
    /// The request is longer than an agent accepts.
    #[error(
        "a request of {len} bytes is longer than the {MAX_MESSAGE_LEN} that an ssh-agent accepts"
    )]
    TooLong {
        /// Its length in bytes.
        len: usize,
    },
    /// The key's blob is malformed, or of a type that this program does not know.
    #[error("the key to sign with is of no type that this program knows")]
    UnknownKeyType,
    /// The key does not sign with this algorithm.
    #[error("a key of type {key_type} does not sign with {algorithm}")]
    UnsuitableAlgorithm {
        /// The key's type.
        key_type: &'static str,
        /// The algorithm asked for.
        algorithm: String,
    },
    /// The connection is bound to a session, and an agent binds a connection once.
    #[error("this connection to the ssh-agent is bound to another SSH session")]
    AlreadyBound,
    /// The connection has ended.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}

impl SubmitError {
    /// What can be done about it.
    #[must_use]
    pub const fn remedy(&self) -> &'static str {
        match self {
            Self::Full => "wait for answers, or open another connection to the agent",
            Self::TooLong { .. } => "use a smaller key or certificate",
            Self::UnknownKeyType => "use an Ed25519, ECDSA, RSA or security key",
            Self::UnsuitableAlgorithm { .. } => {
                "allow an algorithm that suits the key with PubkeyAcceptedAlgorithms"
            }
            Self::AlreadyBound => "open another connection to the agent for this session",
            Self::Connection(error) => error.remedy(),
        }
    }
}

/// Why a request that was sent, or was waiting to be, failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The agent shows no key. A locked one answers with an empty list too (ssh-agent.c, `no_identities`), and keys
    /// restricted to other hosts stay unseen.
    #[error("the ssh-agent shows no key: it is empty, or locked")]
    NoIdentities,
    /// The agent has keys, but none of a type in [`KEY_TYPES`](crate::KEY_TYPES).
    #[error("the ssh-agent's {count} keys are of types that this program does not know")]
    NoUsableIdentities {
        /// How many keys it has.
        count: usize,
    },
    /// The agent will not say which keys it has.
    #[error("the ssh-agent refused to list its keys")]
    ListRefused,
    /// The agent will not sign. It does not say why.
    #[error("the ssh-agent refused to sign with the {key_type} key")]
    SignRefused {
        /// The key's type.
        key_type: &'static str,
        /// Whether the key is one that waits for a touch.
        security_key: bool,
    },
    /// The signature is of another algorithm than the one asked for. Agents that ignore the flags of RFC 8332 sign
    /// with SHA-1, which servers refuse.
    #[error("the ssh-agent signed with {signed} where {asked} was asked for")]
    WrongAlgorithm {
        /// The algorithm that was to be inside the signature.
        asked: &'static str,
        /// The one that was, as far as it is text.
        signed: String,
    },
    /// The agent answered session-bind@openssh.com with a plain failure: it does not know the extension (OpenSSH's does
    /// from 8.9 on), or refused, which OpenSSH's before 10.3 says in the same words. Nothing is lost but the use of
    /// keys that are restricted to certain hosts.
    #[error(
        "the ssh-agent did not bind its connection to this SSH session; it may be too old to know how"
    )]
    BindFailed,
    /// The agent knows session-bind@openssh.com and refused: the host key's signature does not fit the session
    /// identifier, or the connection is bound already.
    #[error("the ssh-agent refused to bind its connection to this SSH session")]
    BindRefused,
    /// The connection ended first.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}

impl RequestError {
    /// What a user can do about it.
    #[must_use]
    pub const fn remedy(&self) -> &'static str {
        match self {
            Self::NoIdentities => "add a key with `ssh-add`, or unlock the agent with `ssh-add -X`",
            Self::NoUsableIdentities { .. } => {
                "add an Ed25519, ECDSA, RSA or security key with `ssh-add`"
            }
            Self::ListRefused => "check with `ssh-add -l` that the agent answers",
            Self::SignRefused {
                security_key: true, ..
            } => {
                "plug the security key in and touch it when it blinks; unlock the agent with `ssh-add -X` if it is locked"
            }
            Self::SignRefused { .. } => {
                "check that `ssh-add -l` lists the key (`ssh-add -X` unlocks the agent), accept its question if it was \
                 added with `ssh-add -c`, and that the host is one of its own if it was added with `ssh-add -h`; \
                 if only some hosts fail, allow fewer signatures at a time"
            }
            Self::WrongAlgorithm { .. } => {
                "use an agent that knows RSA with SHA-2 (RFC 8332), such as OpenSSH's ssh-agent, or an Ed25519 key"
            }
            Self::BindFailed | Self::BindRefused => {
                "use OpenSSH's ssh-agent 8.9 or later if a key is restricted to certain hosts with `ssh-add -h`"
            }
            Self::Connection(error) => error.remedy(),
        }
    }
}
