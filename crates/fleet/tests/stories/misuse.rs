//! Events out of place, and plans that make no sense.

use std::time::Instant;

use sshoal_fleet::{
    Deadlines, Event, EventError, Fleet, Gate, HostId, Limits, Outcome, Phase, PlanError,
    RetryPolicy,
};

use super::{Story, direct, one_at_a_time, story};

#[test]
fn events_out_of_place_have_names_and_change_nothing() {
    let mut story = story(
        2,
        Limits {
            sessions: 1,
            logins: 1,
            ..Limits::default()
        },
    );
    story.actions();
    let host = HostId(0);
    let unknown = story.event(9, Event::KeysExchanged);
    assert_eq!(unknown, Err(EventError::UnknownHost(HostId(9))));
    let waiting = story.event(1, Event::Finished(Outcome::Exit(0)));
    assert_eq!(waiting, Err(EventError::NotRunning(HostId(1))));
    let not_passed = |gate| Err(EventError::NotPassed { host, gate });
    assert_eq!(
        story.event(0, Event::Entered(Phase::Login)),
        not_passed(Gate::Login)
    );
    assert_eq!(
        story.event(0, Event::KeysExchanged),
        not_passed(Gate::Login)
    );
    assert_eq!(
        story.event(0, Event::Entered(Phase::Command)),
        not_passed(Gate::Session)
    );
    assert_eq!(
        story.event(0, Event::Left(Gate::Signature)),
        not_passed(Gate::Signature)
    );
    story.bring(0, Phase::Login);
    let past = Err(EventError::PastGate {
        host,
        gate: Gate::Login,
    });
    assert_eq!(story.event(0, Event::Reached(Gate::Login)), past);
    let (from, to) = (Phase::Login, Phase::Connect);
    let backwards = Err(EventError::Backwards { host, from, to });
    assert_eq!(story.event(0, Event::Entered(to)), backwards);
    story.tell(0, Event::Reached(Gate::Signature));
    let waits = Err(EventError::Waiting {
        host,
        gate: Gate::Signature,
    });
    assert_eq!(story.event(0, Event::Entered(Phase::Session)), waits);
    story.actions();
    assert!(story.pass(0, Gate::Session));
    story.tell(0, Event::Finished(Outcome::Exit(0)));
    assert_eq!(story.outcome(), Outcome::Exit(0));
    story.tell(0, Event::Finished(Outcome::Exit(1)));
    assert!(!story.pass(0, Gate::Session));
    assert_eq!(story.results(), [], "what comes after the end is ignored");
    assert_eq!(story.started(), [1]);
}

#[test]
fn hosts_may_be_numbered_with_gaps_and_start_in_the_order_of_the_jobs() {
    let jobs = [u32::MAX, 5, 1_000_000, 0].map(direct);
    let fleet = Fleet::new(
        jobs,
        one_at_a_time(),
        Deadlines::default(),
        RetryPolicy::default(),
        1,
    );
    let mut story = Story {
        fleet: fleet.unwrap(),
        now: Instant::now(),
    };
    for job in jobs {
        assert_eq!(story.started(), [job.host.0]);
        story.tell(job.host.0, Event::Finished(Outcome::Exit(0)));
    }
    assert!(story.fleet.is_done());
    assert_eq!(
        story.event(1, Event::KeysExchanged),
        Err(EventError::UnknownHost(HostId(1)))
    );
}

#[test]
fn plans_that_cannot_be_carried_out_are_refused() {
    let plan = |jobs: &[u32], limits| {
        let jobs = jobs.iter().copied().map(direct);
        Fleet::new(
            jobs,
            limits,
            Deadlines::default(),
            RetryPolicy::default(),
            1,
        )
        .map(drop)
    };
    let twice = plan(&[3, 1, 3], Limits::default());
    assert_eq!(twice, Err(PlanError::DuplicateHost(HostId(3))));
    let nobody = plan(
        &[1],
        Limits {
            signatures: 0,
            ..Limits::default()
        },
    );
    assert_eq!(nobody, Err(PlanError::ZeroLimit("signatures")));
}

#[test]
fn a_run_over_no_hosts_is_over() {
    let mut story = story(0, Limits::default());
    assert!(story.fleet.is_done());
    assert_eq!(story.actions(), []);
    assert_eq!(story.fleet.poll_timeout(), None);
}
