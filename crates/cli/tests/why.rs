//! `sshoal why` against real sshd: what is measured of a login, by sshoal and by ssh. No time is judged but against what was
//! put into that very login.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::net::TcpListener;
use std::process::Command;

use serde_json::Value;
use sshoal_interop::{Options, Server, Software, generate_key};
use sshoal_testbed::sshd::key_files::{KeyType, generate};
use sshoal_testbed::sshd::{RealSshd, SshdSpec};
use support::program::{Ended, Running};
use support::{Shoal, User, shared_folder};
use tempfile::TempDir;

/// The phases of a login in their order.
const PHASES: [&str; 11] = [
    "local",
    "lookup",
    "connect",
    "banner",
    "key-exchange-init",
    "key-exchange",
    "first-request",
    "key-probe",
    "signed-request",
    "channel-open",
    "first-output",
];
/// Two neighbours' times are rounded down each for itself, microseconds.
const ROUNDED: u64 = 2;

fn command(shoal: &Shoal<RealSshd>, words: &[&str]) -> Command {
    let mut command = shoal.user.command(env!("CARGO_BIN_EXE_sshoal"));
    command.arg("why").args(["-F", &shoal.file("ssh_config")]);
    command.args(words);
    command
}

/// `sshoal why` on the first host, to its end.
fn why(shoal: &Shoal<RealSshd>, words: &[&str]) -> Ended {
    let name = shoal.name(0);
    Running::start(&mut command(shoal, &[&[name.as_str()], words].concat())).wait()
}

/// What `--json` says.
#[track_caller]
fn measured(shoal: &Shoal<RealSshd>, words: &[&str], status: i32) -> Value {
    let ended = why(shoal, &[words, &["--json"]].concat()).expect(status);
    serde_json::from_str(&ended.stdout()).unwrap()
}

fn logins<'v>(found: &'v Value, by: &str) -> Vec<&'v Value> {
    let logins = found["measured"].as_array().unwrap().iter();
    logins.filter(|login| login["by"] == by).collect()
}

fn phases(login: &Value) -> Vec<&str> {
    let phases = login["phases"].as_array().unwrap().iter();
    phases.map(|span| span["phase"].as_str().unwrap()).collect()
}

/// How long a phase of a login took, microseconds.
fn time(login: &Value, phase: &str) -> u64 {
    let phases = login["phases"].as_array().unwrap().iter();
    let of_phase = phases.filter(|span| span["phase"] == phase);
    of_phase
        .map(|span| span["duration_us"].as_u64().unwrap())
        .sum()
}

/// Each phase begins where the one before ends: they add up to the whole.
#[track_caller]
fn check_sum(login: &Value) {
    let mut until = 0;
    for span in login["phases"].as_array().unwrap() {
        let start = span["start_us"].as_u64().unwrap();
        assert!(start.abs_diff(until) <= ROUNDED, "{until}: {login:#}");
        until = start + span["duration_us"].as_u64().unwrap();
    }
}

fn notes(found: &Value) -> String {
    found["tier_notes"].to_string()
}

#[test]
fn both_clients_log_in_by_turns_and_their_phases_add_up() {
    let shoal = Shoal::real(&SshdSpec::new(1));
    let found = measured(&shoal, &["--repeat", "2"], 0);
    let all = found["measured"].as_array().unwrap();
    let by: Vec<&str> = all.iter().map(|it| it["by"].as_str().unwrap()).collect();
    assert_eq!(by, ["sshoal", "ssh", "sshoal", "ssh"]);
    for login in all {
        assert!(login["failure"].is_null(), "{login:#}");
        check_sum(login);
        let wanted = match login["by"].as_str() {
            Some("ssh") => &PHASES[..],
            // What this machine does beforehand is done once, and is a fact.
            _ => &PHASES[1..],
        };
        assert_eq!(phases(login), wanted, "{login:#}");
    }
    assert_eq!(found["tier"], "no-root", "{}", notes(&found));
    let identification = found["identification"].as_str().unwrap();
    assert!(
        identification.starts_with("SSH-2.0-OpenSSH_"),
        "{identification}"
    );
    // Nothing but these four logins was made.
    assert_eq!(shoal.hosts.logins(), 4);
}

