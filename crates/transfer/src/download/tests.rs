//! Downloads from a server in memory: what comes, where it goes, what is refused, what a lost channel costs.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use proptest::prelude::*;
use sshoal_journal::Segments;

use super::*;
use crate::fake_hasher::{FakeHasher, Hasher, fake_hash};
use crate::fake_server::{FakeChannel, FakeServer, MODIFIED, Node};
use crate::glob::Excludes;
use crate::owners::{Owner, Owners, Rights};
use crate::upload::Method;

/// A server, and this machine's folder.
#[derive(Default)]
pub(super) struct Story {
    pub(super) server: FakeServer,
    pub(super) there: BTreeMap<Vec<u8>, (Vec<u8>, u32)>,
    folders: Vec<Vec<u8>>,
    links: BTreeMap<Vec<u8>, Vec<u8>>,
    open: HashMap<LocalFile, (Vec<u8>, Vec<u8>)>,
    /// What an earlier download left in a part, and what of it is proven.
    left: Option<(Vec<u8>, Segments)>,
    /// The file is longer when it is opened than when it was looked for.
    grows: bool,
    /// The file has another time, and the same size, once some of it has come.
    is_touched: bool,
    /// The channels beside the first open other files under the same names.
    helpers_see_others: bool,
    /// Writing here fails.
    is_full: bool,
    pub(super) interrupt_after: Option<usize>,
    /// Beside the first.
    pub(super) channels: usize,
    /// In this round this channel is lost.
    pub(super) lost: Vec<(usize, usize)>,
    /// In this round this channel gets nothing more to do.
    pub(super) retired: Option<(usize, usize)>,
    /// Octets that came over it afterwards.
    pub(super) came_by_retired: usize,
    /// How the host hashes; it does if nothing is said.
    pub(super) hasher: Option<Hasher>,
    /// Files that it was asked for.
    pub(super) hashed: usize,
    /// What is written here is not what comes.
    pub(super) spoils: bool,
    /// Whom things are to belong to.
    pub(super) owners: BTreeMap<Vec<u8>, Owner>,
    /// What folders got at the end: modes and times of modification.
    pub(super) finished: BTreeMap<Vec<u8>, (Option<u32>, Option<u32>)>,
    /// This machine's users and groups.
    pub(super) accounts: BTreeMap<&'static [u8], u32>,
    /// How often it was asked for some.
    pub(super) asked: usize,
    /// What was surplus.
    pub(super) deleted: Vec<Vec<u8>>,
    /// What may be known at a time, if that is less than it would be.
    pub(super) limits: Option<Limits>,
}

pub(super) struct Told {
    pub(super) failed: Vec<(Vec<u8>, Trouble)>,
    pub(super) tally: Tally,
}

pub(super) fn plan(sources: &[&[u8]]) -> DownloadPlan {
    DownloadPlan {
        sources: sources.iter().map(|source| source.to_vec()).collect(),
        recursive: true,
        preserve: false,
        owners: Owners::default(),
        rights: Rights::default(),
        excludes: Excludes::default(),
        hashing: crate::Hashing::default(),
        deletion: crate::Deletion::None,
        in_order: false,
        method: Method::Auto,
        in_flight: 1 << 20,
    }
}

impl Story {
    pub(super) fn new(nodes: &[(&[u8], Node)]) -> Story {
        Story {
            server: FakeServer::with(nodes),
            ..Story::default()
        }
    }

