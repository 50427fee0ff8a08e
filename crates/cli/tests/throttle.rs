//! Servers that turn connections away for now, and keys that they reject: what is tried again runs once.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::PathBuf;

use sshoal_testbed::sshd::key_files::{KeyType, generate};
use sshoal_testbed::sshd::{Layout, RealSshd, SshdSpec};
use support::{Shoal, shared_folder};

#[test]
fn hosts_that_turn_connections_away_are_tried_again_and_run_the_command_once() {
    let shoal = Shoal::simulated(
        4,
        &["0=max-startups@1", "1=max-startups@2", "2=not-allowed@2"],
    );
    let records = shoal.run(&["--json", "count runs"]).expect(0).records();
    let records = records.by_name();
    for (host, attempts) in [2, 3, 3, 1].into_iter().enumerate() {
        let record = &records[&shoal.name(host)];
        assert_eq!(
            (record.is_ok(), record.attempts),
            (true, attempts),
            "{record:?}"
        );
        assert_eq!(shoal.hosts.count(host, "runs"), 1);
    }
    assert_eq!(shoal.hosts.totals().execs, 4);
}

#[test]
fn connections_that_end_before_anything_was_sent_are_made_anew_and_run_the_command_once() {
    let ends = [
        // As sshd drops what is over MaxStartups, before it says who it is, and after.
        ("close-at:0@1", 2),
        ("reset-at:0@2", 3),
        ("close-at:10@1", 2),
        ("reset-at:100@1", 2),
        // After KEXINIT, and after the key exchange's reply.
        ("close-at:message+1@1", 2),
        ("reset-at:message+1@1", 2),
        ("close-at:message+2@1", 2),
        ("reset-at:message+2@1", 2),
    ];
    let faults: Vec<String> = (0..)
        .zip(ends)
        .map(|(host, (end, _))| format!("{host}={end}"))
        .collect();
    let faults: Vec<&str> = faults.iter().map(String::as_str).collect();
    let shoal = Shoal::simulated(ends.len() as u32, &faults);
    let records = shoal.run(&["--json", "count runs"]).expect(0).records();
    let records = records.by_name();
    for (host, (end, attempts)) in ends.into_iter().enumerate() {
        let record = &records[&shoal.name(host)];
        assert_eq!(
            (record.is_ok(), record.attempts),
            (true, attempts),
            "{end}: {record:?}"
        );
        assert_eq!(shoal.hosts.count(host, "runs"), 1);
    }
}

#[test]
fn a_server_that_hangs_up_on_refused_keys_has_answered_and_is_not_asked_again() {
    // KEXINIT, the reply, NEWKEYS, EXT_INFO, SERVICE_ACCEPT, USERAUTH_FAILURE: then the next key would be tried.
    let shoal = Shoal::simulated(1, &["0=auth-denied", "0=close-at:message+6"]);
    let path: PathBuf = shoal.user.home().join("another");
    generate(&path, KeyType::Ed25519, "").unwrap();
    let ended = shoal.run(&["-i", path.to_str().unwrap(), "--json", "count runs"]);
    let record = ended.expect(3).records().hosts.remove(0);
    assert_eq!(
        (record.failure(), record.attempts),
        ("auth-denied", 1),
        "{record:?}"
    );
    let detail = record.detail.as_deref().unwrap();
    assert!(
        detail.contains("closed the connection") && detail.contains("another"),
        "{detail}"
    );
    assert_eq!(record.fate, "not-sent");
}

#[test]
fn a_real_server_that_admits_one_at_a_time_serves_all_in_the_end() {
    // Few enough that each has its turn within its attempts on a busy machine, too.
    const HOSTS: u32 = 4;
    let mut spec = SshdSpec::new(HOSTS).line("MaxStartups 1");
    // One server for all: it is its connections that are counted.
    spec.layout = Layout::Shared;
    let shoal = Shoal::real(&spec);
    let marks = shared_folder();
    let line = format!("echo ran >> {}/%h", marks.path().display());
    let records = shoal.run(&["--json", &line]).expect(0).records();

    let again = records
        .hosts
        .iter()
        .filter(|record| record.attempts > 1)
        .count();
    assert!(again > 0, "nobody was turned away");
    assert!(
        shoal.hosts.log(0).contains("MaxStartups"),
        "{}",
        shoal.hosts.log(0)
    );
    for host in 0..HOSTS as usize {
        let mark = fs::read_to_string(marks.path().join(shoal.name(host)));
        assert_eq!(mark.unwrap(), "ran\n");
    }
}

