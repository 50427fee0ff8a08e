//! Runs whose sshoal is killed at random moments, or whose machine loses power: gone on with, each command has run once, or its host
//! is among those where it may have.
//!
//! SSHOAL_KILLS, SSHOAL_KILL_HOSTS and SSHOAL_KILL_SEED make it more than what every test run has.

#![allow(clippy::unwrap_used)]

#[path = "support/loop_device.rs"]
mod loop_device;
mod support;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use loop_device::{Loop, Mount};
use rustix::process::{Signal, kill_process};
use sshoal_testbed::simulated::{Simulation, SimulationSpec};
use support::chance::{Chance, number};
use support::program::{Ended, Running};
use support::{Shoal, wait_until};

/// Hosts at a time: no more can be under way.
const AT_A_TIME: usize = 16;

/// Hosts that count, and a user whose runs are kept.
struct Scene {
    shoal: Shoal<Simulation>,
    hosts: usize,
}

impl Scene {
    fn new(hosts: usize) -> Scene {
        let mut spec = SimulationSpec::new(hosts as u32);
        spec.latency = Duration::from_millis(1);
        let shoal = Shoal::simulate(&spec);
        Scene { shoal, hosts }
    }

    /// A run of the counting command.
    fn run(&self, state: &Path, counter: &str, journal: &str) -> Command {
        let (at_a_time, counted) = (AT_A_TIME.to_string(), format!("count {counter}"));
        let flags = ["--json", "-p", &at_a_time, journal, &counted];
        let mut command = self.shoal.command(&flags);
        command.env("XDG_STATE_HOME", state);
        command
    }

    fn sshoal(&self, state: &Path, words: &[&str]) -> Command {
        let mut command = self.shoal.user.command(env!("CARGO_BIN_EXE_sshoal"));
        command.args(words).env("XDG_STATE_HOME", state);
        command
    }

    fn counts(&self, counter: &str) -> Vec<u64> {
        let hosts = 0..self.hosts;
        hosts
            .map(|host| self.shoal.hosts.count(host, counter))
            .collect()
    }

    /// How each host ended, as the journal knows it.
    fn shown(&self, state: &Path) -> Vec<String> {
        let shown = Running::start(&mut self.sshoal(state, &["show", "last", "--json"])).wait();
        let records: BTreeMap<_, _> = shown.records().by_name().into_iter().collect();
        assert_eq!(records.len(), self.hosts, "{}", shown.stderr());
        let hosts = 0..self.hosts;
        hosts
            .map(|host| {
                let record = &records[&self.shoal.name(host)];
                let failure = record.failure.clone();
                failure.unwrap_or_else(|| record.outcome.clone())
            })
            .collect()
    }

    /// Lets the command run on so many hosts, and then for a moment.
    fn wait_for(&self, counter: &str, some: usize, random: &mut Chance, running: &mut Running) {
        wait_until("some have run", || {
            let ran = self.counts(counter).iter().sum::<u64>();
            ran as usize >= some || !running.is_running()
        });
        thread::sleep(Duration::from_micros(random.below(3000)));
    }

    /// Until nothing is under way any more that was sent.
    fn wait_for_quiet(&self) {
        wait_until("all connections have ended", || {
            self.shoal.hosts.totals().open == 0
        });
    }
}

/// After a kill: what the journal knows is true, and what is gone on with ends as it must.
fn check(scene: &Scene, state: &Path, counter: &str, resumed: impl Fn(&[&str]) -> Ended) {
    let ran = scene.counts(counter);
    let known = scene.shown(state);
    let maybe: Vec<usize> = (0..scene.hosts)
        .filter(|host| known[*host] == "lost")
        .collect();
    assert!(
        maybe.len() <= AT_A_TIME,
        "more than were under way: {}",
        maybe.len()
    );
    for host in 0..scene.hosts {
        match known[host].as_str() {
            "ok" => assert_eq!(ran[host], 1, "host {host}"),
            "not-started" => assert_eq!(ran[host], 0, "host {host}"),
            "lost" => assert!(ran[host] <= 1, "host {host}"),
            other => panic!("host {host}: {other}"),
        }
    }
    let status = if maybe.is_empty() { 0 } else { 3 };
    resumed(&["resume", "last"]).expect(status);
    let before = scene.counts(counter);
    for (host, ran) in before.iter().enumerate() {
        match maybe.contains(&host) {
            true => assert!(*ran <= 1, "host {host}, unasked"),
            false => assert_eq!(*ran, 1, "host {host}"),
        }
    }
    resumed(&["resume", "last", "--maybe-ran", "rerun"]).expect(0);
    for (host, ran) in scene.counts(counter).into_iter().enumerate() {
        let again = u64::from(maybe.contains(&host));
        assert_eq!(ran, before[host] + again, "host {host}");
    }
    assert!(scene.shown(state).iter().all(|outcome| outcome == "ok"));
}

