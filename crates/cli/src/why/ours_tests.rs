//! Marks of our own login taken apart.

#![allow(clippy::unwrap_used)]

use std::net::SocketAddr;

use sshoal_net::Mark;

use super::*;

const KEY: &str = "publickey me@here (SHA256:x)";

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn address() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 22))
}

/// A login that passes these, 10 ms each.
fn login(passed: Vec<Passed>) -> TimedLogin {
    let marks = passed.into_iter().enumerate().map(|(number, what)| Mark {
        at: ms(10 * (number as u64 + 1)),
        what,
    });
    TimedLogin {
        marks: marks.collect(),
        identification: Some("SSH-2.0-OpenSSH_9.2".to_owned()),
        kex: Some("curve25519-sha256"),
        host_key: Some("ssh-ed25519"),
        ..TimedLogin::default()
    }
}

fn to_authentication() -> Vec<Passed> {
    vec![
        Passed::LookedUp(1),
        Passed::Connected(Some((address(), ms(3)))),
        Passed::Arrived("identification"),
        Passed::Arrived("KEXINIT"),
        Passed::Arrived("KEX_ECDH_REPLY"),
        Passed::Arrived("NEWKEYS"),
        Passed::Offered("none".to_owned()),
        Passed::Arrived("EXT_INFO"),
        Passed::Arrived("SERVICE_ACCEPT"),
        Passed::Arrived("USERAUTH_FAILURE"),
    ]
}

fn to_the_end(mut passed: Vec<Passed>) -> Vec<Passed> {
    passed.extend([
        Passed::Arrived("USERAUTH_SUCCESS"),
        Passed::Arrived("GLOBAL_REQUEST"),
        Passed::Arrived("CHANNEL_OPEN_CONFIRMATION"),
        Passed::Arrived("CHANNEL_WINDOW_ADJUST"),
        Passed::Arrived("CHANNEL_SUCCESS"),
        Passed::Arrived("CHANNEL_DATA"),
        Passed::Arrived("CHANNEL_CLOSE"),
        Passed::Ended,
    ]);
    passed
}

fn phases(apart: &Apart) -> Vec<Phase> {
    apart.spans.iter().map(|span| span.phase).collect()
}

fn follow_each_other(apart: &Apart) -> bool {
    let mut until = Duration::ZERO;
    apart.spans.iter().all(|span| {
        let follows = span.start == until;
        until += span.duration;
        follows
    })
}

#[test]
fn phases_follow_each_other_and_add_up_to_the_first_output() {
    let mut passed = to_authentication();
    passed.extend([
        Passed::Offered(KEY.to_owned()),
        Passed::Arrived("USERAUTH_PK_OK"),
    ]);
    let apart = apart(&login(to_the_end(passed)));
    assert_eq!(phases(&apart), Phase::ALL[1..]);
    assert!(follow_each_other(&apart));
    let whole: Duration = apart.spans.iter().map(|span| span.duration).sum();
    // The first output is the 18th mark.
    assert_eq!(whole, ms(180));
    assert_eq!(apart.connect, Some(ms(3)));
    assert_eq!(apart.probes, 1);
    assert_eq!(apart.method.as_deref(), Some("publickey"));
    assert!(apart.has_output);
    assert_eq!(apart.spans[4].detail, "curve25519-sha256, ssh-ed25519");
}

#[test]
fn each_key_that_is_refused_is_a_probe_of_its_own() {
    let mut passed = to_authentication();
    for key in ["publickey a", "publickey b"] {
        passed.extend([
            Passed::Offered(key.to_owned()),
            Passed::Arrived("USERAUTH_FAILURE"),
        ]);
    }
    passed.extend([
        Passed::Offered("publickey c".to_owned()),
        Passed::Arrived("USERAUTH_PK_OK"),
    ]);
    let apart = apart(&login(to_the_end(passed)));
    let is_probe = |span: &&Span| span.phase == Phase::KeyProbe;
    let probes: Vec<&str> = apart
        .spans
        .iter()
        .filter(is_probe)
        .map(|span| span.detail.as_str())
        .collect();
    assert_eq!(
        probes,
        [
            "publickey a: refused",
            "publickey b: refused",
            "publickey c"
        ]
    );
    assert_eq!(apart.probes, 3);
    assert!(follow_each_other(&apart));
}