    pub(super) fn play(&mut self, plan: DownloadPlan) -> Told {
        let in_flight = plan.in_flight;
        let mut download = Download::new(Arc::new(plan));
        download.limits = self.limits.unwrap_or_default();
        let mut hasher = FakeHasher::default();
        let mut channels = vec![FakeChannel::default()];
        for _ in 0..self.channels {
            download.add_channel();
            let mut channel = FakeChannel::default();
            channel.sees_others = self.helpers_see_others;
            channels.push(channel);
        }
        let mut failed = Vec::new();
        for round in 0..100_000 {
            if self.interrupt_after == Some(round) {
                download.interrupt();
            }
            let mut unwritten = 0;
            let mut needs = Vec::new();
            while let Some(need) = download.poll_need() {
                if let DownloadNeed::Write { data, .. } = &need {
                    unwritten += data.len();
                }
                needs.push(need);
            }
            assert!(
                unwritten <= in_flight * channels.len(),
                "more in flight than was allowed"
            );
            for need in needs {
                if let Some(fetched) = self.fetch(need) {
                    download.provide(fetched);
                }
            }
            let host = self.hasher.unwrap_or(Hasher::Hashes);
            hasher.converse(host, download.hashes(), &self.server);
            download.handle_hashes();
            self.hashed = hasher.files;
            for &(_, channel) in self.lost.iter().filter(|(when, _)| *when == round) {
                self.server.hang_up(&mut channels[channel]);
                download.lose_channel(channel);
            }
            if let Some((_, channel)) = self.retired.filter(|(when, _)| *when == round) {
                download.retire_channel(channel);
            }
            for (number, channel) in channels.iter_mut().enumerate() {
                if self
                    .lost
                    .iter()
                    .any(|&(when, lost)| lost == number && when <= round)
                {
                    continue;
                }
                let sent = download.transmit(number).collect::<Vec<_>>().concat();
                download.transmitted(number, sent.len());
                let answer = self.server.handle(channel, &sent);
                let is_retired = |&(when, channel)| round > when && channel == number;
                if self.retired.as_ref().is_some_and(is_retired) {
                    self.came_by_retired += answer.len();
                }
                download.handle_input(number, &answer).unwrap();
            }
            while let Some(event) = download.poll_event() {
                match event {
                    DownloadEvent::Failed { path, trouble } => failed.push((path, trouble)),
                    DownloadEvent::Ended => {
                        while let Some(need) = download.poll_need() {
                            assert!(matches!(need, DownloadNeed::Discard { .. }), "{need:?}");
                            self.fetch(need);
                        }
                        assert_eq!(self.open.len(), 0, "a part is left");
                        let tally = download.tally();
                        return Told { failed, tally };
                    }
                    _ => {}
                }
            }
        }
        panic!("it does not end");
    }

