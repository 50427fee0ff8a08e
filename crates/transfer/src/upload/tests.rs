//! Uploads to a server in memory: how they are played, and what arrives.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::fake_hasher::{FakeHasher, Hasher, fake_hash};
use crate::fake_server::{FakeChannel, FakeServer, MODIFIED, Node};
use crate::owners::{Names, Owners};

/// The part of `/f`.
pub(super) const PART: &[u8] = b"/.f.00000007.part";

/// Local files by entry, and an upload of them to a server.
pub(super) struct Story {
    pub(super) server: FakeServer,
    pub(super) contents: Vec<Vec<u8>>,
    /// An entry that changes while it is read, and one that cannot be opened.
    pub(super) changes: Option<usize>,
    pub(super) vanished: Option<usize>,
    /// Interrupt after so many rounds.
    pub(super) interrupt_after: Option<usize>,
    pub(super) channels: usize,
    /// What nobody can foresee.
    pub(super) seed: Option<u64>,
    /// What the journal says of the one file that is worth it; `None` if there is none.
    pub(super) proven: Option<Segments>,
    /// Entries of which it has to say nothing any more.
    pub(super) over: Vec<usize>,
    /// Where there is data, if there are holes.
    pub(super) data: Option<Vec<std::ops::Range<u64>>>,
    /// Stop after so many rounds, as if killed.
    pub(super) cut_after: Option<usize>,
    /// In this round this channel is lost.
    pub(super) lost: Vec<(usize, usize)>,
    /// In this round these channels get nothing more to do.
    pub(super) retired: Option<(usize, std::ops::Range<usize>)>,
    /// Octets that went over them afterwards.
    pub(super) sent_by_retired: usize,
    /// Octets that went over each.
    pub(super) sent: Vec<usize>,
    /// How the host hashes, and how many files it was asked for.
    pub(super) hasher: Hasher,
    pub(super) hashed: usize,
    /// What the host says in a session about its accounts.
    pub(super) accounts: &'static [u8],
    /// Permissions of all files here.
    pub(super) mode: u32,
}

/// What came of it.
pub(super) struct Told {
    pub(super) done: Vec<(usize, bool)>,
    pub(super) failed: Vec<(Vec<u8>, Trouble)>,
    pub(super) deleted: Vec<Vec<u8>>,
    pub(super) tally: Tally,
}

pub(crate) fn entry(path: &[u8], kind: Kind, folder: Option<usize>) -> Entry {
    let mode = match kind {
        Kind::Folder => 0o750,
        _ => 0o640,
    };
    Entry {
        root: 0,
        path: path.to_vec(),
        folder,
        kind,
        mode,
        owner: (1000, 100),
        times: (5, MODIFIED),
    }
}

pub(super) fn plan(target: &[u8], entries: Vec<Entry>) -> UploadPlan {
    let is_folder = entries[0].kind == Kind::Folder;
    UploadPlan {
        target: target.to_vec(),
        roots: vec![UploadRoot {
            name: b"site".to_vec(),
            is_folder,
        }],
        entries,
        left_out: Vec::new(),
        preserve: false,
        owners: Owners::default(),
        names: Names::default(),
        method: Method::Auto,
        writes_devices: false,
        hashing: crate::Hashing::default(),
        surplus: None,
        tag: PartTag(7),
        block: 65_536,
        ahead: 4,
    }
}

impl Story {
    pub(super) fn new(server: FakeServer, contents: Vec<Vec<u8>>) -> Story {
        Story {
            server,
            contents,
            changes: None,
            vanished: None,
            interrupt_after: None,
            channels: 1,
            seed: Some(1),
            proven: None,
            over: Vec::new(),
            data: None,
            cut_after: None,
            lost: Vec::new(),
            retired: None,
            sent_by_retired: 0,
            sent: Vec::new(),
            hasher: Hasher::Hashes,
            hashed: 0,
            accounts: b"",
            mode: 0o640,
        }
    }

