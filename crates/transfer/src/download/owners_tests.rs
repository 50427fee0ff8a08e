//! Owners of what is fetched: by name, by number, and as far as they may be set.

#![allow(clippy::unwrap_used)]

use super::tests::{Story, plan, site};
use super::*;
use crate::fake_server::Node;
use crate::owners::{Account, Owners, Rights};

const NAMES: Owners = Owners::Kept { by_name: true };

/// Alice's and Bob's tree.
fn story() -> Story {
    let mut story = Story::new(&site());
    story.server.account = Some((7, 3));
    story.server.owners.insert(b"/site/a/x".to_vec(), (8, 0));
    story.accounts = [(&b"alice"[..], 501), (b"staff", 50)].into();
    story
}

fn owner(story: &Story, path: &[u8]) -> Owner {
    story.owners[path]
}

/// What there is but `a/x` belongs to the first, that to the second.
fn belong_to(story: &Story, others: (u32, u32), of_x: (u32, u32)) {
    for path in [&b"site"[..], b"site/a", b"site/a/empty", b"site/link"] {
        let shown = String::from_utf8_lossy(path);
        assert_eq!(owner(story, path), Owner::of(others), "{shown}");
    }
    assert_eq!(owner(story, b"site/a/x"), Owner::of(of_x));
}

fn kept(owners: Owners) -> DownloadPlan {
    DownloadPlan {
        owners,
        ..plan(&[b"/site"])
    }
}

#[test]
fn names_of_the_hosts_numbers_become_numbers_here() {
    let names = vec![(7, "alice"), (8, "bob"), (3, "staff"), (0, "nobody here")];
    let mut by_extension = story();
    by_extension.server.names = Some(names);
    let mut by_lists = story();
    for (path, list) in [
        (&b"/etc/passwd"[..], &b"alice:x:7:7:::\nbob:x:8:8:::\n"[..]),
        (b"/etc/group", b"staff:x:3:\n"),
    ] {
        let list = Node::File(list.to_vec());
        by_lists.server.nodes.insert(path.to_vec(), list);
    }
    for mut story in [by_extension, by_lists] {
        let told = story.play(kept(NAMES));
        assert_eq!(told.failed, []);
        // Bob is not known here, and root is root.
        belong_to(&story, (501, 50), (8, 0));
        assert!(story.asked <= 3, "{}", story.asked);
    }
}

#[test]
fn without_names_numbers_are_kept() {
    for owners in [NAMES, Owners::Kept { by_name: false }] {
        let mut story = story();
        let told = story.play(kept(owners));
        assert_eq!(told.failed, []);
        belong_to(&story, (7, 3), (8, 0));
        assert_eq!(story.asked, 0);
    }
}

#[test]
fn one_owner_for_all_is_taken_as_it_is_given() {
    let mut story = story();
    let group = Some(Account::Number(9));
    let told = story.play(kept(Owners::Given { user: None, group }));
    assert_eq!(told.failed, []);
    let expected = Owner {
        user: None,
        group: Some(9),
    };
    assert_eq!(owner(&story, b"site/a/x"), expected);
    assert_eq!(owner(&story, b"site"), expected);
}

#[test]
fn what_only_root_may_do_is_told_once_and_the_rest_is_done() {
    let mut story = story();
    let mut plan = kept(Owners::Kept { by_name: false });
    plan.rights = Rights::Own {
        user: 7,
        groups: vec![3],
    };
    let told = story.play(plan.clone());
    let [(path, trouble @ Trouble::NotRoot { owner: of_x })] = told.failed.as_slice() else {
        panic!("{:?}", told.failed);
    };
    assert_eq!(
        (path.as_slice(), *of_x),
        (&b"/site/a/x"[..], Owner::of((8, 0)))
    );
    assert!(trouble.remedy().contains("root"));
    assert_eq!((told.tally.failed, told.tally.done), (0, 6));
    assert_eq!(owner(&story, b"site/a/empty").group, Some(3));
    assert_eq!(owner(&story, b"site/a/x"), Owner::default());
    // Where all is the user's own there is nothing to be told.
    story.server.owners.clear();
    assert_eq!(story.play(plan).failed, []);
}

#[test]
fn an_interruption_while_names_are_asked_for_ends_it() {
    for round in 0..12 {
        let mut story = story();
        story.server.names = Some(vec![(7, "alice"), (3, "staff")]);
        story.interrupt_after = Some(round);
        story.play(kept(NAMES));
    }
}
