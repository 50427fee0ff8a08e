#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

/// What comes of octets that arrive in pieces of this size, and what is answered so far.
fn torn(octets: &[u8], size: usize) -> (Result<Option<Destination>, SocksError>, Socks) {
    let mut socks = Socks::new();
    let mut found = Ok(None);
    for piece in octets.chunks(size) {
        match socks.handle_input(piece) {
            Ok(None) => {}
            other => found = other,
        }
        if found.is_err() {
            break;
        }
    }
    (found, socks)
}

fn to(host: &str, port: u16) -> Result<Option<Destination>, SocksError> {
    let host = host.to_owned();
    Ok(Some(Destination { host, port }))
}

#[test]
fn each_version_says_where_it_wants_to_go_however_it_is_torn() {
    let version4 = b"\x04\x01\x01\xbb\x7f\x00\x00\x02me\x00".as_slice();
    let version4a = b"\x04\x01\x01\xbb\x00\x00\x00\x09me\x00example.org\x00";
    let address = b"\x05\x02\x02\x00\x05\x01\x00\x01\x7f\x00\x00\x02\x01\xbb";
    let name = b"\x05\x01\x00\x05\x01\x00\x03\x0bexample.org\x01\xbb";
    let address6 = b"\x05\x01\x00\x05\x01\x00\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x01\xbb";
    for (octets, host) in [
        (version4, "127.0.0.2"),
        (version4a, "example.org"),
        (address, "127.0.0.2"),
        (name, "example.org"),
        (address6, "::1"),
    ] {
        for size in 1..=octets.len() {
            let (found, mut socks) = torn(octets, size);
            assert_eq!(found, to(host, 443), "{octets:?} by {size}");
            let methods: &[u8] = match octets[0] {
                5 => &[5, 0],
                _ => &[],
            };
            assert_eq!(socks.take_output(), methods);
            assert_eq!(socks.handle_input(b"behind"), Ok(None));
            assert_eq!(socks.into_rest(), b"behind");
        }
    }
}

#[test]
fn a_client_hears_whether_it_is_connected() {
    for (octets, yes, no) in [
        (
            b"\x04\x01\x00\x50\x7f\x00\x00\x01\x00".as_slice(),
            [0, 90, 0, 0, 0, 0, 0, 0].as_slice(),
            [0, 91, 0, 0, 0, 0, 0, 0].as_slice(),
        ),
        (
            b"\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50",
            &[5, 0, 0, 1, 0, 0, 0, 0, 0, 0],
            &[5, 5, 0, 1, 0, 0, 0, 0, 0, 0],
        ),
    ] {
        for (is_connected, reply) in [(true, yes), (false, no)] {
            let (_, mut socks) = torn(octets, octets.len());
            socks.take_output();
            socks.answer(is_connected);
            assert_eq!(socks.take_output(), reply);
        }
    }
    let mut early = Socks::new();
    early.answer(true);
    assert_eq!(early.take_output(), b"", "nothing was asked");
}

#[test]
fn what_is_not_served_is_refused_in_the_words_of_its_version() {
    for (octets, error, reply) in [
        (
            b"GET / HTTP/1.1".as_slice(),
            SocksError::Version(b'G'),
            b"".as_slice(),
        ),
        (b"\x05\x01\x02", SocksError::Authentication, &[5, 0xff]),
        (
            b"\x04\x02\x00\x50\x7f\x00\x00\x01\x00",
            SocksError::Command(2),
            &[0, 91, 0, 0, 0, 0, 0, 0],
        ),
        (
            b"\x05\x01\x00\x05\x03\x00\x01",
            SocksError::Command(3),
            &[5, 0, 5, 7, 0, 1, 0, 0, 0, 0, 0, 0],
        ),
        (
            b"\x05\x01\x00\x05\x01\x00\x02",
            SocksError::AddressType(2),
            &[5, 0, 5, 8, 0, 1, 0, 0, 0, 0, 0, 0],
        ),
        (
            b"\x05\x01\x00\x04\x01\x00\x01",
            SocksError::Version(4),
            &[5, 0],
        ),
        (
            b"\x05\x01\x00\x05\x01\x00\x03\x02\xff\xff\x00\x50",
            SocksError::Name,
            &[5, 0],
        ),
        (
            b"\x05\x01\x00\x05\x01\x00\x03\x00\x00\x50",
            SocksError::Name,
            &[5, 0],
        ),
    ] {
        let (found, mut socks) = torn(octets, octets.len());
        assert_eq!(found, Err(error), "{octets:?}");
        assert_eq!(socks.take_output(), reply);
    }
}

#[test]
fn texts_without_an_end_are_not_kept() {
    let mut octets = b"\x04\x01\x00\x50\x7f\x00\x00\x01".to_vec();
    octets.extend([b'u'; MAX_TEXT]);
    assert_eq!(torn(&octets, 100).0, Ok(None));
    octets.push(b'u');
    assert_eq!(torn(&octets, 100).0, Err(SocksError::Length));
    octets.truncate(8);
    octets[4..8].copy_from_slice(&[0, 0, 0, 1]);
    octets.push(0);
    octets.extend([b'n'; MAX_TEXT + 1]);
    assert_eq!(torn(&octets, 100).0, Err(SocksError::Length));
}

proptest! {
    #[test]
    fn pieces_make_no_difference(octets in proptest::collection::vec(0u8..6, 0..40), size in 1usize..9) {
        let (whole, all) = torn(&octets, octets.len().max(1));
        let (pieces, some) = torn(&octets, size);
        prop_assert_eq!(&whole, &pieces);
        if whole.is_ok() {
            prop_assert_eq!(all.into_rest(), some.into_rest());
        }
    }
}
