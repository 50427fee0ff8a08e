//! Hosts that would have us remember more than there is room for, and honest ones that have much.

#![allow(clippy::unwrap_used)]

use super::tests::{Story, plan};
use super::*;
use crate::MAX_TOLD;
use crate::fake_server::{FakeChannel, FakeServer, Node};
use crate::sftp::MAX_PENDING;
use crate::upload::Method;

/// A folder `/d` with so many of something.
fn full_of(count: usize, node: &Node) -> FakeServer {
    let mut server = FakeServer::with(&[(b"/d", Node::Folder)]);
    for number in 0..count {
        let path = format!("/d/{number:05}").into_bytes();
        server.nodes.insert(path, node.clone());
    }
    server.listings.at_once = Some(100);
    server
}

fn file() -> Node {
    Node::File(vec![7])
}

fn link() -> Node {
    Node::Link(b"to".to_vec())
}

/// File by file, and folders have an end.
fn fetch(source: &[u8]) -> DownloadPlan {
    DownloadPlan {
        method: Method::Sftp,
        preserve: true,
        ..plan(&[source])
    }
}

/// Plays to the end where all files are here already; `look` sees how far it is whenever something has come.
fn watch(
    server: &mut FakeServer,
    limits: Limits,
    plan: DownloadPlan,
    look: impl Fn(&Download),
) -> (Vec<(Vec<u8>, Trouble)>, Tally) {
    let mut channel = FakeChannel::default();
    let mut download = Download::new(Arc::new(plan));
    download.limits = limits;
    let mut failed = Vec::new();
    loop {
        while let Some(event) = download.poll_event() {
            match event {
                DownloadEvent::Failed { path, trouble } => failed.push((path, trouble)),
                DownloadEvent::Ended => return (failed, download.tally()),
                _ => {}
            }
        }
        let sent = download.transmit(0).collect::<Vec<_>>().concat();
        download.transmitted(0, sent.len());
        let answer = server.handle(&mut channel, &sent);
        let is_quiet = answer.is_empty();
        download.handle_input(0, &answer).unwrap();
        look(&download);
        let needs: Vec<DownloadNeed> = std::iter::from_fn(|| download.poll_need()).collect();
        let has_ended = download.stage == Stage::Ended;
        assert!(
            !is_quiet || !needs.is_empty() || has_ended,
            "it stands still"
        );
        for need in needs {
            download.provide(match need {
                DownloadNeed::Folder { id, .. } => Fetched::Folder { id, made: Ok(()) },
                DownloadNeed::Begin { file, .. } => Fetched::Begun {
                    file,
                    begun: Ok(Begun::Unchanged),
                },
                DownloadNeed::Link { path, .. } => Fetched::Linked {
                    path,
                    linked: Ok(false),
                },
                DownloadNeed::FinishFolder { path, .. } => Fetched::FolderFinished {
                    path,
                    finished: Ok(()),
                },
                need => panic!("{need:?}"),
            });
            look(&download);
        }
    }
}

#[test]
fn names_that_no_file_system_takes_are_told_by_their_beginning() {
    let mut story = Story::new(&[(b"/d", Node::Folder), (b"/d/f", file())]);
    story.server.bad_names = vec![vec![b'n'; 256], vec![b'm'; 4000]];
    let told = story.play(plan(&[b"/d"]));
    let long = |octet: char, len| {
        let beginning = octet.to_string().repeat(200);
        (b"/d".to_vec(), Trouble::LongName { len, beginning })
    };
    assert_eq!(told.failed, [long('n', 256), long('m', 4000)]);
    assert!(story.contents(b"d/f").is_some(), "the rest arrives");
}

#[test]
fn a_path_that_no_system_takes_is_told_once() {
    let name = [b'x'; 250];
    let mut path = b"/d".to_vec();
    let mut story = Story::new(&[(b"/d", Node::Folder)]);
    for _ in 0..17 {
        path = [path.as_slice(), b"/", &name].concat();
        story.server.nodes.insert(path.clone(), Node::Folder);
    }
    let told = story.play(plan(&[b"/d"]));
    // Of the folder above, which is long enough, nobody knows what a server would leave out.
    let [above, too_long] = [16, 17].map(|folders| path[..2 + folders * 251].to_vec());
    assert!(
        told.failed == [(too_long, Trouble::TooLong), (above, Trouble::LongFolder)],
        "{} failures",
        told.failed.len()
    );
}

#[test]
fn a_name_that_comes_twice_is_taken_once_and_told() {
    let mut story = Story::new(&[(b"/d", Node::Folder), (b"/d/f", file())]);
    story.server.bad_names = vec![b"f".to_vec(), b"f".to_vec()];
    let told = story.play(plan(&[b"/d"]));
    let twice = (b"/d".to_vec(), Trouble::Twice("f".to_owned()));
    assert_eq!(told.failed, [twice.clone(), twice]);
    assert_eq!(told.tally.done, 2);
}

#[test]
fn failures_beyond_the_first_are_counted() {
    let mut story = Story::new(&[(b"/d", Node::Folder)]);
    let bad = |number: usize| format!("bad/{number}").into_bytes();
    story.server.bad_names = (0..MAX_TOLD + 500).map(bad).collect();
    let told = story.play(plan(&[b"/d"]));
    assert_eq!(told.failed.len(), MAX_TOLD + 1);
    let last = (Vec::new(), Trouble::More(500));
    assert_eq!(told.failed.last(), Some(&last));
    assert_eq!(told.tally.failed, MAX_TOLD as u64 + 500);
}

