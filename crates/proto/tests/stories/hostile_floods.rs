//! Servers that send without end: input stops, or a limit with a name ends the connection, and memory stays
//! bounded all the while.

use std::time::Duration;

use sshoal_proto::{ConnectionError, Credential, Event, Misbehaviour, SessionRequest};
use sshoal_wire::{
    ChannelOpen, ChannelRequest, Counted, Debug, GlobalRequest, Ignore, Message, Ping, Prompt,
    UserauthBanner, UserauthFailure, UserauthInfoRequest,
};

use crate::support::{Packets, Pair, Policy, held, logged_in, opening, settings};

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// The server's packets with one message over and over, in `octets` or a little more.
fn flood<'a>(pair: &mut Pair, message: impl Into<Message<'a>>, octets: usize) -> Vec<u8> {
    let mut payload = Vec::new();
    message.into().encode(&mut payload);
    let mut packets = Vec::new();
    while packets.len() < octets {
        packets.extend(pair.server.packets.seal(&payload));
    }
    packets
}

/// What became of a flood.
struct Outcome {
    /// Octets of it that were taken.
    taken: usize,
    /// Most memory that the client asked for at one time meanwhile, octets.
    memory: usize,
    result: Result<(), ConnectionError>,
}

/// Gives the client `input` by way of a caller that reads until it is told to stop, and polls events only if
/// `polls`. Nothing is written meanwhile but what `drain` lets out each time.
fn pour(pair: &mut Pair, mut input: Vec<u8>, polls: bool, drain: usize) -> Outcome {
    let mut taken = 0;
    let mut result = Ok(());
    let now = pair.now;
    let client = &mut pair.client;
    let info = allocation_counter::measure(|| {
        while client.wants_input() && taken < input.len() {
            let end = (taken + 16 * KIB).min(input.len());
            match client.handle_input(now, &mut input[taken..end]) {
                // The packet is longer than the piece, or than the input.
                Ok(0) => match client.handle_input(now, &mut input[taken..]) {
                    Ok(0) => break,
                    Ok(octets) => taken += octets,
                    Err(error) => result = Err(error),
                },
                Ok(octets) => taken += octets,
                Err(error) => result = Err(error),
            }
            while polls && client.poll_event().is_some() {}
            client.transmitted(drain.min(client.poll_transmit().map_or(0, <[u8]>::len)));
        }
    });
    Outcome {
        taken,
        memory: info.bytes_max as usize,
        result,
    }
}

fn keepalive() -> GlobalRequest<'static> {
    GlobalRequest {
        request_name: b"keepalive@openssh.com",
        want_reply: true,
        data: b"",
    }
}

fn storm() -> ChannelOpen<'static> {
    ChannelOpen {
        channel_type: b"forwarded-tcpip",
        sender_channel: 0,
        initial_window_size: 0,
        maximum_packet_size: 0,
        data: b"",
    }
}

/// Floods that want answers, by a server that does not read them.
#[test]
fn input_stops_while_answers_are_not_taken() {
    let big = vec![0; 200 * KIB];
    let messages: [Message<'_>; 4] = [
        keepalive().into(),
        storm().into(),
        Ping { data: &big }.into(),
        Message::Unknown { number: 200 },
    ];
    for message in messages {
        let mut pair = logged_in(settings(), Policy::openssh());
        let octets = flood(&mut pair, message, 8 * MIB);
        let whole = octets.len();
        let outcome = pour(&mut pair, octets, true, 0);
        assert_eq!(outcome.result, Ok(()));
        assert!(!pair.client.wants_input(), "{}", message.name());
        assert!(outcome.taken < whole, "{}", message.name());
        let unsent = pair.client.poll_transmit().unwrap().len();
        assert!(unsent < MIB + 300 * KIB, "{} {unsent}", message.name());
        // A buffer that grows is there twice for a moment, the new one of twice the size.
        let memory = outcome.memory;
        assert!(memory < 4 * MIB, "{} {memory}", message.name());
        // Once the server reads, it goes on.
        pair.client.transmitted(unsent);
        assert!(pair.client.wants_input());
    }
}

