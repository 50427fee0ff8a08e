//! What both directions share: the four kinds of protection, their sizes and keys.

use super::counter_mode::CounterMode;
use super::gcm::Gcm;
use super::{AEAD_TAG_LEN, Alignment, CryptoError};
use crate::cipher::{Cipher, Mac};

/// The keys of one direction. `ChaCha` is the library's key for that direction.
///
/// Counter mode is boxed because it is ten times as large as the others: idle connections should be small.
pub(super) enum Protection<ChaCha> {
    Plain,
    Gcm(Gcm),
    ChaCha20Poly1305(ChaCha),
    CounterMode(Box<CounterMode>),
}

impl<ChaCha> Protection<ChaCha> {
    pub(super) fn new(
        cipher: Cipher,
        mac: Option<Mac>,
        key: &[u8],
        iv: &[u8],
        mac_key: &[u8],
        chacha_key: fn(&[u8; 64]) -> ChaCha,
    ) -> Result<Self, CryptoError> {
        match cipher {
            Cipher::Aes128Gcm | Cipher::Aes256Gcm => {
                Ok(Protection::Gcm(Gcm::new(cipher, key, iv)?))
            }
            Cipher::ChaCha20Poly1305 => {
                let key = key.try_into().map_err(|_| CryptoError::Keys)?;
                Ok(Protection::ChaCha20Poly1305(chacha_key(key)))
            }
            Cipher::Aes128Ctr | Cipher::Aes192Ctr | Cipher::Aes256Ctr => {
                let mac = mac.ok_or(CryptoError::Keys)?;
                let counter_mode = CounterMode::new(cipher, mac, key, iv, mac_key)?;
                Ok(Protection::CounterMode(Box::new(counter_mode)))
            }
        }
    }

    pub(super) fn tag_len(&self) -> usize {
        match self {
            Protection::Plain => 0,
            Protection::Gcm(_) | Protection::ChaCha20Poly1305(_) => AEAD_TAG_LEN,
            Protection::CounterMode(counter_mode) => counter_mode.mac().tag_len(),
        }
    }

    pub(super) fn alignment(&self) -> Alignment {
        match self {
            Protection::Plain => Alignment {
                block_len: 8,
                counts_length: true,
            },
            Protection::Gcm(_) => Alignment {
                block_len: 16,
                counts_length: false,
            },
            Protection::ChaCha20Poly1305(_) => Alignment {
                block_len: 8,
                counts_length: false,
            },
            Protection::CounterMode(counter_mode) => counter_mode.alignment(),
        }
    }
}
