#![allow(clippy::unwrap_used)]

use super::*;
use crate::testing::{ecdsa, ed25519, ed25519_certificate, rsa};

#[test]
fn the_table_is_in_the_order_of_the_types() {
    for (index, row) in TYPES.iter().enumerate() {
        assert_eq!(row.0 as usize, index);
        assert_eq!(row.0.name(), row.1);
        assert_eq!(KeyType::from_name(row.1.as_bytes()), Some(row.0));
    }
}

#[test]
fn algorithms_lead_to_the_type_below() {
    let of = KeyType::of_algorithm;
    assert_eq!(of("rsa-sha2-512"), Some((KeyType::Rsa, false)));
    assert_eq!(
        of("rsa-sha2-256-cert-v01@openssh.com"),
        Some((KeyType::Rsa, true))
    );
    assert_eq!(
        of("ssh-ed25519-cert-v01@openssh.com"),
        Some((KeyType::Ed25519, true))
    );
    assert_eq!(
        of("sk-ssh-ed25519-cert-v01@openssh.com"),
        Some((KeyType::SkEd25519, true))
    );
    assert_eq!(of("ssh-mldsa44"), None);
}

#[test]
fn a_key_is_whole_or_none() {
    for blob in [ed25519(1), ecdsa(1), rsa(1, 1)] {
        assert!(KeyFields::parse(&blob).is_some());
        for cut in 0..blob.len() {
            assert!(KeyFields::parse(&blob[..cut]).is_none(), "cut at {cut}");
        }
        let longer = [blob, vec![0]].concat();
        assert!(KeyFields::parse(&longer).is_none());
        assert!(KeyFields::parse_leniently(&longer).is_some());
    }
    assert!(KeyFields::parse(b"\0\0\0\x0bssh-ed25519\0\0\0\0").is_none());
    assert!(KeyFields::parse(b"\0\0\0\x0bssh-ed25519\xff\xff\xff\xff").is_none());
}

#[test]
fn padding_a_number_makes_no_other_key() {
    let same = |one: &[u8], other: &[u8]| {
        KeyFields::parse(one)
            .unwrap()
            .same(&KeyFields::parse(other).unwrap())
    };
    assert!(same(&rsa(1, 1), &rsa(1, 3)));
    assert!(!same(&rsa(1, 1), &rsa(2, 1)));
    assert!(!same(&ed25519(1), &ed25519(2)));
    assert!(!same(&ed25519(1), &ecdsa(1)));
}

#[test]
fn a_certificate_yields_the_certified_key() {
    let certificate = ed25519_certificate(7);
    let (certified, plain) = (
        KeyFields::parse_leniently(&certificate).unwrap(),
        ed25519(7),
    );
    assert!(certified.same(&KeyFields::parse(&plain).unwrap()));
    assert!(KeyFields::parse(&certificate).is_none());
}

#[test]
fn damaged_base64_is_read_up_to_the_damage() {
    assert_eq!(decode_prefix(b"AAECAwQF"), [0, 1, 2, 3, 4, 5]);
    assert_eq!(decode_prefix(b"AAECAw!F"), [0, 1, 2]);
    assert_eq!(decode_prefix(b"AAECAwQ"), [0, 1, 2]);
    assert_eq!(decode_prefix(b"!"), [0u8; 0]);
}
