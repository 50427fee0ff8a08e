//! Hashes of the key exchange, and the keys drawn from them.

use aws_lc_rs::digest;
use zeroize::Zeroize;

use crate::kex::SharedSecret;

/// The hash that a key exchange method names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HashAlgorithm {
    /// SHA-256 (RFC 6234).
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
}

impl HashAlgorithm {
    /// Octets of output.
    pub const fn output_len(self) -> usize {
        match self {
            HashAlgorithm::Sha256 => 32,
            HashAlgorithm::Sha384 => 48,
            HashAlgorithm::Sha512 => 64,
        }
    }

    fn algorithm(self) -> &'static digest::Algorithm {
        match self {
            HashAlgorithm::Sha256 => &digest::SHA256,
            HashAlgorithm::Sha384 => &digest::SHA384,
            HashAlgorithm::Sha512 => &digest::SHA512,
        }
    }
}

/// A hash being computed.
#[derive(Clone)]
pub struct Digest {
    context: digest::Context,
}

impl Digest {
    /// Starts a hash.
    pub fn new(hash: HashAlgorithm) -> Self {
        Digest {
            context: digest::Context::new(hash.algorithm()),
        }
    }

    /// Adds octets.
    pub fn update(&mut self, octets: &[u8]) {
        self.context.update(octets);
    }

    /// The hash of all that was added.
    pub fn finish(self) -> DigestOutput {
        let digest = self.context.finish();
        let mut output = DigestOutput {
            octets: [0; 64],
            len: digest.as_ref().len(),
        };
        output.octets[..output.len].copy_from_slice(digest.as_ref());
        output
    }
}

/// A finished hash: up to 64 octets, wiped when dropped because shared secrets are hashes too.
#[derive(Clone)]
pub struct DigestOutput {
    octets: [u8; 64],
    len: usize,
}

impl AsRef<[u8]> for DigestOutput {
    fn as_ref(&self) -> &[u8] {
        &self.octets[..self.len]
    }
}

impl Drop for DigestOutput {
    fn drop(&mut self) {
        self.octets.zeroize();
    }
}

/// Fills `out` with the key that `letter` names: "A" and "B" are initialisation vectors, "C" and "D"
/// encryption keys, "E" and "F" integrity keys, the first of each pair client to server.
///
/// RFC 4253 section 7.2: K1 = HASH(K || H || X || session_id), K2 = HASH(K || H || K1),
/// K3 = HASH(K || H || K1 || K2), key = K1 || K2 || K3 ...
pub fn derive_key(
    hash: HashAlgorithm,
    secret: &SharedSecret,
    exchange_hash: &[u8],
    session_id: &[u8],
    letter: u8,
    out: &mut [u8],
) {
    let mut prefix = Digest::new(hash);
    prefix.update(secret.encoded());
    prefix.update(exchange_hash);
    for start in (0..out.len()).step_by(hash.output_len()) {
        let mut digest = prefix.clone();
        if start == 0 {
            digest.update(&[letter]);
            digest.update(session_id);
        } else {
            digest.update(&out[..start]);
        }
        let block = digest.finish();
        let end = out.len().min(start + hash.output_len());
        out[start..end].copy_from_slice(&block.as_ref()[..end - start]);
    }
}

#[cfg(test)]
#[path = "hash_tests.rs"]
mod tests;
