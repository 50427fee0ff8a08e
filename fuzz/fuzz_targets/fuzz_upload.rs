//! A server that answers what it likes, on two channels one of which may be lost, and hashes what it likes: an upload ends in an error or
//! goes on, without a panic; nothing is said to be in place twice, no more is read ahead than was asked for, and failures are told up to a limit.

#![no_main]

use std::collections::HashSet;
use std::sync::Arc;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use sshoal_journal::Segments;
use sshoal_transfer::{
    Entry, Excludes, FileHash, Hashing, Kind, MAX_TOLD, Method, Names, Opened, Owners, PartTag, Surplus, Upload,
    UploadEvent, UploadNeed, UploadPlan, UploadRoot, Verify,
};
use sshoal_wire::Put;

#[derive(Arbitrary, Debug)]
enum Step<'a> {
    Octets { second: bool, octets: &'a [u8] },
    Packet { second: bool, body: &'a [u8] },
    Answer { second: bool, kind: u8, id: u8, body: &'a [u8] },
    /// A status, which most requests are answered by.
    Status { second: bool, id: u8, code: u8 },
    Handle { second: bool, id: u8, name: u8 },
    Attributes { second: bool, id: u8, size: u32, mode: u16 },
    /// So many octets go.
    Send { second: bool, octets: u16 },
    Say(&'a [u8]),
    /// A hash for each file that is asked for.
    Hash,
    /// What is needed of this machine, or that it is not to be had.
    Provide { fails: bool },
    Lose,
    Interrupt,
}

const SIZES: [u64; 4] = [0, 3, 100_000, 3_000_000];

fuzz_target!(|input: (u8, Vec<Step<'_>>)| {
    let (extensions, steps) = input;
    let plan = Arc::new(plan());
    let mut upload = Upload::new(plan.clone(), 0);
    upload.add_channel();
    for channel in 0..2 {
        let _ = upload.handle_input(channel, &framed(&hello(extensions)));
    }
    upload.hashes().opened();
    upload.hashes().hear(b"sshoal-ready\n");
    upload.handle_hashes();
    let mut done = HashSet::new();
    let mut told = 0;
    let mut is_lost = false;
    for step in steps {
        let (second, input) = match step {
            Step::Octets { second, octets } => (second, octets.to_vec()),
            Step::Packet { second, body } => (second, framed(body)),
            Step::Answer { second, kind, id, body } => (second, answer(kind, id, body)),
            Step::Status { second, id, code } => {
                let mut body = Vec::new();
                body.put_u32(u32::from(code));
                body.put_string(b"it says so");
                body.put_string(b"");
                (second, answer(101, id, &body))
            }
            Step::Handle { second, id, name } => {
                let mut body = Vec::new();
                body.put_string(&[name]);
                (second, answer(102, id, &body))
            }
            Step::Attributes { second, id, size, mode } => {
                let mut body = Vec::new();
                body.put_u32(1 | 4);
                body.put_u64(size.into());
                body.put_u32(mode.into());
                (second, answer(105, id, &body))
            }
            Step::Send { second, octets } => {
                let channel = usize::from(second);
                if !(second && is_lost) {
                    let sent = upload.waiting(channel).min(octets.into());
                    upload.transmitted(channel, sent);
                }
                continue;
            }
            Step::Say(octets) => {
                upload.hashes().hear(octets);
                upload.handle_hashes();
                continue;
            }
            Step::Hash => {
                let sent = upload.hashes().transmit().to_vec();
                upload.hashes().transmitted(sent.len());
                let lines = sent.split(|&octet| octet == b'\n').filter_map(|line| match line.first()? {
                    b'+' | b'=' => Some(format!("{}\n", FileHash([0; 32]))),
                    _ => Some("sshoal-end\n".to_owned()),
                });
                upload.hashes().hear(lines.collect::<String>().as_bytes());
                upload.handle_hashes();
                continue;
            }
            Step::Provide { fails } => {
                while let Some(need) = upload.poll_need() {
                    provide(&mut upload, &plan, need, fails);
                }
                continue;
            }
            Step::Lose => {
                if !is_lost {
                    upload.lose_channel(1);
                    is_lost = true;
                }
                continue;
            }
            Step::Interrupt => {
                upload.interrupt();
                continue;
            }
        };
        if second && is_lost {
            continue;
        }
        let channel = usize::from(second);
        let sent = upload.waiting(channel);
        upload.transmitted(channel, sent);
        if upload.handle_input(channel, &input).is_err() {
            return;
        }
        while let Some((entry, segments)) = upload.poll_proven() {
            assert!(segments.end() <= size_of(&plan, entry), "more is proven than there is");
        }
        while let Some(event) = upload.poll_event() {
            match event {
                UploadEvent::Done { entry, .. } => assert!(done.insert(entry), "{entry} is in place twice"),
                UploadEvent::Failed { .. } => {
                    told += 1;
                    // And how many more there are, and that owners cannot be kept.
                    assert!(told <= MAX_TOLD + 2);
                }
                _ => {}
            }
        }
    }
});

/// Folders, files of several sizes, links of both kinds.
fn plan() -> UploadPlan {
    let entry = |path: &[u8], kind: Kind, folder: Option<usize>| Entry {
        root: 0,
        path: path.to_vec(),
        folder,
        mode: if kind == Kind::Folder { 0o555 } else { 0o640 },
        kind,
        owner: (1000, 100),
        times: (5, 1_500_000_000),
    };
    let mut entries = vec![entry(b"", Kind::Folder, None), entry(b"a", Kind::Folder, Some(0))];
    for (number, size) in SIZES.into_iter().enumerate() {
        let path = format!("a/{number}");
        entries.push(entry(path.as_bytes(), Kind::File { size }, Some(1)));
    }
    let target = b"0".to_vec();
    entries.push(entry(b"a/link", Kind::Link { target }, Some(1)));
    entries.push(entry(b"a/hard", Kind::HardLink { to: 3, size: SIZES[1] }, Some(1)));
    let roots = vec![UploadRoot { name: b"site".to_vec(), is_folder: true }];
    let surplus = Surplus::new(&roots, &entries, Excludes::default(), false);
    UploadPlan {
        target: b"/srv".to_vec(),
        roots,
        entries,
        left_out: Vec::new(),
        preserve: true,
        owners: Owners::Kept { by_name: false },
        names: Names::default(),
        method: Method::Sftp,
        writes_devices: false,
        hashing: Hashing { compares: true, verifies: Verify::Auto },
        surplus: Some(Arc::new(surplus)),
        tag: PartTag(7),
        block: 65_536,
        ahead: 4,
    }
}

fn size_of(plan: &UploadPlan, entry: usize) -> u64 {
    plan.entries[entry].size()
}

fn provide(upload: &mut Upload, plan: &UploadPlan, need: UploadNeed, fails: bool) {
    let why = || "it is gone".to_owned();
    match need {
        UploadNeed::Open { entry } if fails => upload.provide_opened(entry, Err(why())),
        UploadNeed::Open { entry } => {
            let size = size_of(plan, entry);
            let mut proven = Segments::default();
            proven.insert(0..size / 2);
            let opened = Opened {
                size: Some(size),
                data: None,
                mode: 0o640,
                times: (5, 1_500_000_000),
                proven: Some(proven),
            };
            upload.provide_opened(entry, Ok(opened));
        }
        UploadNeed::Read { .. } if fails => upload.provide_data(need, Err(why())),
        UploadNeed::Read { entry, offset, len, .. } => {
            assert!(len <= plan.block && offset <= size_of(plan, entry));
            let rest = usize::try_from(size_of(plan, entry) - offset).unwrap_or(usize::MAX);
            upload.provide_data(need, Ok(Arc::new(vec![7; len.min(rest)])));
        }
        UploadNeed::Check { entry, hashes } => {
            let hash = hashes.then_some(FileHash([u8::from(entry == 3); 32]));
            upload.provide_checked(entry, Ok(!fails), hash);
        }
        UploadNeed::Hash { entry } => upload.provide_hash(entry, Ok(FileHash([u8::from(fails); 32]))),
        UploadNeed::Forget { entry } => upload.provide_forgotten(entry, Ok(())),
        UploadNeed::Release { .. } => {}
    }
}

/// SSH_FXP_VERSION with some of OpenSSH's extensions.
fn hello(extensions: u8) -> Vec<u8> {
    let mut packet = vec![2];
    packet.put_u32(3);
    let all: [(&[u8], &[u8]); 5] = [
        (b"posix-rename@openssh.com", b"1"),
        (b"fsync@openssh.com", b"1"),
        (b"hardlink@openssh.com", b"1"),
        (b"lsetstat@openssh.com", b"1"),
        (b"statvfs@openssh.com", b"2"),
    ];
    for (number, (name, data)) in all.into_iter().enumerate() {
        if extensions >> number & 1 == 1 {
            packet.put_string(name);
            packet.put_string(data);
        }
    }
    packet
}

fn answer(kind: u8, id: u8, body: &[u8]) -> Vec<u8> {
    let mut packet = vec![kind];
    packet.put_u32(id.into());
    packet.extend_from_slice(body);
    framed(&packet)
}

fn framed(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_string(body);
    out
}
