//! A performer that has lost its mind: any event about any host at any time, clocks that jump and run
//! backwards, events after the end. The fleet answers with named errors, keeps its counts, and ends every host
//! exactly once.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use sshoal_fleet::{
    Action, Deadlines, Event, Failure, FailureKind, Fate, Fleet, Gate, HostId, Job, JumpEvent,
    JumpId, Limits, Outcome, Phase, RetryPolicy,
};

const HOSTS: u32 = 8;

/// A host is in flight from its start to its result or its back-off.
const SESSIONS: u32 = 4;

#[derive(Debug, Clone)]
enum Whim {
    Tell(u32, Event),
    Pass(u32, Gate),
    Jump(u32, bool),
    Resume(u32),
    GiveUp(u32),
    Poll,
    Forward(u64),
    Backward(u64),
    Interrupt,
}

fn gate() -> impl Strategy<Value = Gate> {
    prop::sample::select(vec![Gate::Login, Gate::Signature, Gate::Session])
}

fn failure() -> impl Strategy<Value = Event> {
    let kinds: Vec<FailureKind> = FailureKind::all().collect();
    let fates = vec![
        Fate::NotSent,
        Fate::ProvenDiscarded,
        Fate::MayHaveRun,
        Fate::Ran,
    ];
    (
        prop::sample::select(kinds),
        any::<bool>(),
        prop::sample::select(fates),
    )
        .prop_map(|(kind, safe_to_retry, fate)| {
            let failure = Failure::new(kind, "on a whim");
            match kind == FailureKind::Unreachable && safe_to_retry {
                true => Event::Stranded { failure, fate },
                false => Event::Failed {
                    failure,
                    safe_to_retry,
                    fate,
                },
            }
        })
}

fn event() -> impl Strategy<Value = Event> {
    let phases = vec![
        Phase::Lookup,
        Phase::Connect,
        Phase::Login,
        Phase::Session,
        Phase::Command,
    ];
    let outcomes = vec![Outcome::Exit(0), Outcome::Exit(255), Outcome::NotStarted];
    prop_oneof![
        6 => prop::sample::select(phases).prop_map(Event::Entered),
        1 => Just(Event::Queued),
        1 => Just(Event::KeysExchanged),
        1 => Just(Event::Held),
        1 => Just(Event::Parked),
        3 => gate().prop_map(Event::Reached),
        2 => gate().prop_map(Event::Left),
        2 => failure(),
        1 => prop::sample::select(outcomes).prop_map(Event::Finished),
        1 => Just(Event::Crashed(Failure::new(FailureKind::Internal, "on a whim"))),
    ]
}

fn whim() -> impl Strategy<Value = Whim> {
    let host = || 0..HOSTS + 2;
    prop_oneof![
        20 => (host(), event()).prop_map(|(host, event)| Whim::Tell(host, event)),
        10 => (host(), gate()).prop_map(|(host, gate)| Whim::Pass(host, gate)),
        10 => (0u32..4, any::<bool>()).prop_map(|(jump, up)| Whim::Jump(jump, up)),
        3 => host().prop_map(Whim::Resume),
        1 => host().prop_map(Whim::GiveUp),
        10 => Just(Whim::Poll),
        5 => (0u64..40_000).prop_map(Whim::Forward),
        1 => (0u64..40_000).prop_map(Whim::Backward),
        1 => Just(Whim::Interrupt),
    ]
}

fn jump_event(up: bool) -> JumpEvent {
    match up {
        true => JumpEvent::Up,
        false => JumpEvent::Down(Failure::new(FailureKind::Throttled, "on a whim")),
    }
}

fn absurd_fleet(seed: u64) -> Fleet {
    let job = |host| Job {
        host: HostId(host),
        via: (host % 2 == 0).then_some(JumpId(host % 3)),
    };
    let limits = Limits {
        connects: 3,
        logins: 2,
        logins_per_jump: 1,
        logins_by_program: 1,
        signatures: 1,
        sessions: SESSIONS,
        start_interval: Duration::from_millis(1),
        place_rest: Duration::from_millis(1),
    };
    let deadlines = Deadlines {
        command: Some(Duration::from_secs(30)),
        ..Deadlines::default()
    };
    Fleet::new(
        (0..HOSTS).map(job),
        limits,
        deadlines,
        RetryPolicy::default(),
        seed,
    )
    .unwrap()
}

