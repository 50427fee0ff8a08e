//! Which host keys are accepted, decided side by side by the installed ssh and by `sshoal run`: the same real sshd, the
//! same known_hosts, the same options; and the same known_hosts afterwards.

#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

mod servers;
mod table;

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::thread;

use servers::{Server, Servers};
use support::program::Running;
use table::Case;

/// What a program did with a case: whether it logged in, and what was left of known_hosts.
#[derive(Debug, PartialEq, Eq)]
struct Verdict {
    accepted: bool,
    known_hosts: String,
}

/// A case with one strictness: what each program is given.
struct Trial<'a> {
    server: &'a Server,
    known_hosts: String,
    options: Vec<String>,
    /// Which of those that go on at the same time.
    lane: usize,
}

impl Trial<'_> {
    fn new<'a>(servers: &'a Servers, case: &Case, strict: &str, lane: usize) -> Trial<'a> {
        let server = servers.get(case.server);
        let global = server.file(&format!("global{lane}"));
        fs::write(&global, servers.filled_in(case, case.global)).unwrap();
        let mut options = vec![
            format!("StrictHostKeyChecking={strict}"),
            format!("GlobalKnownHostsFile={}", global.display()),
        ];
        let own = case.options.iter();
        options.extend(own.map(|option| servers.filled_in(case, option)));
        Trial {
            server,
            known_hosts: servers.filled_in(case, case.known),
            options,
            lane,
        }
    }

    fn start(&self, program: &str) -> (Running, PathBuf) {
        let shoal = &self.server.shoal;
        let known = self.server.file(&format!("{program}{}", self.lane));
        fs::write(&known, &self.known_hosts).unwrap();
        let mut command = match program {
            "ssh" => shoal.user.command("ssh"),
            _ => shoal.user.run(&["-w", &shoal.name(0)]),
        };
        command.args(["-F", &shoal.file("ssh_config"), "-o"]);
        command.arg(format!("UserKnownHostsFile={}", known.display()));
        for option in &self.options {
            command.args(["-o", option]);
        }
        if program == "ssh" {
            command.arg(shoal.name(0));
        }
        (Running::start(command.arg("true")), known)
    }

    /// What ssh makes of it, and sshoal.
    fn verdicts(&self) -> [Verdict; 2] {
        ["ssh", "sshoal"]
            .map(|program| self.start(program))
            .map(|(running, known)| Verdict {
                accepted: running.wait().status.success(),
                known_hosts: fs::read_to_string(known).unwrap(),
            })
    }
}

/// How many cases are tried at a time: a login waits for its server more than it computes.
const LANES: usize = 4;

/// What was found of some of the cases.
#[derive(Default)]
struct Findings {
    differences: String,
    /// How often ssh refused, and how often it accepted.
    counts: [u32; 2],
}

impl Findings {
    fn of(servers: &Servers, cases: &[Case], lane: usize) -> Findings {
        let mut findings = Findings::default();
        for case in cases {
            for strict in case.strictness() {
                let trial = Trial::new(servers, case, strict, lane);
                findings.note(case, strict, trial.verdicts());
            }
        }
        findings
    }

    fn note(&mut self, case: &Case, strict: &str, [theirs, ours]: [Verdict; 2]) {
        self.counts[usize::from(theirs.accepted)] += 1;
        let is_as_expected = match case.stricter_with.contains(&strict) {
            true => theirs.accepted && !ours.accepted,
            false => theirs == ours,
        };
        if !is_as_expected {
            let name = case.name;
            let line = format!("{name}, {strict}: ssh {theirs:#?} sshoal {ours:#?}");
            writeln!(self.differences, "{line}").unwrap();
        }
    }
}

#[test]
fn every_case_is_decided_as_ssh_decides_it() {
    let servers = Servers::start();
    let cases = table::cases();
    let found: Vec<Findings> = thread::scope(|scope| {
        let lanes = cases.chunks(cases.len().div_ceil(LANES)).enumerate();
        let running: Vec<_> = lanes
            .map(|(lane, cases)| {
                scope.spawn({
                    let servers = &servers;
                    move || Findings::of(servers, cases, lane)
                })
            })
            .collect();
        running
            .into_iter()
            .map(|lane| lane.join().unwrap())
            .collect()
    });
    let differences: String = found
        .iter()
        .map(|found| found.differences.as_str())
        .collect();
    assert_eq!(differences, "");
    // Neither side of the table is empty, whatever becomes of ssh.
    let counts = [0, 1].map(|end| found.iter().map(|found| found.counts[end]).sum::<u32>());
    println!("refused and accepted by ssh: {counts:?}");
    assert!(counts.iter().all(|count| *count >= 60), "{counts:?}");
}
