//! Deadlines, retries and what a result may claim.

use std::time::{Duration, Instant};

use sshoal_fleet::{
    Action, Deadlines, Event, Failure, FailureKind, Fate, Fleet, Gate, HostId, Job, JumpEvent,
    JumpId, Limits, Outcome, Phase, RetryPolicy,
};

use super::{SECOND, Story, direct, kind_of_abort, one_at_a_time, story};

#[test]
fn a_host_in_back_off_holds_no_session_and_comes_back_after_first_timers() {
    let mut story = story(3, one_at_a_time());
    assert_eq!(story.started(), [0]);
    story.fail(0, FailureKind::Throttled, true, Fate::NotSent);
    assert_eq!(story.started(), [1]);
    story.now = story.fleet.poll_timeout().unwrap() + SECOND;
    assert_eq!(story.actions(), []);
    story.tell(1, Event::Finished(Outcome::Exit(0)));
    assert_eq!(story.started(), [2], "host 2 has not had its turn yet");
    story.tell(2, Event::Finished(Outcome::Exit(0)));
    let again = Action::Start {
        host: HostId(0),
        attempt: 2,
    };
    assert_eq!(story.actions(), [again]);
}

#[test]
fn only_what_the_connection_vouches_for_is_tried_again() {
    let cases = [
        (FailureKind::Throttled, true, Fate::NotSent, true),
        (FailureKind::Throttled, true, Fate::ProvenDiscarded, true),
        (FailureKind::Throttled, false, Fate::NotSent, false),
        (FailureKind::Throttled, true, Fate::MayHaveRun, false),
        (FailureKind::Throttled, true, Fate::Ran, false),
        (FailureKind::Refused, true, Fate::NotSent, true),
        (FailureKind::AuthDenied, true, Fate::NotSent, false),
        (FailureKind::Lost, true, Fate::NotSent, false),
    ];
    for (kind, safe_to_retry, fate, again) in cases {
        let mut story = story(1, Limits::default());
        story.actions();
        story.fail(0, kind, safe_to_retry, fate);
        assert_eq!(
            story.results().is_empty(),
            again,
            "{kind} {safe_to_retry} {fate:?}"
        );
        assert_eq!(story.fleet.progress().backing_off == 1, again);
    }
}

/// A fleet of one host that was cut off in the midst of its work.
fn cut_off() -> Story {
    let mut story = story(1, Limits::default());
    story.actions();
    story.bring(0, Phase::Command);
    cut(&mut story);
    story
}

fn cut(story: &mut Story) {
    let failure = Failure::new(FailureKind::Lost, "the connection broke");
    let fate = Fate::Ran;
    story.tell(0, Event::Cut { failure, fate });
}

/// Waits until the host comes back.
fn come_back(story: &mut Story) {
    assert_eq!(story.results(), [], "it is to be tried again");
    story.now = story.fleet.poll_timeout().unwrap();
    let again = Action::Start {
        host: HostId(0),
        attempt: 2,
    };
    assert_eq!(story.actions(), [again]);
}

#[test]
fn a_host_that_was_cut_off_and_may_begin_anew_comes_back_once() {
    let mut story = cut_off();
    come_back(&mut story);
    story.bring(0, Phase::Command);
    story.tell(0, Event::Finished(Outcome::Exit(0)));
    assert_eq!(story.outcome(), Outcome::Exit(0));

    let mut story = cut_off();
    come_back(&mut story);
    story.bring(0, Phase::Command);
    cut(&mut story);
    assert_eq!(story.outcome().failure_kind(), Some(FailureKind::Lost));
}

#[test]
fn a_host_that_was_cut_off_and_cannot_be_reached_again_is_told_as_cut_off() {
    let mut story = cut_off();
    come_back(&mut story);
    story.fail(0, FailureKind::Refused, true, Fate::NotSent);
    let Outcome::Failed { failure, fate } = story.outcome() else {
        panic!("no failure");
    };
    assert_eq!((failure.kind, fate), (FailureKind::Lost, Fate::Ran));
    assert_eq!(
        failure.detail,
        "the connection broke; logging in again: refused: as the story wants"
    );
}