    /// Plays it to its end.
    pub(super) fn play(&mut self, plan: UploadPlan) -> Told {
        let mut upload = Upload::new(Arc::new(plan), 0);
        self.seed.into_iter().for_each(|seed| upload.set_seed(seed));
        self.sent = vec![0; self.channels];
        let mut hasher = FakeHasher::default();
        let mut channels: Vec<FakeChannel> =
            (0..self.channels).map(|_| FakeChannel::default()).collect();
        for _ in 1..self.channels {
            upload.add_channel();
        }
        let mut told = Told {
            done: Vec::new(),
            failed: Vec::new(),
            deleted: Vec::new(),
            tally: Tally::default(),
        };
        for round in 0..100_000 {
            if self.interrupt_after == Some(round) {
                upload.interrupt();
            }
            if self.cut_after == Some(round) {
                self.server.open = 0;
                told.tally = upload.tally();
                return told;
            }
            for &(_, channel) in self.lost.iter().filter(|(when, _)| *when == round) {
                // An answer may come too late: the server has done it.
                let sent = upload.transmit(channel).collect::<Vec<_>>().concat();
                let sent = sent[..sent.len().min(40_000)].to_vec();
                self.server.handle(&mut channels[channel], &sent);
                self.server.hang_up(&mut channels[channel]);
                upload.lose_channel(channel);
            }
            if let Some((_, retired)) = self.retired.clone().filter(|(when, _)| *when == round) {
                retired.for_each(|channel| upload.retire_channel(channel));
            }
            while let Some(need) = upload.poll_need() {
                self.provide(&mut upload, need);
            }
            for (number, channel) in channels.iter_mut().enumerate() {
                // A little at a time, as a window would have it.
                if self
                    .lost
                    .iter()
                    .any(|&(when, lost)| lost == number && when <= round)
                {
                    continue;
                }
                let sent = upload.transmit(number).collect::<Vec<_>>().concat();
                let sent = sent[..sent.len().min(40_000)].to_vec();
                upload.transmitted(number, sent.len());
                self.sent[number] += sent.len();
                let is_retired = |(when, channels): &(usize, std::ops::Range<usize>)| {
                    round >= *when && channels.contains(&number)
                };
                if self.retired.as_ref().is_some_and(is_retired) {
                    self.sent_by_retired += sent.len();
                }
                let answer = self.server.handle(channel, &sent);
                upload.handle_input(number, &answer).unwrap();
            }
            hasher.converse(self.hasher, upload.hashes(), &self.server);
            upload.handle_hashes();
            if upload.accounts().wants_session() {
                upload.accounts().opened();
                upload.accounts().hear(self.accounts);
                upload.accounts().end();
                upload.handle_accounts();
            }
            self.hashed = hasher.files;
            while let Some((_, segments)) = upload.poll_proven() {
                self.proven.as_mut().unwrap().extend(&segments);
            }
            self.over.extend(std::iter::from_fn(|| upload.poll_over()));
            while let Some(event) = upload.poll_event() {
                match event {
                    UploadEvent::Done { entry, unchanged } => told.done.push((entry, unchanged)),
                    UploadEvent::Failed { path, trouble } => told.failed.push((path, trouble)),
                    UploadEvent::Deleted { path } => told.deleted.push(path),
                    UploadEvent::Moved(_) => {}
                    UploadEvent::Ended => {
                        told.tally = upload.tally();
                        if !self.lost.is_empty() {
                            assert_eq!(upload.octets_left(), 0);
                        }
                        told.done.sort_unstable();
                        assert_eq!(self.server.open, 0, "a handle is left open");
                        return told;
                    }
                }
            }
        }
        panic!("it does not end");
    }

