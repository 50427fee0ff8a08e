//! SFTP's handshake, packets and replies, and servers that break the protocol.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use sshoal_wire::Put;

use super::*;
use crate::fake_server::{FakeChannel, FakeServer, Node};
use crate::sftp::{Attributes, MAX_PACKET};

/// A packet with its length before it.
fn packet(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_string(body);
    out
}

fn version(number: u32) -> Vec<u8> {
    let mut body = vec![2];
    body.put_u32(number);
    packet(&body)
}

/// A client past the handshake with a server without extensions.
fn ready() -> Client<u8> {
    let mut client = Client::new();
    client.handle_input(&version(3)).unwrap();
    client.transmitted(client.waiting());
    assert!(client.is_ready());
    client
}

#[test]
fn the_handshake_learns_extensions_and_limits() {
    let mut server = FakeServer::with(&[(b"/f", Node::File(b"abc".to_vec()))]);
    let mut channel = FakeChannel::default();
    let mut client: Client<u8> = Client::new();
    for _ in 0..3 {
        let sent = client.transmit().collect::<Vec<_>>().concat();
        client.transmitted(sent.len());
        client
            .handle_input(&server.handle(&mut channel, &sent))
            .unwrap();
    }
    assert!(client.is_ready());
    assert!(client.has(Extension::Fsync) && !client.has(Extension::ExpandPath));
    let limits = Limits {
        read: MAX_LEN,
        write: MAX_LEN,
        handles: 50,
    };
    assert_eq!(client.limits(), limits);
}

#[test]
fn the_first_request_shares_a_flight_with_the_question_for_limits() {
    let mut server = FakeServer::with(&[(b"/f", Node::File(b"abc".to_vec()))]);
    let mut channel = FakeChannel::default();
    let mut client: Client<u8> = Client::new();
    let mut flight = |client: &mut Client<u8>| {
        let sent = client.transmit().collect::<Vec<_>>().concat();
        client.transmitted(sent.len());
        let answer = server.handle(&mut channel, &sent);
        client.handle_input(&answer).unwrap();
    };
    flight(&mut client);
    assert!(client.is_ready());
    assert_eq!(client.limits(), Limits::default(), "not told yet");
    // Nothing is assumed by it yet, either.
    let mut further: Client<u8> = Client::new();
    further.assume(&client);
    assert!(!further.is_ready());
    client.request(Request::Stat { path: b"/f" }, 7);
    assert_eq!(client.pending(), 2);
    flight(&mut client);
    assert!(matches!(
        client.poll_reply(),
        Some((7, Reply::Attributes(_)))
    ));
    assert_eq!(client.limits().read, MAX_LEN);
    assert_eq!(client.pending(), 0);
}

#[test]
fn a_known_servers_greeting_is_not_waited_for() {
    let mut server = FakeServer::with(&[(b"/f", Node::File(b"abc".to_vec()))]);
    let mut known: Client<u8> = Client::new();
    let mut channel = FakeChannel::default();
    for _ in 0..3 {
        let sent = known.transmit().collect::<Vec<_>>().concat();
        known.transmitted(sent.len());
        let answer = server.handle(&mut channel, &sent);
        known.handle_input(&answer).unwrap();
    }
    let mut client: Client<u8> = Client::new();
    assert!(!client.is_ready());
    client.assume(&known);
    assert!(client.is_ready() && client.has(Extension::Fsync));
    assert_eq!(client.limits(), known.limits());
    client.request(Request::Stat { path: b"/f" }, 7);
    assert_eq!(client.pending(), 2);
    // Both in one flight.
    let sent = client.transmit().collect::<Vec<_>>().concat();
    client.transmitted(sent.len());
    let answer = server.handle(&mut FakeChannel::default(), &sent);
    client.handle_input(&answer).unwrap();
    assert!(matches!(
        client.poll_reply(),
        Some((7, Reply::Attributes(_)))
    ));
    assert_eq!((client.pending(), client.waiting()), (0, 0));

    // Another server than the one that was known.
    let mut client: Client<u8> = Client::new();
    client.assume(&known);
    assert_eq!(
        client.handle_input(&version(3)),
        Err(SftpError::AnotherServer)
    );
    // Nothing is assumed of a server that names no limits, or of one that has not answered.
    for unknown in [ready(), Client::new()] {
        let mut client: Client<u8> = Client::new();
        client.assume(&unknown);
        assert!(!client.is_ready());
    }
}

#[test]
fn a_links_two_paths_go_in_the_servers_order() {
    for (software, order) in [
        ("OpenSSH_9.2p1 Debian-2", [b"to", b"at"]),
        ("AsyncSSH_2.21.0", [b"at", b"to"]),
        ("Go", [b"to", b"at"]),
    ] {
        let mut client = ready();
        client.speak(Dialect::of(software));
        client.request(
            Request::Symlink {
                target: b"to",
                link: b"at",
            },
            0,
        );
        let sent = client.transmit().collect::<Vec<_>>().concat();
        let mut from = Decoder::new(&sent[4..]);
        assert_eq!((from.u8(), from.u32()), (Ok(20), Ok(1)));
        for path in order {
            assert_eq!(from.string(), Ok(&path[..]), "{software}");
        }
        from.finish().unwrap();
    }
}

