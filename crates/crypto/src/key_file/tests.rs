#![allow(clippy::unwrap_used)]

use std::process::Command;

use proptest::prelude::*;

use super::*;
use crate::public_key::fingerprint_sha256;
use crate::ssh_keygen::{KINDS, SshKeygen};
use crate::verify::verify;

const PASSPHRASE: &str = "correct horse";

/// The key is the one of its `.pub` file, and signs as it.
fn check(key: &PrivateKey, public: &PublicKey) {
    assert_eq!(key.public_blob(), public.blob());
    for algorithm in key.algorithms() {
        let signature = key.sign(algorithm, b"data").unwrap();
        assert_eq!(
            verify(algorithm, public.blob(), &signature, b"data"),
            Ok(())
        );
        assert!(verify(algorithm, public.blob(), &signature, b"date").is_err());
    }
}

fn problem(file: &[u8], passphrase: Option<&[u8]>) -> KeyFileError {
    parse(file, passphrase).err().unwrap()
}

/// Checks a file that PASSPHRASE opens, and that nothing else does.
fn check_encrypted(file: &[u8], public: &PublicKey) {
    check(&parse(file, Some(PASSPHRASE.as_bytes())).unwrap(), public);
    assert_eq!(problem(file, None), KeyFileError::Encrypted);
    for wrong in [&b"wrong horse"[..], b""] {
        assert_eq!(problem(file, Some(wrong)), KeyFileError::WrongPassphrase);
    }
}

#[test]
fn plain_files_of_openssh_are_read() {
    let keygen = SshKeygen::new();
    for (number, kind) in KINDS.into_iter().enumerate() {
        let name = number.to_string();
        let file = keygen.key(&name, kind, &[]);
        let key = parse(&file, None).unwrap();
        check(&key, &keygen.public(&name));
        assert_eq!(key.comment(), "a comment");
        // A passphrase that is not needed does no harm.
        check(
            &parse(&file, Some(b"unused")).unwrap(),
            &keygen.public(&name),
        );
    }
}

#[test]
fn encrypted_files_of_openssh_are_read() {
    let keygen = SshKeygen::new();
    for (number, kind) in KINDS.into_iter().enumerate() {
        let name = number.to_string();
        let file = keygen.key(&name, kind, &["-N", PASSPHRASE, "-a", "2"]);
        check_encrypted(&file, &keygen.public(&name));
        assert_eq!(
            PublicKey::from_private_key_file(&file),
            Some(keygen.public(&name))
        );
    }
}

#[test]
fn every_cipher_of_openssh_files_is_read_or_named() {
    let keygen = SshKeygen::new();
    for cipher in [
        "aes128-ctr",
        "aes192-ctr",
        "aes256-ctr",
        "aes128-cbc",
        "aes192-cbc",
        "aes256-cbc",
        "aes128-gcm@openssh.com",
        "aes256-gcm@openssh.com",
    ] {
        let file = keygen.key(
            cipher,
            KINDS[0],
            &["-N", PASSPHRASE, "-a", "1", "-Z", cipher],
        );
        check_encrypted(&file, &keygen.public(cipher));
    }
    for cipher in ["chacha20-poly1305@openssh.com", "3des-cbc"] {
        let file = keygen.key(
            cipher,
            KINDS[0],
            &["-N", PASSPHRASE, "-a", "1", "-Z", cipher],
        );
        let problem = problem(&file, Some(PASSPHRASE.as_bytes()));
        assert!(matches!(problem, KeyFileError::Unsupported(what) if what.contains(cipher)));
    }
}

#[test]
fn pem_files_of_ssh_keygen_are_read() {
    let keygen = SshKeygen::new();
    for (number, kind) in KINDS.into_iter().enumerate().skip(1) {
        for format in ["PEM", "PKCS8"] {
            let name = format!("{number}-{format}");
            let file = keygen.key(&name, kind, &["-m", format]);
            check(&parse(&file, None).unwrap(), &keygen.public(&name));
            assert_eq!(PublicKey::from_private_key_file(&file), None);
            let name = format!("{name}-encrypted");
            let file = keygen.key(&name, kind, &["-m", format, "-N", PASSPHRASE]);
            check_encrypted(&file, &keygen.public(&name));
        }
    }
}

