//! Private keys, and the signatures they make.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING,
    ECDSA_P521_SHA512_FIXED_SIGNING, EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair,
    RSA_PKCS1_SHA256, RSA_PKCS1_SHA512, RsaEncoding,
};
use zeroize::Zeroizing;

use crate::fields::{put_mpint, put_string};
use crate::key_file::{self, KeyFileError};
use crate::public_key::Curve;

/// Why a key cannot sign.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignError {
    /// Not one of [`PrivateKey::algorithms`].
    #[error("a key of this type cannot sign with {algorithm:?}")]
    Algorithm {
        /// As asked for.
        algorithm: String,
    },
    /// The library refused; nothing that is signed leads here.
    #[error("the cryptographic library failed")]
    Library,
}

/// A private key in memory. The library wipes it when it is dropped.
pub struct PrivateKey {
    public_blob: Vec<u8>,
    comment: String,
    pair: Pair,
    agent_form: Option<Zeroizing<Vec<u8>>>,
}

/// The key in the form in which the library signs.
pub(crate) enum Pair {
    Ed25519(Ed25519KeyPair),
    Ecdsa(Curve, EcdsaKeyPair),
    Rsa(Box<rsa::KeyPair>),
}

impl PrivateKey {
    /// Reads a private key file: OpenSSH's format (PROTOCOL.key), or PEM with PKCS#1, PKCS#8 or SEC1 inside.
    /// The passphrase is used only where the file is encrypted.
    ///
    /// # Errors
    ///
    /// [`KeyFileError::Encrypted`] asks for a passphrase; the others say why the file is of no use.
    pub fn parse(file: &[u8], passphrase: Option<&[u8]>) -> Result<Self, KeyFileError> {
        key_file::parse(file, passphrase)
    }

    pub(crate) fn new(pair: Pair, comment: String) -> Self {
        PrivateKey {
            public_blob: pair.public_blob(),
            comment,
            pair,
            agent_form: None,
        }
    }

    /// Keeps type and private fields as the file has them.
    pub(crate) fn with_agent_form(self, octets: &[u8]) -> Self {
        PrivateKey {
            agent_form: Some(Zeroizing::new(octets.to_vec())),
            ..self
        }
    }

    /// The public half, as it travels.
    pub fn public_blob(&self) -> &[u8] {
        &self.public_blob
    }

    /// The comment in the file, "" if it has none.
    pub fn comment(&self) -> &str {
        &self.comment
    }

    /// Type and private fields, as an ssh-agent takes them (RFC 9987 section 3.2): secret. `None` for files that are not
    /// in OpenSSH's own format.
    pub fn agent_form(&self) -> Option<&[u8]> {
        self.agent_form.as_ref().map(|octets| octets.as_slice())
    }

    /// Signature algorithms of this key, best first (RFC 8332 for RSA: never SHA-1).
    pub fn algorithms(&self) -> &'static [&'static str] {
        match &self.pair {
            Pair::Ed25519(_) => &["ssh-ed25519"],
            Pair::Ecdsa(Curve::P256, _) => &["ecdsa-sha2-nistp256"],
            Pair::Ecdsa(Curve::P384, _) => &["ecdsa-sha2-nistp384"],
            Pair::Ecdsa(Curve::P521, _) => &["ecdsa-sha2-nistp521"],
            Pair::Rsa(_) => &["rsa-sha2-512", "rsa-sha2-256"],
        }
    }

    /// The signature blob over `data`: string algorithm, string signature (RFC 4253 section 6.6).
    ///
    /// # Errors
    ///
    /// [`SignError::Algorithm`] for an algorithm of another kind of key.
    pub fn sign(&self, algorithm: &str, data: &[u8]) -> Result<Vec<u8>, SignError> {
        if !self.algorithms().contains(&algorithm) {
            return Err(SignError::Algorithm {
                algorithm: algorithm.to_owned(),
            });
        }
        let mut blob = Vec::new();
        put_string(&mut blob, algorithm.as_bytes());
        match &self.pair {
            Pair::Ed25519(pair) => put_string(&mut blob, pair.sign(data).as_ref()),
            Pair::Ecdsa(_, pair) => put_string(&mut blob, &sign_ecdsa(pair, data)?),
            Pair::Rsa(pair) => put_string(&mut blob, &sign_rsa(pair, algorithm, data)?),
        }
        Ok(blob)
    }
}

/// RFC 5656 section 3.1.2: mpint r, mpint s.
fn sign_ecdsa(pair: &EcdsaKeyPair, data: &[u8]) -> Result<Vec<u8>, SignError> {
    let fixed = pair
        .sign(&SystemRandom::new(), data)
        .map_err(|_| SignError::Library)?;
    let (r, s) = fixed.as_ref().split_at(fixed.as_ref().len() / 2);
    let mut signature = Vec::with_capacity(fixed.as_ref().len() + 10);
    put_mpint(&mut signature, r);
    put_mpint(&mut signature, s);
    Ok(signature)
}

/// RFC 8332 section 3.
fn sign_rsa(pair: &rsa::KeyPair, algorithm: &str, data: &[u8]) -> Result<Vec<u8>, SignError> {
    let padding: &'static dyn RsaEncoding = match algorithm {
        "rsa-sha2-256" => &RSA_PKCS1_SHA256,
        _ => &RSA_PKCS1_SHA512,
    };
    let mut signature = vec![0; pair.public_modulus_len()];
    pair.sign(padding, &SystemRandom::new(), data, &mut signature)
        .map_err(|_| SignError::Library)?;
    Ok(signature)
}

impl Curve {
    pub(crate) fn signing(self) -> &'static EcdsaSigningAlgorithm {
        match self {
            Curve::P256 => &ECDSA_P256_SHA256_FIXED_SIGNING,
            Curve::P384 => &ECDSA_P384_SHA384_FIXED_SIGNING,
            Curve::P521 => &ECDSA_P521_SHA512_FIXED_SIGNING,
        }
    }
}

impl Pair {
    fn public_blob(&self) -> Vec<u8> {
        let mut blob = Vec::new();
        match self {
            Pair::Ed25519(pair) => {
                put_string(&mut blob, b"ssh-ed25519");
                put_string(&mut blob, pair.public_key().as_ref());
            }
            Pair::Ecdsa(curve, pair) => {
                put_string(&mut blob, curve.key_type().as_bytes());
                put_string(&mut blob, curve.name().as_bytes());
                put_string(&mut blob, pair.public_key().as_ref());
            }
            Pair::Rsa(pair) => {
                let public = pair.public_key();
                put_string(&mut blob, b"ssh-rsa");
                put_mpint(
                    &mut blob,
                    public.exponent().big_endian_without_leading_zero(),
                );
                put_mpint(
                    &mut blob,
                    public.modulus().big_endian_without_leading_zero(),
                );
            }
        }
        blob
    }
}

#[cfg(test)]
mod tests;
