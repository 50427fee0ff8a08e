//! Servers without posix-rename: what was there is replaced, or stays, whatever they refuse.

#![allow(clippy::unwrap_used)]

use super::tests::{Story, Told, entry, file, noise, plan};
use super::*;
use crate::fake_server::{FakeServer, Node, OfNames};

const LEN: usize = 300_000;

/// A file and a link, over those that are there; the folder's names afterwards.
fn replaced_by(arrange: impl Fn(&mut FakeServer)) -> (Story, Told, Vec<String>) {
    let mut server = FakeServer::with(&[
        (b"/srv", Node::Folder),
        (b"/srv/site", Node::Folder),
        (b"/srv/site/file", Node::File(b"old".to_vec())),
        (b"/srv/site/link", Node::Link(b"old".to_vec())),
    ]);
    server.is_plain = true;
    arrange(&mut server);
    let target = b"new".to_vec();
    let entries = vec![
        entry(b"", Kind::Folder, None),
        entry(b"file", file(LEN), Some(0)),
        entry(b"link", Kind::Link { target }, Some(0)),
    ];
    let mut story = Story::new(server, vec![vec![], noise(LEN), vec![]]);
    let told = story.play(plan(b"/srv", entries));
    let names = story.server.nodes.keys();
    let names = names.filter_map(|path| path.strip_prefix(b"/srv/site/"));
    let names = names.map(|name| String::from_utf8(name.to_vec()).unwrap());
    let names = names.collect();
    (story, told, names)
}

fn expect_old(story: &Story) {
    assert_eq!(story.server.file(b"/srv/site/file"), Some(&b"old"[..]));
    let link = &story.server.nodes[&b"/srv/site/link"[..]];
    assert_eq!(*link, Node::Link(b"old".to_vec()));
}

#[test]
fn what_is_there_is_replaced_and_nothing_else_stays() {
    let (story, told, names) = replaced_by(|_| {});
    assert_eq!((told.failed, told.tally.done), (vec![], 2));
    assert_eq!(names, ["file", "link"]);
    assert!(story.server.file(b"/srv/site/file") == Some(&noise(LEN)[..]));
    let link = &story.server.nodes[&b"/srv/site/link"[..]];
    assert_eq!(*link, Node::Link(b"new".to_vec()));
}

#[test]
fn where_renames_are_refused_what_is_there_stays() {
    let refusals: [OfNames; 3] = [
        |_, _| true,
        // Nothing may be put aside.
        |_, new| new.ends_with(b".old"),
        // No part gets a name.
        |old, _| old.ends_with(b".part"),
    ];
    for refuses in refusals {
        let (story, told, names) = replaced_by(|server| server.refuses_renames = Some(refuses));
        let doing = "putting it in place";
        for (_, trouble) in &told.failed {
            assert!(
                matches!(trouble, Trouble::Remote { doing: it, .. } if *it == doing),
                "{trouble:?}"
            );
        }
        assert_eq!(told.failed.len(), 2);
        assert_eq!(names, ["file", "link"]);
        expect_old(&story);
    }
}

#[test]
fn what_cannot_be_put_back_is_named() {
    let (story, told, names) = replaced_by(|server| {
        server.refuses_renames = Some(|old, new| !new.ends_with(b".old") || old.ends_with(b".old"));
    });
    let mut left = Vec::new();
    for (_, trouble) in &told.failed {
        let Trouble::LeftAside { name } = trouble else {
            panic!("{trouble:?}");
        };
        left.push(name.strip_prefix("/srv/site/").unwrap().to_owned());
    }
    assert_eq!(names, left);
    assert_eq!(
        story
            .server
            .file(format!("/srv/site/{}", left[0]).as_bytes()),
        Some(&b"old"[..])
    );
}

/// The first channel must not be lost; files of another one's are taken over by it.
#[test]
fn whenever_the_channel_is_lost_the_file_is_the_new_one() {
    for round in 0..40 {
        let mut server = FakeServer::with(&[(b"/srv", Node::Folder)]);
        server.is_plain = true;
        let mut entries = vec![entry(b"", Kind::Folder, None)];
        let mut contents = vec![vec![]];
        let folder = b"/srv/site".to_vec();
        server.nodes.insert(folder, Node::Folder);
        for number in 0..100usize {
            let name = number.to_string();
            entries.push(entry(name.as_bytes(), file(1000 + number), Some(0)));
            contents.push(noise(1000 + number));
            let path = format!("/srv/site/{name}").into_bytes();
            server.nodes.insert(path, Node::File(b"old".to_vec()));
        }
        let mut story = Story::new(server, contents.clone());
        story.channels = 2;
        story.lost = vec![(round, 1)];
        let told = story.play(plan(b"/srv", entries));
        assert_eq!(told.failed, [], "lost in round {round}");
        assert_eq!(
            story.server.nodes.len(),
            2 + 100,
            "{:?}",
            story.server.nodes.keys()
        );
        for (number, expected) in contents[1..].iter().enumerate() {
            let path = format!("/srv/site/{number}");
            assert_eq!(story.server.file(path.as_bytes()), Some(&expected[..]));
        }
    }
}
