//! `--congestion`: what the kernel is told of how to send, seen by strace.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::process::Command;

use sshoal_testbed::sshd::SshdSpec;
use support::copying::{command, real, text};
use support::program::Running;
use support::{noise, shared_folder};

/// Sends a file with one connection; returns what TCP_CONGESTION was set to, each time.
fn chosen(flags: &[&str]) -> Vec<String> {
    let shoal = real(SshdSpec::new(1));
    let folder = shared_folder();
    let [from, to, log] = ["from", "to", "log"].map(|name| folder.path().join(name));
    fs::write(&from, noise(100_000)).unwrap();
    let words = [&["put", "--lanes", "1"], flags, &[text(&from), text(&to)]].concat();
    let plain = command(&shoal, &words);
    let mut traced = Command::new("strace");
    traced.args(["-f", "-qq", "-e", "trace=setsockopt", "-o", text(&log)]);
    traced.arg(plain.get_program()).args(plain.get_args());
    traced.env_clear();
    for (name, value) in plain.get_envs() {
        traced.env(name, value.unwrap());
    }
    Running::start(&mut traced).wait().expect(0);
    assert_eq!(fs::read(&to).unwrap(), fs::read(&from).unwrap());
    let log = fs::read_to_string(&log).unwrap();
    log.lines()
        .filter_map(|line| line.split_once("TCP_CONGESTION, "))
        .map(|(_, rest)| rest.split(',').next().unwrap().to_owned())
        .collect()
}

/// How strace shows a value of four octets: as a number.
fn shown(name: &[u8; 4]) -> String {
    format!("[{}]", u32::from_ne_bytes(*name))
}

#[test]
fn one_that_is_named_is_tried_out_and_then_set_on_the_connection() {
    let reno = shown(b"reno");
    assert_eq!(chosen(&["--congestion", "reno"]), [reno.clone(), reno]);
}

#[test]
fn the_kernels_default_is_left_alone() {
    assert_eq!(chosen(&["--congestion", "system"]), [""; 0]);
}

#[test]
fn one_that_is_not_there_is_named_before_anything_is_sent() {
    let shoal = real(SshdSpec::new(1));
    let folder = shared_folder();
    let [from, to] = ["from", "to"].map(|name| folder.path().join(name));
    fs::write(&from, b"new").unwrap();
    fs::write(&to, b"old").unwrap();
    let words = ["put", "--congestion", "faster", text(&from), text(&to)];
    let ended = Running::start(&mut command(&shoal, &words)).wait();
    ended
        .expect(2)
        .says(&["no congestion control \"faster\"", "reno"]);
    assert_eq!(fs::read(&to).unwrap(), b"old");
}
