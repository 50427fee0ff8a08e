//! Servers, and people between, that break key exchange: Terrapin, strict key exchange, false halves,
//! wrong signatures, messages out of turn.

use sshoal_crypto::{CryptoError, KexError};
use sshoal_proto::{ConnectionError, Misbehaviour, Phase};
use sshoal_wire::{Debug, Ignore, KexEcdhReply, KexGexGroup, Message, NewKeys, Unimplemented};

use crate::support::{Packets, Pair, Policy, key, logged_in, opening, settings};

fn encoded<'a>(message: impl Into<Message<'a>>) -> Vec<u8> {
    let mut payload = Vec::new();
    message.into().encode(&mut payload);
    payload
}

/// The idle messages of RFC 4253 section 11, with their names.
fn idle_messages() -> [(&'static str, Vec<u8>); 3] {
    let debug = Debug {
        always_display: true,
        message: b"",
        language_tag: b"",
    };
    [
        ("IGNORE", encoded(Ignore { data: b"x" })),
        ("DEBUG", encoded(debug)),
        (
            "UNIMPLEMENTED",
            encoded(Unimplemented { sequence_number: 0 }),
        ),
    ]
}

/// The server's octets from now on, one packet each, while they are not encrypted.
fn plain_packets(mut octets: &[u8]) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    while !octets.is_empty() {
        let len = 4 + u32::from_be_bytes(octets[..4].try_into().unwrap()) as usize;
        packets.push(octets[..len].to_vec());
        octets = &octets[len..];
    }
    packets
}

fn plain(payload: &[u8]) -> Vec<u8> {
    Packets::new().seal(payload)
}

/// A key exchange in which `injected` comes before the server's packet `at` (0 KEXINIT, 1 reply, 2 NEWKEYS),
/// and the error of it.
fn with_injection(strict: bool, at: usize, injected: &[u8]) -> Option<ConnectionError> {
    let mut policy = Policy::openssh();
    policy.strict = strict;
    policy.ext_info.clear();
    let mut pair = Pair::new(settings(), opening(), policy);
    let identification = pair.server.packets.outbox.iter().position(|o| *o == b'\n');
    let greeting: Vec<u8> = pair
        .server
        .packets
        .outbox
        .drain(..=identification.unwrap())
        .collect();
    pair.feed(&greeting);
    let mut packets = plain_packets(&std::mem::take(&mut pair.server.packets.outbox));
    for number in 0..3 {
        if number == at {
            pair.feed(&plain(injected));
        }
        if number < packets.len() {
            let packet = packets[number].clone();
            pair.feed(&packet);
        }
        pair.flight();
        if number == 0 {
            packets.extend(plain_packets(&std::mem::take(
                &mut pair.server.packets.outbox,
            )));
        }
    }
    pair.error
}

#[test]
fn nothing_may_come_before_a_strict_kexinit() {
    for (_, payload) in idle_messages() {
        assert_eq!(
            with_injection(true, 0, &payload),
            Some(Misbehaviour::StrictKexInitNotFirst.into())
        );
        assert_eq!(with_injection(false, 0, &payload), None);
    }
}

#[test]
fn nothing_may_come_into_a_strict_key_exchange() {
    for (message, payload) in idle_messages() {
        for at in [1, 2] {
            let during = Phase::KeyExchange;
            let unexpected = Misbehaviour::Unexpected { message, during };
            assert_eq!(
                with_injection(true, at, &payload),
                Some(unexpected.into()),
                "{at}"
            );
            assert_eq!(with_injection(false, at, &payload), None, "{at}");
        }
    }
    assert_eq!(
        with_injection(true, 1, &[200]),
        Some(Misbehaviour::UnknownDuringStrictKeyExchange { number: 200 }.into())
    );
}

/// Terrapin (CVE-2023-48795): the man in the middle adds a packet before the keys and takes one away after
/// them, here EXT_INFO; sequence numbers fit again.
fn truncated_prefix(strict: bool) -> Option<ConnectionError> {
    let mut policy = Policy::openssh();
    policy.strict = strict;
    policy.ciphers = vec!["chacha20-poly1305@openssh.com"];
    let mut pair = Pair::new(settings(), opening(), policy);
    pair.answer();
    pair.flight();
    let outbox = std::mem::take(&mut pair.server.packets.outbox);
    // Reply, NEWKEYS, and what is encrypted after them: EXT_INFO alone.
    let reply = 4 + u32::from_be_bytes(outbox[..4].try_into().unwrap()) as usize;
    let new_keys = reply + plain(&encoded(NewKeys)).len();
    assert!(outbox.len() > new_keys);
    pair.feed(&plain(&encoded(Ignore { data: b"" })));
    pair.feed(&outbox[..new_keys]);
    pair.run();
    pair.error
}

