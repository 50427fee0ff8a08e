//! Whole runs over thousands of simulated hosts, with faults: one thread, no socket, the same seed the same
//! run. The world of `sim` watches limits, pacing and starts at every instant and panics at the first breach;
//! the tests here judge what came of it.

#![allow(clippy::unwrap_used)]

mod sim;

use std::time::Duration;

use proptest::prelude::*;
use sshoal_fleet::{Deadlines, FailureKind, Fate, Limits, Outcome, RetryPolicy};

use sim::jumps::JumpHost;
use sim::machine::{Dice, Machine, TWELVE, Trouble, healthy};
use sim::scenario::{Report, Scenario};

const MILLI: Duration = Duration::from_millis(1);

/// Every trouble, and none.
const ALL: [Trouble; 19] = [
    Trouble::Nothing,
    Trouble::NoSuchName,
    Trouble::SilentResolver,
    Trouble::Refuses,
    Trouble::NoRoute,
    Trouble::SilentAtConnect,
    Trouble::AlwaysThrottles,
    Trouble::ThrottlesTwice,
    Trouble::Garbles,
    Trouble::SilentAtLogin,
    Trouble::ChangedKey,
    Trouble::AgentRefuses,
    Trouble::Denies,
    Trouble::OpensNoSession,
    Trouble::SilentAtSession,
    Trouble::BreaksOff,
    Trouble::NeverEnds,
    Trouble::Killed,
    Trouble::ExitsWithOne,
];

/// A mixed population with every trouble, every kind of performer, and three jump hosts.
fn motley(seed: u64, count: usize) -> Vec<Machine> {
    let mut dice = Dice(!seed);
    let mut machines = healthy(seed, count);
    for machine in &mut machines {
        if dice.below(4) == 0 {
            machine.trouble = ALL[dice.below(ALL.len() as u64) as usize];
        }
        machine.via = (dice.below(3) == 0).then(|| dice.below(3) as u32);
        machine.agent = dice.below(3) == 0;
        machine.warm = machine.trouble == Trouble::Nothing && dice.below(20) == 0;
    }
    machines
}

/// What each host must come to when nobody interrupts: an agent's refusal needs an agent.
fn expected_kind(machine: &Machine) -> Option<FailureKind> {
    match machine.trouble {
        Trouble::AgentRefuses if !machine.agent => None,
        trouble => trouble.kind(),
    }
}

fn assert_right_kinds(machines: &[Machine], report: &Report) {
    for (machine, (_, result)) in machines.iter().zip(&report.hosts) {
        assert_eq!(
            result.outcome.failure_kind(),
            expected_kind(machine),
            "{:?}: {result:?}",
            machine.trouble
        );
    }
}

/// No phase took longer than its deadline, and the kinds tell the truth about the command.
fn assert_promises(scenario: &Scenario, report: &Report) {
    let Deadlines {
        lookup,
        connect,
        login,
        command,
        kill: _,
        survive: _,
    } = scenario.deadlines;
    for (_, result) in &report.hosts {
        let times = &result.times;
        let phases = [
            (times.lookup, lookup),
            (times.connect, connect),
            (times.login, login),
            (times.session, login),
            (times.command, command),
        ];
        for (took, deadline) in phases {
            let met = took.unwrap_or_default() <= deadline.unwrap_or(Duration::MAX);
            assert!(met, "{result:?}");
        }
        if let Outcome::Failed { failure, fate } = &result.outcome {
            let harmless = !failure.kind.command_may_have_run();
            assert!(!harmless || fate.is_proven_not_run(), "{result:?}");
        }
    }
}

#[test]
fn ten_thousand_hosts_with_faults_run_the_same_way_twice() {
    let scenario = Scenario {
        seed: 42,
        ..Scenario::new(motley(42, 10_000))
    };
    let once = scenario.clone().run();
    let again = scenario.clone().run();
    assert_eq!(once.trace, again.trace);
    assert_eq!(once.hosts, again.hosts);
    let other = Scenario {
        seed: 43,
        ..scenario.clone()
    }
    .run();
    assert_ne!(once.trace, other.trace, "the seed decides nothing");
    assert_right_kinds(&scenario.machines, &once);
    assert_promises(&scenario, &once);
}

