#![allow(clippy::unwrap_used)]

use std::time::Duration;

use proptest::prelude::*;
use sshoal_fleet::{Failure, FailureKind, Fate, PhaseTimes};
use sshoal_targets::Target;

use super::*;
use crate::{Summary, parse_last_run, read_last_run, recorded::Recorded};

mod closing;
mod moving;

fn hosts(names: &[&str]) -> Vec<Host> {
    let host = |name: &&str| Host::new(Target::named(*name));
    names.iter().map(host).collect()
}

fn webs(count: usize) -> Vec<Host> {
    let names: Vec<String> = (1..=count).map(|n| format!("web{n}")).collect();
    hosts(&names.iter().map(String::as_str).collect::<Vec<_>>())
}

fn quiet(layout: Layout) -> Options {
    Options {
        layout,
        verbosity: Verbosity::Quiet,
        ..Options::default()
    }
}

fn exit(host: u32, status: u32) -> HostResult {
    ended(host, Outcome::Exit(status))
}

fn ended(host: u32, outcome: Outcome) -> HostResult {
    HostResult {
        host: HostId(host),
        outcome,
        attempts: 1,
        times: PhaseTimes::default(),
    }
}

fn lost(host: u32) -> HostResult {
    let failure = Failure::with_remedy(FailureKind::Lost, "connection reset", "look there");
    ended(
        host,
        Outcome::Failed {
            failure,
            fate: Fate::MayHaveRun,
        },
    )
}

/// Runs a report: each host's standard output, standard error and exit status.
fn report(
    hosts: Vec<Host>,
    options: Options,
    outputs: &[(&str, &str, u32)],
) -> (String, String, Summary) {
    let (stdout, stderr) = (Recorded::default(), Recorded::default());
    let mut reporter = Reporter::new(hosts, options, stdout.file(), stderr.file()).unwrap();
    for (host, (out, err, status)) in (0u32..).zip(outputs) {
        reporter
            .handle_output(HostId(host), Stream::Stdout, out.as_bytes())
            .unwrap();
        reporter
            .handle_output(HostId(host), Stream::Stderr, err.as_bytes())
            .unwrap();
        reporter.handle_result(&exit(host, *status)).unwrap();
    }
    let summary = reporter.finish(RunEnd::default());
    (stdout.text(), stderr.text(), summary)
}

#[test]
fn lines_and_errors_carry_the_host() {
    let outputs = [("one\ntwo", "oops\n", 0), ("", "", 1)];
    let (stdout, stderr, summary) = report(webs(2), Options::default(), &outputs);
    assert_eq!(stdout, "web1: one\nweb1: two\n");
    assert_eq!(
        stderr,
        "web1: oops\nsshoal: 1 of 2 hosts ok, 1 failed, in 0.0 s\nexit 1: web2\n"
    );
    assert_eq!(summary.exit_status, 1);
    let bare = Options {
        layout: Layout::Lines { prefix: false },
        ..Options::default()
    };
    assert_eq!(report(webs(2), bare, &outputs).0, "one\ntwo\n");
}

#[test]
fn a_host_s_name_steers_no_terminal_and_stays_as_it_is_in_a_pipe() {
    let name = "\u{1b}[2Jweb\u{202e}1";
    let told = |layout, is_terminal| {
        let (stdout, stderr) = (Recorded::default(), Recorded::default());
        let sink = |of: &Recorded| match is_terminal {
            true => of.terminal(false),
            false => of.file(),
        };
        let options = Options {
            layout,
            verbosity: Verbosity::Verbose,
            ..Options::default()
        };
        let sinks = (sink(&stdout), sink(&stderr));
        let mut reporter =
            Reporter::new(hosts(&[name, "web2", "web3"]), options, sinks.0, sinks.1).unwrap();
        for (host, line) in [(0, b"one\n"), (1, b"two\n"), (2, b"two\n")] {
            let host = HostId(host);
            reporter.handle_output(host, Stream::Stdout, line).unwrap();
        }
        reporter.remark(HostId(0), "slow").unwrap();
        reporter.handle_result(&lost(0)).unwrap();
        reporter.handle_result(&exit(1, 0)).unwrap();
        let not_started = ended(2, Outcome::NotStarted);
        reporter.handle_result(&not_started).unwrap();
        reporter.finish(RunEnd::default());
        (stdout.text(), stderr.text())
    };
    let visible = r"\x1b[2Jweb\u{202e}1";
    for layout in [Layout::Lines { prefix: true }, Layout::Gather, Layout::Diff] {
        let (out, err) = told(layout, true);
        assert!(out.contains(visible) && !out.contains(name), "{out:?}");
        assert!(!out.contains(['\u{1b}', '\u{202e}']), "{out:?}");
        let (out, _) = told(layout, false);
        assert!(out.contains(name), "{out:?}");
        // What is said beside the output is for people, wherever it goes.
        assert_eq!(err.matches(visible).count(), 4, "{err:?}");
        assert!(!err.contains(['\u{1b}', '\u{202e}']), "{err:?}");
    }
}

