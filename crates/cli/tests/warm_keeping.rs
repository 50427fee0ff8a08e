//! What keeps connections as they should be: hosts that are logged in to when they are needed, or again after they were
//! lost; a machine that slept, a network that changed; limits, and what is told of it all.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Command;
use std::time::Duration;

use rustix::process::{Signal, kill_process};
use serde_json::Value;
use sshoal_testbed::sshd::SshdSpec;
use support::program::Running;
use support::warm::{Warm, has_ended};
use support::{DEADLINE, wait_until};

/// Has a test run once more in a network of its own, where it says so.
const INSIDE: &str = "SSHOAL_TEST_INSIDE";

fn host(warm: &Warm, host: usize) -> Value {
    warm.status()["hosts"][host].clone()
}

#[test]
fn a_lazy_host_is_logged_in_to_by_its_first_passengers_and_again_after_it_was_idle() {
    let warm = Warm::cold(&SshdSpec::new(2));
    Running::start(&mut warm.up_command(&["--lazy", "--idle", "0.3"]))
        .wait()
        .expect(0)
        .says(&["2 lazy"]);
    assert_eq!(host(&warm, 0)["state"], "lazy");
    assert_eq!(warm.shoal.hosts.logins(), 0);
    let passengers: Vec<Running> = (0..5)
        .map(|_| Running::start(&mut warm.ssh("echo here")))
        .collect();
    for passenger in passengers {
        assert_eq!(passenger.wait().expect(0).stdout(), "here\n");
    }
    let logins = host(&warm, 0)["logins"].as_u64().unwrap();
    assert!(logins > 0, "by us, and not by ssh itself");
    wait_until("it is hung up", || host(&warm, 0)["state"] == "lazy");
    let ended = Running::start(&mut warm.ssh("echo again")).wait();
    assert_eq!(ended.expect(0).stdout(), "again\n");
    assert!(host(&warm, 0)["logins"].as_u64().unwrap() > logins);
    assert_eq!(host(&warm, 1)["logins"], 0);
    let pid = warm.pid();
    warm.run(&["down", &warm.shoal.name(1)]).expect(0);
    wait_until("its socket is gone", || !warm.socket(1).exists());
    warm.run(&["down"]).expect(0);
    wait_until("it is gone", || has_ended(pid));
}

