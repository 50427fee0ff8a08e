//! ExecFate, end to end: connections are cut at every byte of a login and a session, and a command counts how often
//! it ran. Never twice, whatever is tried again, by the run itself or by the user; and what sshoal says of it is true.

#![allow(clippy::unwrap_used)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use sshoal_testbed::client_files::ClientFiles;
use sshoal_testbed::simulated::fault::{Action, Cut as FaultCut, Fault, FaultRule, Position, Side};
use sshoal_testbed::simulated::{Simulation, SimulationSpec};
use sshoal_testbed::sshd::key_files::{KeyType, generate};
use sshoal_testbed::sshd::{RealSshd, SshdSpec};
use support::cutter::{Cut, Cutter, end_of_key_exchange};
use support::program::Running;
use support::records::HostRecord;
use support::{Shoal, shared_folder, wait_until};

/// Silent hosts end by these.
const DEADLINES: [&str; 3] = ["--login-timeout=8", "--timeout=8", "--json"];
/// Every so many bytes a connection falls silent as well: those take their deadline's time, so they are few.
const SILENCE_EVERY: u64 = 16;
/// Before authentication nothing has been sent that could run: every so many bytes will do.
const EARLY_EVERY: u64 = 23;

/// Different in every run, and told, so that a failure can be had again.
fn seed() -> u64 {
    let seed = match std::env::var("SSHOAL_TEST_SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .subsec_nanos()
            .into(),
    };
    println!("SSHOAL_TEST_SEED={seed}");
    seed
}

/// Cuts of one direction, all of whose `total` bytes after `early` may matter; of these every `step`th.
fn cuts(side: Side, early: u64, total: u64, step: u64, seed: u64) -> Vec<Cut> {
    let early_cuts = (1..early).step_by(EARLY_EVERY as usize);
    let late = early + seed % step..=total;
    let late_cuts = late.clone().step_by(step as usize);
    // By turns, the other way round for every other seed.
    let by_turns = match seed % 2 {
        0 => [Action::Reset, Action::Close],
        _ => [Action::Close, Action::Reset],
    };
    let ends = early_cuts
        .chain(late_cuts)
        .zip(by_turns.into_iter().cycle());
    let silences = late
        .step_by((SILENCE_EVERY * step) as usize)
        .map(|at| (at, Action::Silence));
    ends.chain(silences)
        .map(|(at, action)| Cut { side, at, action })
        .collect()
}

/// What was found out about one host.
struct Finding {
    cut: Cut,
    record: HostRecord,
    runs: u64,
}

impl Finding {
    /// Never twice, and what is said of the command is true.
    fn check(&self) {
        let Finding { cut, record, runs } = self;
        let truth = match record.fate.as_str() {
            "not-sent" | "proven-discarded" => *runs == 0,
            "ran" => *runs == 1,
            "may-have-run" => *runs <= 1,
            other => panic!("there is no fate {other:?}"),
        };
        assert!(truth, "{cut:?}: it ran {runs} times, and {record:?}");
    }
}

/// Tells how many hosts ended in each way: outcome or failure, fate, and runs.
fn tell(findings: &[Finding]) {
    let mut ways: BTreeMap<(&str, &str, u64), usize> = BTreeMap::new();
    for Finding { record, runs, .. } in findings {
        let ending = record.failure.as_ref().unwrap_or(&record.outcome);
        *ways.entry((ending, &record.fate, *runs)).or_default() += 1;
    }
    for ((ending, fate, runs), hosts) in ways {
        println!("{hosts:5} hosts: {ending}, {fate}, {runs} runs");
    }
}

/// Whether the sweep has met a fate, with so many runs.
fn met(findings: &[Finding], fate: &str, runs: u64) -> bool {
    let same = |finding: &Finding| finding.record.fate == fate && finding.runs == runs;
    findings.iter().any(same)
}

/// A sweep: hosts by name, in the order of the cuts that their first connections meet.
struct Sweep<'a> {
    cuts: &'a [Cut],
    names: Vec<String>,
    /// Waits until nothing goes on, and returns how often the command ran on each host.
    count: &'a dyn Fn() -> Vec<u64>,
    command: &'a dyn Fn(&[&str]) -> Command,
    /// What the hosts are to run.
    line: &'a str,
}

