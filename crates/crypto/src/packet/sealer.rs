//! The sending direction.

use aws_lc_rs::aead::chacha20_poly1305_openssh as chacha;

use super::protection::Protection;
use super::{AEAD_TAG_LEN, CryptoError, HEADER_LEN};
use crate::cipher::{Cipher, Mac};

/// Seals packets with the keys of one direction.
pub struct Sealer {
    protection: Protection<chacha::SealingKey>,
}

impl Sealer {
    /// No protection: before the first NEWKEYS.
    pub fn plain() -> Self {
        Sealer {
            protection: Protection::Plain,
        }
    }

    /// With derived keys. A MAC is given for ciphers that are no AEAD, and is ignored for AEAD.
    ///
    /// # Errors
    ///
    /// [`CryptoError::Keys`] for lengths other than the cipher's and MAC's, or a MAC that is missing.
    pub fn new(
        cipher: Cipher,
        mac: Option<Mac>,
        key: &[u8],
        iv: &[u8],
        mac_key: &[u8],
    ) -> Result<Self, CryptoError> {
        let protection = Protection::new(cipher, mac, key, iv, mac_key, chacha::SealingKey::new)?;
        Ok(Sealer { protection })
    }

    /// Octets of padding for a payload of this size: the least that RFC 4253 section 6 allows.
    pub fn padding_len(&self, payload_len: usize) -> usize {
        self.protection.alignment().padding_len(payload_len)
    }

    /// Octets that [`Sealer::seal`] appends.
    pub fn tag_len(&self) -> usize {
        self.protection.tag_len()
    }

    /// Seals the packet `buf[start..]` (packet_length || padding_length || payload || padding) in place and
    /// appends its tag. `sequence` is its packet sequence number (RFC 4253 section 6.4).
    ///
    /// # Errors
    ///
    /// [`CryptoError::Unsealable`] when `buf[start..]` is no packet.
    pub fn seal(
        &mut self,
        sequence: u32,
        buf: &mut Vec<u8>,
        start: usize,
    ) -> Result<(), CryptoError> {
        let packet = buf.get_mut(start..).ok_or(CryptoError::Unsealable)?;
        if packet.len() < HEADER_LEN {
            return Err(CryptoError::Unsealable);
        }
        match &mut self.protection {
            Protection::Plain => {}
            Protection::Gcm(gcm) => {
                let tag = gcm.seal(packet)?;
                buf.extend_from_slice(&tag);
            }
            Protection::ChaCha20Poly1305(key) => {
                let mut tag = [0; AEAD_TAG_LEN];
                key.seal_in_place(sequence, packet, &mut tag);
                buf.extend_from_slice(&tag);
            }
            Protection::CounterMode(counter_mode) => {
                let tag = counter_mode.seal(sequence, packet)?;
                buf.extend_from_slice(tag.as_ref());
            }
        }
        Ok(())
    }
}
