//! Uploads that are cut, and gone on with.

#![allow(clippy::unwrap_used)]

use std::ops::Range;
use std::sync::OnceLock;

use super::resuming::MOST_UNPROVEN;
use super::tests::{PART, Story, entry, file, noise, plan};
use super::*;
use crate::fake_server::{FakeServer, Node};

/// Octets of the file: several steps.
const LEN: usize = 6 * CHECKPOINT as usize + 12_345;

fn contents() -> &'static [u8] {
    static CONTENTS: OnceLock<Vec<u8>> = OnceLock::new();
    CONTENTS.get_or_init(|| noise(LEN))
}

fn story(channels: usize) -> Story {
    let mut story = Story::new(FakeServer::default(), vec![contents().to_vec()]);
    story.channels = channels;
    story.proven = Some(Segments::default());
    story
}

fn one_file() -> UploadPlan {
    UploadPlan {
        ahead: 16,
        ..plan(b"/f", vec![entry(b"", file(LEN), None)])
    }
}

/// Goes on to the end; returns how many octets were sent.
fn end(story: &mut Story) -> u64 {
    story.cut_after = None;
    let told = story.play(one_file());
    assert_eq!(told.failed, []);
    assert_eq!(story.over, [0], "its place in the journal is others'");
    assert!(
        story.server.file(b"/f") == Some(contents()),
        "it is not the same"
    );
    assert_eq!(story.parts(), 0, "a part is left");
    told.tally.octets
}

#[test]
fn what_is_proven_is_not_sent_again_wherever_it_was_cut() {
    for channels in [1, 2] {
        for round in [3, 500, 1100] {
            let mut story = story(channels);
            story.cut_after = Some(round / channels);
            let sent = story.play(one_file()).tally.octets;
            let proven = story.proven.clone().unwrap().octets();
            let slack = MOST_UNPROVEN * channels as u64;
            assert!(sent - proven <= slack, "{proven} of {sent} are proven");
            assert_eq!(end(&mut story), LEN as u64 - proven);
        }
    }
}

#[test]
fn what_nobody_has_proven_is_bounded_on_each_channel() {
    for channels in [1, 2] {
        let mut story = story(channels);
        story.server.holds_fsync = true;
        // Enough for all of it.
        story.cut_after = Some(2000);
        let sent = story.play(one_file()).tally.octets;
        assert_eq!(sent, MOST_UNPROVEN * channels as u64);
        assert_eq!(story.proven, Some(Segments::default()));
        story.server.holds_fsync = false;
        assert_eq!(end(&mut story), LEN as u64);
    }
}

#[test]
fn what_a_lost_channel_has_not_proven_is_proven_by_others() {
    for round in [3, 200, 300, 450] {
        let mut story = story(3);
        story.lost = vec![(round, 1), (round + 150, 2)];
        let told = story.play(one_file());
        assert_eq!(told.failed, []);
        assert!(story.server.file(b"/f") == Some(contents()), "lost {round}");
    }
}

#[test]
fn a_file_that_its_owner_may_not_write_is_gone_on_with_too() {
    for (preserve, channels) in [(true, 1), (false, 1), (true, 2), (false, 2)] {
        let plan = || UploadPlan {
            preserve,
            ..one_file()
        };
        let mut story = story(channels);
        (story.mode, story.server.modes_bind) = (0o444, true);
        story.cut_after = Some(700 / channels);
        story.play(plan());
        let proven = story.proven.clone().unwrap().octets();
        assert!(proven > 0);
        story.cut_after = None;
        let told = story.play(plan());
        assert_eq!(told.failed, []);
        assert_eq!(told.tally.octets, LEN as u64 - proven);
        assert_eq!(story.server.modes[&b"/f"[..]].0 & 0o777, 0o444);
        let set = story.server.set.iter();
        assert_eq!(set.filter(|(path, _)| path == b"/f").count(), 0);
    }
}

#[test]
fn holes_are_neither_sent_nor_lost_when_it_goes_on() {
    let mut story = story(1);
    let from = CHECKPOINT as usize;
    story.contents[0][from..2 * from].fill(0);
    story.data = Some(vec![0..CHECKPOINT, 2 * CHECKPOINT..LEN as u64 - 99]);
    story.contents[0][LEN - 99..].fill(0);
    let contents = story.contents[0].clone();
    story.cut_after = Some(700);
    story.play(one_file());
    let proven = story.proven.clone().unwrap();
    let rest = missing(&proven, story.data.as_ref().unwrap());
    assert!(rest <= LEN as u64 - 2 * CHECKPOINT - 99);
    story.cut_after = None;
    let told = story.play(one_file());
    assert_eq!(told.tally.octets, rest);
    assert!(story.server.file(b"/f") == Some(&contents[..]));
}

