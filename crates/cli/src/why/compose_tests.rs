//! Evidence of logins that were timed.

#![allow(clippy::unwrap_used)]

use std::net::SocketAddr;

use sshoal_net::{ErrandDone, ErrandEnd, Mark, Passed};

use super::*;

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn known(asks_host: bool) -> Known {
    Known {
        host: "web1".to_owned(),
        facts: Facts::default(),
        asks_host,
        foreign: None,
    }
}

/// A login by a key, each mark 10 ms after the one before.
fn timed() -> TimedLogin {
    let address = SocketAddr::from(([192, 0, 2, 1], 22));
    let dead = SocketAddr::from(([192, 0, 2, 9], 22));
    let passed = [
        Passed::LookedUp(2),
        Passed::NotConnected(dead, "no answer".to_owned(), ms(8)),
        Passed::Connected(Some((address, ms(2)))),
        Passed::Arrived("identification"),
        Passed::Arrived("KEXINIT"),
        Passed::Arrived("NEWKEYS"),
        Passed::Arrived("USERAUTH_FAILURE"),
        Passed::Offered("publickey k".to_owned()),
        Passed::Arrived("USERAUTH_PK_OK"),
        Passed::Arrived("USERAUTH_SUCCESS"),
        Passed::Arrived("CHANNEL_OPEN_CONFIRMATION"),
        Passed::Arrived("CHANNEL_DATA"),
        Passed::Ended,
    ];
    let marks = passed.into_iter().enumerate().map(|(number, what)| Mark {
        at: ms(10 * (number as u64 + 1)),
        what,
    });
    TimedLogin {
        marks: marks.collect(),
        methods: Some(vec!["publickey".to_owned(), "password".to_owned()]),
        round_trips: vec![ms(3), ms(1), ms(2)],
        ..TimedLogin::default()
    }
}

fn done(timed: TimedLogin, failure: Option<Failure>) -> Done {
    Done {
        host: 0,
        by: Client::Sshoal,
        timed,
        failure,
    }
}

fn errand(lines: &str) -> ErrandDone {
    let lines = lines.split_inclusive('\n').enumerate();
    ErrandDone {
        output: lines
            .map(|(number, line)| (ms(5 * (number as u64 + 1)), line.as_bytes().to_vec()))
            .collect(),
        took: ms(100),
        end: ErrandEnd::Exit(Some(0)),
        ..ErrandDone::default()
    }
}

#[test]
fn what_logins_tell_becomes_facts() {
    let done = done(timed(), None);
    let evidence = evidence(known(true), &[&done]);
    let facts = &evidence.facts;
    assert_eq!(facts.text("login.method"), Some("publickey"));
    assert_eq!(facts.text("login.methods"), Some("publickey,password"));
    assert_eq!(facts.number("login.key_probes"), Some(1.0));
    assert_eq!(facts.number("local.addresses.failed"), Some(1.0));
    // Connecting took 20 ms, of which the connection that was made 2.
    assert_eq!(facts.time("local.addresses.failed.time"), Some(ms(18)));
    assert_eq!(facts.time("login.sign_of_life.time"), Some(ms(2)));
    assert_eq!(evidence.round_trips, [ms(2)]);
    assert_eq!(evidence.address.as_deref(), Some("192.0.2.1:22"));
}

#[test]
fn a_shell_s_start_is_what_it_takes_beyond_a_bare_one() {
    let mut timed = timed();
    let mut disturbed = errand("\n");
    disturbed.output[0].0 = ms(30);
    timed.errands = vec![
        disturbed,
        errand("\n"),
        errand(
            "host.begun yes\n+host.shell.startup.time\nnoise\n-host.shell.startup.time\n\
             +host.shell.bare.time\n-host.shell.bare.time\nhost.done yes\n",
        ),
    ];
    let done = done(timed, None);
    let evidence = evidence(known(true), &[&done]);
    assert_eq!(evidence.tier, Tier::NoRoot);
    assert!(evidence.tier_notes.is_empty());
    let time = |name: &str| evidence.facts.time(name);
    assert_eq!(time("host.second_exec.time"), Some(ms(5)));
    assert_eq!(time("host.shell.time"), Some(ms(10)));
    assert_eq!(time("host.bare_exec.time"), Some(ms(5)));
}

