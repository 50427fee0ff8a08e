//! What is told to be surplus here, and when nothing is.

#![allow(clippy::unwrap_used)]

use super::tests::{Story, plan, site};
use super::*;
use crate::fake_server::Node;
use crate::glob::Excludes;
use crate::surplus::Deletion;

fn deleting(sources: &[&[u8]], deletion: Deletion) -> DownloadPlan {
    DownloadPlan {
        deletion,
        ..plan(sources)
    }
}

/// What is here already.
fn here(story: &mut Story, paths: &[&[u8]]) {
    for path in paths {
        story.there.insert(path.to_vec(), (b"old".to_vec(), 0));
    }
}

#[test]
fn what_the_host_does_not_have_goes() {
    for hides_types in [false, true] {
        let mut story = Story::new(&site());
        story.server.listings.hides_types = hides_types;
        here(
            &mut story,
            &[b"site/old", b"site/a/x", b"site/a/old", b"beside"],
        );
        let told = story.play(deleting(&[b"/site"], Deletion::Done));
        assert_eq!(told.failed, []);
        assert_eq!(
            story.deleted,
            [b"site/a/old".to_vec(), b"site/old".to_vec()]
        );
        assert_eq!(told.tally.deleted, 2);
        assert!(story.contents(b"beside").is_some());
        assert_eq!(story.contents(b"site/a/x").map(<[u8]>::len), Some(700_000));
    }
}

#[test]
fn a_file_that_is_named_has_nothing_beside_it() {
    let mut story = Story::new(&site());
    here(&mut story, &[b"old", b"a/old"]);
    let told = story.play(deleting(&[b"/site/a/x", b"/site/a"], Deletion::Done));
    assert_eq!(told.failed, []);
    assert_eq!(story.deleted, [b"a/old".to_vec()]);
    let mut story = Story::new(&site());
    here(&mut story, &[b"old"]);
    let told = story.play(deleting(&[b"/site/a/x"], Deletion::Done));
    assert_eq!((told.failed, story.deleted), (vec![], vec![]));
}

#[test]
fn an_image_of_a_device_stays_beside_what_has_no_name() {
    let mut story = Story::new(&site());
    let device = Node::Device(vec![1; 4096]);
    story.server.nodes.insert(b"/dev".to_vec(), Node::Folder);
    story.server.nodes.insert(b"/dev/disk".to_vec(), device);
    here(&mut story, &[b"old", b"disk"]);
    let told = story.play(deleting(&[b"/dev/disk", b"/site/"], Deletion::Done));
    assert_eq!(story.deleted, [b"old".to_vec()], "{:?}", told.failed);
}

#[test]
fn what_is_excluded_stays() {
    let mut story = Story::new(&site());
    here(&mut story, &[b"site/a/old", b"site/b.log"]);
    let told = story.play(DownloadPlan {
        excludes: Excludes::new([b"*.log".to_vec(), b"a/x".to_vec()]),
        ..deleting(&[b"/site"], Deletion::Done)
    });
    assert_eq!(told.failed, []);
    assert_eq!(story.deleted, [b"site/a/old".to_vec()]);
}

#[test]
fn nothing_goes_where_something_has_failed_or_is_interrupted() {
    let mut story = Story::new(&site());
    here(&mut story, &[b"site/old"]);
    story.server.bad_names = vec![b"../x".to_vec()];
    let told = story.play(deleting(&[b"/site"], Deletion::Done));
    assert_eq!(told.failed.last().unwrap().1, Trouble::NothingDeleted);
    assert_eq!((story.deleted.len(), told.tally.deleted), (0, 0));
    for round in 0..10 {
        let mut story = Story::new(&site());
        here(&mut story, &[b"site/a/x"]);
        story.interrupt_after = Some(round);
        story.play(deleting(&[b"/site"], Deletion::Done));
        assert_eq!(story.deleted.len(), 0, "{round}");
    }
}

#[test]
fn more_than_may_be_known_deletes_nothing() {
    let mut story = Story::new(&site());
    here(&mut story, &[b"site/old"]);
    story.limits = Some(Limits {
        kept: 600,
        ..Limits::default()
    });
    for number in 0..100 {
        let path = format!("/site/{number}").into_bytes();
        story.server.nodes.insert(path, Node::File(Vec::new()));
    }
    let told = story.play(deleting(&[b"/site"], Deletion::Done));
    assert!(matches!(told.failed[0].1, Trouble::TooMany { .. }));
    assert_eq!(story.deleted.len(), 0);
}

#[test]
fn what_would_go_is_told_and_nothing_is_fetched() {
    let mut story = Story::new(&site());
    here(&mut story, &[b"site/old", b"site/a/x"]);
    let told = story.play(DownloadPlan {
        preserve: true,
        ..deleting(&[b"/site"], Deletion::Told)
    });
    assert_eq!(told.failed, []);
    assert_eq!(story.deleted, [b"site/old".to_vec()]);
    let Tally {
        done,
        octets,
        deleted,
        ..
    } = told.tally;
    assert_eq!((done, octets, deleted), (0, 0, 0));
    assert_eq!(story.contents(b"site/a/x"), Some(&b"old"[..]));
    assert!(story.contents(b"site/old").is_some());
    assert!(story.finished.is_empty());
    // With nothing here nothing is made.
    let mut story = Story::new(&site());
    let told = story.play(deleting(&[b"/site"], Deletion::Told));
    assert_eq!((told.failed, story.there.len()), (vec![], 0));
}
