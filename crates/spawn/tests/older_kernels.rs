//! Where the kernel, or a filter, does not have the newest calls, older ones do the same.

#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;

use rustix::io::FdFlags;
use sshoal_spawn::{Command, SignalSet, Stdio};
use support::{Call, with_failing};

const CLONE3: Call = (libc::SYS_clone3, &[]);
const CLOSE_RANGE: Call = (libc::SYS_close_range, &[]);

/// What such a filter answers: a kernel's "no such call", and what containers answer to calls they do not know.
const MISSING: [i32; 2] = [libc::ENOSYS, libc::EPERM];

fn output(command: &Command) -> String {
    let mut child = command.spawn().unwrap();
    let mut text = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    assert!(child.wait().unwrap().success());
    text
}

#[test]
fn without_clone3_programs_start_and_errors_are_told() {
    for errno in MISSING {
        with_failing(&[(CLONE3, errno)], || {
            let mut echo = Command::new("echo");
            assert_eq!(output(echo.arg("hello").stdout(Stdio::pipe())), "hello\n");
            let child = echo.with_pidfd().spawn().unwrap();
            assert!(child.pidfd().is_ok(), "clone(2) has given one since 5.2");
            drop(child.stdout);
            let error = Command::new("/no/such/program").spawn().unwrap_err();
            assert_eq!(error.errno(), libc::ENOENT);
        });
    }
}

#[tokio::test]
async fn without_clone3_no_handler_of_ours_is_left_to_the_program() {
    use tokio::signal::unix::{SignalKind, signal};
    // A handler for SIGUSR1 is installed in this process.
    let _caught = signal(SignalKind::user_defined1()).unwrap();
    let status = with_failing(&[(CLONE3, libc::ENOSYS)], || {
        let mut cat = Command::new("/bin/cat");
        output(cat.arg("/proc/self/status").stdout(Stdio::pipe()))
    });
    let field = |name: &str| {
        status
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .unwrap()
            .trim()
            .to_owned()
    };
    assert_eq!(field("SigCgt:"), "0000000000000000");
    let ignored = u64::from_str_radix(&field("SigIgn:"), 16).unwrap();
    assert!(!SignalSet::from_bits(ignored).contains(sshoal_spawn::Signal::PIPE));
}

#[test]
fn without_close_range_nothing_is_inherited_either() {
    // Enough of them that one buffer of the listing does not hold all.
    let leaky: Vec<File> = (0..200).map(|_| File::open("/dev/null").unwrap()).collect();
    for file in &leaky {
        rustix::io::fcntl_setfd(file, FdFlags::empty()).unwrap();
    }
    for errno in MISSING {
        let listing = with_failing(&[(CLOSE_RANGE, errno)], || {
            let mut ls = Command::new("/bin/ls");
            output(ls.args(["-1", "/proc/self/fd"]).stdout(Stdio::pipe()))
        });
        assert_eq!(listing.lines().count(), 4, "{listing}");
    }
    let everything = output(
        Command::new("/bin/ls")
            .args(["-1", "/proc/self/fd"])
            .stdout(Stdio::pipe())
            .inherit_descriptors(true),
    );
    assert!(
        everything.lines().count() > 200,
        "the listing would show them"
    );
}

#[test]
fn a_process_without_a_descriptor_is_waited_for_by_its_number() {
    // What posix_spawn starts gets its descriptor by pidfd_open, which Linux has had since 5.3.
    with_failing(&[((libc::SYS_pidfd_open, &[]), libc::ENOSYS)], || {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", "exit 3"])
            .method(sshoal_spawn::Method::PosixSpawn);
        let mut child = command.spawn().unwrap();
        assert!(child.pidfd().is_err());
        assert_eq!(child.wait().unwrap().code(), Some(3));

        let mut child = Command::new("/bin/sleep")
            .arg("1000")
            .method(sshoal_spawn::Method::PosixSpawn)
            .spawn()
            .unwrap();
        child.kill().unwrap();
        assert!(!child.wait().unwrap().success());
    });
}

#[test]
fn waiting_by_descriptor_gives_way_to_waiting_by_number() {
    // P_PIDFD is 3: Linux 5.4.
    let by_descriptor: Call = (libc::SYS_waitid, &[(0, 3)]);
    with_failing(&[(by_descriptor, libc::EINVAL)], || {
        let mut child = Command::new("/bin/sh")
            .args(["-c", "exit 4"])
            .with_pidfd()
            .spawn()
            .unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(4));
    });
}

#[test]
fn posix_spawn_closes_what_is_not_to_be_inherited() {
    let leaky = File::open("/dev/null").unwrap();
    rustix::io::fcntl_setfd(&leaky, FdFlags::empty()).unwrap();
    let mut ls = Command::new("/bin/ls");
    ls.args(["-1", "/proc/self/fd"])
        .stdout(Stdio::pipe())
        .method(sshoal_spawn::Method::PosixSpawn);
    let seen: BTreeSet<String> = output(&ls).lines().map(str::to_owned).collect();
    assert_eq!(seen.len(), 4, "{seen:?}");
    assert!(fs::metadata("/proc/self/fd/0").is_ok());
}
