//! Logins and commands that the server turns down, and what is known of the command then.

use sshoal_proto::{
    AuthenticationFailure, ConnectionError, Event, ExecFate, Misbehaviour, SessionRequest,
};
use sshoal_wire::{NameList, Unimplemented, UserauthFailure};

use crate::support::{Pair, Policy, held, opening, settings};

const FLIGHT: &str = "USERAUTH_REQUEST(publickey) CHANNEL_OPEN CHANNEL_REQUEST(exec) CHANNEL_EOF";

fn failure(methods: &[&str], partial_success: bool) -> Event {
    Event::AuthenticationNeeded(Some(AuthenticationFailure {
        methods: methods.iter().map(|&method| method.to_owned()).collect(),
        partial_success,
    }))
}

#[test]
fn a_rejected_key_takes_its_command_with_it_and_the_next_key_brings_it_again() {
    let (mut pair, channel) = Pair::with_command(settings(), Policy::openssh(), "true");
    pair.credentials = [held(3), held(4), held(2)].into();
    pair.run();
    let first = format!("NEWKEYS SERVICE_REQUEST {FLIGHT}");
    assert_eq!(pair.flights[2..], [&first, FLIGHT, FLIGHT, "CHANNEL_CLOSE"]);
    let refusal = failure(&["publickey", "password"], false);
    assert_eq!(
        pair.events
            .iter()
            .filter(|event| **event == refusal)
            .count(),
        2
    );
    assert_eq!(pair.server.executions, [b"true"]);
    assert_eq!(pair.client.exec_fate(channel), ExecFate::Ran);
}

#[test]
fn the_same_with_standard_input_and_without_merged_flights() {
    for policy in [Policy::openssh(), Policy::unknown()] {
        let mut pair = Pair::new(settings(), opening(), policy);
        let mut request = SessionRequest::exec("cat");
        request.standard_input = true;
        pair.open(request);
        pair.credentials = [held(3), held(2)].into();
        pair.run();
        assert_eq!(pair.server.executions, [b"cat"]);
    }
}

#[test]
fn with_all_keys_rejected_the_command_is_proven_discarded() {
    let (mut pair, channel) = Pair::with_command(settings(), Policy::openssh(), "true");
    pair.credentials = [held(3), held(4)].into();
    pair.run();
    assert_eq!(pair.client.exec_fate(channel), ExecFate::ProvenDiscarded);
    assert_eq!(pair.client.handle_eof(), closed());
    assert_eq!(pair.client.exec_fate(channel), ExecFate::ProvenDiscarded);
    assert!(pair.server.executions.is_empty());
}

fn closed() -> ConnectionError {
    ConnectionError::Closed {
        during: sshoal_proto::Phase::Authentication,
    }
}

/// A merged flight that the story answers itself.
fn unanswered_flight() -> (Pair, sshoal_proto::LocalChannel) {
    let mut policy = Policy::openssh();
    policy.answers_login = false;
    policy.answers_channels = false;
    let (mut pair, channel) = Pair::with_command(settings(), policy, "true");
    pair.credentials.push_back(held(3));
    pair.run();
    pair.server.say(sshoal_wire::ServiceAccept {
        service_name: b"ssh-userauth",
    });
    (pair, channel)
}

fn refuse(pair: &mut Pair) {
    pair.server.say(UserauthFailure {
        authentications_that_can_continue: NameList::new("publickey"),
        partial_success: false,
    });
    pair.run();
}

#[test]
fn a_failure_alone_proves_nothing() {
    let (mut pair, channel) = unanswered_flight();
    let flights = pair.flights.len();
    refuse(&mut pair);
    assert_eq!(pair.client.exec_fate(channel), ExecFate::MayHaveRun);
    // Another attempt would carry the command again: the caller is not asked for one yet.
    assert_eq!(pair.flights.len(), flights);
    assert!(!pair.events.contains(&failure(&["publickey"], false)));
}

#[test]
fn unimplemented_proves_it_only_by_the_commands_own_number() {
    let (mut pair, channel) = unanswered_flight();
    refuse(&mut pair);
    // With strict key exchange numbering starts after NEWKEYS: 0 service, 1 user, 2 open, 3 exec, 4 EOF.
    for sequence_number in [0, 1, 2, 4, 5, u32::MAX] {
        pair.server.say(Unimplemented { sequence_number });
        pair.run();
        assert_eq!(pair.client.exec_fate(channel), ExecFate::MayHaveRun);
    }
    pair.server.say(Unimplemented { sequence_number: 3 });
    let flights = pair.flights.len();
    pair.run();
    // Discarded, and on its way again with the second key.
    assert_eq!(pair.flights[flights..], [FLIGHT]);
    assert_eq!(pair.client.exec_fate(channel), ExecFate::MayHaveRun);
}

