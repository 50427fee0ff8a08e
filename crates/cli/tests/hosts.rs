//! Which hosts a run is for, where its command is filled in for each, and what a dry run says of it.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;

use sshoal_testbed::simulated::Simulation;
use support::Shoal;
use support::program::{Ended, Running};

/// The hosts by their numbers on which a run has printed `sim` and that number.
fn reached(ended: &Ended) -> Vec<usize> {
    let stdout = ended.stdout();
    let number = |line: &str| line.rsplit(": sim").next().unwrap().parse().unwrap();
    let mut numbers: Vec<usize> = stdout.lines().map(number).collect();
    numbers.sort();
    numbers
}

fn wcoll(shoal: &Shoal<Simulation>, arguments: &[&str]) -> Ended {
    let file = shoal.file("wcoll");
    fs::write(
        &file,
        format!("# the usual ones\n{}\n\n{}\n", shoal.name(1), shoal.name(3)),
    )
    .unwrap();
    let mut command = shoal.configured(arguments);
    Running::start(command.env("WCOLL", file)).wait()
}

#[test]
fn wcoll_names_the_hosts_unless_somebody_else_does() {
    let shoal = Shoal::simulated(4, &[]);
    assert_eq!(reached(&wcoll(&shoal, &["hostname"]).expect(0)), [1, 3]);
    assert_eq!(
        reached(&wcoll(&shoal, &["-x", &shoal.name(1), "hostname"]).expect(0)),
        [3]
    );
    assert_eq!(
        reached(&wcoll(&shoal, &["-w", &shoal.name(0), "hostname"]).expect(0)),
        [0]
    );
    let hosts = shoal.file("hosts");
    assert_eq!(
        reached(&wcoll(&shoal, &["-f", &hosts, "hostname"]).expect(0)).len(),
        4
    );
    let mut missing = shoal.configured(&["hostname"]);
    let missing = Running::start(missing.env("WCOLL", "/no/such/file")).wait();
    missing
        .expect(2)
        .says(&["cannot read the host list /no/such/file"]);
}

#[test]
fn hosts_of_all_sources_add_up_and_each_is_reached_once() {
    let shoal = Shoal::simulated(12, &[]);
    let (some, all) = (shoal.file("some"), shoal.file("hosts"));
    fs::write(&some, format!("{}\n{}\n", shoal.name(10), shoal.name(2))).unwrap();
    let caret = format!("^{some}");
    let ended = shoal
        .run_on("127.1.0.[1-3]", &["-w", &caret, "-f", &some, "hostname"])
        .expect(0);
    assert_eq!(reached(&ended), [0, 1, 2, 10]);
    let ended = shoal.run(&["-x", "127.1.0.[2-11]", "hostname"]).expect(0);
    assert_eq!(reached(&ended), [0, 11]);
    let ended = shoal
        .run(&["-x", &caret, "-x", "127.1.0.1", "hostname"])
        .expect(0);
    assert_eq!(reached(&ended).len(), 9);
    let line = format!(
        "head -n 2 {all} | sshoal run -F {} -f - hostname",
        shoal.file("ssh_config")
    );
    assert_eq!(
        reached(&Running::start(&mut shoal.shell(&line)).wait().expect(0)),
        [0, 1]
    );
}

#[test]
fn a_host_s_user_and_port_may_stand_in_the_list() {
    let shoal = Shoal::simulated(2, &[]);
    let port = shoal.hosts.addresses()[0].port();
    let list = format!("admin@{}:{port},{}", shoal.name(0), shoal.name(1));
    let ended = shoal
        .run_on(&list, &["-o", "Port=1", "-l", "root", "--dry-run", "id"])
        .expect(0);
    let expected = format!(
        "{list0}: admin@{0} port {port}: id\n{1}: root@{1} port 1: id\n",
        shoal.name(0),
        shoal.name(1),
        list0 = shoal.name(0),
    );
    assert_eq!(ended.stdout(), expected);
}

#[test]
fn commands_are_filled_in_for_each_host_unless_they_are_to_be_literal() {
    let shoal = Shoal::simulated(2, &[]);
    let config = shoal.file("aliased");
    let port = shoal.hosts.addresses()[0].port();
    let text = fs::read_to_string(shoal.file("ssh_config")).unwrap();
    fs::write(
        &config,
        format!(
            "Host web1\n    HostName {}\n    User admin\n{text}",
            shoal.name(0)
        ),
    )
    .unwrap();
    let run = |flags: &[&str]| {
        let mut command = shoal.user.run(&["-F", &config, "-w", "web1"]);
        Running::start(command.args(flags))
            .wait()
            .expect(0)
            .stdout()
    };
    let words = ["echo", "%n", "%h:%p", "%u,", "%%h", "%s", "100%"];
    assert_eq!(
        run(&words),
        format!("web1: web1 {}:{port} admin, %h %s 100%\n", shoal.name(0))
    );
    let literal = [&["--literal"], &words[..]].concat();
    assert_eq!(run(&literal), "web1: %n %h:%p %u, %%h %s 100%\n");
}

