//! The keys of an index: one for names, one for the tags that tie it to its file and keep its parts whole.

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::hmac;

use super::layout::Table;

/// Random bytes that an index's keys are derived from.
pub const INDEX_KEY_LEN: usize = 32;
/// Bytes of every tag.
pub(super) const TAG_LEN: usize = 16;

pub(super) type Tag = [u8; TAG_LEN];

/// A nonce a part. That a key meets a nonce more than once is harmless: who could see two tags
/// sees the key as well, which lies in the same file.
const CONTENT: u8 = 0;
const HEAD: u8 = 1;
const ALWAYS: u8 = 2;
const PLAIN: u8 = 3;
const HASHED: u8 = 4;

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

    /// What stands for a name, letters of either case: HMAC-SHA256, its first half.
    pub(super) fn tag_of_name(&self, name: &[u8]) -> Tag {
        let full = hmac::sign(&self.names, &name.to_ascii_lowercase());
        let mut tag = [0; TAG_LEN];
        tag.copy_from_slice(&full.as_ref()[..TAG_LEN]);
        tag
    }

    /// What ties the index to the known_hosts file's bytes.
    pub(super) fn tag_of_content(&self, content: &[u8]) -> Tag {
        self.gmac(CONTENT, 0, content)
    }

    pub(super) fn tag_of_head(&self, head: &[u8]) -> Tag {
        self.gmac(HEAD, 0, head)
    }

    pub(super) fn tag_of_always(&self, spans: &[u8]) -> Tag {
        self.gmac(ALWAYS, 0, spans)
    }

    /// What ties rows to their bucket: those of another one do not pass for them.
    pub(super) fn tag_of_bucket(&self, table: Table, number: u32, rows: &[u8]) -> Tag {
        let part = match table {
            Table::Plain => PLAIN,
            Table::Hashed => HASHED,
        };
        self.gmac(part, number, rows)
    }

    /// NIST SP 800-38D: AES-GCM of nothing, with `bytes` authenticated. It is several times as
    /// fast as SHA-256.
    fn gmac(&self, part: u8, number: u32, bytes: &[u8]) -> Tag {
        let mut nonce = [0; 12];
        nonce[0] = part;
        nonce[8..].copy_from_slice(&number.to_be_bytes());
        let nonce = Nonce::assume_unique_for_key(nonce);
        let sealed = self
            .tags
            .seal_in_place_separate_tag(nonce, Aad::from(bytes), &mut []);
        let mut tag = [0; TAG_LEN];
        tag.copy_from_slice(sealed.expect("nothing is too long to seal").as_ref());
        tag
    }
}
