//! What is asked of an agent.

use sshoal_wire::Put;

use crate::error::SubmitError;
use crate::key_type::{Algorithm, KeyType};

/// Longest message in either direction, in bytes without the length before it, as in OpenSSH (ssh-agent.c,
/// `AGENT_MAX_LEN`; authfd.c, `MAX_AGENT_REPLY_LEN`).
pub const MAX_MESSAGE_LEN: usize = 256 * 1024;

/// `SSH_AGENTC_REQUEST_IDENTITIES`
const REQUEST_IDENTITIES: u8 = 11;
/// `SSH_AGENTC_SIGN_REQUEST`
const SIGN_REQUEST: u8 = 13;
/// `SSH_AGENTC_EXTENSION`
const EXTENSION: u8 = 27;

/// Tells the agent which host the connection's signatures are for (PROTOCOL.agent, section 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionBind<'a> {
    /// The host key, or certificate, of the initial key exchange.
    pub host_key: &'a [u8],
    /// The session identifier: the initial key exchange's hash.
    pub session_id: &'a [u8],
    /// The host key's signature of it, from the key exchange reply.
    pub signature: &'a [u8],
    /// Whether the connection serves agent forwarding, and not user authentication.
    pub is_forwarding: bool,
}

/// A request on its way, and what its answer is read by.
#[derive(Debug)]
pub(crate) struct Request {
    /// Length and message, as they go to the socket.
    pub(crate) bytes: Vec<u8>,
    pub(crate) kind: RequestKind,
}

/// What was asked.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RequestKind {
    Identities,
    Sign {
        key_type: &'static KeyType,
        algorithm: &'static Algorithm,
    },
    SessionBind,
}

impl RequestKind {
    /// The message's name in RFC 9987.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Identities => "SSH_AGENTC_REQUEST_IDENTITIES",
            Self::Sign { .. } => "SSH_AGENTC_SIGN_REQUEST",
            Self::SessionBind => "SSH_AGENTC_EXTENSION",
        }
    }
}

impl Request {
    pub(crate) fn identities() -> Result<Self, SubmitError> {
        Self::framed(RequestKind::Identities, |out| {
            out.put_u8(REQUEST_IDENTITIES);
        })
    }

    pub(crate) fn sign(key: &[u8], algorithm: &str, data: &[u8]) -> Result<Self, SubmitError> {
        let Ok(Some(key_type)) = KeyType::of_blob(key) else {
            return Err(SubmitError::UnknownKeyType);
        };
        let Some(algorithm) = key_type.algorithm(algorithm) else {
            return Err(SubmitError::UnsuitableAlgorithm {
                key_type: key_type.name,
                algorithm: algorithm.to_owned(),
            });
        };
        let kind = RequestKind::Sign {
            key_type,
            algorithm,
        };
        Self::framed(kind, |out| {
            out.put_u8(SIGN_REQUEST);
            out.put_string(key);
            out.put_string(data);
            out.put_u32(algorithm.flags);
        })
    }

    pub(crate) fn session_bind(bind: SessionBind<'_>) -> Result<Self, SubmitError> {
        Self::framed(RequestKind::SessionBind, |out| {
            out.put_u8(EXTENSION);
            out.put_string(b"session-bind@openssh.com");
            out.put_string(bind.host_key);
            out.put_string(bind.session_id);
            out.put_string(bind.signature);
            out.put_boolean(bind.is_forwarding);
        })
    }

    /// The message with its length before it (RFC 9987, section 5).
    fn framed(
        kind: RequestKind,
        put_message: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Self, SubmitError> {
        let mut message = Vec::new();
        put_message(&mut message);
        if message.len() > MAX_MESSAGE_LEN {
            return Err(SubmitError::TooLong { len: message.len() });
        }
        let mut bytes = Vec::with_capacity(4 + message.len());
        bytes.put_string(&message);
        Ok(Self { bytes, kind })
    }
}
