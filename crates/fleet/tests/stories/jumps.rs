//! Jump hosts: first they, then the hosts behind them; their failures are their hosts' failures.

use std::time::{Duration, Instant};

use sshoal_fleet::{
    Action, Deadlines, Event, Failure, FailureKind, Fate, Fleet, Gate, HostId, Job, JumpEvent,
    JumpId, Limits, Outcome, Phase, RetryPolicy,
};

use super::{SECOND, Story, direct};

const JUMP: JumpId = JumpId(4);

/// Hosts 0 and 1 behind the jump host, host 2 not.
fn behind() -> Story {
    let via = |host| Job {
        host: HostId(host),
        via: Some(JUMP),
    };
    let fleet = Fleet::new(
        [via(0), via(1), direct(2)],
        Limits::default(),
        Deadlines::default(),
        RetryPolicy::default(),
        1,
    );
    Story {
        fleet: fleet.unwrap(),
        now: Instant::now(),
    }
}

/// The same with the jump host asked for and host 2 at its end.
fn asked() -> Story {
    let mut story = behind();
    assert_eq!(story.actions(), [connect(1), start(2, 1)]);
    story.bring(2, Phase::Session);
    story.tell(2, Event::Finished(Outcome::Exit(0)));
    assert_eq!(story.outcome(), Outcome::Exit(0));
    story
}

impl Story {
    fn jump(&mut self, event: JumpEvent) {
        self.fleet.handle_jump(self.now, JUMP, event);
    }

    fn jump_fails(&mut self, kind: FailureKind) {
        self.jump(JumpEvent::Down(Failure::new(kind, "jump host gate: no")));
    }

    /// Lets the time pass until the next timer.
    fn wait(&mut self) {
        self.now = self.fleet.poll_timeout().unwrap();
    }

    fn stranded(&mut self, host: u32, fate: Fate) {
        let failure = Failure::new(FailureKind::Unreachable, "jump host gate was lost");
        self.tell(host, Event::Stranded { failure, fate });
    }
}

fn connect(attempt: u32) -> Action {
    let jump = JUMP;
    Action::Connect { jump, attempt }
}

fn start(host: u32, attempt: u32) -> Action {
    let host = HostId(host);
    Action::Start { host, attempt }
}

#[test]
fn the_jump_host_comes_first_and_no_clock_runs_meanwhile() {
    let mut story = asked();
    assert_eq!(story.fleet.poll_timeout(), None, "nothing is overdue ever");
    story.now += 3600 * SECOND;
    story.jump(JumpEvent::Up);
    assert_eq!(story.actions(), [start(0, 1), start(1, 1)]);
    story.bring(0, Phase::Command);
    story.tell(0, Event::Finished(Outcome::Exit(0)));
    let result = story.results().remove(0);
    assert_eq!(
        result.times.total,
        Some(Duration::ZERO),
        "its own time only"
    );
}

#[test]
fn a_jump_host_that_denies_fails_its_hosts_at_once() {
    let mut story = asked();
    story.jump_fails(FailureKind::AuthDenied);
    let results = story.results();
    assert_eq!(results.len(), 2);
    for result in results {
        let Outcome::Failed { failure, fate } = result.outcome else {
            panic!("{result:?}");
        };
        assert_eq!(failure.kind, FailureKind::AuthDenied);
        assert_eq!(failure.detail, "jump host gate: no");
        assert_eq!((fate, result.attempts), (Fate::NotSent, 0));
    }
    assert_eq!(story.actions(), [], "and nobody tries again");
}

#[test]
fn a_jump_host_that_throttles_is_asked_again_after_a_while() {
    let mut story = asked();
    for attempt in 2..=6 {
        story.jump_fails(FailureKind::Throttled);
        assert_eq!(story.actions(), []);
        assert_eq!(story.results(), []);
        story.wait();
        assert_eq!(story.actions(), [connect(attempt)]);
    }
    story.jump_fails(FailureKind::Throttled);
    assert_eq!(story.results().len(), 2, "six attempts are enough");
}

#[test]
fn hosts_stranded_before_their_command_come_back_after_the_jump_host() {
    let mut story = asked();
    story.jump(JumpEvent::Up);
    story.actions();
    story.bring(0, Phase::Login);
    story.bring(1, Phase::Command);
    story.jump_fails(FailureKind::Unreachable);
    story.stranded(0, Fate::NotSent);
    story.stranded(1, Fate::Ran);
    let results = story.results();
    assert_eq!(results.len(), 1);
    assert_eq!(results[0].host, HostId(1));
    assert_eq!(results[0].outcome.failure_kind(), Some(FailureKind::Lost));
    let mut actions = Vec::new();
    while actions.is_empty() {
        story.wait();
        actions = story.actions();
    }
    assert_eq!(actions, [connect(1)], "it was of use: it begins anew");
    story.now += 60 * SECOND;
    assert_eq!(story.actions(), []);
    story.jump(JumpEvent::Up);
    assert_eq!(story.actions(), [start(0, 2)]);
    story.bring(0, Phase::Login);
    assert!(story.pass(0, Gate::Session));
}

#[test]
fn a_jump_host_that_breaks_down_again_and_again_is_given_up() {
    let mut story = asked();
    for attempt in 2..=6 {
        story.jump(JumpEvent::Up);
        story.jump_fails(FailureKind::Protocol);
        assert_eq!(story.results(), []);
        story.wait();
        assert_eq!(story.actions(), [connect(attempt)]);
    }
    story.jump(JumpEvent::Up);
    story.actions();
    story.jump_fails(FailureKind::Protocol);
    story.stranded(0, Fate::NotSent);
    story.stranded(1, Fate::NotSent);
    assert_eq!(story.results().len(), 2, "there is no way to come back on");
}

#[test]
fn an_interrupted_run_waits_for_no_jump_host() {
    let mut story = asked();
    story.jump_fails(FailureKind::Throttled);
    story.fleet.interrupt(story.now);
    let outcomes: Vec<Outcome> = story
        .results()
        .into_iter()
        .map(|result| result.outcome)
        .collect();
    assert_eq!(outcomes, [Outcome::NotStarted, Outcome::NotStarted]);
    story.now += 60 * SECOND;
    story.jump(JumpEvent::Up);
    assert!(
        story
            .actions()
            .iter()
            .all(|action| matches!(action, Action::Abort { .. }))
    );
}

#[test]
fn what_is_said_of_jump_hosts_unasked_is_ignored() {
    let mut story = behind();
    story.jump(JumpEvent::Up);
    story.jump_fails(FailureKind::AuthDenied);
    story
        .fleet
        .handle_jump(story.now, JumpId(99), JumpEvent::Up);
    assert_eq!(story.results(), []);
    assert_eq!(story.actions(), [connect(1), start(2, 1)]);
}
