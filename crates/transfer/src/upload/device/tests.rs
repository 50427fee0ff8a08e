//! An image goes onto a host's block device: in which blocks, by dd or over SFTP, and what a cut leaves.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use super::*;
use crate::fake_server::{FakeChannel, FakeServer, Node};
use crate::upload::tests::{entry, plan};
use crate::upload::{UploadEvent, UploadPlan};

const DEVICE: &[u8] = b"/dev/sdx";
const ROOM: usize = 5 << 20;

/// What stands for the host's dd.
#[derive(Default)]
struct FakeDd {
    input: Vec<u8>,
    /// Its lines so far: where, what, segments.
    told: usize,
    /// Fails when it is to write this octet.
    broken_at: Option<usize>,
    /// Writes through the kernel's memory.
    is_plain: bool,
    /// The device's own memory cannot be emptied in the end.
    fails_at_end: bool,
    has_failed: bool,
    /// Octets of each write of each segment.
    blocks: Vec<usize>,
}

impl FakeDd {
    fn line(&mut self) -> Option<String> {
        let end = self.input.iter().position(|&octet| octet == b'\n')?;
        let line = self.input.drain(..=end).collect();
        Some(String::from_utf8(line).unwrap().trim_end().to_owned())
    }

    /// Takes what it is sent; returns what it says.
    fn take(&mut self, octets: &[u8], device: &mut [u8]) -> String {
        if self.has_failed {
            return String::new();
        }
        self.input.extend_from_slice(octets);
        let before = self.input.clone();
        let Some(line) = self.line() else {
            return String::new();
        };
        let numbers: Vec<usize> = line.split(' ').flat_map(str::parse).collect();
        match (self.told, line.as_str()) {
            (0, path) => assert_eq!(path.as_bytes(), DEVICE),
            (1, what) => {
                assert_eq!(what, "8:1f0 4096");
                self.told = 2;
                let how = if self.is_plain { "plain" } else { "direct" };
                return format!("hello\nsshoal-ready {how}\n");
            }
            (_, "end") => return format!("sshoal-end {}\n", u8::from(self.fails_at_end)),
            _ => {
                let (block, count, at) = (numbers[0], numbers[1], numbers[0] * numbers[2]);
                let len = block * count;
                if self.input.len() < len {
                    self.input = before;
                    return String::new();
                }
                let broken = |broken: &usize| (at..at + len).contains(broken);
                if let Some(broken) = self.broken_at.filter(broken) {
                    self.has_failed = true;
                    let whole = (broken - at) / block;
                    return format!("dd: it broke\n{whole}+0 records out\nsshoal-failed 1\n");
                }
                device[at..at + len].copy_from_slice(&self.input[..len]);
                self.input.drain(..len);
                self.blocks.push(block);
                return "sshoal-written\n".to_owned() + &self.take(b"", device);
            }
        }
        self.told += 1;
        self.take(b"", device)
    }
}

struct Story {
    server: FakeServer,
    image: Vec<u8>,
    kind: Kind,
    dd: Option<FakeDd>,
    confirmed: bool,
    changes: bool,
    interrupt_after: Option<usize>,
}

impl Story {
    fn new(image: usize) -> Story {
        let file = |text: &str| Node::File(text.as_bytes().to_vec());
        let size = (ROOM / 512).to_string();
        let image: Vec<u8> = (0..image).map(|at| (at / 11) as u8).collect();
        Story {
            server: FakeServer::with(&[
                (DEVICE, Node::Device(vec![0xff; ROOM])),
                (b"/sys/class/block/sdx/size", file(&size)),
                (b"/sys/class/block/sdx/dev", file("8:496\n")),
                (
                    b"/sys/class/block/sdx/queue/physical_block_size",
                    file("4096\n"),
                ),
                (
                    b"/sys/class/block/sdx/queue/logical_block_size",
                    file("512\n"),
                ),
                (b"/proc/swaps", file("Filename\n")),
            ]),
            kind: Kind::File {
                size: image.len() as u64,
            },
            image,
            dd: Some(FakeDd::default()),
            confirmed: true,
            changes: false,
            interrupt_after: None,
        }
    }

    fn held(&self) -> &[u8] {
        match &self.server.nodes[DEVICE] {
            Node::Device(contents) => contents,
            other => panic!("{other:?} is no device any more"),
        }
    }

