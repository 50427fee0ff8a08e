//! Evidence written by hand, and what must be found in it, and what must not.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;
use crate::causes::Resource;
use crate::evidence::{Fact, Login, Span};
use crate::fixtures::{clean, clean_no_root, follow, ms, slow, slow_of};

#[path = "diagnosis_client_tests.rs"]
mod client;
#[path = "diagnosis_host_tests.rs"]
mod host;
#[path = "diagnosis_identity_tests.rs"]
mod identity;
#[path = "diagnosis_load_tests.rs"]
mod load;
#[path = "diagnosis_session_tests.rs"]
mod session;
#[path = "diagnosis_trace_tests.rs"]
mod trace;

/// The findings of our login by name.
fn found(evidence: &Evidence) -> Vec<&'static str> {
    let diagnosis = Diagnosis::of(evidence);
    check_sums(&diagnosis);
    diagnosis
        .findings
        .iter()
        .map(|finding| finding.cause.id)
        .collect()
}

/// The only finding, with how well it is known, and its cost near to this.
fn only(evidence: &Evidence, id: &str, certainty: Certainty, cost_ms: f64) -> Diagnosis {
    let diagnosis = Diagnosis::of(evidence);
    check_sums(&diagnosis);
    let ids: Vec<&str> = diagnosis
        .findings
        .iter()
        .map(|finding| finding.cause.id)
        .collect();
    assert_eq!(ids, [id]);
    let finding = &diagnosis.findings[0];
    assert_eq!(finding.certainty, certainty, "{:?}", finding.evidence);
    let off = finding.cost.abs_diff(ms(cost_ms));
    assert!(
        off <= ms(10.0).max(ms(cost_ms / 10.0)),
        "{:?} for {cost_ms} ms",
        finding.cost
    );
    diagnosis
}

/// What is explained, expected and unexplained is the whole.
fn check_sums(diagnosis: &Diagnosis) {
    for timeline in &diagnosis.timelines {
        let mut whole = timeline.between;
        for stage in &timeline.stages {
            let shares: Duration = stage.shares.iter().map(|share| share.time).sum();
            assert_eq!(shares, stage.sample.median, "{:?}", stage.phase);
            whole += shares;
        }
        assert_eq!(whole, timeline.total);
    }
}

/// What a cause costs our login; nothing where it is not found.
fn cost_of(evidence: &Evidence, id: &str) -> Duration {
    let diagnosis = Diagnosis::of(evidence);
    let found = diagnosis.findings.iter().find(|it| it.cause.id == id);
    found.map_or(Duration::ZERO, |it| it.cost)
}

fn status(diagnosis: &Diagnosis, id: &str) -> Status {
    let verdict = diagnosis
        .verdicts
        .iter()
        .find(|verdict| verdict.cause.id == id);
    verdict.unwrap().status.clone()
}

fn is_ruled_out(diagnosis: &Diagnosis, id: &str) -> bool {
    matches!(status(diagnosis, id), Status::RuledOut(_))
}

fn text(evidence: &mut Evidence, name: &str, text: &str) {
    evidence.facts.insert(name, text);
}

fn time(evidence: &mut Evidence, name: &str, time_ms: f64) {
    evidence.facts.insert(name, Fact::Time(ms(time_ms)));
}

#[test]
fn clean_logins_are_silent_over_loopback_and_over_a_long_line() {
    for round_trip in [0.05, 0.9, 20.0, 100.0, 250.0] {
        for evidence in [clean(round_trip), clean_no_root(round_trip)] {
            let diagnosis = Diagnosis::of(&evidence);
            assert_eq!(found(&evidence), [""; 0], "{round_trip} ms");
            assert!(
                diagnosis.ssh_findings.is_empty(),
                "{:?}",
                diagnosis.ssh_findings
            );
            let ruled_out = diagnosis
                .verdicts
                .iter()
                .filter(|verdict| matches!(verdict.status, Status::RuledOut(_)));
            assert_eq!(ruled_out.count(), diagnosis.verdicts.len());
            let not_found =
                |verdict: &ResourceVerdict| matches!(verdict.status, Status::RuledOut(_));
            assert!(
                diagnosis.resources.iter().all(not_found),
                "{:?}",
                diagnosis.resources
            );
        }
    }
}

#[test]
fn noise_is_not_found() {
    let mut evidence = clean(0.05);
    for (count, login) in evidence.logins.iter_mut().enumerate() {
        for span in login
            .spans
            .iter_mut()
            .filter(|span| span.phase == Phase::FirstRequest)
        {
            span.duration += ms(60.0 * f64::from(u32::try_from(count / 2).unwrap()));
        }
        follow(&mut login.spans);
    }
    assert_eq!(found(&evidence), [""; 0]);
}

