//! Standard input for the hosts' commands: a pipe or a file, to one host or to many, whole and ended.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use sshoal_testbed::sshd::{Layout, RealSshd, SshdSpec};
use support::program::{Ended, Running};
use support::{Shoal, noise};

/// Input that must arrive whole, in bytes.
const BULK: usize = 100_000_000;

fn real(hosts: u32) -> Shoal<RealSshd> {
    let mut spec = SshdSpec::new(hosts);
    spec.layout = Layout::Shared;
    Shoal::real(&spec)
}

/// A file with these bytes.
fn file<H>(shoal: &Shoal<H>, bytes: &[u8]) -> String {
    let path = shoal.user.home().join("input");
    fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().to_owned()
}

/// What sha256sum(1) says here.
fn sum(path: &str) -> String {
    let output = Command::new("sha256sum")
        .stdin(File::open(path).unwrap())
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Runs with these bytes in a pipe to sshoal.
fn piped(mut command: Command, bytes: Vec<u8>) -> Ended {
    let (reader, mut writer) = std::io::pipe().unwrap();
    command.stdin(reader);
    let running = Running::start(&mut command);
    // The command holds the reading end as well, and would keep the pipe alive.
    drop(command);
    let writing = thread::spawn(move || writer.write_all(&bytes));
    let ended = running.wait();
    // A command that does not read leaves a broken pipe behind, as in a shell.
    let _ = writing.join().unwrap();
    ended
}

#[test]
fn a_hundred_megabytes_from_a_file_arrive_at_one_host() {
    let shoal = real(1);
    let path = file(&shoal, &noise(BULK));
    let ended = shoal.run(&["--stdin", &path, "sha256sum"]).expect(0);
    assert_eq!(ended.stdout(), format!("{}: {}", shoal.name(0), sum(&path)));
}

#[test]
fn a_hundred_megabytes_from_a_pipe_arrive_at_one_host() {
    let shoal = real(1);
    let bytes = noise(BULK);
    let path = file(&shoal, &bytes);
    let ended = piped(shoal.command(&["--stdin", "-", "sha256sum"]), bytes).expect(0);
    assert_eq!(ended.stdout(), format!("{}: {}", shoal.name(0), sum(&path)));
}

/// Every host has answered with `word`.
fn all_answered(shoal: &Shoal<RealSshd>, hosts: usize, ended: &Ended, word: &str) {
    let found = ended.stdout();
    let mut lines: Vec<&str> = found.lines().collect();
    lines.sort_unstable();
    let mut expected: Vec<String> = (0..hosts)
        .map(|host| format!("{}: {}", shoal.name(host), word.trim_end()))
        .collect();
    expected.sort_unstable();
    assert_eq!(lines, expected);
}

#[test]
fn many_hosts_get_all_of_it_from_a_file_and_from_a_pipe() {
    const HOSTS: usize = 12;
    let shoal = real(HOSTS as u32);
    let bytes = noise(3_000_001);
    let path = file(&shoal, &bytes);
    let sum = sum(&path);
    let from_file = shoal.run(&["--stdin", &path, "sha256sum"]).expect(0);
    all_answered(&shoal, HOSTS, &from_file, &sum);
    let from_pipe = piped(shoal.command(&["--stdin", "-", "sha256sum"]), bytes).expect(0);
    all_answered(&shoal, HOSTS, &from_pipe, &sum);
}

#[test]
fn hosts_that_take_turns_get_all_of_a_pipe_too() {
    let shoal = Shoal::simulated(20, &[]);
    let length = 1_000_000;
    let command = shoal.command(&["-p", "3", "--stdin", "-", "wc", "-c"]);
    let ended = piped(command, noise(length)).expect(0);
    let right = |line: &str| line.ends_with(&format!(": {length}"));
    assert_eq!(
        ended.stdout().lines().filter(|line| right(line)).count(),
        20
    );
}

#[test]
fn what_comes_back_is_what_was_sent() {
    let shoal = Shoal::simulated(2, &[]);
    let text: String = (0..100_000)
        .map(|number| format!("line {number}\n"))
        .collect();
    let path = file(&shoal, text.as_bytes());
    let ended = shoal.run(&["-b", "--stdin", &path, "cat"]).expect(0);
    let (_, shown) = ended
        .stdout()
        .split_once(" (2)\n")
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .unwrap();
    assert_eq!(
        shown.split_once('\n').unwrap().1,
        text,
        "both hosts gave the same"
    );
}

#[test]
fn the_end_of_input_is_passed_on_even_if_there_is_nothing_else() {
    let shoal = real(2);
    for input in ["/dev/null", &file(&shoal, b"")] {
        let ended = shoal.run(&["--stdin", input, "wc -c"]).expect(0);
        all_answered(&shoal, 2, &ended, "0");
    }
}

#[test]
fn input_arrives_as_it_comes_and_not_only_at_its_end() {
    let shoal = real(1);
    let (reader, mut writer) = std::io::pipe().unwrap();
    let mark = support::shared_folder();
    let seen = mark.path().join("seen");
    let line = format!(
        "read first; echo \"$first\" > {}; read second; echo \"$second\"",
        seen.display()
    );
    let mut command = shoal.command(&["--stdin", "-", &line]);
    command.stdin(reader);
    let running = Running::start(&mut command);
    drop(command);
    writer.write_all(b"one\n").unwrap();
    support::wait_until("the first line is there", || {
        fs::read_to_string(&seen).is_ok_and(|text| text == "one\n")
    });
    writer.write_all(b"two\n").unwrap();
    drop(writer);
    let ended = running.wait().expect(0);
    assert_eq!(ended.stdout(), format!("{}: two\n", shoal.name(0)));
}

#[test]
fn a_command_that_does_not_read_ends_all_the_same() {
    let shoal = real(3);
    let bytes = noise(20_000_000);
    let path = file(&shoal, &bytes);
    let ended = shoal.run(&["--stdin", &path, "echo done"]).expect(0);
    all_answered(&shoal, 3, &ended, "done");
    let ended = shoal
        .run(&["--stdin", &path, "head -c 5 | wc -c"])
        .expect(0);
    all_answered(&shoal, 3, &ended, "5");
    let one = shoal.configured(&["-w", &shoal.name(0), "--stdin", "-", "echo done"]);
    all_answered(&shoal, 1, &piped(one, bytes).expect(0), "done");
}

#[test]
fn a_pipe_that_stays_open_does_not_hold_up_a_command_that_has_ended() {
    let shoal = real(2);
    let (reader, writer) = std::io::pipe().unwrap();
    let mut command = shoal.command(&["--stdin", "-", "echo done"]);
    command.stdin(reader);
    let ended = Running::start(&mut command).wait().expect(0);
    all_answered(&shoal, 2, &ended, "done");
    drop(writer);
}

#[test]
fn without_the_option_nothing_is_read() {
    let shoal = real(1);
    let mut command = shoal.shell("$RUN cat; echo rest: $(cat)");
    command.stdin(Stdio::from(text(shoal.user.home(), "kept\n")));
    let ended = Running::start(&mut command).wait().expect(0);
    assert_eq!(ended.stdout(), "rest: kept\n");
}

fn text(folder: &Path, text: &str) -> File {
    let path = folder.join("text");
    fs::write(&path, text).unwrap();
    File::open(path).unwrap()
}