#[test]
fn unimplemented_without_a_failure_proves_nothing() {
    let (mut pair, channel) = unanswered_flight();
    let flights = pair.flights.len();
    pair.server.say(Unimplemented { sequence_number: 3 });
    pair.run();
    assert_eq!(pair.client.exec_fate(channel), ExecFate::MayHaveRun);
    assert_eq!(pair.flights.len(), flights, "nothing is sent again");
}

#[test]
fn a_disconnect_in_place_of_an_answer_proves_that_nobody_was_let_in() {
    let (mut pair, channel) = unanswered_flight();
    assert_eq!(pair.client.exec_fate(channel), ExecFate::MayHaveRun);
    pair.server.say(sshoal_wire::Disconnect {
        reason_code: 2,
        description: b"Too many authentication failures\n\x1b[2J",
        language_tag: b"",
    });
    pair.run();
    assert_eq!(
        pair.error.as_ref().unwrap().to_string(),
        "the server disconnected during authentication: \
         Too many authentication failures\\n\\u{1b}[2J (reason 2)"
    );
    assert_eq!(pair.client.exec_fate(channel), ExecFate::ProvenDiscarded);
}

#[test]
fn a_disconnect_after_success_or_a_close_in_its_place_proves_nothing() {
    let (mut pair, channel) = unanswered_flight();
    pair.run();
    assert_eq!(pair.client.handle_eof(), closed());
    assert_eq!(pair.client.exec_fate(channel), ExecFate::MayHaveRun);

    let (mut pair, channel) = unanswered_flight();
    pair.server.say(sshoal_wire::UserauthSuccess);
    pair.server.say(sshoal_wire::Disconnect {
        reason_code: 11,
        description: b"",
        language_tag: b"",
    });
    pair.run();
    assert!(pair.events.contains(&Event::Authenticated));
    assert_eq!(pair.client.exec_fate(channel), ExecFate::MayHaveRun);
}

#[test]
fn a_first_factor_takes_its_command_with_it_too() {
    let mut policy = Policy::openssh();
    policy.credentials_needed = 2;
    policy
        .accepted_keys
        .push(crate::support::key(3).public_blob().to_vec());
    let (mut pair, _) = Pair::with_command(settings(), policy, "true");
    pair.credentials = [held(2), held(3)].into();
    pair.run();
    assert!(
        pair.events
            .contains(&failure(&["publickey", "password"], true))
    );
    assert_eq!(pair.server.executions, [b"true"]);
}

#[test]
fn no_session_for_the_command() {
    for (policy, flights) in [(Policy::openssh(), 3), (Policy::unknown(), 5)] {
        let merged = flights == 3;
        let policy = Policy {
            max_sessions: 0,
            ..policy
        };
        let (mut pair, channel) = Pair::with_command(settings(), policy, "true");
        pair.run();
        assert_eq!(pair.flights.len(), flights, "{:?}", pair.flights);
        let refused = Event::ChannelRefused {
            channel,
            reason_code: 2,
            description: "open failed".to_owned(),
        };
        assert!(pair.events.contains(&refused));
        assert_eq!(pair.client.exec_fate(channel), ExecFate::ProvenDiscarded);
        // The command that went ahead reached a channel that does not exist.
        let disconnected = matches!(pair.error, Some(ConnectionError::Disconnected { .. }));
        assert_eq!(disconnected, merged);
        assert_eq!(pair.server.over.is_some(), merged);
        assert!(pair.server.executions.is_empty());
    }
}

#[test]
fn a_first_channel_that_is_not_0_is_no_place_for_a_command_sent_ahead() {
    let mut policy = Policy::openssh();
    policy.first_channel = 7;
    let (mut pair, channel) = Pair::with_command(settings(), policy.clone(), "true");
    pair.run();
    let number = 7;
    let astray = Misbehaviour::UnguessedChannel { number };
    assert_eq!(pair.error, Some(astray.into()));
    assert_eq!(pair.client.exec_fate(channel), ExecFate::MayHaveRun);
    assert!(pair.server.executions.is_empty());

    policy.identification = Policy::unknown().identification;
    let (mut pair, _) = Pair::with_command(settings(), policy, "print 10");
    pair.run();
    assert_eq!(pair.error, None);
    assert_eq!(pair.server.executions, [b"print 10"]);
}

#[test]
fn a_command_that_is_refused_did_not_run() {
    let mut pair = crate::support::logged_in(settings(), Policy::openssh());
    let mut request = SessionRequest::exec("");
    request.command = sshoal_proto::Command::Subsystem("sftp".to_owned());
    let channel = pair.open(request);
    pair.run();
    assert!(pair.events.contains(&Event::StartRefused(channel)));
    assert_eq!(pair.client.exec_fate(channel), ExecFate::ProvenDiscarded);
}
