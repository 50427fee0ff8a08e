//! What channels cost that are lost, or get nothing more to do.

use super::tests::{Story, entry, file, noise, plan};
use super::*;
use crate::fake_server::{FakeServer, Node};

#[test]
fn channels_that_are_retired_get_nothing_more_and_everything_arrives() {
    for round in [0, 3, 20, 100] {
        let len = 40 << 20;
        let mut story = Story::new(FakeServer::default(), vec![noise(len)]);
        story.channels = 4;
        story.retired = Some((round, 1..4));
        let told = story.play(plan(b"/big", vec![entry(b"", file(len), None)]));
        assert_eq!(told.failed, []);
        assert!(story.server.file(b"/big") == Some(&noise(len)[..]));
        // What was read ahead and queued.
        assert!(story.sent_by_retired < 3 << 20, "{}", story.sent_by_retired);
    }
}

/// A tree of small files and a large one, over four channels; each round of the losses is one of its channels' last.
fn arrives_in_spite_of(lost: &[(usize, usize)], is_plain: bool) {
    let large = 9_500_000;
    let mut entries = vec![entry(b"", Kind::Folder, None)];
    let mut contents = vec![vec![]];
    for number in 0..200usize {
        let len = if number == 3 { large } else { number * 997 };
        entries.push(entry(number.to_string().as_bytes(), file(len), Some(0)));
        contents.push(noise(len));
    }
    let mut server = FakeServer::with(&[(b"/srv", Node::Folder)]);
    server.is_plain = is_plain;
    let mut story = Story::new(server, contents.clone());
    story.channels = 4;
    story.lost = lost.to_vec();
    let plan = UploadPlan {
        method: Method::Sftp,
        ..plan(b"/srv", entries)
    };
    let told = story.play(plan);
    assert_eq!(told.failed, []);
    assert_eq!(told.done.len(), 201, "each is told once");
    for (number, expected) in contents[1..].iter().enumerate() {
        let path = format!("/srv/site/{number}");
        assert!(
            story.server.file(path.as_bytes()) == Some(expected),
            "{path}, lost {lost:?}"
        );
    }
    assert_eq!(story.parts(), 0);
}

#[test]
fn whenever_channels_are_lost_everything_arrives() {
    // The files' whole lives are in the first rounds.
    for round in 0..40 {
        arrives_in_spite_of(&[(round, 1 + round % 3)], round % 4 == 3);
    }
    arrives_in_spite_of(&[(2, 1), (5, 2), (9, 3)], false);
    arrives_in_spite_of(&[(30, 3), (31, 2), (60, 1)], false);
}
