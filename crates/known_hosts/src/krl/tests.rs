#![allow(clippy::unwrap_used)]

use super::*;
use crate::reader::put_string;
use crate::testing::{ecdsa, ed25519, rsa};

/// A list with these sections.
fn krl(sections: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend(1u32.to_be_bytes());
    out.extend([0; 24]);
    put_string(&mut out, b"reserved");
    put_string(&mut out, b"comment");
    out.extend(typed(sections));
    out
}

fn typed(parts: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (number, data) in parts {
        out.push(*number);
        put_string(&mut out, data);
    }
    out
}

fn strings(values: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    values.iter().for_each(|value| put_string(&mut out, value));
    out
}

fn serials(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_be_bytes()).collect()
}

fn bitmap(offset: u64, bits: &[u8]) -> Vec<u8> {
    [serials(&[offset]), strings(&[bits])].concat()
}

/// A certificate section for `authority`, or for all if it is empty.
fn certificates(authority: &[u8], parts: &[(u8, Vec<u8>)]) -> Vec<u8> {
    [strings(&[authority, b""]), typed(parts)].concat()
}

fn extension(name: &[u8], critical: u8) -> Vec<u8> {
    [strings(&[name]), vec![critical], strings(&[b"value"])].concat()
}

fn parse(sections: &[(u8, Vec<u8>)]) -> Result<Krl, KrlError> {
    Krl::parse(&krl(sections))
}

fn check(krl: &Krl, authority: u8, serial: u64, key_id: &[u8]) -> Result<(), Revoked> {
    krl.check_certificate(&CertificateIdentity {
        key: &ed25519(200),
        authority: &ed25519(authority),
        serial,
        key_id,
    })
}

#[test]
fn keys_are_revoked_by_blob_and_by_fingerprint() {
    let sha1 = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, &ed25519(2));
    let sha256 = digest::digest(&digest::SHA256, &rsa(3, 1));
    let krl = parse(&[
        (
            section::EXPLICIT_KEY,
            strings(&[&ed25519(1), b"of a type to come"]),
        ),
        (section::FINGERPRINT_SHA1, strings(&[sha1.as_ref()])),
        (section::FINGERPRINT_SHA256, strings(&[sha256.as_ref()])),
    ])
    .unwrap();
    let revoked = [ed25519(1), ed25519(2), rsa(3, 1), rsa(3, 4)];
    assert!(revoked.iter().all(|key| krl.revokes_key(key)));
    let accepted = [ed25519(3), rsa(1, 1), ecdsa(1)];
    assert!(!accepted.iter().any(|key| krl.revokes_key(key)));
}

#[test]
fn certificates_are_revoked_by_serial_and_id_of_their_authority() {
    let parts = [
        (0x20, serials(&[5, 3])),
        (0x21, serials(&[10, 20])),
        (0x21, serials(&[15, 30])),
        // Bits 0, 9 and 14.
        (0x22, bitmap(100, &[0x42, 0x01])),
        (0x23, strings(&[b"id", b"two\0"])),
        (0x39, extension(b"optional", 0)),
    ];
    let krl = parse(&[(1, certificates(&ed25519(1), &parts))]).unwrap();
    for serial in [3, 5, 10, 15, 20, 25, 30, 100, 109, 114] {
        let revoked = Err(Revoked::Serial(serial));
        assert_eq!(check(&krl, 1, serial, b"x"), revoked);
        assert_eq!(check(&krl, 2, serial, b"x"), Ok(()));
    }
    for serial in [0, 1, 4, 9, 31, 99, 101, 110, 113, 115, 1 << 40, u64::MAX] {
        assert_eq!(check(&krl, 1, serial, b"x"), Ok(()), "{serial}");
    }
    assert_eq!(check(&krl, 1, 0, b"id"), Err(Revoked::KeyId));
    assert_eq!(check(&krl, 1, 0, b"two"), Err(Revoked::KeyId));
    assert_eq!(check(&krl, 2, 0, b"id"), Ok(()));

    let all = parse(&[(1, certificates(b"", &parts))]).unwrap();
    assert_eq!(check(&all, 2, 5, b"x"), Err(Revoked::Serial(5)));
}

#[test]
fn signatures_and_optional_extensions_change_nothing() {
    let mut list = krl(&[(255, extension(b"optional", 0))]);
    list.push(section::SIGNATURE);
    list.extend(strings(&[&ed25519(1), b"signature"]));
    list.extend(typed(&[(section::EXPLICIT_KEY, strings(&[&ed25519(1)]))]));
    assert!(Krl::parse(&list).unwrap().revokes_key(&ed25519(1)));
}