    fn fetch(&mut self, need: DownloadNeed) -> Option<Fetched> {
        Some(match need {
            DownloadNeed::Folder { id, path } => {
                self.folders.push(path);
                Fetched::Folder { id, made: Ok(()) }
            }
            DownloadNeed::Compare { file, path, size } => {
                let there = self.contents(&path);
                let there = there.filter(|contents| contents.len() as u64 == size);
                let hash = Ok(there.map(fake_hash));
                Fetched::Compared { file, hash }
            }
            DownloadNeed::Accounts { users, groups } => {
                self.asked += 1;
                let of = |names: Vec<Vec<u8>>| {
                    let names = names.into_iter();
                    names
                        .map(|name| self.accounts.get(name.as_slice()).copied())
                        .collect()
                };
                Fetched::Accounts {
                    users: of(users),
                    groups: of(groups),
                }
            }
            DownloadNeed::Touch {
                file,
                path,
                times,
                owner,
                ..
            } => {
                let (_, modified) = self.there.get_mut(&path).unwrap();
                *modified = times.unwrap().1;
                self.owners.insert(path, owner);
                let touched = Ok(());
                Fetched::Touched { file, touched }
            }
            DownloadNeed::Hash { file, size } => {
                let (_, contents) = &self.open[&file];
                assert_eq!(contents.len() as u64, size);
                let hash = Ok(fake_hash(contents));
                Fetched::Hashed { file, hash }
            }
            DownloadNeed::Begin {
                file,
                path,
                like,
                trusts_time,
                owner,
                ..
            } => {
                self.owners.insert(path.clone(), owner);
                let there = self.there.get(&path);
                let there = there.map(|(contents, modified)| (contents.len() as u64, *modified));
                let is_new = like.is_none() || there != like || !trusts_time;
                let (part, proven) = self.left.take().unwrap_or_default();
                if is_new {
                    self.open.insert(file, (path.clone(), part));
                }
                if self.grows {
                    let longer = Node::File([self.server.file(b"/f").unwrap(), b"x"].concat());
                    self.server.nodes.insert(b"/f".to_vec(), longer);
                }
                let begun = match is_new {
                    true => Begun::Ready(proven),
                    false => Begun::Unchanged,
                };
                let begun = Ok(begun);
                Fetched::Begun { file, begun }
            }
            DownloadNeed::Write {
                file,
                channel,
                offset,
                data,
            } => {
                let octets = data.len();
                if self.is_touched {
                    let touched = (0o644, MODIFIED + 1);
                    self.server.modes.insert(b"/f".to_vec(), touched);
                }
                if let Some((_, contents)) = self.open.get_mut(&file) {
                    let end = offset as usize + octets;
                    contents.resize(contents.len().max(end), 0);
                    contents[offset as usize..end].copy_from_slice(&data);
                    contents[0] ^= u8::from(self.spoils && offset == 0);
                }
                let written = match self.is_full {
                    true => Err("no space".to_owned()),
                    false => Ok(()),
                };
                Fetched::Written {
                    file,
                    channel,
                    octets,
                    written,
                }
            }
            DownloadNeed::Finish {
                file,
                size,
                times,
                owner,
                ..
            } => {
                let (path, contents) = self.open.remove(&file).unwrap();
                assert_eq!(self.owners.get(&path), Some(&owner));
                assert_eq!(contents.len() as u64, size);
                let modified = times.map_or(0, |(_, modified)| modified);
                self.there.insert(path, (contents, modified));
                Fetched::Finished {
                    file,
                    finished: Ok(()),
                }
            }
            DownloadNeed::Discard { file } => {
                self.open.remove(&file);
                return None;
            }
            DownloadNeed::Link {
                path,
                target,
                owner,
            } => {
                self.links.insert(path.clone(), target);
                self.owners.insert(path.clone(), owner);
                Fetched::Linked {
                    path,
                    linked: Ok(false),
                }
            }
            DownloadNeed::Delete { surplus } => {
                let below = |path: &[u8], scope: &Vec<u8>| {
                    scope.is_empty() || path.starts_with(&[scope.as_slice(), b"/"].concat())
                };
                let is_surplus = |path: &Vec<u8>| {
                    let mut scopes = surplus.scopes().iter();
                    scopes.any(|scope| below(path, scope))
                        && !surplus.is_fetched(path)
                        && !surplus.is_spared(path)
                };
                let paths = self.there.keys();
                self.deleted = paths.filter(|path| is_surplus(path)).cloned().collect();
                if !surplus.only_told {
                    self.there.retain(|path, _| !self.deleted.contains(path));
                }
                Fetched::Deleted {
                    deleted: self.deleted.clone(),
                    failed: Vec::new(),
                }
            }
            DownloadNeed::FinishFolder {
                path,
                owner,
                mode,
                times,
            } => {
                let modified = times.map(|(_, modified)| modified);
                self.finished.insert(path.clone(), (mode, modified));
                self.owners.insert(path.clone(), owner);
                Fetched::FolderFinished {
                    path,
                    finished: Ok(()),
                }
            }
        })
    }

    pub(super) fn contents(&self, path: &[u8]) -> Option<&[u8]> {
        self.there
            .get(path)
            .map(|(contents, _)| contents.as_slice())
    }
}

pub(super) fn noise(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 5 + at / 253) as u8).collect()
}

pub(super) fn site() -> Vec<(&'static [u8], Node)> {
    vec![
        (b"/site", Node::Folder),
        (b"/site/a", Node::Folder),
        (b"/site/a/x", Node::File(noise(700_000))),
        (b"/site/a/empty", Node::File(vec![])),
        (b"/site/\xff", Node::File(noise(5))),
        (b"/site/link", Node::Link(b"a/x".to_vec())),
    ]
}

#[test]
fn a_tree_arrives_whole_and_again_changes_nothing() {
    let mut story = Story::new(&site());
    let kept = DownloadPlan {
        preserve: true,
        ..plan(&[b"/site"])
    };
    let told = story.play(kept.clone());
    assert_eq!((told.failed, told.tally.done), (vec![], 6));
    assert_eq!(story.contents(b"site/a/x"), Some(&noise(700_000)[..]));
    assert_eq!(story.contents(b"site/a/empty"), Some(&b""[..]));
    assert_eq!(story.contents(b"site/\xff"), Some(&noise(5)[..]));
    assert_eq!(story.links[&b"site/link"[..]], b"a/x");
    assert_eq!(story.there[&b"site/\xff"[..]].1, MODIFIED);
    let again = story.play(kept);
    assert_eq!((again.tally.unchanged, again.tally.octets), (2, 0));
    // Without its name.
    let mut inside = Story::new(&site());
    inside.play(plan(&[b"/site/"]));
    assert!(inside.contents(b"a/x").is_some());
}

