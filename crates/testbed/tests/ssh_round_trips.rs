//! What the installed ssh waits for at 100 ms a round trip, counted on the wire: the yardstick for sshoal's own
//! logins, and the proof that real servers work behind the delay line. Needs root, iproute2 and OpenSSH.

#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use sshoal_testbed::delay_line::{DelayLine, LineSpec};
use sshoal_testbed::sshd::{RealSshd, SshdSpec};

const DELAY: Duration = Duration::from_millis(50);

/// TCP, versions and KEXINIT, key exchange, service, `none`, the key's probe, its signature, channel: each waits
/// for the one before. What then runs the command may be counted with the channel's.
const FEWEST: u32 = 8;

#[test]
fn ssh_waits_for_every_step_of_the_protocol() {
    let line = DelayLine::start(LineSpec::delayed(DELAY)).unwrap_or_else(|error| panic!("{error}"));
    let start = || RealSshd::start(&SshdSpec::new(1));
    let server = line.server_namespace().run(start).unwrap().unwrap();
    let files = tempfile::tempdir().unwrap();
    server.client_files().unwrap().write(files.path()).unwrap();
    // Whatever was sent to find out whether it listens.
    line.clear_counts();

    let begun = Instant::now();
    let mut ssh = line
        .command_in_client("ssh")
        .arg("-F")
        .arg(files.path().join("ssh_config"))
        .arg(server.addresses()[0].ip().to_string())
        .arg("echo hello; exec cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = String::new();
    BufReader::new(ssh.stdout.take().unwrap())
        .read_line(&mut output)
        .unwrap();
    let elapsed = begun.elapsed();
    // The command now waits for input, and the line is quiet: these are the trips to the first output.
    let connections = line.connections();
    drop(ssh.stdin.take());
    assert!(ssh.wait().unwrap().success());

    assert_eq!(output, "hello\n");
    let [connection] = connections[..] else {
        panic!("one connection, not {connections:?}");
    };
    let (all, data) = (connection.round_trips(), connection.data_round_trips());
    println!("first output after {elapsed:?}: {all} round trips, {data} of them for data alone");
    assert!(data >= FEWEST, "{connection:?}");
    assert!(all >= data, "{connection:?}");
    assert!(
        elapsed >= all * 2 * DELAY,
        "{all} round trips cannot take {elapsed:?}"
    );
}
