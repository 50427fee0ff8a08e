//! Key exchange, signatures and packet protection: thin adapters over kept crates.
//!
//! No cipher, curve or hash is written here. What is written here is how SSH puts them together:
//! lengths, encodings, nonces, order of authentication and decryption, and the checks that the RFCs
//! and OpenSSH make on what a peer sends. Nothing in this crate touches a socket, a clock or a file.
//!
//! ```text
//! kex      the ephemeral half of a key exchange, and the shared secret   RFC 4253 8, 4419, 5656, 8731, 9142
//! hash     the exchange hash and the keys drawn from it                  RFC 4253 7.2
//! cipher   names, sizes and limits of ciphers and MACs                   RFC 4344, 5647, 6668
//! packet   Sealer and Opener: one packet, in place                       RFC 4253 6
//! sign     private keys and their signatures                             PROTOCOL.key, RFC 8332, 5656, 8709
//! verify   signatures of others                                          the same
//! certificate  OpenSSH certificates                                      PROTOCOL.certkeys
//! ```

pub mod certificate;
pub mod cipher;
mod fields;
pub mod hash;
#[cfg(test)]
mod hex;
pub mod kex;
mod key_file;
pub mod packet;
pub mod public_key;
pub mod sign;
#[cfg(test)]
mod ssh_keygen;
pub mod verify;

pub use certificate::{CertificateError, HostCertificate, UserCertificate};
pub use cipher::{Cipher, Mac};
pub use hash::{Digest, DigestOutput, HashAlgorithm, derive_key};
pub use kex::{Ephemeral, GexGroup, KexAlgorithm, KexError, KexMethod, SharedSecret};
pub use key_file::KeyFileError;
pub use packet::{CryptoError, MAX_PACKET, Opener, Sealer};
pub use public_key::{PublicKey, PublicKeyError, fingerprint_sha256};
pub use sign::{PrivateKey, SignError};
pub use verify::{VerifyError, verify, verify_with_minimum};

/// Fills `out` with octets from the operating system's generator, by way of the library's own.
///
/// # Panics
///
/// When the system has no randomness to give: nothing safe could follow.
pub fn random(out: &mut [u8]) {
    aws_lc_rs::rand::fill(out).expect("the system's random generator does not fail");
}