#[test]
fn facts_of_both_ends_are_found_out() {
    let shoal = Shoal::real(&SshdSpec::new(1).line("UseDNS no"));
    let found = measured(&shoal, &["--repeat", "1", "--no-ssh"], 0);
    let facts = &found["facts"];
    for time in [
        "local.ssh_config.time",
        "local.known_hosts.time",
        "host.shell.time",
        "host.second_exec.time",
        "host.bare_exec.time",
        "host.id.time",
        "host.home.time",
        "login.sign_of_life.time",
    ] {
        assert!(facts[time].is_u64(), "{time}: {facts:#}");
    }
    // Unless the kernel was built without.
    let tells = fs::exists("/proc/self/schedstat").unwrap();
    assert_eq!(facts["host.contention.time"].is_u64(), tells, "{facts:#}");
    assert_eq!(facts["local.ssh_config.match_exec"], false);
    assert_eq!(facts["local.known_hosts.hashed"], false);
    assert!(facts["local.known_hosts.octets"].as_f64() > Some(0.0));
    assert_eq!(facts["login.method"], "publickey");
    assert_eq!(facts["login.host_key"], "ssh-ed25519");
    assert_eq!(facts["login.key_probes"], 1.0);
    assert!(
        facts["login.methods"]
            .as_str()
            .unwrap()
            .contains("publickey")
    );
    assert_eq!(facts["host.shell"], "/bin/sh");
    // The server's own configuration, which its process names.
    assert_eq!(facts["host.sshd_config.readable"], true, "{facts:#}");
    assert_eq!(facts["host.sshd_config.UseDNS"], "no");
    // In the file that sshd_config names.
    assert_eq!(facts["host.authorized_keys.lines"], 1.0, "{facts:#}");
    assert_eq!(facts["host.listener"], true);
    assert_eq!(facts["host.forced_command"], false);
    assert!(facts["host.tcp_wrappers"].is_string(), "{facts:#}");
    assert!(
        facts["host.processes.login"].as_f64() >= Some(1.0),
        "{facts:#}"
    );
    assert_eq!(logins(&found, "ssh").len(), 0);
}

#[test]
fn a_command_that_match_exec_runs_is_told_of() {
    let shoal = Shoal::real(&SshdSpec::new(1));
    let path = shoal.dir.path().join("ssh_config");
    let config = fs::read_to_string(&path).unwrap();
    let with_exec = format!("Match exec \"true\"\n    Compression no\nMatch all\n{config}");
    fs::write(&path, with_exec).unwrap();
    let found = measured(&shoal, &["--repeat", "1", "--no-ssh", "--no-host"], 0);
    assert_eq!(found["facts"]["local.ssh_config.match_exec"], true);
}

#[test]
fn what_every_command_waits_for_is_lost_before_the_first_output_and_nowhere_else() {
    // As a shell's start-up file would, and longer than any other phase takes on a busy machine.
    let slow = "ForceCommand sleep 3; eval \"$SSH_ORIGINAL_COMMAND\"";
    let shoal = Shoal::real(&SshdSpec::new(1).line(slow));
    let found = measured(&shoal, &["--repeat", "1"], 0);
    for login in found["measured"].as_array().unwrap() {
        let slowest = PHASES.iter().max_by_key(|phase| time(login, phase));
        assert_eq!(slowest, Some(&"first-output"), "{login:#}");
        assert!(time(login, "first-output") >= 3_000_000, "{login:#}");
    }
    let second = found["facts"]["host.second_exec.time"].as_u64();
    assert!(second >= Some(3_000_000), "{second:?}");
    assert_eq!(found["facts"]["host.forced_command"], true);
}

