//! Signatures of host keys and certificate authorities.

use aws_lc_rs::digest;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ECDSA_P521_SHA512_FIXED, ED25519,
    EcdsaVerificationAlgorithm, RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY,
    RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey,
};

use crate::fields::{Fields, Truncated, left_padded};
use crate::public_key::{Curve, KeyMaterial, KeyMaterialError};

/// RSA keys below this are refused unless RequiredRSASize says otherwise, bits.
pub const DEFAULT_MINIMUM_RSA_BITS: usize = 2048;
/// RSA keys above this are refused: the library's limit, bits.
pub const MAXIMUM_RSA_BITS: usize = 8192;
/// RSA keys below this are refused whatever RequiredRSASize says (OpenSSH's `SSH_RSA_MINIMUM_MODULUS_SIZE`), bits.
pub const LEAST_RSA_BITS: usize = 1024;

/// Why a signature is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// Not one of the algorithms of this crate.
    #[error("signature algorithm {0:?} is not supported")]
    UnsupportedAlgorithm(String),
    /// The signature names another algorithm than the one agreed on (RFC 8332 section 3.2).
    #[error("the signature is {found:?} where {expected:?} was agreed on")]
    AlgorithmMismatch {
        /// As agreed.
        expected: String,
        /// As the signature says.
        found: String,
    },
    /// The key's type does not go with the signature algorithm, or the key is damaged.
    #[error("the key is damaged, or of another type than {algorithm:?} needs")]
    Key {
        /// As agreed.
        algorithm: String,
    },
    /// The signature is cut short, too long, or not what its algorithm asks.
    #[error("the signature is damaged")]
    Malformed,
    /// An RSA key of a size that is not accepted.
    #[error(
        "the RSA key has {bits} bits; {minimum} to {MAXIMUM_RSA_BITS} are accepted (RequiredRSASize)"
    )]
    RsaKeySize {
        /// Of its modulus.
        bits: usize,
        /// As configured.
        minimum: usize,
    },
    /// The key did not sign this.
    #[error("the signature is wrong: the key did not sign this")]
    Wrong,
}

impl From<Truncated> for VerifyError {
    fn from(_: Truncated) -> Self {
        VerifyError::Malformed
    }
}

/// Whether `signature` (a signature blob) is the key's over `data`, by `algorithm`, and no other.
///
/// `algorithm` is one of ssh-ed25519, ecdsa-sha2-nistp256/384/521, rsa-sha2-256/512 and the two `sk-` types;
/// `key_blob` is a plain key, not a certificate. RSA keys under 2048 bits are refused.
///
/// # Errors
///
/// Says what is wrong with key or signature.
pub fn verify(
    algorithm: &str,
    key_blob: &[u8],
    signature: &[u8],
    data: &[u8],
) -> Result<(), VerifyError> {
    verify_with_minimum(
        algorithm,
        key_blob,
        signature,
        data,
        DEFAULT_MINIMUM_RSA_BITS,
    )
}

/// [`verify`] with another least size of RSA keys (RequiredRSASize), in bits; 1024 is the least there is.
///
/// # Errors
///
/// As [`verify`].
pub fn verify_with_minimum(
    algorithm: &str,
    key_blob: &[u8],
    signature: &[u8],
    data: &[u8],
    minimum_rsa_bits: usize,
) -> Result<(), VerifyError> {
    let method = Method::by_name(algorithm)
        .ok_or_else(|| VerifyError::UnsupportedAlgorithm(algorithm.to_owned()))?;
    let mut fields = Fields::new(signature);
    let named = fields.string()?;
    if named != algorithm.as_bytes() {
        return Err(VerifyError::AlgorithmMismatch {
            expected: algorithm.to_owned(),
            found: String::from_utf8_lossy(named).into_owned(),
        });
    }
    let key = KeyMaterial::parse(key_blob).map_err(|_: KeyMaterialError| VerifyError::Key {
        algorithm: algorithm.to_owned(),
    })?;
    match (method, key) {
        (Method::Ed25519, KeyMaterial::Ed25519(public)) => {
            check_ed25519(public, last_string(fields)?, data)
        }
        (Method::Ecdsa(wanted), KeyMaterial::Ecdsa { curve, point }) if curve == wanted => {
            check_ecdsa(curve, point, last_string(fields)?, data)
        }
        (Method::Rsa(parameters), KeyMaterial::Rsa { e, n }) => {
            let minimum = minimum_rsa_bits.max(LEAST_RSA_BITS);
            if !(minimum..=MAXIMUM_RSA_BITS).contains(&key.bits()) {
                return Err(VerifyError::RsaKeySize {
                    bits: key.bits(),
                    minimum,
                });
            }
            check_rsa(parameters, e, n, last_string(fields)?, data)
        }
        (
            Method::SkEd25519,
            KeyMaterial::SkEd25519 {
                public,
                application,
            },
        ) => {
            let (signature, signed) = authenticator_data(fields, application, data)?;
            check_ed25519(public, signature, &signed)
        }
        (Method::SkEcdsa, KeyMaterial::SkEcdsa { point, application }) => {
            let (signature, signed) = authenticator_data(fields, application, data)?;
            check_ecdsa(Curve::P256, point, signature, &signed)
        }
        _ => Err(VerifyError::Key {
            algorithm: algorithm.to_owned(),
        }),
    }
}

