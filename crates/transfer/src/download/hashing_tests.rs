//! Downloads with hashes of both ends: what is unchanged, what is verified, and hosts that cannot hash.

#![allow(clippy::unwrap_used)]

use super::tests::{Story, Told, noise, plan, site};
use super::*;
use crate::fake_hasher::{CHECKSUM, Hasher, verified};
use crate::fake_server::{MODIFIED, Node};
use crate::{Hashing, Verify};

fn play(story: &mut Story, hashing: Hashing, preserve: bool) -> Told {
    story.play(DownloadPlan {
        hashing,
        preserve,
        ..plan(&[b"/site"])
    })
}

#[test]
fn what_has_the_same_hash_is_unchanged_whatever_its_time() {
    let mut story = Story::new(&site());
    play(&mut story, CHECKSUM, true);
    assert_eq!(story.hashed, 0, "there was nothing to compare with");
    for (_, modified) in story.there.values_mut() {
        *modified = 7;
    }
    let told = play(&mut story, CHECKSUM, false);
    assert_eq!((told.tally.unchanged, told.tally.octets), (2, 0));
    assert_eq!(story.there[&b"site/a/x"[..]].1, 7);
    // With -p it gets the time.
    let told = play(&mut story, CHECKSUM, true);
    assert_eq!((told.tally.unchanged, told.tally.octets), (2, 0));
    assert_eq!(story.there[&b"site/a/x"[..]].1, MODIFIED);
    // Of the same size and time, and other octets.
    story.there.get_mut(&b"site/a/x"[..]).unwrap().0[9] ^= 1;
    let told = play(&mut story, CHECKSUM, true);
    assert_eq!((told.tally.unchanged, told.tally.octets), (1, 700_000));
    assert_eq!(story.contents(b"site/a/x"), Some(&noise(700_000)[..]));
}

#[test]
fn where_hashes_must_be_had_a_host_without_gives_nothing() {
    for (hashing, flag) in [
        (CHECKSUM, "--checksum"),
        (verified(Verify::Always), "--verify=always"),
    ] {
        let mut story = Story::new(&site());
        story.hasher = Some(Hasher::None);
        let told = play(&mut story, hashing, false);
        assert!(story.there.is_empty());
        let [(path, trouble)] = told.failed.as_slice() else {
            panic!("it is told once: {:?}", told.failed);
        };
        assert_eq!(path, b"/site");
        assert!(trouble.to_string().contains(flag), "{trouble}");
    }
}

#[test]
fn what_has_arrived_is_held_against_what_the_host_has() {
    for verifies in [Verify::Auto, Verify::Always] {
        let mut story = Story::new(&site());
        story.channels = 1;
        let told = play(&mut story, verified(verifies), false);
        // The empty one has nothing to be hashed.
        assert_eq!((told.failed, told.tally.verified), (vec![], 2));
        assert_eq!(told.tally.done, 6);
        let mut story = Story::new(&site());
        story.spoils = true;
        let told = play(&mut story, verified(verifies), false);
        let troubles: Vec<&Trouble> = told.failed.iter().map(|(_, trouble)| trouble).collect();
        assert_eq!(troubles, [&Trouble::Differs, &Trouble::Differs]);
        assert_eq!(story.there.len(), 1);
    }
}

#[test]
fn where_it_can_be_done_without_a_host_without_gives_everything_and_it_is_told() {
    for (hasher, why) in [
        (Hasher::None, "no hashing program"),
        (Hasher::SeesNothing, "do not see"),
        (Hasher::Ends(0), "has ended"),
    ] {
        let mut story = Story::new(&site());
        story.hasher = Some(hasher);
        let told = play(&mut story, verified(Verify::Auto), false);
        assert_eq!((told.failed, told.tally.done), (vec![], 6));
        let said = told.tally.why_unverified.unwrap();
        assert!(said.contains(why), "{hasher:?}: {said}");
    }
    let mut story = Story::new(&site());
    story.hasher = Some(Hasher::SeesHalf);
    let told = play(&mut story, verified(Verify::Auto), false);
    assert_eq!(told.failed[0].1, Trouble::Unhashed);
}

#[test]
fn an_interruption_or_a_lost_channel_at_any_time_is_borne() {
    let both = Hashing {
        compares: true,
        verifies: Verify::Always,
    };
    for round in 0..40 {
        let mut story = Story::new(&site());
        story
            .there
            .insert(b"site/a/x".to_vec(), (noise(700_000), 7));
        story.interrupt_after = Some(round);
        play(&mut story, both, true);
        let mut story = Story::new(&site());
        story.channels = 2;
        story.lost = vec![(round, 1 + round % 2)];
        let told = play(&mut story, both, true);
        assert_eq!((told.failed, told.tally.verified), (vec![], 2));
    }
    let mut story = Story::new(&[(b"/site", Node::Folder)]);
    assert_eq!(play(&mut story, both, false).tally.done, 1);
}
