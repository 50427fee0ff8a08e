//! Standard streams and other descriptors: what the program gets, and what it must not get.

#![allow(clippy::unwrap_used)]

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::io::FdFlags;
use sshoal_spawn::{Child, Command, DescriptorSet, Method, Stdio, Step};

/// The ways in which a child can be made. All must do the same.
const METHODS: [Method; 3] = [Method::Clone, Method::Fork, Method::PosixSpawn];

fn shell(script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]);
    command
}

fn read_all(pipe: Option<impl Read>) -> String {
    let mut text = String::new();
    pipe.unwrap().read_to_string(&mut text).unwrap();
    text
}

fn finish(mut child: Child) {
    let status = child.wait().unwrap();
    assert!(status.success(), "{status}");
}

#[test]
fn three_pipes_carry_what_is_written() {
    for method in METHODS {
        let mut child = shell("read line; echo \"out $line\"; echo \"err $line\" >&2")
            .stdin(Stdio::pipe())
            .stdout(Stdio::pipe())
            .stderr(Stdio::pipe())
            .method(method)
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(b"hello\n").unwrap();
        assert_eq!(read_all(child.stdout.take()), "out hello\n", "{method:?}");
        assert_eq!(read_all(child.stderr.take()), "err hello\n", "{method:?}");
        finish(child);
    }
}

#[test]
fn the_standard_error_goes_where_the_standard_output_goes() {
    for method in METHODS {
        let mut child = shell("echo one; echo two >&2")
            .stdout(Stdio::pipe())
            .stderr_into_stdout()
            .method(method)
            .spawn()
            .unwrap();
        assert_eq!(read_all(child.stdout.take()), "one\ntwo\n", "{method:?}");
        finish(child);
    }
}

#[test]
fn an_inherited_standard_output_can_take_the_standard_error() {
    let mut command = shell("[ /proc/$$/fd/1 -ef /proc/$$/fd/2 ]");
    finish(command.stderr_into_stdout().spawn().unwrap());
}

#[test]
fn files_are_read_made_and_appended_to() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in"), folder.path().join("out"));
    fs::write(&input, "first\n").unwrap();
    for stdout in [Stdio::create_file(&output), Stdio::append_file(&output)] {
        let mut copy = Command::new("/bin/cat");
        copy.stdin(Stdio::read_file(&input)).stdout(stdout);
        finish(copy.spawn().unwrap());
    }
    assert_eq!(fs::read_to_string(&output).unwrap(), "first\nfirst\n");

    let mut copy = Command::new("/bin/cat");
    copy.stdin(Stdio::null())
        .stdout(Stdio::create_file(&output));
    finish(copy.spawn().unwrap());
    assert_eq!(fs::read_to_string(&output).unwrap(), "");
}

#[test]
fn a_file_that_cannot_be_opened_names_its_stream() {
    let missing = || Stdio::read_file("/no/such/file");
    let step = |command: &mut Command| {
        let error = command.spawn().unwrap_err();
        assert_eq!(error.errno(), libc::ENOENT);
        error.step()
    };
    assert_eq!(step(shell("").stdin(missing())), Step::Stdin);
    assert_eq!(step(shell("").stdout(missing())), Step::Stdout);
    assert_eq!(step(shell("").stderr(missing())), Step::Stderr);
}

#[test]
fn open_descriptors_serve_as_streams_again_and_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let mut command = shell("echo line");
    command.stdout(File::create(&path).unwrap());
    finish(command.spawn().unwrap());
    finish(command.spawn().unwrap());
    assert_eq!(fs::read_to_string(&path).unwrap(), "line\nline\n");
}

#[test]
fn a_socket_is_a_stream_too() {
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    finish(shell("echo over a socket").stdout(theirs).spawn().unwrap());
    assert_eq!(read_all(Some(&mut ours)), "over a socket\n");
}

#[test]
fn other_descriptors_come_under_the_number_that_was_asked_for() {
    for method in METHODS {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let mut command = shell("echo seven >&7");
        command.descriptor(7, theirs).method(method);
        finish(command.spawn().unwrap());
        drop(command);
        assert_eq!(read_all(Some(&mut ours)), "seven\n", "{method:?}");
    }
}

