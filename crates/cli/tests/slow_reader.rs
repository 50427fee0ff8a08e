//! Readers that are slower than the hosts: memory stays bounded, no octet and no connection is lost.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::io::Read;
use std::process::ChildStdout;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use sshoal_testbed::sshd::{Layout, RealSshd, SshdSpec};
use support::program::Running;
use support::{Shoal, shared_folder, wait_until};

/// Real hosts, which run whatever /bin/sh understands.
fn real(hosts: u32) -> Shoal<RealSshd> {
    let mut spec = SshdSpec::new(hosts);
    spec.layout = Layout::Shared;
    Shoal::real(&spec)
}

/// Hosts that send more than anybody reads.
const TALKATIVE: u32 = 100;
/// What each of them sends, in bytes. Together far more than [`MEMORY_LIMIT`].
const TALK: usize = 20_000_000;
/// What sshoal may need for it: 64 MiB of output on its way, and as much in the channels' windows.
const MEMORY_LIMIT: u64 = 250 * 1024 * 1024;
/// The pace of a slow reader, in bytes a second, and how long it keeps it up.
const PACE: usize = 1_000_000;
const SLOW_FOR: Duration = Duration::from_secs(3);

/// A line that makes a host talk, and the bytes of each of its lines.
fn talk() -> (String, usize) {
    let word = "t".repeat(999);
    (format!("yes {word} | head -c {TALK}"), word.len() + 1)
}

/// Reads slowly for a while. Returns what was read.
fn read_slowly(stdout: &mut ChildStdout) -> usize {
    let begun = Instant::now();
    let mut buffer = vec![0; PACE / 20];
    let mut read = 0;
    while begun.elapsed() < SLOW_FOR {
        read += stdout.read(&mut buffer).unwrap();
        thread::sleep(Duration::from_millis(50));
    }
    read
}

/// What each host has to send in the next test, in pieces of so many bytes: 1 GB.
const PIECE: usize = 100_000;
const PIECES: usize = 10_000;
/// What is read of it: more than can be on its way, so that every host's window is filled and emptied again and again.
const READ: usize = 200_000_000;
/// How many times in a row the hosts must be seen where they were before they count as standing still.
const STILL: usize = 60;

/// 100 hosts have 1 GB each to send, and nobody reads. The test waits until no host can send any more, because all windows
/// and buffers are full; then reads 200 MB, waits again, and looks at the most memory that the process ever had. It then
/// presses Ctrl-C: all 100 GB would take CI an hour, and could show only that the same goes on.
#[test]
fn a_hundred_gigabytes_that_nobody_reads_stay_with_the_hosts() {
    let shoal = real(TALKATIVE);
    let sent = shared_folder();
    // A mark for each piece that has left the host's shell.
    let line = format!(
        "i=0; while [ $i -lt {PIECES} ]; do yes {} | head -c {PIECE}; printf . >>{}/%h; i=$((i+1)); done",
        "t".repeat(999),
        sent.path().display()
    );
    let marks = || -> u64 {
        let files = fs::read_dir(sent.path()).unwrap();
        files
            .map(|file| file.unwrap().metadata().unwrap().len())
            .sum()
    };
    let (read_on, permits) = mpsc::channel::<usize>();
    let read = move |mut stdout: ChildStdout| {
        let mut buffer = vec![0; PIECE];
        for octets in permits {
            for _ in 0..octets / PIECE {
                stdout.read_exact(&mut buffer).unwrap();
            }
        }
        Vec::new()
    };
    let mut running = Running::start_read_by(&mut shoal.command(&[&line]), read);
    let stand_still = |more_than: u64| {
        let (mut last, mut seen) = (0, 0);
        wait_until("the hosts can send no more", || {
            let now = marks();
            seen = if now == last && now > more_than {
                seen + 1
            } else {
                0
            };
            last = now;
            thread::sleep(Duration::from_millis(20));
            seen == STILL
        });
        last
    };
    let before = stand_still(u64::from(TALKATIVE));
    read_on.send(READ).unwrap();
    let after = stand_still(before + (READ / PIECE) as u64 / 2);
    assert!(after < u64::from(TALKATIVE) * PIECES as u64 / 20, "{after}");
    let needed = running.memory_so_far();
    println!("it needed {} MiB", needed >> 20);
    assert!((1..MEMORY_LIMIT).contains(&needed), "{needed} bytes");
    // Its reader stays until it has gone: without one it would end for that reason. Two signals at once would be one.
    wait_until("it has gone", || {
        let is_running = running.is_running();
        if is_running {
            running.interrupt();
        }
        !is_running
    });
    drop(read_on);
    running.wait().expect(130);
}

#[test]
fn a_slow_reader_costs_time_and_neither_memory_nor_hosts() {
    let shoal = real(TALKATIVE);
    let (line, length) = talk();
    let read = |mut stdout: ChildStdout| {
        let mut count = read_slowly(&mut stdout);
        let mut buffer = vec![0; 1 << 20];
        loop {
            match stdout.read(&mut buffer).unwrap() {
                0 => return count.to_string().into_bytes(),
                read => count += read,
            }
        }
    };
    let ended = Running::start_read_by(&mut shoal.command(&[&line]), read)
        .wait()
        .expect(0)
        .expect_memory_below(MEMORY_LIMIT);
    let prefixes: usize = (0..TALKATIVE as usize)
        .map(|host| shoal.name(host).len() + 2)
        .sum();
    let expected = TALKATIVE as usize * TALK + prefixes * (TALK / length);
    assert_eq!(ended.stdout(), expected.to_string());
}

/// Longer than the sshd of the next test bears with a client that does not answer: it asks each second, ten times, and
/// hangs up after eleven. Nothing is hoped for meanwhile; a client that answers passes after any time.
const PAUSE: Duration = Duration::from_secs(15);

#[test]
fn a_reader_that_pauses_costs_no_connection() {
    let mut spec = SshdSpec::new(1);
    spec.lines = vec![
        "ClientAliveInterval 1".to_owned(),
        "ClientAliveCountMax 10".to_owned(),
    ];
    let shoal = Shoal::real(&spec);
    let read = |mut stdout: ChildStdout| {
        let mut begun = [0];
        stdout.read_exact(&mut begun).unwrap();
        thread::sleep(PAUSE);
        let rest = std::io::copy(&mut stdout, &mut std::io::sink()).unwrap();
        (rest + 1).to_string().into_bytes()
    };
    // More than can be on its way.
    let line = format!("yes {} | head -c 200000000", "t".repeat(9_999));
    let ended = Running::start_read_by(&mut shoal.command(&[&line]), read)
        .wait()
        .expect(0);
    let prefixes = 20_000 * (shoal.name(0).len() + 2);
    assert_eq!(ended.stdout(), (200_000_000 + prefixes).to_string());
}

#[test]
fn a_reader_that_goes_ends_the_run_quietly() {
    let shoal = real(TALKATIVE);
    let (line, _) = talk();
    let read = |mut stdout: ChildStdout| {
        read_slowly(&mut stdout);
        Vec::new()
    };
    let ended = Running::start_read_by(&mut shoal.command(&[&line]), read)
        .wait()
        .expect(141)
        .expect_memory_below(MEMORY_LIMIT);
    assert_eq!(ended.stderr(), "");
}
