//! Revocations that hold even when their line is damaged.
//!
//! OpenSSH skips a line that it cannot read, `@revoked` or not, and then accepts the key that the
//! line was there to refuse. Here damage only makes a revocation less precise:
//!
//! - a key that was cut short is compared as far as it goes;
//! - hosts that cannot be told apart mean all hosts, if the key can be read;
//! - a key that cannot be read at all means every key of its type (of all types, if that is
//!   unreadable too) for the line's hosts, if the line begins with `@revoked`.
//!
//! A line that names neither a readable key nor readable hosts takes nothing away; like every
//! damaged line it is reported.

use crate::key::{self, KeyFields, KeyType};
use crate::line::{self, Damaged};

/// Shortest prefix of a damaged key's blob that still says which key it was: type, field lengths
/// and, for every type, at least eight bytes of the key itself.
const MIN_PREFIX: usize = 48;

/// Every SSH key blob begins with a length below 2^16, and so in base64 with these characters.
const BASE64_KEY_START: &[u8] = b"AAAA";

/// Which keys a line revokes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum RevokedKey {
    /// The key in this blob, or one that begins with these bytes if the line was cut short.
    Blob(Vec<u8>),
    /// A key that cannot be read: all keys of the type, or of all types.
    Unreadable(Option<KeyType>),
}

impl RevokedKey {
    /// Reads the base64 `text` of a key that stands behind the name of `key_type`.
    pub(crate) fn read(key_type: Option<KeyType>, text: &[u8]) -> RevokedKey {
        let whole = key::decode(text).filter(|blob| KeyFields::parse_leniently(blob).is_some());
        if let Some(blob) = whole {
            return RevokedKey::Blob(blob);
        }
        let prefix = key::decode_prefix(text);
        if prefix.len() >= MIN_PREFIX && key::claimed_type(&prefix).is_some() {
            return RevokedKey::Blob(prefix);
        }
        RevokedKey::Unreadable(key_type)
    }

    /// Whether the plain key in `presented` may be the one that was revoked.
    pub(crate) fn covers(&self, presented: &[u8]) -> bool {
        match self {
            RevokedKey::Unreadable(None) => true,
            RevokedKey::Unreadable(Some(key_type)) => {
                key::claimed_type(presented).is_none_or(|claimed| claimed == *key_type)
            }
            RevokedKey::Blob(blob) => {
                let same = KeyFields::parse_leniently(blob)
                    .zip(KeyFields::parse_leniently(presented))
                    .is_some_and(|(revoked, offered)| revoked.same(&offered));
                same || presented == blob
                    || (blob.len() >= MIN_PREFIX && presented.starts_with(blob))
            }
        }
    }
}

/// What is left of a damaged revocation.
pub(crate) struct Salvaged<'a> {
    /// The line's host field; `None` if it cannot be told, and so all hosts are meant.
    pub(crate) hosts: Option<&'a [u8]>,
    pub(crate) key: RevokedKey,
}

/// Makes out what a line that is not understood was meant to revoke; `None` if it would have
/// revoked nothing, or if nothing of it can be made out.
pub(crate) fn salvage<'a>(damaged: Damaged<'a>) -> Option<Salvaged<'a>> {
    let (text, marked) = match damaged {
        Damaged::Grant => return None,
        Damaged::Revoked(text) => (text, true),
        Damaged::PerhapsRevoked(text) => (text, false),
    };
    let wide = text.contains(&0);
    let bare: Vec<u8> = text.iter().copied().filter(|&c| c != 0).collect();
    let words: Vec<&[u8]> = blank_separated(&bare).collect();

    let key_type = words.iter().find_map(|word| KeyType::from_name(word));
    let key_at = words
        .iter()
        .position(|word| word.starts_with(BASE64_KEY_START));
    let key = match key_at.map(|at| words[at]) {
        None => RevokedKey::Unreadable(key_type),
        Some(text) => foreign_key(text, &words)
            .map_or_else(|| RevokedKey::read(key_type, text), RevokedKey::Blob),
    };
    let readable = matches!(key, RevokedKey::Blob(_));

    let named_before_key = words[..key_at.unwrap_or(words.len())]
        .iter()
        .filter(|word| KeyType::from_name(word).is_none())
        .count();
    let (first, _) = line::split_word(text);
    let is_hosts = !wide
        && (named_before_key == 1 || !readable)
        && !first.is_empty()
        && !first.contains(&b'@')
        && !first.starts_with(BASE64_KEY_START)
        && KeyType::from_name(first).is_none()
        && line::fault_of_hosts(first).is_none();
    let hosts = is_hosts.then_some(first);

    (readable || (marked && hosts.is_some())).then_some(Salvaged { hosts, key })
}

/// A whole key of a type that is not known here, but named by the line as well as by the key
/// itself: nothing is damaged, and no key of another type is meant.
fn foreign_key(text: &[u8], words: &[&[u8]]) -> Option<Vec<u8>> {
    let blob = key::decode(text)?;
    let name = key::claimed_name(&blob)?;
    (words.contains(&name) && KeyFields::parse_leniently(&blob).is_none()).then_some(blob)
}

fn blank_separated(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests;
