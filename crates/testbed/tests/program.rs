//! The program `sshoal-testbed`, as its users see it.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use support::{DEADLINE, text};

fn testbed() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sshoal-testbed"));
    command.stdin(Stdio::null());
    command
}

fn with_hosts(arguments: &[&str]) -> Output {
    testbed()
        .args(["with-hosts", "--port", "0", "--base", "127.4.0.0"])
        .args(arguments)
        .output()
        .unwrap()
}

fn wait_for(path: &Path) {
    let deadline = Instant::now() + DEADLINE;
    while !path.exists() {
        assert!(Instant::now() < deadline, "{} never came", path.display());
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn json(line: &str) -> serde_json::Value {
    serde_json::from_str(line).unwrap()
}

#[test]
fn with_hosts_runs_a_command_beside_them_and_exits_with_its_status() {
    let script = "head -3 {dir}/hosts; ssh -F {dir}/ssh_config 127.4.0.2 exit 3";
    let output = with_hosts(&["--hosts", "3", "--counters", "--", "sh", "-c", script]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert_eq!(text(&output.stdout), "127.4.0.1\n127.4.0.2\n127.4.0.3\n");
    let counters = json(text(&output.stderr).lines().last().unwrap());
    assert_eq!(counters["logins"], 1);
    assert_eq!(counters["execs"], 1);
}

#[test]
fn a_killed_command_gives_the_shells_status_and_a_missing_one_127() {
    let killed = with_hosts(&["--hosts", "1", "--", "sh", "-c", "kill -TERM $$"]);
    assert_eq!(killed.status.code(), Some(128 + 15));
    let missing = with_hosts(&["--hosts", "1", "--", "/no/such/program"]);
    assert_eq!(missing.status.code(), Some(127));
}

#[test]
fn the_command_has_the_limit_of_files_that_the_program_was_given() {
    let program = env!("CARGO_BIN_EXE_sshoal-testbed");
    let line = format!(
        "ulimit -S -n 100; exec {program} with-hosts --port 0 --base 127.4.0.0 --hosts 100 \
         -- sh -c 'ulimit -S -n'"
    );
    let output = Command::new("sh").args(["-c", &line]).output().unwrap();
    assert_eq!(text(&output.stdout), "100\n", "{output:?}");
}

#[test]
fn more_hosts_than_one_process_may_have_files_for_are_served_by_several() {
    let program = env!("CARGO_BIN_EXE_sshoal-testbed");
    // 100 hosts need 264 descriptors.
    let line = format!(
        "ulimit -n 150; exec {program} with-hosts --port 0 --base 127.4.8.0 --hosts 100 \
         --fault 99=auth-denied --counters -- sh -c '\
         for h in 1 43 44 87 99; do ssh -F {{dir}}/ssh_config 127.4.8.$h hostname; done; \
         ssh -F {{dir}}/ssh_config 127.4.8.100 true'"
    );
    let output = Command::new("sh").args(["-c", &line]).output().unwrap();
    let names = text(&output.stdout);
    assert_eq!(names, "sim0\nsim42\nsim43\nsim86\nsim98\n", "{output:?}");
    assert_eq!(output.status.code(), Some(255), "the last host's fault");
    let counters = json(text(&output.stderr).lines().last().unwrap());
    assert_eq!(counters["logins"], 5);
}

#[test]
fn impossible_hosts_are_refused_with_a_reason() {
    for (arguments, reason) in [
        (vec!["--hosts", "0"], "at least one host"),
        (
            vec!["--hosts", "1", "--fault", "0=explode"],
            "no fault is called",
        ),
        (vec!["--hosts", "1", "--base", "10.0.0.0"], "127.0.0.0/8"),
    ] {
        let output = testbed()
            .args(["with-hosts", "--port", "0"])
            .args(&arguments)
            .args(["--", "true"])
            .output()
            .unwrap();
        assert!(!output.status.success());
        let stderr = text(&output.stderr);
        assert!(stderr.contains(reason), "{arguments:?}: {stderr}");
    }
}

/// Starts a subcommand that stays, and waits until it is ready.
fn staying(arguments: &[&str], dir: &Path) -> Child {
    let child = testbed()
        .args(arguments)
        .args(["--until-eof", "--dir"])
        .arg(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for(&dir.join("ready"));
    child
}

#[test]
fn simulate_writes_its_files_counts_on_request_and_ends_with_its_input() {
    let dir = tempfile::tempdir().unwrap();
    let faults = dir.path().join("faults");
    fs::write(&faults, "# one bad host\n1=wrong-host-key\n").unwrap();
    let arguments = [
        "simulate",
        "--hosts",
        "2",
        "--port",
        "0",
        "--base",
        "127.4.16.0",
        "--faults-from",
    ];
    let arguments = [&arguments[..], &[faults.to_str().unwrap()]].concat();
    let mut child = staying(&arguments, dir.path());

    let mode = |file: &str| {
        fs::metadata(dir.path().join(file))
            .unwrap()
            .permissions()
            .mode()
    };
    assert_eq!(mode("id_ed25519") & 0o777, 0o600);
    let login = |host: &str| {
        let config = dir.path().join("ssh_config");
        Command::new("ssh")
            .arg("-F")
            .arg(config)
            .args([host, "true"])
            .output()
            .unwrap()
    };
    assert!(login("127.4.16.1").status.success());
    assert!(text(&login("127.4.16.2").stderr).contains("IDENTIFICATION HAS CHANGED"));

    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    kill_process(Pid::from_child(&child), Signal::USR1).unwrap();
    let counters = json(&lines.next().unwrap().unwrap());
    assert_eq!(
        (&counters["logins"], &counters["connections"]),
        (&1.into(), &2.into())
    );

    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    assert_eq!(json(&lines.next().unwrap().unwrap())["logins"], 1);
    assert!(lines.next().is_none());
}

#[test]
fn sshd_does_the_same_with_real_servers_and_ends_on_sigterm() {
    let dir = tempfile::tempdir().unwrap();
    let arguments = [
        "sshd",
        "--hosts",
        "2",
        "--port",
        "0",
        "--base",
        "127.4.32.0",
        "-o",
        "Match All",
        "-o",
        "ForceCommand exit 9",
    ];
    let mut child = staying(&arguments, dir.path());
    let config = dir.path().join("ssh_config");
    let output = Command::new("ssh")
        .arg("-F")
        .arg(config)
        .args(["127.4.32.2", "true"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(9), "{output:?}");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert!(child.wait().unwrap().success());
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(json(&line)["logins"], 1);
}

#[test]
fn with_sshd_runs_a_command_beside_real_servers() {
    let script = "ssh -F {dir}/ssh_config 127.4.40.1 'echo $0'";
    let output = testbed()
        .args([
            "with-sshd",
            "--hosts",
            "1",
            "--port",
            "0",
            "--base",
            "127.4.40.0",
            "--counters",
        ])
        .args(["--", "sh", "-c", script])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        json(text(&output.stderr).lines().last().unwrap())["logins"],
        1
    );
}