#[test]
fn terrapin_is_noticed_in_a_strict_key_exchange() {
    let message = "IGNORE";
    let during = Phase::KeyExchange;
    let unexpected = Misbehaviour::Unexpected { message, during };
    assert_eq!(truncated_prefix(true), Some(unexpected.into()));
    // It is a real attack: without strictness it is not noticed.
    assert_eq!(truncated_prefix(false), None);
}

#[test]
fn a_strict_server_must_restart_its_numbers() {
    let mut policy = Policy::openssh();
    policy.ciphers = vec!["chacha20-poly1305@openssh.com"];
    let mut pair = Pair::new(settings(), opening(), policy);
    pair.answer();
    pair.flight();
    // The server goes on from where it was.
    let outbox = &mut pair.server.packets.outbox;
    let reply = 4 + u32::from_be_bytes(outbox[..4].try_into().unwrap()) as usize;
    outbox.truncate(reply + plain(&encoded(NewKeys)).len());
    pair.server.packets.next_said = 3;
    pair.server.say(Ignore { data: b"" });
    pair.run();
    assert!(
        matches!(pair.error, Some(ConnectionError::Packet(_))),
        "{:?}",
        pair.error
    );
}

#[test]
fn strictness_stays_for_every_rekeying() {
    let mut policy = Policy::openssh();
    policy.ciphers = vec!["chacha20-poly1305@openssh.com"];
    let mut pair = logged_in(settings(), policy);
    for finished in 2..5 {
        pair.server.rekey();
        pair.run();
        assert_eq!(pair.server.kex.finished, finished);
        assert_eq!(pair.server.packets.next_said, 0, "nothing said since");
        pair.server.say(Ignore { data: b"" });
        pair.run();
        assert_eq!(pair.error, None);
    }
    // In a rekeying, idle messages are allowed again (PROTOCOL: "during initial KEX").
    pair.server.rekey();
    pair.answer();
    pair.server.packets.say(&encoded(Ignore { data: b"" }));
    pair.run();
    assert_eq!(pair.error, None);
    assert_eq!(pair.server.kex.finished, 5);
}

#[test]
fn a_signature_by_another_key_is_no_proof() {
    let mut policy = Policy::openssh();
    policy.signing_key = key(9);
    let mut pair = Pair::new(settings(), opening(), policy);
    pair.run();
    assert!(
        matches!(pair.error, Some(ConnectionError::HostKeySignature(_))),
        "{:?}",
        pair.error
    );
    // The caller is not even asked about a key that nobody proved to hold.
    assert!(pair.events.is_empty());
    assert_eq!(pair.flights.last().unwrap(), "DISCONNECT");
}

/// What comes of a server whose half is `half` where the client awaits one.
fn with_half(kex: &'static str, half: Vec<u8>) -> ConnectionError {
    let mut policy = Policy::openssh();
    policy.kex = vec![kex];
    let mut pair = Pair::new(settings(), opening(), policy);
    pair.server.kex.false_half = Some(half);
    pair.run();
    assert!(pair.events.is_empty(), "{:?}", pair.told());
    pair.error.expect("an error")
}

