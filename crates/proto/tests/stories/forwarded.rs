//! Channels that the server opens for places that it listens at, what is asked of it for the whole connection, and channels for
//! which others speak.

use std::ops::Range;
use std::time::Duration;

use sshoal_proto::{ConnectionError, Event, LocalChannel, Misbehaviour, Unspoken};
use sshoal_wire::{
    ChannelClose, ChannelData, ChannelOpen, ChannelOpenConfirmation, ChannelOpenFailure,
    ChannelSuccess, RequestFailure, RequestSuccess,
};

use crate::support::{Pair, Policy, logged_in, settings};

/// A server that says nothing by itself.
fn silent() -> Pair {
    let mut policy = Policy::openssh();
    policy.answers_channels = false;
    let mut pair = logged_in(settings(), policy);
    pair.flights.clear();
    pair.events.clear();
    pair
}

fn open(number: u32) -> ChannelOpen<'static> {
    ChannelOpen {
        channel_type: b"forwarded-tcpip",
        sender_channel: number,
        initial_window_size: 1000,
        maximum_packet_size: 32768,
        data: b"",
    }
}

/// The channels that the server wants to open, and where their messages are.
fn offered(pair: &Pair) -> Vec<(LocalChannel, Range<usize>)> {
    let channels = pair.events.iter().filter_map(|event| match event {
        Event::ForwardedChannel { channel, open } => Some((*channel, open.clone())),
        _ => None,
    });
    channels.collect()
}

fn data(channel: LocalChannel) -> ChannelData<'static> {
    ChannelData {
        recipient_channel: channel.number(),
        data: b"data",
    }
}

#[test]
fn nobody_is_asked_about_a_forward_before_one_was_wanted() {
    let mut pair = silent();
    pair.server.say(open(7));
    pair.run();
    assert_eq!(offered(&pair), []);
    assert_eq!(pair.flights, ["CHANNEL_OPEN_FAILURE"]);
}

#[test]
fn a_confirmed_one_is_a_channel_as_any_other() {
    let mut pair = silent();
    pair.client.admit_forwarded();
    pair.server.say(open(7));
    pair.run();
    let [(channel, _)] = offered(&pair)[..] else {
        panic!("{:?}", pair.events);
    };
    assert!(pair.flights.is_empty(), "the caller has not answered");
    pair.client.confirm_forwarded(channel).unwrap();
    pair.client.confirm_forwarded(channel).unwrap();
    pair.server.say(data(channel));
    pair.run();
    assert_eq!(pair.flights, ["CHANNEL_OPEN_CONFIRMATION"]);
    assert_eq!(pair.stdout(channel), b"data");
    assert_eq!(pair.client.send_data(channel, &[0; 2000]).unwrap(), 1000);
    let recipient_channel = channel.number();
    pair.server.say(ChannelClose { recipient_channel });
    pair.run();
    assert!(pair.events.contains(&Event::Closed(channel)));
    assert_eq!(pair.error, None);
}

#[test]
fn a_refused_one_is_free_again_and_what_is_sent_to_one_without_an_answer_is_misbehaviour() {
    let mut pair = silent();
    pair.client.admit_forwarded();
    for close in [false, true] {
        pair.server.say(open(7));
        pair.run();
        let (channel, _) = offered(&pair).pop().unwrap();
        assert_eq!(channel.number(), 0);
        match close {
            false => pair.client.refuse_forwarded(channel, "no").unwrap(),
            true => pair.client.close(channel).unwrap(),
        }
        pair.run();
    }
    assert_eq!(pair.flights, ["CHANNEL_OPEN_FAILURE"; 2]);
    pair.server.say(open(7));
    pair.run();
    let (channel, _) = offered(&pair).pop().unwrap();
    pair.server.say(data(channel));
    pair.run();
    let message = "CHANNEL_DATA";
    let unknown = Misbehaviour::NoSuchChannel { message, number: 0 };
    assert_eq!(pair.error, Some(ConnectionError::from(unknown)));
}

#[test]
fn one_server_has_no_more_than_so_many() {
    let mut pair = silent();
    pair.client.admit_forwarded();
    for number in 0..513 {
        pair.server.say(open(number));
        pair.run();
    }
    assert_eq!(offered(&pair).len(), 512);
    assert_eq!(pair.flights, ["CHANNEL_OPEN_FAILURE"]);
}

#[test]
fn replies_go_to_who_has_asked_in_the_order_of_the_requests() {
    let mut settings = settings();
    settings.keepalive = Some((Duration::from_secs(15), 3));
    let mut policy = Policy::openssh();
    policy.answers_channels = false;
    let mut pair = logged_in(settings, policy);
    let listen = |pair: &mut Pair| pair.client.send_global_request(b"tcpip-forward", b"");
    assert_eq!(listen(&mut pair), Ok(true));
    pair.advance(Duration::from_secs(15));
    pair.client.prove_host_keys(b"keys").unwrap();
    assert_eq!(listen(&mut pair), Ok(true));
    pair.run();
    pair.events.clear();
    pair.server.say(RequestSuccess { data: b"first" });
    pair.server.say(RequestFailure);
    pair.server.say(RequestSuccess { data: b"proof" });
    pair.server.say(RequestFailure);
    pair.run();
    assert_eq!(
        pair.events,
        [
            Event::GlobalReply(Some(b"first".to_vec())),
            Event::HostKeysProven(Some(b"proof".to_vec())),
            Event::GlobalReply(None)
        ]
    );
    pair.server.say(RequestFailure);
    pair.run();
    assert!(pair.error.is_some(), "nobody has asked");
}

