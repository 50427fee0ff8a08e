//! A server that answers what it likes, in whatever pieces, and hashes what it likes: a download ends in an error or goes on, without a
//! panic, nothing is written outside of the folder, nothing twice in one place, nothing that has come is deleted, and failures are told up to a limit.

#![no_main]

use std::collections::HashSet;
use std::sync::Arc;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use sshoal_journal::Segments;
use sshoal_transfer::{
    Begun, Deletion, Download, DownloadEvent, DownloadNeed, DownloadPlan, Excludes, Fetched, FileHash, Hashing,
    MAX_PATH, MAX_TOLD, Method, Owners, Rights, Verify,
};
use sshoal_wire::Put;

#[derive(Arbitrary, Debug)]
enum Step<'a> {
    Octets(&'a [u8]),
    Packet(&'a [u8]),
    Answer { kind: u8, id: u8, body: &'a [u8] },
    /// An answer of many names that begin alike, each with a mode or without.
    Names { id: u8, count: u16, name: &'a [u8], mode: Option<u16> },
    Say(&'a [u8]),
    /// A hash for each file that is asked for.
    Hash,
    Provide,
    Interrupt,
}

fuzz_target!(|steps: Vec<Step<'_>>| {
    let mut download = Download::new(Arc::new(DownloadPlan {
        sources: [&b"/a"[..], b"*/b*", b"/a/", b"c", b"/d/c"].map(<[u8]>::to_vec).into(),
        recursive: true,
        preserve: true,
        owners: Owners::Kept { by_name: true },
        rights: Rights::All,
        excludes: Excludes::default(),
        deletion: Deletion::Done,
        in_order: false,
        method: Method::Sftp,
        hashing: Hashing { compares: true, verifies: Verify::Auto },
        in_flight: 1 << 16,
    }));
    let mut hello = vec![2];
    hello.put_u32(3);
    let _ = download.handle_input(0, &framed(&hello));
    download.hashes().opened();
    download.hashes().hear(b"sshoal-ready\n");
    download.handle_hashes();
    let mut places = HashSet::new();
    let mut told = 0;
    for step in steps {
        let input = match step {
            Step::Octets(octets) => octets.to_vec(),
            Step::Packet(body) => framed(body),
            Step::Answer { kind, id, body } => {
                let mut packet = vec![kind];
                packet.put_u32(id.into());
                packet.extend_from_slice(body);
                framed(&packet)
            }
            Step::Names { id, count, name, mode } => framed(&names(id, count, name, mode)),
            Step::Say(octets) => {
                download.hashes().hear(octets);
                download.handle_hashes();
                continue;
            }
            Step::Hash => {
                let sent = download.hashes().transmit().to_vec();
                download.hashes().transmitted(sent.len());
                let lines = sent.split(|&octet| octet == b'\n').filter_map(|line| match line.first()? {
                    b'+' | b'=' => Some(format!("{}\n", FileHash([0; 32]))),
                    _ => Some("sshoal-end\n".to_owned()),
                });
                download.hashes().hear(lines.collect::<String>().as_bytes());
                download.handle_hashes();
                continue;
            }
            Step::Provide => {
                while let Some(need) = download.poll_need() {
                    provide(&mut download, need, &mut places);
                }
                continue;
            }
            Step::Interrupt => {
                download.interrupt();
                continue;
            }
        };
        let sent = download.waiting(0);
        download.transmitted(0, sent);
        if download.handle_input(0, &input).is_err() {
            return;
        }
        while let Some(event) = download.poll_event() {
            if let DownloadEvent::Failed { path, .. } = event {
                told += 1;
                // And how many more there are, and that owners cannot be kept.
                assert!(told <= MAX_TOLD + 2);
                assert!(path.len() <= 2 * MAX_PATH);
            }
        }
    }
});

/// SSH_FXP_NAME, no longer than a packet may be.
fn names(id: u8, count: u16, name: &[u8], mode: Option<u16>) -> Vec<u8> {
    let name = &name[..name.len().min(5000)];
    let count = u32::from(count).min(200_000 / (name.len() as u32 + 24));
    let mut packet = vec![104];
    packet.put_u32(id.into());
    packet.put_u32(count);
    for number in 0..count {
        packet.put_string(&[name, number.to_string().as_bytes()].concat());
        packet.put_string(b"");
        packet.put_u32(if mode.is_some() { 4 } else { 0 });
        if let Some(mode) = mode {
            packet.put_u32(mode.into());
        }
    }
    packet
}

fn provide(download: &mut Download, need: DownloadNeed, places: &mut HashSet<Vec<u8>>) {
    let mut is_new = |path: &[u8]| assert!(places.insert(path.to_vec()), "{}", path.escape_ascii());
    let stays_inside = |path: &[u8]| {
        !path.starts_with(b"/") && path.split(|&octet| octet == b'/').all(|name| name != b"..")
    };
    let fetched = match need {
        DownloadNeed::Folder { id, path } => {
            assert!(stays_inside(&path));
            if !path.is_empty() {
                is_new(&path);
            }
            Fetched::Folder { id, made: Ok(()) }
        }
        DownloadNeed::Accounts { users, groups } => Fetched::Accounts {
            users: users.iter().map(|name| Some(name.len() as u32)).collect(),
            groups: groups.iter().map(|_| None).collect(),
        },
        DownloadNeed::Compare { file, path, size } => {
            assert!(stays_inside(&path));
            let hash = Ok((size % 2 == 0).then_some(FileHash([0; 32])));
            Fetched::Compared { file, hash }
        }
        DownloadNeed::Touch { file, path, .. } => {
            assert!(stays_inside(&path));
            Fetched::Touched { file, touched: Ok(()) }
        }
        DownloadNeed::Hash { file, size } => {
            let hash = FileHash([u8::from(size % 3 == 0); 32]);
            Fetched::Hashed { file, hash: Ok(hash) }
        }
        DownloadNeed::Begin { file, path, .. } => {
            assert!(stays_inside(&path));
            is_new(&path);
            let mut proven = Segments::default();
            // A server that tells of a file as large as this one's part may tell of another later.
            proven.insert(0..file.0 % 3 * 1000);
            Fetched::Begun { file, begun: Ok(Begun::Ready(proven)) }
        }
        DownloadNeed::Write { file, channel, data, .. } => Fetched::Written {
            file,
            channel,
            octets: data.len(),
            written: Ok(()),
        },
        DownloadNeed::Finish { file, .. } => Fetched::Finished { file, finished: Ok(()) },
        DownloadNeed::Link { path, .. } => {
            assert!(stays_inside(&path));
            is_new(&path);
            Fetched::Linked { path, linked: Ok(false) }
        }
        DownloadNeed::Delete { surplus } => {
            assert!(surplus.scopes().iter().all(|scope| stays_inside(scope)));
            // What has been put here is not surplus.
            assert!(places.iter().all(|place| surplus.is_fetched(place)));
            Fetched::Deleted { deleted: Vec::new(), failed: Vec::new() }
        }
        DownloadNeed::FinishFolder { path, .. } => Fetched::FolderFinished { path, finished: Ok(()) },
        DownloadNeed::Discard { .. } => return,
    };
    download.provide(fetched);
}

fn framed(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_string(body);
    out
}
