//! Folders that are there and that their owner may not write to: what goes into them, and what becomes of their modes.

#![allow(clippy::unwrap_used)]

use super::tests::{Story, entry, file, noise, plan, tree};
use super::*;
use crate::Remote;
use crate::fake_hasher::{CHECKSUM, Hasher};
use crate::fake_server::{FakeServer, MODIFIED, Node};

/// Of the tree's folder, and of the one in it, whose contents cannot even be reached.
const SITE: u32 = 0o555;
const INNER: u32 = 0o444;

/// Both folders are there, closed, and more than was there is to go into them: all kinds of things, and folders in folders.
fn story(preserve: bool) -> (Story, UploadPlan) {
    let (mut entries, mut contents) = tree();
    let mut add = |path: &[u8], kind, folder, octets| {
        entries.push(entry(path, kind, Some(folder)));
        contents.push(octets);
    };
    add(b"a/new", Kind::Folder, 1, vec![]);
    add(b"a/new/deep", Kind::Folder, 7, vec![]);
    add(b"a/new/deep/f", file(9), 8, noise(9));
    (entries[0].mode, entries[1].mode) = (SITE, INNER);
    let mut server = FakeServer::with(&[
        (b"/srv", Node::Folder),
        (b"/srv/site", Node::Folder),
        (b"/srv/site/a", Node::Folder),
        (b"/srv/site/a/x", Node::File(b"old".to_vec())),
    ]);
    server.modes_bind = true;
    server.account = Some((1000, 100));
    for (path, mode) in [(&b"/srv/site"[..], SITE), (b"/srv/site/a", INNER)] {
        server.modes.insert(path.to_vec(), (mode, MODIFIED));
    }
    let plan = UploadPlan {
        preserve,
        ..plan(b"/srv", entries)
    };
    (Story::new(server, contents), plan)
}

fn modes(story: &Story) -> [u32; 2] {
    let mode = |path: &[u8]| story.server.modes[path].0 & 0o7777;
    [mode(b"/srv/site"), mode(b"/srv/site/a")]
}

/// What modes a folder has been given, in order.
fn given(story: &Story, path: &[u8]) -> Vec<u32> {
    let set = story.server.set.iter().filter(|(it, _)| it == path);
    set.filter_map(|(_, attributes)| attributes.mode).collect()
}

#[test]
fn a_closed_folder_takes_what_is_new_and_has_its_mode_again() {
    for (preserve, channels) in [(true, 1), (false, 1), (true, 3), (false, 3)] {
        let (mut story, plan) = story(preserve);
        story.channels = channels;
        let told = story.play(plan);
        assert_eq!(told.failed, []);
        assert_eq!(told.done.len(), 10, "each is told once");
        assert_eq!(modes(&story), [SITE, INNER]);
        story.server.modes_bind = false;
        for (path, octets) in [
            (&b"/srv/site/a/x"[..], noise(300_000)),
            (b"/srv/site/\xff\n", noise(3)),
            (b"/srv/site/hard", noise(300_000)),
            (b"/srv/site/a/new/deep/f", noise(9)),
        ] {
            assert!(story.server.file(path) == Some(&octets), "{path:?}");
        }
        assert!(story.server.nodes.contains_key(&b"/srv/site/link"[..]));
        assert_eq!(story.parts(), 0);
    }
}

#[test]
fn a_closed_folder_that_nothing_goes_into_is_left_alone() {
    let (mut story, mut plan) = story(true);
    plan.entries[1].mode = SITE;
    // Whether a hard link is one already is only found out by making it.
    plan.entries[6].kind = file(300_000);
    story.play(plan.clone());
    story.server.set.clear();
    let told = story.play(plan);
    assert_eq!((told.tally.unchanged, told.tally.done), (10, 0));
    for path in [&b"/srv/site"[..], b"/srv/site/a"] {
        assert_eq!(given(&story, path), [SITE], "{path:?}");
    }
}

#[test]
fn roots_folders_are_not_touched() {
    let (mut story, mut plan) = story(false);
    story.server.modes_bind = false;
    for path in [&b"/srv/site"[..], b"/srv/site/a"] {
        story.server.owners.insert(path.to_vec(), (0, 0));
    }
    plan.entries.truncate(7);
    assert_eq!(story.play(plan).failed, []);
    for path in [&b"/srv/site"[..], b"/srv/site/a"] {
        assert_eq!(given(&story, path), Vec::<u32>::new(), "{path:?}");
    }
}

