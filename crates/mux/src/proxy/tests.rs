#![allow(clippy::unwrap_used)]

use proptest::collection::vec;
use proptest::prelude::*;
use sshoal_wire::{ChannelData, Put};

use super::*;

fn open(sender_channel: u32) -> Vec<u8> {
    let mut out = Vec::new();
    ChannelOpen {
        channel_type: b"session",
        sender_channel,
        initial_window_size: 10,
        maximum_packet_size: 8,
        data: b"",
    }
    .encode(&mut out);
    out
}

fn confirmation(recipient_channel: u32, sender_channel: u32) -> Vec<u8> {
    let mut out = Vec::new();
    ChannelOpenConfirmation {
        recipient_channel,
        sender_channel,
        initial_window_size: 10,
        maximum_packet_size: 8,
        data: b"",
    }
    .encode(&mut out);
    out
}

fn data(recipient_channel: u32) -> Vec<u8> {
    let mut out = Vec::new();
    ChannelData {
        recipient_channel,
        data: b"octets",
    }
    .encode(&mut out);
    out
}

fn close(recipient_channel: u32) -> Vec<u8> {
    let mut out = Vec::new();
    ChannelClose { recipient_channel }.encode(&mut out);
    out
}

/// A passenger's channel 0 that is our 5 and the server's 9.
fn opened() -> ProxyChannels {
    let mut channels = ProxyChannels::new();
    let mut asks = open(0);
    channels.from_passenger(&mut asks, || Some(5)).unwrap();
    assert_eq!(asks, open(5));
    let mut confirms = confirmation(5, 9);
    channels.to_passenger(&mut confirms).unwrap();
    assert_eq!(confirms, confirmation(0, 9));
    channels
}

fn nothing() -> Option<u32> {
    panic!("no number is wanted")
}

#[test]
fn numbers_change_where_a_side_names_its_own_end_and_the_server_s_stays() {
    let mut channels = opened();
    let mut sent = data(9);
    channels.from_passenger(&mut sent, nothing).unwrap();
    assert_eq!(sent, data(9));
    let mut received = data(5);
    channels.to_passenger(&mut received).unwrap();
    assert_eq!(received, data(0));
}

#[test]
fn a_channel_that_the_server_opens_gets_the_passenger_s_number_with_its_confirmation() {
    let mut channels = ProxyChannels::new();
    channels.offered(&open(9), 5).unwrap();
    let mut early = data(5);
    assert!(channels.to_passenger(&mut early).is_err());
    let mut confirms = confirmation(9, 3);
    channels.from_passenger(&mut confirms, nothing).unwrap();
    assert_eq!(confirms, confirmation(9, 5));
    let mut received = data(5);
    channels.to_passenger(&mut received).unwrap();
    assert_eq!(received, data(3));
    let again = channels.from_passenger(&mut confirmation(9, 4), nothing);
    assert_eq!(again, out_of_turn(91, 9));
}

fn out_of_turn(number: u8, channel: u32) -> Result<(), ProxyError> {
    Err(ProxyError::OutOfTurn { number, channel })
}

fn refusal(recipient_channel: u32) -> Vec<u8> {
    let mut out = Vec::new();
    ChannelOpenFailure {
        recipient_channel,
        reason_code: 2,
        description: b"",
        language_tag: b"",
    }
    .encode(&mut out);
    out
}

/// A CHANNEL_REQUEST to the server's channel 9.
fn request(request_type: &[u8], data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    ChannelRequest {
        recipient_channel: 9,
        request_type,
        want_reply: true,
        data,
    }
    .encode(&mut out);
    out
}

#[test]
fn channels_are_confirmed_or_refused_once_and_before_all_else() {
    let mut channels = opened();
    let refused = channels.from_passenger(&mut refusal(9), nothing);
    assert_eq!(refused, out_of_turn(92, 9), "it is open");
    let mut channels = ProxyChannels::new();
    channels.offered(&open(9), 5).unwrap();
    let asked = channels.from_passenger(&mut request(b"shell", b""), nothing);
    assert_eq!(asked, out_of_turn(98, 9), "it is not open yet");
    channels.from_passenger(&mut refusal(9), nothing).unwrap();
    assert!(!channels.has(5));
}

