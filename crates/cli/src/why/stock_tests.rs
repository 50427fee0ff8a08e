//! Logs of ssh taken apart.

#![allow(clippy::unwrap_used)]

use sshoal_net::Mark;

use super::*;

/// ssh 9.2 on its way to one key that is let in, each line 5 ms after the one before.
const LOGIN: &str = "\
OpenSSH_9.2p1 Debian-2, OpenSSL 3.0.9 30 May 2023
debug1: Reading configuration data /etc/ssh/ssh_config
debug2: resolving \"web1\" port 22
debug3: resolve_host: lookup web1:22
debug1: Connecting to web1 [192.0.2.1] port 22.
debug1: Connection established.
debug1: identity file /home/me/.ssh/id_ed25519 type 3
debug1: Local version string SSH-2.0-OpenSSH_9.2p1
debug1: Remote protocol version 2.0, remote software version OpenSSH_9.2p1
debug3: send packet: type 20
debug1: SSH2_MSG_KEXINIT sent
debug3: receive packet: type 20
debug1: SSH2_MSG_KEXINIT received
debug2: KEX algorithms: sntrup761x25519-sha512@openssh.com,curve25519-sha256
debug1: kex: algorithm: curve25519-sha256
debug1: kex: host key algorithm: ssh-ed25519
debug1: SSH2_MSG_NEWKEYS sent
debug1: SSH2_MSG_NEWKEYS received
debug1: Will attempt key: /home/me/.ssh/id_ed25519 ED25519 SHA256:x explicit
debug3: send packet: type 5
debug1: SSH2_MSG_SERVICE_ACCEPT received
debug1: Authentications that can continue: publickey,password
debug1: Next authentication method: publickey
debug1: Offering public key: /home/me/.ssh/id_ed25519 ED25519 SHA256:x explicit
debug1: Server accepts key: /home/me/.ssh/id_ed25519 ED25519 SHA256:x explicit
debug3: sign_and_send_pubkey: signing using ssh-ed25519 SHA256:x
Authenticated to web1 ([192.0.2.1]:22) using \"publickey\".
debug1: channel 0: new session [client-session] (inactive timeout: 0)
debug1: Entering interactive session.
debug1: client_input_global_request: rtype hostkeys-00@openssh.com want_reply 0
debug2: channel_input_open_confirmation: channel 0: callback start
debug1: Sending command: echo
debug2: exec request accepted on channel 0";

fn login(log: &str, ends_with: Passed) -> TimedLogin {
    let said = log.lines().map(|line| Passed::Said(line.to_owned()));
    let passed = said.chain([ends_with, Passed::Ended]);
    let marks = passed.enumerate().map(|(number, what)| Mark {
        at: Duration::from_millis(5 * (number as u64 + 1)),
        what,
    });
    TimedLogin {
        marks: marks.collect(),
        ..TimedLogin::default()
    }
}

fn phases(spans: &[Span]) -> Vec<Phase> {
    spans.iter().map(|span| span.phase).collect()
}

fn follow_each_other(spans: &[Span]) -> bool {
    let mut until = Duration::ZERO;
    spans.iter().all(|span| {
        let follows = span.start == until;
        until += span.duration;
        follows
    })
}

#[test]
fn a_login_has_all_phases_and_they_add_up_to_the_first_output() {
    let spans = spans(&login(LOGIN, Passed::Output));
    assert_eq!(phases(&spans), Phase::ALL);
    assert!(follow_each_other(&spans));
    let whole: Duration = spans.iter().map(|span| span.duration).sum();
    let lines = LOGIN.lines().count() as u64;
    assert_eq!(whole, Duration::from_millis(5 * (lines + 1)));
    assert_eq!(spans[5].detail, "curve25519-sha256, ssh-ed25519");
    assert!(spans[7].detail.contains("id_ed25519"));
}

#[test]
fn without_a_lookup_of_its_own_the_first_address_ends_what_is_local() {
    let log = LOGIN
        .lines()
        .filter(|line| !line.contains("resolv"))
        .collect::<Vec<_>>()
        .join("\n");
    let spans = spans(&login(&log, Passed::Output));
    assert_eq!(phases(&spans), Phase::ALL);
    assert_eq!(spans[1].duration, Duration::ZERO);
    assert!(follow_each_other(&spans));
}