#[test]
fn how_much_is_said_is_chosen() {
    let said = |verbosity, status| {
        let options = Options {
            verbosity,
            ..Options::default()
        };
        report(webs(1), options, &[("", "", status)]).1
    };
    assert_eq!(
        [said(Verbosity::Quiet, 1), said(Verbosity::Normal, 0)],
        ["", ""]
    );
    assert_eq!(
        said(Verbosity::Verbose, 0),
        "web1: ok\nsshoal: 1 of 1 host ok, in 0.0 s\n"
    );
    assert_eq!(
        said(Verbosity::Verbose, 7),
        "web1: exit 7\nsshoal: 0 of 1 host ok, 1 failed, in 0.0 s\nexit 7: web1\n"
    );
}

#[test]
fn verbose_lines_tell_where_the_time_went() {
    let times = PhaseTimes {
        connect: Some(Duration::from_micros(20_100)),
        login: Some(Duration::from_millis(180)),
        waited: Duration::from_millis(3),
        total: Some(Duration::from_micros(203_149)),
        ..PhaseTimes::default()
    };
    let mut result = lost(0);
    result.times = times;
    assert_eq!(
        result_line("web1", &result),
        "web1: lost: connection reset in 203.1 ms: connect 20.1, login 180.0, waited 3.0\n"
    );
}

#[test]
fn gathered_output_stands_under_folded_names() {
    let mut outputs = vec![("bookworm\n", "", 0); 42];
    outputs[40] = ("trixie\n", "warning\n", 0);
    outputs[4] = ("bookworm", "warning\n", 0); // the missing newline makes no other output
    outputs[10] = ("", "", 1);
    let (stdout, stderr, _) = report(webs(42), quiet(Layout::Gather), &outputs);
    assert_eq!(
        stdout,
        "---------------\nweb[1-10,12-40,42] (40)\n---------------\nbookworm\n\
         ---------------\nweb41\n---------------\ntrixie\n"
    );
    assert_eq!(
        stderr,
        "---------------\nweb[5,41] (2)\n---------------\nwarning\n"
    );
}

#[test]
fn groups_of_one_size_stand_in_natural_order() {
    let outputs = [("c\n", "", 0), ("b\n", "", 0), ("a\n", "", 0)];
    let (stdout, ..) = report(
        hosts(&["web10", "web9", "db1"]),
        quiet(Layout::Gather),
        &outputs,
    );
    let names: Vec<&str> = stdout.lines().skip(1).step_by(4).collect();
    assert_eq!(names, ["db1", "web9", "web10"]);
}

#[test]
fn differences_are_against_the_most_common_output() {
    let usual = "one\ntwo\nthree\n";
    let outputs = [
        (usual, "", 0),
        ("one\n2\r\rx\nthree", "", 0),
        (usual, "", 0),
        ("", "e\n", 0),
    ];
    let (stdout, stderr, _) = report(webs(4), quiet(Layout::Diff), &outputs);
    assert_eq!(
        stdout,
        "--- web[1,3] (2)\n+++ web2\n@@ -1,3 +1,3 @@\n one\n-two\n+2\r\rx\n three\n\
         --- web[1,3] (2)\n+++ web4\n@@ -1,3 +0,0 @@\n-one\n-two\n-three\n"
    );
    assert_eq!(stderr, "---------------\nweb4\n---------------\ne\n");
    let (stdout, stderr, _) = report(
        webs(2),
        Options {
            layout: Layout::Diff,
            ..Options::default()
        },
        &[(usual, "", 0); 2],
    );
    assert_eq!(
        (stdout.as_str(), stderr.as_str()),
        ("", "sshoal: no differences: 2 hosts gave the same output\n")
    );
}

