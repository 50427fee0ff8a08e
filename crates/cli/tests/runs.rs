//! `runs`, `show`, `resume`: runs that are kept.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Signal, kill_process};
use sshoal_journal::run::{RunReader, RunRecord};
use sshoal_testbed::simulated::Simulation;
use support::program::{Ended, Running};
use support::{Shoal, wait_until};

fn sshoal(shoal: &Shoal<Simulation>, words: &[&str]) -> Ended {
    let mut command = shoal.user.command(env!("CARGO_BIN_EXE_sshoal"));
    Running::start(command.args(words)).wait()
}

/// The folder of the journals.
fn folder(shoal: &Shoal<Simulation>) -> PathBuf {
    shoal.user.home().join(".local/state/sshoal/runs")
}

/// What `runs --json` says.
fn runs(shoal: &Shoal<Simulation>) -> Vec<serde_json::Value> {
    let listed = sshoal(shoal, &["runs", "--json"]).expect(0).stdout();
    let lines = listed.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Starts a run, and kills it when so many commands have begun in all.
fn killed(shoal: &Shoal<Simulation>, words: &[&str], execs: u64) {
    let running = Running::start(&mut shoal.command(words));
    wait_until("they run", || shoal.hosts.totals().execs == execs);
    kill_process(running.pid(), Signal::KILL).unwrap();
    drop(running);
    wait_until("all is quiet", || shoal.hosts.totals().open == 0);
}

/// The journal of the only run.
fn journal(shoal: &Shoal<Simulation>) -> PathBuf {
    let mut entries = fs::read_dir(folder(shoal)).unwrap();
    let path = entries.next().unwrap().unwrap().path();
    assert!(entries.next().is_none());
    path
}

/// The records of a journal of this version.
fn records(path: &Path, version: u32) -> Vec<RunRecord> {
    let mut reader = RunReader::default();
    reader.handle_input(&fs::read(path).unwrap());
    let records = std::iter::from_fn(|| reader.poll_record().unwrap()).collect();
    assert_eq!(reader.version(), version);
    assert!(!reader.is_damaged());
    records
}

/// Writes a journal of this version.
fn write_records(path: &Path, version: u8, records: Vec<RunRecord>) {
    let mut octets = RunReader::header();
    *octets.last_mut().unwrap() = version;
    records.iter().for_each(|record| record.put(&mut octets));
    fs::write(path, octets).unwrap();
}

/// `sshoal` in a process whose files have no room for more than so many octets.
fn in_room_for(shoal: &Shoal<Simulation>, octets: usize, words: &str) -> Ended {
    let line = format!("trap '' XFSZ; exec prlimit --fsize={octets} sshoal {words}");
    Running::start(&mut shoal.user.shell(&line)).wait()
}

fn count(shoal: &Shoal<Simulation>, hosts: usize) -> Vec<u64> {
    (0..hosts)
        .map(|host| shoal.hosts.count(host, "runs"))
        .collect()
}

#[test]
fn a_run_is_listed_shown_in_every_form_and_only_the_users() {
    let shoal = Shoal::simulated(3, &["2=auth-denied"]);
    let lines = shoal.run(&["--record", "hostname"]).expect(3);
    assert_eq!(
        sshoal(&shoal, &["runs", "--json"])
            .expect(0)
            .stdout()
            .lines()
            .count(),
        1
    );
    let run = runs(&shoal).remove(0);
    let facts = [
        &run["state"],
        &run["hosts"],
        &run["ok"],
        &run["failed"],
        &run["not_run"],
    ];
    assert_eq!(
        serde_json::json!(facts),
        serde_json::json!(["ended", 3, 2, 1, 0])
    );
    assert!(
        run["command"]
            .as_str()
            .unwrap()
            .ends_with("--record hostname"),
        "{run}"
    );
    let id = run["run"].as_str().unwrap();
    assert!(sshoal(&shoal, &["runs"]).expect(0).stdout().contains(id));

    let shown = sshoal(&shoal, &["show", &id[..11]]).expect(3);
    let sorted = |text: String| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    assert_eq!(sorted(shown.stdout()), sorted(lines.stdout()));
    shown.says(&["2 of 3 hosts ok", "auth-denied"]);
    let gathered = sshoal(&shoal, &["show", "last", "-b"]).expect(3).stdout();
    assert!(
        gathered.contains("sim0") && gathered.contains("sim1"),
        "{gathered}"
    );
    let diff = sshoal(&shoal, &["show", "last", "--diff"])
        .expect(3)
        .stdout();
    assert!(diff.contains("sim0") || diff.contains("sim1"), "{diff}");
    let records = sshoal(&shoal, &["show", "last", "--json"])
        .expect(3)
        .records()
        .by_name();
    assert_eq!(records[&shoal.name(0)].stdout.as_deref(), Some("sim0\n"));
    assert_eq!(
        records[&shoal.name(2)].failure.as_deref(),
        Some("auth-denied")
    );
    assert!(records[&shoal.name(0)].times_us.login.is_some());
    let outdir = shoal.file("outdir");
    sshoal(&shoal, &["show", "last", "-q", "--outdir", &outdir]).expect(3);
    let written = fs::read_to_string(format!("{outdir}/{}.out", shoal.name(1)));
    assert_eq!(written.unwrap(), "sim1\n");

    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(folder(&shoal)), 0o700);
    assert_eq!(mode(folder(&shoal).join(format!("{id}.run"))), 0o600);
    sshoal(&shoal, &["show", "nosuchrun"])
        .expect(2)
        .says(&["no run is called nosuchrun"]);
}

