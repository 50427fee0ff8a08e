//! What we write in a pipe is what `dshbak -c` reads: it must group our lines as we group them ourselves.
#![allow(clippy::unwrap_used)]

use std::{
    io::{self, Write},
    process::{Command, Stdio},
    sync::{Arc, Mutex},
};

use sshoal_fleet::{HostId, HostResult, Outcome, PhaseTimes};
use sshoal_report::{Host, Layout, Options, Reporter, RunEnd, Sink, Stream};
use sshoal_targets::{Item, parse_list};

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What 60 hosts with three different outputs look like in this layout, the hosts taking turns.
fn run(layout: Layout) -> Vec<u8> {
    let host = |item| match item {
        Item::Target(target) => Host::new(target),
        other => panic!("{other:?}"),
    };
    let hosts: Vec<Host> = parse_list("web[1-40],node[001-020].lan")
        .unwrap()
        .into_iter()
        .map(host)
        .collect();
    let count = hosts.len() as u32;
    let stdout = Shared::default();
    let options = Options {
        layout,
        ..Options::default()
    };
    let mut reporter = Reporter::new(
        hosts,
        options,
        Sink::file(stdout.clone()),
        Sink::file(io::sink()),
    )
    .unwrap();
    let output = |host: u32| match host {
        0..30 => "first: a line\n\n  indented",
        30..40 => "first: a line\n\n  other\n",
        _ => "kernel 6.1.0-18 \u{e4}\n",
    };
    for part in 0..3 {
        for host in 0..count {
            let text = output(host).as_bytes();
            let cut = |n: usize| n * text.len() / 3;
            reporter
                .handle_output(
                    HostId(host),
                    Stream::Stdout,
                    &text[cut(part)..cut(part + 1)],
                )
                .unwrap();
        }
    }
    for host in 0..count {
        let times = PhaseTimes::default();
        let outcome = Outcome::Exit(0);
        reporter
            .handle_result(&HostResult {
                host: HostId(host),
                outcome,
                attempts: 1,
                times,
            })
            .unwrap();
    }
    reporter.finish(RunEnd::default());
    stdout.0.lock().unwrap().clone()
}

fn dshbak(input: &[u8]) -> Vec<u8> {
    let child = Command::new("dshbak")
        .arg("-c")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut child =
        child.expect("this test runs dshbak: install Debian's package pdsh (`make setup`)");
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    output.stdout
}

/// The groups of either program: the names between the rules, counts cut off, and the text below.
fn groups(gathered: &[u8]) -> Vec<(Vec<String>, String)> {
    let text = std::str::from_utf8(gathered).unwrap();
    let is_rule = |line: &str| line.len() >= 15 && line.bytes().all(|byte| byte == b'-');
    let mut lines = text.lines().peekable();
    let mut groups = Vec::new();
    while let Some(rule) = lines.next() {
        let names = lines.next().unwrap().split(" (").next().unwrap();
        assert!(is_rule(rule) && lines.next().is_some_and(is_rule), "{text}");
        let mut names: Vec<String> = parse_list(names)
            .unwrap()
            .iter()
            .map(|item| format!("{item:?}"))
            .collect();
        names.sort();
        let mut said = Vec::new();
        while let Some(line) = lines.next_if(|line| !is_rule(line)) {
            said.push(line);
        }
        groups.push((names, said.join("\n")));
    }
    groups.sort();
    groups
}

#[test]
fn dshbak_groups_our_lines_as_we_do() {
    let by_dshbak = groups(&dshbak(&run(Layout::Lines { prefix: true })));
    let by_us = groups(&run(Layout::Gather));
    assert_eq!(by_dshbak.len(), 3);
    assert_eq!(by_dshbak, by_us);
}