#[test]
fn hosts_that_did_not_run_are_no_difference() {
    let (stdout, stderr) = (Recorded::default(), Recorded::default());
    let mut reporter =
        Reporter::new(webs(3), quiet(Layout::Diff), stdout.file(), stderr.file()).unwrap();
    for host in 0..2 {
        reporter
            .handle_output(HostId(host), Stream::Stdout, b"x\n")
            .unwrap();
        reporter.handle_result(&exit(host, 0)).unwrap();
    }
    reporter.handle_result(&lost(2)).unwrap();
    reporter.finish(RunEnd::default());
    assert_eq!(stdout.text(), "");
}

#[test]
fn outputs_too_long_to_compare_are_said_to_differ() {
    let long = "x\n".repeat(MAX_DIFF_LINES);
    let (stdout, ..) = report(
        webs(2),
        quiet(Layout::Diff),
        &[("a\n", "", 0), (&long, "", 0)],
    );
    assert_eq!(
        stdout,
        "--- web1\n+++ web2\nsshoal: too long to compare: 2 bytes and 4194306 bytes\n"
    );
}

const MAX_DIFF_LINES: usize = crate::MAX_DIFF as usize / 2 + 1;

#[test]
fn a_coloured_diff_is_sanitised() {
    let screen = Recorded::default();
    let stderr = Recorded::default();
    let mut reporter = Reporter::new(
        webs(2),
        quiet(Layout::Diff),
        screen.terminal(true),
        stderr.file(),
    )
    .unwrap();
    for (host, text) in [(0, b"a\n" as &[u8]), (1, b"\x1b[2J\n")] {
        reporter
            .handle_output(HostId(host), Stream::Stdout, text)
            .unwrap();
        reporter.handle_result(&exit(host, 0)).unwrap();
    }
    reporter.finish(RunEnd::default());
    let plain = screen
        .text()
        .replace("\x1b[31m", "{")
        .replace("\x1b[32m", "<")
        .replace("\x1b[36m", "@")
        .replace("\x1b[0m", "}");
    assert_eq!(
        plain,
        "{--- web1}\n<+++ web2}\n@@@ -1 +1 @@}\n{-a}\n<+\\x1b[2J}\n"
    );
}

#[test]
fn json_has_an_object_for_each_host_and_one_for_the_run() {
    let (stdout, stderr, _) = report(
        webs(2),
        quiet(Layout::Json),
        &[("out\n", "err", 0), ("", "", 2)],
    );
    let objects: Vec<serde_json::Value> = stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(stderr, "");
    assert_eq!(objects.len(), 3);
    assert_eq!(
        [&objects[0]["stdout"], &objects[0]["stderr"]],
        ["out\n", "err"]
    );
    assert_eq!(
        [&objects[1]["host"], &objects[1]["outcome"]],
        ["web2", "exit"]
    );
    assert_eq!(
        [&objects[2]["type"], &objects[2]["exit_status"]],
        [&serde_json::json!("summary"), &serde_json::json!(1)]
    );
    assert_eq!(
        parse_last_run("json", stdout.as_bytes()).unwrap().len(),
        2,
        "--retry-failed could read it"
    );
}

#[test]
fn files_and_results_are_kept_beside_any_layout() {
    let dir = tempfile::tempdir().unwrap();
    let result_file = dir.path().join("state/last-run.jsonl");
    let options = Options {
        outdir: Some(dir.path().join("out")),
        result_file: Some(result_file.clone()),
        ..quiet(Layout::Own)
    };
    let (stdout, stderr, _) = report(webs(2), options, &[("a\x1b\u{ff} b", "e", 0), ("", "", 9)]);
    assert_eq!((stdout.as_str(), stderr.as_str()), ("", ""));
    let read = |name: &str| std::fs::read(dir.path().join("out").join(name)).ok();
    assert_eq!(
        read("web1.out").as_deref(),
        Some("a\x1b\u{ff} b".as_bytes())
    );
    assert_eq!(
        [read("web1.err"), read("web2.out"), read("web2.err")],
        [Some(b"e".to_vec()), Some(vec![]), None]
    );
    let failed = read_last_run(&result_file).unwrap().remove(1);
    assert_eq!(
        (failed.target.name.as_str(), failed.ending),
        ("web2", crate::PastEnding::Failed(FailureKind::Exit))
    );
}

