//! X25519 (RFC 7748, RFC 8731) and ECDH over the NIST curves (RFC 5656 section 4).

use aws_lc_rs::agreement::{
    self, ECDH_P256, ECDH_P384, ECDH_P521, PrivateKey, UnparsedPublicKey, X25519,
};

use super::{KexError, KexMethod};

/// Octets of an X25519 public value.
pub(super) const X25519_LEN: usize = 32;
/// First octet of an uncompressed point (SEC 1 section 2.3.3), the only form RFC 5656 requires.
const UNCOMPRESSED: u8 = 4;

/// An ephemeral scalar.
pub(super) struct CurveKey {
    key: PrivateKey,
    public_len: usize,
}

impl CurveKey {
    /// The encoded public value and its key. `method` is one of the four curves.
    pub(super) fn generate(method: KexMethod) -> Result<(Vec<u8>, Self), KexError> {
        let curve: &'static agreement::Algorithm = match method {
            KexMethod::NistP256 => &ECDH_P256,
            KexMethod::NistP384 => &ECDH_P384,
            KexMethod::NistP521 => &ECDH_P521,
            _ => &X25519,
        };
        let key = PrivateKey::generate(curve).map_err(|_| KexError::Library)?;
        CurveKey::new(key)
    }

    fn new(key: PrivateKey) -> Result<(Vec<u8>, Self), KexError> {
        let public = key.compute_public_key().map_err(|_| KexError::Library)?;
        let public = public.as_ref().to_vec();
        let public_len = public.len();
        Ok((public, CurveKey { key, public_len }))
    }

    /// Hands the shared secret's octets (the x-coordinate, for NIST curves) to `encode`.
    ///
    /// The library checks that a point is on its curve, and refuses an all-zero X25519 result, which
    /// RFC 8731 section 3 demands.
    pub(super) fn agree<T>(
        self,
        peer: &[u8],
        encode: impl FnOnce(&[u8]) -> T,
    ) -> Result<T, KexError> {
        let CurveKey { key, public_len } = self;
        if peer.len() != public_len {
            return Err(KexError::PublicLength {
                expected: public_len,
                found: peer.len(),
            });
        }
        // The library would take other encodings of the same length too.
        if public_len != X25519_LEN && peer[0] != UNCOMPRESSED {
            return Err(KexError::PublicValue);
        }
        let peer = UnparsedPublicKey::new(key.algorithm(), peer);
        agreement::agree(&key, peer, KexError::PublicValue, |shared| {
            Ok(encode(shared))
        })
    }
}

#[cfg(test)]
#[path = "curve_tests.rs"]
mod tests;
