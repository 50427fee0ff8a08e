//! When a command has ended: its status is there, and there is no more output. No CHANNEL_CLOSE is needed for that, and
//! output that something else keeps open is waited for, as ssh does, until the deadline.

#![allow(clippy::unwrap_used)]

mod support;

use rustix::process::{Pid, Signal, kill_process};
use sshoal_testbed::sshd::SshdSpec;
use support::{Shoal, shared_folder, wait_until};

/// Messages that a host sends before the command's exit-status, and more than it sends in all.
const MESSAGES: std::ops::Range<usize> = 7..16;
/// For hosts that fall silent: long enough for the others on a busy machine.
const DEADLINES: [&str; 2] = ["--timeout=10", "--login-timeout=10"];

/// Each host falls silent after one message more than the one before.
fn silent_ever_later() -> Shoal<sshoal_testbed::simulated::Simulation> {
    let faults = MESSAGES.enumerate();
    let faults: Vec<String> = faults
        .map(|(host, messages)| format!("{host}=silent-after-message:{messages}"))
        .collect();
    let faults: Vec<&str> = faults.iter().map(String::as_str).collect();
    Shoal::simulated(MESSAGES.len() as u32, &faults)
}

#[test]
fn a_status_is_the_result_as_soon_as_there_is_no_more_output_and_at_the_deadline_otherwise() {
    let shoal = silent_ever_later();
    let line = [&DEADLINES[..], &["--json", "true"]].concat();
    let records = shoal.run(&line).expect(3).records().by_name();
    let outcomes: Vec<&str> = (0..MESSAGES.len())
        .map(|host| records[&shoal.name(host)].outcome.as_str())
        .collect();
    let with_status = outcomes
        .iter()
        .position(|outcome| *outcome == "ok")
        .unwrap();
    assert!(
        outcomes[..with_status]
            .iter()
            .all(|outcome| *outcome == "failed"),
        "{outcomes:?}"
    );
    assert!(
        outcomes[with_status..]
            .iter()
            .all(|outcome| *outcome == "ok"),
        "{outcomes:?}"
    );
    let last_without = &records[&shoal.name(with_status - 1)];
    assert_eq!(
        (last_without.failure(), last_without.fate.as_str()),
        ("command-timeout", "ran")
    );
    // After the status comes EOF, then CLOSE: with EOF a host is done, without any deadline.
    let after_eof: Vec<String> = (with_status + 1..MESSAGES.len())
        .map(|host| shoal.name(host))
        .collect();
    assert!(after_eof.len() >= 2);
    shoal.run_on(&after_eof.join(","), &["true"]).expect(0);
}

#[test]
fn a_connection_that_is_lost_between_status_and_eof_says_both() {
    let shoal = silent_ever_later();
    let line = [&DEADLINES[..], &["--json", "true"]].concat();
    let records = shoal.run(&line).expect(3).records().by_name();
    let with_status = (0..MESSAGES.len()).find(|host| records[&shoal.name(*host)].is_ok());
    let messages = MESSAGES.start + with_status.unwrap();
    drop(shoal);

    let shoal = Shoal::simulated(1, &[&format!("0=close-at:message+{messages}")]);
    let record = shoal
        .run(&["--json", "true"])
        .expect(3)
        .records()
        .hosts
        .remove(0);
    assert_eq!((record.failure(), record.fate.as_str()), ("lost", "ran"));
    let detail = record.detail.unwrap();
    assert!(detail.contains("had ended with status 0"), "{detail}");
}

#[test]
fn output_of_what_a_command_leaves_behind_is_waited_for() {
    let shoal = Shoal::real(&SshdSpec::new(1));
    let line = "(while kill -0 $$ 2>/dev/null; do sleep 0.05; done; echo later) & echo now";
    let ended = shoal.run(&["--json", line]).expect(0);
    let record = ended.records().hosts.remove(0);
    assert_eq!(record.stdout.as_deref(), Some("now\nlater\n"));
}

#[test]
fn what_keeps_output_open_for_ever_is_given_up_at_the_deadline_and_the_status_counts() {
    let shoal = Shoal::real(&SshdSpec::new(1));
    let line = "sleep 600 & echo $!; exit 7";
    let ended = shoal.run(&[DEADLINES[0], "--json", line]);
    let ended = ended.expect(1).says(&["keeps its output open"]);
    let record = ended.records().hosts.remove(0);
    let sleeper: i32 = record.stdout.as_deref().unwrap().trim().parse().unwrap();
    kill_process(Pid::from_raw(sleeper).unwrap(), Signal::KILL).unwrap();
    assert_eq!(
        (record.outcome.as_str(), record.fate.as_str()),
        ("exit", "ran")
    );
}

#[test]
fn a_command_whose_time_is_over_is_told_to_end() {
    let shoal = Shoal::real(&SshdSpec::new(1));
    let marks = shared_folder();
    let [begun, mark] = ["begun", "terminated"].map(|name| marks.path().join(name));
    let line = format!(
        "trap 'echo last words; touch {}; exit' TERM; touch {}; while :; do sleep 0.1; done",
        mark.display(),
        begun.display()
    );
    let words = ["-u", "1", "--kill-grace", "20", "--json", &line];
    let mut hosts = Vec::new();
    // On a busy machine its time may be over before it can hear of that.
    wait_until("it has begun before its time is over", || {
        hosts = shoal.run(&words).expect(3).records().hosts;
        begun.exists()
    });
    let record = &hosts[0];
    assert_eq!(record.failure(), "command-timeout");
    assert_eq!(record.stdout.as_deref(), Some("last words\n"));
    wait_until("the command was told", || mark.exists());
}
