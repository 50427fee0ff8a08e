//! Every message number in every phase, with sound and unsound bodies: a named error or a bounded answer.

use std::collections::BTreeSet;

use sshoal_proto::{
    ConnectionError, Credential, Event, PublicKeyCredential, Secret, SessionRequest, Signer,
};
use sshoal_wire::{
    AuthMethod, ChannelClose, ChannelData, ChannelEof, ChannelExtendedData, ChannelFailure,
    ChannelOpen, ChannelOpenConfirmation, ChannelOpenFailure, ChannelRequest, ChannelSuccess,
    ChannelWindowAdjust, Counted, Debug, Disconnect, ExtInfo, Extension, GlobalRequest, Ignore,
    KexEcdhReply, Message, NameList, NewKeys, Ping, Pong, Prompt, RequestFailure, RequestSuccess,
    ServiceAccept, ServiceRequest, Unimplemented, UserauthBanner, UserauthFailure,
    UserauthInfoRequest, UserauthPkOk, UserauthRequest, UserauthSuccess,
};

use crate::support::{Packets, Pair, Policy, held, key, logged_in, opening, settings};

/// A point in the life of a connection, what leads to it, and which messages with a sound body do not
/// end the connection there (so far as the client has not asked for them).
struct Place {
    name: &'static str,
    reach: fn() -> Pair,
    tolerated: &'static [u8],
}

/// Numbers that mean nothing, or nothing in the methods that are used.
const UNKNOWN: [u8; 5] = [0, 33, 64, 128, 255];
/// IGNORE, UNIMPLEMENTED, DEBUG.
const IDLE: [u8; 3] = [2, 3, 4];

const PLACES: &[Place] = &[
    Place {
        name: "before KEXINIT",
        reach: || by_hand(|policy| policy.answers_kex = false),
        tolerated: &[2, 3, 4, 20],
    },
    Place {
        name: "strict key exchange",
        reach: || by_hand(|_| ()),
        tolerated: &[],
    },
    Place {
        name: "lax key exchange",
        reach: || by_hand(|policy| policy.strict = false),
        tolerated: &[2, 3, 4],
    },
    Place {
        name: "group exchange",
        reach: || by_hand(|policy| policy.kex = vec!["diffie-hellman-group-exchange-sha256"]),
        tolerated: &[],
    },
    Place {
        name: "awaiting NEWKEYS",
        reach: awaiting_new_keys,
        tolerated: &[21],
    },
    Place {
        name: "awaiting SERVICE_ACCEPT",
        reach: || authenticating(Some(held(2)), false),
        tolerated: &[2, 3, 4, 6, 7, 20],
    },
    Place {
        name: "without a credential",
        reach: || authenticating(None, true),
        tolerated: &[2, 3, 4, 7, 20, 53],
    },
    Place {
        name: "a signed request",
        reach: || authenticating(Some(held(2)), true),
        tolerated: &[2, 3, 4, 7, 20, 51, 52, 53],
    },
    Place {
        name: "a command sent ahead",
        reach: || {
            let mut pair = authenticating(None, true);
            pair.open(SessionRequest::exec("true"));
            pair.client.authenticate(held(2)).unwrap();
            pair.run();
            pair
        },
        tolerated: &[2, 3, 4, 7, 20, 51, 52, 53],
    },
    Place {
        name: "a probe",
        reach: || authenticating(Some(external(true)), true),
        tolerated: &[2, 3, 4, 7, 20, 51, 53, 60],
    },
    Place {
        name: "an agent's signature",
        reach: || authenticating(Some(external(false)), true),
        tolerated: &[2, 3, 4, 7, 20, 53],
    },
    Place {
        name: "a password",
        reach: || authenticating(Some(Credential::Password(Secret::new(vec![1]))), true),
        tolerated: &[2, 3, 4, 7, 20, 51, 52, 53, 60],
    },
    Place {
        name: "keyboard-interactive",
        reach: || authenticating(Some(Credential::KeyboardInteractive), true),
        tolerated: &[2, 3, 4, 7, 20, 51, 52, 53, 60],
    },
    Place {
        name: "logged in",
        reach: || connected(|_| ()),
        tolerated: &[2, 3, 4, 20, 80, 90, 192],
    },
    Place {
        name: "a channel asked for",
        reach: || {
            connected(|pair| {
                pair.server.policy.answers_channels = false;
                pair.open(SessionRequest::exec("true"));
            })
        },
        tolerated: &[2, 3, 4, 20, 80, 90, 91, 92, 192],
    },
    Place {
        name: "a running session",
        reach: || {
            connected(|pair| {
                pair.open(SessionRequest::exec("sleep"));
            })
        },
        tolerated: &[2, 3, 4, 20, 80, 90, 93, 94, 95, 96, 97, 98, 192],
    },
    Place {
        name: "a closed channel",
        reach: || {
            connected(|pair| {
                pair.open(SessionRequest::exec("true"));
            })
        },
        tolerated: &[2, 3, 4, 20, 80, 90, 192],
    },
    Place {
        name: "our KEXINIT sent",
        reach: || {
            connected(|pair| {
                pair.server.policy.answers_kex = false;
                pair.advance(std::time::Duration::from_secs(3600));
            })
        },
        tolerated: &[2, 3, 4, 20, 80, 90, 192],
    },
    Place {
        name: "rekeying",
        reach: || {
            let mut pair = connected(|_| ());
            pair.server.rekey();
            pair.answer();
            pair
        },
        tolerated: &[2, 3, 4],
    },
];

