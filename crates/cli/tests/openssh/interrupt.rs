//! Ctrl-C and deadlines by ssh: nobody is left behind on this machine.

use std::fs;
use std::path::Path;

use rustix::process::{Signal, kill_process};
use sshoal_testbed::sshd::{RealSshd, SshdSpec};

use crate::by_ssh;
use crate::support::program::Running;
use crate::support::{Shoal, shared_folder, wait_until, write_program};

/// The ssh's of this user that name this configuration file in their arguments.
fn left(shoal: &Shoal<RealSshd>) -> usize {
    let config = shoal.file("ssh_config");
    let processes = fs::read_dir("/proc").unwrap();
    processes
        .filter_map(|entry| {
            let path = entry.unwrap().path();
            let line = fs::read(path.join("cmdline")).ok()?;
            let text = String::from_utf8_lossy(&line).into_owned();
            (text.starts_with("ssh\0") && text.contains(&config)).then_some(())
        })
        .count()
}

/// Starts a command that ends when its mark goes.
fn start(shoal: &Shoal<RealSshd>, marks: &Path, arguments: &[&str]) -> Running {
    let line = format!(
        "trap '' INT TERM HUP; touch {0}/%h; while [ -e {0}/%h ]; do sleep 0.1; done",
        marks.display()
    );
    let arguments = [arguments, &["--json", &line]].concat();
    Running::start(&mut shoal.command(&by_ssh(&arguments)))
}

/// The same, until it runs on both hosts.
fn begun(shoal: &Shoal<RealSshd>, marks: &Path, arguments: &[&str]) -> Running {
    let running = start(shoal, marks, arguments);
    wait_until("the commands run", || {
        (0..2).all(|host| marks.join(shoal.name(host)).exists())
    });
    assert_eq!(left(shoal), 2);
    running
}

#[test]
fn once_ends_every_ssh_and_says_that_the_command_may_go_on() {
    let shoal = Shoal::real(&SshdSpec::new(2));
    let marks = shared_folder();
    let running = begun(&shoal, marks.path(), &[]);
    running.interrupt();
    let records = running.wait().expect(130).records();
    assert_eq!(left(&shoal), 0);
    assert!(records.summary.interrupted);
    for record in &records.hosts {
        assert_eq!(record.failure(), "lost", "{record:?}");
        assert!(!record.claims_no_run(), "{record:?}");
        let detail = record.detail.as_ref().unwrap();
        assert!(detail.contains("may go on on the host"), "{detail}");
    }
}

#[test]
fn what_an_ssh_has_started_goes_with_it() {
    let shoal = Shoal::real(&SshdSpec::new(2));
    let marks = shared_folder();
    let begun = marks.path().join("begun");
    let proxy = format!(
        "ProxyCommand=echo $$ >> {}; exec sleep 36000",
        begun.display()
    );
    // ssh has a shell begin it with "exec".
    let proxy = proxy.replace("ProxyCommand=", "ProxyCommand=sh -c '") + "'";
    let arguments = ["-o", &proxy, "--connect-timeout=600", "--json", "true"];
    let running = Running::start(&mut shoal.command(&by_ssh(&arguments)));
    let numbers = || fs::read_to_string(&begun).unwrap_or_default();
    wait_until("both are on the way", || numbers().lines().count() == 2);
    running.interrupt();
    let records = running.wait().expect(130).records();
    assert_eq!(records.summary.not_started, 2, "{:?}", records.hosts);
    for number in numbers().lines() {
        let line = format!("/proc/{number}/cmdline");
        wait_until("it is gone", || {
            !fs::read_to_string(&line).is_ok_and(|line| line.contains("36000"))
        });
    }
    assert_eq!(left(&shoal), 0);
}

#[test]
fn a_termination_and_a_deadline_leave_nobody_behind_either() {
    let shoal = Shoal::real(&SshdSpec::new(2));
    let marks = shared_folder();
    let running = begun(&shoal, marks.path(), &[]);
    kill_process(running.pid(), Signal::TERM).unwrap();
    running.wait_for_exit(143);
    wait_until("every ssh is gone", || left(&shoal) == 0);

    let marks = shared_folder();
    let records = start(&shoal, marks.path(), &["--timeout=2"])
        .wait()
        .expect(3)
        .records();
    assert_eq!(left(&shoal), 0);
    for record in &records.hosts {
        assert_eq!(record.failure(), "command-timeout", "{record:?}");
    }
}

#[test]
fn an_ssh_that_ignores_signals_is_killed_and_twice_is_at_once() {
    let shoal = Shoal::real(&SshdSpec::new(2));
    // It ignores what sshoal sends first, and so does the ssh that it becomes.
    let stubborn = shoal.file("stubborn");
    write_program(&stubborn, "#!/bin/sh\ntrap '' INT TERM\nexec ssh \"$@\"\n");
    let marks = shared_folder();
    let running = begun(&shoal, marks.path(), &["--ssh", &stubborn]);
    running.interrupt();
    // The first one is taken before the second comes: two at once would count as one.
    let mut running = running;
    wait_until("a further Ctrl-C ends it", || {
        running.interrupt();
        !running.is_running()
    });
    running.wait_for_exit(130);
    wait_until("every ssh is gone", || left(&shoal) == 0);
}
