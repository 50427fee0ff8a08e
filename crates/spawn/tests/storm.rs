//! 64 threads start 100,000 programs while signals arrive at each of them: nothing leaks, nothing hangs.

#![allow(clippy::unwrap_used)]

mod support;

use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use sshoal_spawn::{Command, Stdio, Step};
use tokio::signal::unix::{SignalKind, signal};

const THREADS: usize = 64;
const STARTS: usize = 100_000;
/// After this long a thread that has not come back counts as stuck.
const PATIENCE: Duration = Duration::from_secs(900);
/// Between two rounds of signals to all threads.
const PAUSE: Duration = Duration::from_millis(1);

#[test]
fn a_hundred_thousand_starts_from_64_threads_leak_nothing_and_never_hang() {
    let tiny = support::Tiny::build();
    let arrived = AtomicUsize::new(0);
    let over = AtomicBool::new(false);
    let no_more_signals = &AtomicBool::new(false);
    let (finished, all_finished) = mpsc::channel();
    let (announce, threads) = mpsc::channel();

    thread::scope(|scope| {
        let (ready, is_ready) = mpsc::channel();
        scope.spawn(|| count_signals(&arrived, no_more_signals, ready));
        is_ready.recv().unwrap();
        let descriptors = support::open_descriptors();

        for number in 0..THREADS {
            let (finished, announce, path) = (finished.clone(), announce.clone(), tiny.path());
            scope.spawn(move || {
                let _guard = EndsAll;
                announce.send(rustix::thread::gettid()).unwrap();
                let share = (number..STARTS).step_by(THREADS);
                finished
                    .send(share.map(|start| start_one(&path, start)).count())
                    .unwrap();
                // The number of a thread that has ended may be a stranger's, who must not be signalled.
                while !no_more_signals.load(Ordering::SeqCst) {
                    thread::sleep(PAUSE);
                }
            });
        }
        let threads: Vec<Pid> = threads.iter().take(THREADS).collect();
        let sender = scope.spawn({
            let over = &over;
            move || send_signals(threads, over)
        });

        let mut starts = 0;
        for _ in 0..THREADS {
            starts += all_finished.recv_timeout(PATIENCE).unwrap_or_else(|_| {
                // A panic would wait for the threads, and so for ever.
                eprintln!("a thread is stuck");
                std::process::exit(101)
            });
        }
        over.store(true, Ordering::SeqCst);
        let sent = sender.join().unwrap();
        let (left_open, left_behind) = (support::open_descriptors(), support::has_children());
        // Ends the threads and the one who counts, before anything can fail.
        no_more_signals.store(true, Ordering::SeqCst);
        kill_process(rustix::process::getpid(), Signal::USR1).unwrap();

        assert_eq!(starts, STARTS);
        assert_eq!(left_open, descriptors);
        assert!(!left_behind, "a zombie is left");
        assert!(sent > THREADS, "only {sent} signals were sent");
    });
    assert!(arrived.load(Ordering::SeqCst) > 1);
}

/// A thread that fails ends the whole test at once, while it still has its number: were it to end alone, the sender
/// would go on signalling a number that may be a stranger's by then.
struct EndsAll;

impl Drop for EndsAll {
    fn drop(&mut self) {
        if thread::panicking() {
            std::process::exit(101);
        }
    }
}

/// One start of four kinds: without a pipe, with one, with a full set, and one that fails.
fn start_one(program: &Path, number: usize) {
    let mut command = Command::new(program);
    match number % 4 {
        0 => {}
        1 => drop(command.stdout(Stdio::pipe())),
        2 => drop(
            command
                .stdin(Stdio::pipe())
                .stdout(Stdio::pipe())
                .stderr_into_stdout(),
        ),
        _ => {
            let error = Command::new("/no/such/program")
                .stdin(Stdio::pipe())
                .spawn()
                .unwrap_err();
            assert_eq!((error.step(), error.errno()), (Step::Exec, libc::ENOENT));
        }
    }
    let mut child = command.spawn().unwrap();
    if let Some(mut stdout) = child.stdout.take() {
        assert_eq!(stdout.read(&mut [0; 1]).unwrap(), 0);
    }
    assert!(child.wait().unwrap().success());
}

/// Signals to each thread by its own number: Linux delivers them there, unless that thread blocks them at the moment.
fn send_signals(threads: Vec<Pid>, over: &AtomicBool) -> usize {
    let mut sent = 0;
    while !over.load(Ordering::SeqCst) {
        // Each of them lives until this is over: see `EndsAll`.
        sent += threads
            .iter()
            .filter(|thread| kill_process(**thread, Signal::USR1).is_ok())
            .count();
        thread::sleep(PAUSE);
    }
    sent
}

/// Installs a handler for SIGUSR1, and counts what it is told until all is over.
fn count_signals(arrived: &AtomicUsize, no_more: &AtomicBool, ready: mpsc::Sender<()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut signals = signal(SignalKind::user_defined1()).unwrap();
        ready.send(()).unwrap();
        while !no_more.load(Ordering::SeqCst) {
            signals.recv().await.unwrap();
            arrived.fetch_add(1, Ordering::SeqCst);
        }
    });
}