fn plain_settings() -> sshoal_proto::Settings {
    let mut settings = settings();
    settings.rekey.interval = Some(std::time::Duration::from_secs(3600));
    settings
}

fn pair(policy: Policy) -> Pair {
    Pair::new(plain_settings(), opening(), policy)
}

/// The client has heard what the server says first, and nothing more.
fn by_hand(change: fn(&mut Policy)) -> Pair {
    let mut policy = Policy::openssh();
    change(&mut policy);
    let mut pair = pair(policy);
    pair.answer();
    pair
}

/// The server's reply has been heard, its NEWKEYS has not: what it says now is not encrypted.
fn awaiting_new_keys() -> Pair {
    let mut pair = pair(Policy::openssh());
    for _ in 0..2 {
        pair.flight();
        if pair.flights.len() == 1 {
            pair.answer();
        }
    }
    let reply = std::mem::take(&mut pair.server.packets.outbox);
    let len = 4 + u32::from_be_bytes(reply[..4].try_into().unwrap()) as usize;
    pair.feed(&reply[..len]);
    pair.server.packets = Packets::new();
    pair
}

fn authenticating(credential: Option<Credential>, accepted: bool) -> Pair {
    let mut policy = Policy::openssh();
    policy.answers_login = false;
    policy.answers_channels = false;
    let mut pair = pair(policy);
    pair.credentials = credential.into_iter().collect();
    pair.run();
    if accepted {
        pair.server.say(ServiceAccept {
            service_name: b"ssh-userauth",
        });
        pair.run();
    }
    pair
}

fn external(probe: bool) -> Credential {
    let mut key = PublicKeyCredential::held(key(2));
    key.signer = Signer::External;
    key.probe = probe;
    Credential::PublicKey(key)
}

fn connected(prepare: fn(&mut Pair)) -> Pair {
    let mut pair = logged_in(plain_settings(), Policy::openssh());
    prepare(&mut pair);
    pair.run();
    pair
}

