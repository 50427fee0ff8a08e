//! The keys that an agent says it holds.

use std::fmt;

use sshoal_wire::{Counted, DecodeError, Decoder, Element, Put};

use crate::error::RequestError;
use crate::key_type::KeyType;

/// Most keys accepted in one answer, as in OpenSSH (authfd.c, `MAX_AGENT_IDENTITIES`).
pub const MAX_IDENTITIES: u32 = 2048;

/// One key, or certificate, that an agent holds.
///
/// Whether the agent will ask its user before it signs (`ssh-add -c`) cannot be seen from outside.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    /// What kind of key it is.
    pub key_type: &'static KeyType,
    /// The public key, or certificate, as USERAUTH_REQUEST carries it.
    pub key: Vec<u8>,
    /// The comment that came with the key, usually a path or `user@host`. Anybody who may add keys chose it:
    /// sanitise it before a terminal sees it.
    pub comment: String,
}

/// Leaves the key away: it is long, and its fingerprint says more.
impl fmt::Debug for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "Identity({} {:?})",
            self.key_type.name, self.comment
        )
    }
}

/// One element of SSH_AGENT_IDENTITIES_ANSWER.
#[derive(Clone, Copy)]
struct Entry<'a> {
    key: &'a [u8],
    comment: &'a [u8],
}

impl<'a> Element<'a> for Entry<'a> {
    fn decode(decoder: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            key: decoder.field("key blob").string()?,
            comment: decoder.field("comment").string()?,
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.put_string(self.key);
        out.put_string(self.comment);
    }
}

/// Reads the fields of SSH_AGENT_IDENTITIES_ANSWER. Keys of unknown types are left out, as OpenSSH does (authfd.c,
/// `ssh_fetch_identitylist`).
pub(crate) fn decode_identities(
    mut decoder: Decoder<'_>,
) -> Result<Result<Vec<Identity>, RequestError>, DecodeError> {
    let entries = Counted::<Entry<'_>>::decode(decoder.field("nkeys"), MAX_IDENTITIES)?;
    decoder.finish()?;
    let mut identities = Vec::with_capacity(entries.len());
    for entry in entries.iter() {
        if let Some(key_type) = KeyType::of_blob(entry.key)? {
            identities.push(Identity {
                key_type,
                key: entry.key.to_vec(),
                comment: String::from_utf8_lossy(entry.comment).into_owned(),
            });
        }
    }
    Ok(match (entries.len(), identities.len()) {
        (0, _) => Err(RequestError::NoIdentities),
        (count, 0) => Err(RequestError::NoUsableIdentities { count }),
        _ => Ok(identities),
    })
}