/// A signature algorithm.
#[derive(Clone, Copy)]
enum Method {
    Ed25519,
    Ecdsa(Curve),
    Rsa(&'static RsaParameters),
    SkEd25519,
    SkEcdsa,
}

impl Method {
    fn by_name(algorithm: &str) -> Option<Method> {
        match algorithm {
            "ssh-ed25519" => Some(Method::Ed25519),
            "rsa-sha2-256" => Some(Method::Rsa(&RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY)),
            "rsa-sha2-512" => Some(Method::Rsa(&RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY)),
            "sk-ssh-ed25519@openssh.com" => Some(Method::SkEd25519),
            "sk-ecdsa-sha2-nistp256@openssh.com" => Some(Method::SkEcdsa),
            _ => Curve::of_key_type(algorithm).map(Method::Ecdsa),
        }
    }
}

fn last_string(mut fields: Fields<'_>) -> Result<&[u8], VerifyError> {
    let string = fields.string()?;
    if fields.is_empty() {
        Ok(string)
    } else {
        Err(VerifyError::Malformed)
    }
}

/// RFC 8709 section 6.
fn check_ed25519(public: &[u8; 32], signature: &[u8], data: &[u8]) -> Result<(), VerifyError> {
    UnparsedPublicKey::new(&ED25519, public)
        .verify(data, signature)
        .map_err(|_| VerifyError::Wrong)
}

/// RFC 5656 section 3.1.2: mpint r, mpint s.
fn check_ecdsa(
    curve: Curve,
    point: &[u8],
    signature: &[u8],
    data: &[u8],
) -> Result<(), VerifyError> {
    let algorithm: &EcdsaVerificationAlgorithm = match curve {
        Curve::P256 => &ECDSA_P256_SHA256_FIXED,
        Curve::P384 => &ECDSA_P384_SHA384_FIXED,
        Curve::P521 => &ECDSA_P521_SHA512_FIXED,
    };
    let mut fields = Fields::new(signature);
    let (r, s) = (fields.mpint()?, fields.mpint()?);
    let fixed = left_padded(r, curve.scalar_len()).zip(left_padded(s, curve.scalar_len()));
    let (Some((r, s)), true) = (fixed, fields.is_empty()) else {
        return Err(VerifyError::Malformed);
    };
    UnparsedPublicKey::new(algorithm, point)
        .verify(data, &[r.as_slice(), s.as_slice()].concat())
        .map_err(|_| VerifyError::Wrong)
}

/// RFC 8332 section 3. Some servers leave out leading zeros; OpenSSH puts them back (ssh-rsa.c).
fn check_rsa(
    parameters: &RsaParameters,
    e: &[u8],
    n: &[u8],
    signature: &[u8],
    data: &[u8],
) -> Result<(), VerifyError> {
    if signature.len() > n.len() {
        return Err(VerifyError::Malformed);
    }
    let signature = left_padded(signature, n.len()).ok_or(VerifyError::Malformed)?;
    RsaPublicKeyComponents { n, e }
        .verify(parameters, data, &signature)
        .map_err(|_| VerifyError::Wrong)
}

/// What a FIDO authenticator signed (PROTOCOL.u2f): SHA256(application) || flags || counter || SHA256(data);
/// and the signature itself. Whether somebody touched it (in `flags`) is no client's business: OpenSSH's
/// does not ask it of host keys and authorities either.
fn authenticator_data<'a>(
    mut fields: Fields<'a>,
    application: &[u8],
    data: &[u8],
) -> Result<(&'a [u8], Vec<u8>), VerifyError> {
    let signature = fields.string()?;
    let (flags, counter) = (fields.u8()?, fields.octets::<4>()?);
    if !fields.is_empty() {
        return Err(VerifyError::Malformed);
    }
    let mut signed = Vec::with_capacity(32 + 1 + 4 + 32);
    signed.extend_from_slice(digest::digest(&digest::SHA256, application).as_ref());
    signed.push(flags);
    signed.extend_from_slice(counter);
    signed.extend_from_slice(digest::digest(&digest::SHA256, data).as_ref());
    Ok((signature, signed))
}

#[cfg(test)]
mod tests;
