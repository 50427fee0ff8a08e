//! Batches: who begins when, and when nothing is begun any more.

use std::num::NonZeroU32;

use sshoal_fleet::{
    Action, Event, Failure, FailureKind, Fate, Fleet, Gate, HostId, Job, JumpEvent, JumpId, Limits,
    Outcome, Phase, RetryPolicy, Rolling,
};

use super::{SECOND, Story, story};

fn rolling(canaries: u32, batch: u32, max_failures: Option<u32>) -> Rolling {
    Rolling {
        canaries,
        batch: NonZeroU32::new(batch),
        max_failures,
    }
}

fn in_batches(hosts: u32, rolling: &Rolling) -> Story {
    let story = story(hosts, Limits::default());
    Story {
        fleet: story.fleet.rolling(rolling),
        ..story
    }
}

fn end(story: &mut Story, host: u32, status: u32) {
    story.bring(host, Phase::Command);
    story.tell(host, Event::Finished(Outcome::Exit(status)));
}

fn asked(ended: u32) -> [Action; 1] {
    [Action::AgreeToBatch { ended }]
}

fn not_started(story: &mut Story) -> Vec<u32> {
    let results = story.results().into_iter();
    let not_started = results.filter(|result| result.outcome == Outcome::NotStarted);
    not_started.map(|result| result.host.0).collect()
}

#[test]
fn a_batch_begins_when_the_one_before_has_ended_and_the_performer_agrees() {
    let mut story = in_batches(5, &rolling(1, 2, None));
    assert_eq!(story.fleet.progress().waiting, 5);
    assert_eq!(story.started(), [0]);
    story.fleet.begin_batch();
    assert_eq!(story.started(), [], "nobody has asked");
    end(&mut story, 0, 0);
    assert_eq!(story.actions(), asked(1));
    assert_eq!(story.actions(), [], "it is asked once");
    story.fleet.begin_batch();
    assert_eq!(story.started(), [1, 2]);
    end(&mut story, 2, 0);
    assert_eq!(story.actions(), [], "host 1 has not ended");
    end(&mut story, 1, 1);
    assert_eq!(story.actions(), asked(2));
    story.fleet.begin_batch();
    assert_eq!(story.started(), [3, 4]);
    end(&mut story, 3, 0);
    end(&mut story, 4, 0);
    assert!(story.fleet.is_done(), "after the last nobody is asked");
    assert_eq!(story.actions(), []);
    assert_eq!(story.fleet.progress().failed, 1);
}

#[test]
fn a_host_that_is_tried_again_keeps_its_batch_open() {
    let mut story = in_batches(2, &rolling(0, 1, None));
    assert_eq!(story.started(), [0]);
    story.fail(0, FailureKind::Throttled, true, Fate::NotSent);
    assert_eq!(story.actions(), []);
    story.now += 20 * SECOND;
    assert_eq!(story.started(), [0]);
    end(&mut story, 0, 0);
    assert_eq!(story.actions(), asked(1));
}

#[test]
fn one_canary_that_fails_is_one_too_many() {
    let mut story = in_batches(4, &rolling(2, 0, None));
    assert_eq!(story.started(), [0, 1]);
    end(&mut story, 0, 1);
    assert!(story.fleet.is_halted());
    let aborts = story.actions();
    assert!(matches!(
        aborts[..],
        [Action::Abort {
            host: HostId(1),
            ..
        }]
    ));
    story.fail(1, FailureKind::Lost, true, Fate::NotSent);
    assert_eq!(not_started(&mut story), [2, 3, 1]);
    assert!(story.fleet.is_done());
}