#[test]
fn no_more_requests_wait_than_a_limit() {
    let mut pair = silent();
    for _ in 0..256 {
        assert_eq!(pair.client.send_global_request(b"x", b""), Ok(true));
    }
    assert_eq!(pair.client.send_global_request(b"x", b""), Ok(false));
}

/// A channel that others speak for and that the server calls 9.
fn proxied(pair: &mut Pair) -> LocalChannel {
    let channel = pair.client.open_proxied().unwrap();
    let confirmation = ChannelOpenConfirmation {
        recipient_channel: channel.number(),
        sender_channel: 9,
        initial_window_size: 100,
        maximum_packet_size: 100,
        data: b"",
    };
    pair.server.say(confirmation);
    pair.run();
    channel
}

fn packets(pair: &Pair) -> usize {
    let is_packet = |event: &&Event| matches!(event, Event::Packet { .. });
    pair.events.iter().filter(is_packet).count()
}

#[test]
fn messages_for_others_pass_as_they_are() {
    let mut pair = silent();
    let channel = proxied(&mut pair);
    let recipient_channel = channel.number();
    pair.server.say(data(channel));
    pair.server.say(ChannelSuccess { recipient_channel });
    pair.server.say(ChannelClose { recipient_channel });
    pair.run();
    assert_eq!((packets(&pair), pair.events.len()), (4, 4));
    let mut payload = Vec::new();
    let recipient_channel = 9;
    ChannelClose { recipient_channel }.encode(&mut payload);
    assert!(pair.client.takes_packets());
    pair.client.send_packet(&payload).unwrap();
    pair.run();
    assert_eq!(pair.flights, ["CHANNEL_CLOSE"]);
    pair.client.release_proxied(channel);
    assert_eq!(pair.client.open_proxied(), Some(channel), "it is free");
    assert_eq!(pair.error, None);
}

#[test]
fn what_others_leave_is_closed_and_what_still_comes_for_it_is_nobody_s() {
    let mut pair = silent();
    let channel = proxied(&mut pair);
    let recipient_channel = channel.number();
    let unspoken = Unspoken {
        server_number: Some(9),
        is_offered: false,
        closed_here: false,
        closed_there: false,
    };
    pair.client.abandon_proxied(channel, unspoken).unwrap();
    pair.events.clear();
    pair.server.say(ChannelSuccess { recipient_channel });
    pair.server.say(data(channel));
    pair.server.say(ChannelClose { recipient_channel });
    pair.run();
    assert_eq!(pair.flights, ["CHANNEL_CLOSE"]);
    assert_eq!(packets(&pair), 0);
    assert_eq!(pair.events, [Event::Closed(channel)]);
    assert_eq!(pair.error, None);
    pair.client.forget(channel);
    // One that the server has closed already.
    let channel = proxied(&mut pair);
    let closed_there = true;
    let over = Unspoken {
        closed_there,
        ..unspoken
    };
    pair.client.abandon_proxied(channel, over).unwrap();
    assert_eq!(pair.client.open_proxied(), Some(channel), "it is free");
    // One that the server has not opened yet.
    let unknown = Unspoken {
        server_number: None,
        ..unspoken
    };
    pair.client.abandon_proxied(channel, unknown).unwrap();
    pair.flights.clear();
    proxied_late(&mut pair, channel);
    assert!(pair.flights.concat().contains("CHANNEL_CLOSE"));
    assert_eq!(pair.error, None);
}

/// The server opens it now.
fn proxied_late(pair: &mut Pair, channel: LocalChannel) {
    pair.server.say(ChannelOpenConfirmation {
        recipient_channel: channel.number(),
        sender_channel: 11,
        initial_window_size: 100,
        maximum_packet_size: 100,
        data: b"",
    });
    pair.run();
}

#[test]
fn one_that_the_server_wants_to_open_may_be_for_others() {
    let mut pair = silent();
    pair.client.admit_forwarded();
    pair.server.say(open(7));
    pair.run();
    let (channel, _) = offered(&pair).pop().unwrap();
    pair.client.proxy_forwarded(channel);
    pair.events.clear();
    pair.server.say(data(channel));
    pair.run();
    assert_eq!(packets(&pair), 1);
    let offered = Unspoken {
        server_number: Some(7),
        is_offered: true,
        closed_here: false,
        closed_there: false,
    };
    pair.client.abandon_proxied(channel, offered).unwrap();
    pair.run();
    assert_eq!(pair.flights, ["CHANNEL_OPEN_FAILURE"]);
    let refused = ChannelOpenFailure {
        recipient_channel: channel.number(),
        reason_code: 2,
        description: b"",
        language_tag: b"",
    };
    pair.server.say(refused);
    pair.run();
    assert!(pair.error.is_some(), "its number is free");
}
