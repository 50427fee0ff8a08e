//! Servers that break the rules of channels (RFC 4254 section 5).

use sshoal_proto::{ConnectionError, Event, ExecFate, Misbehaviour, SessionRequest};
use sshoal_wire::{
    ChannelData, ChannelEof, ChannelExtendedData, ChannelFailure, ChannelOpen,
    ChannelOpenConfirmation, ChannelOpenFailure, ChannelRequest, ChannelSuccess,
    ChannelWindowAdjust, Message,
};

use crate::support::{Pair, Policy, logged_in, settings};

const KIB: usize = 1024;

/// A connection with one session that has said nothing yet.
fn running() -> Pair {
    let mut request = SessionRequest::exec("sleep");
    request.standard_input = true;
    let mut pair = logged_in(settings(), Policy::openssh());
    pair.open(request);
    pair.run();
    pair
}

fn data(data: &[u8]) -> ChannelData<'_> {
    ChannelData {
        recipient_channel: 0,
        data,
    }
}

const EOF: ChannelEof = ChannelEof {
    recipient_channel: 0,
};

fn misbehaves<'a>(mut pair: Pair, says: impl Into<Message<'a>>) -> Misbehaviour {
    assert_eq!(pair.error, None);
    pair.server.say(says);
    pair.answer();
    match pair.error {
        Some(ConnectionError::Misbehaved(misbehaviour)) => misbehaviour,
        other => panic!("{other:?}"),
    }
}

#[test]
fn data_over_the_window() {
    let mut pair = running();
    pair.reads = false;
    for _ in 0..64 {
        pair.server.say(data(&[0; 32 * KIB]));
    }
    pair.answer();
    assert_eq!(pair.output[&(0, false)].len(), 2048 * KIB);
    let (channel, excess) = (0, 1);
    let overrun = Misbehaviour::WindowOverrun { channel, excess };
    assert_eq!(misbehaves(pair, data(&[0])), overrun);
}

#[test]
fn errors_over_the_window() {
    let mut pair = running();
    pair.reads = false;
    let errors = |len| ChannelExtendedData {
        recipient_channel: 0,
        data_type_code: 1,
        data: &[0; 32 * KIB][..len],
    };
    for _ in 0..63 {
        pair.server.say(errors(32 * KIB));
    }
    pair.server.say(errors(32 * KIB - 10));
    pair.answer();
    let (channel, excess) = (0, 90);
    let overrun = Misbehaviour::WindowOverrun { channel, excess };
    assert_eq!(misbehaves(pair, errors(100)), overrun);
}

#[test]
fn messages_over_32_kib() {
    let (channel, len, max) = (0, 32 * KIB + 1, 32 * KIB as u32);
    let oversized = Misbehaviour::OversizedData { channel, len, max };
    assert_eq!(misbehaves(running(), data(&[0; 32 * KIB + 1])), oversized);
}

#[test]
fn after_eof_data_is_dropped_and_errors_are_not_as_with_openssh() {
    let ended = || {
        let mut pair = running();
        pair.server.say(EOF);
        pair.answer();
        pair
    };
    let after = |message| Misbehaviour::AfterEnd {
        message,
        channel: 0,
    };
    let error = ChannelExtendedData {
        recipient_channel: 0,
        data_type_code: 1,
        data: b"x",
    };
    assert_eq!(misbehaves(ended(), error), after("CHANNEL_EXTENDED_DATA"));
    // More than a window, which is given back, or the server would wait for ever.
    let mut pair = ended();
    pair.flights.clear();
    for _ in 0..100 {
        pair.server.say(data(&[0; 32 * KIB]));
        pair.run();
    }
    pair.server.say(EOF);
    pair.run();
    assert_eq!(pair.error, None);
    assert!(pair.output.is_empty());
    let given_back = |flight: &String| flight == "CHANNEL_WINDOW_ADJUST";
    assert!(pair.flights.len() > 1 && pair.flights.iter().all(given_back));
    let ends = pair
        .events
        .iter()
        .filter(|event| matches!(event, Event::Eof(_)));
    assert_eq!(ends.count(), 1);
    // What does not belong to the stream of data may still come.
    let mut pair = ended();
    pair.server.say(ChannelWindowAdjust {
        recipient_channel: 0,
        bytes_to_add: 1,
    });
    pair.run();
    assert_eq!(pair.error, None);
}

#[test]
fn anything_after_close() {
    let closed = || {
        let mut pair = running();
        pair.server.close(0);
        pair.answer();
        assert!(matches!(pair.events.last(), Some(Event::Closed(_))));
        pair
    };
    let after = |message| Misbehaviour::AfterEnd {
        message,
        channel: 0,
    };
    let recipient_channel = 0;
    assert_eq!(misbehaves(closed(), data(b"x")), after("CHANNEL_DATA"));
    assert_eq!(misbehaves(closed(), EOF), after("CHANNEL_EOF"));
    assert_eq!(
        misbehaves(closed(), sshoal_wire::ChannelClose { recipient_channel }),
        after("CHANNEL_CLOSE")
    );
    assert_eq!(
        misbehaves(
            closed(),
            ChannelWindowAdjust {
                recipient_channel,
                bytes_to_add: 1
            }
        ),
        after("CHANNEL_WINDOW_ADJUST")
    );
    assert_eq!(
        misbehaves(
            closed(),
            ChannelRequest {
                recipient_channel,
                request_type: b"exit-status",
                want_reply: false,
                data: &[0; 4]
            }
        ),
        after("CHANNEL_REQUEST")
    );
}

#[test]
fn a_window_over_2_to_the_32() {
    let overflow = Misbehaviour::WindowOverflow { channel: 0 };
    let adjust = ChannelWindowAdjust {
        recipient_channel: 0,
        bytes_to_add: u32::MAX,
    };
    assert_eq!(misbehaves(running(), adjust), overflow);
}

