//! The delay line with real namespaces, TUN devices and TCP. Needs root and iproute2.

#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use sshoal_testbed::delay_line::{
    ConnectionTrips, DelayLine, Direction, Flights, LineError, LineSpec, flag,
};

const PORT: u16 = 7;
/// Debian's nobody and nogroup.
const NOBODY: u32 = 65_534;
/// After so long something hangs that should not.
const DEADLINE: Duration = Duration::from_secs(240);
const DELAY: Duration = Duration::from_millis(20);

fn start(spec: LineSpec) -> DelayLine {
    DelayLine::start(spec).unwrap_or_else(|error| panic!("{error}"))
}

fn listener(line: &DelayLine) -> TcpListener {
    let address = SocketAddr::from((line.server_address(), PORT));
    line.server_namespace()
        .run(|| TcpListener::bind(address))
        .unwrap()
        .unwrap()
}

fn connect(line: &DelayLine) -> TcpStream {
    let address = SocketAddr::from((line.server_address(), PORT));
    let stream = line
        .client_namespace()
        .run(|| TcpStream::connect(address))
        .unwrap()
        .unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// A connection over the line, and what the server does with it on a thread of its own.
fn with_server(
    line: &DelayLine,
    serve: impl FnOnce(TcpStream) + Send,
    client: impl FnOnce(TcpStream),
) {
    let listener = listener(line);
    thread::scope(|scope| {
        scope.spawn(move || serve(listener.accept().unwrap().0));
        client(connect(line));
    });
}

fn only_connection(line: &DelayLine) -> ConnectionTrips {
    let connections = line.connections();
    assert_eq!(connections.len(), 1, "{connections:?}");
    connections[0]
}

fn exists(namespace: &str) -> bool {
    Path::new("/run/netns").join(namespace).exists()
}

fn names(line: &DelayLine) -> [String; 2] {
    [line.client_namespace(), line.server_namespace()].map(|namespace| namespace.name().to_owned())
}

#[test]
fn every_exchange_is_a_round_trip_and_none_is_faster_than_the_line() {
    const EXCHANGES: u32 = 5;
    let line = start(LineSpec::delayed(DELAY));
    let echo = |mut stream: TcpStream| {
        stream.set_nodelay(true).unwrap();
        let mut byte = [0];
        while stream.read(&mut byte).unwrap() > 0 {
            stream.write_all(&byte).unwrap();
        }
    };
    with_server(&line, echo, |mut stream| {
        for _ in 0..EXCHANGES {
            let sent = Instant::now();
            stream.write_all(b"x").unwrap();
            stream.read_exact(&mut [0]).unwrap();
            assert!(
                sent.elapsed() >= 2 * DELAY,
                "faster than the line: {:?}",
                sent.elapsed()
            );
        }
    });
    let expected = Flights {
        client_to_server: EXCHANGES.into(),
        server_to_client: EXCHANGES.into(),
    };
    assert_eq!(line.flights(), expected);
    // TCP's own round trip comes first.
    let connection = only_connection(&line);
    assert_eq!(connection.round_trips(), EXCHANGES + 1);
    assert_eq!(connection.data_round_trips(), EXCHANGES + 1);
    line.finish().unwrap();
}

#[test]
fn pipelined_requests_are_one_flight() {
    let line = start(LineSpec::delayed(DELAY));
    let answer_all_at_once = |mut stream: TcpStream| {
        stream.read_exact(&mut [0; 10]).unwrap();
        stream.write_all(b"done").unwrap();
        stream.read_to_end(&mut Vec::new()).unwrap();
    };
    with_server(&line, answer_all_at_once, |mut stream| {
        for _ in 0..10 {
            stream.write_all(b"x").unwrap();
        }
        stream.read_exact(&mut [0; 4]).unwrap();
    });
    let one_each = Flights {
        client_to_server: 1,
        server_to_client: 1,
    };
    assert_eq!(line.flights(), one_each);
    // A client that comes to its last writes late has the first acknowledged by then.
    assert_eq!(only_connection(&line).data_round_trips(), 2);
}

#[test]
fn what_nagle_holds_back_shows_as_a_round_trip() {
    let line = start(LineSpec::delayed(DELAY));
    let two_small_writes = |mut stream: TcpStream| {
        stream.read_exact(&mut [0]).unwrap();
        // The second waits until the first is acknowledged: this socket has no TCP_NODELAY.
        stream.write_all(b"a").unwrap();
        stream.write_all(b"b").unwrap();
        stream.read_to_end(&mut Vec::new()).unwrap();
    };
    with_server(&line, two_small_writes, |mut stream| {
        stream.write_all(b"x").unwrap();
        stream.read_exact(&mut [0; 2]).unwrap();
    });
    let connection = only_connection(&line);
    assert_eq!(connection.data_round_trips(), 2);
    assert_eq!(connection.round_trips(), 3);
}

#[test]
fn a_capture_shows_the_handshake_and_packets_larger_than_the_link_takes() {
    const LENGTH: usize = 1_000_000;
    let line = start(LineSpec::delayed(Duration::from_millis(1)));
    line.start_capture();
    let sink = |mut stream: TcpStream| {
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        assert_eq!(all.len(), LENGTH);
    };
    with_server(&line, sink, |mut stream| {
        stream.write_all(&vec![0; LENGTH]).unwrap()
    });
    let records = line.stop_capture();
    let flags: Vec<_> = records.iter().map(|record| record.flags).take(3).collect();
    assert_eq!(flags, [flag::SYN, flag::SYN | flag::ACK, flag::ACK]);
    assert!(records.is_sorted_by_key(|record| record.time));
    let to_server = records
        .iter()
        .filter(|record| record.direction == Direction::ClientToServer);
    let payloads: Vec<_> = to_server.map(|record| record.payload_len).collect();
    // What is acknowledged late may be sent again.
    assert!(payloads.iter().sum::<usize>() >= LENGTH);
    assert!(
        payloads.iter().any(|&length| length > 1460),
        "segmentation is not offloaded: {payloads:?}"
    );
    let counters = line.counters(Direction::ClientToServer);
    assert!(
        counters.packets > LENGTH as u64 / 1460,
        "but the wire's packets are counted: {counters:?}"
    );
}

#[test]
fn data_arrives_whole_over_a_lossy_line_with_a_short_queue() {
    let line = start(LineSpec {
        delay: Duration::from_micros(500),
        rate_bits: Some(400_000_000),
        queue_bytes: Some(60_000),
        loss: 0.005,
        seed: 7,
    });
    let data: Vec<u8> = (0..4_000_000_u32)
        .map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let echo_all = |mut stream: TcpStream| {
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        stream.write_all(&all).unwrap();
    };
    with_server(&line, echo_all, |mut stream| {
        stream.write_all(&data).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut back = Vec::new();
        stream.read_to_end(&mut back).unwrap();
        assert!(
            back == data,
            "{} bytes came back, not what was sent",
            back.len()
        );
    });
    for direction in [Direction::ClientToServer, Direction::ServerToClient] {
        let counters = line.counters(direction);
        assert!(
            counters.lost > 0 && counters.overflowed > 0,
            "{direction:?}: {counters:?}"
        );
    }
}

#[test]
fn a_line_that_loses_everything_connects_nobody() {
    let line = start(LineSpec {
        loss: 1.0,
        ..LineSpec::default()
    });
    let _listener = listener(&line);
    let address = SocketAddr::from((line.server_address(), PORT));
    let attempt = || TcpStream::connect_timeout(&address, Duration::from_millis(100));
    let error = line.client_namespace().run(attempt).unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    let begun = Instant::now();
    // On a busy machine the line may not have come to it, or TCP may have sent it again.
    let counters = loop {
        let counters = line.counters(Direction::ClientToServer);
        if counters.packets > 0 {
            break counters;
        }
        assert!(begun.elapsed() < DEADLINE, "nothing comes to the line");
        thread::sleep(Duration::from_millis(5));
    };
    assert_eq!(counters.packets, counters.lost);
}

#[test]
fn servers_on_loopback_addresses_lie_beyond_the_line() {
    let line = start(LineSpec::default());
    let first: SocketAddr = "127.1.0.0:7".parse().unwrap();
    let last: SocketAddr = "127.255.255.254:7".parse().unwrap();
    for (address, connection) in [first, last].into_iter().zip(1..) {
        let _listener = line
            .server_namespace()
            .run(|| TcpListener::bind(address))
            .unwrap()
            .unwrap();
        let stream = line
            .client_namespace()
            .run(|| TcpStream::connect(address))
            .unwrap()
            .unwrap();
        assert_eq!(stream.local_addr().unwrap().ip(), line.client_address());
        assert_eq!(
            line.connections().len(),
            connection,
            "{address} is not beyond the line"
        );
    }
}

#[test]
fn each_side_has_a_loopback_of_its_own() {
    let line = start(LineSpec::default());
    for loopback in ["127.0.0.1:7", "127.0.255.254:7", "[::1]:7"] {
        let _listener = line
            .server_namespace()
            .run(|| TcpListener::bind(loopback))
            .unwrap()
            .unwrap();
        line.server_namespace()
            .run(|| TcpStream::connect(loopback))
            .unwrap()
            .unwrap();
        let error = line
            .client_namespace()
            .run(|| TcpStream::connect(loopback))
            .unwrap()
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    }
    assert_eq!(line.counters(Direction::ClientToServer).packets, 0);
}

#[test]
fn waiting_for_a_server_ends_either_way() {
    let line = start(LineSpec::default());
    let error = line.wait_listening(PORT, Duration::ZERO).unwrap_err();
    assert!(
        matches!(error, LineError::NotListening { port: PORT, .. }),
        "{error}"
    );
    let _listener = listener(&line);
    line.wait_listening(PORT, Duration::ZERO).unwrap();
}

#[test]
fn nonsense_is_refused() {
    for spec in [
        LineSpec {
            loss: 1.5,
            ..LineSpec::default()
        },
        LineSpec {
            loss: f64::NAN,
            ..LineSpec::default()
        },
        LineSpec {
            rate_bits: Some(0),
            ..LineSpec::default()
        },
    ] {
        assert!(matches!(DelayLine::start(spec), Err(LineError::Spec(_))));
    }
}

#[test]
fn namespaces_go_with_the_line_also_after_a_panic() {
    let line = start(LineSpec::default());
    let names_before = names(&line);
    assert!(names_before.iter().all(|name| exists(name)));
    let failure = catch_unwind(AssertUnwindSafe(move || {
        line.client_namespace()
            .run(|| panic!("a test fails"))
            .unwrap();
    }));
    assert!(failure.is_err());
    assert!(
        !names_before.iter().any(|name| exists(name)),
        "{names_before:?} are still there"
    );
}

#[test]
fn what_a_killed_process_left_is_removed_by_the_next() {
    let mut child = Command::new("true").spawn().unwrap();
    let name = format!("sshoal-{}-0-client", child.id());
    child.wait().unwrap();
    let added = Command::new("ip")
        .args(["netns", "add", &name])
        .status()
        .unwrap();
    assert!(added.success() && exists(&name));
    let line = start(LineSpec::default());
    assert!(!exists(&name));
    assert!(
        names(&line).iter().all(|name| exists(name)),
        "and nobody else's"
    );
}

fn wan(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sshoal-testbed"));
    command
        .arg("wan")
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    let mut byte = [0];
    let stdout = child.stdout.as_mut().unwrap();
    while stdout.read(&mut byte).unwrap() > 0 && byte != *b"\n" {
        line.push(char::from(byte[0]));
    }
    line
}

#[test]
fn the_command_runs_beside_its_server_and_its_status_is_passed_on() {
    let server = "echo server $$ >&2; exec sleep 1000";
    let client = "echo $SSHOAL_WAN_SERVER; ip -brief address show dev wan0; exit 7";
    let output = wan(&[
        "--delay-ms",
        "1",
        "--server-cmd",
        server,
        "--",
        "sh",
        "-c",
        client,
    ])
    .output()
    .unwrap();
    assert_eq!(output.status.code(), Some(7));
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(stdout.starts_with("10.77.0.2\n"), "{stdout}");
    assert!(stdout.contains("10.77.0.1/24"), "{stdout}");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.contains("flights of data: 0 to the server, 0 to the client"),
        "{stderr}"
    );
}