#[test]
fn passengers_of_a_lazy_host_that_cannot_be_had_hear_why_and_it_stays_lazy() {
    let warm = Warm::cold(&SshdSpec::new(1));
    Running::start(&mut warm.up_command(&["--lazy"]))
        .wait()
        .expect(0);
    kill_process(warm.shoal.hosts.pid(0), Signal::KILL).unwrap();
    // ssh tries by itself then, and fares no better.
    let ended = Running::start(&mut warm.ssh("true")).wait();
    ended.expect(255).says(&["refused"]);
    wait_until("it is lazy again", || host(&warm, 0)["state"] == "lazy");
    let detail = host(&warm, 0)["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("refused"), "{detail}");
}

#[test]
fn a_host_that_was_lost_comes_back_and_no_other_notices() {
    let warm = Warm::up(&SshdSpec::new(2));
    let mut passenger = warm.ssh("cat");
    let mut other = passenger
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("the passenger has its session", || {
        host(&warm, 0)["sessions"] == 1
    });
    for logins in 2..4 {
        warm.cut(1);
        wait_until("it is back", || {
            let host = host(&warm, 1);
            host["logins"] == logins && host["state"] == "up"
        });
    }
    assert_eq!(host(&warm, 0)["logins"], 1);
    drop(other.stdin.take());
    assert!(other.wait().unwrap().success());
}

#[test]
fn a_host_that_stays_away_is_lost_until_somebody_needs_it_or_it_is_told_to_end() {
    let warm = Warm::up(&SshdSpec::new(2));
    let address = warm.shoal.hosts.addresses()[0];
    warm.close(0);
    wait_until("it is lost for a reason that is told", || {
        let host = host(&warm, 0);
        host["state"] == "lost" && host["detail"].as_str().unwrap().contains("refused")
    });
    // Whoever listens there now is no ssh server: that will not change by itself.
    let nobody = TcpListener::bind(address).unwrap();
    let passenger = Running::start(&mut warm.ssh("true"));
    let (stream, _) = nobody.accept().unwrap();
    drop((stream, nobody));
    passenger.wait().expect(255);
    assert_eq!(host(&warm, 1)["state"], "up");
    warm.run(&["down", &warm.shoal.name(0)]).expect(0);
    wait_until("it is down", || host(&warm, 0)["state"] == "down");
    assert!(host(&warm, 0)["detail"].is_null());
}

#[test]
fn without_reconnecting_a_host_that_is_lost_is_down() {
    let warm = Warm::cold(&SshdSpec::new(2));
    Running::start(&mut warm.up_command(&["--no-reconnect"]))
        .wait()
        .expect(0);
    warm.close(0);
    wait_until("it is down", || host(&warm, 0)["state"] == "down");
    assert!(host(&warm, 0)["detail"].is_string());
    assert_eq!(host(&warm, 1)["state"], "up");
}

#[test]
fn a_server_that_stops_answering_is_noticed_by_keepalive() {
    let warm = Warm::cold(&SshdSpec::new(2));
    let options = ["ServerAliveInterval=4", "ServerAliveCountMax=2"];
    Running::start(&mut warm.up_command(&["-o", options[0], "-o", options[1]]))
        .wait()
        .expect(0);
    wait_until("the round trip is measured", || {
        host(&warm, 0)["round_trip_ms"].as_f64() > Some(0.0)
    });
    let stopped = warm.stop(0);
    wait_until("it is logged in to again", || host(&warm, 0)["logins"] == 2);
    for pid in &stopped {
        let _ = kill_process(*pid, Signal::CONT);
    }
    assert_eq!(host(&warm, 1)["logins"], 1);
}

#[test]
fn a_process_that_was_stopped_asks_all_servers_when_it_goes_on() {
    let warm = Warm::up(&SshdSpec::new(1));
    let alarms = warm.status()["alarms"].as_u64().unwrap();
    let pid = warm.pid();
    kill_process(pid, Signal::STOP).unwrap();
    // It is the time that it does not see.
    std::thread::sleep(Duration::from_secs(6));
    kill_process(pid, Signal::CONT).unwrap();
    wait_until("it has noticed", || {
        warm.status()["alarms"].as_u64().unwrap() > alarms
    });
    assert_eq!(host(&warm, 0)["logins"], 1, "the server is there");
}

/// In a network of its own the addresses are ours to take away. Nothing but the change tells that a host is gone: its turn
/// to be asked would come in an hour.
#[test]
fn an_address_that_goes_away_is_noticed_and_other_hosts_stay() {
    const NAME: &str = "an_address_that_goes_away_is_noticed_and_other_hosts_stay";
    if std::env::var_os(INSIDE).is_none() {
        let mut again = Command::new("unshare");
        again
            .arg("--net")
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", NAME, "--nocapture"])
            .env(INSIDE, "1");
        let ended = Running::start(&mut again).wait();
        print!("{}", ended.stdout());
        ended.expect(0);
        return;
    }
    ip(&["link", "set", "lo", "up"]);
    ip(&["address", "flush", "dev", "lo"]);
    for address in ["127.2.0.1/32", "127.2.0.2/32"] {
        ip(&["address", "add", address, "dev", "lo"]);
    }
    let warm = Warm::cold(&SshdSpec::new(2));
    let options = ["ServerAliveInterval=3600", "ServerAliveCountMax=2"];
    Running::start(&mut warm.up_command(&["-o", options[0], "-o", options[1]]))
        .wait()
        .expect(0);
    ip(&["address", "del", "127.2.0.2/32", "dev", "lo"]);
    wait_until("it is lost", || host(&warm, 1)["state"] == "lost");
    assert!(warm.status()["last_alarm"].is_string());
    assert_eq!(host(&warm, 0)["state"], "up");
    ip(&["address", "add", "127.2.0.2/32", "dev", "lo"]);
    wait_until("it is back", || host(&warm, 1)["state"] == "up");
    assert_eq!(host(&warm, 0)["logins"], 1);
}

fn ip(arguments: &[&str]) {
    let status = Command::new("ip").args(arguments).status().unwrap();
    assert!(status.success(), "ip {arguments:?}");
}

#[test]
fn no_more_connections_are_made_than_are_allowed_and_it_says_so() {
    let warm = Warm::cold(&SshdSpec::new(3));
    let limited = Running::start(&mut warm.up_command(&["--max-connections", "2"])).wait();
    limited.expect(3).says(&[
        "2 up, 1 failed",
        "2 connections (--max-connections) are kept",
    ]);
    let status = warm.status();
    assert_eq!(
        (&status["connections"], &status["refused"]),
        (&2.into(), &1.into())
    );
    assert_eq!(status["limits"]["connections"], 2);
    let text = warm.run(&["status"]).expect(0).stdout();
    assert!(text.contains("2 of 2 connections, 1 refused"), "{text}");
    Running::start(&mut warm.up_command(&["--max-connections", "5"]))
        .wait()
        .expect(0)
        .says(&["1 up, 2 are kept already"]);
    let mut command = warm.up_of_command(&[0]);
    command.args(["--max-memory", "1"]);
    Running::start(&mut command).wait().expect(0);
    warm.run(&["down", &warm.shoal.name(0)]).expect(0);
    wait_until("it is down", || host(&warm, 0)["state"] == "down");
    warm.up_of(&[0])
        .expect(3)
        .says(&["1 MB of memory (--max-memory)"]);
}

#[test]
fn prometheus_reads_what_is_kept() {
    let warm = Warm::cold(&SshdSpec::new(2));
    let file = warm.shoal.file("sshoal.prom");
    Running::start(&mut warm.up_command(&["--prometheus-file", &file]))
        .wait()
        .expect(0);
    let shown = warm.run(&["status", "--prometheus"]).expect(0).stdout();
    let metrics = parse(&shown);
    let name = warm.shoal.name(1);
    let up = format!("sshoal_host_up{{host=\"{name}\",");
    let is_up = |(series, value): &(String, f64)| series.starts_with(&up) && *value == 1.0;
    assert!(metrics.iter().any(is_up), "{shown}");
    assert!(metrics.contains(&("sshoal_hosts{state=\"up\"}".to_owned(), 2.0)));
    warm.run(&["down"]).expect(0);
    let left = fs::read_to_string(&file).unwrap();
    let down = ("sshoal_hosts{state=\"down\"}".to_owned(), 2.0);
    assert!(parse(&left).contains(&down), "{left}");
    let none = warm.run(&["status", "--prometheus"]).expect(1);
    assert_eq!(none.stdout(), "");
}

#[test]
fn whoever_connects_to_the_socket_is_answered_by_http_and_silence_harms_nobody() {
    let warm = Warm::cold(&SshdSpec::new(1));
    let socket = warm.shoal.file("sshoal.sock");
    // What a process that was killed has left.
    drop(UnixListener::bind(&socket).unwrap());
    let up = || Running::start(&mut warm.up_command(&["--prometheus-socket", &socket])).wait();
    up().expect(0);
    let mode = fs::metadata(&socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // More than are answered at a time: each has its time and no more.
    let silent: Vec<UnixStream> = (0..20)
        .map(|_| UnixStream::connect(&socket).unwrap())
        .collect();
    let scrape = || {
        let mut reader = UnixStream::connect(&socket).unwrap();
        reader.set_read_timeout(Some(DEADLINE)).unwrap();
        let request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
        reader.write_all(request).unwrap();
        let mut answer = String::new();
        reader.read_to_string(&mut answer).unwrap();
        answer
    };
    let answer = scrape();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.0 200 OK\r\n"), "{head}");
    for field in [
        "Content-Type: text/plain; version=0.0.4".to_owned(),
        format!("Content-Length: {}", body.len()),
    ] {
        assert!(head.lines().any(|line| line == field), "{head}");
    }
    assert!(parse(body).contains(&("sshoal_hosts{state=\"up\"}".to_owned(), 1.0)));
    drop(silent);
    // The same once more, and somewhere else: nobody is at the old place then.
    up().expect(0);
    assert!(scrape().starts_with("HTTP/1.0 200 OK"));
    let other = warm.shoal.file("other.sock");
    Running::start(&mut warm.up_command(&["--prometheus-socket", &other]))
        .wait()
        .expect(0);
    assert!(fs::metadata(&socket).is_err());
    warm.run(&["down"]).expect(0);
    assert!(fs::metadata(&other).is_err());
}

#[test]
fn metrics_that_cannot_be_had_are_refused_at_the_start() {
    let warm = Warm::cold(&SshdSpec::new(1));
    let nowhere = warm.shoal.file("nowhere/sshoal");
    let used = warm.shoal.file("used");
    let _used = UnixListener::bind(&used).unwrap();
    for (flag, path, words) in [
        ("--prometheus-file", &nowhere, "folder"),
        ("--prometheus-socket", &nowhere, "folder"),
        ("--prometheus-socket", &used, "another program listens"),
        (
            "--prometheus-socket",
            &warm.shoal.file("hosts"),
            "no socket",
        ),
    ] {
        for more in [&[][..], &["--foreground"]] {
            let mut up = warm.up_command(&[flag, path]);
            let ended = Running::start(up.args(more)).wait();
            ended.expect(2).says(&[flag, path, words]);
        }
    }
    assert_eq!(warm.shoal.hosts.logins(), 0);
}

/// Prometheus' text format 0.0.4, strictly: each metric is introduced by its help and its type, its samples follow at once,
/// names and label values have the characters that they may have, nothing comes twice.
fn parse(text: &str) -> Vec<(String, f64)> {
    let is_name = |name: &str| {
        let first = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        first && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    assert!(text.ends_with('\n'));
    let (mut helped, mut typed) = (Vec::new(), Vec::new());
    let mut samples: Vec<(String, f64)> = Vec::new();
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, words) = help.split_once(' ').unwrap();
            assert!(is_name(name) && !words.is_empty(), "{line}");
            assert!(!helped.contains(&name), "{line}");
            helped.push(name);
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert_eq!(helped.last(), Some(&name), "{line}");
            assert!(["gauge", "counter"].contains(&kind), "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            typed.push(name);
        } else {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let name = series.split('{').next().unwrap();
            assert_eq!(typed.last(), Some(&name), "{line}");
            if let Some(labels) = series.strip_prefix(name).filter(|it| !it.is_empty()) {
                let label = labels
                    .strip_prefix('{')
                    .and_then(|it| it.strip_suffix("\"}"));
                let (key, _) = label.unwrap().split_once("=\"").unwrap();
                assert!(is_name(key), "{line}");
            }
            assert!(samples.iter().all(|(other, _)| other != series), "{line}");
            samples.push((series.to_owned(), value.parse().unwrap()));
        }
    }
    assert_eq!(helped, typed);
    samples
}

#[test]
fn sessions_of_root_and_of_the_user_only_are_heard() {
    let warm = Warm::up(&SshdSpec::new(1));
    // The folder keeps others out; were it open, the peer's credentials still would.
    let folder = warm.socket(0).parent().unwrap().to_owned();
    let outer = folder.parent().unwrap().parent().unwrap().to_owned();
    let open = |path: &std::path::Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let opened = [outer, folder.parent().unwrap().to_owned(), folder.clone()];
    for path in &opened {
        open(path, 0o755);
    }
    for socket in [warm.socket(0), folder.join("control")] {
        open(&socket, 0o666);
        let script = "import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.settimeout(60)\ns.connect(sys.argv[1])\n\
                      try:\n s.sendall(b'{\"ask\":\"status\"}\\n')\n sys.stdout.write(repr(s.recv(100)))\n\
                      except (BrokenPipeError,ConnectionResetError):\n sys.stdout.write(repr(b''))\n";
        let mut other = Command::new("setpriv");
        other.args([
            "--reuid",
            "65534",
            "--regid",
            "65534",
            "--clear-groups",
            "/usr/bin/python3",
            "-c",
            script,
        ]);
        other.arg(&socket);
        let ended = Running::start(&mut other).wait().expect(0);
        assert_eq!(ended.stdout(), "b''");
    }
    open(&folder, 0o700);
    assert_eq!(host(&warm, 0)["state"], "up");
}
