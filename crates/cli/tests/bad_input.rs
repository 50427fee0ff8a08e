//! What cannot work is refused in a clear sentence, with the documented status, and nothing is half done.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::process::{Command, Output};

use sshoal_testbed::simulated::{Simulation, SimulationSpec};
use sshoal_testbed::sshd::key_files::{KeyType, generate};
use support::program::{Ended, Running};
use support::{Shoal, User};

/// The program used wrongly: nothing was run.
const USAGE: i32 = 2;
/// Some host failed.
const HOST_FAILED: i32 = 3;

/// Runs, and insists that nobody was even connected to.
#[track_caller]
fn refused(shoal: &Shoal<Simulation>, command: &mut Command, words: &[&str]) -> Ended {
    let ended = Running::start(command).wait().expect(USAGE).says(words);
    assert_eq!(shoal.hosts.totals().connections, 0, "nothing is half done");
    assert_eq!(ended.stdout(), "");
    ended
}

/// `sshoal run` on all hosts with nothing but their known_hosts: no key, no configuration.
fn bare(shoal: &Shoal<Simulation>, arguments: &[&str]) -> Command {
    let mut command = shoal.user.run(&["-F", "none", "-f", &shoal.file("hosts")]);
    command
        .arg(format!(
            "-oUserKnownHostsFile={}",
            shoal.file("known_hosts")
        ))
        .args(["-o", "GlobalKnownHostsFile=/dev/null"])
        .arg(format!("-oPort={}", shoal.hosts.addresses()[0].port()))
        .args(arguments);
    command
}

fn path(shoal: &Shoal<Simulation>, name: &str) -> String {
    shoal.user.home().join(name).to_str().unwrap().to_owned()
}

#[test]
fn host_lists_that_are_not_there_or_empty_are_refused() {
    let shoal = Shoal::simulated(1, &[]);
    let missing = path(&shoal, "no-such-list");
    let empty = path(&shoal, "empty");
    fs::write(&empty, "# nobody\n\n").unwrap();
    let name = shoal.name(0);
    for (arguments, words) in [
        (
            vec!["-f", &missing, "true"],
            vec!["cannot read the host list", &missing, "No such file"],
        ),
        (
            vec!["-w", &format!("^{missing}"), "true"],
            vec!["cannot read", &missing, "No such file"],
        ),
        (
            vec!["-f", &empty, "true"],
            vec!["the list of hosts is empty"],
        ),
        (vec!["-f", "-", "true"], vec!["the list of hosts is empty"]),
        (
            vec!["-w", &name, "-x", &name, "true"],
            vec!["the list of hosts is empty", "-x"],
        ),
        (
            vec!["-f", "64", "true"],
            vec!["no such file", "-p 64 is how many"],
        ),
        (vec!["-w", "-", "true"], vec!["-f -"]),
        (
            vec!["true"],
            vec!["no hosts were named", "-w", "-f", "WCOLL"],
        ),
        (vec!["-w", "", "true"], vec!["host"]),
    ] {
        refused(&shoal, &mut shoal.configured(&arguments), &words);
    }
}

#[test]
fn ranges_that_are_none_are_refused_with_what_is_wrong() {
    let shoal = Shoal::simulated(1, &[]);
    for (list, words) in [
        ("web[1-", ["web[1-", "]"]),
        ("web[5-2]", ["web[5-2]", "5"]),
        (
            "web[1-999999999999]",
            ["web[1-999999999999]", "999999999999"],
        ),
        ("web[a-]", ["web[a-]", "a-"]),
        ("host:99999", ["host:99999", "port"]),
    ] {
        // The first host would do.
        let list = format!("{},{list}", shoal.name(0));
        refused(
            &shoal,
            &mut shoal.configured(&["-w", &list, "true"]),
            &words,
        );
    }
}

