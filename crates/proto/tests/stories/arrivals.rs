//! What is noted of a login that is measured: each message of the server's, and when it came.

use std::time::Duration;

use sshoal_proto::{Arrival, Credential, Pipelining, SessionRequest, Settings};

use crate::support::{Pair, Policy, held, logged_in, opening, settings};

fn measuring() -> Settings {
    let mut settings = settings();
    settings.notes_arrivals = true;
    settings.pipelining = Pipelining::None;
    settings
}

fn names(pair: &Pair) -> Vec<&'static str> {
    let arrivals = pair.client.arrivals().iter();
    arrivals.map(|arrival| arrival.message).collect()
}

#[test]
fn every_message_of_a_login_is_noted_in_its_order() {
    let mut pair = Pair::new(measuring(), opening(), Policy::openssh());
    pair.credentials.push_front(Credential::None);
    pair.open(SessionRequest::exec("true"));
    pair.run();
    let names = names(&pair);
    let wanted = [
        Arrival::IDENTIFICATION,
        "KEXINIT",
        "KEX_ECDH_REPLY",
        "NEWKEYS",
        "SERVICE_ACCEPT",
        "USERAUTH_FAILURE",
        "USERAUTH_SUCCESS",
        "CHANNEL_OPEN_CONFIRMATION",
        "CHANNEL_SUCCESS",
    ];
    let mut rest = names.iter();
    for message in wanted {
        assert!(rest.any(|name| *name == message), "{message}: {names:?}");
    }
    let times = pair.client.arrivals().iter().map(|arrival| arrival.at);
    assert!(times.is_sorted());
    assert_eq!(pair.client.kex_algorithm(), Some("curve25519-sha256"));
}

#[test]
fn without_being_asked_nothing_is_noted() {
    let pair = logged_in(settings(), Policy::openssh());
    assert!(pair.client.arrivals().is_empty());
}

#[test]
fn whoever_measures_is_woken_for_every_octet() {
    let mut pair = Pair::new(measuring(), opening(), Policy::openssh());
    assert_eq!(pair.client.least_input(), 1);
    while pair.flight() | pair.answer() {
        assert_eq!(pair.client.least_input(), 1);
    }
}

#[test]
fn a_sign_of_life_is_asked_for_without_an_interval_and_owed_until_it_comes() {
    let mut pair = logged_in(settings(), Policy::openssh());
    assert!(!pair.client.awaits_sign_of_life());
    pair.client.ask_for_sign_of_life().unwrap();
    assert!(pair.client.awaits_sign_of_life());
    pair.run();
    assert_eq!(pair.flights, ["GLOBAL_REQUEST"]);
    assert!(!pair.client.awaits_sign_of_life());
    assert_eq!(pair.error, None);
    // Nothing more is asked by itself.
    pair.advance(Duration::from_secs(3600));
    assert_eq!(pair.flights, ["GLOBAL_REQUEST"]);
}

#[test]
fn before_the_login_no_sign_of_life_is_asked_for() {
    let mut pair = Pair::new(settings(), opening(), Policy::openssh());
    pair.credentials = [held(2)].into();
    pair.client.ask_for_sign_of_life().unwrap();
    assert!(!pair.client.awaits_sign_of_life());
    pair.run();
    assert!(
        !pair
            .flights
            .iter()
            .any(|flight| flight.contains("GLOBAL_REQUEST"))
    );
}
