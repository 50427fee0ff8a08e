//! A server tells its host keys, and proves them when it is asked to.

use std::time::Duration;

use sshoal_proto::{ConnectionError, Event, Misbehaviour};
use sshoal_wire::{GlobalRequest, RequestFailure, RequestSuccess};

use crate::support::{Pair, Policy, logged_in, settings};

const INTERVAL: Duration = Duration::from_secs(15);

fn offer(data: &[u8]) -> GlobalRequest<'_> {
    GlobalRequest {
        request_name: b"hostkeys-00@openssh.com",
        want_reply: false,
        data,
    }
}

/// What was told of host keys.
fn told(pair: &Pair) -> Vec<&Event> {
    let is_about_keys =
        |event: &&Event| matches!(event, Event::HostKeysOffered(_) | Event::HostKeysProven(_));
    pair.events.iter().filter(is_about_keys).collect()
}

#[test]
fn an_offer_is_passed_on_once_and_only_to_who_wants_it() {
    let mut pair = logged_in(settings(), Policy::openssh());
    pair.server.say(offer(b"unwanted"));
    pair.run();
    assert!(told(&pair).is_empty());
    pair.client.hear_host_keys();
    for data in [b"first", b"later"] {
        pair.server.say(offer(data));
        pair.run();
    }
    assert_eq!(told(&pair), [&Event::HostKeysOffered(b"first".to_vec())]);
    assert_eq!(pair.error, None);
}

#[test]
fn a_proof_is_told_from_the_replies_to_keepalives_around_it() {
    let mut settings = settings();
    settings.keepalive = Some((INTERVAL, 3));
    let mut policy = Policy::openssh();
    policy.answers_channels = false;
    let mut pair = logged_in(settings, policy);
    pair.advance(INTERVAL);
    pair.client.prove_host_keys(b"keys").unwrap();
    pair.run();
    pair.advance(INTERVAL);
    assert_eq!(pair.flights, ["GLOBAL_REQUEST"; 3]);
    pair.server.say(RequestFailure);
    pair.run();
    assert!(told(&pair).is_empty());
    pair.server.say(RequestSuccess {
        data: b"signatures",
    });
    pair.server.say(RequestFailure);
    pair.run();
    let proven = Event::HostKeysProven(Some(b"signatures".to_vec()));
    assert_eq!(told(&pair), [&proven]);
    assert_eq!(pair.error, None);
    pair.server.say(RequestFailure);
    pair.run();
    let unasked = Misbehaviour::UnaskedReply {
        message: "REQUEST_FAILURE",
    };
    assert_eq!(pair.error, Some(ConnectionError::Misbehaved(unasked)));
}

#[test]
fn a_server_that_proves_nothing_says_so() {
    let mut pair = logged_in(settings(), Policy::openssh());
    pair.client.prove_host_keys(b"keys").unwrap();
    pair.run();
    assert_eq!(told(&pair), [&Event::HostKeysProven(None)]);
}