#[test]
fn patterns_find_what_they_say_and_excludes_leave_out() {
    let nodes = [
        (&b"/d"[..], Node::Folder),
        (b"/d/a.log", Node::File(noise(1))),
        (b"/d/b.log", Node::File(noise(2))),
        (b"/d/b.txt", Node::File(noise(3))),
        (b"/e", Node::Folder),
        (b"/e/a.log", Node::File(noise(4))),
    ];
    let mut story = Story::new(&nodes);
    let told = story.play(plan(&[b"/d/*.log", b"/?/nothing*"]));
    assert_eq!(story.there.len(), 2, "{:?}", told.failed);
    assert_eq!(told.failed, [(b"/?/nothing*".to_vec(), Trouble::NoMatch)]);
    let mut story = Story::new(&nodes);
    let told = story.play(plan(&[b"/*/b.txt"]));
    assert_eq!(
        (told.failed, story.there.len()),
        (vec![], 1),
        "one folder has it, and that is enough"
    );
    let mut story = Story::new(&nodes);
    let excludes = Excludes::new([b"b.*".to_vec()]);
    story.play(DownloadPlan {
        excludes,
        ..plan(&[b"/d"])
    });
    assert_eq!(
        story.there.keys().collect::<Vec<_>>(),
        [&b"d/a.log".to_vec()]
    );
}

#[test]
fn a_large_file_is_divided_and_short_reads_are_completed() {
    let len = 40 << 20;
    let mut story = Story::new(&[(b"/big", Node::File(noise(len)))]);
    story.channels = 1;
    story.server.short_reads = Some(50_000);
    let told = story.play(plan(&[b"/big"]));
    assert_eq!((told.failed, told.tally.octets), (vec![], len as u64));
    assert!(story.contents(b"big") == Some(&noise(len)[..]));
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    let mut story = Story::new(&site());
    story.server.bad_names = vec![
        b"../../etc/passwd".to_vec(),
        b"a/b".to_vec(),
        b"".to_vec(),
        b"x\0".to_vec(),
    ];
    let told = story.play(plan(&[b"/site"]));
    let bad = told
        .failed
        .iter()
        .filter(|(_, trouble)| matches!(trouble, Trouble::BadName(_)));
    // In both folders.
    assert_eq!(bad.count(), 8);
    let leads_out = |path: &Vec<u8>| {
        path.split(|&octet| octet == b'/')
            .any(|name| matches!(name, b".." | b""))
    };
    assert!(!story.there.keys().chain(&story.folders).any(leads_out));
    assert!(story.contents(b"site/a/x").is_some(), "the rest arrives");
}

#[test]
fn what_cannot_be_written_here_is_told_and_leaves_nothing() {
    let mut story = Story::new(&site());
    story.is_full = true;
    let told = story.play(plan(&[b"/site/a/x"]));
    let error = "no space".to_owned();
    let trouble = Trouble::Local {
        doing: "writing",
        error,
    };
    assert_eq!(told.failed, [(b"/site/a/x".to_vec(), trouble)]);
    assert!(story.there.is_empty());
}

proptest! {
    #[test]
    fn an_interruption_at_any_time_leaves_no_part(round in 0usize..60, in_flight in 40_000usize..2_000_000) {
        let mut story = Story::new(&site());
        story.interrupt_after = Some(round);
        story.play(DownloadPlan { in_flight, ..plan(&[b"/site"]) });
    }
}

/// A file of which some pieces are proven to be here, and the rest is not what it is to be.
fn half_done(pieces: &[(usize, usize)]) -> (Story, u64) {
    let contents = noise(3_000_000);
    let mut part = vec![0xee; 2_900_000];
    let mut proven = Segments::default();
    for &(start, end) in pieces {
        part.resize(part.len().max(end), 0xee);
        part[start..end].copy_from_slice(&contents[start..end]);
        proven.insert(start as u64..end as u64);
    }
    let rest = contents.len() as u64 - proven.octets();
    let mut story = Story::new(&[(b"/f", Node::File(contents))]);
    story.left = Some((part, proven));
    (story, rest)
}