#[test]
fn what_is_no_sftp_is_quoted() {
    let mut client: Client<u8> = Client::new();
    let error = client
        .handle_input(b"This account is currently not available.\n")
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("This account is currently not available."),
        "{error}"
    );
    let mut client: Client<u8> = Client::new();
    assert_eq!(client.handle_input(&version(2)), Err(SftpError::Version(2)));
}

/// What a hostile server may answer to a READ of 4 octets, and what is said to it.
#[test]
fn a_server_that_breaks_the_protocol_is_named() {
    let read = |client: &mut Client<u8>| {
        let handle = {
            client.request(Request::Opendir { path: b"x" }, 0);
            let mut body = vec![102];
            body.put_u32(1);
            body.put_string(b"h");
            client.handle_input(&packet(&body)).unwrap();
            match client.poll_reply() {
                Some((0, Reply::Handle(handle))) => handle,
                other => panic!("{other:?}"),
            }
        };
        let request = Request::Read {
            handle: &handle,
            offset: 0,
            len: 4,
        };
        client.request(request, 7);
    };
    let data = |id: u32, octets: &[u8]| {
        let mut body = vec![103];
        body.put_u32(id);
        body.put_string(octets);
        packet(&body)
    };
    let mut client = ready();
    read(&mut client);
    assert_eq!(
        client.handle_input(&data(2, b"12345")),
        Err(SftpError::TooMuchData { sent: 5, asked: 4 })
    );
    let mut client = ready();
    read(&mut client);
    assert_eq!(
        client.handle_input(&data(9, b"1234")),
        Err(SftpError::Unasked(9))
    );
    let mut client = ready();
    read(&mut client);
    client.handle_input(&data(2, b"1234")).unwrap();
    assert!(matches!(client.poll_reply(), Some((7, Reply::Data(data))) if *data == *b"1234"));
    assert_eq!(
        client.handle_input(&data(2, b"1234")),
        Err(SftpError::Unasked(2)),
        "twice"
    );
    let mut client = ready();
    read(&mut client);
    let mut attrs = vec![105];
    attrs.put_u32(2);
    Attributes::default().encode(&mut attrs);
    assert!(matches!(
        client.handle_input(&packet(&attrs)),
        Err(SftpError::WrongReply {
            request: "READ",
            kind: 105
        })
    ));
    let mut client = ready();
    let len = MAX_PACKET as u32 + 1;
    assert_eq!(
        client.handle_input(&len.to_be_bytes()),
        Err(SftpError::TooLong { len })
    );
    let mut client = ready();
    read(&mut client);
    let mut handle = vec![102];
    handle.put_u32(2);
    handle.put_string(&[0; 257]);
    assert!(client.handle_input(&packet(&handle)).is_err());
    // Names that claim to be more than there are.
    let mut client = ready();
    client.request(Request::Realpath { path: b"." }, 1);
    let mut names = vec![104];
    names.put_u32(1);
    names.put_u32(u32::MAX);
    assert!(matches!(
        client.handle_input(&packet(&names)),
        Err(SftpError::Malformed(_))
    ));
}

#[test]
fn every_request_is_of_one_packet_and_carries_what_it_says() {
    let request = Request::Hardlink {
        from: b"old",
        to: b"n",
    };
    let mut out = Vec::new();
    request.encode(5, Dialect::default(), &mut out);
    let mut from = Decoder::new(&out[4..]);
    assert_eq!(from.u8(), Ok(200));
    assert_eq!(from.u32(), Ok(5));
    assert_eq!(from.string(), Ok(&b"hardlink@openssh.com"[..]));
    assert_eq!(from.string(), Ok(&b"old"[..]));
    assert_eq!(from.string(), Ok(&b"n"[..]));
    from.finish().unwrap();
    assert_eq!(
        u32::from_be_bytes(out[..4].try_into().unwrap()) as usize,
        out.len() - 4
    );
}

proptest! {
    /// Whatever comes, in whatever pieces: an error or an answer, never a panic, and no more memory than came.
    #[test]
    fn anything_may_come(octets in prop::collection::vec(any::<u8>(), 0..600), piece in 1usize..50) {
        let mut client: Client<u8> = ready();
        for token in 0..4 {
            client.request(Request::Realpath { path: b"." }, token);
            client.request(Request::Lstat { path: b"." }, token);
        }
        let framed = packet(&octets);
        for piece in framed.chunks(piece) {
            if client.handle_input(piece).is_err() {
                break;
            }
        }
        while client.poll_reply().is_some() {}
    }

    #[test]
    fn attributes_are_what_they_were(size: Option<u64>, owner: Option<(u32, u32)>, mode: Option<u32>, times: Option<(u32, u32)>) {
        let attributes = Attributes { size, owner, mode, times };
        let mut out = Vec::new();
        attributes.encode(&mut out);
        prop_assert_eq!(Attributes::decode(&mut Decoder::new(&out)), Ok(attributes));
    }
}