#[test]
fn what_sshd_has_waited_is_a_share_of_the_login_and_of_the_sessions_behind_it() {
    let mut timed = timed();
    timed.errands = vec![
        errand("\n"),
        errand("\n"),
        errand("host.begun yes\nhost.waited 64000000\n"),
    ];
    let done = done(timed, None);
    let evidence = evidence(known(true), &[&done]);
    let login: Duration = evidence.logins[0]
        .spans
        .iter()
        .map(|span| span.duration)
        .sum();
    let share = evidence.facts.number("host.contention.share").unwrap();
    let wanted = 100.0 * 64.0 / (login + ms(200)).as_secs_f64() / 1e3;
    assert!((share - wanted).abs() < 1e-9, "{share}");
}

#[test]
fn files_of_openssh_say_nothing_of_another_server() {
    let of = |identification: &str| {
        let mut timed = timed();
        timed.identification = Some(identification.to_owned());
        timed.errands = vec![
            errand("\n"),
            errand(
                "host.begun yes\nhost.sshd_config.readable yes\nsshd UseDNS yes\nhost.sshrc yes\n\
                 host.load 1\n",
            ),
        ];
        evidence(known(true), &[&done(timed, None)]).facts
    };
    let openssh = of("SSH-2.0-OpenSSH_9.2p1");
    assert_eq!(openssh.text("host.sshd_config.UseDNS"), Some("yes"));
    let dropbear = of("SSH-2.0-dropbear_2022.83");
    assert_eq!(dropbear.text("host.sshd_config.UseDNS"), None);
    assert_eq!(dropbear.yes("host.sshrc"), None);
    assert_eq!(dropbear.number("host.load"), Some(1.0));
}

#[test]
fn without_an_answer_of_the_script_it_is_this_side_alone_and_says_why() {
    let mut timed = timed();
    timed.errands = vec![errand("gone\n"), errand("gone\n")];
    let with_noise = done(timed.clone(), None);
    let evidence_of = |done: &Done, asks| evidence(known(asks), &[done]);
    let found = evidence_of(&with_noise, true);
    assert_eq!(found.tier, Tier::Client);
    assert!(
        found.tier_notes[0].contains("gone"),
        "{:?}",
        found.tier_notes
    );
    timed.errands.truncate(1);
    timed.errands[0].end = ErrandEnd::Refused("no more".to_owned());
    let refused = evidence_of(&done(timed.clone(), None), true);
    assert!(
        refused.tier_notes[0].contains("no more"),
        "{:?}",
        refused.tier_notes
    );
    timed.errands.clear();
    let without = evidence_of(&done(timed.clone(), None), true);
    assert_eq!(without.tier_notes.len(), 1);
    let unwanted = evidence_of(&done(timed, None), false);
    assert!(unwanted.tier_notes[0].contains("--no-host"));
}

#[test]
fn counters_are_compared_with_those_of_the_first_login() {
    let mut first = timed();
    first.errands = vec![errand("host.begun yes\nhost.throttled.before 3 /a\n")];
    let mut last = timed();
    last.errands = vec![
        errand("\n"),
        errand("host.begun yes\nhost.throttled.before 5 /a\nhost.throttled.after 7 /a\n"),
    ];
    let [first, last] = [first, last].map(|timed| done(timed, None));
    let of = |done: &[&Done]| evidence(known(true), done).facts.number("host.throttled");
    assert_eq!(of(&[&first, &last]), Some(4.0));
    assert_eq!(of(&[&last]), Some(2.0));
}

#[test]
fn a_login_that_was_not_begun_is_none_and_a_failure_is_told_by_its_kind() {
    let failure = Failure::new(FailureKind::Throttled, "it said: Exceeded MaxStartups");
    let mut begun = timed();
    begun.marks.truncate(3);
    let failed = done(begun, Some(failure.clone()));
    let not_begun = done(TimedLogin::default(), Some(failure));
    let evidence = evidence(known(true), &[&failed, &not_begun]);
    assert_eq!(evidence.logins.len(), 1);
    let words = evidence.logins[0].failure.as_deref();
    assert_eq!(words, Some("throttled: it said: Exceeded MaxStartups"));
    let refused = evidence.facts.text("login.refused_text");
    assert_eq!(refused, Some("it said: Exceeded MaxStartups"));
}
