#![allow(clippy::unwrap_used)]

use super::*;
use crate::testing::{ecdsa, ed25519, known_hosts, rsa, text};

const ALGORITHMS: [&str; 5] = [
    "ssh-ed25519-cert-v01@openssh.com",
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "rsa-sha2-512",
    "rsa-sha2-512-cert-v01@openssh.com",
];

#[test]
fn types_come_once_in_the_order_of_the_lines() {
    let known = known_hosts(&[
        format!("a {}", text(&rsa(1, 1))),
        format!("a,b {}", text(&ed25519(1))),
        format!("a {}", text(&rsa(2, 1))),
        format!("b {}", text(&ecdsa(1))),
    ]);
    let types = known.key_types(&HostName::new("A"));
    assert_eq!(types.types, [KeyType::Rsa, KeyType::Ed25519]);
    assert!(!types.authority);
}

#[test]
fn revoked_and_damaged_keys_are_not_known() {
    let known = known_hosts(&[
        format!("a {}", text(&ed25519(1))),
        format!("@revoked * {}", text(&ed25519(1))),
        "a ecdsa-sha2-nistp256 AAAA".into(),
        format!("@cert-authority * {}", text(&rsa(1, 1))),
    ]);
    let expected = KnownTypes {
        types: Vec::new(),
        authority: true,
    };
    assert_eq!(known.key_types(&HostName::new("a")), expected);
}

#[test]
fn the_bare_name_helps_out_for_another_port() {
    let known = known_hosts(&[
        format!("a {}", text(&ed25519(1))),
        format!("[a]:2222 {}", text(&rsa(1, 1))),
    ]);
    let types = |port| known.key_types(&HostName::with_port("a", port)).types;
    assert_eq!(types(22), [KeyType::Ed25519]);
    assert_eq!(types(2222), [KeyType::Rsa]);
    assert_eq!(types(2223), [KeyType::Ed25519]);
}

#[test]
fn a_known_first_choice_leaves_the_order_alone() {
    let known = KnownTypes {
        types: vec![KeyType::Rsa, KeyType::Ed25519],
        authority: false,
    };
    assert_eq!(known.order(&ALGORITHMS), ALGORITHMS);
}

#[test]
fn known_types_come_first() {
    let known = KnownTypes {
        types: vec![KeyType::Rsa],
        authority: false,
    };
    let expected = [
        "rsa-sha2-512",
        "rsa-sha2-512-cert-v01@openssh.com",
        "ssh-ed25519-cert-v01@openssh.com",
        "ssh-ed25519",
        "ecdsa-sha2-nistp256",
    ];
    assert_eq!(known.order(&ALGORITHMS), expected);
}

#[test]
fn an_authority_brings_certificates_first() {
    let known = KnownTypes {
        types: vec![KeyType::EcdsaP256],
        authority: true,
    };
    let expected = [
        "ssh-ed25519-cert-v01@openssh.com",
        "ecdsa-sha2-nistp256",
        "rsa-sha2-512-cert-v01@openssh.com",
        "ssh-ed25519",
        "rsa-sha2-512",
    ];
    assert_eq!(known.order(&ALGORITHMS), expected);
    assert_eq!(KnownTypes::default().order(&ALGORITHMS), ALGORITHMS);
    assert!(known.order(&[]).is_empty());
}