/// Target T14, with 2,000 hosts: one in ten is bad in one of twelve ways, against the same hosts all healthy.
fn t14(seed: u64, hosts: usize, limits: Limits) {
    let clean = healthy(seed, hosts);
    let mut bad = clean.clone();
    let mut dice = Dice(seed ^ 14);
    let mut spoilt = 0;
    while spoilt < hosts / 10 {
        let machine = &mut bad[dice.below(hosts as u64) as usize];
        if machine.trouble == Trouble::Nothing {
            machine.trouble = TWELVE[spoilt % TWELVE.len()];
            spoilt += 1;
        }
    }
    let clean = Scenario {
        limits,
        ..Scenario::new(clean)
    }
    .run();
    let scenario = Scenario {
        limits,
        ..Scenario::new(bad)
    };
    let report = scenario.clone().run();
    assert_right_kinds(&scenario.machines, &report);
    assert_promises(&scenario, &report);
    for (host, machine) in scenario.machines.iter().enumerate() {
        let (before, after) = (clean.hosts[host].0, report.hosts[host].0);
        let delayed = machine.trouble == Trouble::Nothing && after > before.mul_f64(1.2);
        assert!(
            !delayed,
            "healthy host {host} ends at {after:?} instead of {before:?}"
        );
    }
}

#[test]
fn two_hundred_bad_hosts_of_two_thousand_delay_nobody() {
    for seed in 0..5 {
        t14(seed, 2_000, Limits::default());
    }
}

#[test]
fn a_thousand_bad_hosts_of_ten_thousand_delay_nobody() {
    t14(1, 10_000, Limits::default());
}

#[test]
fn bad_hosts_delay_nobody_where_handshakes_are_scarce() {
    for (connects, logins) in [(48, 48), (24, 256), (256, 24)] {
        let limits = Limits {
            connects,
            logins,
            ..Limits::default()
        };
        for seed in 0..5 {
            t14(seed, 2_000, limits);
        }
    }
}

#[test]
fn a_jump_host_full_of_dead_hosts_delays_nobody_else() {
    let mut machines = healthy(5, 1_000);
    for machine in &mut machines[..200] {
        machine.via = Some(0);
        machine.trouble = Trouble::SilentAtConnect;
    }
    let limits = Limits {
        logins_per_jump: 8,
        ..Limits::default()
    };
    let mixed = Scenario {
        limits,
        ..Scenario::new(machines.clone())
    }
    .run();
    let alone = Scenario {
        limits,
        ..Scenario::new(machines.split_off(200))
    }
    .run();
    for ((together, _), (alone, _)) in mixed.hosts[200..].iter().zip(&alone.hosts) {
        assert!(
            *together <= alone.mul_f64(1.2) + 5 * MILLI,
            "{together:?} {alone:?}"
        );
    }
}

#[test]
fn dead_hosts_behind_a_jump_host_do_not_stop_the_live_ones_there() {
    let mut machines = healthy(6, 400);
    for machine in &mut machines {
        machine.via = Some(0);
    }
    let limits = Limits {
        logins_per_jump: 8,
        ..Limits::default()
    };
    let scenario = |machines| Scenario {
        limits,
        ..Scenario::new(machines)
    };
    let clean = scenario(machines.clone()).run();
    for machine in machines.iter_mut().step_by(10) {
        machine.trouble = Trouble::SilentAtConnect;
    }
    let report = scenario(machines.clone()).run();
    for (host, machine) in machines.iter().enumerate() {
        let (before, after) = (clean.hosts[host].0, report.hosts[host].0);
        // 40 dead hosts and 8 places: without giving places up, it would be 50 s.
        let delayed = machine.trouble == Trouble::Nothing && after > before.mul_f64(1.5);
        assert!(
            !delayed,
            "host {host} ends at {after:?} instead of {before:?}"
        );
    }
}

#[test]
fn quick_hosts_keep_strictly_to_limits_and_use_them_fully() {
    let limits = Limits {
        connects: 20,
        logins: 15,
        logins_per_jump: 6,
        signatures: 2,
        logins_by_program: 16,
        sessions: 60,
        start_interval: Duration::ZERO,
        place_rest: Duration::ZERO,
    };
    let mut machines = healthy(3, 3_000);
    for (host, machine) in machines.iter_mut().enumerate() {
        // No handshake of these can take longer than the least patience.
        machine.connect = machine.connect.min(20 * MILLI);
        machine.key_exchange = machine.key_exchange.min(20 * MILLI);
        machine.authentication = machine.authentication.min(20 * MILLI);
        machine.via = (host % 3 == 0).then_some((host % 2) as u32);
        machine.agent = host % 2 == 0;
    }
    let report = Scenario {
        limits,
        strict: true,
        ..Scenario::new(machines)
    }
    .run();
    assert_eq!(report.most_slow, 0);
    assert_eq!(report.most, [20, 15, 2, 60]);
    assert_eq!(report.starts, 3_000);
}

