//! The receiving direction.

use std::ops::Range;

use aws_lc_rs::aead::chacha20_poly1305_openssh as chacha;

use super::counter_mode::BLOCK_LEN;
use super::protection::Protection;
use super::{AEAD_TAG_LEN, CryptoError, HEADER_LEN, LENGTH_LEN, MIN_PADDING};
use crate::cipher::{Cipher, Mac};

/// Opens packets with the keys of one direction.
pub struct Opener {
    protection: Protection<chacha::OpeningKey>,
}

impl Opener {
    /// No protection: before the first NEWKEYS.
    pub fn plain() -> Self {
        Opener {
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
        let protection = Protection::new(cipher, mac, key, iv, mac_key, chacha::OpeningKey::new)?;
        Ok(Opener { protection })
    }

    /// Octets of a packet that [`Opener::packet_len`] needs.
    pub fn head_len(&self) -> usize {
        match &self.protection {
            Protection::CounterMode(counter_mode) if !counter_mode.mac().encrypt_then_mac() => {
                BLOCK_LEN
            }
            _ => LENGTH_LEN,
        }
    }

    /// Octets of the whole packet on the wire, its length field and tag included, from its first
    /// [`Opener::head_len`] octets. Changes nothing, so it may be asked again as input trickles in.
    ///
    /// The length is not yet authenticated; it is only what to wait for.
    ///
    /// # Errors
    ///
    /// When the length is out of range or not aligned, or `head` is too short.
    pub fn packet_len(&self, sequence: u32, head: &[u8]) -> Result<usize, CryptoError> {
        let length = self.decrypted_length(sequence, head)?;
        Ok(self.protection.alignment().checked(length)? + self.protection.tag_len())
    }

    /// Checks and decrypts in place one packet of exactly [`Opener::packet_len`] octets; returns where its
    /// payload lies. After an error the packet's octets are worthless, and so is the connection.
    ///
    /// # Errors
    ///
    /// [`CryptoError::Corrupt`] when the packet was not sealed by the peer with this sequence number.
    pub fn open(&mut self, sequence: u32, packet: &mut [u8]) -> Result<Range<usize>, CryptoError> {
        let expected = self.packet_len(sequence, packet)?;
        if packet.len() != expected {
            return Err(CryptoError::Size {
                expected,
                found: packet.len(),
            });
        }
        let tag_at = expected - self.protection.tag_len();
        match &mut self.protection {
            Protection::Plain => {}
            Protection::Gcm(gcm) => gcm.open(packet)?,
            Protection::ChaCha20Poly1305(key) => {
                let (sealed, tag) = packet
                    .split_last_chunk_mut::<AEAD_TAG_LEN>()
                    .ok_or(CryptoError::Corrupt)?;
                key.open_in_place(sequence, sealed, tag)
                    .map_err(|_| CryptoError::Corrupt)?;
            }
            Protection::CounterMode(counter_mode) => counter_mode.open(sequence, packet)?,
        }
        payload_of(&packet[..tag_at])
    }

    /// packet_length in clear.
    fn decrypted_length(
        &self,
        sequence: u32,
        head: &[u8],
    ) -> Result<[u8; LENGTH_LEN], CryptoError> {
        let too_short = CryptoError::Size {
            expected: self.head_len(),
            found: head.len(),
        };
        match &self.protection {
            Protection::CounterMode(counter_mode) if !counter_mode.mac().encrypt_then_mac() => {
                let block = counter_mode.peek(*head.first_chunk().ok_or(too_short)?)?;
                block.first_chunk().copied().ok_or(too_short)
            }
            Protection::ChaCha20Poly1305(key) => {
                Ok(key.decrypt_packet_length(sequence, *head.first_chunk().ok_or(too_short)?))
            }
            _ => head.first_chunk().copied().ok_or(too_short),
        }
    }
}

/// Where the payload lies in an opened packet without its tag.
fn payload_of(packet: &[u8]) -> Result<Range<usize>, CryptoError> {
    let padding = usize::from(*packet.get(LENGTH_LEN).ok_or(CryptoError::Padding)?);
    let end = packet
        .len()
        .checked_sub(padding)
        .ok_or(CryptoError::Padding)?;
    if padding < MIN_PADDING || end <= HEADER_LEN {
        return Err(CryptoError::Padding);
    }
    Ok(HEADER_LEN..end)
}