#[test]
fn options_that_do_not_exist_or_do_not_go_together_are_refused() {
    let shoal = Shoal::simulated(1, &[]);
    let config = path(&shoal, "config");
    fs::write(&config, "Host *\n    User x\n    NoSuchKeyword yes\n").unwrap();
    for (arguments, words) in [
        (vec!["--jsn", "true"], vec!["unexpected argument", "--jsn"]),
        (vec!["-p", "0", "true"], vec!["-p", "0"]),
        (vec!["--timeout", "soon", "true"], vec!["--timeout", "soon"]),
        (vec!["-b", "--json", "true"], vec!["--gather", "--json"]),
        (vec![], vec!["no command was given", "sshoal run -w"]),
        (
            vec!["-o", "NoSuchKeyword=1", "true"],
            vec!["command line", "nosuchkeyword"],
        ),
        (
            vec!["-o", "Port=many", "true"],
            vec!["command line", "many"],
        ),
        (
            vec!["-F", "/no/such/config", "true"],
            vec!["/no/such/config", "no such file"],
        ),
        (
            vec!["--stdin", "/no/such/input", "cat"],
            vec!["standard input", "/no/such/input", "No such file"],
        ),
        (
            vec!["--stdin", "/", "cat"],
            vec!["standard input from /", "directory"],
        ),
        (
            vec!["-t", "10", "true"],
            vec!["-t lends", "--connect-timeout 10", "-u 10"],
        ),
        (vec!["-u", "root", "true"], vec!["-u of mpssh", "-l USER"]),
        (
            vec!["-o", "results", "true"],
            vec!["ssh_config", "--outdir DIR"],
        ),
        (vec!["-h", "hosts.txt", "true"], vec!["-f hosts.txt"]),
        (
            vec!["--script", "/no/such/script"],
            vec!["cannot read the script /no/such/script", "No such file"],
        ),
        (
            vec!["--retry-failed", "broken", "true"],
            vec!["broken", "auth-denied", "throttled"],
        ),
    ] {
        refused(&shoal, shoal.command(&[]).args(&arguments), &words);
    }
    let mut with_config = shoal
        .user
        .run(&["-F", &config, "-f", &shoal.file("hosts"), "true"]);
    refused(
        &shoal,
        &mut with_config,
        &[&format!("{config}:3"), "nosuchkeyword"],
    );
}

#[test]
fn retrying_without_an_earlier_run_is_refused() {
    let shoal = Shoal::simulated(1, &[]);
    let mut command = shoal.configured(&["--retry-failed", "all", "true"]);
    refused(&shoal, &mut command, &["last run"]);
}

#[test]
fn an_output_directory_that_cannot_be_made_is_refused() {
    let shoal = Shoal::simulated(1, &[]);
    let outdir = format!("{}/under", shoal.file("hosts"));
    refused(
        &shoal,
        &mut shoal.command(&["--outdir", &outdir, "true"]),
        &["output directory", &outdir],
    );
}

#[test]
fn key_files_that_cannot_be_used_are_refused_before_anything_is_begun() {
    let shoal = Shoal::simulated(1, &[]);
    let missing = path(&shoal, "no-such-key");
    let folder = path(&shoal, "folder");
    fs::create_dir(&folder).unwrap();
    let (open, noise) = (path(&shoal, "open"), path(&shoal, "noise"));
    fs::copy(shoal.file("id_ed25519"), &open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(&noise, "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n").unwrap();
    fs::set_permissions(&noise, fs::Permissions::from_mode(0o600)).unwrap();
    for (key, words) in [
        (
            &missing,
            vec!["cannot read the key file", &missing, "No such file"],
        ),
        (
            &folder,
            vec!["cannot read the key file", &folder, "directory"],
        ),
        (&open, vec!["open to others", "0644", "chmod 600"]),
        (&noise, vec!["cannot be used", &noise]),
    ] {
        refused(&shoal, &mut shoal.command(&["-i", key, "true"]), &words);
    }
}

#[test]
fn a_key_file_without_permission_to_read_is_refused() {
    let shoal = Shoal::simulated(1, &[]);
    let key = path(&shoal, "key");
    fs::copy(shoal.file("id_ed25519"), &key).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o000)).unwrap();
    // root may read anything, unless these capabilities are out of reach.
    let line = match rustix::process::geteuid().is_root() {
        true => "exec setpriv --bounding-set=-dac_override,-dac_read_search $RUN -i $KEY true",
        false => "exec $RUN -i $KEY true",
    };
    let mut command = shoal.shell(line);
    command.env("KEY", &key);
    refused(
        &shoal,
        &mut command,
        &["cannot read the key file", &key, "Permission denied"],
    );
}

/// An encrypted key that would be let in if it could be opened.
fn encrypted_key(shoal: &Shoal<Simulation>) -> String {
    let key = path(shoal, "encrypted");
    fs::copy(shoal.file("id_ed25519"), &key).unwrap();
    let mut encrypt = Command::new("ssh-keygen");
    encrypt.args(["-p", "-N", "right words", "-f", &key]);
    assert!(encrypt.output().unwrap().status.success());
    key
}

