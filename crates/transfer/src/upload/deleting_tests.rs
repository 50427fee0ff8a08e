//! What is surplus on a server in memory, and goes; and when nothing does.

#![allow(clippy::unwrap_used)]

use super::tests::{Story, Told, entry, file, noise, plan, tree};
use super::*;
use crate::fake_server::{FakeServer, Node, Readdirs};
use crate::glob::Excludes;
use crate::surplus::Surplus;

/// A server that has more in the folder of [`tree`] than is sent.
fn server() -> FakeServer {
    let old = || Node::File(b"old".to_vec());
    FakeServer::with(&[
        (b"/srv", Node::Folder),
        (b"/srv/beside", old()),
        (b"/srv/site", Node::Folder),
        (b"/srv/site/old", old()),
        (b"/srv/site/link to", Node::Link(b"/srv".to_vec())),
        (b"/srv/site/a", Node::Folder),
        (b"/srv/site/a/old", old()),
        (b"/srv/site/gone", Node::Folder),
        (b"/srv/site/gone/deep", Node::Folder),
        (b"/srv/site/gone/deep/old", old()),
        (b"/srv/site/gone/x", old()),
    ])
}

/// What goes of it, in any order.
const GONE: [&[u8]; 7] = [
    b"/srv/site/a/old",
    b"/srv/site/gone/",
    b"/srv/site/gone/deep/",
    b"/srv/site/gone/deep/old",
    b"/srv/site/gone/x",
    b"/srv/site/link to",
    b"/srv/site/old",
];

fn with_surplus(plan: UploadPlan, excludes: &[&[u8]], only_told: bool) -> UploadPlan {
    let excludes = Excludes::new(excludes.iter().map(|it| it.to_vec()));
    let surplus = Surplus::new(&plan.roots, &plan.entries, excludes, only_told);
    UploadPlan {
        surplus: Some(Arc::new(surplus)),
        ..plan
    }
}

fn tree_plan(excludes: &[&[u8]]) -> UploadPlan {
    with_surplus(plan(b"/srv", tree().0), excludes, false)
}

fn deleted(told: &Told) -> Vec<&[u8]> {
    let mut deleted: Vec<&[u8]> = told.deleted.iter().map(Vec::as_slice).collect();
    deleted.sort_unstable();
    deleted
}

#[test]
fn what_is_surplus_goes_and_nothing_beside_it() {
    for (at_once, how, hides_types) in [
        (None, Readdirs::InOrder, false),
        (Some(1), Readdirs::Backwards, true),
        (Some(2), Readdirs::OneAtATime, false),
    ] {
        let mut server = server();
        // A link that the listing has for a folder.
        server.listings.follows_links = at_once.is_none();
        server.listings.at_once = at_once;
        server.listings.how = how;
        server.listings.hides_types = hides_types;
        let mut story = Story::new(server, tree().1);
        let told = story.play(tree_plan(&[]));
        assert_eq!(told.failed, [], "{how:?}");
        assert_eq!(deleted(&told), GONE, "{how:?}");
        assert_eq!(told.tally.deleted, 7);
        let left = story.server.nodes.keys();
        let left: Vec<&[u8]> = left.map(Vec::as_slice).collect();
        let expected: [&[u8]; 9] = [
            b"/srv",
            b"/srv/beside",
            b"/srv/site",
            b"/srv/site/a",
            b"/srv/site/a/empty",
            b"/srv/site/a/x",
            b"/srv/site/hard",
            b"/srv/site/link",
            b"/srv/site/\xff\n",
        ];
        assert_eq!(left, expected, "{how:?}");
        // Again there is nothing to be deleted.
        let told = story.play(tree_plan(&[]));
        assert_eq!((told.failed, told.deleted), (vec![], vec![]));
    }
}

#[test]
fn without_the_flag_everything_stays() {
    let mut story = Story::new(server(), tree().1);
    let told = story.play(plan(b"/srv", tree().0));
    assert_eq!((told.failed, told.tally.deleted), (vec![], 0));
    assert!(story.server.nodes.contains_key(&b"/srv/site/gone/x"[..]));
}

