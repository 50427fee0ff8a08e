#![allow(clippy::unwrap_used)]

use aws_lc_rs::digest;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::*;
use crate::hex::decode;
use crate::ssh_keygen::{KINDS, SshKeygen};

/// RFC 8032 section 7.1: seed, public key, message, signature.
const RFC_8032: [[&str; 4]; 3] = [
    [
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ],
    [
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ],
    [
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
    ],
];

#[test]
fn ed25519_as_in_rfc_8032() {
    for [seed, public, message, expected] in RFC_8032 {
        let pair =
            Ed25519KeyPair::from_seed_and_public_key(&decode(seed), &decode(public)).unwrap();
        let key = PrivateKey::new(Pair::Ed25519(pair), String::new());
        let signature = key.sign("ssh-ed25519", &decode(message)).unwrap();
        let mut blob = Vec::new();
        put_string(&mut blob, b"ssh-ed25519");
        put_string(&mut blob, &decode(expected));
        assert_eq!(signature, blob);
    }
}

/// PROTOCOL.sshsig: what is signed for `ssh-keygen -Y`.
fn sshsig_signed(message: &[u8]) -> Vec<u8> {
    let mut signed = b"SSHSIG".to_vec();
    put_string(&mut signed, b"sshoal");
    put_string(&mut signed, b"");
    put_string(&mut signed, b"sha512");
    put_string(
        &mut signed,
        digest::digest(&digest::SHA512, message).as_ref(),
    );
    signed
}

/// PROTOCOL.sshsig: the file that `ssh-keygen -Y` checks.
fn sshsig_file(public: &[u8], signature: &[u8]) -> String {
    let mut blob = b"SSHSIG\0\0\0\x01".to_vec();
    put_string(&mut blob, public);
    put_string(&mut blob, b"sshoal");
    put_string(&mut blob, b"");
    put_string(&mut blob, b"sha512");
    put_string(&mut blob, signature);
    let base64 = STANDARD.encode(blob);
    let lines: Vec<&str> = base64
        .as_bytes()
        .chunks(70)
        .map(|line| std::str::from_utf8(line).unwrap())
        .collect();
    format!(
        "-----BEGIN SSH SIGNATURE-----\n{}\n-----END SSH SIGNATURE-----\n",
        lines.join("\n")
    )
}

/// Whether ssh-keygen takes the signature for that of `message`.
fn openssh_accepts(keygen: &SshKeygen, message: &[u8]) -> bool {
    keygen.write("message", message);
    let shell = "ssh-keygen -Y check-novalidate -n sshoal -s signature < message";
    let mut command = std::process::Command::new("sh");
    command.args(["-c", shell]).current_dir(keygen.path(""));
    command.output().unwrap().status.success()
}

#[test]
fn openssh_accepts_our_signatures() {
    let keygen = SshKeygen::new();
    for (number, kind) in KINDS.into_iter().enumerate() {
        let key = PrivateKey::parse(&keygen.key(&number.to_string(), kind, &[]), None).unwrap();
        for algorithm in key.algorithms() {
            let signature = key.sign(algorithm, &sshsig_signed(b"message")).unwrap();
            keygen.write(
                "signature",
                sshsig_file(key.public_blob(), &signature).as_bytes(),
            );
            assert!(openssh_accepts(&keygen, b"message"), "{algorithm}");
            assert!(!openssh_accepts(&keygen, b"another"), "{algorithm}");
        }
    }
}

#[test]
fn algorithms_of_other_keys_are_refused() {
    let keygen = SshKeygen::new();
    let key = PrivateKey::parse(&keygen.key("key", ("rsa", "2048"), &[]), None).unwrap();
    for algorithm in ["ssh-rsa", "ssh-ed25519", "rsa-sha2-384", ""] {
        let refused = SignError::Algorithm {
            algorithm: algorithm.to_owned(),
        };
        assert_eq!(key.sign(algorithm, b"data"), Err(refused));
    }
}

#[test]
fn keys_may_be_shared_by_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<PrivateKey>();
}
