#![allow(clippy::unwrap_used)]

use super::*;
use crate::fields::put_string;
use crate::ssh_keygen::{KINDS, SshKeygen};

#[test]
fn lines_of_ssh_keygen_are_read() {
    let keygen = SshKeygen::new();
    for kind in KINDS {
        let name = format!("{}{}", kind.0, kind.1);
        keygen.key(&name, kind, &[]);
        let line = String::from_utf8(keygen.read(&format!("{name}.pub"))).unwrap();
        let (key, comment) = PublicKey::from_openssh_line(&line).unwrap();
        assert_eq!(comment, "a comment");
        assert!(line.starts_with(key.key_type()));
        assert_eq!(key.bits(), Some(kind.1.parse().unwrap()));
        assert_eq!(PublicKey::parse(key.blob()), Ok(key.clone()));
        // `ssh-keygen -l`: bits, fingerprint, comment, type.
        let mut command = std::process::Command::new("ssh-keygen");
        let shown = command
            .arg("-lf")
            .arg(keygen.path(&name))
            .output()
            .unwrap()
            .stdout;
        let shown = String::from_utf8(shown).unwrap();
        assert_eq!(shown.split(' ').nth(1), Some(&*key.fingerprint_sha256()));
    }
}

#[test]
fn lines_need_type_and_key_and_no_more() {
    let keygen = SshKeygen::new();
    keygen.key("key", KINDS[0], &[]);
    let line = String::from_utf8(keygen.read("key.pub")).unwrap();
    let [key_type, base64, ..] = line.split(' ').collect::<Vec<_>>()[..] else {
        panic!("{line}")
    };
    let parse = |line: &str| {
        PublicKey::from_openssh_line(line).map(|(key, comment)| (key.blob, comment.to_owned()))
    };
    let blob = keygen.public("key").blob;
    assert_eq!(
        parse(&format!("{key_type} {base64}")),
        Ok((blob.clone(), String::new()))
    );
    assert_eq!(
        parse(&format!("\t{key_type} \t{base64}  a  b \r\n")),
        Ok((blob, "a  b".to_owned()))
    );
    assert_eq!(parse(""), Err(PublicKeyError::Line));
    assert_eq!(parse(key_type), Err(PublicKeyError::Line));
    assert_eq!(
        parse(&format!("{key_type} {}", &base64[1..])),
        Err(PublicKeyError::Line)
    );
    assert_eq!(
        parse(&format!("ssh-rsa {base64}")),
        Err(PublicKeyError::TypeMismatch)
    );
    assert_eq!(
        parse(&format!("{key_type} {}", &base64[..8])),
        Err(PublicKeyError::Malformed)
    );
}

#[test]
fn unknown_types_are_kept_and_damaged_known_ones_refused() {
    let mut blob = Vec::new();
    put_string(&mut blob, b"ssh-future@example.com");
    blob.extend_from_slice(&[1, 2, 3]);
    let key = PublicKey::parse(&blob).unwrap();
    assert_eq!(
        (key.key_type(), key.bits()),
        ("ssh-future@example.com", None)
    );
    let keygen = SshKeygen::new();
    for kind in KINDS {
        let name = format!("{}{}", kind.0, kind.1);
        keygen.key(&name, kind, &[]);
        let blob = keygen.public(&name).blob;
        for len in 0..blob.len() {
            assert_eq!(
                PublicKey::parse(&blob[..len]),
                Err(PublicKeyError::Malformed),
                "{name} {len}"
            );
        }
        let longer = [&blob[..], &[0]].concat();
        assert_eq!(PublicKey::parse(&longer), Err(PublicKeyError::Malformed));
    }
    for key_type in [&b""[..], b"a b", b"\xff", "\u{fc}".as_bytes()] {
        let mut blob = Vec::new();
        put_string(&mut blob, key_type);
        assert_eq!(PublicKey::parse(&blob), Err(PublicKeyError::Malformed));
    }
}