#[test]
fn false_halves_are_refused() {
    let curve = |half| with_half("curve25519-sha256", half);
    let public_value = ConnectionError::KeyExchange(KexError::PublicValue);
    let length =
        |expected, found| ConnectionError::KeyExchange(KexError::PublicLength { expected, found });
    assert_eq!(curve(vec![]), length(32, 0));
    assert_eq!(curve(vec![9; 31]), length(32, 31));
    assert_eq!(curve(vec![9; 33]), length(32, 33));
    // RFC 8731 section 3: the all-zero secret that low-order points lead to.
    assert_eq!(curve(vec![0; 32]), public_value);
    let mut one = vec![0; 32];
    one[0] = 1;
    assert_eq!(curve(one), public_value);

    let nist = |half| with_half("ecdh-sha2-nistp256", half);
    assert_eq!(nist(vec![4; 64]), length(65, 64));
    assert_eq!(nist(vec![4; 65]), public_value);

    // RFC 4253 section 8: "Values of 'e' or 'f' that are not in the range [1, p-1] MUST NOT be sent or accepted."
    for method in [
        "diffie-hellman-group14-sha256",
        "diffie-hellman-group-exchange-sha256",
    ] {
        for half in [vec![], vec![1], vec![0xff; 256], vec![0xff; 300]] {
            let error = with_half(method, half);
            assert!(matches!(error, ConnectionError::KeyExchange(_)), "{error}");
        }
    }
    // A sound half that is not the server's own: the signature is of something else.
    let other = curve(vec![9; 32]);
    assert!(
        matches!(other, ConnectionError::HostKeySignature(_)),
        "{other}"
    );
}

#[test]
fn false_groups_are_refused() {
    let offered = |p: &[u8], g: &[u8]| {
        let mut policy = Policy::openssh();
        policy.kex = vec!["diffie-hellman-group-exchange-sha256"];
        let mut pair = Pair::new(settings(), opening(), policy);
        pair.answer();
        pair.server.say(Ignore { data: b"" });
        pair.server.packets.outbox.clear();
        pair.feed(&plain(&encoded(KexGexGroup { p, g })));
        pair.error.expect("an error")
    };
    let odd = |bits: usize| {
        let mut p = vec![0xff; bits / 8];
        p[0] >>= 7 - (bits + 7) % 8;
        p
    };
    let size = |bits| ConnectionError::KeyExchange(KexError::GroupSize { bits });
    assert_eq!(offered(&odd(1024), &[2]), size(1024));
    assert_eq!(offered(&[], &[2]), size(0));
    assert_eq!(offered(&odd(8200), &[2]), size(8200));
    let mut even = odd(2048);
    even[255] = 0xfe;
    let none = ConnectionError::KeyExchange(KexError::Group);
    assert_eq!(offered(&even, &[2]), none);
    for generator in [&[][..], &[1], &odd(2048)] {
        assert_eq!(offered(&odd(2048), generator), none);
    }
}

#[test]
fn a_host_key_of_another_type_than_agreed_is_refused() {
    let mut policy = Policy::openssh();
    policy.host_key_algorithms = vec!["rsa-sha2-512"];
    let mut pair = Pair::new(settings(), opening(), policy);
    pair.run();
    let found = "ssh-ed25519".to_owned();
    let negotiated = "rsa-sha2-512";
    let other = Misbehaviour::HostKeyType { found, negotiated };
    assert_eq!(pair.error, Some(other.into()));
}

#[test]
fn a_host_key_that_no_agent_could_be_told_of_is_refused() {
    let presented = |octets: usize| {
        let mut pair = Pair::new(settings(), opening(), Policy::openssh());
        pair.answer();
        pair.feed(&plain(&encoded(KexEcdhReply {
            host_key: &vec![0; octets],
            public: &[9; 32],
            signature: b"",
        })));
        pair.error.expect("an error")
    };
    let limit = 128 * 1024;
    let what = "octets in a host key";
    let flood = ConnectionError::from(Misbehaviour::Flood { what, limit });
    assert_eq!(presented(limit + 1), flood);
    assert_ne!(presented(limit), flood);
}

#[test]
fn messages_of_key_exchange_out_of_turn() {
    let unexpected = |message, during| Some(Misbehaviour::Unexpected { message, during }.into());
    let new_keys = encoded(NewKeys);
    assert_eq!(
        with_injection(true, 1, &new_keys),
        unexpected("NEWKEYS", Phase::KeyExchange)
    );
    assert_eq!(
        with_injection(true, 0, &new_keys),
        unexpected("NEWKEYS", Phase::KeyExchange)
    );
    let mut reply = vec![31];
    reply.extend([0; 12]);
    assert_eq!(
        with_injection(true, 0, &reply),
        unexpected("KEX_ECDH_REPLY", Phase::KeyExchange)
    );
    assert_eq!(
        with_injection(true, 2, &reply),
        unexpected("KEX_ECDH_REPLY", Phase::KeyExchange)
    );
    // Once keys are in use, replies belong to nothing.
    let mut pair = logged_in(settings(), Policy::openssh());
    pair.server.packets.say(&reply);
    pair.run();
    assert_eq!(pair.error, unexpected("KEX_ECDH_REPLY", Phase::Connection));
}

