#![allow(clippy::unwrap_used)]

use super::*;
use crate::testing::{ecdsa, ed25519, ed25519_certificate, rsa, text};

fn list(lines: &[String]) -> Result<RevokedHostKeys, RevokedHostKeysError> {
    RevokedHostKeys::parse(lines.join("\n").as_bytes())
}

#[test]
fn a_listed_key_is_revoked_however_it_is_padded() {
    let revoked = list(&[
        "# a comment".into(),
        String::new(),
        format!("  {} with a comment\r", text(&ed25519(1))),
        text(&rsa(2, 3)),
    ])
    .unwrap();
    assert_eq!(revoked.check_key(&ed25519(1)), Err(Revoked::Key));
    assert_eq!(revoked.check_key(&rsa(2, 1)), Err(Revoked::Key));
    assert_eq!(revoked.check_key(&rsa(2, 2)), Err(Revoked::Key));
    assert_eq!(revoked.check_key(&ed25519(2)), Ok(()));
    assert_eq!(revoked.check_key(&ecdsa(1)), Ok(()));
    assert_eq!(revoked.check_key(b"no key"), Ok(()));
    assert_eq!(list(&[]).unwrap().check_key(&ed25519(1)), Ok(()));
}

#[test]
fn a_list_speaks_of_certificates_too() {
    let certificate = |key: &[u8], authority: &[u8]| {
        let revoked = list(&[text(&ed25519(1)), text(&ed25519_certificate(2))]).unwrap();
        revoked.check_certificate(&CertificateIdentity {
            key,
            authority,
            serial: 7,
            key_id: b"id",
        })
    };
    assert_eq!(certificate(&ed25519(1), &ed25519(9)), Err(Revoked::Key));
    assert_eq!(
        certificate(&ed25519(8), &ed25519(1)),
        Err(Revoked::Authority)
    );
    // A certificate in the list revokes its key.
    assert_eq!(certificate(&ed25519(2), &ed25519(9)), Err(Revoked::Key));
    assert_eq!(certificate(&ed25519(8), &ed25519(9)), Ok(()));
}

#[test]
fn a_line_that_is_no_key_fails_the_whole_file() {
    let good = text(&ed25519(1));
    for bad in [
        "ssh-ed25519".to_string(),
        "ssh-foo AAAA".to_string(),
        format!("a {good}"),
        format!("{}!", good),
        good[..good.len() - 4].to_string(),
        good.replace("ssh-ed25519 ", "ssh-rsa "),
        good.replace("ssh-ed25519 ", "ssh-ed25519-cert-v01@openssh.com "),
        format!("{good}\0"),
        "SSHKRL".to_string(),
    ] {
        let parsed = list(&[good.clone(), bad.clone()]);
        assert_eq!(
            parsed.err(),
            Some(RevokedHostKeysError::Line { line: 2 }),
            "{bad}"
        );
    }
}
