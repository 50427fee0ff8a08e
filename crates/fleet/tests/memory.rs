//! What a fleet costs in memory: little for a host that waits, nothing for an event.

#![allow(clippy::unwrap_used)]

#[path = "sim/conveyor.rs"]
mod conveyor;

use std::time::Duration;

use allocation_counter::measure;
use conveyor::Conveyor;
use sshoal_fleet::{Deadlines, Fleet, HostId, Job, Limits, RetryPolicy};

const WIDTH: u32 = 200;

fn fleet(hosts: u32) -> Fleet {
    let job = |host| Job {
        host: HostId(host),
        via: None,
    };
    // Room for everybody at every gate: what is measured is the way through.
    let limits = Limits {
        connects: WIDTH,
        logins: WIDTH,
        signatures: WIDTH,
        sessions: WIDTH,
        ..Limits::default()
    };
    let deadlines = Deadlines {
        command: Some(Duration::from_secs(60)),
        ..Deadlines::default()
    };
    Fleet::new(
        (0..hosts).map(job),
        limits,
        deadlines,
        RetryPolicy::default(),
        1,
    )
    .unwrap()
}

#[test]
fn a_waiting_host_takes_less_than_a_hundred_bytes() {
    let hosts = 50_000;
    let mut built = None;
    let cost = measure(|| built = Some(fleet(hosts)));
    let each = cost.bytes_max / u64::from(hosts);
    assert!(each < 100, "{each} bytes a host while building");
    let each = cost.bytes_current / i64::from(hosts);
    assert!(each < 72, "{each} bytes a host");
    drop(built);
}

#[test]
fn events_of_healthy_hosts_allocate_nothing() {
    let mut conveyor = Conveyor::new(fleet(5_000), WIDTH as usize);
    // The first hosts make room for as many flights as there will be, the last leave it behind.
    conveyor.run_until(1_000);
    let cost = measure(|| conveyor.run_until(4_500));
    assert_eq!(cost.count_total, 0, "{cost:?}");
}

#[test]
fn flights_take_memory_for_those_in_flight_only() {
    let mut conveyor = Conveyor::new(fleet(50_000), WIDTH as usize);
    let cost = measure(|| conveyor.run_until(50_000));
    let each = cost.bytes_max / u64::from(WIDTH);
    assert!(each < 2_048, "{each} bytes a host in flight");
}