#[test]
fn a_password_is_not_probed() {
    let mut passed = to_authentication();
    passed.push(Passed::Offered("password".to_owned()));
    let apart = apart(&login(to_the_end(passed)));
    assert!(!phases(&apart).contains(&Phase::KeyProbe));
    assert!(phases(&apart).contains(&Phase::SignedRequest));
    assert_eq!(apart.method.as_deref(), Some("password"));
}

#[test]
fn who_is_let_in_without_anything_signs_nothing() {
    let mut passed = to_authentication();
    passed.pop();
    let apart = apart(&login(to_the_end(passed)));
    assert!(!phases(&apart).contains(&Phase::SignedRequest));
    assert_eq!(apart.method.as_deref(), Some("none"));
    assert!(follow_each_other(&apart));
}

#[test]
fn a_login_that_fails_ends_in_the_phase_that_was_next() {
    let whole = to_authentication();
    for (passed, phase) in [
        (0, Phase::Lookup),
        (1, Phase::Connect),
        (2, Phase::Banner),
        (3, Phase::KeyExchangeInit),
        (4, Phase::KeyExchange),
        (6, Phase::FirstRequest),
        (10, Phase::KeyProbe),
    ] {
        let mut passed = whole[..passed].to_vec();
        passed.push(Passed::Ended);
        let apart = apart(&login(passed));
        let last = apart.spans.last().unwrap();
        assert_eq!(last.phase, phase);
        assert_eq!(last.detail, "it failed here");
        assert!(follow_each_other(&apart));
    }
}

#[test]
fn a_command_that_writes_nothing_ends_with_its_channel() {
    let mut passed = to_authentication();
    passed.extend([
        Passed::Offered("password".to_owned()),
        Passed::Arrived("USERAUTH_SUCCESS"),
        Passed::Arrived("CHANNEL_OPEN_CONFIRMATION"),
        Passed::Arrived("CHANNEL_SUCCESS"),
        Passed::Arrived("CHANNEL_EOF"),
        Passed::Ended,
    ]);
    let apart = apart(&login(passed));
    assert!(!apart.has_output);
    assert_eq!(
        apart.spans.last().unwrap().detail,
        "it ended without any output"
    );
}

#[test]
fn addresses_that_do_not_answer_are_told_and_are_part_of_connecting() {
    let dead = SocketAddr::from(([192, 0, 2, 9], 22));
    let apart = apart(&login(vec![
        Passed::LookedUp(2),
        Passed::NotConnected(dead, "no answer".to_owned(), ms(7)),
        Passed::Connected(Some((address(), ms(2)))),
        Passed::Ended,
    ]));
    assert_eq!(apart.failed_addresses, [(dead.to_string(), ms(7))]);
    assert_eq!(apart.families(), Some(["inet", "inet"]));
    assert_eq!(apart.spans[1].duration, ms(20));
    assert_eq!(apart.address.as_deref(), Some("192.0.2.1:22"));
}

#[test]
fn families_of_addresses_are_told_apart() {
    let [v4, v6, mapped] = ["192.0.2.2:22", "[2001:db8::1]:22", "[::ffff:192.0.2.2]:22"];
    let families = |failed: &[&str], answered: Option<&str>| {
        let failed = failed.iter().map(|address| ((*address).to_owned(), ms(7)));
        let apart = Apart {
            failed_addresses: failed.collect(),
            address: answered.map(str::to_owned),
            ..Apart::default()
        };
        apart.families()
    };
    assert_eq!(families(&[v6, v6], Some(v4)), Some(["inet6", "inet"]));
    assert_eq!(families(&[mapped], Some(v6)), Some(["inet", "inet6"]));
    assert_eq!(families(&[v6, v4], Some(v4)), Some(["both", "inet"]));
    assert_eq!(families(&[], Some(v4)), None);
    assert_eq!(families(&[v6], None), None);
}
