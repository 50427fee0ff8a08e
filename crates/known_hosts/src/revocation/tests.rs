#![allow(clippy::unwrap_used)]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::*;
use crate::testing::{ecdsa, ed25519, ed25519_certificate, rsa, text};

fn salvaged(line: &str) -> Option<(Option<String>, RevokedKey)> {
    let salvaged = salvage(Damaged::Revoked(line.as_bytes()))?;
    let hosts = salvaged
        .hosts
        .map(|hosts| String::from_utf8(hosts.to_vec()).unwrap());
    Some((hosts, salvaged.key))
}

fn hosts(name: &str) -> Option<String> {
    Some(name.to_string())
}

#[test]
fn a_whole_key_revokes_that_key() {
    for blob in [ed25519(1), ecdsa(1), rsa(1, 1)] {
        let key = RevokedKey::read(None, STANDARD.encode(&blob).as_bytes());
        assert!(key.covers(&blob));
        assert!(!key.covers(&ed25519(2)) && !key.covers(&ecdsa(2)) && !key.covers(&rsa(2, 1)));
    }
}

#[test]
fn padding_does_not_escape_a_revocation() {
    let key = RevokedKey::read(Some(KeyType::Rsa), STANDARD.encode(rsa(1, 1)).as_bytes());
    assert!(key.covers(&rsa(1, 2)));
    assert!(!key.covers(&rsa(2, 2)));
}

#[test]
fn a_revoked_certificate_revokes_its_key() {
    let text = STANDARD.encode(ed25519_certificate(3));
    let key = RevokedKey::read(None, text.as_bytes());
    assert!(key.covers(&ed25519(3)));
    assert!(!key.covers(&ed25519(4)));
}

#[test]
fn a_key_cut_short_is_compared_as_far_as_it_goes() {
    let whole = STANDARD.encode(rsa(1, 1));
    for cut in [MIN_PREFIX * 4 / 3, 100, whole.len() - 1] {
        let key = RevokedKey::read(Some(KeyType::Rsa), &whole.as_bytes()[..cut]);
        assert!(key.covers(&rsa(1, 1)), "cut at {cut}");
        assert!(!key.covers(&rsa(2, 1)), "cut at {cut}");
        assert!(!key.covers(&ed25519(1)), "cut at {cut}");
    }
}

#[test]
fn a_key_cut_too_short_revokes_its_type() {
    let whole = STANDARD.encode(ed25519(1));
    let key = RevokedKey::read(Some(KeyType::Ed25519), &whole.as_bytes()[..40]);
    assert_eq!(key, RevokedKey::Unreadable(Some(KeyType::Ed25519)));
    assert!(key.covers(&ed25519(1)) && key.covers(&ed25519(2)));
    assert!(!key.covers(&rsa(1, 1)));
    let key = RevokedKey::read(None, b"AAAA");
    assert!(key.covers(&rsa(1, 1)));
}

#[test]
fn a_key_that_claims_no_type_is_covered_by_every_unreadable_one() {
    assert!(RevokedKey::Unreadable(Some(KeyType::Rsa)).covers(b"garbage"));
}

#[test]
fn damaged_lines_keep_what_can_be_read() {
    let key = STANDARD.encode(ed25519(1));
    let blob = RevokedKey::Blob(ed25519(1));
    let unreadable = |key_type| RevokedKey::Unreadable(key_type);
    let cases = [
        // The key's type is missing, unknown or wrong.
        (format!("a {key}"), Some((hosts("a"), blob.clone()))),
        (format!("a ssh-foo {key}"), Some((None, blob.clone()))),
        // The hosts are missing, doubled or malformed.
        (key.clone(), Some((None, blob.clone()))),
        (format!("ssh-ed25519 {key}"), Some((None, blob.clone()))),
        (format!("a b ssh-ed25519 {key}"), Some((None, blob.clone()))),
        (
            format!("|1|x|y ssh-ed25519 {key}"),
            Some((None, blob.clone())),
        ),
        (
            format!("@revoked ssh-ed25519 {key}"),
            Some((None, blob.clone())),
        ),
        // The key is missing or damaged from its start.
        (
            "a ssh-ed25519".into(),
            Some((hosts("a"), unreadable(Some(KeyType::Ed25519)))),
        ),
        (
            "a ssh-ed25519 !!".into(),
            Some((hosts("a"), unreadable(Some(KeyType::Ed25519)))),
        ),
        ("a".into(), Some((hosts("a"), unreadable(None)))),
        (
            "a,*.b what is this".into(),
            Some((hosts("a,*.b"), unreadable(None))),
        ),
        // Neither hosts nor key.
        (String::new(), None),
        ("|1|x|y ssh-ed25519 !!".into(), None),
        ("ssh-ed25519".into(), None),
    ];
    for (line, expected) in cases {
        assert_eq!(salvaged(&line), expected, "{line}");
    }
}

#[test]
fn a_line_that_may_be_a_revocation_counts_if_its_key_can_be_read() {
    let whole = format!("a {}", text(&ed25519(1)));
    let salvaged = salvage(Damaged::PerhapsRevoked(whole.as_bytes())).unwrap();
    assert_eq!(
        (salvaged.hosts, salvaged.key),
        (Some(&b"a"[..]), RevokedKey::Blob(ed25519(1)))
    );
    assert!(salvage(Damaged::PerhapsRevoked(b"a ssh-ed25519 !!")).is_none());
    assert!(salvage(Damaged::PerhapsRevoked(b"some remark")).is_none());
    assert!(salvage(Damaged::Grant).is_none());
}

#[test]
fn a_line_in_utf_16_revokes_its_key_for_all_hosts() {
    let line = format!("@revoked a {}", text(&ed25519(1)));
    let wide: Vec<u8> = line.bytes().flat_map(|c| [c, 0]).collect();
    let salvaged = salvage(Damaged::PerhapsRevoked(&wide)).unwrap();
    assert_eq!(
        (salvaged.hosts, salvaged.key),
        (None, RevokedKey::Blob(ed25519(1)))
    );
}