/// The target is there, closed, and a tree is to go into it: by its name, or what is in it.
fn into_closed(mode: u32, name: &[u8], preserve: bool) -> (Story, UploadPlan) {
    let (entries, contents) = tree();
    let mut server = FakeServer::with(&[(b"/srv", Node::Folder)]);
    server.modes_bind = true;
    server.account = Some((1000, 100));
    server.modes.insert(b"/srv".to_vec(), (mode, MODIFIED));
    let mut plan = UploadPlan {
        preserve,
        ..plan(b"/srv/", entries)
    };
    plan.roots[0].name = name.to_vec();
    (Story::new(server, contents), plan)
}

#[test]
fn the_target_itself_takes_what_is_new_and_has_its_mode_again() {
    for mode in [0o555, 0o444] {
        for (name, preserve, channels) in [
            (&b"site"[..], true, 1),
            (b"site", false, 3),
            (b"", true, 1),
            (b"", false, 3),
        ] {
            let (mut story, plan) = into_closed(mode, name, preserve);
            story.channels = channels;
            let told = story.play(plan.clone());
            assert_eq!((told.failed.as_slice(), told.done.len()), (&[][..], 7));
            // That of a source that is the target's counterpart, if it is kept.
            let expected = match name.is_empty() && preserve {
                true => plan.entries[0].mode,
                false => mode,
            };
            assert_eq!(story.server.modes[&b"/srv"[..]].0 & 0o7777, expected);
            story.server.modes_bind = false;
            let file = crate::path::join(b"/srv", &crate::path::join(name, b"a/x"));
            assert!(story.server.file(&file) == Some(&noise(300_000)));
        }
    }
}

#[test]
fn an_interruption_at_any_time_closes_the_target() {
    for round in 0..60 {
        for name in [&b"site"[..], b""] {
            let (mut story, plan) = into_closed(0o444, name, true);
            story.interrupt_after = Some(round);
            let told = story.play(plan);
            let mode = story.server.modes[&b"/srv"[..]].0 & 0o7777;
            let is_whole = told.failed.is_empty() && name.is_empty() && mode == 0o750;
            assert!(
                mode == 0o444 || is_whole,
                "interrupted after {round}: {mode:o}"
            );
            assert_eq!(story.parts(), 0, "interrupted after {round}");
        }
    }
}

#[test]
fn a_target_that_nothing_goes_into_is_left_alone() {
    let (mut story, plan) = into_closed(0o555, b"site", true);
    // Hashes must be had, and are not.
    let plan = UploadPlan {
        hashing: CHECKSUM,
        ..plan
    };
    story.hasher = Hasher::None;
    story.play(plan);
    assert_eq!(given(&story, b"/srv"), Vec::<u32>::new());
}

#[test]
fn a_folder_that_is_not_ours_stays_as_it_is_and_what_goes_into_it_fails() {
    let (mut story, mut plan) = story(false);
    plan.entries = vec![plan.entries[0].clone(), entry(b"new", file(3), Some(0))];
    story.contents = vec![vec![], noise(3)];
    story.server.refuses_attributes = 1;
    let told = story.play(plan);
    let [(path, Trouble::Remote { why, .. })] = told.failed.as_slice() else {
        panic!("{:?}", told.failed);
    };
    assert_eq!(
        (path.as_slice(), why),
        (&b"/srv/site/new"[..], &Remote::Denied)
    );
    assert_eq!(modes(&story)[0], SITE);
}

#[test]
fn an_interruption_at_any_time_closes_what_was_opened() {
    for round in 0..60 {
        for preserve in [true, false] {
            let (mut story, plan) = story(preserve);
            story.interrupt_after = Some(round);
            story.play(plan);
            assert_eq!(modes(&story), [SITE, INNER], "interrupted after {round}");
            assert_eq!(story.parts(), 0, "interrupted after {round}");
        }
    }
}

#[test]
fn what_is_killed_at_any_time_is_mended_by_the_next() {
    for round in 0..60 {
        let (mut story, plan) = story(true);
        story.cut_after = Some(round);
        story.play(plan.clone());
        story.cut_after = None;
        let told = story.play(plan);
        assert_eq!(told.failed, [], "killed after {round}");
        assert_eq!(modes(&story), [SITE, INNER], "killed after {round}");
        assert_eq!(story.parts(), 0, "killed after {round}");
    }
}
