//! A defect of ours, met while one host is worked on, ends that host as its own failure and no other: nothing hangs,
//! and what is said of the command is true.
//!
//! The defect is a source of random octets that panics: connections draw from it for every packet, so that a sweep over
//! its draws meets every step of a login and a session.

#![allow(clippy::unwrap_used)]

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use sshoal_fleet::{
    Deadlines, FailureKind, Fate, HostId, HostResult, Limits, Outcome, Progress, RetryPolicy,
};
use sshoal_net::{
    Confirmation, Endpoint, HostPlan, Interruption, Observer, Place, Preparation, RunPlan, Secret,
    SshOptions, Stream, Work, run,
};
use sshoal_proto::{SessionRequest, Settings};
use sshoal_targets::Target;
use sshoal_testbed::client_files::ClientFiles;
use sshoal_testbed::simulated::{Simulation, SimulationSpec};
use sshoal_testbed::sshd::{RealSshd, SshdSpec};

/// After so long a run hangs that should not. No test's verdict depends on the number.
const DEADLINE: Duration = Duration::from_secs(120);

/// More draws than a login and a session make.
const SWEEP: usize = 20;

static DRAWS: [AtomicUsize; SWEEP] = [const { AtomicUsize::new(0) }; SWEEP];

fn panics_at<const N: usize>(out: &mut [u8]) {
    assert!(DRAWS[N].fetch_add(1, Ordering::Relaxed) != N, "at draw {N}");
    sshoal_crypto::random(out);
}

const SOURCES: [fn(&mut [u8]); SWEEP] = [
    panics_at::<0>,
    panics_at::<1>,
    panics_at::<2>,
    panics_at::<3>,
    panics_at::<4>,
    panics_at::<5>,
    panics_at::<6>,
    panics_at::<7>,
    panics_at::<8>,
    panics_at::<9>,
    panics_at::<10>,
    panics_at::<11>,
    panics_at::<12>,
    panics_at::<13>,
    panics_at::<14>,
    panics_at::<15>,
    panics_at::<16>,
    panics_at::<17>,
    panics_at::<18>,
    panics_at::<19>,
];

fn panics_at_once(_: &mut [u8]) {
    panic!("at once");
}

/// Keeps the results.
#[derive(Default)]
struct Results(Vec<HostResult>);

impl Observer for Results {
    fn fail(&mut self, why: &str) -> io::Error {
        io::Error::other(why.to_owned())
    }

