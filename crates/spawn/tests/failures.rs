//! Every system call of a start is made to fail, one after the other: each is its own error, and nothing is left behind.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs::File;

use sshoal_spawn::{Command, DescriptorSet, Method, Resource, Rlimit, SignalSet, Stdio, Step};
use support::{Call, has_children, open_descriptors, with_failing};

/// An error that none of these calls gives by itself.
const INJECTED: i32 = libc::EXDEV;

/// Bytes of the child's stack and of the guard below it, and of the report of a forked child: by their sizes the filter
/// tells these mappings from the allocator's.
const STACK_BYTES: u64 = 64 * 1024;
const STACK_AND_GUARD_BYTES: u64 = 128 * 1024;
const REPORT_BYTES: u64 = 8;

const fn plain(number: libc::c_long) -> Call {
    (number, &[])
}

/// A program that is started with everything there is to ask for, user and groups aside.
fn everything() -> Command {
    let mut command = Command::new("/bin/true");
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    command
        .stdin(Stdio::null())
        .stdout(Stdio::pipe())
        .stderr_into_stdout()
        .descriptor(40, File::open("/dev/null").unwrap())
        .new_session()
        .umask(0o022)
        .limit(Resource::Core, none)
        .ignore_signals(SignalSet::EMPTY.with(sshoal_spawn::Signal::HUP))
        .current_dir("/");
    command
}

/// Starts a command while these calls fail. It must not start, and must leave nothing.
fn failing_step(calls: &[Call], command: &Command) -> Step {
    let calls: Vec<(Call, i32)> = calls.iter().map(|call| (*call, INJECTED)).collect();
    step_with(&calls, command, INJECTED)
}

fn step_with(calls: &[(Call, i32)], command: &Command, expected: i32) -> Step {
    let before = open_descriptors();
    let error = with_failing(calls, || command.spawn().map(|child| child.id())).unwrap_err();
    assert_eq!(error.errno(), expected, "{error}");
    assert_eq!(open_descriptors(), before, "{error}");
    assert!(!has_children(), "{error}");
    error.step()
}

/// One test, because what is left behind is counted in the whole process.
#[test]
fn each_system_call_of_a_start_fails_with_its_own_error() {
    everything_starts_where_nothing_fails();
    calls_of_the_caller();
    calls_of_the_child();
    calls_that_change_the_identity();
    calls_of_older_kernels();
    descriptors_in_the_way();
    ends_of_a_child_that_may_not_end();
    calls_of_posix_spawn();
}

fn everything_starts_where_nothing_fails() {
    for method in [Method::Automatic, Method::Clone, Method::Fork] {
        let mut child = everything().method(method).spawn().unwrap();
        assert!(child.wait().unwrap().success());
    }
}

fn calls_of_the_caller() {
    let cases: &[(Call, Step)] = &[
        ((libc::SYS_openat, &[]), Step::Stdin),
        ((libc::SYS_pipe2, &[]), Step::Stdout),
        ((libc::SYS_mmap, &[(1, STACK_AND_GUARD_BYTES)]), Step::Stack),
        (
            (libc::SYS_mprotect, &[(1, STACK_BYTES), (2, 3)]),
            Step::Stack,
        ),
        (
            (libc::SYS_rt_sigprocmask, &[(0, libc::SIG_BLOCK as u64)]),
            Step::BlockSignals,
        ),
        (plain(libc::SYS_clone3), Step::Clone),
        (
            (libc::SYS_rt_sigprocmask, &[(0, libc::SIG_UNBLOCK as u64)]),
            Step::RestoreSignals,
        ),
    ];
    for (call, step) in cases {
        assert_eq!(failing_step(&[*call], &everything()), *step);
    }
    let to_file = |command: &mut Command| failing_step(&[plain(libc::SYS_openat)], command);
    let mut command = Command::new("/bin/true");
    assert_eq!(
        to_file(command.stdout(Stdio::create_file("/dev/null"))),
        Step::Stdout
    );
    let mut command = Command::new("/bin/true");
    assert_eq!(
        to_file(command.stderr(Stdio::append_file("/dev/null"))),
        Step::Stderr
    );
}

fn calls_of_the_child() {
    let cases: &[(Call, Step)] = &[
        (plain(libc::SYS_rt_sigaction), Step::Signals),
        (plain(libc::SYS_setsid), Step::Session),
        (plain(libc::SYS_close_range), Step::CloseOthers),
        (plain(libc::SYS_dup3), Step::Descriptors),
        (plain(libc::SYS_prlimit64), Step::Limit),
        (plain(libc::SYS_umask), Step::Umask),
        (plain(libc::SYS_chdir), Step::Directory),
        (
            (libc::SYS_rt_sigprocmask, &[(0, libc::SIG_SETMASK as u64)]),
            Step::SignalMask,
        ),
        (plain(libc::SYS_execve), Step::Exec),
    ];
    for (call, step) in cases {
        for method in [Method::Clone, Method::Fork] {
            assert_eq!(failing_step(&[*call], everything().method(method)), *step);
        }
    }
    let mut grouped = Command::new("/bin/true");
    let step = failing_step(&[plain(libc::SYS_setpgid)], grouped.process_group(0));
    assert_eq!(step, Step::ProcessGroup);

    static WITHHELD: DescriptorSet = DescriptorSet::new();
    assert!(WITHHELD.insert(0));
    let marks: Call = (
        libc::SYS_fcntl,
        &[(1, libc::F_SETFD as u64), (2, libc::FD_CLOEXEC as u64)],
    );
    let mut withholding = Command::new("/bin/true");
    let step = failing_step(
        &[marks],
        withholding.inherit_descriptors(true).withhold(&WITHHELD),
    );
    assert_eq!(step, Step::CloseOthers);

    let mut same = Command::new("/bin/true");
    let kept = rustix::io::fcntl_dupfd_cloexec(File::open("/dev/null").unwrap(), 60).unwrap();
    assert_eq!(std::os::fd::AsRawFd::as_raw_fd(&kept), 60);
    let keeps: Call = (libc::SYS_fcntl, &[(0, 60), (1, libc::F_SETFD as u64)]);
    assert_eq!(
        failing_step(&[keeps], same.descriptor(60, kept)),
        Step::Descriptors
    );
}