#[test]
fn without_record_no_output_is_kept_and_with_off_nothing() {
    let shoal = Shoal::simulated(1, &[]);
    shoal.run(&["--journal=off", "hostname"]).expect(0);
    assert!(!folder(&shoal).exists());
    shoal
        .run(&["--journal=off", "--record", "hostname"])
        .expect(2);
    sshoal(&shoal, &["show", "last"])
        .expect(2)
        .says(&["no run is kept"]);
    shoal.run(&["hostname"]).expect(0);
    let shown = sshoal(&shoal, &["show", "last"]).expect(0);
    assert_eq!(shown.stdout(), "");
    shown.says(&["kept no output"]);
    let shown = sshoal(&shoal, &["show", "last", "--json"]).expect(0);
    assert!(!shown.stdout().contains("\"stdout"), "{}", shown.stdout());
    let octets = fs::read(journal(&shoal)).unwrap();
    assert!(!octets.windows(4).any(|octets| octets == b"sim0"));
}

#[test]
fn a_run_that_is_on_is_not_gone_on_with_and_after_a_kill_it_is() {
    let shoal = Shoal::simulated(4, &[]);
    let running = Running::start(&mut shoal.command(&["-p", "1", "--record", "sleep 3600"]));
    wait_until("one runs", || shoal.hosts.totals().execs == 1);
    sshoal(&shoal, &["resume", "last"])
        .expect(2)
        .says(&["is on"]);
    sshoal(&shoal, &["runs", "--prune", "--keep-size", "0"]).expect(0);
    assert_eq!(runs(&shoal)[0]["state"], "running");
    kill_process(running.pid(), Signal::KILL).unwrap();
    drop(running);
    let run = runs(&shoal).remove(0);
    let facts = [&run["state"], &run["may_have_run"], &run["not_run"]];
    assert_eq!(
        serde_json::json!(facts),
        serde_json::json!(["killed", 1, 3])
    );
    // The result file names the run, whose journal knows more.
    let lost = ["--retry-failed", "lost", "count runs"];
    Running::start(&mut shoal.configured(&lost))
        .wait()
        .expect(0);
    assert_eq!(count(&shoal, 4), [1, 0, 0, 0]);
    let id = run["run"].as_str().unwrap();
    let of = ["--retry-failed", "not-started", "--of", id, "count runs"];
    Running::start(&mut shoal.configured(&of)).wait().expect(0);
    assert_eq!(count(&shoal, 4), [1, 1, 1, 1]);
}

