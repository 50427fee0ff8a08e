//! Runs that end before their time, by our own output or by a signal: the status is true, and so are the results.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;

use rustix::process::{Signal, kill_process};
use sshoal_testbed::simulated::Simulation;
use support::program::{Ended, Running};
use support::{Shoal, wait_until};

/// docs/exit-status.md.
const OUTPUT_FAILED: i32 = 74;

fn shell(shoal: &Shoal<Simulation>, line: &str) -> Ended {
    Running::start(&mut shoal.shell(line)).wait()
}

/// `--retry-failed`, on what was left by the last run.
fn retry(shoal: &Shoal<Simulation>, kinds: &str) -> Ended {
    Running::start(&mut shoal.configured(&["--retry-failed", kinds, "hostname"])).wait()
}

/// The objects of the result file.
fn results(shoal: &Shoal<Simulation>) -> Vec<serde_json::Value> {
    let path = shoal.user.home().join(".local/state/sshoal/last-run.jsonl");
    let text = fs::read_to_string(path).unwrap();
    let objects = text.lines().map(|line| serde_json::from_str(line).unwrap());
    // But the one that names the run.
    objects
        .filter(|object: &serde_json::Value| object["type"] != "run")
        .collect()
}

#[test]
fn output_that_cannot_be_written_is_no_wrong_usage() {
    let shoal = Shoal::simulated(2, &[]);
    let full = shell(&shoal, "exec $RUN hostname >/dev/full").expect(OUTPUT_FAILED);
    full.says(&["cannot write standard output: No space", " of 2 hosts ok"]);
    let ran = shoal.hosts.totals().execs;
    assert!(ran > 0, "commands have run");
    let kept = results(&shoal);
    assert_eq!(kept.len(), 3, "{kept:?}");
    assert_eq!(kept[2]["exit_status"], OUTPUT_FAILED);

    // What a host sends goes to a temporary file once it is much.
    let line = "TMPDIR=/no/such/folder exec $RUN -q -b yes-bytes 200000";
    let nowhere = shell(&shoal, line).expect(OUTPUT_FAILED);
    let said = nowhere.stderr();
    assert!(said.contains("/no/such/folder") && said.lines().count() == 1);
    assert!(shoal.hosts.totals().execs > ran, "commands have run");
}

#[test]
fn what_other_commands_print_and_cannot_write_is_no_wrong_usage() {
    let shoal = Shoal::simulated(1, &[]);
    shoal.run(&["hostname"]).expect(0);
    let plan = shoal.file("plan.toml");
    fs::write(&plan, "[step.a]\nhosts = 'h1'\neach = ['true']\n").unwrap();
    for words in [
        "runs",
        "runs --json",
        "hosts expand a[1-3]",
        "man",
        "each --dry-run -w a,b true",
        "status",
        "status --json",
        "up --ssh-config",
        &format!("plan check {plan}"),
        &format!("plan explain {plan}"),
    ] {
        let line = format!("exec sshoal {words} >/dev/full");
        let full = shell(&shoal, &line).expect(OUTPUT_FAILED);
        assert!(
            full.stderr()
                .starts_with("sshoal: cannot write standard output: No space"),
            "{words}: {}",
            full.stderr()
        );
    }
}

/// Two hosts read the same pipe, so what comes through it is kept in a file, of which here no more than 1 MiB has room.
#[test]
fn input_that_cannot_be_kept_ends_the_run() {
    let shoal = Shoal::simulated(2, &[]);
    let line = "head -c 4000000 /dev/zero | \
        (trap '' XFSZ; ulimit -f 2048; exec $RUN --stdin - wc -c)";
    let full = shell(&shoal, line).expect(OUTPUT_FAILED);
    let said = full.stderr();
    assert!(
        said.contains("sshoal: cannot keep standard input in a temporary file"),
        "{said}"
    );
    assert!(
        said.contains("set TMPDIR") && said.contains("0 of 2 hosts ok"),
        "{said}"
    );
    let kept = results(&shoal);
    assert_eq!(
        (kept.len(), &kept[2]["exit_status"]),
        (3, &OUTPUT_FAILED.into())
    );
}

#[test]
fn a_run_whose_reader_went_is_the_last_run() {
    let shoal = Shoal::simulated(2, &[]);
    shoal.run_on(&shoal.name(0), &["exit", "7"]).expect(1);
    let config = shoal.file("ssh_config");
    let line = format!(
        "sshoal run -F {config} -w {} yes-bytes 100000000 | head -n 1",
        shoal.name(1)
    );
    shell(&shoal, &line).expect(0);
    retry(&shoal, "exit")
        .expect(2)
        .says(&["no host of the last run ended so"]);
    let kept = results(&shoal);
    assert_eq!((kept.len(), &kept[0]["host"]), (2, &shoal.name(1).into()));
    assert_eq!(kept[1]["exit_status"], 141);
}

#[test]
fn a_run_that_was_killed_is_not_mistaken_for_the_one_before_and_leaves_nothing() {
    let shoal = Shoal::simulated(2, &[]);
    shoal.run(&["exit", "7"]).expect(1);
    let running = Running::start(&mut shoal.command(&["sleep 3600"]));
    wait_until("the commands run", || shoal.hosts.totals().execs == 4);
    retry(&shoal, "exit")
        .expect(2)
        .says(&["goes on: it is not known yet"]);
    kill_process(running.pid(), Signal::KILL).unwrap();
    drop(running);
    retry(&shoal, "exit")
        .expect(2)
        .says(&["no host of the last run ended so"]);
    let folder = shoal.user.home().join(".local/state/sshoal");
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["last-run.jsonl", "runs"]);
    // Without a journal it is not known what has run.
    let running = Running::start(&mut shoal.command(&["--journal=off", "sleep 3600"]));
    wait_until("the commands run", || shoal.hosts.totals().execs == 6);
    retry(&shoal, "exit")
        .expect(2)
        .says(&["the last run goes on, or was ended"]);
    drop(running);
}

#[test]
fn the_status_that_json_tells_is_that_of_the_process() {
    for (signal, status) in [
        (Signal::HUP, 129),
        (Signal::INT, 130),
        (Signal::QUIT, 131),
        (Signal::TERM, 143),
    ] {
        let shoal = Shoal::simulated(1, &[]);
        let running = Running::start(&mut shoal.command(&["--json", "sleep 3600"]));
        wait_until("the command runs", || shoal.hosts.totals().execs == 1);
        kill_process(running.pid(), signal).unwrap();
        let summary = running.wait().expect(status).records().summary;
        assert_eq!((summary.exit_status, summary.interrupted), (status, true));
        assert_eq!(results(&shoal)[1]["exit_status"], status);
    }
}
