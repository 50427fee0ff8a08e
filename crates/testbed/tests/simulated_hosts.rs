//! Healthy simulated hosts, as the installed OpenSSH client sees them.

#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command, Stdio};

use sshoal_testbed::simulated::SimulationSpec;
use support::{askpass, simulate, simulate_spec, ssh_command, text};

#[test]
fn commands_do_as_documented() {
    let hosts = simulate(2, &[]);
    for (command, status, stdout, stderr) in [
        ("true", 0, "", ""),
        ("false", 1, "", ""),
        ("exit 42", 42, "", ""),
        ("echo one two", 0, "one two\n", ""),
        ("echo oops >&2", 0, "", "oops\n"),
        ("hostname", 0, "sim1\n", ""),
        ("sleep 0.01", 0, "", ""),
        ("yes-bytes 7", 0, "y\ny\ny\ny", ""),
        ("slow 3 1", 0, "1\n2\n3\n", ""),
        ("count runs", 0, "1\n", ""),
        ("count runs", 0, "2\n", ""),
        ("count-read runs", 0, "2\n", ""),
        (
            "uptime",
            0,
            " up 1 days, load average: 0.00, 0.00, 0.00\n",
            "",
        ),
        ("uname", 127, "", "sim1: uname: command not found\n"),
        // ssh has no other way to say that a signal ended the command.
        ("kill-self KILL", 255, "", ""),
    ] {
        let output = hosts.ssh(1, &[command]);
        assert_eq!(output.status.code(), Some(status), "{command}: {output:?}");
        assert_eq!(text(&output.stdout), stdout, "{command}");
        assert_eq!(text(&output.stderr), stderr, "{command}");
    }
    assert_eq!(hosts.simulation.count(1, "runs"), 2);
    assert_eq!(hosts.simulation.count(0, "runs"), 0, "a counter a host");

    let totals = hosts.simulation.totals();
    assert_eq!((totals.logins, totals.execs, totals.refusals), (15, 15, 0));
    assert_eq!(totals.peak_open, 1);
}

#[test]
fn standard_input_comes_back_whole_and_is_counted() {
    let hosts = simulate(1, &[]);
    let sent: Vec<u8> = (0..20_000_000_u32).map(|byte| (byte * 7) as u8).collect();
    for (command, expected) in [("cat", sent.clone()), ("wc -c", b"20000000\n".to_vec())] {
        let mut ssh = ssh_command(hosts.dir.path(), &hosts.address(0))
            .arg(command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = ssh.stdin.take().unwrap();
        let output = std::thread::scope(|scope| {
            scope.spawn(|| {
                stdin.write_all(&sent).unwrap();
                drop(stdin);
            });
            ssh.wait_with_output().unwrap()
        });
        assert!(output.status.success());
        assert!(output.stdout == expected, "{command} gave something else");
    }
}

#[test]
fn every_host_has_the_key_that_known_hosts_says_and_no_two_the_same() {
    let hosts = simulate(300, &[]);
    let port = hosts.address(0).port().to_string();
    let scan = Command::new("ssh-keyscan")
        .args(["-T", "60", "-t", "ed25519", "-p", &port, "-f"])
        .arg(hosts.dir.path().join("hosts"))
        .stderr(Stdio::null())
        .output()
        .unwrap();
    // Name, type and key; the comment is nobody's business.
    let lines = |text: &str| -> BTreeSet<String> {
        text.lines()
            .map(|line| line.splitn(4, ' ').take(3).collect::<Vec<_>>().join(" "))
            .collect()
    };
    let found = lines(&text(&scan.stdout));
    assert_eq!(found, lines(&hosts.simulation.client_files().known_hosts));
    let keys: BTreeSet<_> = found.iter().map(|line| line.rsplit(' ').next()).collect();
    assert_eq!(keys.len(), 300);
}

#[test]
fn the_same_seed_gives_the_same_keys_and_another_gives_others() {
    let spec = SimulationSpec::new(5);
    let other = SimulationSpec {
        seed: 1,
        ..spec.clone()
    };
    let keys = |spec: &SimulationSpec| -> Vec<String> {
        let known_hosts = spec.client_files(22).unwrap().known_hosts;
        let key = |line: &str| line.split(' ').nth(2).unwrap().to_owned();
        known_hosts.lines().map(key).collect()
    };
    assert_eq!(keys(&spec), keys(&spec));
    assert!(keys(&spec).iter().all(|key| !keys(&other).contains(key)));
}

#[test]
fn hosts_rekey_when_asked_to() {
    let hosts = simulate_spec(&SimulationSpec {
        rekey_bytes: Some(1 << 20),
        ..SimulationSpec::new(1)
    });
    let output = hosts.ssh(0, &["-v", "yes-bytes 5000000"]);
    assert!(output.status.success());
    assert_eq!(output.stdout.len(), 5_000_000);
    let exchanges = text(&output.stderr)
        .matches("SSH2_MSG_KEXINIT received")
        .count();
    assert!(exchanges >= 4, "{exchanges} key exchanges in 5 MB");
}

#[test]
fn a_password_is_accepted_where_one_is_set() {
    let hosts = simulate_spec(&SimulationSpec {
        password: Some("right".to_owned()),
        ..SimulationSpec::new(1)
    });
    let login = |password: &str| {
        ssh_command(hosts.dir.path(), &hosts.address(0))
            .env("SSH_ASKPASS", askpass(hosts.dir.path(), password))
            .env("SSH_ASKPASS_REQUIRE", "force")
            .args([
                "-o",
                "BatchMode=no",
                "-o",
                "PubkeyAuthentication=no",
                "true",
            ])
            .status()
            .unwrap()
            .success()
    };
    assert!(login("right"));
    assert!(!login("wrong"));
}

#[test]
fn another_key_than_the_clients_is_refused() {
    let hosts = simulate(1, &[]);
    let key = hosts.dir.path().join("other");
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(&key)
        .status()
        .unwrap();
    assert!(made.success());
    // The command line's key comes before the configuration's: it is refused, then that is taken.
    let output = hosts.ssh(0, &["-i", key.to_str().unwrap(), "true"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(hosts.simulation.totals().refusals, 1);
}