#[test]
fn whatever_is_not_understood_fails_the_list() {
    let certs = |parts: &[(u8, Vec<u8>)]| (1, certificates(b"", parts));
    let malformed = [
        (section::EXPLICIT_KEY, b"\0\0\0\x05key".to_vec()),
        (section::FINGERPRINT_SHA1, strings(&[&[0; 32]])),
        (section::FINGERPRINT_SHA256, strings(&[&[0; 20]])),
        (section::EXTENSION, [extension(b"x", 0), vec![0]].concat()),
        (section::EXTENSION, extension(b"a\0b", 0)),
        (section::CERTIFICATES, vec![]),
        (section::CERTIFICATES, certificates(b"no key", &[])),
        (
            section::CERTIFICATES,
            [certificates(b"", &[]), vec![0x20]].concat(),
        ),
        certs(&[(0x20, vec![0; 7])]),
        certs(&[(0x21, serials(&[1]))]),
        certs(&[(0x21, serials(&[1, 2, 3]))]),
        certs(&[(0x22, bitmap(1, &[0x80]))]),
        certs(&[(0x22, [bitmap(1, &[1]), vec![0]].concat())]),
        certs(&[(0x22, bitmap(1, &[1; MAX_BITS + 1]))]),
        certs(&[(0x23, strings(&[b"a\0b"]))]),
    ];
    for section in malformed {
        let error = parse(std::slice::from_ref(&section)).unwrap_err();
        assert!(
            matches!(error, KrlError::Malformed(_)),
            "{section:?}: {error}"
        );
    }
    let serials_wrong = [
        (0x20, serials(&[0])),
        (0x21, serials(&[0, 1])),
        (0x21, serials(&[2, 1])),
        (0x22, bitmap(0, &[1])),
        (0x22, bitmap(u64::MAX, &[2])),
    ];
    for part in serials_wrong {
        assert_eq!(parse(&[certs(&[part])]).unwrap_err(), KrlError::Serials);
    }
    let critical = KrlError::CriticalExtension("x".into());
    assert_eq!(parse(&[(255, extension(b"x", 1))]).unwrap_err(), critical);
    assert_eq!(
        parse(&[certs(&[(0x39, extension(b"x", 7))])]).unwrap_err(),
        critical
    );
    assert_eq!(parse(&[(9, vec![])]).unwrap_err(), KrlError::Section(9));
    let unknown = parse(&[certs(&[(0x24, vec![])])]).unwrap_err();
    assert_eq!(unknown, KrlError::CertificateSection(0x24));
}

const MAX_BITS: usize = 16384 / 8;

#[test]
fn bits_at_the_ends_of_the_numbers_count() {
    let all = |part| parse(&[(1, certificates(b"", &[part]))]).unwrap();
    let highest = all((0x22, bitmap(u64::MAX, &[0, 1])));
    assert_eq!(
        check(&highest, 1, u64::MAX, b""),
        Err(Revoked::Serial(u64::MAX))
    );
    let empty = all((0x22, bitmap(0, &[])));
    assert_eq!(check(&empty, 1, 1, b""), Ok(()));
    let longest = all((0x22, bitmap(1, &[&[0][..], &[0xff; MAX_BITS]].concat())));
    assert_eq!(check(&longest, 1, 16384, b""), Err(Revoked::Serial(16384)));
    assert_eq!(check(&longest, 1, 16385, b""), Ok(()));
}

#[test]
fn a_list_cut_short_is_no_list() {
    let parts = [(0x21, serials(&[10, 20]))];
    let whole = krl(&[
        (1, certificates(&ed25519(1), &parts)),
        (2, strings(&[&ed25519(1)])),
    ]);
    let ends: Vec<usize> = (MAGIC.len()..=whole.len())
        .filter(|&end| Krl::parse(&whole[..end]).is_ok())
        .collect();
    // Only behind the header and behind a whole section.
    let header = krl(&[]).len();
    let first = krl(&[(1, certificates(&ed25519(1), &parts))]).len();
    assert_eq!(ends, [header, first, whole.len()]);
    let mut newer = whole;
    newer[MAGIC.len() + 3] = 2;
    assert_eq!(Krl::parse(&newer).unwrap_err(), KrlError::Version(2));
}