fn openssl(keygen: &SshKeygen, arguments: &[&str]) {
    let output = Command::new("openssl")
        .current_dir(keygen.path(""))
        .args(arguments)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn pem_files_of_openssl_are_read() {
    let keygen = SshKeygen::new();
    openssl(
        &keygen,
        &["genpkey", "-algorithm", "ed25519", "-out", "ed25519"],
    );
    let key = parse(&keygen.read("ed25519"), None).unwrap();
    assert_eq!(key.algorithms(), ["ssh-ed25519"]);
    for cipher in ["aes128", "aes192", "aes256"] {
        let dek = [
            "rsa",
            "-in",
            "rsa",
            "-out",
            cipher,
            "-traditional",
            "-passout",
            "pass:correct horse",
        ];
        keygen.key("rsa", ("rsa", "2048"), &["-m", "PEM"]);
        openssl(&keygen, &[&dek[..], &[&format!("-{cipher}")]].concat());
        check_encrypted(&keygen.read(cipher), &keygen.public("rsa"));
        std::fs::remove_file(keygen.path("rsa")).unwrap();
    }
}

#[test]
fn ways_of_encryption_that_are_not_read_are_named() {
    let keygen = SshKeygen::new();
    keygen.key("rsa", ("rsa", "2048"), &["-m", "PEM"]);
    let pass = ["-passout", "pass:correct horse"];
    openssl(
        &keygen,
        &[
            &["rsa", "-in", "rsa", "-out", "des", "-traditional", "-des3"][..],
            &pass,
        ]
        .concat(),
    );
    openssl(
        &keygen,
        &[
            &[
                "pkcs8",
                "-topk8",
                "-in",
                "rsa",
                "-out",
                "pbe",
                "-v1",
                "PBE-SHA1-3DES",
            ][..],
            &pass,
        ]
        .concat(),
    );
    for name in ["des", "pbe"] {
        let problem = problem(&keygen.read(name), Some(PASSPHRASE.as_bytes()));
        assert!(
            matches!(problem, KeyFileError::Unsupported(what) if what.contains("ssh-keygen -p"))
        );
    }
}

/// The scalar begins with a zero octet, which the file leaves out: so it is with a quarter of all such keys.
#[test]
fn short_scalars_are_read() {
    let key = parse(include_bytes!("../../vectors/ecdsa521_short_scalar"), None).unwrap();
    assert_eq!(
        fingerprint_sha256(key.public_blob()),
        include_str!("../../vectors/ecdsa521_short_scalar.fingerprint").trim()
    );
    let signature = key.sign("ecdsa-sha2-nistp521", b"data").unwrap();
    assert_eq!(
        verify(
            "ecdsa-sha2-nistp521",
            key.public_blob(),
            &signature,
            b"data"
        ),
        Ok(())
    );
}

#[test]
fn files_that_hold_no_key_for_us_say_why() {
    let keygen = SshKeygen::new();
    let small = keygen.key("small", ("rsa", "1024"), &[]);
    assert!(
        matches!(problem(&small, None), KeyFileError::Unsupported(what) if what.contains("2048"))
    );
    keygen.key("plain", KINDS[0], &[]);
    for file in [
        &b""[..],
        b"\n",
        b"\xff\xfe",
        &keygen.read("plain.pub"),
        b"-----BEGIN OPENSSH PRIVATE KEY-----\n",
        b"-----BEGIN OPENSSH PRIVATE KEY-----\n!\n-----END OPENSSH PRIVATE KEY-----\n",
        b"-----BEGIN OPENSSH PRIVATE KEY-----\n-----END OPENSSH PRIVATE KEY-----\n",
        b"-----BEGIN RSA PRIVATE KEY-----\n-----END RSA PRIVATE KEY-----\n",
        b"-----BEGIN PRIVATE KEY-----\nMAAA\n-----END PRIVATE KEY-----\n",
    ] {
        assert!(
            matches!(problem(file, None), KeyFileError::Malformed(_)),
            "{file:?}"
        );
    }
    let dsa = b"-----BEGIN DSA PRIVATE KEY-----\nMAAA\n-----END DSA PRIVATE KEY-----\n";
    assert!(matches!(problem(dsa, None), KeyFileError::Unsupported(what) if what.contains("DSA")));
}

#[test]
fn windows_line_ends_and_text_before_the_key_are_allowed() {
    let keygen = SshKeygen::new();
    let file = String::from_utf8(keygen.key("key", KINDS[0], &[])).unwrap();
    for file in [
        file.replace('\n', "\r\n"),
        format!("# my key\n\n{file}\ntrailing"),
        format!("  {file}"),
    ] {
        check(
            &parse(file.as_bytes(), None).unwrap(),
            &keygen.public("key"),
        );
    }
}

/// The octets inside an unencrypted file of OpenSSH's format.
fn body(file: &[u8]) -> Vec<u8> {
    Armor::read(file).unwrap().body().to_vec()
}

#[test]
fn cut_files_are_refused() {
    let keygen = SshKeygen::new();
    for (number, kind) in KINDS.into_iter().enumerate() {
        let body = body(&keygen.key(&number.to_string(), kind, &[]));
        for len in 0..body.len() {
            assert!(
                openssh::parse(&body[..len], None).is_err(),
                "{kind:?} {len}"
            );
        }
        assert!(openssh::parse(&body, None).is_ok());
    }
}

#[test]
fn altered_keys_are_refused() {
    let keygen = SshKeygen::new();
    for (number, kind) in KINDS.into_iter().enumerate().take(4) {
        let name = number.to_string();
        let body = body(&keygen.key(&name, kind, &["-C", ""]));
        for at in 0..body.len() {
            let mut altered = body.clone();
            altered[at] ^= 0x10;
            assert!(
                openssh::parse(&altered, None).is_err(),
                "{kind:?} {at} of {}",
                body.len()
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_file_makes_a_panic(noise: Vec<u8>, label in "(OPENSSH |RSA |EC |ENCRYPTED )?PRIVATE KEY") {
        use base64::Engine;
        let body = base64::engine::general_purpose::STANDARD.encode(&noise);
        let file = format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n");
        prop_assert!(parse(file.as_bytes(), Some(b"passphrase")).is_err());
        prop_assert!(parse(&noise, None).is_err());
        prop_assert!(openssh::parse(&noise, None).is_err());
        prop_assert!(openssh::parse(&[b"openssh-key-v1\0", &noise[..]].concat(), None).is_err());
    }
}