    fn provide(&mut self, upload: &mut Upload, need: UploadNeed) {
        match need {
            UploadNeed::Open { entry } => upload.provide_opened(
                entry,
                match self.vanished == Some(entry) {
                    true => Err("no such file".to_owned()),
                    false => Ok(Opened {
                        size: Some(self.contents[entry].len() as u64),
                        data: self.data.clone(),
                        mode: self.mode,
                        times: (5, MODIFIED),
                        proven: self
                            .proven
                            .clone()
                            .filter(|_| self.contents[entry].len() as u64 >= 2 * CHECKPOINT),
                    }),
                },
            ),
            UploadNeed::Read {
                entry, offset, len, ..
            } => {
                let rest = &self.contents[entry][offset as usize..];
                let data = rest[..rest.len().min(len)].to_vec();
                upload.provide_data(need, Ok(Arc::new(data)));
            }
            UploadNeed::Check { entry, hashes } => {
                let hash = hashes.then(|| fake_hash(&self.contents[entry]));
                upload.provide_checked(entry, Ok(self.changes != Some(entry)), hash);
            }
            UploadNeed::Forget { entry } => {
                let parts = self.parts();
                self.proven = Some(Segments::default());
                upload.provide_forgotten(entry, Ok(()));
                assert_eq!(self.parts(), parts, "its part goes only afterwards");
            }
            UploadNeed::Hash { entry } => {
                let hash = match self.vanished == Some(entry) {
                    true => Err("no such file".to_owned()),
                    false => Ok(fake_hash(&self.contents[entry])),
                };
                upload.provide_hash(entry, hash);
            }
            UploadNeed::Release { .. } => {}
        }
    }

    pub(super) fn parts(&self) -> usize {
        let paths = self.server.nodes.keys();
        paths.filter(|path| path.ends_with(b".part")).count()
    }
}

pub(super) fn noise(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 251) as u8).collect()
}

pub(super) fn file(len: usize) -> Kind {
    Kind::File { size: len as u64 }
}

pub(super) fn tree() -> (Vec<Entry>, Vec<Vec<u8>>) {
    let contents = vec![
        vec![],
        vec![],
        noise(300_000),
        vec![],
        noise(3),
        vec![],
        noise(300_000),
    ];
    let entries = vec![
        entry(b"", Kind::Folder, None),
        entry(b"a", Kind::Folder, Some(0)),
        entry(b"a/x", file(300_000), Some(1)),
        entry(b"a/empty", file(0), Some(1)),
        entry(b"\xff\n", file(3), Some(0)),
        entry(
            b"link",
            Kind::Link {
                target: b"a/x".to_vec(),
            },
            Some(0),
        ),
        entry(
            b"hard",
            Kind::HardLink {
                to: 2,
                size: 300_000,
            },
            Some(0),
        ),
    ];
    (entries, contents)
}

#[test]
fn a_tree_arrives_whole_and_again_changes_nothing() {
    for channels in [1, 2] {
        let (entries, contents) = tree();
        let mut story = Story::new(FakeServer::with(&[(b"/srv", Node::Folder)]), contents);
        story.channels = channels;
        let kept = UploadPlan {
            preserve: true,
            ..plan(b"/srv", entries)
        };
        let told = story.play(kept.clone());
        assert_eq!(told.failed, []);
        assert_eq!(told.done.len(), 7);
        assert_eq!(
            story.server.file(b"/srv/site/a/x"),
            Some(&noise(300_000)[..])
        );
        assert_eq!(story.server.file(b"/srv/site/a/empty"), Some(&b""[..]));
        assert_eq!(story.server.file(b"/srv/site/\xff\n"), Some(&noise(3)[..]));
        assert_eq!(
            story.server.nodes[&b"/srv/site/link"[..]],
            Node::Link(b"a/x".to_vec())
        );
        assert_eq!(story.parts(), 0);
        let again = story.play(kept.clone());
        assert_eq!(
            (again.tally.unchanged, again.tally.octets),
            (7, 0),
            "{:?}",
            again.done
        );
        // What is another folder, and another file of the same contents, gets what it lacks, and counts.
        let modes = (0o700, MODIFIED);
        story.server.modes.insert(b"/srv/site/a".to_vec(), modes);
        story.server.inodes.remove(&b"/srv/site/hard"[..]);
        let again = story.play(kept);
        let copied: Vec<usize> = again
            .done
            .iter()
            .filter_map(|&(entry, unchanged)| (!unchanged).then_some(entry))
            .collect();
        assert_eq!(copied, [1, 6]);
        assert_eq!(story.server.modes[&b"/srv/site/a"[..]], (0o750, MODIFIED));
        let inodes = &story.server.inodes;
        let (original, other) = (&b"/srv/site/a/x"[..], &b"/srv/site/hard"[..]);
        assert_eq!(inodes[original], inodes[other]);
    }
}