#[test]
fn a_dry_run_connects_to_nobody_and_says_what_would_be_done() {
    let shoal = Shoal::simulated(2, &[]);
    let port = shoal.hosts.addresses()[0].port();
    let ended = shoal
        .run(&["--dry-run", "--sudo", "echo %h\necho 2"])
        .expect(0);
    let line =
        |host: &str| format!("{host}: sshoal-test@{host} port {port}: sudo echo {host}\\necho 2\n");
    assert_eq!(ended.stdout(), line(&shoal.name(0)) + &line(&shoal.name(1)));
    assert_eq!(shoal.hosts.totals().connections, 0);
    let state = shoal.user.home().join(".local/state/sshoal/last-run.jsonl");
    assert!(!state.exists(), "the last real run stays the last run");
    let mut piped = shoal.shell("$RUN --dry-run true | head -n 1");
    assert_eq!(Running::start(&mut piped).wait().expect(0).stderr(), "");
}

#[test]
fn failed_hosts_are_retried_by_kind() {
    // Twice host 0 lets nobody in, once host 1 sends noise; hosts 2 and 3 run what fails by itself.
    let shoal = Shoal::simulated(
        6,
        &[
            "0=auth-denied@2",
            "1=garbage-banner@1",
            "3=exit-signal:KILL",
        ],
    );
    let retry = |kinds: &str, words: &[&str]| {
        let mut command = shoal.configured(&["--retry-failed", kinds]);
        Running::start(command.args(words)).wait()
    };
    let line = format!("-w {},{} -S 'exit 9'", shoal.name(2), shoal.name(3));
    shoal.run(&["hostname"]).expect(3);
    // By their kinds, and in any number.
    let ended = retry("auth-denied,protocol", &["hostname"]).expect(3);
    assert_eq!(reached(&ended), [1]);
    ended.says(&[&format!("auth-denied: {}", shoal.name(0))]);
    // The run before is the last one now: only host 0 has failed in it.
    assert_eq!(reached(&retry("all", &["hostname"]).expect(0)), [0]);
    retry("all", &["hostname"])
        .expect(2)
        .says(&["no host of the last run ended so"]);

    // What has run is not run again unless it is asked for by name.
    let mut exits = shoal.shell(&format!(
        "sshoal run -F {} {line}",
        shoal.file("ssh_config")
    ));
    Running::start(&mut exits).wait().expect(137);
    retry("all", &["hostname"]).expect(2);
    assert_eq!(reached(&retry("exit", &["hostname"]).expect(0)), [2]);
}

#[test]
fn hosts_that_were_not_started_are_retried_and_exclusions_hold() {
    let shoal = Shoal::simulated(5, &[]);
    let running = Running::start(&mut shoal.command(&["-p", "1", "sleep 3600"]));
    support::wait_until("one command runs", || shoal.hosts.totals().execs == 1);
    running.interrupt();
    running.wait().expect(130);
    let mut command = shoal.configured(&[
        "--retry-failed",
        "not-started",
        "-x",
        &shoal.name(4),
        "hostname",
    ]);
    assert_eq!(
        reached(&Running::start(&mut command).wait().expect(0)),
        [1, 2, 3]
    );
    let mut both = shoal.command(&["--retry-failed", "all", "true"]);
    Running::start(&mut both)
        .wait()
        .expect(2)
        .says(&["--retry-failed", "--hosts-file"]);
}

#[test]
fn what_is_to_be_done_about_a_wrong_port_helps() {
    let shoal = Shoal::simulated(1, &[]);
    let name = shoal.name(0);
    let right = shoal.hosts.addresses()[0].port();
    let run = |host: &str, port: u16| {
        let option = format!("Port={port}");
        let mut command = shoal.configured(&["-o", &option, "-w", host, "true"]);
        Running::start(&mut command).wait()
    };
    // Nobody listens on port 1.
    run(&name, 1)
        .expect(3)
        .says(&["refused", "HOST:PORT", "-o Port="]);
    run(&name, right).expect(0);
    run(&format!("{name}:{right}"), 1).expect(0);
}