#[test]
fn the_host_is_asked_behind_the_first_login_and_the_last() {
    let folder = shared_folder();
    let lines = folder.path().join("lines");
    let noted = format!(
        "ForceCommand echo \"$SSH_ORIGINAL_COMMAND\" >>{}; eval \"$SSH_ORIGINAL_COMMAND\"",
        lines.display()
    );
    let shoal = Shoal::real(&SshdSpec::new(1).line(&noted));
    let run_by = |repeat: &str, flags: &[&str]| {
        // It is made by whoever logs in.
        let _ = fs::remove_file(&lines);
        measured(
            &shoal,
            &[&["--repeat", repeat, "--no-ssh"][..], flags].concat(),
            0,
        );
        fs::read_to_string(&lines).unwrap()
    };
    let last = "echo\necho\necho\necho\nexec /bin/sh\n";
    let all = format!("echo\nexec /bin/sh -s first\necho\n{last}");
    assert_eq!(run_by("3", &[]), all);
    assert_eq!(run_by("1", &[]), last);
    assert_eq!(run_by("2", &["--no-host"]), "echo\necho\n");
}

#[test]
fn keys_that_are_refused_are_probed_in_the_same_order_each_time() {
    let shoal = Shoal::real(&SshdSpec::new(1).line("MaxSessions 1"));
    let wrong: Vec<String> = (0..2)
        .map(|number| {
            let path = shoal.dir.path().join(format!("wrong{number}"));
            generate(&path, KeyType::Ed25519, "").unwrap();
            path.to_str().unwrap().to_owned()
        })
        .collect();
    let right = shoal.hosts.identity_path().to_str().unwrap().to_owned();
    let words = [
        "-i", &wrong[0], "-i", &wrong[1], "-i", &right, "--repeat", "2",
    ];
    let found = measured(&shoal, &words, 0);
    // Every time in the same order, by both clients.
    for login in found["measured"].as_array().unwrap() {
        let probes = phases(login)
            .iter()
            .filter(|phase| **phase == "key-probe")
            .count();
        assert_eq!(probes, 3, "{login:#}");
        check_sum(login);
    }
    assert_eq!(found["facts"]["login.key_probes"], 3.0);
    // One session after the other is all that is needed.
    assert_eq!(found["tier"], "no-root", "{}", notes(&found));
}

#[test]
fn a_server_of_files_alone_is_measured_from_this_side() {
    let shoal = Shoal::real(&SshdSpec::new(1).line("ForceCommand internal-sftp"));
    let found = measured(&shoal, &["--repeat", "1"], 0);
    assert_eq!(found["tier"], "client");
    assert!(
        notes(&found).contains("no command of ours could be run"),
        "{}",
        notes(&found)
    );
    for login in found["measured"].as_array().unwrap() {
        assert!(login["failure"].is_null(), "{login:#}");
        assert_eq!(phases(login).last(), Some(&"first-output"), "{login:#}");
        check_sum(login);
    }
}

#[test]
fn nothing_is_run_on_the_host_if_that_is_not_wanted() {
    let shoal = Shoal::real(&SshdSpec::new(1));
    let found = measured(&shoal, &["--repeat", "1", "--no-host", "--no-ssh"], 0);
    assert_eq!(found["tier"], "client");
    assert!(notes(&found).contains("--no-host"), "{}", notes(&found));
    assert!(found["facts"]["host.shell"].is_null());
    assert_eq!(logins(&found, "sshoal").len(), 1);
}

#[test]
fn a_host_where_nobody_listens_fails_while_connecting() {
    let shoal = Shoal::real(&SshdSpec::new(1));
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let host = format!("127.0.0.1:{}", free.port());
    let words = [host.as_str(), "--repeat", "3", "--json"];
    let ended = Running::start(&mut command(&shoal, &words))
        .wait()
        .expect(3);
    let found: Value = serde_json::from_str(&ended.stdout()).unwrap();
    // Whoever has failed is not tried again.
    for by in ["sshoal", "ssh"] {
        let [login] = logins(&found, by)[..] else {
            panic!("{found:#}");
        };
        assert_eq!(phases(login).last(), Some(&"connect"), "{login:#}");
        let failure = login["failure"].as_str().unwrap();
        assert!(failure.starts_with("refused: "), "{failure}");
    }
}