#[test]
fn a_second_kexinit_in_one_key_exchange() {
    let mut pair = logged_in(settings(), Policy::openssh());
    pair.server.rekey();
    pair.answer();
    pair.server.rekey();
    pair.answer();
    let message = "KEXINIT";
    let during = Phase::Connection;
    let unexpected = Misbehaviour::Unexpected { message, during };
    assert_eq!(pair.error, Some(unexpected.into()));
}

#[test]
fn data_between_kexinit_and_newkeys() {
    // RFC 4253 section 7.1: after KEXINIT a party sends nothing but key exchange until NEWKEYS.
    let mut pair = logged_in(settings(), Policy::openssh());
    pair.server.rekey();
    pair.server
        .packets
        .say(&encoded(sshoal_wire::GlobalRequest {
            request_name: b"x",
            want_reply: false,
            data: b"",
        }));
    pair.answer();
    let message = "GLOBAL_REQUEST";
    let during = Phase::Connection;
    let unexpected = Misbehaviour::Unexpected { message, during };
    assert_eq!(pair.error, Some(unexpected.into()));
}

#[test]
fn packets_that_are_altered_lost_repeated_or_exchanged() {
    for cipher in sshoal_crypto::Cipher::ALL {
        for mac in ["hmac-sha2-256-etm@openssh.com", "hmac-sha2-256"] {
            let mut policy = Policy::openssh();
            policy.ciphers = vec![cipher.name()];
            policy.macs = vec![mac];
            let sealed = || {
                let mut pair = logged_in(settings(), policy.clone());
                let first = pair.server.packets.seal(&encoded(Ignore { data: b"1" }));
                let second = pair.server.packets.seal(&encoded(Ignore { data: b"22" }));
                (pair, first, second)
            };
            let refused = |pair: &Pair| {
                assert!(
                    matches!(
                        pair.error,
                        Some(ConnectionError::Packet(
                            CryptoError::Corrupt
                                | CryptoError::PacketLength { .. }
                                | CryptoError::Alignment { .. }
                        ))
                    ),
                    "{cipher:?} {mac} {:?}",
                    pair.error
                );
            };
            let (mut pair, first, second) = sealed();
            pair.feed(&[first, second].concat());
            assert_eq!(pair.error, None);

            let (mut pair, first, _) = sealed();
            pair.feed(&[first.as_slice(), &first].concat());
            refused(&pair);
            let (mut pair, _, second) = sealed();
            pair.feed(&second);
            refused(&pair);

            // An altered length may let the client wait for more: it is given plenty.
            let (mut pair, first, _) = sealed();
            for at in 0..first.len() {
                let mut altered = first.clone();
                altered[at] ^= 1;
                altered.resize(300_000, 0);
                pair.feed(&altered);
                refused(&pair);
                pair = sealed().0;
            }
        }
    }
}

#[test]
fn impossible_packet_lengths() {
    for length in [0, 1, 4, 5, 256 * 1024 + 1, 1 << 31, u32::MAX] {
        let mut pair = Pair::new(settings(), opening(), Policy::openssh());
        pair.feed(b"SSH-2.0-x\r\n");
        pair.feed(&u32::to_be_bytes(length));
        assert!(
            matches!(pair.error, Some(ConnectionError::Packet(_))),
            "{length}: {:?}",
            pair.error
        );
        let mut pair = logged_in(settings(), Policy::openssh());
        pair.feed(&u32::to_be_bytes(length));
        pair.feed(&[0; 16]);
        assert!(pair.error.is_some(), "{length}");
    }
}

#[test]
fn a_packet_cut_short_is_waited_for() {
    let mut pair = logged_in(settings(), Policy::openssh());
    let packet = pair.server.packets.seal(&encoded(Ignore { data: b"1" }));
    for len in 0..packet.len() {
        pair.input.clear();
        pair.feed(&packet[..len]);
        assert_eq!((pair.error.as_ref(), pair.input.len()), (None, len));
    }
    assert_eq!(
        pair.client.handle_eof(),
        ConnectionError::Closed {
            during: Phase::Connection
        }
    );
}