impl Sweep<'_> {
    /// Runs the command on all hosts; checks; runs it again wherever sshoal says that it may be; checks.
    fn run(&self) -> Vec<Finding> {
        let first = self.findings();
        tell(&first);
        first.iter().for_each(Finding::check);
        let safe: BTreeSet<&str> = first
            .iter()
            .filter(|finding| finding.record.claims_no_run())
            .map(|finding| finding.record.host.as_str())
            .collect();
        // Most hosts that it is safe for had another attempt in the same run already.
        let again = match safe.is_empty() {
            true => BTreeMap::new(),
            // Nobody falls silent a second time, and a busy machine has the time that it needs.
            false => self.records(&["--retry-failed", "all"], &["--json"]),
        };
        let tried: BTreeSet<&str> = again.keys().map(String::as_str).collect();
        assert_eq!(tried, safe, "exactly what is safe is tried again");
        for ((name, runs), cut) in self.names.iter().zip((self.count)()).zip(self.cuts) {
            match again.get(name) {
                Some(record) => {
                    assert!(record.is_ok(), "{cut:?}: {record:?}");
                    assert_eq!(runs, 1, "{cut:?}");
                }
                None => assert!(runs <= 1, "{cut:?}: {runs}"),
            }
        }
        first
    }

    fn findings(&self) -> Vec<Finding> {
        let mut records = self.records(&[], &DEADLINES);
        let mut counted = Vec::new();
        // The shell may come to its line when sshd and all that is left of it have gone.
        wait_until("all that ran is counted", || {
            counted = (self.count)();
            let mut hosts = self.names.iter().zip(&counted);
            hosts.all(|(name, runs)| records[name].fate != "ran" || *runs > 0)
        });
        self.names
            .iter()
            .zip(self.cuts)
            .zip(counted)
            .map(|((name, cut), runs)| Finding {
                cut: *cut,
                record: records.remove(name).unwrap(),
                runs,
            })
            .collect()
    }

    fn records(&self, arguments: &[&str], flags: &[&str]) -> BTreeMap<String, HostRecord> {
        let mut command = (self.command)(arguments);
        command.args(flags).arg(self.line);
        Running::start(&mut command).wait().records().by_name()
    }
}

#[test]
fn simulated_hosts_cut_at_every_byte_run_a_command_at_most_once() {
    let healthy = Shoal::simulated(1, &[]);
    healthy.run(&["count runs"]).expect(0);
    let traffic = healthy.hosts.last_traffic(0).unwrap();
    let (input, output) = traffic.at_authentication.unwrap();
    let seed = seed();
    // The request that is accepted, and all that comes before it in one flight, are well within these.
    let mut all = cuts(Side::Input, input - 500, traffic.input, 1, seed);
    all.extend(cuts(Side::Output, output - 150, traffic.output, 1, seed));

    let mut spec = SimulationSpec::new(all.len() as u32);
    for (host, cut) in (0..).zip(&all) {
        let fault = Fault::Cut(FaultCut {
            side: cut.side,
            action: cut.action,
            at: Position::Byte(cut.at),
        });
        spec.faults
            .push(FaultRule::new(host..=host, fault).first(1));
    }
    let shoal = Shoal::simulate(&spec);
    let findings = Sweep {
        cuts: &all,
        names: (0..all.len()).map(|host| shoal.name(host)).collect(),
        count: &|| simulated_runs(&shoal.hosts, all.len()),
        command: &|arguments| match arguments {
            [] => shoal.command(&[]),
            arguments => shoal.configured(arguments),
        },
        line: "count runs",
    }
    .run();
    for (fate, runs) in [
        ("not-sent", 0),
        ("may-have-run", 0),
        ("may-have-run", 1),
        ("ran", 1),
    ] {
        assert!(
            met(&findings, fate, runs),
            "no cut led to {fate} with {runs} runs"
        );
    }
}

fn simulated_runs(hosts: &Simulation, count: usize) -> Vec<u64> {
    wait_until("the hosts have seen all clients leave", || {
        hosts.totals().open == 0
    });
    (0..count).map(|host| hosts.count(host, "runs")).collect()
}

/// A real server behind doors, and the folder where its commands leave their marks.
struct Doors {
    shoal: Shoal<RealSshd>,
    marks: tempfile::TempDir,
}

impl Doors {
    fn new() -> Doors {
        let shoal = Shoal::real(&SshdSpec::new(1));
        let marks = shared_folder();
        Doors { shoal, marks }
    }