/// One sound message of each number that has one, for channel 0 where it is for a channel.
fn sound_messages() -> Vec<Vec<u8>> {
    let names = NameList::new("publickey");
    let extensions = [Extension {
        name: b"x",
        value: b"y",
    }];
    let prompts = [Prompt {
        prompt: b"Password: ",
        echo: false,
    }];
    let blob = key(2);
    let number = 0;
    let messages: Vec<Message<'_>> = vec![
        Disconnect {
            reason_code: 2,
            description: b"bye",
            language_tag: b"",
        }
        .into(),
        Ignore { data: b"" }.into(),
        Unimplemented { sequence_number: 0 }.into(),
        Debug {
            always_display: true,
            message: b"",
            language_tag: b"",
        }
        .into(),
        ServiceRequest {
            service_name: b"ssh-userauth",
        }
        .into(),
        ServiceAccept {
            service_name: b"ssh-userauth",
        }
        .into(),
        ExtInfo {
            extensions: Counted::from(&extensions),
        }
        .into(),
        NewKeys.into(),
        KexEcdhReply {
            host_key: b"",
            public: b"",
            signature: b"",
        }
        .into(),
        UserauthRequest {
            user_name: b"",
            service_name: b"",
            method: AuthMethod::None,
        }
        .into(),
        UserauthFailure {
            authentications_that_can_continue: names,
            partial_success: false,
        }
        .into(),
        UserauthSuccess.into(),
        UserauthBanner {
            message: b"hello",
            language_tag: b"",
        }
        .into(),
        UserauthPkOk {
            algorithm: b"ssh-ed25519",
            key: blob.public_blob(),
        }
        .into(),
        UserauthInfoRequest {
            name: b"",
            instruction: b"",
            language_tag: b"",
            prompts: Counted::from(&prompts),
        }
        .into(),
        GlobalRequest {
            request_name: b"x",
            want_reply: true,
            data: b"",
        }
        .into(),
        RequestSuccess { data: b"" }.into(),
        RequestFailure.into(),
        ChannelOpen {
            channel_type: b"x11",
            sender_channel: 3,
            initial_window_size: 1,
            maximum_packet_size: 1,
            data: b"",
        }
        .into(),
        ChannelOpenConfirmation {
            recipient_channel: number,
            sender_channel: 0,
            initial_window_size: 1,
            maximum_packet_size: 1,
            data: b"",
        }
        .into(),
        ChannelOpenFailure {
            recipient_channel: number,
            reason_code: 1,
            description: b"",
            language_tag: b"",
        }
        .into(),
        ChannelWindowAdjust {
            recipient_channel: number,
            bytes_to_add: 1,
        }
        .into(),
        ChannelData {
            recipient_channel: number,
            data: b"data",
        }
        .into(),
        ChannelExtendedData {
            recipient_channel: number,
            data_type_code: 1,
            data: b"data",
        }
        .into(),
        ChannelEof {
            recipient_channel: number,
        }
        .into(),
        ChannelClose {
            recipient_channel: number,
        }
        .into(),
        ChannelRequest {
            recipient_channel: number,
            request_type: b"exit-status",
            want_reply: true,
            data: &[0, 0, 0, 1],
        }
        .into(),
        ChannelSuccess {
            recipient_channel: number,
        }
        .into(),
        ChannelFailure {
            recipient_channel: number,
        }
        .into(),
        Ping { data: b"ping" }.into(),
        Pong { data: b"pong" }.into(),
    ];
    let mut payloads: Vec<Vec<u8>> = messages
        .iter()
        .map(|message| {
            let mut payload = Vec::new();
            message.encode(&mut payload);
            payload
        })
        .collect();
    // The server's own KEXINIT.
    payloads.push(kex_init());
    // PASSWD_CHANGEREQ shares its number with PK_OK.
    payloads.push([[60, 0, 0, 0, 1, b'x'].as_slice(), &[0; 4]].concat());
    payloads
}

fn kex_init() -> Vec<u8> {
    let mut policy = Policy::openssh();
    policy.strict = false;
    let mut outbox = pair(policy).server.packets.outbox;
    let at = outbox.iter().position(|octet| *octet == b'\n').unwrap() + 1;
    let len = u32::from_be_bytes(outbox[at..at + 4].try_into().unwrap()) as usize;
    let padding = usize::from(outbox[at + 4]);
    outbox.drain(at + 5..at + 4 + len - padding).collect()
}

/// Says `payload` at `place`.
fn say(place: &Place, payload: &[u8]) -> Result<(), ConnectionError> {
    say_to(&mut (place.reach)(), place, payload)
}

