//! A post-quantum KEM beside X25519: the secret holds while either does.
//!
//! Client sends KEM public key || X25519 public value, server answers KEM ciphertext || X25519 public
//! value, K = HASH(KEM secret || X25519 secret), a string (draft-ietf-sshm-mlkem-hybrid-kex section 2,
//! draft-ietf-sshm-ntruprime-ssh section 3).

use aws_lc_rs::kem::{Ciphertext, DecapsulationKey, ML_KEM_768};
use zeroize::Zeroizing;

use super::curve::{CurveKey, X25519_LEN};
use super::{KexError, KexMethod, SharedSecret};
use crate::hash::{Digest, HashAlgorithm};

/// FIPS 203 table 3: octets of an ML-KEM-768 ciphertext.
const ML_KEM_768_CIPHERTEXT_LEN: usize = 1088;

/// Both ephemeral keys.
pub(super) struct HybridKey {
    kem: KemKey,
    curve: CurveKey,
}

enum KemKey {
    MlKem768(DecapsulationKey),
    Sntrup761(Box<sntrup761::DecapsulationKey>),
}

impl HybridKey {
    /// What is sent, and the keys. `method` is one of the two hybrids.
    pub(super) fn generate(method: KexMethod) -> Result<(Vec<u8>, Self), KexError> {
        let (mut public, kem) = match method {
            KexMethod::Sntrup761X25519 => KemKey::generate_sntrup761(),
            _ => KemKey::generate_ml_kem_768()?,
        };
        let (curve_public, curve) = CurveKey::generate(KexMethod::X25519)?;
        public.extend_from_slice(&curve_public);
        Ok((public, HybridKey { kem, curve }))
    }

    pub(super) fn agree(self, peer: &[u8]) -> Result<SharedSecret, KexError> {
        let HybridKey { kem, curve } = self;
        let expected = kem.ciphertext_len() + X25519_LEN;
        if peer.len() != expected {
            return Err(KexError::PublicLength {
                expected,
                found: peer.len(),
            });
        }
        let (ciphertext, curve_public) = peer.split_at(kem.ciphertext_len());
        let mut digest = Digest::new(kem.hash());
        kem.decapsulate(ciphertext, |secret| digest.update(secret))?;
        curve.agree(curve_public, |secret| digest.update(secret))?;
        Ok(SharedSecret::string(digest.finish().as_ref()))
    }
}

impl KemKey {
    fn generate_ml_kem_768() -> Result<(Vec<u8>, KemKey), KexError> {
        let key = DecapsulationKey::generate(&ML_KEM_768).map_err(|_| KexError::Library)?;
        let public = key.encapsulation_key().map_err(|_| KexError::Library)?;
        let public = public.key_bytes().map_err(|_| KexError::Library)?;
        Ok((public.as_ref().to_vec(), KemKey::MlKem768(key)))
    }

    fn generate_sntrup761() -> (Vec<u8>, KemKey) {
        let mut seed = Zeroizing::new([0; 32]);
        crate::random(seed.as_mut());
        let (public, key) = sntrup761::generate_key_from_seed(*seed);
        (public.as_ref().to_vec(), KemKey::Sntrup761(Box::new(key)))
    }

    fn ciphertext_len(&self) -> usize {
        match self {
            KemKey::MlKem768(_) => ML_KEM_768_CIPHERTEXT_LEN,
            KemKey::Sntrup761(_) => sntrup761::CIPHERTEXT_SIZE,
        }
    }

    fn hash(&self) -> HashAlgorithm {
        match self {
            KemKey::MlKem768(_) => HashAlgorithm::Sha256,
            KemKey::Sntrup761(_) => HashAlgorithm::Sha512,
        }
    }

    /// Hands the KEM's secret to `take`. A wrong ciphertext gives a random secret, not an error: both
    /// KEMs reject implicitly, and the host key's signature settles it.
    fn decapsulate(&self, ciphertext: &[u8], take: impl FnOnce(&[u8])) -> Result<(), KexError> {
        match self {
            KemKey::MlKem768(key) => {
                let secret = key
                    .decapsulate(Ciphertext::from(ciphertext))
                    .map_err(|_| KexError::Library)?;
                take(secret.as_ref());
            }
            KemKey::Sntrup761(key) => {
                let ciphertext =
                    sntrup761::Ciphertext::try_from(ciphertext).map_err(|_| KexError::Library)?;
                take(key.decapsulate(&ciphertext).as_ref());
            }
        }
        Ok(())
    }
}
