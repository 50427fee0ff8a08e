//! `hostkeys-prove-00@openssh.com`: the server signs to show that it has the new keys.

use crate::key::{self, KeyFields, KeyType};
use crate::reader::{Reader, put_string};

const REQUEST: &[u8] = b"hostkeys-prove-00@openssh.com";

/// What follows the name and `want_reply` of the request: the keys that are to be proven.
pub fn prove_request(keys: &[&[u8]]) -> Vec<u8> {
    let mut data = Vec::new();
    keys.iter().for_each(|key| put_string(&mut data, key));
    data
}

/// A signature to be verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof<'a> {
    /// The key's place among those that were asked about.
    pub place: usize,
    /// The key's blob.
    pub key: &'a [u8],
    /// The signature algorithm to verify by.
    pub algorithm: &'a str,
    /// The signature's blob.
    pub signature: &'a [u8],
    /// What must have been signed: the request's name, the session identifier and the key.
    pub signed: Vec<u8>,
}

/// Why no key counts as proven.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    /// Too few or too many signatures, or none that can be read.
    #[error("the server's proof of its host keys is malformed")]
    Malformed,
    /// A signature by another algorithm than the key, or the connection's RSA key, uses.
    #[error("the server proved a host key with the wrong signature algorithm {0}")]
    Algorithm(String),
}

/// Takes the reply to [`prove_request`] apart: a signature for each of `keys`, in their order.
///
/// `host_key_algorithm` is that of the connection's key exchange. If it is RSA, proofs of RSA keys
/// must use it; otherwise those by `rsa-sha2-512` and `rsa-sha2-256` count, and keys proven by
/// anything weaker are left out. The keys that the result names are proven once *every* signature
/// in it verifies; if one does not, none is (`client_global_hostkeys_prove_confirm`,
/// clientloop.c).
pub fn parse_proofs<'a>(
    keys: &[&'a [u8]],
    reply: &'a [u8],
    session_id: &[u8],
    host_key_algorithm: &str,
) -> Result<Vec<Proof<'a>>, ProofError> {
    let mut reader = Reader(reply);
    let mut proofs = Vec::new();
    for (place, &key) in keys.iter().enumerate() {
        let signature = reader.string().ok_or(ProofError::Malformed)?;
        let algorithm = key::claimed_name(signature)
            .and_then(|name| std::str::from_utf8(name).ok())
            .ok_or(ProofError::Malformed)?;
        let key_type = KeyFields::parse(key).ok_or(ProofError::Malformed)?.key_type;
        match fitness(key_type, algorithm, host_key_algorithm) {
            Fitness::Good => proofs.push(Proof {
                place,
                key,
                algorithm,
                signature,
                signed: signed_data(session_id, key),
            }),
            Fitness::Disregarded => {}
            Fitness::Wrong => return Err(ProofError::Algorithm(algorithm.to_string())),
        }
    }
    let proofs = reader.is_empty().then_some(proofs);
    proofs.ok_or(ProofError::Malformed)
}

enum Fitness {
    Good,
    Disregarded,
    Wrong,
}

fn fitness(key_type: KeyType, algorithm: &str, host_key_algorithm: &str) -> Fitness {
    if key_type != KeyType::Rsa {
        return match algorithm == key_type.name() {
            true => Fitness::Good,
            false => Fitness::Wrong,
        };
    }
    let plain = host_key_algorithm
        .strip_suffix("-cert-v01@openssh.com")
        .unwrap_or(host_key_algorithm);
    let by_rsa = KeyType::from_name(plain.as_bytes()) == Some(KeyType::Rsa);
    match algorithm {
        "rsa-sha2-512" | "rsa-sha2-256" if !by_rsa => Fitness::Good,
        _ if !by_rsa => Fitness::Disregarded,
        _ if algorithm == plain => Fitness::Good,
        _ => Fitness::Wrong,
    }
}

fn signed_data(session_id: &[u8], key: &[u8]) -> Vec<u8> {
    let mut data = Vec::new();
    for part in [REQUEST, session_id, key] {
        put_string(&mut data, part);
    }
    data
}
