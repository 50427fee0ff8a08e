//! Uploads with hashes of both ends: what is unchanged, what is verified, and hosts that cannot hash.

#![allow(clippy::unwrap_used)]

use super::tests::{Story, Told, entry, file, noise, plan, tree};
use super::*;
use crate::fake_hasher::{CHECKSUM, Hasher, verified};
use crate::fake_server::{FakeServer, MODIFIED, Node};
use crate::{Hashing, Verify};

/// A tree into an empty folder.
fn story() -> (Story, UploadPlan) {
    let (entries, contents) = tree();
    let server = FakeServer::with(&[(b"/srv", Node::Folder)]);
    (Story::new(server, contents), plan(b"/srv", entries))
}

fn play(story: &mut Story, plan: &UploadPlan, hashing: Hashing) -> Told {
    story.play(UploadPlan {
        hashing,
        ..plan.clone()
    })
}

#[test]
fn what_has_the_same_hash_is_unchanged_whatever_its_time() {
    let (mut story, plan) = story();
    story.play(plan.clone());
    // Without -p the fake server has its own times.
    story.server.modes.clear();
    let old = story.server.nodes.clone();
    // Of the same size, and other octets, in a file and in what is a hard link here.
    let mut other = noise(300_000);
    other[7] ^= 1;
    story
        .server
        .nodes
        .insert(b"/srv/site/a/x".to_vec(), Node::File(other));
    story
        .server
        .nodes
        .insert(b"/srv/site/\xff\n".to_vec(), Node::File(b"larger".to_vec()));
    let told = play(&mut story, &plan, CHECKSUM);
    assert_eq!(told.failed, []);
    assert_eq!(story.server.nodes, old);
    assert_eq!(told.tally.octets, 300_003, "two files, whole");
    assert_eq!(story.hashed, 2, "those of equal size, one of them empty");
    // And all of them now.
    let told = play(&mut story, &plan, CHECKSUM);
    assert_eq!((told.tally.octets, told.failed.as_slice()), (0, &[][..]));
    let unchanged = |entry: usize| told.done.contains(&(entry, true));
    assert!(unchanged(2) && unchanged(3), "{:?}", told.done);
}

#[test]
fn an_unchanged_file_gets_its_mode_and_time_if_they_are_kept() {
    let mut story = Story::new(FakeServer::default(), vec![noise(10)]);
    story
        .server
        .nodes
        .insert(b"/f".to_vec(), Node::File(noise(10)));
    story.server.modes.insert(b"/f".to_vec(), (0o100_600, 77));
    let plan = UploadPlan {
        preserve: true,
        ..plan(b"/f", vec![entry(b"", file(10), None)])
    };
    let told = play(&mut story, &plan, CHECKSUM);
    assert_eq!(
        (told.done.as_slice(), told.tally.octets),
        (&[(0, true)][..], 0)
    );
    assert_eq!(story.server.modes[&b"/f"[..]], (0o640, MODIFIED));
    story.server.modes.insert(b"/f".to_vec(), (0o100_600, 77));
    story.server.refuses_attributes = 1;
    let told = play(&mut story, &plan, CHECKSUM);
    assert!(
        told.failed[0]
            .1
            .to_string()
            .contains("setting mode and times")
    );
    assert_eq!(story.server.file(b"/f"), Some(&noise(10)[..]));
}

#[test]
fn where_hashes_must_be_had_a_host_without_gets_nothing() {
    for (hashing, flag) in [
        (CHECKSUM, "--checksum"),
        (verified(Verify::Always), "--verify=always"),
    ] {
        let (mut story, plan) = story();
        story.hasher = Hasher::None;
        let told = play(&mut story, &plan, hashing);
        assert_eq!(story.server.nodes.len(), 1, "nothing was made");
        let [(path, trouble)] = told.failed.as_slice() else {
            panic!("it is told once: {:?}", told.failed);
        };
        assert_eq!(path, b"/srv");
        let said = trouble.to_string();
        assert!(said.contains(flag) && said.contains("sha256sum"), "{said}");
        assert_eq!(told.tally.failed, 7);
    }
}

