//! Every fault of a simulated host, seen by a raw TCP client or by the installed OpenSSH client.

#![allow(clippy::unwrap_used)]

mod support;

use std::io::{BufRead, BufReader, ErrorKind};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

use sshoal_testbed::simulated::Traffic;
use support::{DEADLINE, Ending, Hosts, simulate, ssh_command, stop};

const BANNER: &[u8] = b"SSH-2.0-sshoal_testbed\r\n";
const CLIENT: &[u8] = b"SSH-2.0-raw\r\n";

#[test]
fn refuse_has_nothing_listening() {
    let hosts = simulate(2, &["1=refuse"]);
    let error = TcpStream::connect(hosts.address(1)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    assert!(hosts.ssh(0, &["true"]).status.success(), "the other is up");
}

#[test]
fn connect_hang_never_completes_a_connection() {
    let hosts = simulate(1, &["0=connect-hang"]);
    // On loopback a connection that is going to be made is made at once.
    let limit = Duration::from_millis(300);
    let error = TcpStream::connect_timeout(&hosts.address(0).into(), limit).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
}

#[test]
fn silent_after_connect_sends_no_byte() {
    let hosts = simulate(1, &["0=silent-after-connect"]);
    let received = hosts.connect(0).send(CLIENT).finish().read_all();
    assert_eq!(received, (Vec::new(), Ending::Closed));
}

#[test]
fn garbage_banner_has_no_line_and_no_end() {
    let hosts = simulate(1, &["0=garbage-banner"]);
    let (noise, ending) = hosts.connect(0).finish().read_all();
    assert_eq!((noise.len(), ending), (65_536, Ending::Closed));
    assert!(!noise.contains(&b'\n') && !noise.contains(&0));
    let again = hosts.connect(0).finish().read_all().0;
    assert_eq!(noise, again, "the same in every run");
}

#[test]
fn endless_banner_is_lines_and_never_a_version() {
    let hosts = simulate(1, &["0=endless-banner"]);
    let lines = hosts.connect(0).read(1 << 20);
    assert!(
        lines
            .split(|&byte| byte == b'\n')
            .all(|line| line.len() < 80 && !line.starts_with(b"SSH-"))
    );
}

#[test]
fn throttling_hosts_say_so_in_place_of_the_banner_and_then_let_in() {
    let hosts = simulate(2, &["0=max-startups@2", "1=not-allowed@1"]);
    let sequence = |host: usize, texts: &[&str]| {
        for text in texts {
            let received = hosts.connect(host).read_all();
            assert_eq!(received, (text.as_bytes().to_vec(), Ending::Closed));
        }
        assert!(hosts.ssh(host, &["true"]).status.success());
    };
    sequence(0, &["Exceeded MaxStartups\r\n", "Exceeded MaxStartups\r\n"]);
    sequence(1, &["Not allowed at this time\r\n"]);
}

#[test]
fn wrong_unknown_and_revoked_host_keys_are_what_ssh_calls_them() {
    let hosts = simulate(
        3,
        &[
            "0=wrong-host-key",
            "1=unknown-host-key",
            "2=revoked-host-key",
        ],
    );
    for (host, complaint) in [
        (0, "REMOTE HOST IDENTIFICATION HAS CHANGED"),
        (1, "No ED25519 host key is known"),
        (2, "REVOKED HOST KEY DETECTED"),
    ] {
        let stderr = hosts.ssh_fails(host, &["true"]);
        assert!(stderr.contains(complaint), "{host}: {stderr}");
    }
    assert_eq!(hosts.simulation.totals().logins, 0);
}

#[test]
fn a_changed_host_key_is_the_known_one_at_first() {
    let hosts = simulate(1, &["0=changed-host-key:1"]);
    assert!(hosts.ssh(0, &["true"]).status.success());
    for _ in 0..2 {
        let stderr = hosts.ssh_fails(0, &["true"]);
        assert!(stderr.contains("IDENTIFICATION HAS CHANGED"), "{stderr}");
    }
}

#[test]
fn auth_denied_denies_the_right_key() {
    let hosts = simulate(1, &["0=auth-denied"]);
    let stderr = hosts.ssh_fails(0, &["true"]);
    assert!(stderr.contains("Permission denied (publickey)"), "{stderr}");
    assert_eq!(hosts.simulation.totals().logins, 0);
}

#[test]
fn an_output_cut_comes_after_exactly_so_many_bytes() {
    // Into the banner, at its end, and into KEXINIT, which comes once the host has our banner.
    for bytes in [0, 1, 23, 24, 25, 300] {
        for (fault, ending) in [("reset-at", Ending::Reset), ("close-at", Ending::Closed)] {
            let hosts = simulate(1, &[&format!("0={fault}:{bytes}")]);
            let (received, end) = hosts.connect(0).send(CLIENT).read_all();
            assert_eq!((received.len(), end), (bytes, ending), "{fault}:{bytes}");
            assert!(received.starts_with(&BANNER[..bytes.min(BANNER.len())]));
        }
        let hosts = simulate(1, &[&format!("0=silent-at:{bytes}")]);
        let received = hosts.connect(0).send(CLIENT).finish().read_all();
        assert_eq!((received.0.len(), received.1), (bytes, Ending::Closed));
    }
}

#[test]
fn an_input_cut_comes_after_exactly_so_many_bytes() {
    for bytes in [0, 1, 12, 13, 100] {
        // The beginning of a packet of 1,024 bytes, so that the host wants to read on.
        let sent: Vec<u8> = [CLIENT, &[0, 0, 4, 0], &[0; 200]].concat();
        for (fault, ending) in [
            ("reset-input-at", Ending::Reset),
            ("close-input-at", Ending::Closed),
            ("silent-input-at", Ending::Closed),
        ] {
            let hosts = simulate(1, &[&format!("0={fault}:{bytes}")]);
            let (received, end) = hosts.connect(0).send(&sent).finish().read_all();
            assert_eq!(end, ending, "{fault}:{bytes}");
            let kexinit = received.len() > BANNER.len();
            assert_eq!(kexinit, bytes >= CLIENT.len() as u64, "{fault}:{bytes}");
            let traffic = hosts.simulation.last_traffic(0).unwrap();
            assert_eq!(traffic.input, bytes, "{fault}:{bytes}");
        }
    }
}

#[test]
fn a_cut_in_the_input_after_authentication_decides_whether_the_command_runs() {
    let whole = simulate(1, &[]);
    let traffic = traffic_of_a_run(&whole);
    let (input, output) = traffic.at_authentication.unwrap();
    let after = traffic.input - input;
    assert!(output < traffic.output && after > 100, "{traffic:?}");

    let mut ran = Vec::new();
    for bytes in [0, 1, after / 4, after / 2, after * 3 / 4, after - 1] {
        let hosts = simulate(1, &[&format!("0=reset-input-at:auth+{bytes}")]);
        hosts.ssh(0, &["count runs"]);
        let traffic = traffic_to_the_end(&hosts);
        let (input, _) = traffic.at_authentication.unwrap();
        assert_eq!(traffic.input - input, bytes);
        ran.push(hosts.simulation.count(0, "runs"));
    }
    assert!(ran.is_sorted() && ran[0] == 0 && ran[5] == 1, "{ran:?}");
}

#[test]
fn a_cut_in_the_output_after_authentication_lets_the_command_run_unseen() {
    // The client never learns that it is in, so it sends no command.
    let hosts = simulate(1, &["0=close-at:auth+0"]);
    hosts.ssh_fails(0, &["count runs"]);
    let traffic = hosts.simulation.last_traffic(0).unwrap();
    assert_eq!(
        traffic.at_authentication.map(|at| at.1),
        Some(traffic.output)
    );
    assert_eq!(hosts.simulation.count(0, "runs"), 0);

    // A healthy host's output, but for its last byte.
    let whole = simulate(1, &[]);
    let traffic = traffic_of_a_run(&whole);
    let after = traffic.output - traffic.at_authentication.unwrap().1;
    let hosts = simulate(1, &[&format!("0=reset-at:auth+{}", after - 1)]);
    hosts.ssh(0, &["count runs"]);
    assert_eq!(hosts.simulation.count(0, "runs"), 1);
}

#[test]
fn a_fault_of_the_first_connections_is_gone_afterwards() {
    let hosts = simulate(1, &["0=reset-at:10@2"]);
    hosts.ssh_fails(0, &["true"]);
    hosts.ssh_fails(0, &["true"]);
    assert!(hosts.ssh(0, &["true"]).status.success());
}

#[test]
fn flood_and_exit_signal_take_every_commands_place() {
    let hosts = simulate(2, &["0=flood:3000000", "1=exit-signal:SIGSEGV"]);
    let flood = hosts.ssh(0, &["true"]);
    assert!(flood.status.success());
    assert_eq!(flood.stdout.len(), 3_000_000);

    let stderr = hosts.ssh_fails(1, &["-v", "true"]);
    assert!(stderr.contains("rtype exit-signal"), "{stderr}");
}

#[test]
fn never_close_sends_the_status_and_leaves_the_channel_open() {
    let hosts = simulate(1, &["0=never-close"]);
    let mut ssh = ssh_command(hosts.dir.path(), &hosts.address(0))
        .args(["-vvv", "-o", "ServerAliveInterval=1", "exit 3"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // By the time that the host has answered ssh's keepalive (REQUEST_FAILURE, 82), whatever it
    // sent before has come.
    let lines = BufReader::new(ssh.stderr.take().unwrap()).lines();
    let mut seen = Vec::new();
    for line in lines.map(Result::unwrap) {
        seen.push(line);
        if seen.last().unwrap().contains("receive packet: type 82") {
            break;
        }
    }
    stop(ssh);
    let seen = seen.join("\n");
    assert!(seen.contains("rtype exit-status"), "{seen}");
    for (what, number) in [("EOF", 96), ("CLOSE", 97)] {
        let line = format!("receive packet: type {number}");
        assert!(!seen.contains(&line), "CHANNEL_{what} came");
    }
}

/// The two faults below can only be seen by the clock. Waiting longer than asked cannot fail them.
#[test]
fn slow_output_takes_its_time_and_latency_delays_both_directions() {
    let hosts = simulate(3, &["0=slow-output:20000", "1=latency:100"]);
    let took = |host: usize, command: &str| {
        let begin = Instant::now();
        let output = hosts.ssh(host, &[command]);
        assert!(output.status.success(), "{output:?}");
        begin.elapsed()
    };
    assert!(took(0, "yes-bytes 10000") >= Duration::from_millis(400));
    // After connecting ssh still asks for the key exchange, the service, two or three
    // authentications, the channel and the command; one round trip is 200 ms.
    assert!(took(1, "true") >= Duration::from_millis(6 * 200));

    let begin = Instant::now();
    assert_eq!(hosts.connect(1).read(BANNER.len()), BANNER);
    assert!(begin.elapsed() >= Duration::from_millis(100));
}

#[test]
fn a_delayed_stream_is_whole_and_its_cuts_are_exact() {
    let hosts = simulate(
        3,
        &["*=latency:20", "1=reset-at:100", "2=close-input-at:auth+50"],
    );
    let output = hosts.ssh(0, &["yes-bytes 6000000"]);
    assert!(output.status.success());
    assert_eq!(output.stdout.len(), 6_000_000);

    let (received, ending) = hosts.connect(1).send(CLIENT).read_all();
    assert_eq!((received.len(), ending), (100, Ending::Reset));

    let stderr = hosts.ssh_fails(2, &["true"]);
    assert!(stderr.contains("closed"), "{stderr}");
}

#[test]
fn a_silent_host_works_on_and_notices_when_the_client_goes() {
    let hosts = simulate(1, &["0=silent-at:auth+0"]);
    let ssh = ssh_command(hosts.dir.path(), &hosts.address(0))
        .arg("true")
        .spawn()
        .unwrap();
    until(|| hosts.simulation.totals().logins == 1);
    assert_eq!(hosts.simulation.totals().open, 1);
    stop(ssh);
    until(|| hosts.simulation.totals().open == 0);
}

/// What a healthy host has sent and received.
fn traffic_of_a_run(hosts: &Hosts) -> Traffic {
    assert!(hosts.ssh(0, &["count runs"]).status.success());
    traffic_to_the_end(hosts)
}

/// The same of a client that has gone, whose last words the host need not have read by then.
fn traffic_to_the_end(hosts: &Hosts) -> Traffic {
    until(|| hosts.simulation.totals().open == 0);
    hosts.simulation.last_traffic(0).unwrap()
}

fn until(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !condition() {
        assert!(Instant::now() < deadline, "it never happened");
        std::thread::sleep(Duration::from_millis(1));
    }
}