#[test]
fn pacing_spreads_the_starts() {
    let limits = Limits {
        start_interval: 10 * MILLI,
        ..Limits::default()
    };
    let report = Scenario {
        limits,
        ..Scenario::new(healthy(9, 500))
    }
    .run();
    assert!(report.end >= 499 * 10 * MILLI, "{:?}", report.end);
    // The last start is not later than pacing asks for: nothing else held the starts up.
    assert!(
        report.end <= 499 * 10 * MILLI + Duration::from_secs(1),
        "{:?}",
        report.end
    );
}

#[test]
fn throttled_hosts_come_back_and_succeed() {
    let mut machines = healthy(11, 1_000);
    for machine in &mut machines {
        machine.trouble = Trouble::ThrottlesTwice;
    }
    let report = Scenario::new(machines).run();
    assert_eq!(report.starts, 3_000);
    for (_, result) in &report.hosts {
        assert_eq!((&result.outcome, result.attempts), (&Outcome::Exit(0), 3));
        let waited = result.times.total.unwrap() - result.times.login.unwrap();
        assert!(
            waited >= 1_500 * MILLI,
            "back-off is part of the total: {result:?}"
        );
    }
}

#[test]
fn attempts_end_with_the_policy() {
    let mut machines = healthy(12, 30);
    for (host, machine) in machines.iter_mut().enumerate() {
        machine.trouble = [Trouble::AlwaysThrottles, Trouble::Refuses, Trouble::Denies][host % 3];
    }
    let retry = RetryPolicy {
        attempts: 4,
        ..RetryPolicy::default()
    };
    let report = Scenario {
        retry,
        ..Scenario::new(machines)
    }
    .run();
    for (host, (_, result)) in report.hosts.iter().enumerate() {
        assert_eq!(result.attempts, [4, 2, 1][host % 3], "{result:?}");
    }
}

#[test]
fn phase_times_add_up() {
    let limits = Limits {
        logins: 8,
        signatures: 1,
        ..Limits::default()
    };
    let mut machines = healthy(13, 300);
    for machine in &mut machines {
        machine.agent = true;
    }
    let report = Scenario {
        limits,
        ..Scenario::new(machines.clone())
    }
    .run();
    for (machine, (_, result)) in machines.iter().zip(&report.hosts) {
        let times = &result.times;
        assert_eq!(times.lookup, Some(machine.lookup));
        assert_eq!(times.connect, Some(machine.connect));
        assert_eq!(times.key_exchange, Some(machine.key_exchange));
        let authentication = machine.signature + machine.authentication;
        assert_eq!(times.authentication, Some(authentication));
        assert_eq!(times.login, Some(machine.key_exchange + authentication));
        assert_eq!(times.session, Some(machine.session));
        assert_eq!(times.command, Some(machine.command));
        let phases = [
            times.lookup,
            times.connect,
            times.login,
            times.session,
            times.command,
        ];
        let sum: Duration = phases.into_iter().flatten().sum();
        assert_eq!(times.total, Some(sum + times.waited));
    }
    let waited: Duration = report
        .hosts
        .iter()
        .map(|(_, result)| result.times.waited)
        .sum();
    assert!(
        waited > Duration::ZERO,
        "nobody had to wait: the limits do not bind"
    );
}

#[test]
fn an_interruption_ends_every_host_within_its_grace() {
    let machines = motley(21, 3_000);
    let scenario = Scenario {
        interrupt: Some(700 * MILLI),
        ..Scenario::new(machines.clone())
    };
    let report = scenario.clone().run();
    assert_promises(&scenario, &report);
    assert!(report.end <= 5_701 * MILLI, "{:?}", report.end);
    let count = |wanted: fn(&Outcome) -> bool| {
        report
            .hosts
            .iter()
            .filter(|(_, result)| wanted(&result.outcome))
            .count()
    };
    let signalled =
        count(|outcome| matches!(outcome, Outcome::Signal { name, .. } if name == "INT"));
    let unconfirmed = count(
        |outcome| matches!(outcome, Outcome::Failed { failure, fate: Fate::Ran } if failure.kind == FailureKind::Lost),
    );
    let not_started = count(|outcome| *outcome == Outcome::NotStarted);
    assert!(
        signalled > 50 && unconfirmed > 0 && not_started > 500,
        "{signalled} {unconfirmed} {not_started}"
    );
}

