//! Folders of many names: how many READDIRs they take, in which order answers may come, and how much is listed ahead.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::Remote;
use crate::download::tests::{Story, plan};
use crate::download::{Begun, DownloadPlan, Fetched};
use crate::fake_server::{FakeChannel, FakeServer, Node, Readdirs};
use crate::reads::MOST_READS;
use crate::upload::Method;

/// Names that the server gives at a time.
const AT_ONCE: usize = 10;

/// A folder of so many files.
fn server(files: usize, how: Readdirs) -> FakeServer {
    let mut server = FakeServer::with(&[(b"/d", Node::Folder)]);
    for number in 0..files {
        let path = format!("/d/{number}").into_bytes();
        server.nodes.insert(path, Node::File(vec![7]));
    }
    server.listings.at_once = Some(AT_ONCE);
    server.listings.how = how;
    server
}

fn story(files: usize, how: Readdirs) -> Story {
    let mut story = Story::new(&[]);
    story.server = server(files, how);
    story
}

/// File by file.
fn fetch() -> DownloadPlan {
    DownloadPlan {
        method: Method::Sftp,
        ..plan(&[b"/d"])
    }
}

#[test]
fn many_names_take_a_round_trip_for_eight_answers() {
    // With "." and "..".
    let mut story = story(2000 - 2, Readdirs::InOrder);
    let told = story.play(fetch());
    assert_eq!((told.failed, story.there.len()), (vec![], 1998));
    let listings = &story.server.listings;
    assert_eq!(listings.most, MOST_READS);
    // One by one it would have been 201. Two, four, and eight from then on.
    assert!(listings.flights <= 2 + 25, "{}", listings.flights);
    assert!(listings.asked < 201 + MOST_READS, "{}", listings.asked);
    assert_eq!(story.server.open, 0);
}

#[test]
fn few_names_take_one_round_trip_and_no_more_requests_than_one_by_one() {
    for files in [0, 1, AT_ONCE - 2] {
        let mut story = story(files, Readdirs::InOrder);
        assert_eq!(story.play(fetch()).failed, []);
        assert_eq!(story.there.len(), files);
        let listings = &story.server.listings;
        assert_eq!((listings.flights, listings.asked), (1, 2));
    }
}

#[test]
fn answers_may_come_backwards_and_a_server_may_bear_only_one() {
    for how in [Readdirs::Backwards, Readdirs::OneAtATime] {
        for files in [0, 1, 7, 8, 9, 500] {
            let mut story = story(files, how);
            let told = story.play(fetch());
            assert_eq!(told.failed, [], "{how:?}, {files}");
            assert_eq!(story.there.len(), files, "{how:?}");
            assert_eq!(story.server.open, 0);
        }
    }
}

#[test]
fn a_folder_that_cannot_be_read_to_its_end_is_named() {
    let mut story = story(50, Readdirs::Once);
    let told = story.play(fetch());
    let why = Remote::Said("failure".to_owned());
    let doing = "listing the folder";
    let trouble = Trouble::Remote { doing, why };
    assert_eq!(told.failed, [(b"/d".to_vec(), trouble)]);
    assert_eq!(story.there.len(), AT_ONCE - 2, "what was listed comes");
    assert_eq!(story.server.open, 0);
}

/// It is not what the host has, so it does not get its time.
#[test]
fn a_folder_that_cannot_be_read_to_its_end_is_closed_all_the_same() {
    let mut story = story(50, Readdirs::Once);
    let mode = (0o700, 9);
    story.server.modes.insert(b"/d".to_vec(), mode);
    let told = story.play(DownloadPlan {
        preserve: true,
        ..fetch()
    });
    let files = AT_ONCE as u64 - 2;
    assert_eq!((told.tally.done, told.tally.failed), (files, 1));
    assert_eq!(story.finished[&b"d"[..]], (Some(0o700), None));
}

