//! Channels that the server opens: to an agent that was forwarded, and to nothing else.

use sshoal_proto::{Event, LocalChannel, SessionRequest};
use sshoal_wire::{ChannelClose, ChannelData, ChannelOpen};

use crate::support::{Pair, Policy, logged_in, settings};

/// More than one connection may have.
const MANY: u32 = 40;

fn running(forward_agent: bool) -> Pair {
    let mut pair = logged_in(settings(), Policy::openssh());
    pair.open(SessionRequest {
        forward_agent,
        standard_input: true,
        ..SessionRequest::exec("sleep")
    });
    pair.run();
    pair
}

fn open(number: u32, channel_type: &[u8]) -> ChannelOpen<'_> {
    ChannelOpen {
        channel_type,
        sender_channel: number,
        initial_window_size: 1000,
        maximum_packet_size: 32768,
        data: b"",
    }
}

/// The channels that were opened to the agent.
fn opened(pair: &Pair) -> Vec<LocalChannel> {
    let channels = pair.events.iter().filter_map(|event| match event {
        Event::AgentChannel(channel) => Some(*channel),
        _ => None,
    });
    channels.collect()
}

const AGENT: &[u8] = b"auth-agent@openssh.com";

#[test]
fn a_forwarded_agent_is_reached_and_answers_within_the_window() {
    let mut pair = running(true);
    pair.server.say(open(7, AGENT));
    pair.answer();
    let [channel] = opened(&pair)[..] else {
        panic!("{:?}", pair.events);
    };
    pair.server.say(ChannelData {
        recipient_channel: channel.number(),
        data: b"request",
    });
    pair.answer();
    assert_eq!(pair.stdout(channel), b"request");
    assert_eq!(pair.client.send_data(channel, &[0; 2000]).unwrap(), 1000);
    pair.server.say(ChannelClose {
        recipient_channel: channel.number(),
    });
    pair.answer();
    assert!(pair.events.contains(&Event::Closed(channel)));
    assert_eq!(pair.error, None);
}

#[test]
fn nothing_else_is_opened_and_no_agent_that_was_not_forwarded() {
    for (forwarded, channel_type) in [
        (false, AGENT),
        (true, b"x11".as_slice()),
        (true, b"forwarded-tcpip"),
        (true, b"session"),
    ] {
        let mut pair = running(forwarded);
        pair.flights.clear();
        pair.server.say(open(7, channel_type));
        pair.run();
        assert_eq!(opened(&pair), []);
        assert!(pair.flights.concat().contains("CHANNEL_OPEN_FAILURE"));
        assert_eq!(pair.error, None);
    }
}

#[test]
fn what_is_withheld_before_the_login_is_not_asked_for() {
    let mut pair = logged_in(settings(), Policy::openssh());
    let request = SessionRequest {
        forward_agent: true,
        ..SessionRequest::exec("sleep")
    };
    // The session waits for its channel.
    pair.open(request);
    pair.client.withhold_agent();
    pair.run();
    pair.server.say(open(7, AGENT));
    pair.answer();
    assert_eq!(opened(&pair), []);
}

#[test]
fn one_server_has_no_more_than_so_many_and_closed_ones_make_room() {
    let mut pair = running(true);
    for number in 0..MANY {
        pair.server.say(open(100 + number, AGENT));
        pair.answer();
    }
    let channels = opened(&pair);
    assert_eq!(channels.len(), 32);
    pair.server.say(ChannelClose {
        recipient_channel: channels[0].number(),
    });
    pair.answer();
    pair.client.forget(channels[0]);
    pair.server.say(open(200, AGENT));
    pair.answer();
    assert_eq!(opened(&pair).len(), 33);
    assert_eq!(pair.error, None);
}