fn calls_that_change_the_identity() {
    let (user, group) = (
        rustix::process::getuid().as_raw(),
        rustix::process::getgid().as_raw(),
    );
    let mut command = Command::new("/bin/true");
    command.user(user).group(group);
    if rustix::process::geteuid().is_root() {
        command.groups([]);
        assert_eq!(
            failing_step(&[plain(libc::SYS_setgroups)], &command),
            Step::Groups
        );
    }
    let cases: &[(Call, Step)] = &[
        ((libc::SYS_mmap, &[(1, REPORT_BYTES)]), Step::ReportPage),
        (plain(libc::SYS_setresgid), Step::Group),
        (plain(libc::SYS_setresuid), Step::User),
    ];
    for (call, step) in cases {
        assert_eq!(failing_step(&[*call], &command), *step);
    }
    assert!(command.spawn().unwrap().wait().unwrap().success());
}

/// What is called only where a newer call is missing.
fn calls_of_older_kernels() {
    let old = |number| (plain(number), libc::ENOSYS);
    let cases: &[(Call, Step)] = &[
        (plain(libc::SYS_clone), Step::Clone),
        // The caller's handlers are looked for one by one.
        (
            (libc::SYS_rt_sigaction, &[(0, libc::SIGSEGV as u64)]),
            Step::Signals,
        ),
    ];
    for (call, step) in cases {
        let calls = [old(libc::SYS_clone3), (*call, INJECTED)];
        assert_eq!(step_with(&calls, &everything(), INJECTED), *step);
    }
    let mut plainest = Command::new("/bin/true");
    let cases: &[Call] = &[
        plain(libc::SYS_openat),
        plain(libc::SYS_getdents64),
        (
            libc::SYS_fcntl,
            &[(1, libc::F_SETFD as u64), (2, libc::FD_CLOEXEC as u64)],
        ),
    ];
    for call in cases {
        let calls = [old(libc::SYS_close_range), (*call, INJECTED)];
        for method in [Method::Clone, Method::Fork] {
            let step = step_with(&calls, plainest.method(method), INJECTED);
            assert_eq!(step, Step::CloseOthers);
        }
    }
}

fn descriptors_in_the_way() {
    use std::os::fd::{AsRawFd, OwnedFd};
    let (one, two) = (
        File::open("/dev/null").unwrap(),
        File::open("/dev/zero").unwrap(),
    );
    let (first, second) = (one.as_raw_fd(), two.as_raw_fd());
    let mut command = Command::new("/bin/true");
    command
        .descriptor(second, OwnedFd::from(one))
        .descriptor(first, OwnedFd::from(two));
    let parks: Call = (libc::SYS_fcntl, &[(1, libc::F_DUPFD_CLOEXEC as u64)]);
    assert_eq!(failing_step(&[parks], &command), Step::Park);
    assert!(command.spawn().unwrap().wait().unwrap().success());
}

/// A child that failed and may not end in the usual way still ends, and its parent does not sleep for ever.
fn ends_of_a_child_that_may_not_end() {
    let failed = plain(libc::SYS_chdir);
    let group = plain(libc::SYS_exit_group);
    let alone: Call = (libc::SYS_exit, &[(0, 127)]);
    assert_eq!(
        failing_step(&[failed, group], &everything()),
        Step::Directory
    );
    assert_eq!(
        failing_step(&[failed, group, alone], &everything()),
        Step::Directory
    );
}

fn calls_of_posix_spawn() {
    let no_clone = [
        (plain(libc::SYS_clone3), libc::ENOSYS),
        (plain(libc::SYS_clone), libc::EPERM),
    ];
    // glibc's posix_spawn needs one of the two itself, so only what comes before it is seen here.
    assert_eq!(
        step_with(&no_clone, &everything(), libc::EOPNOTSUPP),
        Step::NotPossible
    );
    let mut plainest = Command::new("/bin/true");
    assert_eq!(
        step_with(&no_clone, &plainest, libc::EPERM),
        Step::PosixSpawn
    );
    assert_eq!(
        step_with(&no_clone, plainest.method(Method::Clone), libc::EPERM),
        Step::Clone
    );

    let mut listed = Command::new("/bin/true");
    let step = failing_step(
        &[plain(libc::SYS_openat)],
        listed.method(Method::PosixSpawn),
    );
    assert_eq!(step, Step::CloseOthers);
    let mut missing = Command::new("/no/such/program");
    let step = step_with(&[], missing.method(Method::PosixSpawn), libc::ENOENT);
    assert_eq!(step, Step::PosixSpawn);
}
