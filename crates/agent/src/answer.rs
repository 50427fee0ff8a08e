//! What an agent answers.

use sshoal_wire::Decoder;

use crate::error::{ConnectionError, RequestError};
use crate::identity::{Identity, decode_identities};
use crate::key_type::{Algorithm, KeyType};
use crate::request::RequestKind;

/// `SSH_AGENT_FAILURE`
const FAILURE: u8 = 5;
/// `SSH_AGENT_SUCCESS`
const SUCCESS: u8 = 6;
/// `SSH_AGENT_IDENTITIES_ANSWER`
const IDENTITIES_ANSWER: u8 = 12;
/// `SSH_AGENT_SIGN_RESPONSE`
const SIGN_RESPONSE: u8 = 14;
/// `SSH_AGENT_EXTENSION_FAILURE`: the agent knows the extension, and it failed.
const EXTENSION_FAILURE: u8 = 28;
/// `SSH2_AGENT_FAILURE`, once sent by OpenSSH (authfd.h); read as a failure to this day (authfd.c, `agent_failed`).
const SSH2_FAILURE: u8 = 30;
/// `SSH_COM_AGENT2_FAILURE`, the ssh.com agent's; likewise.
const SSH_COM_FAILURE: u8 = 102;

/// A request granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The keys that the agent holds, in its order; at least one.
    Identities(Vec<Identity>),
    /// A signature, as USERAUTH_REQUEST carries it.
    Signature(Vec<u8>),
    /// The connection is bound to the session.
    Bound,
}

/// Reads the message that answers `kind`.
///
/// # Errors
/// The outer error ends the connection: the agent does not follow its protocol. The inner one is the agent's "no".
pub(crate) fn decode_answer(
    message: &[u8],
    kind: RequestKind,
) -> Result<Result<Answer, RequestError>, ConnectionError> {
    let mut decoder = Decoder::named("agent message", message);
    let number = decoder.field("type").u8()?;
    match (kind, number) {
        (_, FAILURE | SSH2_FAILURE | SSH_COM_FAILURE) => Ok(Err(refusal(kind))),
        (RequestKind::Identities, IDENTITIES_ANSWER) => {
            Ok(decode_identities(decoder)?.map(Answer::Identities))
        }
        (
            RequestKind::Sign {
                key_type,
                algorithm,
            },
            SIGN_RESPONSE,
        ) => {
            let signature = decoder.field("signature").string()?;
            decoder.finish()?;
            check_signature(signature, key_type, algorithm)
        }
        (RequestKind::SessionBind, SUCCESS) => {
            decoder.finish()?;
            Ok(Ok(Answer::Bound))
        }
        (RequestKind::SessionBind, EXTENSION_FAILURE) => Ok(Err(RequestError::BindRefused)),
        _ => Err(ConnectionError::UnexpectedAnswer {
            asked: kind.name(),
            number,
        }),
    }
}

/// What an agent's plain failure means.
fn refusal(kind: RequestKind) -> RequestError {
    match kind {
        RequestKind::Identities => RequestError::ListRefused,
        RequestKind::Sign { key_type, .. } => RequestError::SignRefused {
            key_type: key_type.name,
            security_key: key_type.security_key,
        },
        RequestKind::SessionBind => RequestError::BindFailed,
    }
}

/// The algorithm inside a signature must be the one asked for. Security keys are excepted as in OpenSSH (authfd.c,
/// `ssh_agent_sign`): theirs may come in WebAuthn's format, which has a name of its own.
fn check_signature(
    signature: &[u8],
    key_type: &KeyType,
    algorithm: &'static Algorithm,
) -> Result<Result<Answer, RequestError>, ConnectionError> {
    let signed = Decoder::named("signature", signature)
        .field("format")
        .string()?;
    if signed != algorithm.signature.as_bytes() && !key_type.security_key {
        return Ok(Err(RequestError::WrongAlgorithm {
            asked: algorithm.signature,
            signed: signed.escape_ascii().to_string(),
        }));
    }
    Ok(Ok(Answer::Signature(signature.to_vec())))
}