/// A key that no server knows.
fn stranger(shoal: &Shoal<RealSshd>, name: &str) -> String {
    let path: PathBuf = shoal.user.home().join(name);
    generate(&path, KeyType::Ed25519, "").unwrap();
    path.to_str().unwrap().to_owned()
}

/// How often sshd was sent a CHANNEL_OPEN (90) before it had let the user in: with a pipelined exec behind it.
fn discarded(shoal: &Shoal<RealSshd>) -> usize {
    // sshd writes its log behind the client's back.
    shoal.wait_for_sessions();
    shoal
        .hosts
        .log(0)
        .matches("dispatch_protocol_error: type 90")
        .count()
}

#[test]
fn a_rejected_key_with_a_pipelined_command_is_followed_by_the_next_and_it_runs_once() {
    let shoal = Shoal::real(&SshdSpec::new(1));
    let marks = shared_folder();
    let line = format!("echo ran >> {}/mark", marks.path().display());
    let (first, second) = (stranger(&shoal, "first"), stranger(&shoal, "second"));
    let ended = shoal.run(&["-i", &first, "-i", &second, "--json", &line]);
    let record = ended.expect(0).records().hosts.remove(0);

    assert_eq!(
        record.attempts, 1,
        "all keys go over one connection: {record:?}"
    );
    assert_eq!(
        fs::read_to_string(marks.path().join("mark")).unwrap(),
        "ran\n"
    );
    assert!(
        discarded(&shoal) > 0,
        "nothing was pipelined: {}",
        shoal.hosts.log(0)
    );
    assert_eq!(shoal.hosts.logins(), 1);
}

#[test]
fn when_all_keys_are_rejected_the_command_is_known_not_to_have_run() {
    let shoal = Shoal::real(&SshdSpec::new(1));
    let marks = shared_folder();
    let line = format!("echo ran >> {}/mark", marks.path().display());
    let key = stranger(&shoal, "key");
    let known_hosts = format!("UserKnownHostsFile={}", shoal.file("known_hosts"));
    let port = format!("Port={}", shoal.hosts.addresses()[0].port());
    let mut command = shoal
        .user
        .run(&["-F", "none", "-i", &key, "-l", shoal.hosts.user()]);
    command.args(["-o", "IdentitiesOnly=yes", "-o", &known_hosts, "-o", &port]);
    command.args(["-w", &shoal.name(0), "--json", &line]);
    let ended = support::program::Running::start(&mut command).wait();
    let record = ended.expect(3).records().hosts.remove(0);

    assert_eq!(record.failure(), "auth-denied", "{record:?}");
    assert_eq!(record.fate, "proven-discarded", "{record:?}");
    assert!(
        discarded(&shoal) > 0,
        "nothing was pipelined: {}",
        shoal.hosts.log(0)
    );
    assert!(!marks.path().join("mark").exists());
}

#[test]
fn a_server_that_allows_one_try_denies_a_rejected_key_and_the_command_is_known_not_to_have_run() {
    let shoal = Shoal::real(&SshdSpec::new(1).line("MaxAuthTries 1"));
    let marks = shared_folder();
    let line = format!("echo ran >> {}/mark", marks.path().display());
    let key = stranger(&shoal, "key");
    // The second key would be right.
    let ended = shoal.run(&["-i", &key, "--json", &line]);
    let record = ended.expect(3).records().hosts.remove(0);

    assert_eq!(record.failure(), "auth-denied", "{record:?}");
    assert_eq!(
        (record.fate.as_str(), record.attempts),
        ("proven-discarded", 1)
    );
    let detail = record.detail.as_deref().unwrap();
    assert!(
        detail.contains("Too many authentication failures") && detail.contains(&key),
        "{detail}"
    );
    assert!(!marks.path().join("mark").exists());
    assert_eq!(shoal.hosts.logins(), 0);
    // The key alone is at fault: a right one logs in, in one flight as before.
    shoal.run(&[&line]).expect(0);
    assert_eq!(
        fs::read_to_string(marks.path().join("mark")).unwrap(),
        "ran\n"
    );
}
