//! The client's half of a key exchange: an ephemeral key, what is sent of it, and the shared secret.

mod curve;
mod diffie_hellman;
mod groups;
mod hybrid;

use zeroize::Zeroizing;

use crate::fields::{put_mpint, put_string};
use crate::hash::HashAlgorithm;

use curve::CurveKey;
use diffie_hellman::DhKey;
use hybrid::HybridKey;

pub use diffie_hellman::GexGroup;

/// One name of the list in KEXINIT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KexAlgorithm {
    /// As negotiated.
    pub name: &'static str,
    /// The arithmetic behind it.
    pub method: KexMethod,
    /// The hash of the exchange and of key derivation.
    pub hash: HashAlgorithm,
}

/// The arithmetic of a key exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KexMethod {
    /// ML-KEM-768 with X25519 (draft-ietf-sshm-mlkem-hybrid-kex).
    MlKem768X25519,
    /// Streamlined NTRU Prime 761 with X25519 (draft-ietf-sshm-ntruprime-ssh).
    Sntrup761X25519,
    /// X25519 (RFC 8731).
    X25519,
    /// ECDH over nistp256 (RFC 5656 section 4).
    NistP256,
    /// ECDH over nistp384.
    NistP384,
    /// ECDH over nistp521.
    NistP521,
    /// Diffie-Hellman in the 2048-bit group 14 (RFC 3526, RFC 8268).
    DhGroup14,
    /// Diffie-Hellman in the 4096-bit group 16.
    DhGroup16,
    /// Diffie-Hellman in the 8192-bit group 18.
    DhGroup18,
    /// Diffie-Hellman in a group of the server's choice (RFC 4419).
    DhGroupExchange,
}

impl KexMethod {
    /// The hash that every name of the method goes with.
    const fn hash(self) -> HashAlgorithm {
        match self {
            KexMethod::MlKem768X25519
            | KexMethod::X25519
            | KexMethod::NistP256
            | KexMethod::DhGroup14
            | KexMethod::DhGroupExchange => HashAlgorithm::Sha256,
            KexMethod::NistP384 => HashAlgorithm::Sha384,
            KexMethod::Sntrup761X25519
            | KexMethod::NistP521
            | KexMethod::DhGroup16
            | KexMethod::DhGroup18 => HashAlgorithm::Sha512,
        }
    }
}

const fn algorithm(name: &'static str, method: KexMethod) -> KexAlgorithm {
    let hash = method.hash();
    KexAlgorithm { name, method, hash }
}

/// All key exchange algorithms in order of preference: by cost, within what is safe.
///
/// mlkem768x25519 comes first: post-quantum at the price of a curve. sntrup761x25519, post-quantum too,
/// comes after curve25519, against OpenSSH's order, because without AVX2 it costs some 11 ms of CPU a
/// host where curve25519 costs 0.03 ms (benches/cost.rs); who wants it first says so with KexAlgorithms.
pub static ALGORITHMS: &[KexAlgorithm] = &[
    algorithm("mlkem768x25519-sha256", KexMethod::MlKem768X25519),
    algorithm("curve25519-sha256", KexMethod::X25519),
    algorithm("curve25519-sha256@libssh.org", KexMethod::X25519),
    algorithm("sntrup761x25519-sha512", KexMethod::Sntrup761X25519),
    algorithm(
        "sntrup761x25519-sha512@openssh.com",
        KexMethod::Sntrup761X25519,
    ),
    algorithm("ecdh-sha2-nistp256", KexMethod::NistP256),
    algorithm("ecdh-sha2-nistp384", KexMethod::NistP384),
    algorithm("ecdh-sha2-nistp521", KexMethod::NistP521),
    algorithm("diffie-hellman-group14-sha256", KexMethod::DhGroup14),
    algorithm(
        "diffie-hellman-group-exchange-sha256",
        KexMethod::DhGroupExchange,
    ),
    algorithm("diffie-hellman-group16-sha512", KexMethod::DhGroup16),
    algorithm("diffie-hellman-group18-sha512", KexMethod::DhGroup18),
];

impl KexAlgorithm {
    /// The algorithm of this name, if this crate has it.
    pub fn by_name(name: &str) -> Option<&'static KexAlgorithm> {
        ALGORITHMS.iter().find(|algorithm| algorithm.name == name)
    }
}

