//! Where the program finds itself: directory, variables, session, group, umask, limits, signals, user.

#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;

use sshoal_spawn::{Command, Method, Resource, Rlimit, Signal, SignalSet, Stdio, Step};

/// The ways in which a child can be made that can do everything.
const CLONES: [Method; 2] = [Method::Clone, Method::Fork];
const METHODS: [Method; 3] = [Method::Clone, Method::Fork, Method::PosixSpawn];

/// What a command writes to its standard output. It must end with status 0.
fn output(command: &mut Command) -> String {
    let mut child = command.stdout(Stdio::pipe()).spawn().unwrap();
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

fn shell(script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]);
    command
}

/// The fields of /proc/PID/status of a program that is started like this.
fn status(command: &mut Command) -> BTreeMap<String, String> {
    output(command.arg("/proc/self/status"))
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        .collect()
}

fn signals(fields: &BTreeMap<String, String>, name: &str) -> SignalSet {
    SignalSet::from_bits(u64::from_str_radix(&fields[name], 16).unwrap())
}

#[test]
fn the_directory_is_the_one_named() {
    let folder = tempfile::tempdir().unwrap();
    let real = fs::canonicalize(folder.path()).unwrap();
    for method in CLONES {
        let mut pwd = Command::new("/bin/pwd");
        let seen = output(pwd.current_dir(&real).method(method));
        assert_eq!(seen.trim_end(), real.to_str().unwrap());
    }
}

#[test]
fn a_relative_program_is_looked_for_in_its_own_directory() {
    let tiny = support::Tiny::build();
    let mut command = Command::new("./tiny");
    let mut child = command.current_dir(tiny.folder()).spawn().unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(
        Command::new("./tiny").spawn().unwrap_err().step(),
        Step::Exec
    );
}

#[test]
fn variables_are_set_removed_cleared_and_inherited() {
    for method in METHODS {
        let mut env = Command::new("/usr/bin/env");
        let seen = output(
            env.env_clear()
                .env("ONE", "1")
                .env("TWO", "")
                .method(method),
        );
        assert_eq!(seen, "ONE=1\nTWO=\n", "{method:?}");
    }
    let path = std::env::var("PATH").unwrap();
    assert_eq!(output(&mut shell("printf %s \"$PATH\"")), path);
    let mut changed = shell("printf '%s %s' \"$PATH\" \"${HOME-none}\"");
    assert_eq!(
        output(changed.env_remove("HOME").env("X", "y")),
        format!("{path} none")
    );
}

#[test]
fn a_program_is_searched_in_the_path_it_gets() {
    let tiny = support::Tiny::build();
    for method in METHODS {
        let mut found = Command::new("tiny");
        found.env(
            "PATH",
            format!("/no/such/folder:{}", tiny.folder().display()),
        );
        assert!(
            found
                .method(method)
                .spawn()
                .unwrap()
                .wait()
                .unwrap()
                .success()
        );
        let error = Command::new("tiny").method(method).spawn().unwrap_err();
        assert_eq!(error.errno(), libc::ENOENT, "{method:?}");
    }
    // No PATH at all: /bin and /usr/bin.
    assert!(
        Command::new("true")
            .env_clear()
            .spawn()
            .unwrap()
            .wait()
            .unwrap()
            .success()
    );
}

#[test]
fn a_file_that_may_not_be_executed_is_the_answer_when_nothing_else_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("program");
    // By a process of its own: of a file that is open for writing here, if only in a fork, the answer would be ETXTBSY.
    let mut install = Command::new("install")
        .args(["-m", "644", "/dev/null", file.to_str().unwrap()])
        .spawn()
        .unwrap();
    assert!(install.wait().unwrap().success());
    let mut command = Command::new("program");
    let error = command.env("PATH", folder.path()).spawn().unwrap_err();
    assert_eq!((error.step(), error.errno()), (Step::Exec, libc::EACCES));

    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    let error = command.spawn().unwrap_err();
    assert_eq!((error.step(), error.errno()), (Step::Exec, libc::ENOEXEC));
}

#[test]
fn the_first_argument_may_be_another_name() {
    assert_eq!(output(shell("printf %s \"$0\"").arg0("-login")), "-login");
}