#[test]
fn after_a_kill_every_command_has_run_once_or_may_have() {
    let kills = number("SSHOAL_KILLS", 10);
    let scene = Scene::new(number("SSHOAL_KILL_HOSTS", 60) as usize);
    let state = scene.shoal.dir.path().join("state");
    let mut random = Chance::of_kills(20_261_125);
    let mut in_doubt = 0;
    for kill in 0..kills {
        let counter = format!("kill{kill}");
        let some = random.below(scene.hosts as u64) as usize;
        let mut running = Running::start(&mut scene.run(&state, &counter, "--journal=write"));
        scene.wait_for(&counter, some, &mut random, &mut running);
        // It may just have ended.
        let _ = kill_process(running.pid(), Signal::KILL);
        drop(running);
        scene.wait_for_quiet();
        in_doubt += scene
            .shown(&state)
            .iter()
            .filter(|known| *known == "lost")
            .count();
        // One in three is killed once more, while it is gone on with.
        if kill % 3 == 0 {
            let mut running = Running::start(&mut scene.sshoal(&state, &["resume", "last"]));
            let some = (some + scene.hosts) / 2;
            scene.wait_for(&counter, some, &mut random, &mut running);
            let _ = kill_process(running.pid(), Signal::KILL);
            drop(running);
            scene.wait_for_quiet();
            // Both kills may have left some in doubt.
            let resumed = ["resume", "last", "--maybe-ran", "skip"];
            Running::start(&mut scene.sshoal(&state, &resumed)).wait();
            assert!(scene.counts(&counter).iter().all(|ran| *ran <= 1));
            continue;
        }
        check(&scene, &state, &counter, |words| {
            Running::start(&mut scene.sshoal(&state, words)).wait()
        });
    }
    println!("{in_doubt} hosts were in doubt after {kills} kills");
}

/// A file system on a device, empty.
fn formatted(octets: usize) -> Loop {
    let device = Loop::new(octets, 512);
    let made = Command::new("mkfs.ext4")
        .args(["-q", "-F", "-b", "1024", device.path()])
        .stderr(Stdio::inherit())
        .status();
    assert!(made.unwrap().success());
    device
}

#[test]
fn after_a_power_loss_too_if_the_journal_is_synced() {
    const OCTETS: usize = 16 << 20;
    if !loop_device::are_there() {
        return;
    }
    let scene = Scene::new(40);
    let mut random = Chance::of_kills(20_261_125);
    for loss in 0..number("SSHOAL_POWER_LOSSES", 3) {
        let counter = format!("loss{loss}");
        let device = formatted(OCTETS);
        let mount = Mount::of(&device);
        fs::set_permissions(mount.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let some = random.below(scene.hosts as u64) as usize;
        let mut running = Running::start(&mut scene.run(mount.path(), &counter, "--journal=sync"));
        scene.wait_for(&counter, some, &mut random, &mut running);
        // The power fails: what the disk has now is all that there will be.
        let _ = kill_process(running.pid(), Signal::STOP);
        let medium = device.medium();
        let _ = kill_process(running.pid(), Signal::KILL);
        let shown = running.wait().stdout();
        scene.wait_for_quiet();
        drop(mount);
        drop(device);
        let device = Loop::new(OCTETS, 512);
        device.fill(&medium);
        let mount = Mount::of(&device);
        let known = scene.shown(mount.path());
        for (host, outcome) in known.iter().enumerate() {
            let begins = format!(r#""host":"{}","#, scene.shoal.name(host));
            let was_shown = shown.contains(&begins);
            assert!(!was_shown || outcome == "ok", "host {host} was shown");
        }
        check(&scene, mount.path(), &counter, |words| {
            Running::start(&mut scene.sshoal(mount.path(), words)).wait()
        });
    }
}
