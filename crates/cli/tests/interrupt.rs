//! Ctrl-C, a reader that goes, and a shell loop around sshoal.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::ChildStdout;
use std::sync::mpsc::{self, Receiver, Sender};

use rustix::fs::{FlockOperation, flock};
use rustix::io::ioctl_fionread;
use rustix::process::{Signal, kill_process};
use sshoal_testbed::simulated::Simulation;
use sshoal_testbed::sshd::{RealSshd, SshdSpec};
use support::program::Running;
use support::{DEADLINE, Shoal, shared_folder, wait_until};

/// What a pipe holds at least when it is full, in octets: pipe(7), less a page for a write that did not fit.
const PIPE: u64 = 60 * 1024;

/// Waits until so many commands have been started in all.
fn wait_for_commands(shoal: &Shoal<Simulation>, count: u64) {
    let what = format!("{count} commands run");
    wait_until(&what, || shoal.hosts.totals().execs == count);
}

#[test]
fn once_starts_no_more_signals_what_runs_and_reports() {
    const AT_A_TIME: usize = 5;
    let shoal = Shoal::simulated(20, &[]);
    let words = ["--json", "--record", "-p", "5", "slow 1000000 100"];
    let running = Running::start(&mut shoal.command(&words));
    wait_until("all commands are heard of", || {
        let recorded = shoal.recorded();
        let first = recorded.lines().filter(|line| line.ends_with(": 1"));
        first.count() == AT_A_TIME
    });
    running.interrupt();
    let ended = running.wait().expect(130);

    let records = ended.records();
    let summary = records.summary;
    assert!(summary.interrupted);
    assert_eq!(
        (summary.signalled, summary.not_started),
        (AT_A_TIME, 20 - AT_A_TIME)
    );
    assert_eq!((summary.exit_status, summary.hosts), (130, 20));
    for record in records.hosts {
        match record.outcome.as_str() {
            "signal" => assert_eq!(record.signal.as_deref(), Some("INT")),
            _ => assert_eq!(
                (record.outcome.as_str(), record.attempts),
                ("not-started", 0)
            ),
        }
    }
    assert_eq!(
        shoal.hosts.totals().execs,
        AT_A_TIME as u64,
        "no more were started"
    );
    assert_eq!(shoal.hosts.totals().connections, AT_A_TIME as u64);
}

#[test]
fn once_reaches_the_processes_of_a_real_server() {
    let shoal = Shoal::real(&SshdSpec::new(2));
    let marks = shared_folder();
    let mark = |name: &str| marks.path().join(name);
    let line = format!(
        "trap 'echo interrupted > {0}/%h.end; exit 9' INT; touch {0}/%h.begin; echo begun; while [ -e {0}/%h.begin ]; do sleep 0.05; done",
        marks.path().display()
    );
    let running = Running::start(&mut shoal.command(&["--json", "--record", &line]));
    wait_until("both commands are heard of", || {
        shoal.recorded().matches("begun").count() == 2
    });
    running.interrupt();
    let records = running.wait().expect(130).records();
    assert_eq!(records.summary.exited, 2, "{:?}", records.hosts);
    for host in 0..2 {
        let end = mark(&format!("{}.end", shoal.name(host)));
        assert_eq!(fs::read_to_string(end).unwrap(), "interrupted\n");
    }
}

/// Starts a command that ignores SIGINT on the first of two hosts; the second waits for its turn.
fn ignoring(shoal: &Shoal<RealSshd>, begun: &Path) -> (Running, Receiver<()>) {
    // sshd does not end what ignores signals: it goes when the mark goes.
    let line = format!(
        "trap '' INT; touch {0}; echo begun; while [ -e {0} ]; do sleep 0.2; done",
        begun.display()
    );
    let (tell, told) = mpsc::channel();
    let read = move |stdout: ChildStdout| {
        let mut stdout = BufReader::new(stdout);
        let mut all = String::new();
        while stdout.read_line(&mut all).unwrap() > 0 {
            // The test may have heard enough.
            let _ = tell.send(());
        }
        all.into_bytes()
    };
    let flags = ["--json", "--record", "-p", "1", "--kill-where=never"];
    let mut command = shoal.command(&flags);
    let running = Running::start_read_by(command.arg(&line), read);
    wait_until("the command is heard of", || {
        shoal.recorded().contains("begun")
    });
    running.interrupt();
    // The host whose turn will not come has been told of.
    told.recv_timeout(DEADLINE).unwrap();
    (running, told)
}

