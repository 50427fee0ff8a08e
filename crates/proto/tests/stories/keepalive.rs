//! Keepalive requests (ServerAliveInterval, ServerAliveCountMax) and when they give up.

use std::time::Duration;

use sshoal_proto::{ConnectionError, Misbehaviour, Settings};
use sshoal_wire::{ChannelData, Debug, Ignore, RequestFailure};

use crate::support::{Pair, Policy, logged_in, opening, settings};

const INTERVAL: Duration = Duration::from_secs(15);

fn keeping_alive() -> Settings {
    let mut settings = settings();
    settings.keepalive = Some((INTERVAL, 3));
    settings
}

#[test]
fn a_server_that_answers_is_asked_once_an_interval() {
    let mut pair = logged_in(keeping_alive(), Policy::openssh());
    pair.advance(INTERVAL * 10);
    assert_eq!(pair.flights, vec!["GLOBAL_REQUEST"; 10]);
    assert_eq!(pair.error, None);
}

#[test]
fn a_server_that_speaks_is_not_asked() {
    let mut pair = logged_in(keeping_alive(), Policy::openssh());
    for _ in 0..20 {
        pair.advance(INTERVAL / 2);
        pair.server.say(Ignore { data: b"" });
        pair.run();
    }
    assert!(pair.flights.is_empty());
}

#[test]
fn a_silent_server_is_given_up_after_the_last_unanswered_request() {
    let mut policy = Policy::openssh();
    policy.answers_channels = false;
    let mut pair = logged_in(keeping_alive(), policy);
    pair.advance(INTERVAL * 4 - Duration::from_nanos(1));
    assert_eq!(pair.flights, vec!["GLOBAL_REQUEST"; 3]);
    assert_eq!(pair.error, None);
    pair.advance(Duration::from_nanos(1));
    let unanswered = 3;
    assert_eq!(
        pair.error,
        Some(ConnectionError::KeepaliveTimeout { unanswered })
    );
    assert_eq!(pair.client.poll_timeout(), None);
}

/// As packet.c does with its count: servers that ignore the request, but speak, are alive.
#[test]
fn whatever_the_server_says_counts_as_life() {
    let mut policy = Policy::openssh();
    policy.answers_channels = false;
    let mut pair = logged_in(keeping_alive(), policy);
    for _ in 0..20 {
        pair.advance(INTERVAL * 2);
        pair.server.say(Debug {
            always_display: false,
            message: b"still here",
            language_tag: b"",
        });
        pair.run();
    }
    assert_eq!(pair.error, None);
    // All the answers may still come, late, and none that was not asked for.
    for _ in 0..pair.flights.len() {
        pair.server.say(RequestFailure);
    }
    pair.run();
    assert_eq!(pair.error, None);
    pair.server.say(RequestFailure);
    pair.run();
    let message = "REQUEST_FAILURE";
    assert_eq!(
        pair.error,
        Some(Misbehaviour::UnaskedReply { message }.into())
    );
}

#[test]
fn a_key_exchange_that_never_ends_is_silence_too() {
    let mut policy = Policy::openssh();
    policy.answers_channels = false;
    let mut settings = keeping_alive();
    settings.rekey.interval = Some(INTERVAL / 3);
    let mut pair = logged_in(settings, policy);
    pair.server.policy.answers_kex = false;
    pair.advance(INTERVAL * 6);
    assert!(
        matches!(pair.error, Some(ConnectionError::KeepaliveTimeout { .. })),
        "{:?}",
        pair.error
    );
    assert_eq!(pair.flights[0], "KEXINIT");
}

#[test]
fn nothing_is_asked_before_the_login() {
    let mut pair = Pair::new(keeping_alive(), opening(), Policy::openssh());
    assert_eq!(pair.client.poll_timeout(), None);
    pair.run();
    assert_eq!(pair.client.poll_timeout(), Some(pair.now + INTERVAL));
}

#[test]
fn data_is_life() {
    let (mut pair, _) = Pair::with_command(keeping_alive(), Policy::openssh(), "sleep");
    pair.run();
    pair.flights.clear();
    for _ in 0..10 {
        pair.advance(INTERVAL / 2);
        pair.server.say(ChannelData {
            recipient_channel: 0,
            data: b"tick",
        });
        pair.run();
    }
    assert!(pair.flights.is_empty());
}

#[test]
fn an_interval_beyond_the_end_of_time_is_never_due() {
    let mut settings = settings();
    settings.keepalive = Some((Duration::MAX, 3));
    settings.rekey.interval = Some(Duration::MAX);
    let mut pair = logged_in(settings, Policy::openssh());
    assert_eq!(pair.client.poll_timeout(), None);
    let now = pair.now;
    pair.client.handle_timeout(now).unwrap();
}

#[test]
fn a_server_that_is_doubted_is_asked_at_once_and_given_up_soon() {
    let mut policy = Policy::openssh();
    policy.answers_channels = false;
    let mut pair = logged_in(keeping_alive(), policy);
    let now = pair.now;
    pair.client.doubt_server(now).unwrap();
    // More doubts change nothing.
    pair.client.doubt_server(now).unwrap();
    pair.run();
    assert_eq!(pair.flights, ["GLOBAL_REQUEST"]);
    pair.advance(Duration::from_secs(15) - Duration::from_nanos(1));
    assert_eq!(pair.flights, ["GLOBAL_REQUEST"; 3]);
    assert_eq!(pair.error, None);
    pair.advance(Duration::from_nanos(1));
    let unanswered = 3;
    assert_eq!(
        pair.error,
        Some(ConnectionError::KeepaliveTimeout { unanswered })
    );
}

#[test]
fn a_doubt_ends_with_any_sign_of_life_and_the_round_trip_is_measured() {
    let mut pair = logged_in(keeping_alive(), Policy::openssh());
    assert_eq!(pair.client.round_trip(), None);
    let now = pair.now;
    pair.client.doubt_server(now).unwrap();
    pair.run();
    assert_eq!(pair.client.round_trip(), Some(Duration::ZERO));
    pair.flights.clear();
    pair.advance(INTERVAL - Duration::from_nanos(1));
    assert!(pair.flights.is_empty(), "it is believed again");
}

#[test]
fn without_keepalive_nobody_is_doubted() {
    let mut settings = settings();
    settings.keepalive = None;
    let mut pair = logged_in(settings, Policy::openssh());
    let now = pair.now;
    pair.client.doubt_server(now).unwrap();
    pair.run();
    assert!(pair.flights.is_empty());
}
