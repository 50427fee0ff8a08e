//! How many system calls a start takes, counted by strace. No figure of time: counts are the same on every machine.

#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::process;

use sshoal_spawn::{Command, Stdio};

/// Tells the test program, when it runs under strace, what to start and how often: `PROGRAM KIND TIMES`.
const TASK: &str = "SSHOAL_SPAWN_TEST_TASK";
/// How many starts the counts are taken from.
const STARTS: usize = 20;
/// How a line begins, after the number of the thread, in which a process of ours is made.
const BIRTH: &str = "clone3({flags=CLONE_VM|";

type Counts = BTreeMap<String, usize>;

/// Not a test by itself: what the others run under strace.
#[test]
fn starts_what_it_is_told_to() {
    let Ok(task) = env::var(TASK) else { return };
    let [program, kind, times] = task.split(' ').collect::<Vec<_>>()[..] else {
        panic!("a program, a kind and a number: {task}")
    };
    for _ in 0..times.parse().unwrap() {
        let mut command = Command::new(program);
        match kind {
            "plain" => {}
            "pipe" => drop(command.stdout(Stdio::pipe())),
            "bare" => drop(
                command
                    .inherit_descriptors(true)
                    .default_signals(Default::default()),
            ),
            "described" => drop(command.with_pidfd()),
            "missing" => {
                Command::new("/no/such/program").spawn().unwrap_err();
                continue;
            }
            other => panic!("no such kind: {other}"),
        }
        assert!(command.spawn().unwrap().wait().unwrap().success());
    }
}

/// The calls of one start, by name, up to the same point of the next.
fn calls_of_a_start(kind: &str) -> Counts {
    let tiny = support::Tiny::build();
    let log = tiny.folder().join("log");
    let ended = process::Command::new("strace")
        .args(["-f", "-q", "-o"])
        .arg(&log)
        .arg(env::current_exe().unwrap())
        .args(["--exact", "starts_what_it_is_told_to", "--test-threads=1"])
        .env(
            TASK,
            format!("{} {kind} {}", tiny.path().display(), STARTS + 1),
        )
        .output()
        .expect("strace: make setup installs it");
    assert!(
        ended.status.success(),
        "{}",
        String::from_utf8_lossy(&ended.stderr)
    );
    let counts = count(&fs::read_to_string(&log).unwrap());
    counts
        .into_iter()
        .map(|(name, count)| {
            assert_eq!(count % STARTS, 0, "{name}: {count} in {STARTS} starts");
            (name, count / STARTS)
        })
        .collect()
}

/// The calls from the first birth of a process to the last. `1234  name(...`; a call that was interrupted by another's
/// line is counted where it began. Left out: the test program's main thread, which only waits and is woken by each
/// SIGCHLD, and F_GETFD, by which a debug build of the standard library makes sure that what it closes is open.
fn count(log: &str) -> Counts {
    let lines: Vec<(&str, &str)> = log
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(pid, call)| (pid, call.trim_start()))
        .collect();
    let main_thread = lines[0].0;
    let is_birth =
        |(_, call): &(&str, &str)| call.starts_with(BIRTH) && call.contains("CLONE_VFORK");
    let births: Vec<usize> = (0..lines.len())
        .filter(|at| is_birth(&lines[*at]))
        .collect();
    assert_eq!(births.len(), STARTS + 1);

    let mut counts = Counts::new();
    for (pid, call) in &lines[births[0]..births[STARTS]] {
        let Some((name, arguments)) = call.split_once('(') else {
            continue;
        };
        let is_call = name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if is_call && *pid != main_thread && !arguments.contains("F_GETFD") {
            *counts.entry(name.to_owned()).or_default() += 1;
        }
    }
    counts
}

fn expected(calls: &[(&str, usize)]) -> Counts {
    calls
        .iter()
        .map(|(name, count)| ((*name).to_owned(), *count))
        .collect()
}

#[test]
fn a_start_without_pipes_takes_nine_calls_and_the_program_s_own() {
    let calls = calls_of_a_start("plain");
    let wanted = expected(&[
        ("rt_sigprocmask", 3),
        ("clone3", 1),
        ("rt_sigaction", 1),
        ("close_range", 1),
        ("execve", 1),
        ("sched_yield", 1),
        ("waitid", 1),
        ("exit_group", 1),
    ]);
    assert_eq!(calls, wanted);
}

#[test]
fn a_pipe_takes_four_calls_more() {
    let calls = calls_of_a_start("pipe");
    let wanted = expected(&[
        ("rt_sigprocmask", 3),
        ("clone3", 1),
        ("rt_sigaction", 1),
        ("close_range", 1),
        ("pipe2", 1),
        ("dup3", 1),
        ("execve", 1),
        ("sched_yield", 1),
        ("waitid", 1),
        ("close", 2),
        ("exit_group", 1),
    ]);
    assert_eq!(calls, wanted);
}

#[test]
fn a_descriptor_of_the_process_takes_one_call_more_to_close_it() {
    let mut plain = calls_of_a_start("plain");
    plain.insert("close".to_owned(), 1);
    assert_eq!(calls_of_a_start("described"), plain);
}

#[test]
fn a_start_that_changes_nothing_takes_seven() {
    let calls = calls_of_a_start("bare");
    let wanted = expected(&[
        ("rt_sigprocmask", 3),
        ("clone3", 1),
        ("execve", 1),
        ("sched_yield", 1),
        ("waitid", 1),
        ("exit_group", 1),
    ]);
    assert_eq!(calls, wanted);
}

#[test]
fn a_start_that_fails_takes_no_more() {
    let calls = calls_of_a_start("missing");
    let wanted = expected(&[
        ("rt_sigprocmask", 3),
        ("clone3", 1),
        ("rt_sigaction", 1),
        ("close_range", 1),
        ("execve", 1),
        ("exit_group", 1),
        ("waitid", 1),
    ]);
    assert_eq!(calls, wanted);
}