#[test]
fn an_ended_run_leaves_neither_server_nor_namespaces() {
    let server = "echo server $$; exec sleep 1000";
    let client = "sleep 1000";
    for signal in ["TERM", "HUP"] {
        let mut child = wan(&["--quiet", "--server-cmd", server, "--", "sh", "-c", client])
            .spawn()
            .unwrap();
        let greeting = first_line(&mut child);
        let server_pid = greeting.strip_prefix("server ").unwrap();
        let signalled = Command::new("kill")
            .args([&format!("-{signal}"), &child.id().to_string()])
            .status();
        assert!(signalled.unwrap().success());
        let status = child.wait().unwrap();
        assert_eq!(status.code(), Some(128 + 15), "the command ends by SIGTERM");
        assert!(
            !Path::new("/proc").join(server_pid).exists(),
            "{server_pid} still runs"
        );
        assert!(!exists(&format!("sshoal-{}-0-client", child.id())));
        assert!(!exists(&format!("sshoal-{}-1-server", child.id())));
    }
}

#[test]
fn without_root_it_says_so() {
    // As standard input, the program needs no directory on the way to be open to everybody.
    let program = File::open(env!("CARGO_BIN_EXE_sshoal-testbed")).unwrap();
    let output = Command::new("/proc/self/fd/0")
        .args(["wan", "--", "true"])
        .stdin(program)
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    assert!(!output.status.success());
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("run it as root"), "{stderr}");
}
