#![allow(clippy::unwrap_used)]

use sshoal_fleet::{Failure, Fate, HostId, PhaseTimes};

use super::*;

fn summary(outcomes: Vec<Outcome>, interrupted: bool) -> Summary {
    let labels: Vec<String> = (1..=outcomes.len()).map(|n| format!("web{n}")).collect();
    let mut tally = Tally::default();
    for (host, outcome) in outcomes.into_iter().enumerate() {
        let times = PhaseTimes::default();
        let result = HostResult {
            host: HostId(host as u32),
            outcome,
            attempts: 1,
            times,
        };
        tally.add(host, &labels[host], &result);
    }
    let end = RunEnd {
        cut_short: interrupted.then_some(CutShort::Interrupted),
        elapsed: Duration::from_millis(12_345),
    };
    tally.close(&labels, end, ExitPolicy::ByKind)
}

fn failed(kind: FailureKind, detail: &str, remedy: &str) -> Outcome {
    Outcome::Failed {
        failure: Failure::with_remedy(kind, detail, remedy),
        fate: Fate::NotSent,
    }
}

fn signal(name: &str) -> Outcome {
    Outcome::Signal {
        name: name.into(),
        core_dumped: false,
        message: String::new(),
    }
}

#[test]
fn failures_stand_by_kind_under_folded_names() {
    let timeout = |host: u32| {
        failed(
            FailureKind::ConnectTimeout,
            &format!("no answer from 10.0.0.{host}"),
            "look",
        )
    };
    let summary = summary(
        vec![
            Outcome::Exit(0),
            timeout(2),
            timeout(3),
            Outcome::Exit(1),
            Outcome::Exit(127),
            Outcome::Exit(1),
            signal("KILL"),
            failed(
                FailureKind::AuthDenied,
                "evil \u{1b}[2J\nbanner",
                "use another key",
            ),
            failed(FailureKind::AuthDenied, "as above", "use another key"),
            failed(
                FailureKind::AuthDenied,
                "too many keys",
                "set IdentitiesOnly",
            ),
            Outcome::NotStarted,
        ],
        true,
    );
    assert_eq!(
        summary.text(),
        r"sshoal: 1 of 11 hosts ok, 9 failed, 1 not started, interrupted, in 12.3 s
connect-timeout: web[2-3] (2)
    web2: no answer from 10.0.0.2
    to do: look
auth-denied: web[8-10] (3)
    web8: evil \x1b[2J\x0abanner
    web9: as above
    to do: use another key
    web10: too many keys
    to do: set IdentitiesOnly
signal KILL: web7
exit 1: web[4,6] (2)
exit 127: web5
not started: web11
"
    );
    let expected = Counts {
        ok: 1,
        exited: 3,
        signalled: 1,
        failed: 5,
        not_started: 1,
        largest_status: 137,
    };
    assert_eq!(summary.counts, expected);
    assert_eq!(summary.exit_status, 130);
}

#[test]
fn a_clean_run_is_one_line() {
    let clean = summary(vec![Outcome::Exit(0); 3], false);
    assert!(clean.all_ok());
    assert_eq!(clean.text(), "sshoal: 3 of 3 hosts ok, in 12.3 s\n");
    assert_eq!(
        summary(vec![Outcome::Exit(0)], false).text(),
        "sshoal: 1 of 1 host ok, in 12.3 s\n"
    );
}

#[test]
fn examples_are_bounded() {
    let each = |n: u32| failed(FailureKind::Protocol, "x", &format!("remedy {n}"));
    let summary = summary((0..100).map(each).collect(), false);
    assert_eq!(
        (summary.failures.len(), summary.failures[0].examples.len()),
        (1, MAX_EXAMPLES)
    );
    assert_eq!(summary.exit_status, 3);
}

#[test]
fn different_failures_of_one_kind_are_told_and_those_that_differ_by_the_host_alone_once() {
    let refused = |n: u32| {
        let detail = format!("connecting to 10.0.0.{n} port 2222: Connection refused");
        failed(FailureKind::Protocol, &detail, "look")
    };
    let named = |n: u32| {
        let detail = format!("jump host web{n}: no");
        failed(FailureKind::Protocol, &detail, "look")
    };
    let outcomes = vec![refused(1), refused(2), named(3), named(4), refused(5)];
    let expected = "protocol: web[1-5] (5)
    web1: connecting to 10.0.0.1 port 2222: Connection refused
    web3: jump host web3: no
    to do: look
";
    let text = summary(outcomes.clone(), false).text();
    assert!(text.ends_with(expected), "{text}");

    let other = |words: &str| failed(FailureKind::Protocol, words, "look elsewhere");
    let more = [outcomes, vec![other("a"), other("b")]].concat();
    let text = summary(more, false).text();
    let end = "    to do: look
    web6: a
    to do: look elsewhere
    on others it was something else: -v or --json tells of each
";
    assert!(text.ends_with(end), "{text}");
}

#[test]
fn a_host_s_name_is_no_difference() {
    let failure = |host: &str| {
        let detail = format!("looking up {host}: no such name");
        Failure::new(FailureKind::Resolve, detail)
    };
    assert_eq!(gist("db", &failure("db")), gist("o", &failure("o")));
    assert_ne!(gist("db", &failure("db")), gist("db", &failure("gateway")));
}