#[test]
fn abandoning_ends_every_host_at_once() {
    let scenario = Scenario {
        interrupt: Some(700 * MILLI),
        abandon: Some(900 * MILLI),
        ..Scenario::new(motley(22, 3_000))
    };
    let report = scenario.clone().run();
    assert_promises(&scenario, &report);
    assert_eq!(report.end, 900 * MILLI);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Any limits, any population, interrupted or not: the world's own checks hold and every host ends once.
    #[test]
    fn every_run_ends_every_host_exactly_once(
        seed in any::<u64>(),
        count in 1usize..300,
        bounds in (1u32..40, 1u32..40, 1u32..10, 1u32..5, 1u32..80),
        pace in 0u32..5,
        rest in 0u32..50,
        attempts in 0u32..5,
        interrupt in prop::option::of(0u32..5_000),
        abandon in prop::option::of(0u32..8_000),
    ) {
        let (connects, logins, logins_per_jump, signatures, sessions) = bounds;
        let scenario = Scenario {
            limits: Limits {
                connects, logins, logins_per_jump, signatures, sessions, start_interval: MILLI * pace,
                place_rest: MILLI * rest,
                ..Limits::default()
            },
            retry: RetryPolicy { attempts, ..RetryPolicy::default() },
            seed,
            interrupt: interrupt.map(|millis| MILLI * millis),
            abandon: abandon.map(|millis| MILLI * millis),
            ..Scenario::new(motley(seed, count))
        };
        let report = scenario.clone().run();
        prop_assert_eq!(report.hosts.len(), count);
        assert_promises(&scenario, &report);
        prop_assert_eq!(scenario.clone().run().trace, report.trace);
        let quiet = interrupt.is_none() && abandon.is_none();
        if quiet && attempts > 2 {
            assert_right_kinds(&scenario.machines, &report);
        }
    }
}

/// Hosts of `count` behind one jump host, quick ones among them.
fn behind_one_jump(seed: u64, count: usize) -> Vec<Machine> {
    let mut machines = healthy(seed, count);
    for machine in &mut machines {
        machine.via = Some(0);
    }
    machines
}

#[test]
fn a_slow_jump_host_costs_its_hosts_nothing_but_time() {
    let mut machines = behind_one_jump(21, 300);
    machines.extend(healthy(22, 300));
    let mut scenario = Scenario::new(machines);
    // Longer than the deadlines of a host's lookup and connect together.
    scenario.jumps = vec![JumpHost {
        login: Duration::from_secs(25),
        ..JumpHost::default()
    }];
    let report = scenario.run();
    assert_eq!(report.jumps, [1]);
    for (at, result) in &report.hosts[..300] {
        assert!(result.outcome.is_success(), "{result:?}");
        assert!(*at > Duration::from_secs(25));
        assert_eq!(result.attempts, 1);
    }
    for (at, result) in &report.hosts[300..] {
        assert!(result.outcome.is_success(), "{result:?}");
        assert!(*at < Duration::from_secs(10), "{at:?}");
    }
}

#[test]
fn a_jump_host_that_throttles_is_tried_again_for_all() {
    let mut scenario = Scenario::new(behind_one_jump(23, 200));
    scenario.jumps = vec![JumpHost {
        fails: (3, FailureKind::Throttled),
        ..JumpHost::default()
    }];
    let report = scenario.run();
    assert_eq!(report.jumps, [4]);
    let all = report.hosts.iter();
    assert!(
        all.map(|(_, result)| result)
            .all(|result| result.outcome.is_success())
    );
}

#[test]
fn a_lost_jump_host_is_connected_again_and_nothing_runs_twice() {
    for seed in 0..8 {
        let mut machines = behind_one_jump(seed, 600);
        machines.extend(healthy(seed, 100));
        let mut scenario = Scenario::new(machines);
        let losses = [150, 1_700, 2_400].map(Duration::from_millis).to_vec();
        scenario.jumps = vec![JumpHost {
            losses,
            ..JumpHost::default()
        }];
        let report = scenario.run();
        let mut lost = 0;
        for (_, result) in &report.hosts[..600] {
            // The world itself sees to it that no command is sent twice.
            match result.outcome.failure_kind() {
                None => {}
                Some(FailureKind::Lost) => lost += 1,
                other => panic!("{other:?}: {result:?}"),
            }
        }
        assert!((1..600).contains(&lost), "{lost}");
        assert!(report.jumps[0] > 1, "{:?}", report.jumps);
        let direct = report.hosts[600..].iter();
        assert!(
            direct
                .map(|(_, result)| result)
                .all(|result| result.outcome.is_success())
        );
    }
}
