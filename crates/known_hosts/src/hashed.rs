//! Host names hashed by `HashKnownHosts` (`host_hash`, hostfile.c): HMAC-SHA1 of the name, keyed
//! by a salt of its own in every line.

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::line;

/// SHA-1's output, and the length of a salt.
const SHA1_LEN: usize = 20;

/// Salt and hash of one line, decoded.
#[derive(Clone, Copy)]
pub(crate) struct HashedName {
    salt: [u8; SHA1_LEN],
    hash: [u8; SHA1_LEN],
}

impl HashedName {
    /// Decodes a host field; `None` if it is not a well-formed hashed name.
    pub(crate) fn decode(hosts: &[u8]) -> Option<HashedName> {
        let (salt, hash) = line::hashed_halves(hosts)?;
        Some(HashedName {
            salt: decode_20(salt)?,
            hash: decode_20(hash)?,
        })
    }
}

/// Compares entries' hashes with names in lowercase: pairs of a name's place and an entry.
///
/// A salt is made ready once for all names. Names are no secrets: an ordinary comparison will do.
pub(crate) fn scan(
    entries: &[u32],
    hashes: &[Option<HashedName>],
    names: &[&[u8]],
) -> Vec<(usize, u32)> {
    let mut found = Vec::new();
    for (&entry, hashed) in entries.iter().zip(hashes) {
        let Some(hashed) = hashed else { continue };
        let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &hashed.salt);
        for (place, name) in names.iter().enumerate() {
            if hmac::sign(&key, name).as_ref() == hashed.hash {
                found.push((place, entry));
            }
        }
    }
    found
}

fn decode_20(text: &[u8]) -> Option<[u8; SHA1_LEN]> {
    STANDARD.decode(text).ok()?.try_into().ok()
}