#[test]
fn a_result_file_that_cannot_be_made_is_only_told() {
    let options = Options {
        result_file: Some("/proc/nowhere/last-run.jsonl".into()),
        ..Options::default()
    };
    let (stdout, stderr, _) = report(webs(1), options, &[("a\n", "", 0)]);
    assert_eq!(stdout, "web1: a\n");
    assert!(
        stderr.starts_with("sshoal: cannot keep the results in /proc/nowhere/last-run.jsonl: "),
        "{stderr}"
    );
    assert!(
        stderr.contains("--retry-failed will not know this run"),
        "{stderr}"
    );
}

#[test]
fn raw_bytes_pass_untouched() {
    let screen = Recorded::default();
    let mut reporter = Reporter::new(
        webs(1),
        quiet(Layout::Raw),
        screen.terminal(true),
        Recorded::default().file(),
    )
    .unwrap();
    reporter
        .handle_output(HostId(0), Stream::Stdout, b"\x1b[2Jpassword: ")
        .unwrap();
    reporter.tick(Instant::now(), &Progress::default()).unwrap();
    assert_eq!(screen.bytes(), b"\x1b[2Jpassword: ");
}

#[test]
fn who_lent_the_terminal_is_told_only_what_could_not_be_seen() {
    let said = |result: &HostResult| {
        let options = Options {
            layout: Layout::Raw,
            ..Options::default()
        };
        let (stdout, stderr) = (Recorded::default(), Recorded::default());
        let terminal = stderr.terminal(false);
        let mut reporter = Reporter::new(webs(1), options, stdout.file(), terminal).unwrap();
        reporter.handle_result(result).unwrap();
        reporter.finish(RunEnd::default());
        stderr.text()
    };
    assert_eq!(said(&exit(0, 7)), "");
    assert!(said(&lost(0)).contains("connection reset"));
}

#[test]
fn a_reader_that_has_gone_ends_the_report() {
    let (stdout, stderr) = (Recorded::closing_after(6), Recorded::default());
    let mut reporter =
        Reporter::new(webs(1), Options::default(), stdout.file(), stderr.file()).unwrap();
    reporter
        .handle_output(HostId(0), Stream::Stdout, b"one\ntwo\n")
        .unwrap();
    let error = reporter
        .tick(Instant::now(), &Progress::default())
        .unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    reporter.handle_result(&exit(0, 1)).unwrap();
    let summary = reporter.finish(RunEnd::default());
    assert_eq!((summary.exit_status, summary.counts.exited), (141, 1));
    assert_eq!(
        (stdout.text().as_str(), stderr.text().as_str()),
        ("web1: ", "")
    );
}

#[test]
fn a_host_must_be_of_the_run_and_ends_once() {
    let reporter = || {
        let sink = Recorded::default;
        Reporter::new(webs(1), Options::default(), sink().file(), sink().file()).unwrap()
    };
    let stranger = reporter().handle_output(HostId(1), Stream::Stdout, b"x");
    assert!(stranger.is_err());
    let mut reporter = reporter();
    reporter.handle_result(&exit(0, 0)).unwrap();
    assert!(reporter.handle_result(&exit(0, 0)).is_err());
}

#[test]
fn ten_thousand_lines_are_a_few_writes() {
    let stdout = Recorded::default();
    let mut reporter = Reporter::new(
        webs(10_000),
        Options::default(),
        stdout.file(),
        Recorded::default().file(),
    )
    .unwrap();
    for host in 0..10_000 {
        reporter
            .handle_output(HostId(host), Stream::Stdout, b"up 12 days\n")
            .unwrap();
        reporter.handle_result(&exit(host, 0)).unwrap();
    }
    reporter.finish(RunEnd::default());
    assert_eq!(stdout.text().lines().count(), 10_000);
    assert!(stdout.writes() < 10, "{} writes", stdout.writes());
}