#[test]
fn what_is_left_after_an_interruption_is_run_in_its_batches() {
    // Whatever it is asked for, a host here but the first two ends at once.
    let shoal = Shoal::simulated(5, &["2-4=flood:1"]);
    let canary = shoal.name(3);
    let flags = ["--canary", &canary, "--batch", "2", "true"];
    shoal.run(&flags).expect(0);
    assert_eq!(shoal.hosts.totals().execs, 5);
    // The canary has run, and the first batch hangs.
    let words = ["--canary", &canary, "--batch", "2", "sleep 3600"];
    let running = Running::start(&mut shoal.command(&words));
    wait_until("the first batch runs", || shoal.hosts.totals().execs == 8);
    running.interrupt();
    running.wait().expect(130);
    let run = runs(&shoal).pop().unwrap();
    assert_eq!(run["state"], "interrupted");
    assert_eq!((&run["not_run"], &run["hosts"]), (&2.into(), &5.into()));
    let resumed = sshoal(&shoal, &["resume", "last", "--maybe-ran", "skip"]);
    assert_eq!(shoal.hosts.totals().execs, 10, "{}", resumed.stderr());
    sshoal(&shoal, &["resume", "last"]).says(&["nothing is left"]);
}

#[test]
fn where_nothing_is_left_those_that_failed_are_named() {
    let shoal = Shoal::simulated(3, &["1=auth-denied"]);
    let ran = shoal.run(&["exit", "0"]).expect(3);
    assert!(!ran.stderr().contains("resume"), "{}", ran.stderr());
    let run = runs(&shoal).remove(0);
    let id = run["run"].as_str().unwrap();
    sshoal(&shoal, &["resume", "last"]).expect(0).says(&[
        "nothing is left to be done",
        &format!("1 host has ended without success: {}", shoal.name(1)),
        &format!("`--retry-failed auth-denied --of {id}`"),
    ]);
}

#[test]
fn after_an_interruption_that_has_left_nothing_no_resume_is_offered() {
    let shoal = Shoal::simulated(1, &[]);
    let here = shoal.dir.path();
    let script = "trap 'exit 7' INT; touch began; for i in $(seq 600); do [ -e go ] && break; sleep 0.1; done";
    for (hosts, is_offered) in [("a", false), ("a,b", true)] {
        let words = ["each", "-w", hosts, "-p", "1", "sh", "-c", script];
        let mut command = shoal.user.command(env!("CARGO_BIN_EXE_sshoal"));
        let running = Running::start(command.args(words).current_dir(here));
        wait_until("it has begun", || here.join("began").exists());
        running.interrupt();
        let said = running.wait().expect(130).stderr();
        assert_eq!(said.contains("`sshoal resume"), is_offered, "{said}");
        fs::remove_file(here.join("began")).unwrap();
    }
}

#[test]
fn after_a_failed_canary_nothing_is_gone_on_with() {
    let shoal = Shoal::simulated(3, &[]);
    let canary = shoal.name(0);
    shoal.run(&["--canary", &canary, "exit", "1"]).expect(3);
    let resumed = sshoal(&shoal, &["resume", "last"]).expect(2);
    resumed.says(&["the canary", "has failed in this run"]);
    assert_eq!(runs(&shoal)[0]["state"], "halted");
}

