//! T14: a tenth of 2,000 hosts is in trouble. Each of them ends in its right kind of failure, and nobody else notices.

#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{ChildStdout, Command};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use sshoal_testbed::simulated::SimulationSpec;
use support::Shoal;
use support::program::{Ended, Running};
use support::records::HostRecord;

const HOSTS: usize = 2000;
/// Every so many hosts one is in trouble.
const BAD_EVERY: usize = 10;
/// What sshoal may use of memory for all of it, in an unoptimised build.
const MEMORY_LIMIT: u64 = 64 * 1024 * 1024;

/// So long that no healthy host misses one on a busy machine.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
const LOGIN_TIMEOUT: Duration = Duration::from_secs(20);
const COMMAND_TIMEOUT: Duration = Duration::from_secs(20);
/// Output that a host with `slow-output` cannot give within [`COMMAND_TIMEOUT`].
const OUTPUT: usize = 8000;

/// One way to be in trouble, and how a host is to end then.
struct Way {
    fault: &'static str,
    failure: &'static str,
    fate: &'static str,
}

/// A failure of no name is none.
const fn way(fault: &'static str, failure: &'static str, fate: &'static str) -> Way {
    Way {
        fault,
        failure,
        fate,
    }
}

const WAYS: &[Way] = &[
    way("refuse", "refused", "not-sent"),
    way("connect-hang", "connect-timeout", "not-sent"),
    way("silent-after-connect", "login-timeout", "not-sent"),
    // The third message is NEWKEYS.
    way("silent-after-message:3", "login-timeout", "not-sent"),
    // Right after the identification: in the middle of the server's KEXINIT.
    way("reset-at:200", "throttled", "not-sent"),
    way("close-at:message+1", "closed", "not-sent"),
    // In the middle of the output.
    way("reset-at:auth+1500", "lost", "ran"),
    way("garbage-banner", "protocol", "not-sent"),
    way("endless-banner", "protocol", "not-sent"),
    way("wrong-host-key", "host-key-changed", "not-sent"),
    way("changed-host-key:1", "host-key-changed", "not-sent"),
    way("unknown-host-key", "host-key-unknown", "not-sent"),
    way("revoked-host-key", "host-key-revoked", "not-sent"),
    way("auth-denied", "auth-denied", "not-sent"),
    way("max-startups", "throttled", "not-sent"),
    way("not-allowed", "throttled", "not-sent"),
    way("slow-output:200", "command-timeout", "ran"),
    // It gives its status, and is not waited for beyond the deadline.
    way("never-close", "", "ran"),
    way("exit-signal:KILL", "signal", "ran"),
];

fn is_bad(host: usize) -> bool {
    host % BAD_EVERY == BAD_EVERY / 2
}

/// What is wrong with a host.
fn way_of(host: usize) -> Option<&'static Way> {
    is_bad(host).then(|| &WAYS[host / BAD_EVERY % WAYS.len()])
}

fn spec_with_faults() -> SimulationSpec {
    let mut spec = SimulationSpec::new(HOSTS as u32);
    spec.base = [127, 20, 0, 0].into();
    for host in 0..HOSTS {
        if let Some(way) = way_of(host) {
            spec.faults
                .push(format!("{host}={}", way.fault).parse().unwrap());
        }
    }
    spec
}

/// A run, and when it had seen the last of the healthy hosts.
struct Timed {
    ended: Ended,
    healthy: Duration,
}

/// Runs to the end, and notes when each host's object comes.
fn timed(command: &mut Command, is_healthy: fn(&HostRecord) -> bool) -> Timed {
    let begun = Instant::now();
    let (tell, told) = mpsc::channel();
    let read = move |stdout: ChildStdout| {
        let mut all = String::new();
        let mut stdout = BufReader::new(stdout);
        let mut last = Duration::ZERO;
        loop {
            let before = all.len();
            if stdout.read_line(&mut all).unwrap() == 0 {
                tell.send(last).unwrap();
                return all.into_bytes();
            }
            let record = serde_json::from_str::<HostRecord>(&all[before..]);
            if record.is_ok_and(|record| is_healthy(&record)) {
                last = begun.elapsed();
            }
        }
    };
    let ended = Running::start_read_by(command, read).wait();
    let healthy = told.recv().unwrap();
    Timed { ended, healthy }
}

fn arguments() -> Vec<String> {
    let seconds = |name: &str, time: Duration| format!("--{name}={}", time.as_secs());
    vec![
        "--json".to_owned(),
        seconds("connect-timeout", CONNECT_TIMEOUT),
        seconds("login-timeout", LOGIN_TIMEOUT),
        seconds("timeout", COMMAND_TIMEOUT),
        format!("yes-bytes {OUTPUT}"),
    ]
}