/// The same by a server that reads, but always less than it causes: the front of the queue must not stay
/// in memory for ever.
#[test]
fn a_queue_that_is_drained_slowly_does_not_grow() {
    let mut pair = logged_in(settings(), Policy::openssh());
    let octets = flood(&mut pair, keepalive(), 16 * MIB);
    let whole = octets.len();
    let outcome = pour(&mut pair, octets, true, 9 * KIB);
    assert_eq!(outcome.result, Ok(()));
    assert!(outcome.taken > whole / 2, "{} of {whole}", outcome.taken);
    assert!(outcome.memory < 5 * MIB, "{}", outcome.memory);
}

#[test]
fn input_stops_while_events_are_not_polled() {
    let mut pair = logged_in(settings(), Policy::openssh());
    let channel = pair.open(SessionRequest::exec("sleep"));
    pair.run();
    let status = ChannelRequest {
        recipient_channel: 0,
        request_type: b"exit-status",
        want_reply: false,
        data: &[0; 4],
    };
    let octets = flood(&mut pair, status, MIB);
    let outcome = pour(&mut pair, octets, false, 0);
    assert!(!pair.client.wants_input());
    assert!(outcome.memory < 64 * KIB, "{}", outcome.memory);
    let mut events = 0;
    while let Some(event) = pair.client.poll_event() {
        assert_eq!(event, Event::ExitStatus { channel, status: 0 });
        events += 1;
    }
    assert_eq!(events, 256);
    assert!(pair.client.wants_input());
}

#[test]
fn idle_messages_without_end_take_no_memory() {
    let big = vec![b'x'; 200 * KIB];
    let debug = Debug {
        always_display: true,
        message: &big,
        language_tag: b"",
    };
    for message in [Message::from(Ignore { data: b"" }), debug.into()] {
        let mut pair = logged_in(settings(), Policy::openssh());
        let octets = flood(&mut pair, message, 8 * MIB);
        let whole = octets.len();
        let outcome = pour(&mut pair, octets, false, 0);
        assert_eq!((outcome.taken, outcome.result), (whole, Ok(())));
        assert!(outcome.memory < KIB, "{}", outcome.memory);
        assert_eq!(pair.client.poll_event(), None);
    }
}

#[test]
fn packets_before_the_first_keys_have_a_limit() {
    let limit = 256;
    let mut policy = Policy::openssh();
    policy.answers_kex = false;
    let mut pair = Pair::new(settings(), opening(), policy);
    pair.answer();
    let octets = flood(&mut pair, Ignore { data: b"" }, MIB);
    let outcome = pour(&mut pair, octets, true, 0);
    let what = "packets before the first keys";
    assert_eq!(
        outcome.result,
        Err(Misbehaviour::Flood { what, limit }.into())
    );
}

/// A login by `credential` that the story answers.
fn logging_in(credential: Credential) -> Pair {
    let mut policy = Policy::openssh();
    policy.answers_login = false;
    let mut pair = Pair::new(settings(), opening(), policy);
    pair.credentials = [credential].into();
    pair.run();
    pair.server.say(sshoal_wire::ServiceAccept {
        service_name: b"ssh-userauth",
    });
    pair.run();
    pair
}

#[test]
fn banners_have_a_limit() {
    for len in [0, 1000, 200 * KIB] {
        let mut pair = logging_in(held(2));
        let text = vec![b'x'; len];
        let banner = UserauthBanner {
            message: &text,
            language_tag: b"",
        };
        let octets = flood(&mut pair, banner, MIB);
        let outcome = pour(&mut pair, octets, true, 0);
        let what = "octets of banners";
        let limit = 256 * KIB;
        assert_eq!(
            outcome.result,
            Err(Misbehaviour::Flood { what, limit }.into()),
            "{len}"
        );
        assert!(outcome.memory < MIB, "{}", outcome.memory);
    }
}

#[test]
fn refusals_have_a_limit() {
    let mut pair = logging_in(held(2));
    let refusal = UserauthFailure {
        authentications_that_can_continue: sshoal_wire::NameList::new("publickey"),
        partial_success: true,
    };
    let what = "rounds of authentication";
    let limit = 256;
    for round in 0.. {
        pair.server.say(refusal);
        pair.credentials.push_back(Credential::None);
        pair.run();
        if let Some(error) = &pair.error {
            assert_eq!(*error, Misbehaviour::Flood { what, limit }.into());
            assert_eq!(round, limit);
            break;
        }
    }
    // Nor do they come without a request.
    let mut pair = logging_in(held(2));
    pair.server.say(refusal);
    pair.server.say(refusal);
    pair.run();
    let message = "USERAUTH_FAILURE";
    assert_eq!(
        pair.error,
        Some(Misbehaviour::UnaskedReply { message }.into())
    );
}