    /// Plays it to its end; returns what failed.
    fn play(&mut self) -> Option<Trouble> {
        let plan = UploadPlan {
            writes_devices: self.confirmed,
            ..plan(DEVICE, vec![entry(b"", self.kind.clone(), None)])
        };
        let mut upload = Upload::new(Arc::new(plan), 0);
        let (mut channel, mut failed, mut moved) = (FakeChannel::default(), None, 0);
        for round in 0..10_000 {
            if self.interrupt_after == Some(round) {
                upload.interrupt();
            }
            let sent = upload.transmit(0).collect::<Vec<_>>().concat();
            upload.transmitted(0, sent.len());
            let answer = self.server.handle(&mut channel, &sent);
            // Nothing is gone on with by chance.
            if !answer.is_empty() {
                upload.handle_input(0, &answer).unwrap();
            }
            if upload.wants_stream() {
                upload.add_stream();
                if self.dd.is_none() {
                    upload.end_stream(0);
                }
            }
            self.run_dd(&mut upload);
            while let Some(need) = upload.poll_need() {
                self.provide(&mut upload, need);
            }
            while let Some(event) = upload.poll_event() {
                match event {
                    UploadEvent::Deleted { .. } => unreachable!("nothing is to be deleted"),
                    UploadEvent::Failed { trouble, .. } => failed = Some(trouble),
                    UploadEvent::Moved(octets) => moved += octets,
                    UploadEvent::Done { .. } => assert_eq!(moved, self.image.len() as u64),
                    UploadEvent::Ended => {
                        assert_eq!(self.server.open, 0, "handles are left");
                        assert!(self.server.nodes.len() == 6, "something was made");
                        return failed;
                    }
                }
            }
        }
        panic!("it never ended");
    }

    fn run_dd(&mut self, upload: &mut Upload) {
        if let (Some(dd), Some(Node::Device(device))) =
            (&mut self.dd, self.server.nodes.get_mut(DEVICE))
            && upload
                .device
                .as_ref()
                .is_some_and(|it| it.session.is_some())
        {
            let octets = upload.stream_transmit(0).to_vec();
            if octets.is_empty() {
                return;
            }
            upload.stream_transmitted(0, octets.len());
            let said = dd.take(&octets, device);
            upload.handle_stream_input(0, said.as_bytes());
        }
    }

    fn provide(&self, upload: &mut Upload, need: UploadNeed) {
        match need {
            UploadNeed::Open { entry } => {
                let is_stream = self.kind == Kind::Stream;
                let opened = Opened {
                    size: (!is_stream).then_some(self.image.len() as u64),
                    data: None,
                    proven: None,
                    mode: 0o600,
                    times: (0, 0),
                };
                upload.provide_opened(entry, Ok(opened));
            }
            UploadNeed::Read { offset, len, .. } => {
                let at = self.image.len().min(offset as usize);
                let end = self.image.len().min(at + len);
                let data = Arc::new(self.image[at..end].to_vec());
                upload.provide_data(need, Ok(data));
            }
            UploadNeed::Check { entry, .. } => {
                upload.provide_checked(entry, Ok(!self.changes), None);
            }
            UploadNeed::Release { .. } => {}
            other => panic!("{other:?} of a device"),
        }
    }

    #[track_caller]
    fn arrives(&mut self) {
        assert_eq!(self.play(), None);
        let (image, rest) = self.held().split_at(self.image.len());
        assert!(image == self.image && rest.iter().all(|&octet| octet == 0xff));
    }
}

#[test]
fn images_arrive_by_dd_in_whole_blocks() {
    for (len, blocks) in [
        (0, &[][..]),
        (3 << 20, &[1 << 20]),
        ((2 << 20) + 3 * 4096, &[1 << 20, 4096]),
        ((2 << 20) + 4096 + 1024 + 9, &[1 << 20, 4096, 512, 1]),
        (9, &[1]),
        (ROOM, &[1 << 20]),
    ] {
        let mut story = Story::new(len);
        story.arrives();
        assert_eq!(story.dd.unwrap().blocks, blocks, "{len} octets");
    }
}

#[test]
fn what_ends_when_it_ends_arrives_in_whole_blocks_too() {
    for len in [0, 9, 3 << 20, (2 << 20) + 4096 + 9, ROOM] {
        let mut story = Story::new(len);
        story.kind = Kind::Stream;
        story.arrives();
        let blocks = story.dd.unwrap().blocks;
        assert!(
            blocks.is_sorted_by(|before, after| before >= after),
            "{blocks:?}"
        );
        let large = blocks.iter().filter(|&&block| block == 1 << 20).count();
        assert_eq!(large, len >> 20, "{blocks:?}");
    }
}

#[test]
fn without_a_session_everything_goes_over_sftp() {
    for kind in [None, Some(Kind::Stream)] {
        let mut story = Story::new((2 << 20) + 4097);
        story.dd = None;
        story.kind = kind.unwrap_or(story.kind);
        story.arrives();
        assert_eq!(story.server.largest_write, 65_536, "a block as it is read");
    }
}

