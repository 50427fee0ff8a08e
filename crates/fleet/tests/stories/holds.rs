//! Hosts that wait for an answer of the user's.

use sshoal_fleet::{
    Action, Event, EventError, Failure, FailureKind, Fate, HostId, Limits, Outcome, Phase,
};

use super::{SECOND, one_at_a_time, story};

fn refusal() -> Failure {
    Failure::new(FailureKind::HostKeyUnknown, "the user said no")
}

#[test]
fn a_held_host_holds_nothing_no_clock_of_it_runs_and_it_starts_anew_when_it_may() {
    let mut story = story(2, one_at_a_time());
    assert_eq!(story.started(), [0]);
    story.bring(0, Phase::Login);
    story.tell(0, Event::Held);
    assert_eq!(story.started(), [1], "the only session is free again");
    story.bring(1, Phase::Command);
    assert_eq!(story.fleet.progress().held, 1);
    story.tell(1, Event::Finished(Outcome::Exit(0)));
    story.now += 3600 * SECOND;
    assert_eq!(story.actions(), []);
    assert_eq!(story.fleet.poll_timeout(), None);
    story.fleet.resume(HostId(0)).unwrap();
    let again = Action::Start {
        host: HostId(0),
        attempt: 1,
    };
    assert_eq!(story.actions(), [again], "asking was no attempt");
    story.bring(0, Phase::Command);
    story.tell(0, Event::Finished(Outcome::Exit(0)));
    let results = story.results();
    assert_eq!(results.len(), 2);
    assert_eq!((results[1].host, results[1].attempts), (HostId(0), 1));
}

#[test]
fn a_host_that_may_not_go_on_fails_with_the_reason_and_has_run_nothing() {
    let mut story = story(1, Limits::default());
    story.actions();
    story.bring(0, Phase::Login);
    story.tell(0, Event::Held);
    story
        .fleet
        .give_up(story.now, HostId(0), refusal())
        .unwrap();
    // Answers that come twice, or too late, change nothing.
    story.fleet.resume(HostId(0)).unwrap();
    story
        .fleet
        .give_up(story.now, HostId(0), refusal())
        .unwrap();
    let failed = Outcome::Failed {
        failure: refusal(),
        fate: Fate::NotSent,
    };
    assert_eq!(story.outcome(), failed);
    assert!(story.fleet.is_done());
    let unknown = EventError::UnknownHost(HostId(7));
    assert_eq!(story.fleet.resume(HostId(7)), Err(unknown));
}

#[test]
fn an_interruption_ends_the_wait() {
    let mut story = story(2, Limits::default());
    story.actions();
    story.bring(0, Phase::Login);
    story.tell(0, Event::Held);
    story.bring(1, Phase::Login);
    story.fleet.interrupt(story.now);
    assert_eq!(story.outcome(), Outcome::NotStarted);
    story.actions();
    story.tell(1, Event::Held);
    assert_eq!(story.outcome(), Outcome::NotStarted);
    assert!(story.fleet.is_done());
}

#[test]
fn a_host_that_is_parked_ends_by_no_deadline_but_by_the_user() {
    let mut story = story(2, Limits::default());
    story.actions();
    // It is late, and whoever performs it parks it all the same.
    story.now += 3600 * SECOND;
    story.actions();
    story.tell(0, Event::Parked);
    story.tell(1, Event::Parked);
    assert_eq!(story.fleet.progress().held, 2);
    story.fleet.resume(HostId(0)).unwrap();
    let again = Action::Start {
        host: HostId(0),
        attempt: 1,
    };
    assert_eq!(story.actions(), [again]);
    story.fleet.interrupt(story.now);
    story.actions();
    story.tell(0, Event::Parked);
    assert!(story.fleet.is_done());
    let results = story.results();
    assert_eq!(results.len(), 2);
    assert!(results.iter().all(|it| it.outcome == Outcome::NotStarted));
}
