#![allow(clippy::unwrap_used)]

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use proptest::prelude::*;

use super::*;
use crate::fields::{put_mpint, put_string};
use crate::sign::PrivateKey;
use crate::ssh_keygen::{KINDS, SshKeygen};

const DATA: &[u8] = b"the exchange hash";

fn keys() -> Vec<PrivateKey> {
    let keygen = SshKeygen::new();
    let key = |kind: (&str, &str)| {
        let file = keygen.key(&format!("{}{}", kind.0, kind.1), kind, &[]);
        PrivateKey::parse(&file, None).unwrap()
    };
    KINDS.into_iter().map(key).collect()
}

#[test]
fn a_changed_signature_key_or_text_is_refused() {
    for key in keys() {
        let (public, algorithm) = (key.public_blob(), key.algorithms()[0]);
        let signature = key.sign(algorithm, DATA).unwrap();
        assert_eq!(verify(algorithm, public, &signature, DATA), Ok(()));
        assert_eq!(
            verify(algorithm, public, &signature, b""),
            Err(VerifyError::Wrong)
        );
        for at in 0..signature.len() {
            let mut changed = signature.clone();
            changed[at] ^= 1;
            assert!(
                verify(algorithm, public, &changed, DATA).is_err(),
                "{algorithm} signature {at}"
            );
            assert!(
                verify(algorithm, public, &signature[..at], DATA).is_err(),
                "{algorithm} {at}"
            );
        }
        for at in 0..public.len() {
            let mut changed = public.to_vec();
            changed[at] ^= 1;
            assert!(
                verify(algorithm, &changed, &signature, DATA).is_err(),
                "{algorithm} key {at}"
            );
            assert!(
                verify(algorithm, &public[..at], &signature, DATA).is_err(),
                "{algorithm} {at}"
            );
        }
        let longer = [&signature[..], &[0]].concat();
        assert_eq!(
            verify(algorithm, public, &longer, DATA),
            Err(VerifyError::Malformed)
        );
        let longer = [public, &[0]].concat();
        let refused = VerifyError::Key {
            algorithm: algorithm.to_owned(),
        };
        assert_eq!(verify(algorithm, &longer, &signature, DATA), Err(refused));
    }
}

#[test]
fn keys_and_algorithms_are_not_mixed() {
    let keys = keys();
    for signer in &keys {
        for algorithm in signer.algorithms() {
            let signature = signer.sign(algorithm, DATA).unwrap();
            for other in keys
                .iter()
                .filter(|key| key.public_blob() != signer.public_blob())
            {
                assert!(verify(algorithm, other.public_blob(), &signature, DATA).is_err());
            }
            for agreed in keys
                .iter()
                .flat_map(|key| key.algorithms())
                .filter(|name| *name != algorithm)
            {
                let mismatch = VerifyError::AlgorithmMismatch {
                    expected: (*agreed).to_owned(),
                    found: (*algorithm).to_owned(),
                };
                assert_eq!(
                    verify(agreed, signer.public_blob(), &signature, DATA),
                    Err(mismatch)
                );
            }
        }
    }
}

#[test]
fn sha_1_and_unknown_algorithms_are_refused() {
    let key = &keys()[4];
    for algorithm in [
        "ssh-rsa",
        "ssh-dss",
        "rsa-sha2-512-cert-v01@openssh.com",
        "",
    ] {
        let mut signature = Vec::new();
        put_string(&mut signature, algorithm.as_bytes());
        put_string(&mut signature, &[1; 256]);
        let refused = VerifyError::UnsupportedAlgorithm(algorithm.to_owned());
        assert_eq!(
            verify(algorithm, key.public_blob(), &signature, DATA),
            Err(refused)
        );
    }
}

/// RFC 8332 section 3 forbids it, but some servers do it and OpenSSH takes it.
#[test]
fn rsa_signatures_without_their_leading_zeros_are_accepted() {
    let key = &keys()[4];
    let (number, signature) = (0u32..100_000)
        .find_map(|number| {
            let signature = key.sign("rsa-sha2-256", &number.to_be_bytes()).unwrap();
            (signature[20] == 0).then_some((number, signature))
        })
        .unwrap();
    let mut shortened = Vec::new();
    put_string(&mut shortened, b"rsa-sha2-256");
    put_string(&mut shortened, &signature[21..]);
    let public = key.public_blob();
    assert_eq!(
        verify("rsa-sha2-256", public, &shortened, &number.to_be_bytes()),
        Ok(())
    );
    let mut lengthened = Vec::new();
    put_string(&mut lengthened, b"rsa-sha2-256");
    put_string(&mut lengthened, &[&[0], &signature[20..]].concat());
    let malformed = Err(VerifyError::Malformed);
    assert_eq!(
        verify("rsa-sha2-256", public, &lengthened, &number.to_be_bytes()),
        malformed
    );
}

/// The signature blob inside a file of `ssh-keygen -Y sign`, and what it signs (PROTOCOL.sshsig).
fn sshsig(keygen: &SshKeygen, key: &str, message: &[u8]) -> (Vec<u8>, Vec<u8>) {
    keygen.write("message", message);
    let _ = std::fs::remove_file(keygen.path("message.sig"));
    assert!(keygen.run(&["-q", "-Y", "sign", "-n", "sshoal", "-f", key, "message"]));
    let armor = String::from_utf8(keygen.read("message.sig")).unwrap();
    let base64: String = armor
        .lines()
        .filter(|line| !line.starts_with('-'))
        .collect();
    let blob = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, base64).unwrap();
    let mut fields = Fields::new(&blob[10..]);
    for _ in 0..4 {
        fields.string().unwrap();
    }
    let mut signed = b"SSHSIG".to_vec();
    put_string(&mut signed, b"sshoal");
    put_string(&mut signed, b"");
    put_string(&mut signed, b"sha512");
    put_string(
        &mut signed,
        digest::digest(&digest::SHA512, message).as_ref(),
    );
    (fields.string().unwrap().to_vec(), signed)
}