#[test]
fn a_command_that_ignores_it_is_given_up_after_a_while_and_at_once_after_the_second() {
    let (one, two) = (
        Shoal::real(&SshdSpec::new(2)),
        Shoal::real(&SshdSpec::new(2)),
    );
    let marks = shared_folder();
    let (once, _told) = ignoring(&one, &marks.path().join("once"));
    let (twice, _told) = ignoring(&two, &marks.path().join("twice"));
    twice.interrupt();
    let ends = [twice, once].map(|running| running.wait().expect(130).records());
    for records in &ends {
        assert_eq!(
            (records.summary.failed, records.summary.not_started),
            (1, 1)
        );
        let record = records
            .hosts
            .iter()
            .find(|record| record.outcome == "failed")
            .unwrap();
        assert_eq!((record.failure(), record.fate.as_str()), ("lost", "ran"));
        let detail = record.detail.as_ref().unwrap();
        assert!(detail.contains("not confirmed"), "{detail}");
    }
    // Begun later, ended earlier: nobody was waited for.
    assert!(ends[0].summary.elapsed_us < ends[1].summary.elapsed_us);
}

#[test]
fn a_shell_loop_keeps_its_lines() {
    let shoal = Shoal::simulated(5, &[]);
    let line = format!(
        "while read h; do echo \"read $h\"; sshoal run -F {} -w $h hostname; done < {}",
        shoal.file("ssh_config"),
        shoal.file("hosts")
    );
    let ended = Running::start(&mut shoal.shell(&line)).wait().expect(0);
    let expected: String = (0..5)
        .map(|host| format!("read {0}\n{0}: sim{host}\n", shoal.name(host)))
        .collect();
    assert_eq!(ended.stdout(), expected);
}

#[test]
fn a_pipe_to_head_ends_quietly_with_the_documented_status() {
    let shoal = Shoal::simulated(3, &[]);
    // Without pipefail or arrays, sh tells a pipe's first status like so.
    let line = "{ $RUN yes-bytes 100000000; echo status $? >&2; } | head -n 1";
    let ended = Running::start(&mut shoal.shell(line)).wait().expect(0);
    assert_eq!(ended.stderr(), "status 141\n");
    let first = ended.stdout();
    assert!(
        first.ends_with(": y\n") && first.lines().count() == 1,
        "{first}"
    );
}

#[test]
fn a_reader_that_went_before_the_first_byte_ends_the_run_too() {
    let shoal = Shoal::simulated(3, &[]);
    let read = |stdout: ChildStdout| {
        drop(stdout);
        Vec::new()
    };
    let mut command = shoal.command(&["slow 100000 20"]);
    let ended = Running::start_read_by(&mut command, read)
        .wait()
        .expect(141);
    assert_eq!(ended.stderr(), "");
}

#[test]
fn an_interrupt_before_anybody_is_connected_starts_nobody() {
    let shoal = Shoal::simulated(3, &["*=connect-hang"]);
    let words = ["--json", "--connect-timeout=240", "count runs"];
    let running = Running::start(&mut shoal.command(&words));
    wait_until("it connects", || {
        connecting(shoal.hosts.addresses()[0].port()) == 3
    });
    running.interrupt();
    let summary = running.wait().expect(130).records().summary;
    assert_eq!((summary.hosts, summary.not_started), (3, 3));
}

