//! Places, lines and pacing: who may go on, and when.

use std::time::{Duration, Instant};

use sshoal_fleet::{
    Action, Deadlines, Event, FailureKind, Fate, Fleet, Gate, HostId, Job, JumpEvent, JumpId,
    Limits, Outcome, Phase, RetryPolicy,
};

use super::{SECOND, Story, direct, kind_of_abort, story};

#[test]
fn waiting_at_a_gate_counts_against_no_deadline() {
    let mut story = story(
        2,
        Limits {
            signatures: 1,
            ..Limits::default()
        },
    );
    story.actions();
    story.bring(0, Phase::Login);
    story.bring(1, Phase::Login);
    assert!(story.pass(0, Gate::Signature));
    assert!(!story.pass(1, Gate::Signature));
    story.now += 50 * SECOND;
    story.tell(0, Event::Left(Gate::Signature));
    let admitted = Action::Admit {
        host: HostId(1),
        gate: Gate::Signature,
    };
    assert_eq!(story.actions(), [admitted]);
    story.now += 10 * SECOND;
    let actions = story.actions();
    assert_eq!(kind_of_abort(&actions), FailureKind::LoginTimeout);
    assert_eq!(
        actions[0].host(),
        Some(HostId(0)),
        "host 1 has been at it for 10 s only"
    );
    story.tell(1, Event::Finished(Outcome::Exit(0)));
    assert_eq!(story.results()[0].times.waited, 50 * SECOND);
}

#[test]
fn nobody_overtakes_at_a_gate() {
    let mut story = story(
        3,
        Limits {
            logins: 1,
            ..Limits::default()
        },
    );
    story.actions();
    assert!(story.pass(0, Gate::Login));
    story.tell(1, Event::Reached(Gate::Login));
    story.fail(0, FailureKind::Protocol, false, Fate::NotSent);
    assert!(!story.pass(2, Gate::Login), "host 1 was there before");
    let admit = |host| Action::Admit {
        host: HostId(host),
        gate: Gate::Login,
    };
    assert_eq!(story.actions(), [admit(1)]);
    story.fail(1, FailureKind::Protocol, false, Fate::NotSent);
    assert_eq!(story.actions(), [admit(2)]);
}

#[test]
fn a_host_that_fails_at_a_gate_leaves_the_line() {
    let mut story = story(
        3,
        Limits {
            logins: 1,
            ..Limits::default()
        },
    );
    story.actions();
    assert!(story.pass(0, Gate::Login));
    assert!(!story.pass(1, Gate::Login));
    assert!(!story.pass(2, Gate::Login));
    assert_eq!(story.fleet.progress().at_gates, 2);
    story.fail(1, FailureKind::Throttled, true, Fate::NotSent);
    story.fail(0, FailureKind::Protocol, false, Fate::NotSent);
    let admitted = Action::Admit {
        host: HostId(2),
        gate: Gate::Login,
    };
    assert_eq!(story.actions(), [admitted]);
}

#[test]
fn a_program_of_this_machine_has_a_limit_of_its_own() {
    let by_program = |host| Job {
        host: HostId(host),
        via: Some(JumpId::PROGRAM),
    };
    let jobs = [by_program(0), by_program(1), by_program(2), direct(3)];
    let limits = Limits {
        logins_per_jump: 1,
        logins_by_program: 2,
        ..Limits::default()
    };
    let fleet = Fleet::new(
        jobs,
        limits,
        Deadlines::default(),
        RetryPolicy::default(),
        1,
    )
    .unwrap();
    let mut story = Story {
        fleet,
        now: Instant::now(),
    };
    story.actions();
    story
        .fleet
        .handle_jump(story.now, JumpId::PROGRAM, JumpEvent::Up);
    assert_eq!(story.started(), [0, 1]);
    story.bring(0, Phase::Session);
    assert_eq!(story.started(), [2]);
}