#[test]
fn what_is_known_and_not_here_is_bounded_in_octets_and_all_comes() {
    // A long path is in each of its names' paths.
    let mut server = FakeServer::with(&[]);
    let mut folder = Vec::new();
    for _ in 0..8 {
        folder = [&folder[..], b"/", &[b'x'; 250]].concat();
        server.nodes.insert(folder.clone(), Node::Folder);
    }
    let count = 1500;
    for number in 0..count {
        let node = [file(), link(), Node::Folder][number % 3].clone();
        let path = [&folder[..], format!("/{number}").as_bytes()].concat();
        server.nodes.insert(path, node);
    }
    for hides_types in [false, true] {
        server.listings.hides_types = hides_types;
        let limits = Limits {
            held: 1 << 20,
            ..Limits::default()
        };
        let item = 6 * (folder.len() + 300);
        let plan = fetch(&folder[..251]);
        let (failed, tally) = watch(&mut server, limits, plan, |download| {
            assert!(download.held.now() < limits.held + item);
        });
        assert_eq!(failed, []);
        assert_eq!(tally.done + tally.unchanged, count as u64 + 8);
    }
}

#[test]
fn links_are_made_meanwhile_where_they_are_many() {
    let count = 40_000;
    let mut server = full_of(count, &link());
    server.listings.at_once = Some(2000);
    let (failed, tally) = watch(&mut server, Limits::default(), fetch(b"/d"), |download| {
        assert!(download.links.len() < 30_000, "{}", download.links.len())
    });
    assert_eq!((failed, tally.done), (vec![], count as u64 + 1));
}

#[test]
fn no_more_is_asked_at_a_time_than_a_channel_bears() {
    let count = 5000;
    let looks = |download: &Download| {
        assert!(download.channels[0].client.pending() <= MAX_PENDING);
    };
    let mut server = full_of(count, &file());
    let limits = Limits::default();
    let (failed, tally) = watch(&mut server, limits, fetch(b"/d/*"), looks);
    assert_eq!((failed, tally.unchanged), (vec![], count as u64));
    server.listings.hides_types = true;
    let (failed, tally) = watch(&mut server, limits, fetch(b"/d"), looks);
    assert_eq!((failed, tally.unchanged), (vec![], count as u64));
}

#[test]
fn folders_that_wait_are_few_however_many_there_are() {
    let count = 12_000;
    let mut server = full_of(count, &Node::Folder);
    for number in 0..count {
        let path = format!("/d/{number:05}/file").into_bytes();
        server.nodes.insert(path, file());
    }
    let (failed, tally) = watch(&mut server, Limits::default(), fetch(b"/d"), |download| {
        assert!(download.to_list.len() < 6000, "{}", download.to_list.len())
    });
    assert_eq!(failed, []);
    assert_eq!((tally.done, tally.unchanged), (12_001, 12_000));
}

#[test]
fn a_folder_without_an_end_is_given_up() {
    for source in [&b"/d"[..], b"/d/x*"] {
        let mut server = full_of(10, &file());
        server.listings.is_endless = true;
        server.listings.hides_types = true;
        let limits = Limits {
            names: 10_000,
            told: 20_000,
            ..Limits::default()
        };
        let (failed, tally) = watch(&mut server, limits, fetch(source), |download| {
            let seen = download.listings.values().map(|it| it.names_seen());
            assert!(seen.sum::<usize>() <= limits.names);
        });
        let trouble = Trouble::TooMany {
            what: "names in folders that are listed at a time",
            limit: limits.names,
        };
        assert!(failed.contains(&(b"/d".to_vec(), trouble)), "{failed:?}");
        assert_eq!(server.open, 0, "the folder is closed");
        assert!(source != b"/d" || tally.unchanged >= 10);
    }
}

#[test]
fn names_that_come_faster_than_they_are_taken_have_a_limit_too() {
    let mut server = full_of(5000, &file());
    server.listings.at_once = Some(1000);
    let limits = Limits {
        held: 300_000,
        ..Limits::default()
    };
    let (failed, _) = watch(&mut server, limits, fetch(b"/d"), |_| {});
    let [(path, Trouble::TooMany { limit, .. })] = failed.as_slice() else {
        panic!("{failed:?}");
    };
    assert_eq!((path.as_slice(), *limit), (&b"/d"[..], limits.held));
    assert_eq!(server.open, 0, "the folder is closed");
}

#[test]
fn what_is_kept_to_the_end_has_a_limit() {
    let limits = Limits {
        kept: 50_000,
        ..Limits::default()
    };
    let mut server = full_of(2000, &Node::Folder);
    let looks = |download: &Download| assert!(download.kept.now() <= limits.kept);
    let (failed, tally) = watch(&mut server, limits, fetch(b"/d"), looks);
    assert!(failed.iter().all(|(_, trouble)| matches!(
        trouble,
        Trouble::TooMany { limit: 50_000, .. } | Trouble::More(_)
    )));
    assert!(tally.failed > 1000 && tally.done > 100, "{tally:?}");
    let mut server = full_of(2000, &file());
    let (_, tally) = watch(&mut server, limits, fetch(b"/d/*"), looks);
    assert!(tally.failed > 1000 && tally.unchanged > 100, "{tally:?}");
}

#[test]
fn an_interruption_forgets_names_that_wait() {
    for round in 0..40 {
        let mut story = Story::new(&[]);
        story.server = full_of(2000, &file());
        story.limits = Some(Limits {
            held: 30_000,
            ..Limits::default()
        });
        story.interrupt_after = Some(round);
        story.play(fetch(b"/d"));
        assert_eq!(story.server.open, 0, "{round}");
    }
}