#[test]
fn a_run_in_which_too_many_have_failed_is_gone_on_with_if_more_may() {
    let shoal = Shoal::simulated(3, &[]);
    let ran = shoal.run(&["--max-failures", "0", "-p", "1", "exit", "1"]);
    ran.expect(3).says(&["`sshoal resume", "--max-failures"]);
    let run = runs(&shoal).remove(0);
    let facts = [&run["state"], &run["not_run"], &run["exit_status"]];
    assert_eq!(
        serde_json::json!(facts),
        serde_json::json!(["halted", 2, 3])
    );
    let resumed = sshoal(&shoal, &["resume", "last"]).expect(2);
    resumed.says(&[
        "hosts have failed in this run, and --max-failures is 0",
        "--max-failures N` goes on",
    ]);
    assert_eq!(shoal.hosts.totals().execs, 1);
    sshoal(&shoal, &["resume", "last", "--max-failures", "100%"]).expect(1);
    assert_eq!(shoal.hosts.totals().execs, 3);
    assert_eq!(runs(&shoal)[0]["state"], "ended");
}

#[test]
fn the_status_of_the_run_itself_is_told() {
    let shoal = Shoal::simulated(1, &[]);
    shoal.run(&["-S", "exit", "7"]).expect(7);
    let shown = sshoal(&shoal, &["show", "last"]).expect(1);
    shown.says(&["exited with status 7"]);
    let shown = sshoal(&shoal, &["show", "last", "--json"]).expect(1);
    let stdout = shown.stdout();
    let run: serde_json::Value = serde_json::from_str(stdout.lines().next().unwrap()).unwrap();
    assert_eq!(run, runs(&shoal)[0]);
    assert_eq!(
        (&run["exit_status"], &run["state"]),
        (&7.into(), &"ended".into())
    );
    assert_eq!(shown.records().summary.exit_status, 1);
}

/// A run that was halted when its first host could not be logged in to; two are left.
fn halted(shoal: &Shoal<Simulation>) {
    let words = ["--max-failures", "0", "-p", "1", "count runs"];
    shoal.run(&words).expect(3);
    assert_eq!(count(shoal, 3), [0; 3]);
}

#[test]
fn a_full_disk_costs_a_run_that_is_gone_on_with_no_journal() {
    let shoal = Shoal::simulated(3, &["0=auth-denied"]);
    halted(&shoal);
    let path = journal(&shoal);
    let before = fs::read(&path).unwrap();
    // The first record has a part of its room.
    let words = "resume last --max-failures 2";
    in_room_for(&shoal, before.len() + 9, words)
        .expect(2)
        .says(&[path.to_str().unwrap(), "File too large", "it is as it was"]);
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(count(&shoal, 3), [0; 3]);
    // Now that and the command that leaves have, but not how it ends.
    let mut room = RunReader::header();
    let began = records(&path, 2)
        .into_iter()
        .find(|record| matches!(record, RunRecord::Began { .. }));
    began.unwrap().put(&mut room);
    RunRecord::Sent(vec![1]).put(&mut room);
    let header = RunReader::header().len();
    in_room_for(&shoal, before.len() + room.len() - header + 3, words)
        .expect(74)
        .says(&[
            "the run's journal cannot be written",
            path.to_str().unwrap(),
        ]);
    assert_eq!(count(&shoal, 3), [0, 1, 0]);
    assert_eq!(runs(&shoal)[0]["may_have_run"], 1);
    let words = ["resume", "last", "--max-failures", "2", "--maybe-ran"];
    sshoal(&shoal, &[&words[..], &["skip"]].concat()).expect(3);
    assert_eq!(count(&shoal, 3), [0, 1, 1]);
    sshoal(&shoal, &[&words[..], &["rerun"]].concat()).expect(0);
    assert_eq!(count(&shoal, 3), [0, 2, 1]);
}

#[test]
fn a_journal_of_the_first_version_is_gone_on_with_in_that_version() {
    let shoal = Shoal::simulated(3, &["0=auth-denied"]);
    halted(&shoal);
    let path = journal(&shoal);
    let mut old = records(&path, 2);
    old.retain(|record| !matches!(record, RunRecord::Status(_)));
    for record in &mut old {
        if let RunRecord::Began { boot, .. } = record {
            assert!(boot.take().is_some());
        }
    }
    write_records(&path, 1, old);
    assert_eq!(runs(&shoal)[0]["exit_status"], serde_json::Value::Null);
    sshoal(&shoal, &["resume", "last", "--max-failures", "1"]).expect(0);
    assert_eq!(count(&shoal, 3), [0, 1, 1]);
    let is_old = |record: &RunRecord| match record {
        RunRecord::Began { boot, .. } => boot.is_none(),
        RunRecord::Status(_) | RunRecord::Killed { .. } => false,
        _ => true,
    };
    assert!(records(&path, 1).iter().all(is_old));
}