#[test]
fn channels_that_do_not_exist() {
    for number in [1, 7, u32::MAX] {
        let adjust = ChannelWindowAdjust {
            recipient_channel: number,
            bytes_to_add: 1,
        };
        let message = "CHANNEL_WINDOW_ADJUST";
        let nowhere = Misbehaviour::NoSuchChannel { message, number };
        assert_eq!(misbehaves(running(), adjust), nowhere);
    }
    // A channel that is asked for is none yet.
    let mut pair = running();
    pair.server.policy.answers_channels = false;
    pair.open(SessionRequest::exec("true"));
    pair.run();
    let message = "CHANNEL_DATA";
    let nowhere = Misbehaviour::NoSuchChannel { message, number: 1 };
    let early = ChannelData {
        recipient_channel: 1,
        data: b"early",
    };
    assert_eq!(misbehaves(pair, early), nowhere);
}

#[test]
fn answers_that_nobody_asked_for() {
    let recipient_channel = 0;
    let unasked = |message| Misbehaviour::UnaskedReply { message };
    assert_eq!(
        misbehaves(running(), ChannelSuccess { recipient_channel }),
        unasked("CHANNEL_SUCCESS")
    );
    assert_eq!(
        misbehaves(running(), ChannelFailure { recipient_channel }),
        unasked("CHANNEL_FAILURE")
    );
    let confirmation = ChannelOpenConfirmation {
        recipient_channel,
        sender_channel: 0,
        initial_window_size: 0,
        maximum_packet_size: 0,
        data: b"",
    };
    assert_eq!(
        misbehaves(running(), confirmation),
        unasked("CHANNEL_OPEN_CONFIRMATION")
    );
    let failure = ChannelOpenFailure {
        recipient_channel,
        reason_code: 1,
        description: b"",
        language_tag: b"",
    };
    assert_eq!(
        misbehaves(running(), failure),
        unasked("CHANNEL_OPEN_FAILURE")
    );
    // One refusal is final.
    let mut pair = logged_in(settings(), Policy::openssh());
    pair.server.policy.answers_channels = false;
    pair.open(SessionRequest::exec("true"));
    pair.run();
    pair.server.say(failure);
    pair.answer();
    assert_eq!(
        misbehaves(pair, confirmation),
        unasked("CHANNEL_OPEN_CONFIRMATION")
    );
}

#[test]
fn answers_to_a_command_that_has_not_left() {
    let queued = || {
        let mut pair = logged_in(settings(), Policy::unknown());
        pair.server.policy.answers_channels = false;
        let channel = pair.open(SessionRequest::exec("true"));
        pair.run();
        pair.server.say(ChannelOpenConfirmation {
            recipient_channel: 0,
            sender_channel: 0,
            initial_window_size: 0,
            maximum_packet_size: 0,
            data: b"",
        });
        pair.answer();
        assert!(pair.client.poll_transmit().is_some());
        (pair, channel)
    };
    let recipient_channel = 0;
    let unasked = |message| Misbehaviour::UnaskedReply { message };
    assert_eq!(
        misbehaves(queued().0, ChannelFailure { recipient_channel }),
        unasked("CHANNEL_FAILURE")
    );
    assert_eq!(
        misbehaves(queued().0, ChannelSuccess { recipient_channel }),
        unasked("CHANNEL_SUCCESS")
    );
    // Output proves nothing yet.
    let (mut pair, channel) = queued();
    pair.server.say(data(b"early"));
    pair.answer();
    assert_eq!(pair.client.exec_fate(channel), ExecFate::NotSent);
    assert!(!pair.events.contains(&Event::Started(channel)));
    pair.flight();
    assert_eq!(pair.client.exec_fate(channel), ExecFate::MayHaveRun);
}

#[test]
fn channels_of_the_servers_are_refused() {
    let mut pair = logged_in(settings(), Policy::openssh());
    for channel_type in [
        b"forwarded-tcpip".as_slice(),
        b"x11",
        b"auth-agent@openssh.com",
        b"",
    ] {
        pair.server.say(ChannelOpen {
            channel_type,
            sender_channel: u32::MAX,
            initial_window_size: u32::MAX,
            maximum_packet_size: 0,
            data: b"whatever",
        });
    }
    pair.run();
    assert_eq!(pair.flights, [["CHANNEL_OPEN_FAILURE"; 4].join(" ")]);
    assert!(pair.events.is_empty());
}

#[test]
fn words_of_the_servers_are_made_harmless() {
    let mut pair = running();
    let mut fields = Vec::new();
    for text in [b"\x1b]0;x\x07".as_slice(), b"TE\x00RM \xff"] {
        fields.extend((text.len() as u32).to_be_bytes());
        fields.extend(text);
        if fields.len() < 12 {
            fields.push(1);
        }
    }
    fields.extend([0; 4]);
    pair.server.say(ChannelRequest {
        recipient_channel: 0,
        request_type: b"exit-signal",
        want_reply: false,
        data: &fields,
    });
    pair.answer();
    let Some(Event::ExitSignal { name, message, .. }) = pair.events.last() else {
        panic!("{:?} {:?}", pair.told(), pair.error);
    };
    assert_eq!(name, "\\u{1b}]0;x\\u{7}");
    assert_eq!(message, "TE\\u{0}RM \u{fffd}");

    let mut pair = running();
    pair.server.say(ChannelRequest {
        recipient_channel: 0,
        request_type: b"exit-status",
        want_reply: false,
        data: b"",
    });
    pair.answer();
    assert!(matches!(pair.error, Some(ConnectionError::Malformed(_))));
}
