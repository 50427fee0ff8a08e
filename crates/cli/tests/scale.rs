//! Ten thousand hosts from one process.

#![allow(clippy::unwrap_used)]

mod support;

use std::process::{Child, Command, Stdio};

use support::program::Running;
use support::{User, testbed_program, wait_until};

const HOSTS: usize = 10_000;
/// T4: what a whole run over them may take of memory. An unoptimised build keeps to it as well.
const MEMORY_LIMIT: u64 = 400 * 1024 * 1024;

/// Simulated hosts in processes of their own: one process would run out of descriptors.
struct Hosts {
    simulate: Child,
    dir: tempfile::TempDir,
}

impl Hosts {
    fn start() -> Hosts {
        let dir = tempfile::tempdir().unwrap();
        let mut simulate = Command::new(testbed_program());
        simulate
            .args(["simulate", "--hosts", &HOSTS.to_string()])
            .args([
                "--port",
                "0",
                "--base",
                "127.28.0.0",
                "--until-eof",
                "--dir",
            ])
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
    let hosts = Hosts::start();
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