    fn output(&mut self, _: HostId, _: Stream, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn result(&mut self, result: &HostResult) -> io::Result<()> {
        self.0.push(result.clone());
        Ok(())
    }

    fn notice(&mut self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn demand(&mut self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn banner(&mut self, _: &str, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn ask(&mut self, _: &str, _: &dyn Fn() -> bool) -> io::Result<Option<Secret>> {
        Ok(None)
    }

    fn confirm(
        &mut self,
        _: &str,
        _: Option<&str>,
        _: &dyn Fn() -> bool,
    ) -> io::Result<Confirmation> {
        Ok(Confirmation::No)
    }

    fn terminal_lent(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn progress(&mut self, _: &Progress) -> io::Result<()> {
        Ok(())
    }

    type Summary = Vec<HostResult>;

    fn finish(self, _: Interruption) -> Vec<HostResult> {
        self.0
    }
}

/// Hosts as a user's configuration describes them, behind a jump host if one is named.
fn resolved(
    files: &ClientFiles,
    folder: &Path,
    hosts: &[usize],
    jump: Option<usize>,
    command: &str,
) -> (Vec<HostPlan>, Vec<Endpoint>) {
    files.write(folder).unwrap();
    let name = |host: usize| files.addresses[host].ip().to_string();
    let options = SshOptions {
        config_file: Some(folder.join("ssh_config")),
        jump: jump.map(name),
        ..SshOptions::default()
    };
    let mut preparation = Preparation::new(&options).unwrap();
    let targets: Vec<Target> = hosts
        .iter()
        .map(|host| Target::named(name(*host)))
        .collect();
    let request = |_: &Place<'_>| SessionRequest::exec(command.as_bytes().to_vec());
    let mut plans = preparation.hosts(&targets, request).unwrap();
    preparation.read_known_hosts(&mut plans, None).unwrap();
    (plans, preparation.into_jumps())
}

fn break_random(endpoint: &mut Endpoint, random: fn(&mut [u8])) {
    endpoint.settings = Arc::new(Settings {
        random,
        ..Settings::clone(&endpoint.settings)
    });
}

/// The outcome of every host, in their order.
fn outcomes(hosts: Vec<HostPlan>, jumps: Vec<Endpoint>, workers: usize) -> Vec<Outcome> {
    let plan = RunPlan {
        work: Work::Sessions(hosts),
        jumps,
        limits: Limits::default(),
        deadlines: Deadlines::default(),
        retry: RetryPolicy {
            attempts: 2,
            first_delay: Duration::from_millis(1),
            ..RetryPolicy::default()
        },
        password: None,
        seed: 1,
        input: None,
        asks: false,
        server_cache: None,
        ssh: Default::default(),
        workers,
        transfer: None,
        kill: None,
        trial: None,
        timing: None,
        rolling: None,
        keeper: None,
        journal: None,
        warm: None,
    };
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || tell.send(run(plan, Results::default()).unwrap().summary));
    let heard = told.recv_timeout(DEADLINE).expect("the run hangs");
    let mut results = heard.unwrap();
    results.sort_by_key(|result| result.host.0);
    results.into_iter().map(|result| result.outcome).collect()
}

/// Kind, fate and detail of a host that failed.
fn failed(outcome: &Outcome) -> Option<(FailureKind, Fate, &str)> {
    match outcome {
        Outcome::Failed { failure, fate } => Some((failure.kind, *fate, &failure.detail)),
        _ => None,
    }
}

#[test]
fn wherever_a_host_s_task_panics_only_that_host_ends_and_its_fate_is_true() {
    // Every other host has nothing wrong with it.
    let hosts = Simulation::start(&SimulationSpec::new(2 * SWEEP as u32)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let all: Vec<usize> = (0..2 * SWEEP).collect();
    let (mut plans, _) = resolved(
        hosts.client_files(),
        folder.path(),
        &all,
        None,
        "count runs",
    );
    for (step, source) in SOURCES.into_iter().enumerate() {
        let broken = plans[2 * step].native_mut().unwrap();
        break_random(&mut broken.endpoint, source);
    }
    let outcomes = outcomes(plans, Vec::new(), 3);
    assert_eq!(outcomes.len(), 2 * SWEEP);
    let mut kinds = Vec::new();
    for (host, outcome) in outcomes.iter().enumerate() {
        let runs = hosts.count(host, "runs");
        let step = host / 2;
        let Some((kind, fate, detail)) = failed(outcome).filter(|_| host % 2 == 0) else {
            assert_eq!((outcome, runs), (&Outcome::Exit(0), 1), "host {host}");
            continue;
        };
        assert!(detail.contains(&format!("at draw {step}")), "{detail}");
        match fate {
            Fate::NotSent | Fate::ProvenDiscarded => {
                assert_eq!((kind, runs), (FailureKind::Internal, 0), "draw {step}");
            }
            Fate::MayHaveRun => assert!(kind == FailureKind::Lost && runs <= 1, "draw {step}"),
            Fate::Ran => assert_eq!((kind, runs), (FailureKind::Lost, 1), "draw {step}"),
        }
        kinds.push(kind);
    }
    assert!(kinds.contains(&FailureKind::Internal), "{kinds:?}");
    assert!(
        kinds.len() < SWEEP,
        "the sweep ends before the session does"
    );
}

#[test]
fn a_jump_host_s_task_that_panics_ends_the_hosts_behind_it_and_no_others() {
    let hosts = RealSshd::start(&SshdSpec::new(3)).unwrap();
    let files = hosts.client_files().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (mut plans, mut jumps) = resolved(&files, folder.path(), &[1, 2], Some(0), "true");
    let (direct, _) = resolved(&files, folder.path(), &[1], None, "true");
    break_random(&mut jumps[0], panics_at_once);
    plans.extend(direct);
    let outcomes = outcomes(plans, jumps, 1);
    for outcome in &outcomes[..2] {
        let (kind, fate, detail) = failed(outcome).unwrap();
        assert_eq!((kind, fate), (FailureKind::Internal, Fate::NotSent));
        assert!(
            detail.contains("jump host") && detail.contains("at once"),
            "{detail}"
        );
    }
    assert_eq!(outcomes[2], Outcome::Exit(0));
}
