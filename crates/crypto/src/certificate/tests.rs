#![allow(clippy::unwrap_used)]

use super::host::matches_pattern;
use super::*;
use crate::sign::PrivateKey;
use crate::ssh_keygen::{KINDS, SshKeygen};

/// 2024-01-01 and 2025-01-01 in UTC.
const FROM: u64 = 1_704_067_200;
const TO: u64 = 1_735_689_600;

/// ssh-keygen -s, with the validity above; returns the certificate's blob.
fn certify(keygen: &SshKeygen, ca: &str, key: &str, more: &[&str]) -> Vec<u8> {
    let public = format!("{key}.pub");
    let mut arguments = vec!["-q", "-s", ca, "-I", "the key id", "-z", "42"];
    arguments.extend(["-V", "20240101000000Z:20250101000000Z"]);
    arguments.extend(more);
    arguments.push(&public);
    assert!(keygen.run(&arguments), "{arguments:?}");
    keygen.public(&format!("{key}-cert")).blob().to_vec()
}

fn host(names: &str) -> Vec<&str> {
    vec!["-h", "-n", names]
}

/// Keys of the first kinds, each named by its number.
fn keys(keygen: &SshKeygen, kinds: usize) -> Vec<String> {
    let key = |(number, kind): (usize, (&str, &str))| {
        keygen.key(&number.to_string(), kind, &[]);
        number.to_string()
    };
    KINDS.into_iter().take(kinds).enumerate().map(key).collect()
}

#[test]
fn host_certificates_of_every_key_by_every_authority() {
    let keygen = SshKeygen::new();
    let keys = keys(&keygen, KINDS.len());
    for ca in &keys {
        for key in &keys {
            let blob = certify(&keygen, ca, key, &host("web1,web2.example.com"));
            let certificate = HostCertificate::parse(&blob).unwrap();
            assert_eq!(certificate.verify_ca(), Ok(()), "{key} by {ca}");
            assert_eq!(certificate.public_key(), keygen.public(key).blob());
            assert_eq!(certificate.ca_key(), keygen.public(ca).blob());
            assert!(certificate.key_type().ends_with("-cert-v01@openssh.com"));
            assert_eq!(
                (certificate.serial(), certificate.key_id()),
                (42, "the key id")
            );
            assert_eq!(certificate.principals(), ["web1", "web2.example.com"]);
            assert_eq!(
                (certificate.valid_after(), certificate.valid_before()),
                (FROM, TO)
            );
        }
    }
}

#[test]
fn an_altered_or_cut_certificate_is_refused() {
    let keygen = SshKeygen::new();
    let keys = keys(&keygen, 5);
    for key in &keys {
        let blob = certify(&keygen, &keys[0], key, &host("web1"));
        let accepted = |blob: &[u8]| {
            HostCertificate::parse(blob)
                .and_then(|c| c.verify_ca())
                .is_ok()
        };
        assert!(accepted(&blob));
        for at in 0..blob.len() {
            let mut altered = blob.clone();
            altered[at] ^= 1;
            assert!(!accepted(&altered), "{key}: octet {at} of {}", blob.len());
            assert!(!accepted(&blob[..at]));
        }
        assert!(!accepted(&[&blob[..], &[0]].concat()));
    }
}

#[test]
fn validity_is_from_and_before() {
    let keygen = SshKeygen::new();
    let keys = keys(&keygen, 2);
    let blob = certify(&keygen, &keys[0], &keys[1], &host("web1"));
    let certificate = HostCertificate::parse(&blob).unwrap();
    assert_eq!(certificate.check("web1", FROM), Ok(()));
    assert_eq!(certificate.check("web1", TO - 1), Ok(()));
    let (early, late) = (FROM - 1, TO);
    assert_eq!(
        certificate.check("web1", early),
        Err(CertificateError::NotYetValid {
            valid_after: FROM,
            now: early
        })
    );
    assert_eq!(
        certificate.check("web1", late),
        Err(CertificateError::Expired {
            valid_before: TO,
            now: late
        })
    );
}

#[test]
fn names_match_as_in_openssh() {
    let keygen = SshKeygen::new();
    let keys = keys(&keygen, 2);
    let check = |principals: &str, name: &str| {
        let blob = certify(&keygen, &keys[0], &keys[1], &host(principals));
        HostCertificate::parse(&blob)
            .unwrap()
            .check(name, FROM)
            .is_ok()
    };
    assert!(check("web1,web2", "web2"));
    assert!(check("web1", "WEB1"));
    assert!(!check("web1", "web10"));
    assert!(!check("web10", "web1"));
    assert!(check("*.example.com", "a.b.example.com"));
    assert!(!check("*.example.com", "example.com"));
    assert!(check("web?", "web7"));
    assert!(!check("web?", "web"));
}

#[test]
fn a_host_certificate_without_names_is_for_no_host() {
    let keygen = SshKeygen::new();
    let keys = keys(&keygen, 2);
    let blob = certify(&keygen, &keys[0], &keys[1], &["-h"]);
    let certificate = HostCertificate::parse(&blob).unwrap();
    assert_eq!(
        certificate.check("web1", FROM),
        Err(CertificateError::NoPrincipals)
    );
}