#[test]
fn a_host_that_was_cut_off_does_not_count_as_one_that_never_began_when_the_user_leaves() {
    let mut story = cut_off();
    story.fleet.interrupt(story.now);
    assert_eq!(story.outcome().failure_kind(), Some(FailureKind::Lost));
    assert!(story.fleet.is_done());
}

#[test]
fn a_host_that_is_cut_off_after_an_interruption_is_not_tried_again() {
    let mut story = story(1, Limits::default());
    story.actions();
    story.bring(0, Phase::Command);
    story.fleet.interrupt(story.now);
    cut(&mut story);
    assert_eq!(story.outcome().failure_kind(), Some(FailureKind::Lost));
}

/// The same where a loss is survived for a minute.
fn cut_off_and_to_survive() -> Story {
    let deadlines = Deadlines {
        command: Some(30 * SECOND),
        survive: Some(60 * SECOND),
        ..Deadlines::default()
    };
    let jobs = [direct(0)];
    let mut story = Story {
        fleet: Fleet::new(
            jobs,
            Limits::default(),
            deadlines,
            RetryPolicy::default(),
            1,
        )
        .unwrap(),
        now: Instant::now(),
    };
    story.actions();
    story.bring(0, Phase::Command);
    cut(&mut story);
    story
}

/// The host comes back for another attempt.
fn try_again(story: &mut Story) {
    assert_eq!(story.results(), [], "it is to be tried again");
    story.now = story.fleet.poll_timeout().unwrap();
    let actions = story.actions();
    assert!(matches!(actions[..], [Action::Start { .. }]), "{actions:?}");
}

#[test]
fn a_command_that_survives_is_reached_again_in_a_run_that_was_halted() {
    let reached = |mut story: Story| {
        try_again(&mut story);
        story.bring(0, Phase::Command);
        story.tell(0, Event::Finished(Outcome::Exit(0)));
        assert_eq!(story.outcome(), Outcome::Exit(0));
        assert!(story.fleet.is_done());
    };
    // Halted while it is waited for.
    let mut story = cut_off_and_to_survive();
    story.fleet.halt(story.now);
    reached(story);
    // And cut off once more when nothing is begun any more.
    let mut story = cut_off_and_to_survive();
    try_again(&mut story);
    story.fleet.halt(story.now);
    story.bring(0, Phase::Command);
    cut(&mut story);
    reached(story);
}

#[test]
fn a_host_that_is_to_survive_losses_comes_back_after_each_and_however_its_way_fails() {
    let mut story = cut_off_and_to_survive();
    for kind in [FailureKind::Refused, FailureKind::Unreachable] {
        try_again(&mut story);
        story.fail(0, kind, false, Fate::NotSent);
    }
    try_again(&mut story);
    // Not connected within ten seconds.
    story.bring(0, Phase::Connect);
    story.now += 11 * SECOND;
    story.actions();
    story.fail(0, FailureKind::Lost, false, Fate::NotSent);
    for _ in 0..2 {
        try_again(&mut story);
        story.bring(0, Phase::Command);
        cut(&mut story);
    }
    try_again(&mut story);
    story.bring(0, Phase::Command);
    story.tell(0, Event::Finished(Outcome::Exit(7)));
    assert_eq!(story.outcome(), Outcome::Exit(7));
}

#[test]
fn a_host_is_given_up_that_is_not_reached_again_in_time_or_lets_nobody_in() {
    let mut story = cut_off_and_to_survive();
    story.now += 61 * SECOND;
    story.actions();
    story.fail(0, FailureKind::Refused, true, Fate::NotSent);
    assert_eq!(story.outcome().failure_kind(), Some(FailureKind::Lost));

    let mut story = cut_off_and_to_survive();
    try_again(&mut story);
    story.fail(0, FailureKind::AuthDenied, true, Fate::NotSent);
    assert_eq!(story.outcome().failure_kind(), Some(FailureKind::Lost));
}