#[test]
fn prompts_have_a_limit() {
    let mut pair = logging_in(Credential::KeyboardInteractive);
    let text = vec![b'?'; 1000];
    let prompts = [Prompt {
        prompt: &text,
        echo: true,
    }; 100];
    let request = UserauthInfoRequest {
        name: b"",
        instruction: b"",
        language_tag: b"",
        prompts: Counted::from(&prompts),
    };
    for round in 0.. {
        pair.server.say(request);
        pair.run();
        if let Some(error) = &pair.error {
            let what = "rounds of authentication";
            let limit = 256;
            assert_eq!(*error, Misbehaviour::Flood { what, limit }.into());
            assert_eq!(round, limit);
            break;
        }
        pair.client.answer_prompts(&[]).unwrap();
        pair.run();
        pair.events.clear();
    }
    // Two at once are none: the first has no answer yet.
    let mut pair = logging_in(Credential::KeyboardInteractive);
    pair.server.say(request);
    pair.server.say(request);
    pair.run();
    assert!(pair.error.is_some());
}

#[test]
fn replies_held_by_a_key_exchange_have_a_limit() {
    let hour = Duration::from_secs(3600);
    let mut settings = settings();
    settings.rekey.interval = Some(hour);
    let big = vec![0; 100 * KIB];
    let messages: [Message<'_>; 3] = [
        keepalive().into(),
        storm().into(),
        Ping { data: &big }.into(),
    ];
    for message in messages {
        let mut pair = logged_in(settings.clone(), Policy::openssh());
        pair.server.policy.answers_kex = false;
        pair.advance(hour);
        assert_eq!(pair.flights, ["KEXINIT"]);
        let octets = flood(&mut pair, message, 4 * MIB);
        let outcome = pour(&mut pair, octets, true, MIB);
        let what = "octets of replies held back by a key exchange";
        let limit = 64 * KIB;
        assert_eq!(
            outcome.result,
            Err(Misbehaviour::Flood { what, limit }.into())
        );
        assert!(outcome.memory < MIB, "{}", outcome.memory);
    }
}

#[test]
fn a_greeting_without_end_has_a_limit() {
    let greeting = |text: &[u8]| {
        let mut pair = Pair::new(settings(), opening(), Policy::openssh());
        let outcome = pour(&mut pair, text.repeat(4 * MIB / text.len()), true, 0);
        assert!(outcome.memory < 256 * KIB, "{}", outcome.memory);
        outcome.result.expect_err("an error")
    };
    let limit = 64 * KIB;
    let endless = ConnectionError::from(Misbehaviour::EndlessPrelude { limit });
    assert_eq!(greeting(b"hello\r\n"), endless);
    assert_eq!(greeting(b"\n"), endless);
    assert!(matches!(greeting(b"x"), ConnectionError::NotSsh { .. }));
    assert_eq!(
        greeting(b"SSH-2.0-"),
        Misbehaviour::LongIdentification.into()
    );
}

#[test]
fn lists_and_names_of_any_length_are_not_kept() {
    // One algorithm name of 16 KiB, first in both lists that are remembered.
    let long = "x".repeat(15 * KIB);
    let mut policy = Policy::openssh();
    policy.kex = vec![long.clone().leak(), "curve25519-sha256"];
    policy.host_key_algorithms = vec![long.leak(), "ssh-ed25519"];
    let mut pair = Pair::new(settings(), opening(), policy);
    pair.run();
    assert!(pair.server.authenticated, "{:?}", pair.error);
    let profile = pair.client.server_profile().unwrap();
    assert_eq!(
        (profile.first_kex.as_str(), profile.first_host_key.as_str()),
        ("", "")
    );
}

#[test]
fn a_long_packet_is_waited_for_in_the_callers_memory() {
    let mut pair = Pair::new(settings(), opening(), Policy::openssh());
    pair.feed(b"SSH-2.0-x\r\n");
    let mut packet = Packets::new().seal(&[2; 200_000]);
    packet.truncate(150_000);
    let outcome = pour(&mut pair, packet[..100].to_vec(), true, 0);
    assert_eq!((outcome.taken, outcome.memory), (0, 0));
}
