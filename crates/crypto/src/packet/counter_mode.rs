//! AES in counter mode (RFC 4344 section 4) with a MAC over plaintext or ciphertext.

use aws_lc_rs::cipher::{EncryptingKey, EncryptionContext, UnboundCipherKey};
use aws_lc_rs::iv::FixedLength;
use aws_lc_rs::{constant_time, hmac};

use super::{Alignment, CryptoError, LENGTH_LEN};
use crate::cipher::{Cipher, Mac};

/// Octets of an AES block, and of the counter.
pub(super) const BLOCK_LEN: usize = 16;

/// One direction's keys and counter.
pub(super) struct CounterMode {
    key: EncryptingKey,
    /// X of RFC 4344 section 4: a 128-bit number, stepped for each block.
    counter: u128,
    mac_key: hmac::Key,
    mac: Mac,
}

impl CounterMode {
    pub(super) fn new(
        cipher: Cipher,
        mac: Mac,
        key: &[u8],
        iv: &[u8],
        mac_key: &[u8],
    ) -> Result<Self, CryptoError> {
        let algorithm = cipher.counter_mode().ok_or(CryptoError::Keys)?;
        let key = UnboundCipherKey::new(algorithm, key).map_err(|_| CryptoError::Keys)?;
        let key = EncryptingKey::ctr(key).map_err(|_| CryptoError::Keys)?;
        let counter = u128::from_be_bytes(iv.try_into().map_err(|_| CryptoError::Keys)?);
        if mac_key.len() != mac.key_len() {
            return Err(CryptoError::Keys);
        }
        Ok(CounterMode {
            key,
            counter,
            mac_key: hmac::Key::new(mac.hmac(), mac_key),
            mac,
        })
    }

    pub(super) fn mac(&self) -> Mac {
        self.mac
    }

    pub(super) fn alignment(&self) -> Alignment {
        Alignment {
            block_len: BLOCK_LEN,
            counts_length: !self.mac.encrypt_then_mac(),
        }
    }

    /// Encrypts a packet without tag; returns its tag.
    pub(super) fn seal(
        &mut self,
        sequence: u32,
        packet: &mut [u8],
    ) -> Result<hmac::Tag, CryptoError> {
        if self.mac.encrypt_then_mac() {
            self.crypt(&mut packet[LENGTH_LEN..])?;
            Ok(self.tag(sequence, packet))
        } else {
            let tag = self.tag(sequence, packet);
            self.crypt(packet)?;
            Ok(tag)
        }
    }

    /// Decrypts packet || tag. The tag is checked first where it covers the ciphertext.
    pub(super) fn open(&mut self, sequence: u32, packet: &mut [u8]) -> Result<(), CryptoError> {
        let tag_at = packet
            .len()
            .checked_sub(self.mac.tag_len())
            .ok_or(CryptoError::Corrupt)?;
        let (packet, tag) = packet.split_at_mut(tag_at);
        if self.mac.encrypt_then_mac() {
            self.check(sequence, packet, tag)?;
            self.crypt(&mut packet[LENGTH_LEN..])
        } else {
            self.crypt(packet)?;
            self.check(sequence, packet, tag)
        }
    }

    /// The first block decrypted, the counter left as it is: the length stands there when the MAC covers
    /// the plaintext.
    pub(super) fn peek(&self, mut block: [u8; BLOCK_LEN]) -> Result<[u8; BLOCK_LEN], CryptoError> {
        self.apply_keystream(&mut block)?;
        Ok(block)
    }

    /// Encrypts or decrypts whole blocks and steps the counter past them.
    fn crypt(&mut self, blocks: &mut [u8]) -> Result<(), CryptoError> {
        self.apply_keystream(blocks)?;
        self.counter = self
            .counter
            .wrapping_add((blocks.len() / BLOCK_LEN) as u128);
        Ok(())
    }

    fn apply_keystream(&self, blocks: &mut [u8]) -> Result<(), CryptoError> {
        let counter = EncryptionContext::Iv128(FixedLength::from(self.counter.to_be_bytes()));
        self.key
            .less_safe_encrypt(blocks, counter)
            .map(drop)
            .map_err(|_| CryptoError::Corrupt)
    }

    /// MAC(key, sequence_number || packet): RFC 4253 section 6.4.
    fn tag(&self, sequence: u32, packet: &[u8]) -> hmac::Tag {
        let mut context = hmac::Context::with_key(&self.mac_key);
        context.update(&sequence.to_be_bytes());
        context.update(packet);
        context.sign()
    }

    fn check(&self, sequence: u32, packet: &[u8], tag: &[u8]) -> Result<(), CryptoError> {
        let expected = self.tag(sequence, packet);
        constant_time::verify_slices_are_equal(expected.as_ref(), tag)
            .map_err(|_| CryptoError::Corrupt)
    }
}