#[test]
fn nothing_is_touched_that_must_not_be() {
    let refused = |change: fn(&mut Story)| {
        let mut story = Story::new(1 << 20);
        change(&mut story);
        let trouble = story.play().unwrap();
        assert!(story.held().iter().all(|&octet| octet == 0xff));
        trouble
    };
    let put = |story: &mut Story, path: &[u8], text: &str| {
        let node = Node::File(text.as_bytes().to_vec());
        story.server.nodes.insert(path.to_vec(), node);
    };
    assert_eq!(
        refused(|it| it.confirmed = false),
        Trouble::DeviceNotConfirmed
    );
    let too_small = refused(|it| it.kind = Kind::File { size: 1 << 40 });
    let (image, size) = (1 << 40, ROOM as u64);
    assert_eq!(too_small, Trouble::DeviceTooSmall { image, size });
    let held = refused(|it| it.server.holds_devices = true);
    assert!(matches!(held, Trouble::DeviceInUse(_)));
    let mut swapped = Story::new(10);
    put(
        &mut swapped,
        b"/proc/swaps",
        "Filename\n/dev/sdx partition 1 0 -2\n",
    );
    assert!(matches!(swapped.play(), Some(Trouble::DeviceInUse(_))));
    let mut unknown = Story::new(10);
    put(&mut unknown, b"/sys/class/block/sdx/size", "large\n");
    assert_eq!(unknown.play(), Some(Trouble::DeviceUnknown));
}

#[test]
fn what_is_cut_says_how_far_it_came() {
    let half = |story: &mut Story| match story.play() {
        Some(Trouble::DeviceHalfWritten { at, why }) => (at, why),
        other => panic!("{other:?}"),
    };
    let mut story = Story::new(4 << 20);
    let broken_at = Some((3 << 20) + 7);
    story.dd = Some(FakeDd {
        broken_at,
        ..FakeDd::default()
    });
    let (at, why) = half(&mut story);
    assert_eq!(at, 3 << 20);
    assert!(why.contains("it broke"), "{why}");
    let mut story = Story::new(4 << 20);
    story.changes = true;
    assert_eq!(half(&mut story), (4 << 20, Trouble::Changed.to_string()));
    let mut story = Story::new(4 << 20);
    story.dd = None;
    story.server.room = Some(1 << 20);
    let (at, why) = half(&mut story);
    assert_eq!(at, 1 << 20, "which an fsync has proven");
    assert!(why.starts_with("writing on the host"), "{why}");
    let mut story = Story::new(ROOM + 1);
    story.kind = Kind::Stream;
    assert!(half(&mut story).1.contains(&(ROOM + 1).to_string()));
    for round in 0..40 {
        let mut broken = Story::new(4 << 20);
        broken.dd = None;
        broken.server.room = Some(1 << 20);
        broken.interrupt_after = Some(round);
        if let Some(Trouble::DeviceHalfWritten { at, .. }) = broken.play() {
            assert!(at <= 1 << 20, "{at}");
        }
        let mut story = Story::new(4 << 20);
        story.interrupt_after = Some(round);
        match story.play() {
            // Whole, or not even looked for: then who interrupted tells of it.
            None => {
                let is_untouched = story.held().iter().all(|&octet| octet == 0xff);
                assert!(is_untouched || story.held().starts_with(&story.image));
            }
            Some(Trouble::Interrupted) => assert!(story.held().iter().all(|&it| it == 0xff)),
            Some(Trouble::DeviceHalfWritten { .. }) => {}
            Some(other) => panic!("{other}"),
        }
    }
}

#[test]
fn what_only_the_kernel_has_taken_is_not_said_to_be_written() {
    let mut by_sftp = Story::new(4 << 20);
    by_sftp.dd = None;
    by_sftp.server.refuses_fsync = true;
    let mut no_room = Story::new(4 << 20);
    no_room.dd = None;
    no_room.server.refuses_fsync = true;
    no_room.server.room = Some(1 << 20);
    let mut by_plain_dd = Story::new(4 << 20);
    by_plain_dd.dd = Some(FakeDd {
        broken_at: Some(3 << 20),
        is_plain: true,
        ..FakeDd::default()
    });
    let mut at_the_end = Story::new(4 << 20);
    at_the_end.dd = Some(FakeDd {
        fails_at_end: true,
        ..FakeDd::default()
    });
    for mut story in [by_sftp, no_room, by_plain_dd, at_the_end] {
        let trouble = story.play();
        let Some(Trouble::DeviceHalfWritten { at: 0, .. }) = trouble else {
            panic!("{trouble:?}");
        };
    }
}