#[test]
fn nothing_comes_behind_the_end_of_data() {
    let mut channels = opened();
    let mut eof = Vec::new();
    ChannelEof {
        recipient_channel: 9,
    }
    .encode(&mut eof);
    channels.from_passenger(&mut eof, nothing).unwrap();
    let more = channels.from_passenger(&mut data(9), nothing);
    assert_eq!(more, out_of_turn(94, 9));
    channels.from_passenger(&mut close(9), nothing).unwrap();
}

#[test]
fn a_malformed_body_a_second_terminal_and_what_is_too_long_do_not_pass() {
    let mut channels = opened();
    let mut text = Vec::new();
    text.put_string(b"true");
    let mut asks = request(b"exec", &text);
    channels.from_passenger(&mut asks, nothing).unwrap();
    let mut with_nul = Vec::new();
    with_nul.put_string(b"tr\0ue");
    let malformed = channels.from_passenger(&mut request(b"exec", &with_nul), nothing);
    let words = malformed.unwrap_err().to_string();
    assert!(words.contains("command has an octet 0"), "{words}");
    let mut terminal = Vec::new();
    terminal.put_string(b"xterm");
    terminal.put_bytes(&[0; 16]);
    terminal.put_string(b"");
    let mut asks = request(b"pty-req", &terminal);
    channels.from_passenger(&mut asks.clone(), nothing).unwrap();
    let second = Err(ProxyError::SecondTerminal { channel: 9 });
    assert_eq!(channels.from_passenger(&mut asks, nothing), second);
    let mut longest = request(b"unknown", &[7; MAX_PAYLOAD_LEN]);
    let len = longest.len();
    let too_long = Err(ProxyError::PayloadLength { len });
    assert_eq!(channels.from_passenger(&mut longest, nothing), too_long);
    longest.truncate(MAX_PAYLOAD_LEN);
    channels.from_passenger(&mut longest, nothing).unwrap();
    let mut confirms = confirmation(5, 9);
    confirms.put_u8(0);
    let mut offered = ProxyChannels::new();
    offered.offered(&open(5), 1).unwrap();
    let confirmed = offered.from_passenger(&mut confirms, nothing);
    assert!(matches!(confirmed, Err(ProxyError::Malformed(_))));
}

#[test]
fn channels_of_others_cannot_be_reached() {
    let mut channels = opened();
    let foreign = channels.from_passenger(&mut data(8), nothing);
    let not_owned = ProxyError::NotOwned {
        number: 94,
        channel: 8,
    };
    assert_eq!(foreign, Err(not_owned));
    assert!(channels.to_passenger(&mut data(6)).is_err());
}

#[test]
fn a_number_is_free_again_when_both_have_closed() {
    let mut channels = opened();
    channels.from_passenger(&mut close(9), nothing).unwrap();
    assert!(channels.from_passenger(&mut data(9), nothing).is_err());
    let taken = channels.from_passenger(&mut open(0), nothing);
    assert_eq!(taken, Err(ProxyError::NumberInUse { channel: 0 }));
    let mut closes = close(5);
    channels.to_passenger(&mut closes).unwrap();
    assert_eq!(closes, close(0));
    assert_eq!(channels.ours().count(), 0);
    channels.from_passenger(&mut open(0), || Some(5)).unwrap();
}

fn adjust(recipient_channel: u32, bytes_to_add: u32) -> Vec<u8> {
    let mut out = Vec::new();
    ChannelWindowAdjust {
        recipient_channel,
        bytes_to_add,
    }
    .encode(&mut out);
    out
}