#[test]
fn a_command_whose_time_is_over_is_not_survived() {
    let mut story = cut_off_and_to_survive();
    try_again(&mut story);
    story.bring(0, Phase::Command);
    story.now += 31 * SECOND;
    let actions = story.actions();
    assert!(matches!(actions[..], [Action::Abort { .. }]), "{actions:?}");
    story.fail(0, FailureKind::Lost, false, Fate::Ran);
    let kind = story.outcome().failure_kind();
    assert_eq!(kind, Some(FailureKind::CommandTimeout));
}

#[test]
fn every_phase_has_its_deadline_and_its_kind() {
    let cases = [
        (Phase::Lookup, 10, FailureKind::Resolve),
        (Phase::Connect, 10, FailureKind::ConnectTimeout),
        (Phase::Login, 60, FailureKind::LoginTimeout),
        (Phase::Session, 60, FailureKind::LoginTimeout),
        (Phase::Command, 30, FailureKind::CommandTimeout),
    ];
    for (phase, seconds, kind) in cases {
        let mut story = story(1, Limits::default());
        story.actions();
        if phase > Phase::Lookup {
            story.bring(0, phase);
        }
        story.now += seconds * SECOND - Duration::from_nanos(1);
        assert_eq!(story.actions(), [], "{phase}");
        story.now = story.fleet.poll_timeout().unwrap();
        assert_eq!(kind_of_abort(&story.actions()), kind, "{phase}");
        assert_eq!(story.results(), [], "the answer is still to come");
        story.fail(0, FailureKind::Protocol, true, Fate::NotSent);
        assert_eq!(story.outcome().failure_kind(), Some(kind), "{phase}");
        assert!(story.fleet.is_done());
    }
}

#[test]
fn a_turn_of_the_performer_s_own_is_waited_for_patiently_and_without_a_place() {
    let mut story = story(
        2,
        Limits {
            connects: 1,
            ..Limits::default()
        },
    );
    assert_eq!(story.started(), [0]);
    story.tell(0, Event::Queued);
    assert_eq!(story.started(), [1]);
    story.bring(1, Phase::Command);
    story.tell(1, Event::Finished(Outcome::Exit(0)));
    assert_eq!(story.outcome(), Outcome::Exit(0));
    let patience = story.fleet.poll_timeout().unwrap() - story.now;
    assert_eq!(patience, 300 * SECOND);
    story.now += 100 * SECOND;
    assert_eq!(story.actions(), []);
    story.tell(0, Event::Entered(Phase::Lookup));
    story.now += 10 * SECOND - Duration::from_nanos(1);
    assert_eq!(story.actions(), []);
    story.now = story.fleet.poll_timeout().unwrap();
    assert_eq!(kind_of_abort(&story.actions()), FailureKind::Resolve);
    story.fail(0, FailureKind::Protocol, true, Fate::NotSent);
    let results = story.results();
    assert_eq!(results[0].times.waited, 100 * SECOND);
}