#[test]
fn sessions_and_groups_are_new_or_joined() {
    // Fields 5 and 6 of /proc/PID/stat: process group and session. cat's own name has no space in it.
    let own = |command: &mut Command| {
        let line = output(command.arg("/proc/self/stat"));
        let fields: Vec<u32> = line
            .split(' ')
            .filter_map(|field| field.parse().ok())
            .collect();
        // pid (name) state ppid pgrp session: the numbers are pid, ppid, pgrp, session.
        (fields[0], fields[2], fields[3])
    };
    let cat = || Command::new("/bin/cat");
    // Not getsid: a session that began outside of this PID namespace is 0 here, which rustix does not expect.
    let (_, _, ours) = own(&mut cat());
    for method in METHODS {
        let (pid, group, session) = own(cat().new_session().method(method));
        assert_eq!((group, session), (pid, pid), "{method:?}");
        let (pid, group, session) = own(cat().process_group(0).method(method));
        assert_eq!((group, session), (pid, ours), "{method:?}");

        let mut leader = Command::new("/bin/sleep");
        let mut leader = leader.arg("1000").process_group(0).spawn().unwrap();
        let (_, group, session) = own(cat().process_group(leader.id()).method(method));
        assert_eq!((group, session), (leader.id(), ours), "{method:?}");
        leader.kill().unwrap();
        leader.wait().unwrap();
    }
}

#[test]
fn the_umask_and_limits_are_the_program_s_alone() {
    let before = rustix::process::getrlimit(Resource::Nofile);
    for method in CLONES {
        let mut command = shell("umask; ulimit -n; ulimit -c");
        command.umask(0o027).method(method);
        let limit = |value| Rlimit {
            current: Some(value),
            maximum: Some(value),
        };
        // Lower than a descriptor that is put in its place before.
        let null = fs::File::open("/dev/null").unwrap();
        command
            .descriptor(50, null)
            .limit(Resource::Nofile, limit(40))
            .limit(Resource::Core, limit(0));
        assert_eq!(output(&mut command), "0027\n40\n0\n", "{method:?}");
    }
    assert_eq!(rustix::process::getrlimit(Resource::Nofile), before);
    assert_eq!(output(shell("umask").umask(0o777)), "0777\n");
}

#[test]
fn the_signal_mask_is_empty_unless_asked_for() {
    let some: SignalSet = [Signal::USR1, Signal::TERM].into_iter().collect();
    for method in METHODS {
        let fields = status(Command::new("/bin/cat").method(method));
        assert_eq!(signals(&fields, "SigBlk"), SignalSet::EMPTY, "{method:?}");
        let fields = status(
            Command::new("/bin/cat")
                .method(method)
                .signal_mask(Some(some)),
        );
        assert_eq!(signals(&fields, "SigBlk"), some, "{method:?}");
    }
}

#[test]
fn an_inherited_signal_mask_is_the_calling_thread_s() {
    // A child whose mask is known starts another one that inherits it: `env` changes no mask.
    let some = SignalSet::EMPTY.with(Signal::USR2);
    let mut outer = Command::new("/usr/bin/env");
    let fields = status(outer.arg("cat").signal_mask(Some(some)));
    assert_eq!(signals(&fields, "SigBlk"), some);
    let ours = fs::read_to_string("/proc/thread-self/status").unwrap();
    let ours = ours
        .lines()
        .find_map(|line| line.strip_prefix("SigBlk:"))
        .unwrap()
        .trim()
        .to_owned();
    for method in METHODS {
        let fields = status(Command::new("/bin/cat").signal_mask(None).method(method));
        assert_eq!(fields["SigBlk"], ours, "{method:?}");
    }
}

#[test]
fn the_caller_s_own_mask_is_as_before() {
    let mask = || {
        let text = fs::read_to_string("/proc/thread-self/status").unwrap();
        text.lines()
            .find(|line| line.starts_with("SigBlk:"))
            .unwrap()
            .to_owned()
    };
    let before = mask();
    output(&mut shell("true"));
    Command::new("/no/such/program").spawn().unwrap_err();
    assert_eq!(mask(), before);
}