/// Takes all actions and results, and checks what can be checked whatever has happened.
fn drain(fleet: &mut Fleet, now: Instant, ends: &mut BTreeMap<u32, u32>) {
    while let Some(action) = fleet.poll_action(now) {
        let Some(HostId(host)) = action.host() else {
            continue;
        };
        assert!(host < HOSTS);
        assert!(
            matches!(action, Action::Abort { .. }) || !ends.contains_key(&host),
            "{action:?} after the end"
        );
    }
    while let Some(result) = fleet.poll_result() {
        *ends.entry(result.host.0).or_default() += 1;
        if let Outcome::Failed { failure, fate } = result.outcome {
            assert!(failure.kind.command_may_have_run() || fate.is_proven_not_run());
        }
    }
    let progress = fleet.progress();
    assert!(progress.in_flight() <= SESSIONS, "{progress:?}");
    assert!(
        progress.at_gates + progress.slow <= 2 * SESSIONS,
        "{progress:?}"
    );
    let waiting = progress.waiting + progress.backing_off + progress.held;
    assert_eq!(waiting + progress.in_flight() + progress.done, HOSTS);
    assert_eq!(ends.len() as u32, progress.done);
    assert!(ends.values().all(|count| *count == 1), "{ends:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn whims_do_no_harm(seed in any::<u64>(), whims in prop::collection::vec(whim(), 0..200)) {
        let mut fleet = absurd_fleet(seed);
        let mut now = Instant::now() + Duration::from_secs(1_000_000);
        let mut ends = BTreeMap::new();
        for whim in whims {
            match whim {
                Whim::Tell(host, event) => {
                    let before = fleet.progress();
                    if fleet.handle(now, HostId(host), event).is_err() {
                        prop_assert_eq!(fleet.progress(), before);
                    }
                }
                Whim::Pass(host, gate) => {
                    let passed = fleet.try_pass(now, HostId(host), gate);
                    prop_assert!(host < HOSTS || passed.is_err());
                }
                Whim::Jump(jump, up) => fleet.handle_jump(now, JumpId(jump), jump_event(up)),
                Whim::Resume(host) => {
                    prop_assert_eq!(fleet.resume(HostId(host)).is_ok(), host < HOSTS);
                }
                Whim::GiveUp(host) => {
                    let failure = Failure::new(FailureKind::HostKeyUnknown, "on a whim");
                    let given_up = fleet.give_up(now, HostId(host), failure);
                    prop_assert_eq!(given_up.is_ok(), host < HOSTS);
                }
                Whim::Poll => drain(&mut fleet, now, &mut ends),
                Whim::Forward(millis) => now += Duration::from_millis(millis),
                Whim::Backward(millis) => now -= Duration::from_millis(millis),
                Whim::Interrupt => fleet.interrupt(now),
            }
        }
        // Left alone, every host that waits for nobody but the performer runs into its deadlines, and those at
        // gates follow as places come free; the held ones wait for their user. Jump hosts are the performer's own.
        drain(&mut fleet, now, &mut ends);
        while !fleet.is_done() {
            for host in 0..HOSTS {
                fleet.resume(HostId(host)).unwrap();
            }
            for jump in 0..3 {
                fleet.handle_jump(now, JumpId(jump), jump_event(jump == 0));
            }
            drain(&mut fleet, now, &mut ends);
            if fleet.is_done() {
                break;
            }
            let next = fleet.poll_timeout();
            prop_assert!(next.is_some(), "stuck: {:?}", fleet.progress());
            now = now.max(next.unwrap());
            drain(&mut fleet, now, &mut ends);
        }
        prop_assert_eq!(ends.len() as u32, HOSTS);
        prop_assert_eq!(fleet.poll_timeout(), None);
    }

    #[test]
    fn abandoning_ends_everything_whatever_was_before(
        seed in any::<u64>(),
        whims in prop::collection::vec((0..HOSTS, event()), 0..60),
    ) {
        let mut fleet = absurd_fleet(seed);
        let now = Instant::now();
        let mut ends = BTreeMap::new();
        for (host, event) in whims {
            drain(&mut fleet, now, &mut ends);
            // Whether it was an error is the other test's business.
            fleet.handle(now, HostId(host), event).ok();
        }
        fleet.abandon(now);
        prop_assert!(fleet.is_done());
        drain(&mut fleet, now, &mut ends);
        prop_assert_eq!(ends.len() as u32, HOSTS);
    }
}