#[test]
fn a_pattern_of_many_stars_takes_no_time() {
    let pattern = "*a".repeat(64);
    assert!(!matches_pattern(
        pattern.as_bytes(),
        "a".repeat(63).as_bytes()
    ));
    assert!(matches_pattern(
        pattern.as_bytes(),
        "ba".repeat(64).as_bytes()
    ));
}

#[test]
fn kinds_are_not_mixed() {
    let keygen = SshKeygen::new();
    let keys = keys(&keygen, 2);
    let user = certify(&keygen, &keys[0], &keys[1], &["-n", "root"]);
    let (expected, found) = (CertificateKind::Host, CertificateKind::User);
    assert_eq!(
        HostCertificate::parse(&user),
        Err(CertificateError::WrongKind { expected, found })
    );
    let read = HostCertificate::read(&user).unwrap();
    assert_eq!(read.public_key(), keygen.public(&keys[1]).blob());
    let host = certify(&keygen, &keys[0], &keys[1], &host("web1"));
    assert_eq!(
        UserCertificate::parse(&host),
        Err(CertificateError::WrongKind {
            expected: found,
            found: expected
        })
    );
}

#[test]
fn critical_options_of_hosts_are_not_understood() {
    let keygen = SshKeygen::new();
    let keys = keys(&keygen, 2);
    let options = ["-h", "-n", "web1", "-O", "critical:future@example.com=1"];
    let blob = certify(&keygen, &keys[0], &keys[1], &options);
    let refused = CertificateError::CriticalOption("future@example.com".to_owned());
    assert_eq!(HostCertificate::parse(&blob), Err(refused));
    let read = HostCertificate::read(&blob).unwrap();
    assert_eq!(read.public_key(), keygen.public(&keys[1]).blob());
    assert_eq!(read.signature_algorithm(), Ok("ssh-ed25519"));
}

#[test]
fn authorities_that_are_certificates_or_too_small_are_refused() {
    let keygen = SshKeygen::new();
    let keys = keys(&keygen, 2);
    let blob = certify(&keygen, &keys[0], &keys[1], &host("web1"));
    let mut certificate = HostCertificate::parse(&blob).unwrap();
    certificate.certificate.ca_key = blob;
    assert_eq!(certificate.verify_ca(), Err(CertificateError::Chained));
    keygen.key("small", ("rsa", "1024"), &[]);
    let blob = certify(&keygen, "small", &keys[1], &host("web1"));
    let certificate = HostCertificate::parse(&blob).unwrap();
    let refused = VerifyError::RsaKeySize {
        bits: 1024,
        minimum: 2048,
    };
    assert_eq!(
        certificate.verify_ca(),
        Err(CertificateError::Signature(refused))
    );
    assert_eq!(certificate.verify_ca_with_minimum(1024), Ok(()));
}

#[test]
fn sha_1_signatures_of_authorities_are_refused() {
    let keygen = SshKeygen::new();
    let keys = keys(&keygen, 5);
    let rsa = &keys[4];
    let blob = certify(
        &keygen,
        rsa,
        &keys[0],
        &["-h", "-n", "web1", "-t", "ssh-rsa"],
    );
    let refused = VerifyError::UnsupportedAlgorithm("ssh-rsa".to_owned());
    assert_eq!(
        HostCertificate::parse(&blob).unwrap().verify_ca(),
        Err(CertificateError::Signature(refused))
    );
}

#[test]
fn user_certificates_pair_with_their_keys() {
    let keygen = SshKeygen::new();
    for name in keys(&keygen, 5) {
        let key = PrivateKey::parse(&keygen.read(&name), None).unwrap();
        let options = ["-n", "root,deploy", "-O", "force-command=true"];
        let blob = certify(&keygen, "0", &name, &options);
        let certificate = UserCertificate::parse(&blob).unwrap();
        assert_eq!(certificate.public_key(), key.public_blob());
        assert_eq!(
            (certificate.blob(), certificate.key_id()),
            (&blob[..], "the key id")
        );
        assert_eq!(certificate.principals(), ["root", "deploy"]);
        assert_eq!(certificate.check_time(FROM), Ok(()));
        assert!(certificate.check_time(TO).is_err());
        let request = certificate.request_algorithm(key.algorithms()[0]);
        if key.algorithms().len() == 1 {
            assert_eq!(request, certificate.key_type());
        } else {
            assert_eq!(request, "rsa-sha2-512-cert-v01@openssh.com");
        }
    }
}

#[test]
fn plain_keys_are_no_certificates() {
    let keygen = SshKeygen::new();
    for name in keys(&keygen, 5) {
        let key = keygen.public(&name);
        let refused = CertificateError::UnsupportedType(key.key_type().to_owned());
        assert_eq!(HostCertificate::parse(key.blob()), Err(refused));
    }
    assert_eq!(
        HostCertificate::parse(&[]),
        Err(CertificateError::Malformed)
    );
}