#[test]
fn folders_alone_need_no_hashes() {
    let (mut story, mut plan) = story();
    plan.entries.truncate(2);
    story.hasher = Hasher::None;
    let told = play(&mut story, &plan, verified(Verify::Always));
    assert_eq!((told.failed.as_slice(), told.tally.done), (&[][..], 2));
}

#[test]
fn what_has_arrived_is_held_against_what_was_sent() {
    for verifies in [Verify::Auto, Verify::Always] {
        for channels in [1, 2] {
            let (mut story, plan) = story();
            story.channels = channels;
            let told = play(&mut story, &plan, verified(verifies));
            assert_eq!(told.failed, []);
            // The empty one, too.
            assert_eq!((told.tally.verified, told.tally.done), (3, 7));
            let told = play(&mut story, &plan, verified(Verify::Never));
            assert_eq!((told.tally.verified, story.hashed), (0, 0));
        }
    }
}

#[test]
fn what_differs_is_not_put_in_place() {
    let (mut story, plan) = story();
    story.server.nodes.extend([
        (b"/srv/site".to_vec(), Node::Folder),
        (b"/srv/site/a".to_vec(), Node::Folder),
        (b"/srv/site/a/x".to_vec(), Node::File(b"old".to_vec())),
    ]);
    story.hasher = Hasher::Spoils(1000);
    let told = play(&mut story, &plan, verified(Verify::Auto));
    let troubles: Vec<&Trouble> = told.failed.iter().map(|(_, trouble)| trouble).collect();
    // And the hard link to it.
    assert_eq!(troubles, [&Trouble::Differs, &Trouble::NoOriginal]);
    assert_eq!(story.server.file(b"/srv/site/a/x"), Some(&b"old"[..]));
    assert!(story.server.file(b"/srv/site/a/empty").is_some());
    assert_eq!(story.parts(), 0, "a part is left");
}

#[test]
fn where_it_can_be_done_without_a_host_without_gets_everything_and_it_is_told() {
    for (hasher, why) in [
        (Hasher::None, "no hashing program"),
        (Hasher::SeesNothing, "do not see"),
        (Hasher::Ends(0), "has ended"),
        (Hasher::Ends(1), "has ended"),
    ] {
        let (mut story, plan) = story();
        story.hasher = hasher;
        let told = play(&mut story, &plan, verified(Verify::Auto));
        assert_eq!((told.failed.as_slice(), told.tally.done), (&[][..], 7));
        let said = told.tally.why_unverified.unwrap();
        assert!(said.contains(why), "{hasher:?}: {said}");
    }
}

#[test]
fn a_file_that_the_host_cannot_hash_fails_where_others_can_be() {
    for (hasher, verifies) in [
        (Hasher::SeesHalf, Verify::Auto),
        (Hasher::SeesNothing, Verify::Always),
    ] {
        let (mut story, plan) = story();
        story.hasher = hasher;
        let told = play(&mut story, &plan, verified(verifies));
        assert!(
            told.failed
                .iter()
                .any(|(_, trouble)| *trouble == Trouble::Unhashed),
            "{:?}",
            told.failed
        );
        assert_eq!(story.parts(), 0);
    }
}

#[test]
fn an_interruption_at_any_time_leaves_no_part_and_ends() {
    for round in 0..40 {
        for hashing in [
            Hashing {
                compares: true,
                verifies: Verify::Always,
            },
            verified(Verify::Auto),
        ] {
            let (mut story, plan) = story();
            story
                .server
                .nodes
                .insert(b"/srv/site".to_vec(), Node::Folder);
            story
                .server
                .nodes
                .insert(b"/srv/site/\xff\n".to_vec(), Node::File(b"old".to_vec()));
            story.interrupt_after = Some(round);
            play(&mut story, &plan, hashing);
            assert_eq!(story.parts(), 0, "interrupted after {round}");
        }
    }
}

