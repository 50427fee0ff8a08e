//! Adding a key to the agent (RFC 9987, section 3.2; authfd.c, `ssh_add_identity_constrained`).

use std::time::Duration;

use sshoal_wire::Put;
use zeroize::Zeroizing;

/// `SSH_AGENTC_ADD_IDENTITY`
const ADD_IDENTITY: u8 = 17;
/// `SSH_AGENTC_ADD_ID_CONSTRAINED`
const ADD_ID_CONSTRAINED: u8 = 25;
/// `SSH_AGENT_CONSTRAIN_LIFETIME`
const CONSTRAIN_LIFETIME: u8 = 1;
/// `SSH_AGENT_CONSTRAIN_CONFIRM`
const CONSTRAIN_CONFIRM: u8 = 2;
/// `SSH_AGENT_SUCCESS`
const SUCCESS: u8 = 6;
/// Octets beside key and comment: lengths, number and constraints.
const OVERHEAD: usize = 32;

/// How the agent is to keep a key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Constraints {
    /// For how long, in whole seconds; `None` for as long as the agent runs.
    pub lifetime: Option<Duration>,
    /// Whether each use needs the user's consent.
    pub confirm: bool,
}

/// The request that adds a key, with its length before it. `private` is the key's type and private fields, as
/// OpenSSH's files hold them (PROTOCOL.key), so that the agent gets the very octets of the file.
#[must_use]
pub fn add_identity(private: &[u8], comment: &str, constraints: Constraints) -> Zeroizing<Vec<u8>> {
    let Constraints { lifetime, confirm } = constraints;
    // It is never moved by growing, which would leave copies of the key behind.
    let mut message = Zeroizing::new(Vec::with_capacity(private.len() + comment.len() + OVERHEAD));
    message.put_u32(0);
    message.put_u8(match lifetime.is_some() || confirm {
        true => ADD_ID_CONSTRAINED,
        false => ADD_IDENTITY,
    });
    message.put_bytes(private);
    message.put_string(comment.as_bytes());
    if let Some(lifetime) = lifetime {
        message.put_u8(CONSTRAIN_LIFETIME);
        message.put_u32(u32::try_from(lifetime.as_secs()).unwrap_or(u32::MAX));
    }
    if confirm {
        message.put_u8(CONSTRAIN_CONFIRM);
    }
    let length = (message.len() - 4) as u32;
    message[..4].copy_from_slice(&length.to_be_bytes());
    message
}

/// Whether an answer, without its length, says that a key was added.
#[must_use]
pub fn is_added(answer: &[u8]) -> bool {
    answer == [SUCCESS]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constraints_follow_key_and_comment() {
        let plain = add_identity(b"KEY", "c", Constraints::default());
        assert_eq!(plain[..], *b"\0\0\0\x09\x11KEY\0\0\0\x01c");
        let constraints = Constraints {
            lifetime: Some(Duration::from_secs(3600)),
            confirm: true,
        };
        let constrained = add_identity(b"KEY", "c", constraints);
        assert_eq!(
            constrained[..],
            *b"\0\0\0\x0f\x19KEY\0\0\0\x01c\x01\0\0\x0e\x10\x02"
        );
        assert!(is_added(&[6]) && !is_added(&[5]) && !is_added(&[]));
    }
}