/// The hosts that are to change their keys show the known ones once.
fn show_first_keys(shoal: &Shoal<sshoal_testbed::simulated::Simulation>) {
    let changing =
        |host: &usize| way_of(*host).is_some_and(|way| way.fault.starts_with("changed-host-key"));
    let names: Vec<String> = (0..HOSTS)
        .filter(changing)
        .map(|host| shoal.name(host))
        .collect();
    shoal.run_on(&names.join(","), &["true"]).expect(0);
}

#[test]
fn each_of_two_hundred_hosts_in_trouble_ends_in_its_kind_and_the_others_well() {
    let mut healthy = SimulationSpec::new(HOSTS as u32);
    healthy.base = [127, 21, 0, 0].into();
    let healthy = Shoal::simulate(&healthy);
    let clean = timed(healthy.command(&[]).args(arguments()), HostRecord::is_ok);
    let ended = clean.ended.expect(0).expect_memory_below(MEMORY_LIMIT);
    assert_eq!(ended.records().summary.ok, HOSTS);
    drop(healthy);

    let shoal = Shoal::simulate(&spec_with_faults());
    show_first_keys(&shoal);
    let faulty = timed(shoal.command(&[]).args(arguments()), HostRecord::is_ok);
    let ended = faulty.ended.expect(3).expect_memory_below(MEMORY_LIMIT);
    check_kinds(&shoal, &ended);

    println!(
        "healthy hosts done after {:.1} s, beside hosts in trouble after {:.1} s: {:.2} times",
        clean.healthy.as_secs_f64(),
        faulty.healthy.as_secs_f64(),
        faulty.healthy.as_secs_f64() / clean.healthy.as_secs_f64(),
    );
}

fn check_kinds(shoal: &Shoal<sshoal_testbed::simulated::Simulation>, ended: &Ended) {
    let records = ended.records();
    let summary = records.summary;
    let failed = |host: &usize| way_of(*host).is_some_and(|way| !way.failure.is_empty());
    let bad = (0..HOSTS).filter(failed).count();
    assert_eq!((summary.hosts, summary.ok), (HOSTS, HOSTS - bad));
    assert_eq!((summary.not_started, summary.interrupted), (0, false));
    let by_name = records.by_name();
    let mut wrong = Vec::new();
    let mut slowest: BTreeMap<&str, u64> = BTreeMap::new();
    for host in 0..HOSTS {
        let record = &by_name[&shoal.name(host)];
        let right = match way_of(host) {
            None => record.is_ok() && record.stdout.as_ref().unwrap().len() == OUTPUT,
            Some(way) => ended_so(record, way),
        };
        if !right {
            wrong.push(format!(
                "{:?}: {record:?}",
                way_of(host).map(|way| way.fault)
            ));
        }
        let total = record.times_us.total.unwrap();
        let most = slowest.entry(record.failure()).or_default();
        *most = total.max(*most);
    }
    println!("the longest a host of each kind took, in microseconds: {slowest:?}");
    assert!(
        wrong.is_empty(),
        "{} are wrong: {:#?}",
        wrong.len(),
        &wrong[..wrong.len().min(20)]
    );
}

#[test]
fn a_server_that_only_looks_like_openssh_is_believed_once() {
    // It numbers its channels from 2, OpenSSH from 0: what was sent to channel 0 along with the login goes astray.
    let mut spec = SimulationSpec::new(1);
    spec.version = "SSH-2.0-OpenSSH_9.2".to_owned();
    let shoal = Shoal::simulate(&spec);
    let first = shoal.run(&["--json", "count k"]).expect(3).records();
    assert_eq!(first.hosts[0].failure(), "lost");
    for _ in 0..2 {
        shoal.run(&["--json", "count k"]).expect(0);
    }
    assert_eq!(shoal.hosts.totals().execs, 2);
}

/// Whether a host has ended as its trouble should make it, and not before its deadline if it had one.
fn ended_so(record: &HostRecord, way: &Way) -> bool {
    let waited = |time: Option<u64>, deadline: Duration| {
        time.is_some_and(|time| Duration::from_micros(time) >= deadline)
    };
    let times = &record.times_us;
    let in_time = match way.failure {
        "connect-timeout" => waited(times.connect, CONNECT_TIMEOUT),
        "login-timeout" => waited(times.login, LOGIN_TIMEOUT),
        "command-timeout" | "" => waited(times.command, COMMAND_TIMEOUT),
        "throttled" | "closed" => record.attempts > 1,
        _ => true,
    };
    record.failure() == way.failure && record.fate == way.fate && in_time
}