#[test]
fn signals_are_at_their_defaults_or_ignored_as_asked() {
    // Rust programs ignore SIGPIPE: this test does.
    for method in METHODS {
        let fields = status(Command::new("/bin/cat").method(method));
        assert!(
            !signals(&fields, "SigIgn").contains(Signal::PIPE),
            "{method:?}"
        );
        let inherits = &mut Command::new("/bin/cat");
        let fields = status(inherits.default_signals(SignalSet::EMPTY).method(method));
        assert!(
            signals(&fields, "SigIgn").contains(Signal::PIPE),
            "{method:?}"
        );
    }
    for method in CLONES {
        let ignoring = &mut Command::new("/bin/cat");
        let hup = SignalSet::EMPTY.with(Signal::HUP);
        let fields = status(ignoring.ignore_signals(hup).method(method));
        assert!(
            signals(&fields, "SigIgn").contains(Signal::HUP),
            "{method:?}"
        );
    }
    // SIGKILL and SIGSTOP can be neither: asking for all signals is no error.
    output(shell("true").default_signals(SignalSet::ALL));
}

#[test]
fn a_signal_reaches_the_program_and_its_status_says_so() {
    for method in METHODS {
        let mut child = Command::new("/bin/sleep")
            .arg("1000")
            .method(method)
            .spawn()
            .unwrap();
        assert_eq!(child.try_wait().unwrap(), None);
        child.signal(Signal::TERM).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGTERM));
        assert_eq!(
            child.try_wait().unwrap().unwrap().signal(),
            Some(libc::SIGTERM)
        );
        child.kill().unwrap();
    }
    assert_eq!(
        shell("exit 42").spawn().unwrap().wait().unwrap().code(),
        Some(42)
    );
}

#[test]
fn the_process_descriptor_is_readable_when_the_process_has_ended() {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut child = Command::new("/bin/cat")
        .stdin(Stdio::pipe())
        .spawn()
        .unwrap();
    let stdin = child.stdin.take();
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let pidfd = child.pidfd().unwrap();
    assert_eq!(
        poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&at_once)).unwrap(),
        0
    );
    drop(stdin);
    assert_eq!(
        poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], None).unwrap(),
        1
    );
    assert!(child.try_wait().unwrap().unwrap().success());
}

#[test]
fn root_can_start_programs_as_somebody_else() {
    if !rustix::process::geteuid().is_root() {
        let error = shell("true").user(0).spawn().unwrap_err();
        assert_eq!((error.step(), error.errno()), (Step::User, libc::EPERM));
        return;
    }
    let ids = |command: &mut Command| {
        let fields = status(command);
        (
            fields["Uid"].clone(),
            fields["Gid"].clone(),
            fields["Groups"].clone(),
        )
    };
    let cat = || Command::new("/bin/cat");
    let all = |number: &str| [number; 4].join("\t");
    let as_nobody = ids(cat().user(65534).group(65533).groups([4, 20]));
    assert_eq!(as_nobody, (all("65534"), all("65533"), "4 20".to_owned()));
    // Groups of root's are not left to a user that has none of its own here.
    assert_eq!(ids(cat().user(65534)).2, "");
}

#[test]
fn a_change_of_user_leaves_the_caller_dumpable() {
    use rustix::process::{DumpableBehavior, dumpable_behavior};
    let user = if rustix::process::getuid().is_root() {
        65534
    } else {
        rustix::process::getuid().as_raw()
    };
    let mut child = shell("true")
        .user(user)
        .method(Method::Clone)
        .spawn()
        .unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::Dumpable);
}

#[test]
fn the_highest_number_is_nobody() {
    for error in [
        shell("true").user(u32::MAX).spawn().unwrap_err(),
        shell("true").group(u32::MAX).spawn().unwrap_err(),
    ] {
        assert_eq!(
            (error.step(), error.errno()),
            (Step::Arguments, libc::EINVAL)
        );
    }
}

#[test]
fn a_descriptor_is_given_while_the_process_is_ours_and_not_after() {
    let mut child = shell("exit 0").spawn().unwrap();
    assert!(child.pidfd().is_ok());
    let mut other = shell("exit 0").spawn().unwrap();
    assert!(other.wait().unwrap().success());
    assert_eq!(
        other.pidfd().unwrap_err().raw_os_error(),
        Some(libc::ECHILD)
    );
    other.kill().unwrap();

    // Waited for by someone else: its number is nobody's now, or a stranger's.
    let pid = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
    rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty()).unwrap();
    assert_eq!(child.wait().unwrap_err().raw_os_error(), Some(libc::ECHILD));
    let mut third = shell("exit 0").spawn().unwrap();
    let pid = rustix::process::Pid::from_raw(third.id() as i32).unwrap();
    rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty()).unwrap();
    assert!(third.kill().is_err());
    assert!(third.wait().is_err());
}
