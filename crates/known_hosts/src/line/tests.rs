#![allow(clippy::unwrap_used)]

use super::*;
use crate::testing::{ed25519, foreign, text};

fn fault(line: &str) -> (&'static str, Damaged<'_>) {
    match parse(line.as_bytes()) {
        Line::Broken { why, damaged } => (why, damaged),
        Line::Blank => panic!("blank: {line}"),
        Line::Entry { .. } => panic!("an entry: {line}"),
    }
}

fn entry(line: &str) -> (Marker, &str, KeyType) {
    match parse(line.as_bytes()) {
        Line::Entry {
            marker,
            hosts,
            key_type,
            ..
        } => (
            marker,
            std::str::from_utf8(hosts).unwrap(),
            key_type.unwrap(),
        ),
        Line::Blank | Line::Broken { .. } => panic!("no entry: {line}"),
    }
}

#[test]
fn lines_are_taken_apart() {
    let key = text(&ed25519(1));
    let ed = KeyType::Ed25519;
    assert_eq!(entry(&format!("a,b {key}")), (Marker::None, "a,b", ed));
    assert_eq!(
        entry(&format!(" \t[a]:2222\t {key} comment # 2\r")),
        (Marker::None, "[a]:2222", ed)
    );
    assert_eq!(
        entry(&format!("@revoked \t* {key}")),
        (Marker::Revoked, "*", ed)
    );
    assert_eq!(
        entry(&format!("@cert-authority *.a {key}")),
        (Marker::CertAuthority, "*.a", ed)
    );
    assert_eq!(
        entry("a rsa-sha2-512 AAAA"),
        (Marker::None, "a", KeyType::Rsa)
    );
    for blank in ["", " ", "\t\r", "# a", "  #@revoked *"] {
        assert!(matches!(parse(blank.as_bytes()), Line::Blank), "{blank}");
    }
}

#[test]
fn what_is_not_understood_is_named() {
    let key = text(&ed25519(1));
    let faults = [
        ("a", "nothing follows the host names"),
        ("a # b", "nothing follows the host names"),
        ("a ssh-ed25519", "nothing follows the key type"),
        ("a ssh-ed25519 # AAAA", "nothing follows the key type"),
        (
            "a 2048 65537 123",
            "keys of SSH protocol 1 are not supported",
        ),
        ("a ssh-foo AAAA", "the key type is unknown"),
        ("a SSH-ED25519 AAAA", "the key type is unknown"),
        ("a ssh-ed25519 AAA", "the key is not whole base64"),
        ("a ssh-ed25519 AA=A", "the key is not whole base64"),
        ("a ssh-ed25519 A===", "the key is not whole base64"),
        ("a ssh-ed25519 AAAA-AAA", "the key is not whole base64"),
        (
            "|1|AAAA|AAAA ssh-ed25519 AAAA",
            "the hashed host name is malformed",
        ),
        ("a\0b ssh-ed25519 AAAA", "the host names contain a NUL byte"),
    ];
    for (line, why) in faults {
        assert_eq!(fault(line), (why, Damaged::Grant), "{line}");
    }
    let long = format!("{} {key}", "a".repeat(pattern::MAX_PATTERN + 1));
    assert_eq!(fault(&long).0, "a host pattern is too long");
    let many = format!("{} {key}", "a,".repeat(pattern::MAX_PATTERN));
    assert_eq!(entry(&many).0, Marker::None);
}

#[test]
fn a_key_that_names_its_own_type_is_understood_whatever_that_is() {
    let key = text(&foreign(1));
    assert!(matches!(
        parse(format!("a {key} comment\r").as_bytes()),
        Line::Entry {
            marker: Marker::None,
            hosts: b"a",
            key_type: None,
            ..
        }
    ));
    let unknown = ("the key type is unknown", Damaged::Grant);
    for other in [
        key.replacen("mldsa44", "mldsa87", 1),
        key.replace("openssh", "OpenSSH"),
        key[..key.len() - 1].to_owned(),
        text(&ed25519(1)).replace("ssh-ed25519", "ssh-mldsa44-ed25519@openssh.com"),
    ] {
        assert_eq!(fault(&format!("a {other}")), unknown, "{other}");
    }
    assert_eq!(fault(&format!("@cert-authority a {key}")), unknown);
    let revoked = format!("@revoked a {key}");
    assert!(matches!(fault(&revoked).1, Damaged::Revoked(_)));
}

#[test]
fn markers_that_cannot_be_read_may_revoke() {
    let key = text(&ed25519(1));
    let rest = format!("a {key}");
    for marker in [
        "@revokd",
        "@REVOKED",
        "@Cert-Authority",
        "@",
        "@revoked,",
        "@cert-authority,b",
    ] {
        let line = format!("{marker} {rest}");
        assert_eq!(
            fault(&line),
            (
                "the marker is unknown",
                Damaged::PerhapsRevoked(rest.as_bytes())
            ),
            "{line}"
        );
    }
    let tab = format!("@cert-authority\t{rest}");
    assert_eq!(
        fault(&tab),
        (
            "a tab follows the marker where ssh wants a space",
            Damaged::Grant
        )
    );
    assert_eq!(entry(&tab.replace(' ', "\t")).0, Marker::CertAuthority);
    let two = format!("@cert-authority @revoked {rest}");
    assert_eq!(fault(&two).0, "a line can have one marker only");
    assert!(matches!(fault(&two).1, Damaged::PerhapsRevoked(_)));
    assert_eq!(
        fault("@revoked a ssh-ed25519").1,
        Damaged::Revoked(b"a ssh-ed25519")
    );
    assert_eq!(fault("@cert-authority a ssh-ed25519").1, Damaged::Grant);
}

#[test]
fn revoking_is_seen_in_damaged_places() {
    let key = text(&ed25519(1));
    for line in [
        format!("\u{feff}@revoked a {key}"),
        format!("\"@Revoked\" a {key}"),
        format!("a,@revoked {key}"),
        "a @revoked ssh-ed25519".into(),
    ] {
        assert!(
            matches!(fault(&line).1, Damaged::PerhapsRevoked(_)),
            "{line}"
        );
    }
    let wide: String = "@revoked a".chars().flat_map(|c| [c, '\0']).collect();
    assert!(matches!(
        fault(&format!("x{wide}")).1,
        Damaged::PerhapsRevoked(_)
    ));
}

#[test]
fn hashed_names_have_one_spelling() {
    let salt = "AAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    let whole = format!("|1|{salt}|{salt}");
    assert_eq!(
        hashed_halves(whole.as_bytes()),
        Some((salt.as_bytes(), salt.as_bytes()))
    );
    for damaged in [
        whole.replace("|1|", "|2|"),
        whole.replace("A=|", "B=|"),
        whole.replace("A=|", "==|"),
        whole.replace("A=|", "AA|"),
        whole[..whole.len() - 1].to_string(),
        format!("{whole},a"),
    ] {
        assert_eq!(hashed_halves(damaged.as_bytes()), None, "{damaged}");
    }
}