#[test]
fn a_plain_server_gets_everything_too() {
    let (entries, contents) = tree();
    let mut server = FakeServer::with(&[(b"/srv", Node::Folder), (b"/srv/site", Node::Folder)]);
    server
        .nodes
        .insert(b"/srv/site/\xff\n".to_vec(), Node::File(b"older".to_vec()));
    server.is_plain = true;
    let mut story = Story::new(server, contents);
    let told = story.play(plan(b"/srv/", entries));
    assert_eq!(told.failed, []);
    assert_eq!(story.server.file(b"/srv/site/\xff\n"), Some(&noise(3)[..]));
    assert_eq!(
        story.server.file(b"/srv/site/hard"),
        Some(&noise(300_000)[..])
    );
    assert_eq!(
        story.server.largest_write, 32_768,
        "what every server bears"
    );
    assert_eq!(story.parts(), 0);
}

#[test]
fn a_large_file_is_divided_between_channels() {
    let len = 40 << 20;
    let mut story = Story::new(FakeServer::default(), vec![noise(len)]);
    story.channels = 2;
    let told = story.play(plan(b"/big", vec![entry(b"", file(len), None)]));
    assert_eq!(
        (told.tally.done, told.tally.octets),
        (1, len as u64),
        "{:?}",
        told.failed
    );
    assert!(story.server.file(b"/big") == Some(&noise(len)[..]));
    assert!(story.sent.iter().all(|&sent| sent > len / 3));
    assert!(story.server.largest_write <= 128 * 1024);
}

#[test]
fn what_an_earlier_run_left_is_replaced() {
    let server = FakeServer::with(&[(b"/.f.00000007.part", Node::Link(b"/etc/shadow".to_vec()))]);
    let mut story = Story::new(server, vec![noise(10)]);
    let told = story.play(plan(b"/f", vec![entry(b"", file(10), None)]));
    assert_eq!(
        (told.tally.done, story.parts()),
        (1, 0),
        "{:?}",
        told.failed
    );
    assert_eq!(story.server.file(b"/f"), Some(&noise(10)[..]));
}

#[test]
fn what_is_sent_and_not_confirmed_is_left() {
    let len = 3_000_000;
    let mut story = Story::new(FakeServer::default(), vec![noise(len)]);
    let plan = plan(b"/f", vec![entry(b"", file(len), None)]);
    let mut upload = Upload::new(Arc::new(plan), 0);
    let mut channel = FakeChannel::default();
    let mut most_sent = 0;
    while upload.poll_event() != Some(UploadEvent::Ended) {
        while let Some(need) = upload.poll_need() {
            story.provide(&mut upload, need);
        }
        let sent = upload.transmit(0).collect::<Vec<_>>().concat();
        upload.transmitted(0, sent.len());
        most_sent = most_sent.max(sent.len());
        let all = |upload: &Upload| upload.tally().octets + upload.octets_left();
        assert_eq!(all(&upload), len as u64);
        let answer = story.server.handle(&mut channel, &sent);
        upload.handle_input(0, &answer).unwrap();
        assert_eq!(all(&upload), len as u64);
    }
    assert!(most_sent > 65_536, "nothing was on its way");
    assert_eq!(
        (upload.tally().octets, upload.octets_left()),
        (len as u64, 0)
    );
}