#[test]
fn a_host_that_is_not_known_fails_in_the_key_exchange() {
    let shoal = Shoal::real(&SshdSpec::new(1));
    let none = ["-o", "UserKnownHostsFile=/dev/null", "--no-ssh"];
    let found = measured(&shoal, &none, 3);
    let [login] = logins(&found, "sshoal")[..] else {
        panic!("{found:#}");
    };
    assert_eq!(phases(login).last(), Some(&"key-exchange"));
    let failure = login["failure"].as_str().unwrap();
    assert!(failure.starts_with("host-key-unknown: "), "{failure}");
}

#[test]
fn a_user_who_is_let_in_by_no_key_fails_in_the_probe() {
    let shoal = Shoal::real(&SshdSpec::new(1));
    let path = shoal.dir.path().join("wrong");
    generate(&path, KeyType::Ed25519, "").unwrap();
    let wrong = format!("IdentityFile={}", path.display());
    let words = [
        "-o",
        &wrong,
        "-o",
        "IdentitiesOnly=yes",
        "-l",
        "sshoal-nobody-here",
        "--no-ssh",
    ];
    let found = measured(&shoal, &words, 3);
    let [login] = logins(&found, "sshoal")[..] else {
        panic!("{found:#}");
    };
    assert!(phases(login).contains(&"first-request"), "{login:#}");
    assert!(!phases(login).contains(&"channel-open"), "{login:#}");
    let failure = login["failure"].as_str().unwrap();
    assert!(failure.starts_with("auth-denied: "), "{failure}");
}

#[test]
fn a_connection_that_is_there_already_is_not_used() {
    let shoal = Shoal::real(&SshdSpec::new(1));
    let socket = shoal.dir.path().join("master");
    let words = [
        "-o",
        "ControlMaster=auto",
        "-o",
        "ControlPersist=60",
        "-o",
        &format!("ControlPath={}", socket.display()),
        "--repeat",
        "2",
    ];
    let found = measured(&shoal, &words, 0);
    assert_eq!(logins(&found, "ssh").len(), 2);
    assert!(!socket.exists());
    assert_eq!(shoal.hosts.logins(), 4);
}

#[test]
fn several_hosts_are_each_measured() {
    let shoal = Shoal::real(&SshdSpec::new(3));
    let names: Vec<String> = (0..3).map(|host| shoal.name(host)).collect();
    let dead = "127.0.0.1";
    let list = format!("{},{dead}:1", names.join(","));
    let words = [
        "-w", &list, "--repeat", "2", "-p", "2", "--no-ssh", "--json",
    ];
    let ended = Running::start(&mut command(&shoal, &words))
        .wait()
        .expect(3);
    let stdout = ended.stdout();
    let found: Vec<Value> = stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |name: &str| found.iter().find(|found| found["host"] == name).unwrap();
    for name in &names {
        let logins = logins(of(name), "sshoal");
        assert_eq!(logins.len(), 2);
        assert!(logins.iter().all(|login| login["failure"].is_null()));
    }
    assert_eq!(logins(of(dead), "sshoal").len(), 1);
    assert_eq!(shoal.hosts.logins(), 6);
}

#[test]
fn behind_a_jump_host_connecting_is_that_of_others() {
    let shoal = Shoal::real(&SshdSpec::new(2));
    let jump = shoal.name(1);
    let words = ["-J", &jump, "--repeat", "1", "--no-ssh"];
    let found = measured(&shoal, &words, 0);
    let [login] = logins(&found, "sshoal")[..] else {
        panic!("{found:#}");
    };
    assert!(phases(login).contains(&"connect"), "{login:#}");
    check_sum(login);
    assert!(found["facts"]["login.sign_of_life.time"].is_u64());
}