#[test]
fn after_a_restart_of_the_machine_what_was_not_synced_is_in_doubt() {
    for (journal_flag, in_doubt) in [("--journal=write", true), ("--journal=sync", false)] {
        let shoal = Shoal::simulated(3, &[]);
        killed(&shoal, &["-p", "1", journal_flag, "sleep 3600"], 1);
        let path = journal(&shoal);
        let mut records = records(&path, 2);
        for record in &mut records {
            if let RunRecord::Began { boot, .. } = record {
                boot.as_mut().unwrap().id[0] ^= 1;
            }
        }
        write_records(&path, 2, records);
        let shown = sshoal(&shoal, &["show", "last"]).expect(3);
        let doubt = "may have run on 2 hosts that are listed as not started";
        assert_eq!(shown.stderr().contains(doubt), in_doubt);
        if in_doubt {
            sshoal(&shoal, &["resume", "last"])
                .expect(3)
                .says(&[doubt, "the command may have run on 3 hosts"]);
            let of = ["--retry-failed", "all", "--of", "last", "count runs"];
            Running::start(&mut shoal.configured(&of))
                .wait()
                .says(&[doubt]);
            assert_eq!(
                (shoal.hosts.totals().execs, count(&shoal, 3)),
                (1, vec![0; 3])
            );
        }
    }
}

#[test]
fn what_is_no_journal_stops_neither_the_list_nor_pruning() {
    let shoal = Shoal::simulated(1, &[]);
    let none = sshoal(&shoal, &["runs"]).expect(0);
    assert_eq!(none.stdout(), "");
    none.says(&["no run is kept in"]);
    assert_eq!(sshoal(&shoal, &["runs", "--json"]).expect(0).stdout(), "");
    shoal.run(&["hostname"]).expect(0);
    let place = |name: &str| folder(&shoal).join(format!("{name}.run"));
    let rights = Mode::RUSR | Mode::WUSR;
    mknodat(CWD, place("000000000000"), FileType::Fifo, rights, 0).unwrap();
    mknodat(CWD, place("zzzzzzzzzzzz"), FileType::Fifo, rights, 0).unwrap();
    fs::create_dir(place("000000000001")).unwrap();
    assert_eq!(runs(&shoal).len(), 1);
    sshoal(&shoal, &["runs", "--prune"])
        .expect(0)
        .says(&["0 journals were removed"]);
    sshoal(&shoal, &["show", "last"]).expect(0);
    sshoal(&shoal, &["show", "zzzzzzzzzzzz"])
        .expect(2)
        .says(&["no run is called"]);
}

#[test]
fn a_journal_whose_beginning_is_torn_is_damaged_and_of_its_time() {
    let shoal = Shoal::simulated(1, &[]);
    shoal.run(&["hostname"]).expect(0);
    let began = runs(&shoal)[0]["began_ms"].as_u64().unwrap();
    let path = journal(&shoal);
    let octets = fs::read(&path).unwrap();
    for len in [0, 5, 12, 40] {
        fs::write(&path, &octets[..len]).unwrap();
        let run = runs(&shoal).remove(0);
        assert_eq!(
            (&run["state"], &run["hosts"]),
            (&"damaged".into(), &0.into())
        );
        // An identifier has the time in 1/256 s.
        let by_id = run["began_ms"].as_u64().unwrap();
        assert!((began.saturating_sub(4)..=began).contains(&by_id), "{len}");
    }
}