/// Says `payload` to a pair at `place`, and checks what must hold whatever comes of it.
fn say_to(pair: &mut Pair, place: &Place, payload: &[u8]) -> Result<(), ConnectionError> {
    assert_eq!(pair.error, None, "{} is not reached", place.name);
    let what = format!("{}: {:?}", place.name, &payload[..payload.len().min(40)]);
    let before = pair.client.phase();
    pair.events.clear();
    pair.server.packets.say(payload);
    pair.answer();

    let unsent = pair.client.poll_transmit().map_or(0, <[u8]>::len);
    assert!(
        unsent < 4096,
        "{unsent} octets in answer to one message, {what}"
    );
    let data = pair.output.values().map(Vec::len).sum::<usize>();
    assert!(
        data == 0 || before == sshoal_proto::Phase::Connection,
        "{what}"
    );
    let authenticated = pair.events.contains(&Event::Authenticated);
    assert!(!authenticated || payload == [52], "{what}");
    match pair.error.clone() {
        None => Ok(()),
        Some(error) => {
            assert!(!error.to_string().is_empty());
            // The first error is the connection's answer ever after.
            let now = pair.now;
            assert_eq!(
                pair.client.handle_input(now, &mut [0; 64]),
                Err(error.clone())
            );
            assert_eq!(pair.client.handle_timeout(now), Err(error.clone()));
            assert_eq!(pair.client.handle_eof(), error);
            assert_eq!(pair.client.poll_timeout(), None);
            assert!(!pair.client.wants_input());
            Err(error)
        }
    }
}

#[test]
fn sound_messages_are_taken_where_they_belong_and_nowhere_else() {
    let sound = sound_messages();
    for place in PLACES {
        let taken: BTreeSet<u8> = sound
            .iter()
            .filter(|payload| say(place, payload).is_ok())
            .map(|payload| payload[0])
            .collect();
        let expected = BTreeSet::from_iter(place.tolerated.iter().copied());
        assert_eq!(taken, expected, "{}", place.name);
        let idles = IDLE.iter().all(|number| taken.contains(number));
        let strict = ["strict key exchange", "group exchange", "awaiting NEWKEYS"];
        assert_eq!(idles, !strict.contains(&place.name));
    }
}

#[test]
fn unknown_messages_are_answered_once_there_are_keys_and_no_exchange_goes_on() {
    for place in PLACES {
        let answered = place.tolerated.contains(&20) && place.name != "before KEXINIT";
        for number in UNKNOWN {
            assert_eq!(say(place, &[number]).is_ok(), answered, "{}", place.name);
        }
    }
}

#[test]
fn every_number_with_unsound_bodies_is_survived() {
    let sound = sound_messages();
    // Bodies that are wrong for almost everything: lengths 0 and 2^32-1, and octets like any other.
    let bodies: [&[u8]; 5] = [
        &[],
        &[0; 4],
        &[0xff; 64],
        &[0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 9],
        b"\x00\x00\x00\x04none\x01\x00\x00\x00\x00\x7f\x80\xc3\x28",
    ];
    for place in PLACES {
        let mut pair = (place.reach)();
        let mut say = |payload: &[u8]| {
            let went_on = say_to(&mut pair, place, payload).is_ok();
            // Unknown messages leave everything as it was, but for the answer that is queued.
            if !went_on || place.tolerated.contains(&payload[0]) {
                pair = (place.reach)();
            } else {
                pair.flight();
            }
        };
        for number in 0..=255 {
            for body in bodies {
                say(&[&[number], body].concat());
            }
        }
        for payload in &sound {
            for len in 1..payload.len().min(40) {
                say(&payload[..len]);
            }
            say(&[payload.as_slice(), &[0]].concat());
        }
    }
}

#[test]
fn repeated_messages_are_survived() {
    let sound = sound_messages();
    for place in PLACES {
        for payload in &sound {
            let mut pair = (place.reach)();
            for _ in 0..5 {
                pair.server.packets.say(payload);
            }
            pair.answer();
            assert!(pair.events.len() < 50);
        }
    }
}