#[test]
fn a_program_that_says_nothing_is_not_said_to_look_up_a_name() {
    let by_program = |host| Job {
        host: HostId(host),
        via: Some(JumpId::PROGRAM),
    };
    let jobs = [by_program(0), by_program(1), direct(2)];
    let (limits, deadlines) = (Limits::default(), Deadlines::default());
    let time = deadlines.lookup.unwrap();
    let fleet = Fleet::new(jobs, limits, deadlines, RetryPolicy::default(), 1).unwrap();
    let now = Instant::now();
    let mut story = Story { fleet, now };
    story.actions();
    story.fleet.handle_jump(now, JumpId::PROGRAM, JumpEvent::Up);
    assert_eq!(story.started(), [0, 1]);
    // Heard of, though it is where it was thought to be.
    story.tell(1, Event::Entered(Phase::Lookup));
    story.now += time;
    let aborted = |action| match action {
        Action::Abort { host, failure } => (host.0, failure.kind, failure.detail),
        other => panic!("{other:?} instead of an abort"),
    };
    let mut aborts: Vec<_> = story.actions().into_iter().map(aborted).collect();
    aborts.sort_by_key(|(host, ..)| *host);
    let kinds: Vec<_> = aborts
        .iter()
        .map(|(host, kind, _)| (*host, *kind))
        .collect();
    let (lost, resolve) = (FailureKind::Lost, FailureKind::Resolve);
    assert_eq!(kinds, [(0, lost), (1, resolve), (2, resolve)]);
    assert!(
        aborts[0].2.contains("said nothing within 10s"),
        "{aborts:?}"
    );
    story.fail(0, FailureKind::Resolve, false, Fate::MayHaveRun);
    match story.outcome() {
        Outcome::Failed { failure, fate } => {
            assert_eq!((failure.kind, fate), (lost, Fate::MayHaveRun));
            assert!(failure.remedy.contains("--ssh"), "{failure:?}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_timeout_that_may_have_run_the_command_is_reported_as_lost() {
    let mut story = story(1, Limits::default());
    story.actions();
    story.bring(0, Phase::Login);
    assert!(
        story.pass(0, Gate::Session),
        "the command is pipelined behind the login"
    );
    story.now += 60 * SECOND;
    assert_eq!(kind_of_abort(&story.actions()), FailureKind::LoginTimeout);
    story.fail(0, FailureKind::LoginTimeout, false, Fate::MayHaveRun);
    let Outcome::Failed { failure, fate } = story.outcome() else {
        panic!("no failure");
    };
    assert_eq!((failure.kind, fate), (FailureKind::Lost, Fate::MayHaveRun));
    assert!(
        failure.detail.starts_with("login-timeout: "),
        "{}",
        failure.detail
    );
}

#[test]
fn a_command_that_ends_while_it_is_being_aborted_has_ended() {
    let mut story = story(1, Limits::default());
    story.actions();
    story.bring(0, Phase::Command);
    story.now += 30 * SECOND;
    kind_of_abort(&story.actions());
    story.tell(0, Event::Finished(Outcome::Exit(3)));
    assert_eq!(story.outcome(), Outcome::Exit(3));
}

#[test]
fn an_abort_without_an_answer_does_not_stall_the_run() {
    let mut story = story(2, one_at_a_time());
    story.actions();
    story.bring(0, Phase::Login);
    story.now += 60 * SECOND;
    kind_of_abort(&story.actions());
    assert_eq!(story.fleet.progress().ending, 1);
    story.now = story.fleet.poll_timeout().unwrap();
    assert_eq!(story.started(), [1]);
    let timeout = Some(FailureKind::LoginTimeout);
    assert_eq!(
        story.outcome().failure_kind(),
        timeout,
        "no command was let out"
    );
    story.fail(0, FailureKind::LoginTimeout, true, Fate::NotSent);
    assert_eq!(story.results(), [], "the answer comes too late");
}

#[test]
fn a_performer_that_is_gone_ends_its_host_once_with_what_can_be_concluded() {
    let cases = [
        (Phase::Lookup, FailureKind::Internal, Fate::NotSent),
        (Phase::Login, FailureKind::Internal, Fate::NotSent),
        (Phase::Session, FailureKind::Lost, Fate::MayHaveRun),
        (Phase::Command, FailureKind::Lost, Fate::Ran),
    ];
    for (phase, kind, fate) in cases {
        let mut story = story(1, Limits::default());
        story.actions();
        if phase > Phase::Lookup {
            story.bring(0, phase);
        }
        let crash = Failure::new(FailureKind::Internal, "a panic");
        story.tell(0, Event::Crashed(crash));
        match story.outcome() {
            Outcome::Failed {
                failure,
                fate: known,
            } => {
                assert_eq!((failure.kind, known), (kind, fate), "{phase}");
                assert!(failure.detail.contains("a panic"), "{failure}");
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(story.actions(), [], "it is not tried again");
        assert!(story.fleet.is_done());
    }
}