#[test]
fn a_full_jump_host_holds_up_its_own_hosts_only() {
    let via = |host, jump| Job {
        host: HostId(host),
        via: Some(JumpId(jump)),
    };
    let jobs = [via(0, 7), via(1, 7), via(2, 7), via(3, 900), direct(4)];
    let limits = Limits {
        logins_per_jump: 2,
        ..Limits::default()
    };
    let fleet = Fleet::new(
        jobs,
        limits,
        Deadlines::default(),
        RetryPolicy::default(),
        1,
    )
    .unwrap();
    let mut story = Story {
        fleet,
        now: Instant::now(),
    };
    story.actions();
    for jump in [7, 900] {
        story
            .fleet
            .handle_jump(story.now, JumpId(jump), JumpEvent::Up);
    }
    assert_eq!(story.started(), [0, 1, 3]);
    story.bring(1, Phase::Login);
    assert_eq!(story.started(), [0; 0]);
    story.bring(0, Phase::Session);
    assert_eq!(
        story.started(),
        [2],
        "authenticated hosts leave the jump host's limit"
    );
}

#[test]
fn a_slow_host_gives_its_place_up_and_goes_on() {
    let mut story = story(
        2,
        Limits {
            connects: 1,
            ..Limits::default()
        },
    );
    assert_eq!(story.started(), [0]);
    story.now = story.fleet.poll_timeout().unwrap();
    assert_eq!(story.started(), [1], "one second without an answer is slow");
    assert_eq!(story.fleet.progress().slow, 1);
    story.bring(0, Phase::Command);
    assert_eq!(story.fleet.progress().slow, 0);
    story.tell(0, Event::Finished(Outcome::Exit(0)));
    assert_eq!(story.outcome(), Outcome::Exit(0));
}

#[test]
fn pacing_is_a_timeout_of_its_own() {
    let start_interval = Duration::from_millis(10);
    let mut story = story(
        3,
        Limits {
            start_interval,
            ..Limits::default()
        },
    );
    assert_eq!(story.started(), [0]);
    assert_eq!(story.fleet.poll_timeout(), Some(story.now + start_interval));
    // A performer that comes late does not make up for it with a burst.
    story.now += 100 * start_interval;
    assert_eq!(story.started(), [1]);
    story.now += start_interval;
    assert_eq!(story.started(), [2]);
}

#[test]
fn places_open_one_after_the_other_and_rest_between_two_hosts() {
    let place_rest = Duration::from_millis(50);
    let mut story = story(
        6,
        Limits {
            sessions: 2,
            place_rest,
            ..Limits::default()
        },
    );
    assert_eq!(story.started(), [0], "the first at once");
    assert_eq!(story.fleet.poll_timeout(), Some(story.now + place_rest));
    story.now += place_rest;
    assert_eq!(story.started(), [1]);
    story.now += 10 * place_rest;
    assert!(story.started().is_empty(), "both places are taken");
    for host in [1, 0] {
        story.bring(host, Phase::Command);
        story.tell(host, Event::Finished(Outcome::Exit(0)));
        assert!(story.started().is_empty());
        story.now += place_rest / 5;
    }
    // The one place has rested since 10 ms, the other since 20.
    assert_eq!(
        story.fleet.poll_timeout(),
        Some(story.now + place_rest * 3 / 5)
    );
    story.now += place_rest * 3 / 5;
    assert_eq!(story.started(), [2]);
    story.now += place_rest / 5;
    assert_eq!(story.started(), [3]);
    story.now += 100 * place_rest;
    assert!(story.started().is_empty(), "both are taken again");
}

#[test]
fn a_place_that_was_left_may_be_used_before_another_opens() {
    let place_rest = Duration::from_millis(50);
    let mut story = story(
        3,
        Limits {
            place_rest,
            ..Limits::default()
        },
    );
    assert_eq!(story.started(), [0]);
    story.fail(0, FailureKind::Resolve, true, Fate::NotSent);
    story.now += place_rest;
    assert_eq!(
        story.started(),
        [1, 2],
        "the first place has rested, and the second opens"
    );
}

#[test]
fn an_agent_may_be_asked_again_on_the_same_connection() {
    let mut story = story(
        1,
        Limits {
            signatures: 1,
            ..Limits::default()
        },
    );
    story.actions();
    story.bring(0, Phase::Login);
    for _ in 0..3 {
        assert!(story.pass(0, Gate::Signature));
        story.tell(0, Event::Left(Gate::Signature));
    }
    assert!(story.pass(0, Gate::Session));
}