#[test]
fn keys_that_are_refused_are_probes_and_gssapi_is_none() {
    let log = LOGIN.replace(
        "debug1: Next authentication method: publickey\n",
        "debug1: Next authentication method: gssapi-with-mic\n\
         debug1: No credentials were supplied, or the credentials were unavailable or inaccessible\n\
         debug1: Next authentication method: publickey\n\
         debug1: Offering public key: /home/me/.ssh/old RSA SHA256:y agent\n\
         debug1: Authentications that can continue: publickey,password\n",
    );
    let spans = spans(&login(&log, Passed::Output));
    let judged: Vec<(Phase, &str)> = spans[7..10]
        .iter()
        .map(|span| (span.phase, span.detail.as_str()))
        .collect();
    assert_eq!(
        judged,
        [
            (Phase::SignedRequest, "gssapi-with-mic: given up"),
            (
                Phase::KeyProbe,
                "publickey /home/me/.ssh/old RSA SHA256:y agent: refused"
            ),
            (
                Phase::KeyProbe,
                "publickey /home/me/.ssh/id_ed25519 ED25519 SHA256:x explicit"
            ),
        ]
    );
    assert!(follow_each_other(&spans));
}

#[test]
fn a_proxy_command_connects_by_itself() {
    let log = LOGIN.replace(
        "debug1: Connecting to web1 [192.0.2.1] port 22.\ndebug1: Connection established.",
        "debug1: Executing proxy command: exec ssh -W '[web1]:22' gate",
    );
    let spans = spans(&login(&log, Passed::Output));
    assert_eq!(phases(&spans), Phase::ALL);
    assert!(follow_each_other(&spans));
}

#[test]
fn a_login_that_fails_ends_in_the_phase_that_was_next() {
    let log: Vec<&str> = LOGIN.lines().collect();
    for (lines, phase) in [
        (2, Phase::Local),
        (5, Phase::Connect),
        (6, Phase::Banner),
        (12, Phase::KeyExchangeInit),
        (17, Phase::KeyExchange),
        (21, Phase::FirstRequest),
        (24, Phase::KeyProbe),
        (26, Phase::SignedRequest),
        (31, Phase::ChannelOpen),
    ] {
        let failed = "ssh: something went wrong";
        let log = [&log[..lines], &[failed]].concat().join("\n");
        let spans = spans(&login(&log, Passed::Ended));
        let last = spans.last().unwrap();
        assert_eq!(
            (last.phase, last.detail.as_str()),
            (phase, "it failed here")
        );
        assert!(follow_each_other(&spans));
    }
}

#[test]
fn a_log_that_says_nothing_is_local_work() {
    let spans = spans(&login("some other program", Passed::Ended));
    assert_eq!(phases(&spans), [Phase::Local]);
}

proptest::proptest! {
    #[test]
    fn whatever_stands_in_a_log_phases_follow_each_other(
        log in "((debug[123]: |)(Connecting to|Offering public key: |Server accepts key|Authentications that can continue|SSH2_MSG_NEWKEYS received|Sending command: |resolving \"|.{0,9})\n){0,40}"
    ) {
        proptest::prop_assert!(follow_each_other(&spans(&login(&log, Passed::Output))));
    }
}

#[test]
fn ssh_says_how_long_it_searches_known_hosts_and_asks_for_the_host_key() {
    let judged = |log: &str| judging(&login(log, Passed::Output));
    assert_eq!(judged(LOGIN), Judging::default());
    let log = "\
debug1: Authenticating to web1:22 as 'me'
debug3: record_hostkey: found key type ED25519 in file /home/me/.ssh/known_hosts:1
debug3: load_hostkeys_file: loaded 1 keys from web1
debug1: SSH2_MSG_KEXINIT sent
debug1: SSH2_MSG_KEXINIT received
debug1: Server host key: ssh-ed25519 SHA256:x
debug3: verify_host_key_dns
DNS lookup error: name does not exist
debug3: load_hostkeys_file: loaded 1 keys from web1
debug1: Host 'web1' is known and matches the ED25519 host key.";
    let found = judged(log);
    assert_eq!(found.known_hosts, Some(Duration::from_millis(15 + 10)));
    assert_eq!(found.host_key_dns, Some(Duration::from_millis(5)));
}
