//! `first_kex_packet_follows` (RFC 4253 section 7.1): the client's guess and the server's, right and wrong.

use sshoal_proto::{ConnectionError, Misbehaviour, Opening};

use crate::support::{Guess, Pair, Policy, opening, settings};

fn guessing() -> Opening {
    let mut opening = opening();
    opening.guess_key_exchange = true;
    opening
}

/// Logs in, and says what the first flights were and what became of the client's guess.
fn log_in(opening: Opening, policy: Policy) -> (Vec<String>, Option<bool>) {
    let mut pair = Pair::new(settings(), opening, policy);
    pair.run();
    assert_eq!(pair.error, None);
    assert!(pair.server.authenticated, "{:?}", pair.flights);
    (pair.flights, pair.server.kex.client_guess)
}

#[test]
fn a_guess_of_the_wrong_method_is_made_good() {
    let mut policy = Policy::openssh();
    policy.kex = vec!["ecdh-sha2-nistp256", "curve25519-sha256"];
    let (flights, guess) = log_in(guessing(), policy);
    assert_eq!(guess, Some(false));
    // The second half is sent although the first was of the method that was agreed on: the server skips it.
    assert_eq!(
        flights[..2],
        ["SSH-2.0-sshoal_test KEXINIT KEX_ECDH_INIT", "KEX_ECDH_INIT"]
    );
}

#[test]
fn a_guess_of_the_wrong_host_key_is_made_good() {
    let mut policy = Policy::openssh();
    policy.host_key_algorithms = vec!["rsa-sha2-512", "ssh-ed25519"];
    let (flights, guess) = log_in(guessing(), policy);
    assert_eq!(guess, Some(false));
    assert_eq!(flights[1], "KEX_ECDH_INIT");
}

#[test]
fn group_exchange_cannot_be_guessed() {
    let mut settings = settings();
    settings.kex.rotate_right(1);
    assert_eq!(settings.kex[0].name, "diffie-hellman-group-exchange-sha256");
    let mut policy = Policy::openssh();
    policy.kex = vec!["diffie-hellman-group-exchange-sha256"];
    let mut pair = Pair::new(settings, guessing(), policy);
    pair.run();
    assert_eq!(pair.server.kex.client_guess, None);
    assert_eq!(pair.flights[0], "SSH-2.0-sshoal_test KEXINIT");
    assert!(pair.server.authenticated);
}

#[test]
fn a_servers_right_guess_changes_nothing() {
    let mut policy = Policy::openssh();
    policy.guess = Guess::Right;
    log_in(opening(), policy.clone());
    log_in(guessing(), policy);
}

#[test]
fn a_servers_wrong_guess_is_skipped_once() {
    for opening in [opening(), guessing()] {
        let mut policy = Policy::openssh();
        policy.guess = Guess::Wrong;
        policy.kex = vec!["ecdh-sha2-nistp256", "curve25519-sha256"];
        log_in(opening, policy);
    }
}

#[test]
fn a_packet_after_a_guess_that_was_right_is_not_skipped() {
    // The server guesses right, yet sends a reply before there is anything to reply to.
    let mut policy = Policy::openssh();
    policy.guess = Guess::Wrong;
    let mut pair = Pair::new(settings(), opening(), policy);
    pair.run();
    assert!(
        matches!(
            pair.error,
            Some(
                ConnectionError::Malformed(_)
                    | ConnectionError::Misbehaved(Misbehaviour::Unexpected { .. })
            )
        ),
        "{:?}",
        pair.error
    );
}

#[test]
fn only_the_first_exchange_is_guessed() {
    let mut pair = Pair::new(settings(), guessing(), Policy::openssh());
    pair.run();
    pair.server.rekey();
    pair.flights.clear();
    pair.run();
    assert_eq!(pair.flights, ["KEXINIT KEX_ECDH_INIT", "NEWKEYS"]);
    assert_eq!(pair.server.kex.client_guess, None);
    assert_eq!(pair.server.kex.finished, 2);
}
