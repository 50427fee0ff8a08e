//! AES in Galois/counter mode: RFC 5647 as OpenSSH negotiates it.

use aws_lc_rs::aead::{Aad, LessSafeKey, Nonce, UnboundKey};

use super::{AEAD_TAG_LEN, CryptoError, LENGTH_LEN};
use crate::cipher::Cipher;

/// One direction's key and its next nonce.
pub(super) struct Gcm {
    key: LessSafeKey,
    /// RFC 5647 section 7.1: a fixed field of 4 octets, then the invocation counter of 8.
    nonce: [u8; 12],
}

impl Gcm {
    pub(super) fn new(cipher: Cipher, key: &[u8], iv: &[u8]) -> Result<Self, CryptoError> {
        let algorithm = cipher.aead().ok_or(CryptoError::Keys)?;
        let key = UnboundKey::new(algorithm, key).map_err(|_| CryptoError::Keys)?;
        let nonce = iv.try_into().map_err(|_| CryptoError::Keys)?;
        Ok(Gcm {
            key: LessSafeKey::new(key),
            nonce,
        })
    }

    /// A nonce is used for one packet: the counter steps whatever becomes of it. 2^64 packets are never
    /// reached: keys change long before.
    fn next_nonce(&mut self) -> Nonce {
        let nonce = Nonce::assume_unique_for_key(self.nonce);
        if let Some(counter) = self.nonce.last_chunk_mut() {
            *counter = u64::from_be_bytes(*counter).wrapping_add(1).to_be_bytes();
        }
        nonce
    }

    /// Seals packet_length || rest and returns the tag.
    pub(super) fn seal(&mut self, packet: &mut [u8]) -> Result<[u8; AEAD_TAG_LEN], CryptoError> {
        let nonce = self.next_nonce();
        let (length, rest) = packet
            .split_first_chunk_mut::<LENGTH_LEN>()
            .ok_or(CryptoError::Unsealable)?;
        let mut tag = [0; AEAD_TAG_LEN];
        self.key
            .seal_in_place_scatter(nonce, Aad::from(*length), rest, &[], &mut tag)
            .map_err(|_| CryptoError::Unsealable)?;
        Ok(tag)
    }

    /// Opens packet_length || ciphertext || tag.
    pub(super) fn open(&mut self, packet: &mut [u8]) -> Result<(), CryptoError> {
        let nonce = self.next_nonce();
        let (length, sealed) = packet
            .split_first_chunk_mut::<LENGTH_LEN>()
            .ok_or(CryptoError::Corrupt)?;
        match self.key.open_in_place(nonce, Aad::from(*length), sealed) {
            Ok(_) => Ok(()),
            Err(_) => Err(CryptoError::Corrupt),
        }
    }
}