/// Starts hosts whose output nobody reads, and waits until the pipe is full.
fn unread(shoal: &Shoal<Simulation>, arguments: &[&str]) -> (Running, Sender<()>) {
    let (tell, full) = mpsc::channel();
    let (go, gone) = mpsc::channel::<()>();
    let read = move |stdout: ChildStdout| {
        wait_until("the pipe is full", || {
            ioctl_fionread(&stdout).unwrap() >= PIPE
        });
        tell.send(()).unwrap();
        // Until the test has seen the end.
        let _ = gone.recv();
        Vec::new()
    };
    let running = Running::start_read_by(&mut shoal.command(arguments), read);
    full.recv_timeout(DEADLINE).unwrap();
    (running, go)
}

#[test]
fn nobody_is_kept_by_output_that_is_not_read() {
    let shoal = Shoal::simulated(4, &["*=flood"]);
    let nobody_is_left = || {
        wait_until("the connections are gone", || {
            shoal.hosts.totals().open == 0
        });
    };
    let (mut twice, _go) = unread(&shoal, &["-q", "x"]);
    twice.interrupt();
    nobody_is_left();
    assert!(twice.is_running(), "there is output to be read");
    twice.interrupt();
    twice.wait_for_exit(130);
    let (terminated, _go) = unread(&shoal, &["-q", "x"]);
    kill_process(terminated.pid(), Signal::TERM).unwrap();
    terminated.wait_for_exit(143);
    nobody_is_left();
}

#[test]
fn nobody_is_kept_by_what_is_shown_at_the_end_and_not_read_either() {
    // Gathered output is shown when all hosts have ended.
    let shoal = Shoal::simulated(2, &[]);
    let arguments = ["-b", "yes-bytes 1000000"];
    let (mut interrupted, _go) = unread(&shoal, &arguments);
    // Two that come at once are one.
    wait_until("a further Ctrl-C ends it", || {
        interrupted.interrupt();
        !interrupted.is_running()
    });
    interrupted.wait_for_exit(130);
    let (terminated, _go) = unread(&shoal, &arguments);
    kill_process(terminated.pid(), Signal::TERM).unwrap();
    terminated.wait_for_exit(143);
}

#[test]
fn nobody_is_kept_by_a_known_hosts_file_that_another_program_has_locked() {
    let shoal = Shoal::simulated(2, &[]);
    let known = shoal.user.home().join("known_hosts");
    let locked = fs::File::create(&known).unwrap();
    flock(&locked, FlockOperation::LockExclusive).unwrap();
    let file = format!("UserKnownHostsFile={}", known.display());
    let new = "StrictHostKeyChecking=accept-new";
    let run = |signal: fn(&mut Running)| {
        let mut command = shoal.command(&["-o", &file, "-o", new, "count runs"]);
        let before = shoal.hosts.totals().execs;
        let mut running = Running::start(&mut command);
        wait_for_commands(&shoal, before + 2);
        // The connections have ended, and so the run has but for what it has to record.
        wait_until("the hosts are done", || shoal.hosts.totals().open == 0);
        signal(&mut running);
        running.wait()
    };
    let words = ["host keys are not in", "locked", "you did not wait"];
    let terminated = run(|running| kill_process(running.pid(), Signal::TERM).unwrap());
    terminated.expect(143).says(&words);
    // Two that come at once are one.
    let twice = |running: &mut Running| {
        wait_until("a further Ctrl-C ends it", || {
            running.interrupt();
            !running.is_running()
        });
    };
    run(twice).expect(130).says(&words);
    assert_eq!(fs::read_to_string(&known).unwrap(), "");
    drop(locked);
    run(|_| {}).expect(0).says(&["new host keys in", "2 ("]);
}

/// How many connections to a port have not been answered: state SYN_SENT, 02, of /proc/net/tcp (proc(5)).
fn connecting(port: u16) -> usize {
    let table = fs::read_to_string("/proc/net/tcp").unwrap();
    let to = format!(":{port:04X}");
    let is_begun = |line: &&str| {
        let mut fields = line.split_whitespace().skip(2);
        fields.next().is_some_and(|remote| remote.ends_with(&to)) && fields.next() == Some("02")
    };
    table.lines().filter(is_begun).count()
}
