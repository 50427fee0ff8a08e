//! What a fleet costs in time: `cargo run --release -p sshoal-fleet --example cost_a_host [HOSTS]`.
//!
//! First the fleet alone, with healthy hosts that are moved on in turn; then a whole simulated run with one host
//! in ten in trouble, in which the simulation itself costs more than the fleet.

#![allow(clippy::unwrap_used)]

#[path = "../tests/sim/conveyor.rs"]
mod conveyor;
#[expect(dead_code, reason = "the tests use all of it")]
#[path = "../tests/sim/mod.rs"]
mod sim;

use std::time::{Duration, Instant};

use conveyor::Conveyor;
use sim::machine::{Dice, TWELVE, Trouble, healthy};
use sim::scenario::Scenario;
use sshoal_fleet::{Deadlines, Fleet, HostId, Job, Limits, RetryPolicy};

fn main() {
    let hosts = std::env::args()
        .nth(1)
        .map_or(50_000, |count| count.parse().unwrap());
    for in_flight in [100, 1_000, 10_000] {
        let took = alone(hosts, in_flight);
        report(&format!("fleet alone, {in_flight} in flight"), hosts, took);
    }
    let (took, simulated, starts) = simulated(hosts);
    report("with its simulation and faults", hosts, took);
    println!("  {starts} starts in {simulated:.1?} of simulated time");
}

fn report(what: &str, hosts: u32, took: Duration) {
    let micros = took.as_secs_f64() * 1e6 / f64::from(hosts);
    println!("{what}: {hosts} hosts in {took:.1?}, {micros:.2} us a host");
}

fn alone(hosts: u32, in_flight: u32) -> Duration {
    let limits = Limits {
        connects: in_flight,
        logins: in_flight,
        signatures: in_flight,
        sessions: in_flight,
        ..Limits::default()
    };
    let job = |host| Job {
        host: HostId(host),
        via: None,
    };
    let begun = Instant::now();
    let jobs = (0..hosts).map(job);
    let fleet = Fleet::new(
        jobs,
        limits,
        Deadlines::default(),
        RetryPolicy::default(),
        1,
    )
    .unwrap();
    Conveyor::new(fleet, in_flight as usize).run_until(hosts);
    begun.elapsed()
}

fn simulated(hosts: u32) -> (Duration, Duration, u64) {
    let mut dice = Dice(7);
    let mut machines = healthy(7, hosts as usize);
    for machine in &mut machines {
        if dice.below(10) == 0 {
            machine.trouble = TWELVE[dice.below(12) as usize];
        }
    }
    let troubles: Vec<Trouble> = machines.iter().map(|machine| machine.trouble).collect();
    let scenario = Scenario::new(machines);
    let begun = Instant::now();
    let report = scenario.run();
    let took = begun.elapsed();
    for (trouble, (_, result)) in troubles.iter().zip(&report.hosts) {
        assert_eq!(result.outcome.failure_kind(), trouble.kind());
    }
    (took, report.end, report.starts)
}
