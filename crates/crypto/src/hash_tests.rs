#![allow(clippy::unwrap_used)]

use super::*;
use crate::hex::decode;

#[test]
fn hashes_are_of_their_length() {
    for hash in [
        HashAlgorithm::Sha256,
        HashAlgorithm::Sha384,
        HashAlgorithm::Sha512,
    ] {
        assert_eq!(Digest::new(hash).finish().as_ref().len(), hash.output_len());
    }
    let mut digest = Digest::new(HashAlgorithm::Sha256);
    digest.update(b"a");
    digest.update(b"bc");
    // FIPS 180-4's example.
    let abc = decode("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_eq!(digest.finish().as_ref(), abc);
}

#[test]
fn derived_keys_are_known_at_every_length() {
    let secret = SharedSecret::mpint(&[0x12, 0x34, 0x56, 0x78]);
    let exchange_hash: Vec<u8> = (0..32).collect();
    let session_id: Vec<u8> = (32..64).collect();
    for row in include_str!("../vectors/keys.txt").lines() {
        let (name, expected) = row.split_once(' ').unwrap();
        let expected = decode(expected);
        let hash = match name {
            "sha256" => HashAlgorithm::Sha256,
            "sha384" => HashAlgorithm::Sha384,
            _ => HashAlgorithm::Sha512,
        };
        for len in 0..=expected.len() {
            let mut key = vec![0; len];
            derive_key(hash, &secret, &exchange_hash, &session_id, b'C', &mut key);
            assert_eq!(key, expected[..len], "{name} {len}");
        }
    }
}