#[test]
fn what_is_proven_to_be_here_is_not_fetched_again() {
    for channels in [0, 1] {
        for pieces in [
            &[(0, 1_000_000)][..],
            &[(500_000, 1_500_001), (2_000_000, 2_000_005)],
            &[(2_000_000, 3_000_000)],
            &[(0, 3_000_000)],
        ] {
            let (mut story, rest) = half_done(pieces);
            story.channels = channels;
            let told = story.play(plan(&[b"/f"]));
            assert_eq!((told.failed, told.tally.octets), (vec![], rest));
            assert!(story.there[&b"f"[..]].0 == noise(3_000_000), "{pieces:?}");
        }
    }
}

#[test]
fn a_file_that_changes_while_it_is_read_is_not_put_in_place() {
    let mut story = Story::new(&[(b"/f", Node::File(noise(100_000)))]);
    story.is_touched = true;
    let told = story.play(plan(&[b"/f"]));
    assert_eq!(told.failed, [(b"/f".to_vec(), Trouble::Changed)]);
    assert_eq!(story.there.len(), 0);
}

#[test]
fn a_file_that_another_has_replaced_when_a_further_channel_opens_it_is_not_made_up_of_both() {
    for seen_by_helpers in [false, true] {
        let contents = noise(40 << 20);
        let mut story = Story::new(&[(b"/f", Node::File(contents.clone()))]);
        story.channels = 1;
        story.helpers_see_others = seen_by_helpers;
        let told = story.play(plan(&[b"/f"]));
        let changed = (b"/f".to_vec(), Trouble::Changed);
        let expected = if seen_by_helpers {
            vec![changed]
        } else {
            vec![]
        };
        assert_eq!(told.failed, expected);
        assert_eq!(story.there.len(), usize::from(!seen_by_helpers));
    }
}

#[test]
fn what_is_proven_of_what_a_file_was_is_not_used() {
    let (mut story, _) = half_done(&[(0, 1_000_000)]);
    story.grows = true;
    let told = story.play(plan(&[b"/f"]));
    assert_eq!(told.failed, [(b"/f".to_vec(), Trouble::Changed)]);
    assert_eq!(story.there.len(), 0);
}

#[test]
fn a_channel_that_is_retired_gets_nothing_more_and_everything_comes() {
    let contents: Vec<u8> = (0..40 << 20).map(|at| (at * 7 + at / 251) as u8).collect();
    for round in [0, 4, 9, 12] {
        let mut story = Story::new(&[(b"/f", Node::File(contents.clone()))]);
        story.channels = 3;
        story.retired = Some((round, 2));
        let told = story.play(plan(&[b"/f"]));
        assert_eq!(told.failed, []);
        assert!(story.there[&b"f".to_vec()].0 == contents);
        assert!(story.came_by_retired < 1 << 20, "{}", story.came_by_retired);
    }
}

#[test]
fn whenever_channels_are_lost_everything_comes() {
    let large = 9_500_000;
    let contents = |number: usize| -> Vec<u8> {
        let len = if number == 3 { large } else { number * 997 };
        (0..len).map(|at| (at * 7 + at / 251) as u8).collect()
    };
    let files: Vec<(Vec<u8>, Node)> = (0..40)
        .map(|number| {
            (
                format!("/d/{number}").into_bytes(),
                Node::File(contents(number)),
            )
        })
        .collect();
    let mut nodes: Vec<(&[u8], Node)> = vec![(b"/d", Node::Folder)];
    nodes.extend(files.iter().map(|(path, node)| (&path[..], node.clone())));
    let mut losses: Vec<Vec<(usize, usize)>> =
        (0..40).map(|round| vec![(round, 1 + round % 3)]).collect();
    losses.push(vec![(2, 1), (5, 2), (9, 3)]);
    losses.push(vec![(8, 3), (12, 2), (13, 1)]);
    for lost in losses {
        let mut story = Story::new(&nodes);
        story.channels = 3;
        // Answers in pieces make ranges to be asked for again.
        story.server.short_reads = (lost[0].0 % 2 == 1).then_some(20_000);
        story.lost = lost.clone();
        let told = story.play(plan(&[b"/d"]));
        assert_eq!(told.failed, []);
        for number in 0..40 {
            let path = format!("d/{number}").into_bytes();
            assert!(
                story.there[&path].0 == contents(number),
                "{number}, lost {lost:?}"
            );
        }
        assert_eq!(story.server.open, 0, "a handle is left open");
    }
}