#[test]
fn a_passenger_keeps_to_the_windows_that_the_server_would_end_all_for() {
    let mut channels = opened();
    channels.from_passenger(&mut data(9), nothing).unwrap();
    let overrun = |room| {
        Err(ProxyError::WindowOverrun {
            channel: 9,
            len: 6,
            room,
        })
    };
    assert_eq!(
        channels.from_passenger(&mut data(9), nothing),
        overrun(4),
        "10 octets in all"
    );
    channels.to_passenger(&mut adjust(5, 2)).unwrap();
    channels.from_passenger(&mut data(9), nothing).unwrap();
    channels.to_passenger(&mut adjust(5, u32::MAX)).unwrap();
    let mut much = Vec::new();
    ChannelData {
        recipient_channel: 9,
        data: b"9 octets.",
    }
    .encode(&mut much);
    assert!(
        channels.from_passenger(&mut much, nothing).is_err(),
        "8 octets at a time"
    );
    let most = u32::MAX - 10;
    channels
        .from_passenger(&mut adjust(9, most), nothing)
        .unwrap();
    let overflow = Err(ProxyError::WindowOverflow { channel: 9 });
    assert_eq!(
        channels.from_passenger(&mut adjust(9, 1), nothing),
        overflow
    );
    channels.to_passenger(&mut data(5)).unwrap();
    channels.from_passenger(&mut adjust(9, 6), nothing).unwrap();
}

#[test]
fn what_a_passenger_leaves_is_told() {
    let mut channels = opened();
    channels.from_passenger(&mut open(1), || Some(6)).unwrap();
    channels.offered(&open(11), 7).unwrap();
    channels.to_passenger(&mut close(5)).unwrap();
    let left = |ours, servers, is_offered, closed_there| LeftChannel {
        ours,
        servers,
        is_offered,
        closed_here: false,
        closed_there,
    };
    assert_eq!(
        channels.left().collect::<Vec<_>>(),
        [
            left(5, Some(9), false, true),
            left(6, None, false, false),
            left(7, Some(11), true, false)
        ]
    );
    assert!(channels.has(6) && !channels.has(8));
}

#[test]
fn only_the_connection_protocol_goes_through() {
    let mut channels = ProxyChannels::new();
    for number in [1, 2, 20, 21, 50, 79, 83, 89, 101, 255] {
        let refused = Err(ProxyError::NotOfConnection { number });
        assert_eq!(channels.from_passenger(&mut [number], nothing), refused);
        assert_eq!(channels.to_passenger(&mut [number]), refused);
    }
    let mut request = vec![80];
    request.put_string(b"keepalive@openssh.com");
    request.put_u8(1);
    channels.from_passenger(&mut request, nothing).unwrap();
}

#[test]
fn there_is_a_limit_to_channels() {
    let mut channels = ProxyChannels::new();
    for number in 0..MAX_PROXY_CHANNELS as u32 {
        let allot = || Some(number);
        channels.from_passenger(&mut open(number), allot).unwrap();
    }
    let more = channels.from_passenger(&mut open(9999), nothing);
    assert_eq!(more, Err(ProxyError::NoRoom));
    let full = ProxyChannels::new().from_passenger(&mut open(0), || None);
    assert_eq!(full, Err(ProxyError::NoRoom));
}

proptest! {
    #[test]
    fn no_payload_makes_it_panic_or_longer(
        payloads in vec((any::<bool>(), 78u8..102, vec(0u8..12, 0..24)), 0..40)
    ) {
        let mut channels = ProxyChannels::new();
        let mut next = 0;
        for (is_ours, number, rest) in payloads {
            let mut payload = [&[number], &rest[..]].concat();
            let len = payload.len();
            let _ = match is_ours {
                true => channels.from_passenger(&mut payload, || {
                    next += 1;
                    Some(next)
                }),
                false => channels.to_passenger(&mut payload),
            };
            prop_assert_eq!(payload.len(), len);
            prop_assert!(channels.ours().count() <= MAX_PROXY_CHANNELS);
        }
    }
}