    /// What each host runs: it leaves a mark in a file of its own.
    fn line(&self) -> String {
        format!("echo ran >> {}/%h", self.marks.path().display())
    }

    /// Doors with these cuts, and their files in place of the server's.
    fn open(&self, base: Ipv4Addr, cuts: &[Option<Cut>]) -> Cutter {
        let server = self.shoal.hosts.addresses()[0];
        let cutter = Cutter::start(server, base, cuts);
        let files = self.shoal.hosts.client_files().unwrap();
        let (_, key) = files.known_hosts.trim_end().split_once(' ').unwrap();
        let addresses = cutter.addresses().to_vec();
        let line =
            |door: &std::net::SocketAddrV4| format!("[{}]:{} {key}\n", door.ip(), door.port());
        let known_hosts = addresses.iter().map(line).collect();
        let files = ClientFiles {
            addresses,
            known_hosts,
            ..files
        };
        files.write(self.shoal.dir.path()).unwrap();
        cutter
    }

    /// Measures a whole session, then cuts one at every `step`th byte.
    fn sweep(&self, base: Ipv4Addr, step: u64, identities: &[&str]) -> Vec<Finding> {
        let line = self.line();
        let cutter = self.open(base, &[None]);
        let mut measured = self.shoal.command(identities);
        Running::start(measured.arg(&line)).wait().expect(0);
        wait_until("the session has been kept", || {
            !cutter.transcript(0).input.is_empty()
        });
        let whole = cutter.transcript(0);
        let door = cutter.addresses()[0].ip().to_string();
        fs::remove_file(self.marks.path().join(door)).unwrap();
        drop(cutter);

        let seed = seed();
        let early = |stream: &[u8]| end_of_key_exchange(stream) as u64;
        let (input, output) = (whole.input, whole.output);
        let mut all = cuts(Side::Input, early(&input), input.len() as u64, step, seed);
        all.extend(cuts(
            Side::Output,
            early(&output),
            output.len() as u64,
            step,
            seed,
        ));
        let cutter = self.open(base, &all.iter().map(|cut| Some(*cut)).collect::<Vec<_>>());
        let names: Vec<String> = cutter
            .addresses()
            .iter()
            .map(|door| door.ip().to_string())
            .collect();
        Sweep {
            cuts: &all,
            count: &|| {
                self.shoal.wait_for_sessions();
                names
                    .iter()
                    .map(|name| marks(&self.marks.path().join(name)))
                    .collect()
            },
            names: names.clone(),
            command: &|arguments| {
                let mut command = match arguments {
                    [] => self.shoal.command(&[]),
                    arguments => self.shoal.configured(arguments),
                };
                command.args(identities).args(["-p", "64"]);
                command
            },
            line: &line,
        }
        .run()
    }
}

fn marks(file: &Path) -> u64 {
    fs::read_to_string(file).map_or(0, |text| text.lines().count() as u64)
}

#[test]
fn a_real_server_cut_at_every_byte_runs_a_command_at_most_once() {
    let findings = Doors::new().sweep(Ipv4Addr::new(127, 9, 0, 0), 1, &[]);
    let has_another_attempt = |finding: &Finding| finding.record.attempts > 1;
    assert!(
        findings.iter().any(has_another_attempt),
        "all cuts came too late"
    );
    for (fate, runs) in [("may-have-run", 0), ("may-have-run", 1), ("ran", 1)] {
        assert!(
            met(&findings, fate, runs),
            "no cut led to {fate} with {runs} runs"
        );
    }
}

#[test]
fn a_real_server_that_rejects_the_first_key_runs_a_command_at_most_once() {
    let doors = Doors::new();
    let stranger = doors.shoal.user.home().join("stranger");
    generate(&stranger, KeyType::Ed25519, "").unwrap();
    let identities = ["-i", stranger.to_str().unwrap()];
    let findings = doors.sweep(Ipv4Addr::new(127, 9, 64, 0), 4, &identities);
    let log = doors.shoal.hosts.log(0);
    // CHANNEL_OPEN came while sshd still wanted authentication: the command was there with the first key.
    assert!(
        log.contains("dispatch_protocol_error: type 90"),
        "nothing was pipelined"
    );
    for (fate, runs) in [("not-sent", 0), ("may-have-run", 1), ("ran", 1)] {
        assert!(
            met(&findings, fate, runs),
            "no cut led to {fate} with {runs} runs"
        );
    }
}
