//! Key re-exchange (RFC 4253 section 9): by either side, under load, at every limit.

use std::collections::VecDeque;
use std::time::Duration;

use sshoal_crypto::Cipher;
use sshoal_proto::{
    ConnectionError, Event, ExecFate, LocalChannel, Misbehaviour, RekeyLimits, SessionRequest,
    Settings,
};

use crate::support::{Pair, Policy, held, key, logged_in, opening, pattern, settings};

const MIB: usize = 1024 * 1024;

fn limited(limits: RekeyLimits) -> Settings {
    let mut settings = settings();
    settings.rekey = limits;
    settings
}

fn cat() -> SessionRequest {
    let mut request = SessionRequest::exec("cat");
    request.standard_input = true;
    request
}

/// Sends `data` to an echo on `channel` and gets it back; `disturb` is called before each flight.
fn echo(pair: &mut Pair, channel: LocalChannel, data: &[u8], mut disturb: impl FnMut(&mut Pair)) {
    let mut sent = 0;
    while pair.stdout(channel).len() < data.len() {
        sent += pair.client.send_data(channel, &data[sent..]).unwrap();
        disturb(pair);
        let moved = pair.flight() | pair.answer();
        assert!(moved, "stuck at {sent}; {:?}", pair.error);
    }
    assert!(pair.stdout(channel) == data, "the echo differs");
    let received = &pair.server.channels.first_key_value().unwrap().1.stdin;
    assert!(received == data, "what the server received differs");
}

#[test]
fn the_server_rekeys_under_load_in_both_directions() {
    for strict in [true, false] {
        for cipher in Cipher::ALL {
            let mut policy = Policy::openssh();
            policy.strict = strict;
            policy.ciphers = vec![cipher.name()];
            let mut pair = logged_in(settings(), policy);
            let channel = pair.open(cat());
            pair.run();
            let mut flights = 0;
            echo(&mut pair, channel, &pattern(4 * MIB), |pair| {
                flights += 1;
                let idle = !pair.server.kex.holds_messages() && !pair.server.kex.awaits_client();
                if flights % 3 == 0 && idle {
                    pair.server.rekey();
                }
            });
            assert!(pair.server.kex.finished > 4, "{}", pair.server.kex.finished);
        }
    }
}

#[test]
fn the_client_rekeys_by_bytes_under_load_in_both_directions() {
    for cipher in Cipher::ALL {
        let mut policy = Policy::openssh();
        policy.ciphers = vec![cipher.name()];
        let settings = limited(RekeyLimits {
            bytes: Some(MIB as u64),
            ..RekeyLimits::default()
        });
        let mut pair = logged_in(settings, policy);
        let channel = pair.open(cat());
        pair.run();
        echo(&mut pair, channel, &pattern(8 * MIB), |_| {});
        // What was sent counts, and what was received, each by itself.
        let exchanges = pair.server.kex.finished - 1;
        assert!((4..=8).contains(&exchanges), "{exchanges}");
    }
}

#[test]
fn each_direction_counts_by_itself() {
    let by_bytes = || {
        limited(RekeyLimits {
            bytes: Some(MIB as u64),
            ..RekeyLimits::default()
        })
    };
    // Nearly all is received here, and nearly all is sent there.
    let mut pair = logged_in(by_bytes(), Policy::openssh());
    let channel = pair.open(SessionRequest::exec(format!("print {}", 5 * MIB)));
    pair.run();
    assert!(pair.stdout(channel) == pattern(5 * MIB));
    assert!(pair.server.kex.finished > 2, "{}", pair.server.kex.finished);

    let mut pair = logged_in(by_bytes(), Policy::openssh());
    let mut sink = SessionRequest::exec("sink");
    sink.standard_input = true;
    let channel = pair.open(sink);
    pair.run();
    for _ in 0..20 {
        pair.client.send_data(channel, &[0; MIB]).unwrap();
        pair.run();
    }
    assert!(pair.server.kex.finished > 2, "{}", pair.server.kex.finished);
}

#[test]
fn both_sides_rekey_at_once() {
    let mut pair = logged_in(
        limited(RekeyLimits {
            bytes: Some(MIB as u64),
            ..RekeyLimits::default()
        }),
        Policy::openssh(),
    );
    let channel = pair.open(cat());
    pair.run();
    echo(&mut pair, channel, &pattern(8 * MIB), |pair| {
        // KEXINITs cross: the client's is on its way and the server starts too.
        let idle = !pair.server.kex.holds_messages() && !pair.server.kex.awaits_client();
        if idle && pair.client.poll_transmit().is_some() {
            pair.server.rekey();
        }
    });
    assert!(pair.server.kex.finished > 10);
}