/// A program that answers for the user.
fn answering(shoal: &Shoal<Simulation>, answer: &str) -> String {
    let program = path(shoal, "answer");
    fs::write(
        &program,
        format!("#!/bin/sh\necho asked >> \"$0.asked\"\necho '{answer}'\n"),
    )
    .unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
    program
}

#[test]
fn an_encrypted_key_that_nobody_can_open_is_said_once_and_denies_all_hosts() {
    let shoal = Shoal::simulated(3, &[]);
    let key = encrypted_key(&shoal);
    let ended = Running::start(&mut bare(&shoal, &["-i", &key, "count runs"])).wait();
    let ended =
        ended
            .expect(HOST_FAILED)
            .says(&["no terminal", "SSH_ASKPASS", "auth-denied", &key]);
    assert_eq!(
        ended.stderr().matches("there is no terminal").count(),
        1,
        "{}",
        ended.stderr()
    );
    assert_eq!(shoal.hosts.totals().execs, 0);
}

#[test]
fn a_passphrase_is_asked_for_once_a_run_if_right_and_three_times_if_wrong() {
    for (answer, status, asked) in [("right words", 0, 1), ("wrong", HOST_FAILED, 3)] {
        let shoal = Shoal::simulated(5, &[]);
        let key = encrypted_key(&shoal);
        let program = answering(&shoal, answer);
        let mut command = bare(&shoal, &["-i", &key, "true"]);
        command
            .env("SSH_ASKPASS", &program)
            .env("SSH_ASKPASS_REQUIRE", "force");
        let ended = Running::start(&mut command).wait().expect(status);
        if status != 0 {
            ended.says(&["auth-denied", "wrong passphrase", &key]);
        }
        let questions = fs::read_to_string(format!("{program}.asked")).unwrap();
        assert_eq!(questions.lines().count(), asked);
    }
}

#[test]
fn an_agent_that_is_not_there_is_named() {
    let shoal = Shoal::simulated(2, &[]);
    let gone = path(&shoal, "agent-gone");
    drop(UnixListener::bind(&gone).unwrap());
    let missing = path(&shoal, "agent-missing");
    for socket in [&gone, &missing] {
        let mut command = bare(&shoal, &["true"]);
        command.env("SSH_AUTH_SOCK", socket);
        let ended = Running::start(&mut command).wait().expect(HOST_FAILED);
        ended.says(&["agent", socket, "ssh-add"]);
    }
    // With a key in a file nobody needs it.
    let mut command = shoal.command(&["-o", "IdentitiesOnly=no", "true"]);
    Running::start(command.env("SSH_AUTH_SOCK", &gone))
        .wait()
        .expect(0);
}

#[test]
fn no_key_at_all_is_said_with_what_to_do() {
    let shoal = Shoal::simulated(1, &[]);
    let ended = Running::start(&mut bare(&shoal, &["true"]))
        .wait()
        .expect(HOST_FAILED);
    ended.says(&["auth-denied", "nothing to offer", "-i", "ssh-add"]);
}

/// Runs with another known_hosts file.
fn trusting(shoal: &Shoal<Simulation>, known_hosts: &str, arguments: &[&str]) -> Ended {
    let option = format!("UserKnownHostsFile={known_hosts}");
    let mut command = shoal.command(&["-o", &option]);
    Running::start(command.args(arguments)).wait()
}

#[test]
fn without_known_hosts_nobody_is_trusted() {
    let shoal = Shoal::simulated(2, &[]);
    for known_hosts in ["/no/such/known_hosts", "/dev/null"] {
        let ended = trusting(&shoal, known_hosts, &["true"]).expect(HOST_FAILED);
        ended.says(&["host-key-unknown", "SHA256:", "known_hosts"]);
    }
    let totals = shoal.hosts.totals();
    assert_eq!(
        (totals.logins, totals.refusals),
        (0, 0),
        "nothing was sent to an unverified host"
    );
}