#[test]
fn failures_are_counted_over_all_batches_and_those_that_run_end_in_peace() {
    let mut story = in_batches(6, &rolling(0, 3, Some(1)));
    assert_eq!(story.started(), [0, 1, 2]);
    end(&mut story, 0, 1);
    end(&mut story, 1, 0);
    end(&mut story, 2, 0);
    assert_eq!(story.actions(), asked(1));
    story.fleet.begin_batch();
    assert_eq!(story.started(), [3, 4, 5]);
    story.bring(3, Phase::Command);
    story.bring(4, Phase::Login);
    assert!(story.pass(4, Gate::Session));
    story.results();
    end(&mut story, 5, 1);
    assert!(story.fleet.is_halted());
    assert_eq!(story.actions(), [], "what may run is left alone");
    story.tell(4, Event::Entered(Phase::Command));
    story.tell(4, Event::Finished(Outcome::Exit(0)));
    story.tell(3, Event::Finished(Outcome::Exit(0)));
    assert!(story.fleet.is_done());
    assert_eq!(story.fleet.progress().failed, 2);
    assert_eq!(story.fleet.progress().not_started, 0);
}

#[test]
fn without_batches_too_many_failures_halt_the_run_too() {
    let mut story = in_batches(3, &rolling(0, 0, Some(0)));
    assert_eq!(story.started(), [0, 1, 2]);
    end(&mut story, 1, 7);
    assert_eq!(story.actions().len(), 2, "two connections are torn down");
    // A failure that could be tried again is not, any more.
    story.fail(0, FailureKind::Throttled, true, Fate::NotSent);
    story.fail(2, FailureKind::Throttled, true, Fate::NotSent);
    assert_eq!(not_started(&mut story), [0, 2]);
}

#[test]
fn the_performer_may_halt_between_batches_and_the_user_interrupt() {
    for interrupted in [false, true] {
        let mut story = in_batches(3, &rolling(0, 1, None));
        story.started();
        end(&mut story, 0, 0);
        assert_eq!(story.actions(), asked(1));
        match interrupted {
            true => story.fleet.interrupt(story.now),
            false => story.fleet.halt(story.now),
        }
        assert_eq!(not_started(&mut story), [1, 2]);
        assert!(story.fleet.is_done());
        // The answer has crossed the end.
        story.fleet.begin_batch();
        assert_eq!(story.actions(), []);
        assert_eq!(story.fleet.poll_timeout(), None);
    }
}

/// Hosts in batches, some behind a jump host.
fn behind_a_jump_host(jobs: &[Option<JumpId>], rolling: &Rolling) -> Story {
    let jobs = jobs.iter().zip(0..).map(|(&via, host)| Job {
        host: HostId(host),
        via,
    });
    let retry = RetryPolicy::default();
    let fleet = Fleet::new(jobs, Limits::default(), Default::default(), retry, 1).unwrap();
    Story {
        fleet: fleet.rolling(rolling),
        ..story(0, Limits::default())
    }
}

fn give_jump_host_up(story: &mut Story) -> Vec<u32> {
    let down = Failure::new(FailureKind::AuthDenied, "as the story wants");
    story
        .fleet
        .handle_jump(story.now, JumpId(0), JumpEvent::Down(down));
    story.results().iter().map(|result| result.host.0).collect()
}

#[test]
fn a_jump_host_that_is_given_up_takes_the_hosts_of_later_batches_with_it() {
    let via = Some(JumpId(0));
    let mut story = behind_a_jump_host(&[None, via, via, None], &rolling(0, 2, None));
    story.actions();
    assert_eq!(give_jump_host_up(&mut story), [1, 2]);
    end(&mut story, 0, 0);
    assert_eq!(story.actions(), asked(1));
    story.fleet.begin_batch();
    assert_eq!(story.started(), [3]);
}

#[test]
fn nobody_is_asked_for_a_batch_that_is_empty_by_then() {
    let via = Some(JumpId(0));
    let mut story = behind_a_jump_host(&[None, via, via, None], &rolling(0, 1, None));
    assert_eq!(story.started(), [0]);
    end(&mut story, 0, 0);
    assert_eq!(story.actions(), asked(1));
    story.fleet.begin_batch();
    story.actions();
    story.results();
    assert_eq!(give_jump_host_up(&mut story), [1, 2]);
    assert_eq!(story.actions(), asked(2), "the batch of host 2 is left out");
    story.fleet.begin_batch();
    assert_eq!(story.started(), [3]);
    end(&mut story, 3, 0);
    assert!(story.fleet.is_done());
}