#[test]
fn a_single_cause_is_found_from_twenty_milliseconds_on() {
    for by in [20.0, 50.0, 200.0, 700.0] {
        let mut evidence = clean_no_root(0.05);
        slow(&mut evidence, Phase::SignedRequest, by);
        only(&evidence, "pam-account", Certainty::Suspected, by);
    }
}

#[test]
fn two_causes_are_told_apart() {
    let mut evidence = clean_no_root(0.05);
    slow(&mut evidence, Phase::ChannelOpen, 800.0);
    time(&mut evidence, "host.motd_scripts.time", 800.0);
    slow(&mut evidence, Phase::FirstOutput, 260.0);
    time(&mut evidence, "host.shell.time", 265.0);
    assert_eq!(found(&evidence), ["pam-motd", "shell-startup"]);
}

#[test]
fn nothing_measured_is_nothing_found_and_nothing_ruled_out() {
    let mut evidence = clean(0.05);
    evidence.logins.clear();
    let diagnosis = Diagnosis::of(&evidence);
    assert_eq!(diagnosis.all_findings().count(), 0);
    assert!(diagnosis.timelines.is_empty());
    assert!(
        !diagnosis
            .verdicts
            .iter()
            .any(|verdict| matches!(verdict.status, Status::RuledOut(_)))
    );
}

#[test]
fn without_our_login_that_of_ssh_is_judged() {
    let mut evidence = clean_no_root(0.05);
    evidence.logins.retain(|login| login.by == Client::Ssh);
    slow(&mut evidence, Phase::ChannelOpen, 800.0);
    time(&mut evidence, "host.motd_scripts.time", 800.0);
    let diagnosis = only(&evidence, "pam-motd", Certainty::Proven, 800.0);
    assert_eq!(diagnosis.findings[0].by, Client::Ssh);
}

proptest! {
    #[test]
    fn clean_logins_of_any_round_trip_and_jitter_are_silent(
        round_trip in 0.0..400.0_f64,
        jitter in prop::collection::vec(0.5..1.3_f64, 110),
        no_root: bool,
    ) {
        let mut evidence = if no_root { clean_no_root(round_trip) } else { clean(round_trip) };
        let mut jitter = jitter.into_iter();
        for login in &mut evidence.logins {
            for span in &mut login.spans {
                // What sshd's part of a phase takes differs, not the line.
                let own = span.duration.min(ms(12.0));
                span.duration = span.duration - own + own.mul_f64(jitter.next().unwrap());
            }
            follow(&mut login.spans);
        }
        let diagnosis = Diagnosis::of(&evidence);
        check_sums(&diagnosis);
        let ids: Vec<_> = diagnosis.findings.iter().map(|finding| finding.cause.id).collect();
        prop_assert!(ids.is_empty(), "{:?}", ids);
    }

    #[test]
    fn whatever_is_slow_is_explained_or_told_as_unexplained(
        slower in prop::collection::vec(0.0..3_000.0_f64, Phase::ALL.len()),
        no_root: bool,
    ) {
        let mut evidence = if no_root { clean_no_root(1.0) } else { clean(1.0) };
        for (phase, by) in Phase::ALL.into_iter().zip(slower) {
            slow(&mut evidence, phase, by);
        }
        let diagnosis = Diagnosis::of(&evidence);
        check_sums(&diagnosis);
        for finding in &diagnosis.findings {
            let shares: Duration = finding.shares.iter().map(|(_, time)| *time).sum();
            prop_assert_eq!(shares, finding.cost);
            prop_assert!(finding.cost >= reckoning::LEAST);
        }
    }

    #[test]
    fn no_facts_make_it_panic(numbers in prop::collection::vec(-1e18..1e18_f64, 12), words: String) {
        let mut evidence = clean_no_root(0.05);
        let names: Vec<String> = evidence.facts.iter().map(|(name, _)| name.to_owned()).collect();
        for (name, number) in names.iter().zip(numbers.iter().cycle()) {
            let fact = match number.abs() as u64 % 3 {
                0 => Fact::Number(*number),
                1 => Fact::Text(words.clone()),
                _ => Fact::Time(Duration::from_secs(number.abs() as u64 % 1_000_000)),
            };
            evidence.facts.insert(name.clone(), fact);
        }
        check_sums(&Diagnosis::of(&evidence));
    }
}
