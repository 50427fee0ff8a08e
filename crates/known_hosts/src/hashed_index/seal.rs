//! The keys of an index: one for names, one for the tags that tie it to its file and to itself.

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::hmac;

/// Random bytes that an index's keys are derived from.
pub const INDEX_KEY_LEN: usize = 32;
/// Bytes of every tag.
pub(super) const TAG_LEN: usize = 16;

/// A nonce a purpose. That a key meets a nonce more than once is harmless: who could see two tags
/// sees the key as well, which lies in the same file.
const CONTENT: u8 = 0;
const INDEX: u8 = 1;

pub(super) struct Keys {
    names: hmac::Key,
    tags: LessSafeKey,
}

impl Keys {
    pub(super) fn derive(key: &[u8; INDEX_KEY_LEN]) -> Keys {
        let root = hmac::Key::new(hmac::HMAC_SHA256, key);
        let tags = hmac::sign(&root, b"sshoal known_hosts index: tags");
        let names = hmac::sign(&root, b"sshoal known_hosts index: names");
        let tags = UnboundKey::new(&AES_128_GCM, &tags.as_ref()[..16])
            .expect("16 bytes are a key of AES-128");
        Keys {
            names: hmac::Key::new(hmac::HMAC_SHA256, names.as_ref()),
            tags: LessSafeKey::new(tags),
        }
    }

    /// What stands for a name: HMAC-SHA256, its first half.
    pub(super) fn tag_of_name(&self, name: &str) -> [u8; TAG_LEN] {
        let full = hmac::sign(&self.names, name.as_bytes());
        let mut tag = [0; TAG_LEN];
        tag.copy_from_slice(&full.as_ref()[..TAG_LEN]);
        tag
    }

    /// What ties the index to the known_hosts file's bytes.
    pub(super) fn tag_of_content(&self, content: &[u8]) -> [u8; TAG_LEN] {
        self.gmac(CONTENT, content)
    }

    /// What ends the index, over all before it.
    pub(super) fn tag_of_index(&self, body: &[u8]) -> [u8; TAG_LEN] {
        self.gmac(INDEX, body)
    }

    /// NIST SP 800-38D: AES-GCM of nothing, with `bytes` authenticated. It is several times as
    /// fast as SHA-256, and a file of megabytes is to be checked at each start.
    fn gmac(&self, purpose: u8, bytes: &[u8]) -> [u8; TAG_LEN] {
        let mut nonce = [0; 12];
        nonce[0] = purpose;
        let nonce = Nonce::assume_unique_for_key(nonce);
        let sealed = self
            .tags
            .seal_in_place_separate_tag(nonce, Aad::from(bytes), &mut []);
        let mut tag = [0; TAG_LEN];
        tag.copy_from_slice(sealed.expect("nothing is too long to seal").as_ref());
        tag
    }
}
