//! Host names hashed by `HashKnownHosts` (`host_hash`, hostfile.c): HMAC-SHA1 of the name, keyed
//! by a salt of its own in every line.

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::line;

/// Bytes of a salt, and of SHA-1's output.
pub const SALT_LEN: usize = 20;

/// Salt and hash of one line, decoded.
#[derive(Clone, Copy)]
pub(crate) struct HashedName {
    salt: [u8; SALT_LEN],
    hash: [u8; SALT_LEN],
}

impl HashedName {
    /// Hashes the lowercase `name` with `salt`, which must be random.
    pub(crate) fn of(name: &[u8], salt: [u8; SALT_LEN]) -> HashedName {
        let mut hash = [0; SALT_LEN];
        hash.copy_from_slice(hmac::sign(&key(&salt), name).as_ref());
        HashedName { salt, hash }
    }

    /// Decodes a host field; `None` if it is not a well-formed hashed name.
    pub(crate) fn decode(hosts: &[u8]) -> Option<HashedName> {
        let (salt, hash) = line::hashed_halves(hosts)?;
        Some(HashedName {
            salt: decode_20(salt)?,
            hash: decode_20(hash)?,
        })
    }

    /// The host field: `|1|salt|hash`.
    pub(crate) fn written(&self) -> String {
        format!(
            "|1|{}|{}",
            STANDARD.encode(self.salt),
            STANDARD.encode(self.hash)
        )
    }

    /// Which of the lowercase `names` this is, as their places: the salt is made ready once for
    /// all of them. Names are no secrets: an ordinary comparison will do.
    pub(crate) fn which<'n>(&self, names: &'n [&'n [u8]]) -> impl Iterator<Item = usize> + 'n {
        let (key, hash) = (key(&self.salt), self.hash);
        let same = move |name: &&[u8]| hmac::sign(&key, name).as_ref() == hash;
        names
            .iter()
            .enumerate()
            .filter_map(move |(place, name)| same(name).then_some(place))
    }

    /// Whether this is the lowercase `name`.
    pub(crate) fn is(&self, name: &[u8]) -> bool {
        self.which(&[name]).next().is_some()
    }
}

fn key(salt: &[u8]) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, salt)
}

fn decode_20(text: &[u8]) -> Option<[u8; SALT_LEN]> {
    STANDARD.decode(text).ok()?.try_into().ok()
}
