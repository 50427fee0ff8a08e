//! Ctrl-C, once and twice.

use sshoal_fleet::{Action, Event, FailureKind, Fate, Gate, HostId, Limits, Outcome, Phase};

use super::{SECOND, kind_of_abort, story};

#[test]
fn an_interruption_tells_who_ran_from_who_did_not() {
    let mut story = story(
        6,
        Limits {
            sessions: 5,
            ..Limits::default()
        },
    );
    story.actions();
    story.fail(4, FailureKind::Throttled, true, Fate::NotSent);
    story.actions();
    story.bring(1, Phase::Login);
    story.bring(2, Phase::Command);
    story.bring(3, Phase::Login);
    assert!(story.pass(3, Gate::Session));
    story.fleet.interrupt(story.now);
    story.fleet.interrupt(story.now);
    let (aborted, interrupted): (Vec<_>, Vec<_>) = story
        .actions()
        .into_iter()
        .partition(|action| matches!(action, Action::Abort { .. }));
    let hosts = |actions: &[Action]| {
        actions
            .iter()
            .filter_map(|action| Some(action.host()?.0))
            .collect::<Vec<_>>()
    };
    assert_eq!(hosts(&aborted), [0, 1, 5]);
    let asked = [2, 3].map(|host| Action::Interrupt { host: HostId(host) });
    assert_eq!(interrupted, asked);
    assert_eq!(
        story.outcome(),
        Outcome::NotStarted,
        "host 4 was in back-off"
    );

    // Host 0 had not sent its command, host 3 neither when asked; host 2 obeys; host 1's connection says otherwise.
    for host in [0, 3, 5] {
        story.fail(host, FailureKind::Lost, true, Fate::NotSent);
        assert_eq!(story.outcome(), Outcome::NotStarted);
    }
    story.fail(1, FailureKind::Protocol, false, Fate::MayHaveRun);
    assert_eq!(story.outcome().failure_kind(), Some(FailureKind::Lost));
    story.tell(2, Event::Finished(Outcome::Exit(130)));
    assert_eq!(story.outcome(), Outcome::Exit(130));
    assert!(story.fleet.is_done());
    let progress = story.fleet.progress();
    assert_eq!(
        (progress.done, progress.failed, progress.not_started),
        (6, 2, 4)
    );
}

#[test]
fn an_interrupted_command_that_does_not_end_is_reported_as_not_confirmed() {
    let mut story = story(1, Limits::default());
    story.actions();
    story.bring(0, Phase::Command);
    story.fleet.interrupt(story.now);
    assert_eq!(story.actions(), [Action::Interrupt { host: HostId(0) }]);
    story.now += 5 * SECOND;
    assert_eq!(kind_of_abort(&story.actions()), FailureKind::Lost);
    story.fail(0, FailureKind::Lost, false, Fate::Ran);
    let Outcome::Failed { failure, fate } = story.outcome() else {
        panic!("no failure");
    };
    assert_eq!((failure.kind, fate), (FailureKind::Lost, Fate::Ran));
    assert!(
        failure.detail.contains("not confirmed"),
        "{}",
        failure.detail
    );
}

#[test]
fn abandoning_needs_no_answers() {
    let mut story = story(
        3,
        Limits {
            sessions: 2,
            ..Limits::default()
        },
    );
    story.actions();
    story.bring(0, Phase::Command);
    story.fleet.interrupt(story.now);
    story.fleet.abandon(story.now);
    assert!(story.fleet.is_done());
    let kinds: Vec<_> = story
        .results()
        .iter()
        .map(|result| result.outcome.failure_kind())
        .collect();
    assert_eq!(kinds, [None, Some(FailureKind::Lost), None]);
    let hosts: Vec<u32> = story
        .actions()
        .iter()
        .filter_map(|action| Some(action.host()?.0))
        .collect();
    assert_eq!(
        hosts,
        [1, 0],
        "both connections are to be torn down, and nobody is signalled"
    );
    assert_eq!(story.fleet.poll_timeout(), None);
}
