//! Logins that succeed: which messages travel, and in how many flights (design target T3).
//!
//! The connection's own round trip comes before the first flight, and sshd's Nagle costs one more.

use std::sync::Arc;

use sshoal_proto::{
    Connection, ConnectionError, Event, ExecFate, HostKeyQuestion, Phase, Pipelining, Pty,
    SessionRequest, Settings, SettingsError,
};

use crate::support::{Pair, Policy, key, logged_in, opening, pattern, settings};

const IDENTIFICATION: &str = "SSH-2.0-sshoal_test KEXINIT";

#[test]
fn unknown_software_gets_one_message_and_one_answer() {
    let (mut pair, channel) = Pair::with_command(settings(), Policy::unknown(), "true");
    pair.run();
    assert_eq!(
        pair.flights,
        [
            IDENTIFICATION,
            "KEX_ECDH_INIT",
            "NEWKEYS SERVICE_REQUEST",
            "USERAUTH_REQUEST(publickey)",
            "CHANNEL_OPEN",
            "CHANNEL_REQUEST(exec) CHANNEL_EOF",
            "CHANNEL_CLOSE",
        ]
    );
    assert_eq!(
        pair.told(),
        [
            "HostKey",
            "AuthenticationNeeded",
            "Authenticated",
            "ChannelOpened",
            "Started",
            "Eof",
            "ExitStatus",
            "Closed",
        ]
    );
    assert_eq!(pair.client.exec_fate(channel), ExecFate::Ran);
    assert_eq!(pair.server.executions, [b"true"]);
}

#[test]
fn openssh_gets_login_and_command_in_one_flight() {
    let (mut pair, channel) = Pair::with_command(settings(), Policy::openssh(), "true");
    pair.run();
    assert_eq!(
        pair.flights,
        [
            IDENTIFICATION,
            "KEX_ECDH_INIT",
            "NEWKEYS SERVICE_REQUEST USERAUTH_REQUEST(publickey) CHANNEL_OPEN \
             CHANNEL_REQUEST(exec) CHANNEL_EOF",
            "CHANNEL_CLOSE",
        ]
    );
    assert!(
        pair.events
            .contains(&Event::ExitStatus { channel, status: 0 })
    );
    assert_eq!(pair.server.executions, [b"true"]);
}

#[test]
fn a_right_guess_saves_one_more_flight() {
    let mut opening = opening();
    opening.guess_key_exchange = true;
    let mut pair = Pair::new(settings(), opening, Policy::openssh());
    pair.open(SessionRequest::exec("true"));
    pair.run();
    assert_eq!(
        pair.flights,
        [
            "SSH-2.0-sshoal_test KEXINIT KEX_ECDH_INIT",
            "NEWKEYS SERVICE_REQUEST USERAUTH_REQUEST(publickey) CHANNEL_OPEN \
             CHANNEL_REQUEST(exec) CHANNEL_EOF",
            "CHANNEL_CLOSE",
        ]
    );
    assert_eq!(pair.server.kex.client_guess, Some(true));
}

#[test]
fn a_caller_may_forbid_merged_flights() {
    let mut settings = settings();
    settings.pipelining = Pipelining::None;
    let (mut pair, _) = Pair::with_command(settings, Policy::openssh(), "true");
    pair.run();
    assert_eq!(pair.flights.len(), 7);
    assert_eq!(pair.server.executions, [b"true"]);
}

#[test]
fn octets_may_come_one_by_one() {
    for policy in [Policy::openssh(), Policy::unknown()] {
        let (mut pair, channel) = Pair::with_command(settings(), policy, "print 5000");
        pair.trickle = Some(1);
        pair.run();
        assert_eq!(pair.stdout(channel), pattern(5000));
        assert!(pair.events.contains(&Event::Closed(channel)));
    }
}

#[test]
fn environment_and_terminal_precede_the_command() {
    let mut request = SessionRequest::exec("true");
    request.environment = vec![(b"LANG".to_vec(), b"C".to_vec())];
    request.pty = Some(Pty {
        term: "xterm".to_owned(),
        columns: 80,
        rows: 24,
        modes: vec![0],
    });
    request.standard_input = true;
    for (policy, flight) in [(Policy::openssh(), 2), (Policy::unknown(), 5)] {
        let mut pair = Pair::new(settings(), opening(), policy);
        pair.open(request.clone());
        pair.run();
        let sent = "CHANNEL_REQUEST(pty-req) CHANNEL_REQUEST(env) CHANNEL_REQUEST(exec)";
        assert!(pair.flights[flight].ends_with(sent), "{:?}", pair.flights);
        assert_eq!(pair.server.executions, [b"true"]);
    }
}

