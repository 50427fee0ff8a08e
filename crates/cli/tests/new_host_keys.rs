//! StrictHostKeyChecking accept-new and no: what becomes of the keys of hosts nothing was known of.

#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use sshoal_testbed::simulated::{Simulation, SimulationSpec};
use support::Shoal;
use support::program::{Ended, Running};

const ACCEPT_NEW: [&str; 2] = ["-o", "StrictHostKeyChecking=accept-new"];

fn shoal(hosts: u32) -> Shoal<Simulation> {
    let mut spec = SimulationSpec::new(hosts);
    spec.base = [127, 31, 0, 0].into();
    Shoal::simulate(&spec)
}

/// Name, type and key of each line of the hosts' own known_hosts.
fn true_lines(shoal: &Shoal<Simulation>) -> Vec<String> {
    lines(&shoal.hosts.client_files().known_hosts)
}

fn lines(known_hosts: &str) -> Vec<String> {
    let first_three = |line: &str| line.split(' ').take(3).collect::<Vec<_>>().join(" ");
    known_hosts.lines().map(first_three).collect()
}

/// `sshoal run` on some hosts with a known_hosts of the user's own and these options.
fn command(shoal: &Shoal<Simulation>, hosts: &str, options: &[&str]) -> Command {
    let known = shoal.user.home().join(".ssh/known_hosts");
    let known = format!("UserKnownHostsFile={}", known.display());
    let mut command = shoal.configured(&["-w", hosts, "-o", &known]);
    command.args(options).args(["--json", "true"]);
    command
}

fn run(shoal: &Shoal<Simulation>, hosts: &str, options: &[&str]) -> Ended {
    Running::start(&mut command(shoal, hosts, options)).wait()
}

#[test]
fn twenty_runs_at_once_lose_tear_and_double_no_line() {
    const RUNS: usize = 20;
    const HOSTS_OF_A_RUN: usize = 20;
    let shoal = shoal((RUNS + HOSTS_OF_A_RUN - 1) as u32);
    let known_hosts = shoal.user.home().join(".ssh/known_hosts");
    // Each host is new to many of the runs.
    let hosts = |run: usize| {
        let names: Vec<String> = (run..run + HOSTS_OF_A_RUN)
            .map(|host| shoal.name(host))
            .collect();
        names.join(",")
    };
    for hash in ["HashKnownHosts=no", "HashKnownHosts=yes"] {
        let options = [&ACCEPT_NEW[..], &["-o", hash]].concat();
        let runs: Vec<Running> = (0..RUNS)
            .map(|run| Running::start(&mut command(&shoal, &hosts(run), &options)))
            .collect();
        for run in runs {
            assert_eq!(run.wait().expect(0).records().summary.ok, HOSTS_OF_A_RUN);
        }
        let text = fs::read_to_string(&known_hosts).unwrap();
        let truth: BTreeSet<String> = true_lines(&shoal).into_iter().collect();
        assert_eq!(lines(&text).len(), truth.len(), "{hash}: {text}");
        if hash.ends_with("no") {
            assert_eq!(lines(&text).into_iter().collect::<BTreeSet<_>>(), truth);
        }
        for run in [0, RUNS - 1] {
            let ended = Running::start(&mut command(&shoal, &hosts(run), &[])).wait();
            assert_eq!(ended.expect(0).records().summary.ok, HOSTS_OF_A_RUN);
        }
        fs::remove_file(&known_hosts).unwrap();
    }
}

#[test]
fn a_new_file_is_the_users_alone_and_a_link_stays_one() {
    let shoal = shoal(2);
    let folder = shoal.user.home().join(".ssh");
    let known_hosts = folder.join("known_hosts");
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    run(&shoal, &shoal.name(0), &ACCEPT_NEW).expect(0).says(&[
        "new host keys in",
        "known_hosts",
        &shoal.name(0),
    ]);
    assert_eq!((mode(&folder), mode(&known_hosts)), (0o700, 0o600));
    let moved = shoal.user.home().join("moved");
    fs::rename(&known_hosts, &moved).unwrap();
    symlink(&moved, &known_hosts).unwrap();
    run(&shoal, &shoal.name(1), &["-o", "StrictHostKeyChecking=no"]).expect(0);
    assert!(fs::symlink_metadata(&known_hosts).unwrap().is_symlink());
    assert_eq!(
        lines(&fs::read_to_string(&moved).unwrap()),
        true_lines(&shoal)
    );
}

#[test]
fn two_keys_under_one_name_are_not_both_accepted() {
    for (strict, status, kinds) in [
        ("accept-new", 3, ["", "host-key-changed"]),
        ("no", 0, ["", ""]),
    ] {
        let shoal = shoal(2);
        let hosts = [shoal.name(0), shoal.name(1)].join(",");
        let strict = format!("StrictHostKeyChecking={strict}");
        let options = ["-o", &strict, "-o", "HostKeyAlias=same", "-p", "1"];
        let records = run(&shoal, &hosts, &options)
            .expect(status)
            .records()
            .by_name();
        let found = [0, 1].map(|host| records[&shoal.name(host)].failure().to_owned());
        assert_eq!(found, kinds, "{strict}");
        let text = fs::read_to_string(shoal.user.home().join(".ssh/known_hosts")).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.starts_with("same "), "{text}");
    }
}

#[test]
fn a_file_that_cannot_be_written_costs_no_run_and_is_named_with_the_reason() {
    let shoal = shoal(1);
    let command = |file: &str| {
        let known = format!("UserKnownHostsFile={file}");
        let mut command = shoal.configured(&["-w", &shoal.name(0), "-o", &known]);
        command.args(ACCEPT_NEW).arg("true");
        Running::start(&mut command).wait().expect(0)
    };
    command("/no/such/folder/known_hosts")
        .says(&["/no/such/folder/known_hosts", "No such file or directory"]);
    for nothing in ["/dev/null", "none"] {
        let said = command(nothing).stderr();
        assert!(!said.contains("new host keys"), "{said}");
    }
}