#[test]
fn input_is_read_again_only_if_it_is_the_same() {
    let shoal = Shoal::simulated(2, &[]);
    let input = shoal.dir.path().join("input");
    fs::write(&input, "one\n").unwrap();
    let path = input.to_str().unwrap();
    // Host 0 does not end; host 1 is left.
    killed(&shoal, &["-p", "1", "--stdin", path, "sleep 3600"], 1);
    fs::write(&input, "another\n").unwrap();
    let refused = sshoal(&shoal, &["resume", "last"]).expect(2);
    refused.says(&["standard input", "its size has changed"]);
    assert_eq!(shoal.hosts.totals().execs, 1);

    killed(&shoal, &["-p", "1", "--stdin", "-", "sleep 3600"], 2);
    let refused = sshoal(&shoal, &["resume", "last"]).expect(2);
    refused.says(&["standard input was that of sshoal"]);
}

#[test]
fn commands_of_this_machine_are_gone_on_with_in_their_folder() {
    let shoal = Shoal::simulated(1, &[]);
    let here = shoal.dir.path().join("here");
    fs::create_dir(&here).unwrap();
    // What is killed with sshoal is not what it has started: that waits for a file, not for ever.
    let script = "echo %h >>log; [ %h != b ] || { touch began; for i in $(seq 600); do [ -e go ] && break; sleep 0.1; done; }";
    let words = ["each", "-w", "a,b,c", "-p", "1", "sh", "-c", script];
    let mut command = shoal.user.command(env!("CARGO_BIN_EXE_sshoal"));
    let running = Running::start(command.args(words).current_dir(&here));
    wait_until("b has begun", || here.join("began").exists());
    wait_until("the end of a is noted", || runs(&shoal)[0]["ok"] == 1);
    kill_process(running.pid(), Signal::KILL).unwrap();
    drop(running);
    sshoal(&shoal, &["resume", "last"])
        .expect(3)
        .says(&["the command may have run on 1 host", "b"]);
    fs::write(here.join("go"), "").unwrap();
    assert_eq!(fs::read_to_string(here.join("log")).unwrap(), "a\nb\nc\n");
}

#[test]
fn a_synced_run_is_like_any_other() {
    let shoal = Shoal::simulated(30, &["3=auth-denied"]);
    shoal.run(&["--journal=sync", "count runs"]).expect(3);
    let run = runs(&shoal).remove(0);
    assert_eq!((&run["ok"], &run["failed"]), (&29.into(), &1.into()));
    let names = sshoal(&shoal, &["complete-hosts", "--runs", ""])
        .expect(0)
        .stdout();
    assert_eq!(names, format!("{}\nlast\n", run["run"].as_str().unwrap()));
}

#[test]
fn on_the_word_of_a_damaged_journal_nothing_is_sent() {
    let shoal = Shoal::simulated(4, &[]);
    shoal.run(&["count runs"]).expect(0);
    let entry = fs::read_dir(folder(&shoal)).unwrap().next().unwrap();
    let path = entry.unwrap().path();
    let whole = fs::read(&path).unwrap();
    // What was sent and how it ended is in the last records; a bit of it flips.
    let mut flipped = whole.clone();
    let at = whole.len() - 60;
    flipped[at] ^= 4;
    fs::write(&path, &flipped).unwrap();
    let damaged = ["is damaged at octet", path.to_str().unwrap()];
    sshoal(&shoal, &["resume", "last", "--maybe-ran", "rerun"])
        .expect(2)
        .says(&damaged);
    let of = ["--retry-failed", "all", "--of", "last", "count runs"];
    Running::start(&mut shoal.configured(&of))
        .wait()
        .expect(2)
        .says(&damaged);
    sshoal(&shoal, &["show", "last"]).says(&damaged);
    assert_eq!(runs(&shoal)[0]["state"], "damaged");
    assert_eq!(fs::read(&path).unwrap(), flipped);
    assert_eq!(count(&shoal, 4), [1; 4]);
}