#[test]
fn a_server_of_another_make_is_measured_as_far_as_any() {
    let files = TempDir::new().unwrap();
    let kind = sshoal_interop::KeyType::Ed25519;
    let key = generate_key(files.path(), "user", kind).unwrap();
    let options = Options {
        host_keys: vec![kind],
        authorized_keys: fs::read_to_string(key.with_extension("pub")).unwrap(),
        ..Options::default()
    };
    let server = Server::start(Software::Dropbear, &options).unwrap();
    let identity = fs::read_to_string(key).unwrap();
    server.client_files(identity).write(files.path()).unwrap();
    let mut command = User::new().command(env!("CARGO_BIN_EXE_sshoal"));
    command.args(["why", "--repeat", "1", "--json"]);
    command.arg("-F").arg(files.path().join("ssh_config"));
    command.arg(server.address().ip().to_string());
    let ended = Running::start(&mut command).wait().expect(0);
    let found: Value = serde_json::from_str(&ended.stdout()).unwrap();
    let identification = found["identification"].as_str().unwrap();
    assert!(identification.contains("dropbear"), "{identification}");
    assert_eq!(found["tier"], "no-root", "{}", notes(&found));
    for login in found["measured"].as_array().unwrap() {
        assert!(login["failure"].is_null(), "{login:#}");
        assert_eq!(phases(login).last(), Some(&"first-output"), "{login:#}");
        check_sum(login);
    }
}

#[test]
fn the_report_is_text_and_on_request_a_page_a_trace_and_a_script() {
    let shoal = Shoal::real(&SshdSpec::new(2));
    let quick = ["--repeat", "1", "--no-ssh"];
    let (page, trace) = (shoal.file("page.html"), shoal.file("trace.json"));
    let files = ["--html", &page, "--chrome-trace", &trace];
    let text = why(&shoal, &[&quick[..], &files].concat())
        .expect(0)
        .stdout();
    for title in ["TCP connect", "key exchange", "first output"] {
        assert!(text.contains(title), "{text}");
    }
    assert!(
        !text.contains('\u{1b}'),
        "no colours but on a terminal: {text}"
    );
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("</html>") && page.contains(&shoal.name(0)));
    let trace: Value = serde_json::from_str(&fs::read_to_string(trace).unwrap()).unwrap();
    assert!(!trace["traceEvents"].as_array().unwrap().is_empty());
    let script = why(&shoal, &[&quick[..], &["--fix"]].concat())
        .expect(0)
        .stdout();
    assert!(script.starts_with("#!/bin/sh\n"), "{script}");
    // Of two hosts the page is that of both.
    let page = shoal.file("both.html");
    let list = format!("{},{}", shoal.name(0), shoal.name(1));
    let words = [&["-w", &list, "--html", &page][..], &quick].concat();
    let both = Running::start(&mut command(&shoal, &words))
        .wait()
        .expect(0);
    assert!(
        both.stdout().contains("2 hosts measured"),
        "{}",
        both.stdout()
    );
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains(&shoal.name(0)) && page.contains(&shoal.name(1)));
}

#[test]
fn what_cannot_be_written_is_told() {
    let shoal = Shoal::real(&SshdSpec::new(1));
    let words = [
        "--repeat",
        "1",
        "--no-ssh",
        "--no-host",
        "--html",
        "/nowhere/page.html",
    ];
    let said = why(&shoal, &words).expect(2).stderr();
    assert!(said.contains("cannot write /nowhere/page.html"), "{said}");
}

#[test]
fn wrong_usage_is_told() {
    let sshoal = |words: &[&str]| {
        let mut command = User::new().command(env!("CARGO_BIN_EXE_sshoal"));
        Running::start(command.arg("why").args(words))
            .wait()
            .expect(2)
            .stderr()
    };
    assert!(sshoal(&[]).contains("no hosts were named"));
    assert!(sshoal(&["h", "--repeat", "0"]).contains("a whole number from 1 to 100"));
    let trace = sshoal(&["-w", "a,b", "--chrome-trace", "/tmp/none"]);
    assert!(trace.contains("one host"), "{trace}");
}