#[test]
fn whenever_channels_are_lost_everything_is_verified() {
    for round in 0..40 {
        let (mut story, plan) = story();
        story.channels = 3;
        story.lost = vec![(round, 1 + round % 2)];
        let told = play(&mut story, &plan, verified(Verify::Always));
        assert_eq!((told.failed.as_slice(), told.tally.verified), (&[][..], 3));
    }
}

#[test]
fn a_file_that_is_gone_on_is_hashed_whole() {
    let len = 40 << 20;
    let mut story = Story::new(FakeServer::default(), vec![noise(len)]);
    let plan = plan(b"/f", vec![entry(b"", file(len), None)]);
    story.proven = Some(Segments::default());
    story.cut_after = Some(700);
    play(&mut story, &plan, verified(Verify::Always));
    assert!(!story.proven.as_ref().unwrap().is_empty() && story.parts() == 1);
    // What lies there is not what was proven any more.
    let part = story.server.nodes.get_mut(super::tests::PART).unwrap();
    let Node::File(contents) = part else { panic!() };
    contents[5] ^= 1;
    story.cut_after = None;
    let told = play(&mut story, &plan, verified(Verify::Always));
    assert_eq!(told.failed, [(b"/f".to_vec(), Trouble::Differs)]);
    assert_eq!((story.parts(), story.server.file(b"/f")), (0, None));
    // Its part is gone, and so it is sent whole.
    let told = play(&mut story, &plan, verified(Verify::Always));
    assert_eq!((told.tally.verified, told.tally.octets), (1, len as u64));
}

#[test]
fn what_its_owner_may_not_read_is_hashed_before_it_has_its_mode_and_its_name() {
    let modes_of = |story: &Story, path: &[u8]| story.server.modes[path].0 & 0o777;
    // Kept, as the old one has it, and as the source has it.
    for (preserve, old) in [(true, None), (false, Some(0o100_200)), (false, None)] {
        let server = FakeServer {
            modes_bind: true,
            account: Some((5, 6)),
            ..FakeServer::default()
        };
        let mut story = Story::new(server, vec![noise(100_000)]);
        story.mode = 0o200;
        if let Some(mode) = old {
            let old = Node::File(b"old".to_vec());
            story.server.nodes.insert(b"/f".to_vec(), old);
            story.server.modes.insert(b"/f".to_vec(), (mode, MODIFIED));
            story.mode = 0o666;
        }
        let plan = UploadPlan {
            preserve,
            ..plan(b"/f", vec![entry(b"", file(100_000), None)])
        };
        let told = play(&mut story, &plan, verified(Verify::Always));
        assert_eq!(told.failed, []);
        assert_eq!((told.tally.verified, told.tally.done), (1, 1));
        assert_eq!(story.server.file(b"/f"), Some(&noise(100_000)[..]));
        assert_eq!(modes_of(&story, b"/f"), 0o200);
        let accessed = story.server.accessed.get(&b"/f"[..]).copied();
        assert_eq!(accessed, preserve.then_some(5), "times come with the mode");
        let set = story.server.set.iter();
        let after = set.filter(|(path, _)| path == b"/f").count();
        assert_eq!(after, 0, "it had its name already");
    }
}

#[test]
fn whenever_channels_are_lost_modes_that_close_files_are_set_all_the_same() {
    for round in 0..40 {
        for verifies in [Verify::Always, Verify::Never] {
            let (mut story, plan) = story();
            let plan = UploadPlan {
                preserve: true,
                ..plan
            };
            (story.server.modes_bind, story.mode) = (true, 0o200);
            story.server.account = Some((1000, 100));
            story.channels = 3;
            story.lost = vec![(round, 1 + round % 2)];
            let told = play(&mut story, &plan, verified(verifies));
            assert_eq!(told.failed, [], "lost in round {round}");
            let verified = if verifies == Verify::Always { 3 } else { 0 };
            assert_eq!((told.tally.verified, told.tally.done), (verified, 7));
            assert_eq!(story.server.modes[&b"/srv/site/a/x"[..]].0, 0o200);
        }
    }
}