#[test]
fn the_client_rekeys_by_packets() {
    let limits = RekeyLimits {
        packets: 20,
        ..RekeyLimits::default()
    };
    let mut pair = logged_in(limited(limits), Policy::openssh());
    let channel = pair.open(cat());
    pair.run();
    let before = pair.server.kex.finished;
    for _ in 0..100 {
        assert_eq!(pair.client.send_data(channel, b"x").unwrap(), 1);
        pair.run();
    }
    let exchanges = pair.server.kex.finished - before;
    assert!((4..=7).contains(&exchanges), "{exchanges}");
    assert_eq!(pair.stdout(channel), [b'x'; 100]);
}

#[test]
fn the_client_rekeys_by_time() {
    let hour = Duration::from_secs(3600);
    let limits = RekeyLimits {
        interval: Some(hour),
        ..RekeyLimits::default()
    };
    let mut pair = logged_in(limited(limits), Policy::openssh());
    assert_eq!(pair.client.poll_timeout(), Some(pair.now + hour));
    pair.advance(hour * 5);
    assert_eq!(pair.server.kex.finished, 6);
    assert_eq!(pair.flights.len(), 5 * 3, "{:?}", pair.flights);
}

#[test]
fn the_client_does_not_rekey_before_the_login_however_small_the_limits_are() {
    let limits = RekeyLimits {
        bytes: Some(0),
        packets: 0,
        interval: Some(Duration::from_secs(1)),
    };
    let mut pair = Pair::new(limited(limits), opening(), Policy::openssh());
    pair.credentials = VecDeque::from([held(9), held(8)]);
    pair.run();
    assert_eq!(pair.client.poll_timeout(), None, "nothing is due");
    pair.advance(Duration::from_secs(60));
    pair.client.handle_timeout(pair.now).unwrap();
    pair.run();
    assert_eq!((pair.server.kex.finished, &pair.error), (1, &None));
    // The server may.
    pair.server.rekey();
    pair.run();
    assert_eq!((pair.server.kex.finished, &pair.error), (2, &None));

    let channel = pair.open(cat());
    pair.client.authenticate(held(2)).unwrap();
    pair.run_until(|event| matches!(event, Event::Authenticated));
    assert_eq!(pair.server.kex.finished, 2);
    // Once the user is in, all limits are exceeded; and yet data get through.
    let data = pattern(100);
    let mut sent = 0;
    for _ in 0..1000 {
        sent += pair.client.send_data(channel, &data[sent..]).unwrap();
        pair.flight();
        pair.answer();
    }
    assert_eq!((pair.stdout(channel), &pair.error), (&data[..], &None));
    assert!(pair.server.kex.finished > 3, "{}", pair.server.kex.finished);
}

#[test]
fn a_server_that_does_not_answer_our_kexinit_is_not_asked_again() {
    let hour = Duration::from_secs(3600);
    let limits = RekeyLimits {
        interval: Some(hour),
        ..RekeyLimits::default()
    };
    let mut pair = logged_in(limited(limits), Policy::openssh());
    pair.server.policy.answers_kex = false;
    pair.server.policy.answers_channels = false;
    pair.advance(hour * 5);
    assert_eq!(pair.flights, ["KEXINIT"]);
    // And the caller is not woken over and over for what is already under way.
    assert_eq!(pair.client.poll_timeout(), None);
}

/// RFC 4344 section 3.2 and packet.c: 2^32 blocks of AES, 1 GiB of chacha20, which a test can send.
#[test]
fn without_limits_of_the_callers_openssh_s_hold() {
    assert_eq!(RekeyLimits::default().packets, 1 << 31);
    assert_eq!(RekeyLimits::default().bytes, None);
    assert_eq!(Cipher::ChaCha20Poly1305.rekey_bytes(), 1 << 30);
    assert_eq!(Cipher::Aes128Gcm.rekey_bytes(), 64 << 30);

    let mut policy = Policy::openssh();
    policy.ciphers = vec!["chacha20-poly1305@openssh.com"];
    let mut pair = logged_in(settings(), policy);
    let mut sink = SessionRequest::exec("sink");
    sink.standard_input = true;
    let channel = pair.open(sink);
    pair.run();
    let block = vec![7; MIB];
    let mut sent = 0;
    while pair.server.kex.finished == 1 {
        sent += pair.client.send_data(channel, &block).unwrap();
        let moved = pair.flight() | pair.answer();
        assert!(moved && sent < 1100 * MIB, "{sent}");
        // Only the count is of interest, not a gigabyte of memory.
        pair.server
            .channels
            .values_mut()
            .for_each(|open| open.forget_stdin());
    }
    assert!(sent > 1000 * MIB, "{sent}");
}