#[test]
fn what_is_excluded_and_parts_stay_with_their_folders() {
    let mut server = server();
    let part = b"/srv/site/.y.0123abcd.part";
    server
        .nodes
        .insert(part.to_vec(), Node::File(b"p".to_vec()));
    let mut story = Story::new(server, tree().1);
    let told = story.play(tree_plan(&[b"gone/deep/old"]));
    assert_eq!(told.failed, []);
    let expected: Vec<&[u8]> = GONE
        .into_iter()
        .filter(|it| !it.starts_with(b"/srv/site/gone/") || it.ends_with(b"/x"))
        .collect();
    assert_eq!(deleted(&told), expected);
    let nodes = &story.server.nodes;
    assert!(nodes.contains_key(&b"/srv/site/gone/deep/old"[..]) && nodes.contains_key(&part[..]));
}

#[test]
fn a_link_in_a_folders_place_is_not_followed() {
    let mut server = FakeServer::with(&[
        (b"/srv", Node::Folder),
        (b"/srv/site", Node::Folder),
        (b"/elsewhere", Node::Folder),
        (b"/elsewhere/kept", Node::File(b"k".to_vec())),
    ]);
    let folders = vec![
        entry(b"", Kind::Folder, None),
        entry(b"a", Kind::Folder, Some(0)),
    ];
    for hides_types in [false, true] {
        // It appears when the folder has been made.
        let mut story = Story::new(std::mem::take(&mut server), vec![vec![], vec![]]);
        story.server.listings.hides_types = hides_types;
        story.server.replaces_when_listed =
            Some((b"/srv/site/a".to_vec(), Node::Link(b"/elsewhere".to_vec())));
        let told = story.play(with_surplus(plan(b"/srv", folders.clone()), &[], false));
        let told_of = |path: &[u8], trouble| (path.to_vec(), trouble);
        let expected = [
            told_of(b"/srv/site/a", Trouble::LinkInTheWay),
            told_of(b"/srv", Trouble::NothingDeleted),
        ];
        assert_eq!((&told.failed[..], told.deleted.len()), (&expected[..], 0));
        server = story.server;
        server.nodes.remove(&b"/srv/site/a"[..]);
        assert!(server.nodes.contains_key(&b"/elsewhere/kept"[..]));
    }
}

#[test]
fn nothing_goes_where_something_has_failed() {
    let mut server = server();
    server.nodes.remove(&b"/srv/site/a/old"[..]);
    server.nodes.remove(&b"/srv/site/a"[..]);
    server
        .nodes
        .insert(b"/srv/site/a".to_vec(), Node::File(b"in the way".to_vec()));
    let mut story = Story::new(server, tree().1);
    let told = story.play(tree_plan(&[]));
    assert_eq!(told.tally.deleted, 0);
    let last = told.failed.last().unwrap();
    assert_eq!(last, &(b"/srv".to_vec(), Trouble::NothingDeleted));
    assert!(story.server.nodes.contains_key(&b"/srv/site/old"[..]));
}

#[test]
fn nothing_goes_where_a_file_has_failed_of_which_the_old_one_is_there() {
    let mut server = server();
    let old = Node::File(b"old".to_vec());
    server.nodes.insert(b"/srv/site/a/x".to_vec(), old.clone());
    server.nodes.insert(b"/srv/site/hard".to_vec(), old);
    let mut story = Story::new(server, tree().1);
    story.changes = Some(2);
    let told = story.play(tree_plan(&[]));
    let failed = |path: &[u8], trouble| (path.to_vec(), trouble);
    let expected = [
        failed(b"/srv/site/a/x", Trouble::Changed),
        failed(b"/srv/site/hard", Trouble::NoOriginal),
        failed(b"/srv", Trouble::NothingDeleted),
    ];
    assert_eq!((&told.failed[..], told.deleted.len()), (&expected[..], 0));
    assert!(story.server.nodes.contains_key(&b"/srv/site/old"[..]));
}

#[test]
fn no_more_is_told_than_is_gone_where_it_is_interrupted() {
    for round in 0..40 {
        let mut story = Story::new(server(), tree().1);
        story.interrupt_after = Some(round);
        let told = story.play(tree_plan(&[]));
        assert!(story.server.nodes.contains_key(&b"/srv/beside"[..]));
        let gone = GONE.iter().filter(|it| {
            let path = it.strip_suffix(b"/").unwrap_or(it);
            !story.server.nodes.contains_key(path)
        });
        // What was under way may go untold.
        assert!(gone.count() as u64 >= told.tally.deleted, "{round}");
        let is_gone = |path: &Vec<u8>| {
            let path = path.strip_suffix(b"/").unwrap_or(path);
            !story.server.nodes.contains_key(path)
        };
        assert!(told.deleted.iter().all(is_gone), "{round}");
    }
}

