#![allow(clippy::unwrap_used)]

use aws_lc_rs::kem::{EncapsulationKey, ML_KEM_768};

use super::*;
use crate::hash::Digest;

const WITHOUT_GROUP: [KexMethod; 7] = [
    KexMethod::X25519,
    KexMethod::NistP256,
    KexMethod::NistP384,
    KexMethod::NistP521,
    KexMethod::DhGroup14,
    KexMethod::DhGroup16,
    KexMethod::DhGroup18,
];

#[test]
fn both_sides_of_curves_and_fixed_groups_agree() {
    for method in WITHOUT_GROUP {
        let client = Ephemeral::generate(method, None).unwrap();
        let server = Ephemeral::generate(method, None).unwrap();
        let (to_server, to_client) = (client.public().to_vec(), server.public().to_vec());
        assert_ne!(to_server, to_client);
        let at_client = client.agree(&to_client).unwrap();
        let at_server = server.agree(&to_server).unwrap();
        assert_eq!(at_client.encoded(), at_server.encoded(), "{method:?}");
    }
}

#[test]
fn names_are_found_and_unique() {
    for algorithm in ALGORITHMS {
        assert_eq!(KexAlgorithm::by_name(algorithm.name), Some(algorithm));
    }
    assert_eq!(KexAlgorithm::by_name("diffie-hellman-group1-sha1"), None);
}

/// draft-ietf-sshm-mlkem-hybrid-kex section 2, played by the server.
#[test]
fn ml_kem_hybrid_gives_the_drafts_secret() {
    let client = Ephemeral::generate(KexMethod::MlKem768X25519, None).unwrap();
    assert_eq!(client.public().len(), 1184 + 32);
    let (kem_public, curve_public) = client.public().split_at(1184);
    let kem_public = EncapsulationKey::new(&ML_KEM_768, kem_public).unwrap();
    let (ciphertext, kem_secret) = kem_public.encapsulate().unwrap();
    let (curve_answer, server) = CurveKey::generate(KexMethod::X25519).unwrap();
    let mut digest = Digest::new(HashAlgorithm::Sha256);
    digest.update(kem_secret.as_ref());
    server
        .agree(curve_public, |secret| digest.update(secret))
        .unwrap();
    let answer = [ciphertext.as_ref(), &curve_answer].concat();
    let secret = client.agree(&answer).unwrap();
    assert_eq!(
        secret.encoded(),
        [&[0, 0, 0, 32], digest.finish().as_ref()].concat()
    );
}

/// draft-ietf-sshm-ntruprime-ssh section 3, played by the server.
#[test]
fn sntrup_hybrid_gives_the_drafts_secret() {
    let client = Ephemeral::generate(KexMethod::Sntrup761X25519, None).unwrap();
    assert_eq!(client.public().len(), 1158 + 32);
    let (kem_public, curve_public) = client.public().split_at(1158);
    let kem_public = sntrup761::EncapsulationKey::try_from(kem_public).unwrap();
    let (ciphertext, kem_secret) = kem_public.encapsulate_deterministic([7; 32]);
    let (curve_answer, server) = CurveKey::generate(KexMethod::X25519).unwrap();
    let mut digest = Digest::new(HashAlgorithm::Sha512);
    digest.update(kem_secret.as_ref());
    server
        .agree(curve_public, |secret| digest.update(secret))
        .unwrap();
    let answer = [ciphertext.as_ref(), &curve_answer].concat();
    let secret = client.agree(&answer).unwrap();
    assert_eq!(
        secret.encoded(),
        [&[0, 0, 0, 64], digest.finish().as_ref()].concat()
    );
}

#[test]
fn hybrids_refuse_other_lengths_and_a_zero_curve_secret() {
    for (method, expected) in [
        (KexMethod::MlKem768X25519, 1088 + 32),
        (KexMethod::Sntrup761X25519, 1039 + 32),
    ] {
        for found in [0, 32, expected - 1, expected + 1] {
            let client = Ephemeral::generate(method, None).unwrap();
            let refusal = client.agree(&vec![1; found]).err();
            assert_eq!(refusal, Some(KexError::PublicLength { expected, found }));
        }
        let client = Ephemeral::generate(method, None).unwrap();
        assert_eq!(
            client.agree(&vec![0; expected]).err(),
            Some(KexError::PublicValue)
        );
    }
}

#[test]
fn a_group_is_wanted_exactly_for_group_exchange() {
    let group = GexGroup {
        p: vec![0xff; 256],
        g: vec![2],
    };
    let missing = Ephemeral::generate(KexMethod::DhGroupExchange, None).err();
    assert_eq!(missing, Some(KexError::GroupMismatch));
    let out_of_place = Ephemeral::generate(KexMethod::X25519, Some(&group)).err();
    assert_eq!(out_of_place, Some(KexError::GroupMismatch));
}

#[test]
fn secrets_are_encoded_with_a_sign_octet_where_needed_and_without_leading_zeros() {
    assert_eq!(
        SharedSecret::mpint(&[0, 0, 0x7f, 1]).encoded(),
        [0, 0, 0, 2, 0x7f, 1]
    );
    assert_eq!(
        SharedSecret::mpint(&[0x80, 1]).encoded(),
        [0, 0, 0, 3, 0, 0x80, 1]
    );
    assert_eq!(SharedSecret::mpint(&[0, 0]).encoded(), [0, 0, 0, 0]);
    assert_eq!(
        SharedSecret::string(&[0, 0x80]).encoded(),
        [0, 0, 0, 2, 0, 0x80]
    );
}