#[test]
fn descriptors_that_change_places_do_not_overwrite_each_other() {
    for method in METHODS {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (folder.path().join("a"), folder.path().join("b"));
        let a = OwnedFd::from(File::create(&first).unwrap());
        let b = OwnedFd::from(File::create(&second).unwrap());
        let (a_number, b_number) = (a.as_raw_fd(), b.as_raw_fd());
        // By their paths: a shell's `>&` may know one digit only.
        let mut command = shell(&format!(
            "echo to a >/proc/self/fd/{b_number}; echo to b >/proc/self/fd/{a_number}"
        ));
        command
            .descriptor(b_number, a)
            .descriptor(a_number, b)
            .method(method);
        finish(command.spawn().unwrap());
        assert_eq!(fs::read_to_string(&first).unwrap(), "to a\n", "{method:?}");
        assert_eq!(fs::read_to_string(&second).unwrap(), "to b\n", "{method:?}");
    }
}

/// The numbers that a program finds open when it starts. `ls` itself opens the folder: the last, lowest free one.
fn numbers_seen(command: &mut Command) -> Vec<i32> {
    let mut child = command
        .args(["-1", "/proc/self/fd"])
        .stdout(Stdio::pipe())
        .spawn()
        .unwrap();
    let listing = read_all(child.stdout.take());
    finish(child);
    listing.lines().map(|line| line.parse().unwrap()).collect()
}

#[test]
fn nothing_else_is_inherited_unless_asked_for() {
    let leaky = File::open("/dev/null").unwrap();
    rustix::io::fcntl_setfd(&leaky, FdFlags::empty()).unwrap();
    let number = leaky.as_raw_fd();
    for method in METHODS {
        let seen = numbers_seen(Command::new("/bin/ls").method(method));
        assert!(
            seen.len() == 4 && seen.starts_with(&[0, 1, 2]),
            "{method:?}: {seen:?}"
        );

        let seen = numbers_seen(
            Command::new("/bin/ls")
                .inherit_descriptors(true)
                .method(method),
        );
        assert!(seen.contains(&number), "{method:?}: {seen:?}");

        let given = leaky.as_fd().try_clone_to_owned().unwrap();
        let seen = numbers_seen(Command::new("/bin/ls").descriptor(30, given).method(method));
        assert!(
            seen.contains(&30) && seen.len() == 5,
            "{method:?}: {seen:?}"
        );
    }
}

#[test]
fn what_is_withheld_is_not_inherited_where_others_are() {
    // High numbers: `ls` gives the lowest free one to the folder it lists, and that one is not ours.
    let null = File::open("/dev/null").unwrap();
    let leaky = [(); 2].map(|()| rustix::io::fcntl_dupfd_cloexec(&null, 500).unwrap());
    for file in &leaky {
        rustix::io::fcntl_setfd(file, FdFlags::empty()).unwrap();
    }
    let [kept, withheld] = [&leaky[0], &leaky[1]].map(AsRawFd::as_raw_fd);
    static WITHHELD: DescriptorSet = DescriptorSet::new();
    let not_open = 999;
    assert!(
        [withheld, not_open, 31]
            .into_iter()
            .all(|number| WITHHELD.insert(number))
    );
    for method in METHODS {
        let given = leaky[1].try_clone().unwrap();
        let mut ls = Command::new("/bin/ls");
        ls.inherit_descriptors(true)
            .withhold(&WITHHELD)
            .descriptor(31, given);
        let seen = numbers_seen(ls.method(method));
        assert!(
            seen.contains(&kept) && seen.contains(&31) && !seen.contains(&withheld),
            "{method:?}: {seen:?}"
        );
    }
}

#[test]
fn a_descriptor_may_keep_its_number() {
    for method in METHODS {
        let (mut ours, theirs) = std::io::pipe().unwrap();
        let number = theirs.as_raw_fd();
        let mut command = shell(&format!("echo same >/proc/self/fd/{number}"));
        command.descriptor(number, theirs).method(method);
        finish(command.spawn().unwrap());
        drop(command);
        assert_eq!(read_all(Some(&mut ours)), "same\n", "{method:?}");
    }
}

#[test]
fn our_ends_of_pipes_are_close_on_exec() {
    let mut cat = Command::new("/bin/cat");
    let child = cat
        .stdin(Stdio::pipe())
        .stdout(Stdio::pipe())
        .spawn()
        .unwrap();
    for end in [
        child.stdin.as_ref().unwrap().as_fd(),
        child.stdout.as_ref().unwrap().as_fd(),
    ] {
        assert_eq!(rustix::io::fcntl_getfd(end).unwrap(), FdFlags::CLOEXEC);
    }
    assert_eq!(
        rustix::io::fcntl_getfd(child.pidfd().unwrap()).unwrap(),
        FdFlags::CLOEXEC
    );
    finish(child);
}