#[test]
fn a_broken_known_hosts_line_is_named_and_grants_nothing() {
    let shoal = Shoal::simulated(3, &[]);
    let text = fs::read_to_string(shoal.file("known_hosts")).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    // The second host's key is cut off, the third one's line has a marker that nobody knows.
    let (names_and_type, key) = lines[1].split_at(lines[1].find("AAAA").unwrap());
    lines[1] = format!("{names_and_type}{}", &key[..40]);
    lines[2].insert_str(0, "@trusted ");
    let broken = path(&shoal, "broken");
    fs::write(&broken, lines.join("\n") + "\n").unwrap();
    let ended = trusting(&shoal, &broken, &["--json", "true"]).expect(HOST_FAILED);
    let records = ended.records().by_name();
    assert!(records[&shoal.name(0)].is_ok());
    assert_eq!(records[&shoal.name(1)].failure(), "host-key-unknown");
    // It may have been meant to revoke.
    assert_eq!(records[&shoal.name(2)].failure(), "host-key-revoked");
    ended.says(&[&format!("{broken}:2"), &format!("{broken}:3")]);
    assert_eq!(shoal.hosts.totals().logins, 1);
}

#[test]
fn host_keys_are_judged_as_strict_host_key_checking_says_and_revoked_ones_never_pass() {
    let shoal = Shoal::simulated(
        4,
        &[
            "0=revoked-host-key",
            "1=wrong-host-key",
            "2=unknown-host-key",
        ],
    );
    for (strict, failures) in [
        (
            "yes",
            [
                "host-key-revoked",
                "host-key-changed",
                "host-key-unknown",
                "",
            ],
        ),
        (
            "ask",
            [
                "host-key-revoked",
                "host-key-changed",
                "host-key-unknown",
                "",
            ],
        ),
        (
            "accept-new",
            ["host-key-revoked", "host-key-changed", "", ""],
        ),
        ("no", ["host-key-revoked", "", "", ""]),
    ] {
        let option = format!("StrictHostKeyChecking={strict}");
        let records = shoal
            .run(&["-o", &option, "--json", "true"])
            .expect(HOST_FAILED)
            .records();
        let records = records.by_name();
        let found: Vec<&str> = (0..4)
            .map(|host| records[&shoal.name(host)].failure())
            .collect();
        assert_eq!(found, failures, "{strict}");
    }
}

#[test]
fn a_descriptor_limit_far_below_the_hosts_is_respected() {
    const HOSTS: usize = 5000;
    let mut spec = SimulationSpec::new(HOSTS as u32);
    spec.base = [127, 24, 0, 0].into();
    let shoal = Shoal::simulate(&spec);
    let mut command = shoal.shell("ulimit -n 256 && exec $RUN --json true");
    let ended = Running::start(&mut command).wait().expect(0);
    assert_eq!(ended.records().summary.ok, HOSTS);
    let most = shoal.hosts.totals().peak_open;
    assert!(most < 256, "{most} at a time");
}

#[test]
fn a_blank_command_and_a_folder_for_input_start_nothing() {
    let shoal = Shoal::simulated(1, &[]);
    for blank in [&[""][..], &[" ", "\t"]] {
        shoal
            .run(blank)
            .expect(USAGE)
            .says(&["no command was given"]);
    }
    shoal.run(&["--stdin", "/tmp", "cat"]).expect(USAGE).says(&[
        "standard input",
        "/tmp",
        "is a directory",
    ]);
    assert_eq!(shoal.hosts.totals().connections, 0);
}

#[test]
fn the_help_names_the_exit_statuses() {
    let user = support::User::new();
    let output: Output = user.run(&["--help"]).output().unwrap();
    assert!(output.status.success());
    let help = String::from_utf8(output.stdout).unwrap();
    assert!(
        help.contains("Exit status") && help.contains("130"),
        "{help}"
    );
}

#[test]
fn a_key_of_a_kind_that_the_hosts_do_not_know_is_named_when_it_is_refused() {
    let shoal = Shoal::simulated(1, &[]);
    let stranger = path(&shoal, "stranger");
    generate(stranger.as_ref(), KeyType::EcdsaNistP256, "").unwrap();
    let ended = Running::start(&mut bare(&shoal, &["-i", &stranger, "true"])).wait();
    ended.expect(HOST_FAILED).says(&[
        "auth-denied",
        "refused the key",
        &stranger,
        "authorized_keys",
    ]);
}

#[test]
fn a_standard_error_that_takes_nothing_changes_no_status() {
    let user = User::new();
    for (line, status) in [
        ("sshoal hosts fold 'n['", 2),
        ("sshoal run", 2),
        ("sshoal nosuch", 2),
        ("sshoal known-hosts forget -f /no/such/file x", 2),
        ("sshoal run -F none -w 127.0.0.1:1 true", 3),
        ("sshoal run -F none -w 127.0.0.1:1 -vvv true", 74),
    ] {
        Running::start(&mut user.shell(&format!("{line} 2>/dev/full"))).wait_for_exit(status);
    }
}