/// Octets of data that are not proven.
fn missing(proven: &Segments, data: &[Range<u64>]) -> u64 {
    let missing = proven.missing(data).into_iter();
    missing.map(|range| range.end - range.start).sum()
}

#[test]
fn a_file_of_ten_thousand_holes_is_noted_as_any_other() {
    const EACH: usize = 4_000;
    let len = 20_000 * EACH;
    for channels in [1, 2] {
        let mut story = story(channels);
        story.contents[0] = noise(len);
        let pieces = story.contents[0].chunks_mut(EACH);
        pieces.step_by(2).for_each(|hole| hole.fill(0));
        let contents = story.contents[0].clone();
        let extents = (0..len as u64).step_by(2 * EACH);
        let extents = extents.map(|hole| hole + EACH as u64..hole + 2 * EACH as u64);
        let data: Vec<Range<u64>> = extents.collect();
        story.data = Some(data.clone());
        story.cut_after = Some(950 / channels);
        let one_file = || UploadPlan {
            ahead: 16,
            ..plan(b"/f", vec![entry(b"", file(len), None)])
        };
        let sent = story.play(one_file()).tally.octets;
        let proven = story.proven.clone().unwrap();
        let rest = missing(&proven, &data);
        let noted = len as u64 / 2 - rest;
        let slack = MOST_UNPROVEN * channels as u64;
        assert!(sent - noted <= slack, "{noted} of {sent} are proven");
        assert!(
            proven.iter().len() < 100,
            "{} segments",
            proven.iter().len()
        );
        story.cut_after = None;
        let told = story.play(one_file());
        assert_eq!((told.failed.len(), told.tally.octets), (0, rest));
        assert!(story.server.file(b"/f") == Some(&contents[..]));
    }
}

/// What is there in place of the part; all of the file is sent again.
fn is_not_taken_over(change: impl FnOnce(&mut FakeServer)) {
    let mut story = story(1);
    story.cut_after = Some(700);
    story.play(one_file());
    assert!(!story.proven.as_ref().unwrap().is_empty());
    change(&mut story.server);
    assert_eq!(end(&mut story), LEN as u64);
    assert_eq!(story.server.links_opened, 0, "a link was followed");
}

#[test]
fn a_part_that_is_gone_too_short_or_no_file_is_made_anew() {
    is_not_taken_over(|server| drop(server.nodes.remove(PART)));
    is_not_taken_over(|server| {
        let short = vec![1; CHECKPOINT as usize - 1];
        server.nodes.insert(PART.to_vec(), Node::File(short));
    });
    is_not_taken_over(|server| {
        let link = Node::Link(b"/etc/shadow".to_vec());
        server.nodes.insert(PART.to_vec(), link);
    });
    // One that says so much that it has the part's size.
    is_not_taken_over(|server| {
        let link = Node::Link(vec![b'x'; LEN]);
        server.nodes.insert(PART.to_vec(), link);
    });
}

#[test]
fn a_part_that_is_another_when_it_is_open_or_not_ours_is_made_anew() {
    is_not_taken_over(|server| server.changes_when_opened = true);
    is_not_taken_over(|server| server.refuses_attributes = 1);
}

#[test]
fn a_server_without_fsync_proves_nothing() {
    let mut story = story(1);
    story.server.is_plain = true;
    story.cut_after = Some(1000);
    story.play(one_file());
    assert_eq!(story.proven, Some(Segments::default()));
    assert_eq!(end(&mut story), LEN as u64);
}

#[test]
fn a_disk_that_does_not_take_it_is_named_and_nothing_is_proven() {
    let mut story = story(1);
    story.server.refuses_fsync = true;
    let told = story.play(one_file());
    let doing = "writing to the disk";
    assert!(
        matches!(&told.failed[..], [(_, Trouble::Remote { doing: d, .. })] if *d == doing),
        "{:?}",
        told.failed
    );
    assert_eq!(story.proven, Some(Segments::default()));
    assert_eq!((story.parts(), story.over), (0, vec![0]));
}

#[test]
fn an_interruption_while_it_goes_on_leaves_no_part_or_what_can_be_gone_on_with() {
    let mut untouched = 0;
    for round in [0, 2, 4, 6, 8, 10] {
        let mut story = story(1);
        story.cut_after = Some(500);
        story.play(one_file());
        story.cut_after = None;
        story.interrupt_after = Some(round);
        story.play(one_file());
        let proven = story.proven.clone().unwrap().octets();
        if story.parts() > 0 {
            untouched += 1;
            story.interrupt_after = None;
            assert_eq!(end(&mut story), LEN as u64 - proven, "after {round}");
        }
    }
    assert!((1..6).contains(&untouched), "{untouched}");
}
