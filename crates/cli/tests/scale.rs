//! Ten thousand hosts from one process, and fifty thousand.

#![allow(clippy::unwrap_used)]

mod support;

use std::process::{Child, Command, Stdio};

use sshoal_testbed::simulated::SimulationSpec;
use support::program::Running;
use support::{Shoal, User, testbed_program, wait_until};

const HOSTS: usize = 10_000;
/// Hosts that run a command at the same time: more than without `-p`. As many as above would take their own program
/// more descriptors than a process can count on.
const AT_ONCE: usize = 4000;
/// T4: what a whole run over them may take of memory. An unoptimised build keeps to it as well.
const MEMORY_LIMIT: u64 = 400 * 1024 * 1024;

/// Simulated hosts in processes of their own: one process would run out of descriptors.
struct Hosts {
    simulate: Child,
    dir: tempfile::TempDir,
}

impl Hosts {
    fn start(hosts: usize, base: &str) -> Hosts {
        let dir = tempfile::tempdir().unwrap();
        let mut simulate = Command::new(testbed_program());
        simulate
            .args(["simulate", "--hosts", &hosts.to_string()])
            .args(["--port", "0", "--base", base, "--until-eof", "--dir"])
            .arg(dir.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null());
        let mut simulate = simulate.spawn().unwrap();
        wait_until("the hosts listen", || {
            assert!(simulate.try_wait().unwrap().is_none(), "they have ended");
            dir.path().join("ready").exists()
        });
        Hosts { simulate, dir }
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        // The end of its input ends it.
        self.simulate.stdin.take();
        self.simulate.wait().unwrap();
    }
}

#[test]
fn ten_thousand_hosts_are_all_ok() {
    let hosts = Hosts::start(HOSTS, "127.28.0.0");
    let file = |name: &str| hosts.dir.path().join(name).to_str().unwrap().to_owned();
    let user = User::new();
    let mut command = user.run(&[
        "-F",
        &file("ssh_config"),
        "-f",
        &file("hosts"),
        "--json",
        "true",
    ]);
    let ended = Running::start(&mut command)
        .wait()
        .expect(0)
        .expect_memory_below(MEMORY_LIMIT);
    let records = ended.records();
    assert_eq!((records.summary.hosts, records.summary.ok), (HOSTS, HOSTS));
    let again = records
        .hosts
        .iter()
        .filter(|record| record.attempts != 1)
        .count();
    assert_eq!(again, 0, "nobody needed a second attempt");
    assert_eq!(records.by_name().len(), HOSTS);
}

#[test]
fn as_many_hosts_as_are_allowed_run_at_the_same_time() {
    let mut spec = SimulationSpec::new(AT_ONCE as u32);
    spec.base = [127, 29, 0, 0].into();
    let shoal = Shoal::simulate(&spec);
    // Each says a number every five seconds.
    let line = "slow 1000000 5000";
    let mut command = shoal.command(&["--json", "--record", "-p", "10000", line]);
    let running = Running::start(&mut command);
    let all = AT_ONCE as u64;
    wait_until("all run the command", || shoal.hosts.totals().execs == all);
    let totals = shoal.hosts.totals();
    assert_eq!((totals.open, totals.peak_open), (all, all));
    assert_eq!(totals.connections, all, "nobody needed a second one");
    wait_until("all commands are heard of", || {
        let recorded = shoal.recorded();
        let first = recorded.lines().filter(|line| line.ends_with(": 1"));
        first.count() == AT_ONCE
    });
    running.interrupt();
    let summary = running.wait().expect(130).records().summary;
    assert_eq!((summary.hosts, summary.signalled), (AT_ONCE, AT_ONCE));
}

/// A minute of CPU time, the hosts' own included.
#[test]
fn fifty_thousand_hosts_need_no_more_than_256_descriptors() {
    const MANY: usize = 50_000;
    let hosts = Hosts::start(MANY, "127.30.0.0");
    let dir = hosts.dir.path().display();
    let user = User::new();
    let mut command = user.shell(&format!(
        "ulimit -n 256 && exec sshoal run -F {dir}/ssh_config -f {dir}/hosts --json true"
    ));
    let ended = Running::start(&mut command)
        .wait()
        .expect(0)
        .expect_memory_below(MEMORY_LIMIT);
    let summary = ended.records().summary;
    assert_eq!((summary.hosts, summary.ok), (MANY, MANY));
}