#[test]
fn nothing_of_the_users_leaves_before_the_host_key_is_accepted() {
    let (mut pair, channel) = Pair::with_command(settings(), Policy::openssh(), "true");
    pair.trusts = false;
    pair.run();
    assert_eq!(pair.flights, [IDENTIFICATION, "KEX_ECDH_INIT"]);
    assert!(!pair.client.wants_input());
    assert_eq!(pair.client.phase(), Phase::HostKey);
    let question = HostKeyQuestion {
        algorithm: "ssh-ed25519",
        blob: key(1).public_blob().to_vec(),
    };
    assert_eq!(pair.events, [Event::HostKey(question)]);

    pair.client.accept_host_key().unwrap();
    pair.feed(&[]);
    pair.run();
    assert!(pair.events.contains(&Event::Closed(channel)));
}

#[test]
fn a_refused_host_key_ends_the_connection() {
    let (mut pair, channel) = Pair::with_command(settings(), Policy::openssh(), "true");
    pair.trusts = false;
    pair.run();
    pair.client.refuse_host_key();
    pair.run();
    assert_eq!(pair.flights[2..], ["DISCONNECT"]);
    assert_eq!(pair.client.error(), Some(&ConnectionError::HostKeyRefused));
    assert_eq!(pair.client.exec_fate(channel), ExecFate::NotSent);
}

#[test]
fn what_was_learned_of_the_server_can_be_asked_for() {
    let (mut pair, _) = Pair::with_command(settings(), Policy::openssh(), "true");
    assert_eq!(pair.client.server_profile(), None);
    pair.run();
    let profile = pair.client.server_profile().unwrap();
    assert_eq!(profile.identification, Policy::openssh().identification);
    assert_eq!(profile.first_kex, "curve25519-sha256");
    assert_eq!(profile.first_host_key, "ssh-ed25519");
    // What an agent's session-bind is given proves itself.
    let session_id = pair.client.session_id().unwrap();
    assert_eq!(session_id, pair.server.kex.session_id);
    let (host_key, proof) = pair.client.host_key_proof().unwrap();
    sshoal_crypto::verify("ssh-ed25519", host_key, proof, session_id).unwrap();
}

#[test]
fn the_callers_goodbye_is_a_disconnect() {
    let mut pair = logged_in(settings(), Policy::openssh());
    pair.client.disconnect();
    pair.run();
    assert_eq!(pair.flights, ["DISCONNECT"]);
    assert_eq!(pair.client.error(), Some(&ConnectionError::Ended));
    let again = pair.client.open_session(SessionRequest::exec("true"));
    assert_eq!(again, Err(ConnectionError::Ended));
}

#[test]
fn a_bare_close_says_when_it_happened() {
    let mut pair = Pair::new(settings(), opening(), Policy::openssh());
    let closed = |during| ConnectionError::Closed { during };
    assert_eq!(pair.client.handle_eof(), closed(Phase::Identification));

    let mut pair = logged_in(settings(), Policy::openssh());
    assert_eq!(pair.client.handle_eof(), closed(Phase::Connection));

    let mut pair = Pair::new(settings(), opening(), Policy::openssh());
    pair.feed(b"Exceeded MaxStartups\r\n");
    let said = "Exceeded MaxStartups".to_owned();
    assert_eq!(pair.client.handle_eof(), ConnectionError::NotSsh { said });
}

#[test]
fn settings_that_can_agree_on_nothing_are_refused() {
    let refused = |settings: Settings, opening| {
        Connection::new(Arc::new(settings), opening, std::time::Instant::now()).err()
    };
    let none = |change: fn(&mut Settings)| {
        let mut settings = settings();
        change(&mut settings);
        refused(settings, opening())
    };
    let empty = |what| Some(SettingsError::Empty(what));
    assert_eq!(none(|s| s.kex.clear()), empty("key exchange algorithms"));
    assert_eq!(none(|s| s.ciphers.clear()), empty("ciphers"));
    assert_eq!(none(|s| s.macs.clear()), empty("MACs"));
    let (window, least) = (32 * 1024 - 1, 32 * 1024);
    let small = SettingsError::Window { window, least };
    assert_eq!(none(|s| s.window = 32 * 1024 - 1), Some(small));
    let mut opening = opening();
    opening.host_key_algorithms.clear();
    assert_eq!(refused(settings(), opening), empty("host key algorithms"));
}