#[test]
fn what_the_caller_asks_for_waits_for_the_new_keys() {
    let mut pair = logged_in(settings(), Policy::openssh());
    let first = pair.open(cat());
    pair.run();
    pair.flights.clear();

    pair.server.rekey();
    pair.answer();
    // Our KEXINIT and our half are out, NEWKEYS is not: only key exchange may be sent.
    let second = pair.open(SessionRequest::exec("true"));
    pair.client.signal(first, "INT").unwrap();
    assert_eq!(pair.client.send_data(first, b"data").unwrap(), 0);
    pair.client.send_eof(first).unwrap();
    assert_eq!(pair.client.exec_fate(second), ExecFate::NotSent);
    pair.flight();
    assert_eq!(pair.flights, ["KEXINIT KEX_ECDH_INIT"]);

    pair.answer();
    pair.flight();
    assert_eq!(
        pair.flights[1],
        "NEWKEYS CHANNEL_OPEN CHANNEL_REQUEST(signal) CHANNEL_EOF"
    );
    pair.run();
    assert!(pair.events.contains(&Event::Closed(second)));
    assert!(pair.events.contains(&Event::Closed(first)));
}

#[test]
fn a_command_held_back_by_a_rekeying_is_not_sent() {
    let mut policy = Policy::openssh();
    policy.answers_channels = false;
    let mut pair = logged_in(settings(), policy);
    let channel = pair.open(SessionRequest::exec("true"));
    pair.flight();
    // The confirmation comes while the client's own key exchange is not finished.
    pair.server.say(sshoal_wire::ChannelOpenConfirmation {
        recipient_channel: 0,
        sender_channel: 0,
        initial_window_size: 0,
        maximum_packet_size: 32768,
        data: b"",
    });
    pair.client.handle_timeout(pair.now).unwrap();
    pair.server.rekey();
    pair.answer();
    let at_kexinit = pair.client.exec_fate(channel);
    pair.run();
    assert_eq!(at_kexinit, ExecFate::NotSent);
    assert_eq!(pair.client.exec_fate(channel), ExecFate::MayHaveRun);
}

#[test]
fn room_is_offered_once_the_new_keys_are_in_use_and_not_before() {
    let mut pair = logged_in(settings(), Policy::openssh());
    let channel = pair.open(cat());
    pair.run();
    pair.server.rekey();
    pair.answer();
    pair.events.clear();
    assert_eq!(pair.client.send_data(channel, b"data").unwrap(), 0);
    pair.flight();
    assert!(pair.events.is_empty(), "{:?}", pair.told());
    pair.answer();
    assert_eq!(pair.events, [Event::Writable(channel)]);
    assert_eq!(pair.client.send_data(channel, b"data").unwrap(), 4);
}

#[test]
fn another_host_key_when_rekeying_is_refused() {
    let mut pair = logged_in(settings(), Policy::openssh());
    pair.server.policy.host_key = key(9);
    pair.server.policy.signing_key = key(9);
    pair.server.rekey();
    pair.run();
    assert_eq!(pair.error, Some(Misbehaviour::HostKeyChangedOnRekey.into()));
}

#[test]
fn a_wrong_signature_when_rekeying_is_refused() {
    let mut pair = logged_in(settings(), Policy::openssh());
    pair.server.policy.signing_key = key(9);
    pair.server.rekey();
    pair.run();
    assert!(
        matches!(pair.error, Some(ConnectionError::HostKeySignature(_))),
        "{:?}",
        pair.error
    );
}

#[test]
fn the_session_identifier_stays() {
    let mut pair = logged_in(settings(), Policy::openssh());
    let session_id = pair.client.session_id().unwrap().to_vec();
    pair.server.rekey();
    pair.run();
    assert_eq!(pair.server.kex.finished, 2);
    assert_eq!(pair.client.session_id().unwrap(), session_id);
}

#[test]
fn the_server_rekeys_in_the_midst_of_a_login() {
    // Before each of the client's flights of a login, from the first encrypted one on.
    for policy in [Policy::openssh(), Policy::unknown()] {
        for at in 3..6 {
            let (mut pair, channel) = Pair::with_command(settings(), policy.clone(), "true");
            pair.credentials = [held(3), held(2)].into();
            for _ in 0..at {
                pair.flight();
                if pair.flights.len() == at {
                    pair.server.rekey();
                }
                pair.answer();
            }
            pair.run();
            assert_eq!(pair.server.kex.finished, 2);
            assert_eq!(pair.server.executions, [b"true"], "{:?}", pair.flights);
            assert!(pair.events.contains(&Event::Closed(channel)));
        }
    }
}