/// Lets both sides speak until neither has more to say; begins files as `begin` says.
fn speak(
    download: &mut Download,
    server: &mut FakeServer,
    channel: &mut FakeChannel,
    mut begin: impl FnMut(DownloadNeed) -> Option<Fetched>,
) {
    loop {
        while let Some(need) = download.poll_need() {
            let fetched = match need {
                DownloadNeed::Folder { id, .. } => Some(Fetched::Folder { id, made: Ok(()) }),
                need => begin(need),
            };
            if let Some(fetched) = fetched {
                download.provide(fetched);
            }
        }
        let sent = download.transmit(0).collect::<Vec<_>>().concat();
        if sent.is_empty() {
            return;
        }
        download.transmitted(0, sent.len());
        let answer = server.handle(channel, &sent);
        download.handle_input(0, &answer).unwrap();
    }
}

#[test]
fn no_more_is_listed_than_the_limit_until_files_are_fetched() {
    let files = 2 * MOST_FOUND;
    let mut server = server(files, Readdirs::InOrder);
    server.listings.at_once = Some(1000);
    let mut channel = FakeChannel::default();
    let mut download = Download::new(Arc::new(fetch()));
    let mut waiting = Vec::new();
    speak(&mut download, &mut server, &mut channel, |need| {
        waiting.push(need);
        None
    });
    let found = download.found();
    let most = MOST_FOUND + MOST_READS * 1000;
    assert!((MOST_FOUND..most).contains(&found), "{found}");
    let unchanged = |need| match need {
        DownloadNeed::Begin { file, .. } => {
            let begun = Ok(Begun::Unchanged);
            Some(Fetched::Begun { file, begun })
        }
        need => panic!("{need:?}"),
    };
    for need in waiting {
        download.provide(unchanged(need).unwrap());
    }
    speak(&mut download, &mut server, &mut channel, unchanged);
    assert_eq!(download.tally().unchanged, files as u64);
    assert_eq!(server.open, 0);
}

proptest! {
    #[test]
    fn an_interruption_at_any_time_ends_it(files in 0usize..300, round in 0usize..30, how in 0usize..3) {
        let how = [Readdirs::InOrder, Readdirs::Backwards, Readdirs::OneAtATime][how];
        let mut story = story(files, how);
        story.interrupt_after = Some(round);
        story.play(fetch());
        prop_assert_eq!(story.server.open, 0);
    }
}

/// As OpenSSH's server does it: it leaves out what it cannot look at.
#[test]
fn a_folder_that_may_be_read_and_not_searched_is_told() {
    for (mode, failed) in [(0o644, 1), (0o700, 0)] {
        let mut story = story(3, Readdirs::InOrder);
        story.server.modes_bind = true;
        story.server.modes.insert(b"/d".to_vec(), (mode, 1));
        let told = story.play(fetch());
        assert_eq!(told.failed.len(), failed, "{:?}", told.failed);
        let is_denied = |(path, trouble): &(Vec<u8>, Trouble)| {
            let Trouble::Remote { why, .. } = trouble else {
                return false;
            };
            path == b"/d" && why.to_string().contains("permission denied")
        };
        assert!(told.failed.iter().all(is_denied), "{:?}", told.failed);
        assert_eq!(story.there.len(), 3 * (1 - failed));
    }
}

#[test]
fn a_folder_whose_names_may_be_too_long_with_its_path_is_told() {
    for (len, failed) in [(MAX_PATH - MAX_NAME, 1), (MAX_PATH - MAX_NAME - 1, 0)] {
        let folder = [b"/".as_slice(), &vec![b'd'; len - 1]].concat();
        let file = [&folder, b"/f".as_slice()].concat();
        let mut story = Story::new(&[]);
        story.server = FakeServer::with(&[(&folder, Node::Folder), (&file, Node::File(vec![7]))]);
        let told = story.play(DownloadPlan {
            method: Method::Sftp,
            ..plan(&[&folder])
        });
        let expected = vec![(folder, Trouble::LongFolder); failed];
        assert!(told.failed == expected && story.there.len() == 1, "{len}");
    }
}