#[test]
fn where_names_that_were_sent_are_missing_nothing_goes() {
    let mut server = server();
    // As if it wrote names in its own way.
    server.listings.hidden = Some(b"empty".to_vec());
    // One that is told twice does not make up for it.
    server.listings.repeated = Some(b"x".to_vec());
    let mut story = Story::new(server, tree().1);
    let told = story.play(tree_plan(&[]));
    let expected = [
        (b"/srv/site/a".to_vec(), Trouble::NamesMissing),
        (b"/srv".to_vec(), Trouble::NothingDeleted),
    ];
    assert_eq!((&told.failed[..], told.deleted.len()), (&expected[..], 0));
    let nodes = &story.server.nodes;
    assert!(nodes.contains_key(&b"/srv/site/a/old"[..]));
    assert!(nodes.contains_key(&b"/srv/site/old"[..]), "nor elsewhere");
}

#[test]
fn what_cannot_be_removed_is_named_and_its_folder_stays() {
    let mut server = server();
    server.modes_bind = true;
    server
        .modes
        .insert(b"/srv/site/gone/deep".to_vec(), (0o500, 0));
    server.refuses_attributes = 100;
    let mut story = Story::new(server, tree().1);
    let told = story.play(tree_plan(&[]));
    let [(path, trouble)] = &told.failed[..] else {
        panic!("{:?}", told.failed);
    };
    assert_eq!(path, b"/srv/site/gone/deep/old");
    assert_eq!(
        trouble.to_string(),
        "deleting it on the host: permission denied"
    );
    assert!(story.server.nodes.contains_key(&b"/srv/site/gone"[..]));
    assert!(!story.server.nodes.contains_key(&b"/srv/site/gone/x"[..]));
}

#[test]
fn a_closed_folder_is_cleared_too_and_has_its_mode_back_if_it_stays() {
    let deep = b"/srv/site/gone/deep".to_vec();
    for (excludes, stays) in [(&[][..], false), (&[&b"gone/deep/old"[..]], true)] {
        let mut server = server();
        server.modes_bind = true;
        server.modes.insert(deep.clone(), (0o500, 0));
        let mut story = Story::new(server, tree().1);
        let told = story.play(tree_plan(excludes));
        assert_eq!(told.failed, []);
        assert_eq!(story.server.nodes.contains_key(&deep), stays);
        if stays {
            assert_eq!(story.server.modes[&deep].0, 0o500);
        }
    }
}

#[test]
fn what_went_through_a_link_into_a_surplus_folder_stays() {
    // `current` leads to a folder that the source has not: what was sent is there.
    let server = FakeServer::with(&[
        (b"/srv", Node::Folder),
        (b"/srv/site", Node::Folder),
        (b"/srv/site/releases", Node::Folder),
        (b"/srv/site/releases/f", Node::File(b"just sent".to_vec())),
    ]);
    let mut story = Story::new(server, vec![vec![], vec![]]);
    let link = Node::Link(b"/srv/site/releases".to_vec());
    story.server.replaces_when_listed = Some((b"/srv/site/current".to_vec(), link));
    let folders = vec![
        entry(b"", Kind::Folder, None),
        entry(b"current", Kind::Folder, Some(0)),
    ];
    let told = story.play(with_surplus(plan(b"/srv", folders), &[], false));
    assert_eq!(told.failed[0].1, Trouble::LinkInTheWay);
    assert_eq!(told.deleted.len(), 0);
    let nodes = &story.server.nodes;
    assert!(nodes.contains_key(&b"/srv/site/releases/f"[..]));
}

#[test]
fn a_source_whose_place_is_a_link_has_nothing_deleted_behind_it() {
    let mut server = server();
    server.nodes.insert(b"/data".to_vec(), Node::Folder);
    server
        .nodes
        .insert(b"/data/kept".to_vec(), Node::File(vec![]));
    let mut story = Story::new(server, vec![vec![]]);
    story.server.replaces_when_looked_at =
        Some((b"/srv/site".to_vec(), Node::Link(b"/data".to_vec())));
    let folder = vec![entry(b"", Kind::Folder, None)];
    let told = story.play(with_surplus(plan(b"/srv", folder), &[], false));
    assert_eq!(
        told.failed[0],
        (b"/srv/site".to_vec(), Trouble::LinkInTheWay)
    );
    assert_eq!(told.deleted.len(), 0);
}