#[test]
fn openssh_signatures_are_accepted() {
    let keygen = SshKeygen::new();
    for kind in KINDS {
        let name = format!("{}{}", kind.0, kind.1);
        keygen.key(&name, kind, &[]);
        let public = keygen.public(&name);
        let (signature, signed) = sshsig(&keygen, &name, b"message");
        let algorithm = Fields::new(&signature).text().unwrap();
        assert_eq!(
            verify(algorithm, public.blob(), &signature, &signed),
            Ok(()),
            "{name}"
        );
        assert_eq!(
            verify(algorithm, public.blob(), &signature, DATA),
            Err(VerifyError::Wrong)
        );
    }
}

#[test]
fn small_rsa_keys_need_permission() {
    let keygen = SshKeygen::new();
    keygen.key("small", ("rsa", "1024"), &[]);
    let public = keygen.public("small");
    let (signature, signed) = sshsig(&keygen, "small", b"message");
    let check =
        |minimum| verify_with_minimum("rsa-sha2-512", public.blob(), &signature, &signed, minimum);
    let refused = |minimum| {
        Err(VerifyError::RsaKeySize {
            bits: 1024,
            minimum,
        })
    };
    assert_eq!(
        verify("rsa-sha2-512", public.blob(), &signature, &signed),
        refused(2048)
    );
    assert_eq!(check(1025), refused(1025));
    assert_eq!(check(1024), Ok(()));
    assert_eq!(check(0), Ok(()));
}

#[test]
fn oversized_and_tiny_rsa_keys_are_refused() {
    let mut signature = Vec::new();
    put_string(&mut signature, b"rsa-sha2-512");
    put_string(&mut signature, &[1; 64]);
    for (octets, bits, minimum) in [(64, 512, 1024), (1025, 8200, 1024), (4096, 32_768, 1024)] {
        let mut key = Vec::new();
        put_string(&mut key, b"ssh-rsa");
        put_mpint(&mut key, &[1, 0, 1]);
        put_mpint(&mut key, &vec![0xff; octets]);
        let refused = Err(VerifyError::RsaKeySize { bits, minimum });
        assert_eq!(
            verify_with_minimum("rsa-sha2-512", &key, &signature, DATA, 0),
            refused
        );
    }
}

/// An authenticator made of software: key blob and signature blob of PROTOCOL.u2f.
fn authenticator(flags: u8, data: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let pair = Ed25519KeyPair::generate().unwrap();
    let mut key = Vec::new();
    put_string(&mut key, b"sk-ssh-ed25519@openssh.com");
    put_string(&mut key, pair.public_key().as_ref());
    put_string(&mut key, b"ssh:");
    let mut signed = digest::digest(&digest::SHA256, b"ssh:").as_ref().to_vec();
    signed.push(flags);
    signed.extend_from_slice(&7u32.to_be_bytes());
    signed.extend_from_slice(digest::digest(&digest::SHA256, data).as_ref());
    let mut signature = Vec::new();
    put_string(&mut signature, b"sk-ssh-ed25519@openssh.com");
    put_string(&mut signature, pair.sign(&signed).as_ref());
    signature.push(flags);
    signature.extend_from_slice(&7u32.to_be_bytes());
    (key, signature)
}

#[test]
fn signatures_of_authenticators_are_accepted() {
    const NAME: &str = "sk-ssh-ed25519@openssh.com";
    for flags in [0, 1, 5] {
        let (key, signature) = authenticator(flags, DATA);
        assert_eq!(verify(NAME, &key, &signature, DATA), Ok(()));
        for at in 0..signature.len() {
            let mut changed = signature.clone();
            changed[at] ^= 2;
            assert!(verify(NAME, &key, &changed, DATA).is_err(), "{at}");
            assert!(verify(NAME, &key, &signature[..at], DATA).is_err(), "{at}");
        }
    }
}

proptest! {
    #[test]
    fn no_input_makes_a_panic(key: Vec<u8>, signature: Vec<u8>, which in 0usize..7) {
        let name = [
            "ssh-ed25519",
            "ecdsa-sha2-nistp256",
            "ecdsa-sha2-nistp521",
            "rsa-sha2-256",
            "rsa-sha2-512",
            "sk-ssh-ed25519@openssh.com",
            "sk-ecdsa-sha2-nistp256@openssh.com",
        ][which];
        let mut named_key = Vec::new();
        put_string(&mut named_key, match name { "rsa-sha2-256" | "rsa-sha2-512" => b"ssh-rsa", _ => name.as_bytes() });
        named_key.extend_from_slice(&key);
        let mut named = Vec::new();
        put_string(&mut named, name.as_bytes());
        named.extend_from_slice(&signature);
        prop_assert!(verify(name, &key, &signature, DATA).is_err());
        prop_assert!(verify_with_minimum(name, &named_key, &named, DATA, 0).is_err());
    }
}