#[test]
fn the_status_line_shows_what_is_left() {
    let screen = Recorded::default();
    let options = Options {
        layout: Layout::Gather,
        ..Options::default()
    };
    let mut reporter = Reporter::new(
        webs(3),
        options,
        Recorded::default().file(),
        screen.terminal(true),
    )
    .unwrap();
    let start = Instant::now();
    reporter.handle_result(&exit(1, 0)).unwrap();
    let progress = Progress {
        total: 3,
        command: 2,
        done: 1,
        ..Progress::default()
    };
    for ms in [0, 350, 400, 450] {
        reporter
            .tick(start + Duration::from_millis(ms), &progress)
            .unwrap();
    }
    let line = "1 of 3 done, 0/s, 2 running: 2 in command (web1, web3)";
    assert_eq!(screen.text(), format!("\r\x1b[K{line}\r\x1b[K{line}"));
    reporter.pause().unwrap();
    reporter.pause().unwrap();
    assert!(screen.text().ends_with(&format!("{line}\r\x1b[K")));
}

/// What a terminal shows after these bytes: its lines, the last one possibly unfinished.
fn shown(bytes: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for part in bytes.split_inclusive('\n') {
        let visible = part.rsplit("\r\x1b[K").next().unwrap();
        let line = lines.last_mut().unwrap();
        if part.contains("\r\x1b[K") {
            line.clear();
        }
        line.push_str(visible.trim_end_matches('\n'));
        if part.ends_with('\n') {
            lines.push(String::new());
        }
    }
    lines
}

proptest! {
    /// Both streams and the status line on one terminal: whatever happens when, every line stands alone.
    #[test]
    fn the_status_line_and_live_lines_never_tear(
        steps in proptest::collection::vec((0u32..3, any::<bool>(), "[a-c\n]{0,6}", 0u64..200), 0..40),
    ) {
        let screen = Recorded::default();
        let mut reporter = Reporter::new(webs(3), Options::default(), screen.terminal(false), screen.terminal(false)).unwrap();
        let progress = Progress { total: 3, command: 3, ..Progress::default() };
        let mut now = Instant::now();
        let mut sent: [[String; 2]; 3] = Default::default();
        for (host, to_stderr, text, wait_ms) in &steps {
            let stream = if *to_stderr { Stream::Stderr } else { Stream::Stdout };
            reporter.handle_output(HostId(*host), stream, text.as_bytes()).unwrap();
            sent[*host as usize][stream as usize].push_str(text);
            now += Duration::from_millis(*wait_ms);
            reporter.tick(now, &progress).unwrap();
        }
        for host in 0..3 {
            reporter.handle_result(&exit(host, 0)).unwrap();
        }
        reporter.finish(RunEnd::default());
        let mut lines = shown(&screen.text());
        prop_assert_eq!(lines.pop(), Some(String::new()), "no status line is left");
        prop_assert_eq!(lines.pop(), Some("sshoal: 3 of 3 hosts ok, in 0.0 s".to_owned()));
        let of_host = |host: usize, text: &String| {
            text.lines().map(move |line| format!("web{}: {line}", host + 1)).collect::<Vec<_>>()
        };
        let mut expected: Vec<String> =
            sent.iter().enumerate().flat_map(|(host, texts)| texts.iter().flat_map(move |text| of_host(host, text))).collect();
        expected.sort();
        lines.sort();
        prop_assert_eq!(lines, expected);
    }

    /// Gathering is grouping: each distinct output once, under exactly the hosts that gave it.
    #[test]
    fn gathering_is_grouping(outputs in proptest::collection::vec("[ab]{0,2}", 1..30)) {
        let given: Vec<(&str, &str, u32)> = outputs.iter().map(|output| (output.as_str(), "", 0)).collect();
        let (stdout, ..) = report(webs(outputs.len()), quiet(Layout::Gather), &given);
        let mut seen = 0;
        let lines: Vec<&str> = stdout.lines().collect();
        for group in lines.chunks(4) {
            let names = group[1].split(" (").next().unwrap();
            for item in sshoal_targets::parse_list(names).unwrap() {
                let sshoal_targets::Item::Target(target) = item else { panic!("{item:?}") };
                let host: usize = target.name.strip_prefix("web").unwrap().parse().unwrap();
                prop_assert_eq!(group[3], &outputs[host - 1]);
                seen += 1;
            }
        }
        prop_assert_eq!(seen, outputs.iter().filter(|output| !output.is_empty()).count());
        let distinct: std::collections::BTreeSet<&String> = outputs.iter().filter(|output| !output.is_empty()).collect();
        prop_assert_eq!(lines.len(), distinct.len() * 4);
    }
}