/// Why a key exchange cannot go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KexError {
    /// The peer's public value has another length than the method says.
    #[error("the peer's public value has {found} octets, not {expected}")]
    PublicLength {
        /// By the method.
        expected: usize,
        /// In the message.
        found: usize,
    },
    /// A point off its curve, a low-order point, or a number outside 1 < f < p-1
    /// (RFC 8731 section 3, RFC 5656 section 4, RFC 4253 section 8).
    #[error(
        "the peer's public value is not valid: a broken server, or somebody tampers with the connection"
    )]
    PublicValue,
    /// RFC 4419 section 3 leaves the size to the client: OpenSSH takes 2048 to 8192 bits (dh.h).
    #[error("the server offers a Diffie-Hellman group of {bits} bits; 2048 to 8192 are accepted")]
    GroupSize {
        /// Of its prime.
        bits: usize,
    },
    /// An even modulus, or a generator outside 1 < g < p-1.
    #[error("the server offers a Diffie-Hellman group that is none")]
    Group,
    /// `diffie-hellman-group-exchange` needs the server's group; other methods take none.
    #[error("group exchange needs a group, other methods take none")]
    GroupMismatch,
    /// The library refused; no input of the peer leads here.
    #[error("the cryptographic library failed")]
    Library,
}

/// A key that lives for one key exchange.
pub struct Ephemeral {
    public: Vec<u8>,
    secret: Secret,
}

enum Secret {
    Curve(CurveKey),
    Hybrid(HybridKey),
    Dh(Box<DhKey>),
}

impl Ephemeral {
    /// Draws a key. `group` is the server's, for [`KexMethod::DhGroupExchange`] only.
    ///
    /// # Errors
    ///
    /// For a group that is missing, out of place, or not acceptable.
    pub fn generate(method: KexMethod, group: Option<&GexGroup>) -> Result<Self, KexError> {
        if group.is_some() != (method == KexMethod::DhGroupExchange) {
            return Err(KexError::GroupMismatch);
        }
        let (public, secret) = match method {
            KexMethod::MlKem768X25519 | KexMethod::Sntrup761X25519 => {
                let (public, key) = HybridKey::generate(method)?;
                (public, Secret::Hybrid(key))
            }
            KexMethod::X25519 | KexMethod::NistP256 | KexMethod::NistP384 | KexMethod::NistP521 => {
                let (public, key) = CurveKey::generate(method)?;
                (public, Secret::Curve(key))
            }
            KexMethod::DhGroup14
            | KexMethod::DhGroup16
            | KexMethod::DhGroup18
            | KexMethod::DhGroupExchange => {
                let (public, key) = DhKey::generate(method, group)?;
                (public, Secret::Dh(Box::new(key)))
            }
        };
        Ok(Ephemeral { public, secret })
    }

    /// What the server is sent: the content of the string field, or for Diffie-Hellman the magnitude
    /// of the mpint `e`.
    pub fn public(&self) -> &[u8] {
        &self.public
    }

    /// The secret shared with the peer whose public value this is (the string's content, or for
    /// Diffie-Hellman the magnitude of `f`).
    ///
    /// # Errors
    ///
    /// For a public value that RFC or draft tell to refuse.
    pub fn agree(self, peer: &[u8]) -> Result<SharedSecret, KexError> {
        match self.secret {
            Secret::Curve(key) => key.agree(peer, SharedSecret::mpint),
            Secret::Hybrid(key) => key.agree(peer),
            Secret::Dh(key) => key.agree(peer),
        }
    }
}

/// K, as it enters the exchange hash and key derivation. Wiped when dropped.
pub struct SharedSecret {
    encoded: Zeroizing<Vec<u8>>,
}

impl SharedSecret {
    /// K of RFC 4253 section 8 and RFC 5656 section 4.
    pub(crate) fn mpint(octets: &[u8]) -> Self {
        let mut encoded = Zeroizing::new(Vec::with_capacity(octets.len() + 5));
        put_mpint(&mut encoded, octets);
        SharedSecret { encoded }
    }

    /// K of the hybrid methods.
    fn string(octets: &[u8]) -> Self {
        let mut encoded = Zeroizing::new(Vec::with_capacity(octets.len() + 4));
        put_string(&mut encoded, octets);
        SharedSecret { encoded }
    }

    /// The mpint or string, length prefix included.
    pub fn encoded(&self) -> &[u8] {
        &self.encoded
    }
}

#[cfg(test)]
mod tests;
