//! What fails is named, leaves the old file, and no part.

#![allow(clippy::unwrap_used)]

use super::tests::{Story, entry, file, noise, plan, tree};
use super::*;
use crate::fake_server::{FakeServer, MODIFIED, Node};

/// One file over an old one, in a folder; the trouble that is expected; the old one stays.
fn fails_and_leaves_the_old(story: &mut Story, expected: &Trouble) {
    story
        .server
        .nodes
        .insert(b"/f".to_vec(), Node::File(b"old".to_vec()));
    let len = story.contents[0].len();
    let told = story.play(plan(b"/f", vec![entry(b"", file(len), None)]));
    assert_eq!(told.failed, [(b"/f".to_vec(), expected.clone())]);
    assert_eq!(story.server.file(b"/f"), Some(&b"old"[..]));
    assert_eq!(story.parts(), 0, "a part is left");
}

#[test]
fn what_goes_wrong_is_named_and_the_old_file_stays() {
    let story = || Story::new(FakeServer::default(), vec![noise(500_000)]);
    let mut full = story();
    full.server.room = Some(200_000);
    let why = crate::Remote::Full;
    fails_and_leaves_the_old(
        &mut full,
        &Trouble::Remote {
            doing: "writing",
            why,
        },
    );
    let mut changes = story();
    changes.changes = Some(0);
    fails_and_leaves_the_old(&mut changes, &Trouble::Changed);
    let mut vanished = story();
    vanished.vanished = Some(0);
    let error = "no such file".to_owned();
    fails_and_leaves_the_old(
        &mut vanished,
        &Trouble::Local {
            doing: "opening",
            error,
        },
    );
}

#[test]
fn an_interruption_at_any_time_leaves_no_part() {
    for round in 0..40 {
        let (entries, contents) = tree();
        let mut story = Story::new(FakeServer::with(&[(b"/srv", Node::Folder)]), contents);
        story.interrupt_after = Some(round);
        story.play(plan(b"/srv", entries));
        assert_eq!(story.parts(), 0, "interrupted after {round}");
    }
}

#[test]
fn what_is_below_a_broken_folder_fails_and_the_rest_does_not() {
    let (mut entries, contents) = tree();
    let server = FakeServer::with(&[
        (b"/srv", Node::Folder),
        (b"/srv/site", Node::Folder),
        (b"/srv/site/a", Node::File(b"in the way".to_vec())),
    ]);
    entries.truncate(6);
    let mut story = Story::new(server, contents);
    let told = story.play(plan(b"/srv", entries));
    let failed: Vec<&[u8]> = told
        .failed
        .iter()
        .map(|(path, _)| path.as_slice())
        .collect();
    assert_eq!(
        failed,
        [&b"/srv/site/a"[..], b"/srv/site/a/x", b"/srv/site/a/empty"]
    );
    assert_eq!((told.tally.done, told.tally.unchanged), (2, 1));
}

#[test]
fn many_failures_are_counted_and_not_all_told() {
    const MORE: usize = 500;
    let server = FakeServer::with(&[
        (b"/srv", Node::Folder),
        (b"/srv/site", Node::Folder),
        (b"/srv/site/a", Node::File(b"in the way".to_vec())),
    ]);
    let mut entries = tree().0;
    entries.truncate(2);
    for number in 0..MAX_TOLD + MORE {
        let path = format!("a/{number}").into_bytes();
        entries.push(entry(&path, file(3), Some(1)));
    }
    let mut story = Story::new(server, Vec::new());
    let told = story.play(plan(b"/srv", entries));
    let (more, told_all) = told.failed.split_last().unwrap();
    assert_eq!(told_all.len(), MAX_TOLD);
    assert!(told_all.iter().all(|(path, _)| !path.is_empty()));
    // The folder itself is one of those that are told.
    let rest = MORE as u64 + 1;
    assert_eq!(*more, (Vec::new(), Trouble::More(rest)));
    assert_eq!(told.tally.failed, MAX_TOLD as u64 + rest);
}

#[test]
fn a_target_that_is_not_there_is_told_once() {
    let (entries, contents) = tree();
    let mut story = Story::new(FakeServer::with(&[(b"/f", Node::File(vec![]))]), contents);
    let told = story.play(plan(b"/f/", entries));
    assert_eq!(told.failed, [(b"/f".to_vec(), Trouble::NoFolderThere)]);
    assert_eq!(told.tally.failed, 7);
}

#[test]
fn in_dev_no_file_is_made_where_a_device_was_meant() {
    for (target, is_made) in [(&b"/dev/sdz"[..], false), (b"/dev/shm/f", true)] {
        let folders = [(&b"/dev"[..], Node::Folder), (b"/dev/shm", Node::Folder)];
        let mut story = Story::new(FakeServer::with(&folders), vec![b"image".to_vec()]);
        let told = story.play(plan(target, vec![entry(b"", file(5), None)]));
        let expected = match is_made {
            true => Vec::new(),
            false => vec![(target.to_vec(), Trouble::NoDevice)],
        };
        assert_eq!(told.failed, expected);
        assert_eq!(story.server.nodes.contains_key(target), is_made);
    }
}

#[test]
fn what_could_not_be_read_here_is_a_failure_of_the_host_and_told_by_others() {
    let (entries, contents) = tree();
    let left_out = LeftOut {
        path: b"/home/me/site/pipe".to_vec(),
        trouble: Trouble::Special,
    };
    let plan = UploadPlan {
        left_out: vec![left_out],
        ..plan(b"/srv", entries)
    };
    let mut story = Story::new(FakeServer::with(&[(b"/srv", Node::Folder)]), contents);
    let told = story.play(plan);
    assert_eq!((told.failed.as_slice(), told.done.len()), (&[][..], 7));
    assert_eq!(told.tally.failed, 1);
}

/// What the server says of the making counts, not that there is nothing afterwards.
#[test]
fn a_folder_that_may_not_be_made_is_told_with_the_servers_reason() {
    let (entries, contents) = tree();
    let mut server = FakeServer::with(&[(b"/srv", Node::Folder)]);
    server.modes_bind = true;
    server.modes.insert(b"/srv".to_vec(), (0o555, MODIFIED));
    server.account = Some((1000, 100));
    server.owners.insert(b"/srv".to_vec(), (0, 0));
    let told = Story::new(server, contents).play(plan(b"/srv", entries));
    let trouble = Trouble::Remote {
        doing: "making the folder",
        why: Remote::Denied,
    };
    assert_eq!(told.failed[0], (b"/srv/site".to_vec(), trouble));
}

/// The first one that fails gives its room back before the next one is asked about.
#[test]
fn all_files_that_a_full_disk_fails_are_told_so() {
    let sizes = [300_000, 200_000];
    let entries = [&b"a"[..], b"b"].into_iter().zip(sizes);
    let mut all = vec![entry(b"", Kind::Folder, None)];
    all.extend(entries.map(|(name, size)| entry(name, file(size), Some(0))));
    let mut server = FakeServer::with(&[(b"/srv", Node::Folder)]);
    server.room = Some(100_000);
    server.tells_room_once = true;
    let contents = vec![vec![], noise(sizes[0]), noise(sizes[1])];
    let told = Story::new(server, contents).play(plan(b"/srv/", all));
    let full = |(_, trouble): &(Vec<u8>, Trouble)| {
        let why = Remote::Full;
        *trouble
            == Trouble::Remote {
                doing: "writing",
                why,
            }
    };
    assert_eq!(told.failed.len(), 2, "{:?}", told.failed);
    assert!(told.failed.iter().all(full), "{:?}", told.failed);
}