#[test]
fn neither_the_host_nor_the_accounts_keys_are_deleted() {
    let nameless = |target: &[u8], excludes: &[&[u8]]| {
        let mut plan = plan(target, vec![entry(b"", Kind::Folder, None)]);
        plan.roots[0].name = Vec::new();
        with_surplus(plan, excludes, false)
    };
    let server = || {
        let mut server = FakeServer::with(&[
            (b"/", Node::Folder),
            (b"/home", Node::Folder),
            (b"/home/me", Node::Folder),
            (b"/home/me/.ssh", Node::Folder),
            (b"/home/me/.ssh/authorized_keys", Node::File(vec![])),
            (b"/home/me/old", Node::File(vec![])),
        ]);
        server.home = Some(b"/home/me".to_vec());
        server
    };
    for (target, trouble) in [
        (&b"/"[..], Trouble::WholeHost),
        (b"/home", Trouble::OwnKeys),
        (b"/home/me", Trouble::OwnKeys),
    ] {
        let mut story = Story::new(server(), vec![vec![]]);
        let told = story.play(nameless(target, &[]));
        assert_eq!(told.failed[0].1, trouble, "{}", target.escape_ascii());
        assert_eq!((told.failed.len(), told.deleted.len()), (2, 0));
    }
    // Nor what is in the folder of the keys, where that is sent.
    let mut plan = nameless(b"/home/me", &[]);
    plan.entries.push(entry(b".ssh", Kind::Folder, Some(0)));
    let plan = with_surplus(plan, &[], false);
    let told = Story::new(server(), vec![vec![], vec![]]).play(plan);
    assert_eq!(told.failed[0].1, Trouble::OwnKeys);
    // From far above it is enough that they are excluded.
    let mut story = Story::new(server(), vec![vec![]]);
    let told = story.play(nameless(b"/home", &[b".ssh"]));
    assert_eq!(told.failed, []);
    assert_eq!(told.deleted, [b"/home/me/old".to_vec()]);
    let mut story = Story::new(server(), vec![vec![]]);
    let told = story.play(nameless(b"/home/me", &[b".ssh"]));
    assert_eq!(told.failed, []);
    assert_eq!(told.deleted, [b"/home/me/old".to_vec()]);
}

#[test]
fn names_that_lead_elsewhere_stop_it() {
    for name in [&b"../../beside"[..], b"a/old", b""] {
        let mut server = server();
        server.bad_names = vec![name.to_vec()];
        let mut story = Story::new(server, tree().1);
        let told = story.play(tree_plan(&[]));
        assert_eq!(told.tally.deleted, 0, "{}", name.escape_ascii());
        let bad = |it: &&(Vec<u8>, Trouble)| matches!(it.1, Trouble::BadName(_));
        assert!(told.failed.iter().any(|it| bad(&it)));
        assert!(story.server.nodes.contains_key(&b"/srv/beside"[..]));
    }
}

#[test]
fn what_would_go_is_told_and_nothing_is_touched() {
    let mut story = Story::new(server(), tree().1);
    let before = story.server.nodes.clone();
    let mut plan = with_surplus(plan(b"/srv", tree().0), &[], true);
    let told = story.play(plan.clone());
    assert_eq!(told.failed, []);
    assert_eq!(deleted(&told), GONE);
    assert_eq!((told.tally.done, told.tally.deleted), (0, 0));
    assert_eq!(story.server.set.len(), 0);
    assert_eq!(story.server.nodes, before);
    // Nor is anything made.
    plan.target = b"/new".to_vec();
    let told = story.play(plan);
    assert_eq!((told.failed, told.deleted), (vec![], vec![]));
    assert_eq!(story.server.nodes, before);
}

#[test]
fn a_folder_of_many_names_is_cleared() {
    let mut server = server();
    for number in 0..3000 {
        let path = format!("/srv/site/gone/{number}").into_bytes();
        server.nodes.insert(path, Node::File(Vec::new()));
    }
    server.listings.at_once = Some(100);
    let mut story = Story::new(server, vec![vec![], noise(3)]);
    let entries = vec![
        entry(b"", Kind::Folder, None),
        entry(b"x", file(3), Some(0)),
    ];
    let told = story.play(with_surplus(plan(b"/srv", entries), &[], false));
    assert_eq!(told.failed, []);
    // With folder a, and what is in it.
    assert_eq!(told.tally.deleted, 3000 + 8);
}
