//! Several sources: what goes to a place of its own comes, of two things that would be in one place the second is named.

#![allow(clippy::unwrap_used)]

use super::tests::{Story, plan};
use super::*;
use crate::fake_server::Node;

fn file(octet: u8) -> Node {
    Node::File(vec![octet; 10])
}

/// Two folders whose names, or parts of which, are the same.
fn story() -> Story {
    Story::new(&[
        (b"/x", Node::Folder),
        (b"/x/site", Node::Folder),
        (b"/x/site/a", file(1)),
        (b"/x/site/b", file(2)),
        (b"/x/only", file(3)),
        (b"/y", Node::Folder),
        (b"/y/site", Node::Folder),
        (b"/y/site/a", file(4)),
        (b"/y/site/c", file(5)),
        (b"/y/other", file(6)),
    ])
}

fn same(path: &[u8], first: &str) -> (Vec<u8>, Trouble) {
    let first = first.to_owned();
    (path.to_vec(), Trouble::SameName { first })
}

/// What came, and the first octet of each.
fn came(story: &Story) -> Vec<(&str, u8)> {
    let there = story.there.iter();
    there
        .map(|(path, (contents, _))| (std::str::from_utf8(path).unwrap(), contents[0]))
        .collect()
}

#[test]
fn nothing_comes_of_the_second_of_two_that_would_be_in_one_place() {
    let mut files = story();
    let told = files.play(plan(&[b"/x/site/a", b"/y/site/a"]));
    assert_eq!(told.failed, [same(b"/y/site/a", "/x/site/a")]);
    assert_eq!(came(&files), [("a", 1)]);
    let mut folders = story();
    let told = folders.play(plan(&[b"/x/site", b"/y/site"]));
    assert_eq!(told.failed, [same(b"/y/site", "/x/site")]);
    assert_eq!(came(&folders), [("site/a", 1), ("site/b", 2)]);
}

#[test]
fn the_same_thing_comes_once_however_often_it_is_meant() {
    let mut story = story();
    // The server takes it for the same.
    story.server.nodes.insert(b"//x/./only".to_vec(), file(3));
    let sources: [&[u8]; 5] = [b"/x/only", b"//x/./only", b"/x/o*", b"/x/*ly", b"/x/only"];
    let told = story.play(plan(&sources));
    assert_eq!((told.failed, told.tally.done), (vec![], 1));
    assert_eq!(came(&story), [("only", 3)]);
}

#[test]
fn what_is_in_another_source_has_a_place_of_its_own() {
    let mut story = story();
    let told = story.play(plan(&[b"/x", b"/x/site", b"/x/site/a"]));
    assert_eq!(told.failed, []);
    let expected = [
        ("a", 1),
        ("site/a", 1),
        ("site/b", 2),
        ("x/only", 3),
        ("x/site/a", 1),
        ("x/site/b", 2),
    ];
    assert_eq!(came(&story), expected);
}

#[test]
fn folders_without_names_share_a_place_but_for_what_is_called_the_same() {
    let mut both = story();
    let told = both.play(plan(&[b"/x/", b"/y/", b"/x//"]));
    // Which of both is known first is the server's affair.
    let expected = match told.failed.as_slice() {
        [(path, _)] if path == b"/y/site" => {
            assert_eq!(told.failed, [same(b"/y/site", "/x/site")]);
            [("only", 3), ("other", 6), ("site/a", 1), ("site/b", 2)]
        }
        _ => {
            assert_eq!(told.failed, [same(b"/x/site", "/y/site")]);
            [("only", 3), ("other", 6), ("site/a", 4), ("site/c", 5)]
        }
    };
    assert_eq!(came(&both), expected);
    let mut named = story();
    let told = named.play(plan(&[b"/y/", b"/x/site", b"/x/only"]));
    assert_eq!(told.failed, [same(b"/y/site", "/x/site")]);
    let expected = [("only", 3), ("other", 6), ("site/a", 1), ("site/b", 2)];
    assert_eq!(came(&named), expected);
    // A file has no place that is called by a folder alone.
    let mut file = story();
    let told = file.play(plan(&[b"/x/only/"]));
    assert_eq!(told.failed, [(b"/x/only".to_vec(), Trouble::NoFolderThere)]);
}

#[test]
fn what_is_printed_has_no_place_to_be_in() {
    let mut story = story();
    let told = story.play(DownloadPlan {
        in_order: true,
        ..plan(&[b"/x/site/a", b"/y/site/a", b"/x/site/a"])
    });
    assert_eq!((told.failed, told.tally.done), (vec![], 2));
}
