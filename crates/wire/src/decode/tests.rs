#![allow(clippy::unwrap_used)]

use super::*;
use crate::{Counted, Extension, MAX_EXTENSIONS, MAX_NAME_LIST_LEN, MAX_PROMPTS, Prompt, Put};

/// A string field of these bytes.
fn string(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_string(bytes);
    out
}

/// The `mpint` examples of RFC 4251, section 5, that are not negative: value in hex, representation in hex.
#[test]
fn mpints_are_those_of_the_rfc() {
    let examples: [(&[u8], &[u8]); 3] = [
        (&[], &[0, 0, 0, 0]),
        (
            &[0x09, 0xa3, 0x78, 0xf9, 0xb2, 0xe3, 0x32, 0xa7],
            &[0, 0, 0, 8, 0x09, 0xa3, 0x78, 0xf9, 0xb2, 0xe3, 0x32, 0xa7],
        ),
        (&[0x80], &[0, 0, 0, 2, 0, 0x80]),
    ];
    for (magnitude, wire) in examples {
        let mut out = Vec::new();
        out.put_mpint(magnitude);
        assert_eq!(out, wire);
        assert_eq!(Decoder::new(wire).mpint(), Ok(magnitude));
    }
}

/// RFC 4251's `-1234` and `-deadbeef`.
#[test]
fn negative_mpints_are_rejected() {
    for wire in [
        &[0, 0, 0, 2, 0xed, 0xcc][..],
        &[0, 0, 0, 5, 0xff, 0x21, 0x52, 0x41, 0x11],
    ] {
        let problem = Decoder::new(wire).mpint().unwrap_err().problem;
        assert_eq!(problem, Problem::Negative);
    }
}

#[test]
fn needless_zeros_of_an_mpint_vanish() {
    assert_eq!(Decoder::new(&string(&[0, 0, 0, 5])).mpint(), Ok(&[5][..]));
    let mut out = Vec::new();
    out.put_mpint(&[0, 0, 0xff]);
    assert_eq!(out, [0, 0, 0, 2, 0, 0xff]);
}

#[test]
fn an_mpint_has_a_longest_length() {
    let mut longest = vec![0; MAX_MPINT_LEN + 1];
    longest[1] = 0x80;
    assert_eq!(
        Decoder::new(&string(&longest)).mpint().unwrap().len(),
        MAX_MPINT_LEN
    );
    let longer = vec![1; MAX_MPINT_LEN + 1];
    assert_eq!(
        Decoder::new(&string(&longer)).mpint().unwrap_err().problem,
        Problem::TooLong {
            len: MAX_MPINT_LEN + 1,
            limit: MAX_MPINT_LEN
        }
    );
}

/// The `name-list` examples of RFC 4251, section 5.
#[test]
fn name_lists_are_those_of_the_rfc() {
    let examples: [(&str, &[u8]); 3] = [
        ("", b"\0\0\0\0"),
        ("zlib", b"\0\0\0\x04zlib"),
        ("zlib,none", b"\0\0\0\x09zlib,none"),
    ];
    for (joined, wire) in examples {
        let names = Decoder::new(wire).name_list().unwrap();
        assert_eq!(names.as_str(), joined);
        let mut out = Vec::new();
        out.put_name_list(names);
        assert_eq!(out, wire);
    }
}

#[test]
fn names_are_found_whole_and_in_order() {
    let wire = string(b"aes128-ctr,aes128-ctr-x,,hmac");
    let names = Decoder::new(&wire).name_list().unwrap();
    assert_eq!(
        names.iter().collect::<Vec<_>>(),
        ["aes128-ctr", "aes128-ctr-x", "hmac"]
    );
    assert_eq!(names.first(), Some("aes128-ctr"));
    assert!(names.contains("hmac") && !names.contains("aes128") && !names.contains(""));
    let nothing = string(b",,");
    assert!(Decoder::new(&nothing).name_list().unwrap().is_empty());
}

#[test]
fn a_name_list_holds_printable_ascii_only() {
    for bad in [
        &b"a b"[..],
        b"a\tb",
        b"a\x1b[31m",
        b"\0",
        b"\x7f",
        "naïve".as_bytes(),
        b"\xff",
    ] {
        let wire = string(bad);
        let problem = Decoder::new(&wire).name_list().unwrap_err().problem;
        assert_eq!(problem, Problem::NotAscii, "{bad:?}");
    }
}

#[test]
fn a_name_list_has_a_longest_length() {
    let longest = string(&vec![b'x'; MAX_NAME_LIST_LEN]);
    assert!(Decoder::new(&longest).name_list().is_ok());
    let longer = string(&vec![b'x'; MAX_NAME_LIST_LEN + 1]);
    let problem = Decoder::new(&longer).name_list().unwrap_err().problem;
    assert!(matches!(problem, Problem::TooLong { .. }));
}

#[test]
fn a_string_longer_than_the_input_is_truncated() {
    let mut decoder = Decoder::named("DEBUG", &[0xff, 0xff, 0xff, 0xff, 1, 2]);
    let error = decoder.field("message").string().unwrap_err();
    assert_eq!(
        error.to_string(),
        "the peer's DEBUG is malformed: message needs 4294967295 bytes where 2 are left"
    );
}

#[test]
fn integers_are_big_endian() {
    let wire = [1, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 3, 4, 2, 0];
    let mut decoder = Decoder::new(&wire);
    assert_eq!(decoder.u8(), Ok(1));
    assert_eq!(decoder.u32(), Ok(0x102));
    assert_eq!(decoder.u64(), Ok(0x304));
    // RFC 4251: "all non-zero values MUST be interpreted as TRUE".
    assert_eq!(decoder.boolean(), Ok(true));
    assert_eq!(decoder.boolean(), Ok(false));
    assert_eq!(decoder.finish(), Ok(()));
    let mut out = Vec::new();
    out.put_u8(1);
    out.put_u32(0x102);
    out.put_u64(0x304);
    out.put_boolean(true);
    assert_eq!(out[..13], wire[..13]);
    assert_eq!(out[13], 1);
}

#[test]
fn counts_are_limited_before_anything_is_read() {
    for (count, limit) in [
        (MAX_EXTENSIONS + 1, MAX_EXTENSIONS),
        (u32::MAX, MAX_PROMPTS),
    ] {
        let mut wire = Vec::new();
        wire.put_u32(count);
        let error = Counted::<Extension<'_>>::decode(&mut Decoder::new(&wire), limit).unwrap_err();
        assert_eq!(error.problem, Problem::TooMany { count, limit });
    }
    let error =
        Counted::<Prompt<'_>>::decode(&mut Decoder::new(&[0, 0, 0, 2]), MAX_PROMPTS).unwrap_err();
    assert_eq!(error.problem, Problem::Truncated { needed: 4, left: 0 });
}

#[test]
fn a_counted_list_is_the_same_from_a_slice_and_from_bytes() {
    let responses: [&[u8]; 3] = [b"secret", b"", b"x"];
    let sent = Counted::from(&responses);
    let mut wire = Vec::new();
    sent.encode(&mut wire);
    wire.push(9);
    let mut decoder = Decoder::new(&wire);
    let received = Counted::<&[u8]>::decode(&mut decoder, MAX_PROMPTS).unwrap();
    assert_eq!(decoder.unread(), [9]);
    assert_eq!(received, sent);
    assert_eq!(received.iter().collect::<Vec<_>>(), responses);
    assert_eq!((received.len(), received.is_empty()), (3, false));
    // The answers to prompts are secrets.
    assert_eq!(format!("{received:?}"), "Counted(3)");
}
