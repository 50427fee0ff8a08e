//! Small files go in batches to hosts that unpack them well or badly: all arrive, and nothing half done stays.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::Hashing;
use crate::Trouble;
use crate::UploadEvent;
use crate::fake_hasher::{FakeHasher, Hasher, fake_hash};
use crate::fake_server::{FakeChannel, FakeServer, MODIFIED, Node};
use crate::upload::{Upload, UploadNeed, UploadRoot};

/// What a host does with streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Host {
    /// Greets first, as shells' start-up files do, and unpacks.
    Unpacks,
    /// Opens none.
    Refuses,
    /// Takes one at a time.
    TakesOne,
    /// Unpacks the first file, and says that something was wrong.
    Fails,
    /// Says that all is well before it has all.
    Lies,
    /// Unpacks, and checks hashes.
    Checks,
    /// The same, and finds one that differs.
    FindsOne,
    /// Unpacks, but somebody has removed a part before it is renamed.
    Loses,
}

struct FakeStream {
    input: Vec<u8>,
    is_ready: bool,
    is_over: bool,
}

/// What came of it.
struct Told {
    done: usize,
    failed: Vec<Trouble>,
    streams: usize,
    tally: crate::Tally,
    server: FakeServer,
}

/// A folder with files of 1,000 octets and one that is large, the first of which is there in an older state.
fn plan(files: usize) -> UploadPlan {
    let entry = |path: &str, kind, folder| Entry {
        root: 0,
        path: path.as_bytes().to_vec(),
        folder,
        kind,
        mode: 0o666,
        owner: (1000, 100),
        times: (5, MODIFIED),
    };
    let mut entries = vec![entry("", Kind::Folder, None)];
    entries[0].mode = 0o777;
    for number in 0..files {
        entries.push(entry(
            &format!("f{number}"),
            Kind::File { size: 1000 },
            Some(0),
        ));
    }
    entries.push(entry("large", Kind::File { size: 200_000 }, Some(0)));
    UploadPlan {
        target: b"/srv".to_vec(),
        roots: vec![UploadRoot {
            name: b"site".to_vec(),
            is_folder: true,
        }],
        entries,
        left_out: Vec::new(),
        preserve: false,
        owners: crate::Owners::default(),
        names: crate::Names::default(),
        method: Method::Auto,
        writes_devices: false,
        hashing: crate::Hashing::default(),
        surplus: None,
        tag: PartTag(7),
        block: 65_536,
        ahead: 4,
    }
}

/// The files of an archive: name, mode, contents.
fn unpack(archive: &[u8]) -> Vec<(Vec<u8>, u32, Vec<u8>)> {
    let number = |field: &[u8]| {
        let text = std::str::from_utf8(&field[..field.len() - 1]).unwrap();
        usize::from_str_radix(text, 8).unwrap()
    };
    let mut found = Vec::new();
    let mut at = 0;
    while archive.get(at).is_some_and(|&first| first != 0) {
        let header = &archive[at..at + 512];
        let name = header[..100].split(|&octet| octet == 0).next().unwrap();
        let len = number(&header[124..136]);
        let contents = archive[at + 512..at + 512 + len].to_vec();
        found.push((name.to_vec(), number(&header[100..108]) as u32, contents));
        at += 512 + len.next_multiple_of(512);
    }
    found
}

/// Lets a stream hear what has come, and returns what it says.
fn speak(host: Host, stream: &mut FakeStream, is_whole: bool, server: &mut FakeServer) -> Vec<u8> {
    let mut said = Vec::new();
    let newlines: Vec<usize> = (0..stream.input.len())
        .filter(|&at| stream.input[at] == b'\n')
        .take(3)
        .collect();
    if let ([first, second, third], false) = (newlines.as_slice(), stream.is_ready) {
        let proof = [
            &stream.input[..*first],
            b"/",
            &stream.input[first + 1..*second],
        ]
        .concat();
        assert!(server.file(&proof).is_some(), "what proves it is there");
        stream.input.drain(..=*third);
        stream.is_ready = true;
        said.extend_from_slice(b"Welcome!\nsshoal-end 0\nsshoal-ready 0027");
        said.extend_from_slice(match host {
            Host::Checks | Host::FindsOne => b" sums\n",
            _ => b"\n",
        });
        if host == Host::Lies {
            said.extend_from_slice(b"sshoal-end 0\n");
        }
    }
    if is_whole && stream.is_ready && !stream.is_over {
        stream.is_over = true;
        let mut files = unpack(&stream.input);
        if host == Host::Fails {
            files.truncate(1);
        }
        if matches!(host, Host::Checks | Host::FindsOne) && !files.is_empty() {
            let (name, mode, list) = files.pop().unwrap();
            assert!(name.starts_with(b".00000007.") && mode == 0o600);
            let line = |(name, _, contents): &(Vec<u8>, u32, Vec<u8>)| {
                let hash = fake_hash(contents).to_string();
                [hash.as_bytes(), b"  ./", name, b"\n"].concat()
            };
            let lines: Vec<u8> = files.iter().flat_map(line).collect();
            assert!(list == lines, "the list is not that of what was sent");
        }
        // What is unpacked with its own mode cannot be read by its owner.
        let is_readable = files.iter().all(|(_, mode, _)| mode & 0o400 != 0);
        if host == Host::Loses {
            files.retain(|(name, ..)| name != b"site/.f1.00000007.part");
        }
        for (name, mode, contents) in files {
            let path = [b"/srv/", name.as_slice()].concat();
            server.modes.insert(path.clone(), (mode, MODIFIED));
            server.nodes.insert(path, Node::File(contents));
        }
        said.extend_from_slice(match host {
            Host::Fails | Host::FindsOne => b"sshoal-end 2\n",
            Host::Checks if !is_readable => b"sshoal-end 1\n",
            _ => b"sshoal-end 0\n",
        });
    }
    said
}

fn play(
    host: Host,
    plan: UploadPlan,
    mut server: FakeServer,
    interrupt_after: Option<usize>,
) -> Told {
    let modes: Vec<u32> = plan.entries.iter().map(|entry| entry.mode).collect();
    let mut upload = Upload::new(Arc::new(plan), 0);
    let mut channel = FakeChannel::default();
    let mut hasher = FakeHasher::default();
    let mut streams: Vec<FakeStream> = Vec::new();
    let (mut done, mut failed) = (0, Vec::new());
    for round in 0..10_000 {
        if interrupt_after == Some(round) {
            upload.interrupt();
        }
        while upload.wants_stream() {
            let number = upload.add_stream();
            let others = streams.iter().any(|stream| !stream.is_over);
            let is_over = host == Host::Refuses || host == Host::TakesOne && others;
            streams.push(FakeStream {
                input: Vec::new(),
                is_ready: false,
                is_over,
            });
            if is_over {
                upload.end_stream(number);
            }
        }
        while let Some(group) = upload.poll_small() {
            let file = |entry: &usize| {
                Ok(SmallFile {
                    data: Arc::new(vec![9; 1000]),
                    mode: modes[*entry],
                    modified: MODIFIED,
                    hash: Some(fake_hash(&[9; 1000])),
                })
            };
            upload.provide_small(&group, group.entries.iter().map(file).collect());
        }
        while let Some(need) = upload.poll_need() {
            match need {
                UploadNeed::Open { entry } => {
                    let size = if entry > 200 { 200_000 } else { 1000 };
                    let opened = crate::Opened {
                        size: Some(size),
                        data: None,
                        proven: None,
                        mode: 0o640,
                        times: (5, MODIFIED),
                    };
                    upload.provide_opened(entry, Ok(opened));
                }
                UploadNeed::Read { len, .. } => {
                    upload.provide_data(need, Ok(Arc::new(vec![9; len])));
                }
                UploadNeed::Check { entry, .. } => {
                    let size = if entry > 200 { 200_000 } else { 1000 };
                    let hash = fake_hash(&vec![9; size]);
                    upload.provide_checked(entry, Ok(true), Some(hash));
                }
                UploadNeed::Hash { entry } => {
                    let size = if entry > 200 { 200_000 } else { 1000 };
                    upload.provide_hash(entry, Ok(fake_hash(&vec![9; size])));
                }
                UploadNeed::Forget { .. } | UploadNeed::Release { .. } => {}
            }
        }
        let sent = upload.transmit(0).collect::<Vec<_>>().concat();
        let sent = sent[..sent.len().min(40_000)].to_vec();
        upload.transmitted(0, sent.len());
        upload
            .handle_input(0, &server.handle(&mut channel, &sent))
            .unwrap();
        hasher.converse(Hasher::Hashes, upload.hashes(), &server);
        upload.handle_hashes();
        for (number, stream) in streams.iter_mut().enumerate() {
            let sent = upload.stream_transmit(number);
            let sent = sent[..sent.len().min(30_000)].to_vec();
            stream.input.extend_from_slice(&sent);
            upload.stream_transmitted(number, sent.len());
            let is_whole =
                upload.stream_is_complete(number) && upload.stream_transmit(number).is_empty();
            if !stream.is_over {
                let said = speak(host, stream, is_whole, &mut server);
                upload.handle_stream_input(number, &said);
            }
        }
        while let Some(event) = upload.poll_event() {
            match event {
                UploadEvent::Deleted { .. } => unreachable!("nothing is to be deleted"),
                UploadEvent::Done { .. } => done += 1,
                UploadEvent::Failed { trouble, .. } => failed.push(trouble),
                UploadEvent::Moved(_) => {}
                UploadEvent::Ended => {
                    return Told {
                        done,
                        failed,
                        streams: streams.len(),
                        tally: upload.tally(),
                        server,
                    };
                }
            }
        }
    }
    panic!("it does not end");
}

fn server() -> FakeServer {
    FakeServer::with(&[
        (b"/srv", Node::Folder),
        (b"/srv/site", Node::Folder),
        (b"/srv/site/f0", Node::File(b"old".to_vec())),
    ])
}

fn parts(server: &FakeServer) -> usize {
    server
        .nodes
        .keys()
        .filter(|path| path.ends_with(b".part"))
        .count()
}

#[test]
fn everything_arrives_whatever_the_host_does_with_streams() {
    for (host, streams, why) in [
        (Host::Unpacks, 2, None),
        (Host::TakesOne, 2, None),
        (Host::Refuses, 1, Some("runs no tar")),
        (Host::Fails, 1, Some("did not unpack")),
        (Host::Lies, 1, Some("did not unpack")),
        (Host::Loses, 2, None),
    ] {
        let told = play(host, plan(200), server(), None);
        assert_eq!(
            (told.failed.as_slice(), told.done),
            (&[][..], 202),
            "{host:?}"
        );
        assert_eq!(told.streams, streams, "{host:?}");
        let says = told.tally.why_no_batches;
        assert_eq!(says.is_some(), why.is_some(), "{host:?}: {says:?}");
        assert!(
            why.is_none_or(|why| says.unwrap().contains(why)),
            "{host:?}: {says:?}"
        );
        for number in 0..200 {
            let path = format!("/srv/site/f{number}");
            assert_eq!(
                told.server.file(path.as_bytes()),
                Some(&[9; 1000][..]),
                "{host:?}"
            );
        }
        assert_eq!(parts(&told.server), 0, "{host:?}");
    }
}

#[test]
fn modes_are_the_accounts_for_new_files_and_stay_for_others() {
    let told = play(Host::Unpacks, plan(100), server(), None);
    let mode = |path: &[u8]| told.server.modes.get(path).map(|(mode, _)| mode & 0o777);
    assert_eq!(mode(b"/srv/site/f1"), Some(0o640));
    // What the fake server says of a file that nobody gave a mode.
    assert_eq!(mode(b"/srv/site/f0"), Some(0o644));
}

#[test]
fn few_files_and_unchanged_ones_open_no_stream() {
    let told = play(Host::Unpacks, plan(FEWEST - 1), server(), None);
    assert_eq!((told.streams, told.done), (0, FEWEST + 1));
    let told = play(
        Host::Unpacks,
        UploadPlan {
            method: Method::Sftp,
            ..plan(200)
        },
        server(),
        None,
    );
    assert_eq!((told.streams, told.done), (0, 202));
    let kept = UploadPlan {
        preserve: true,
        ..plan(200)
    };
    let there = play(Host::Unpacks, kept.clone(), server(), None).server;
    let told = play(Host::Unpacks, kept, there, None);
    // All but the large one, whose mode is another one when it is opened.
    assert_eq!((told.streams, told.tally.unchanged), (0, 201));
    assert_eq!(parts(&told.server), 0);
    let told = play(Host::Unpacks, plan(200), told.server, None);
    let unchanged = told.tally.unchanged;
    assert_eq!(
        unchanged, 1,
        "a time that is not kept tells nothing of files"
    );
}

#[test]
fn an_interrupt_at_any_moment_leaves_no_part() {
    for round in 0..40 {
        let told = play(Host::Unpacks, plan(150), server(), Some(round));
        assert_eq!(parts(&told.server), 0, "after {round} rounds");
        let file = told.server.file(b"/srv/site/f0");
        assert!(matches!(file, Some(b"old")) || file == Some(&[9; 1000][..]));
    }
}

fn hashed(verifies: Verify, compares: bool) -> UploadPlan {
    let hashing = Hashing { compares, verifies };
    UploadPlan {
        hashing,
        ..plan(200)
    }
}

#[test]
fn a_batch_goes_with_a_list_of_its_hashes() {
    for (host, verified, batches) in [
        (Host::Checks, 201, true),
        // Its files go again, each verified by itself.
        (Host::FindsOne, 201, false),
        (Host::Refuses, 201, false),
    ] {
        let told = play(host, hashed(Verify::Always, false), server(), None);
        assert_eq!((told.failed.as_slice(), told.done), (&[][..], 202));
        assert_eq!(told.tally.verified, verified, "{host:?}");
        assert_eq!(told.tally.why_no_batches.is_none(), batches, "{host:?}");
        assert_eq!(parts(&told.server), 0, "{host:?}");
    }
}

#[test]
fn what_its_owner_may_not_read_joins_no_batch_whose_hashes_are_checked() {
    let mut plan = hashed(Verify::Always, false);
    plan.preserve = true;
    for entry in [5, 70, 150] {
        plan.entries[entry].mode = 0o200;
    }
    let told = play(Host::Checks, plan.clone(), server(), None);
    assert_eq!((told.failed.as_slice(), told.done), (&[][..], 202));
    assert_eq!(
        (told.tally.verified, told.tally.why_no_batches),
        (201, None)
    );
    // Where nobody has to read it, it does.
    plan.hashing = Hashing::default();
    let told = play(Host::Unpacks, plan, server(), None);
    let mode = |path: &[u8]| told.server.modes.get(path).map(|(mode, _)| *mode);
    assert_eq!(mode(b"/srv/site/f4"), Some(0o200));
}

/// The folder is there, and closed.
#[test]
fn small_files_of_a_closed_folder_find_it_open() {
    for mode in [0o555, 0o444] {
        let mut server = server();
        server.modes_bind = true;
        server.account = Some((1000, 100));
        let modes = (mode, MODIFIED);
        server.modes.insert(b"/srv/site".to_vec(), modes);
        let told = play(Host::Unpacks, plan(200), server, None);
        assert_eq!((told.failed.as_slice(), told.done), (&[][..], 202));
        assert_eq!(told.server.modes[&b"/srv/site"[..]].0, mode);
        assert_eq!(parts(&told.server), 0);
    }
}

#[test]
fn a_host_that_cannot_check_a_list_gets_batches_only_where_that_may_be() {
    let told = play(Host::Unpacks, hashed(Verify::Auto, false), server(), None);
    assert_eq!((told.done, told.tally.verified), (202, 1));
    let why = told.tally.why_unverified.unwrap();
    assert!(why.contains("neither sha256sum nor shasum"));
    let told = play(Host::Unpacks, hashed(Verify::Always, false), server(), None);
    assert_eq!((told.done, told.tally.verified), (202, 201));
    let why = told.tally.why_no_batches.unwrap();
    assert!(why.contains("neither sha256sum nor shasum"));
    assert_eq!(parts(&told.server), 0);
}

#[test]
fn small_files_of_equal_hashes_join_no_batch() {
    let mut there = play(Host::Unpacks, plan(200), server(), None).server;
    for number in 0..70 {
        let path = format!("/srv/site/f{number}").into_bytes();
        there.nodes.insert(path, Node::File(vec![8; 1000]));
    }
    let told = play(Host::Unpacks, hashed(Verify::Never, true), there, None);
    assert_eq!((told.failed.as_slice(), told.done), (&[][..], 202));
    assert_eq!((told.tally.unchanged, told.tally.octets), (132, 70_000));
    assert_eq!(told.server.file(b"/srv/site/f3"), Some(&[9; 1000][..]));
}

#[test]
fn an_interrupt_while_both_ends_hash_leaves_no_part() {
    for round in 0..40 {
        for host in [Host::Checks, Host::Unpacks] {
            let mut server = server();
            server
                .nodes
                .insert(b"/srv/site/f1".to_vec(), Node::File(vec![8; 1000]));
            let told = play(host, hashed(Verify::Auto, true), server, Some(round));
            assert_eq!(parts(&told.server), 0, "after {round} rounds");
        }
    }
}

/// A group for all, by a server that tells of owners.
fn owned(refuses: bool) -> (UploadPlan, FakeServer) {
    let plan = UploadPlan {
        owners: crate::Owners::Given {
            user: None,
            group: Some(crate::Account::Number(9)),
        },
        ..plan(200)
    };
    let mut server = server();
    server.account = Some((5, 6));
    server.refuses_owners = refuses;
    (plan, server)
}

#[test]
fn what_is_unpacked_gets_its_owner_before_its_name() {
    let (plan, server) = owned(false);
    let plan = UploadPlan {
        preserve: true,
        ..plan
    };
    let told = play(Host::Unpacks, plan.clone(), server, None);
    assert_eq!(told.failed, []);
    assert!(told.streams > 0);
    for number in 0..200 {
        let path = format!("/srv/site/f{number}");
        let owner = told.server.owners.get(path.as_bytes());
        assert_eq!(owner, Some(&(5, 9)), "{path}");
        let set = told
            .server
            .set
            .iter()
            .filter(|(it, _)| it == path.as_bytes());
        assert_eq!(set.count(), 0, "{path} had its name already");
    }
    // Unchanged ones get it, too, and no stream is opened for that.
    let mut server = told.server;
    server.owners.clear();
    let told = play(Host::Unpacks, plan, server, None);
    assert_eq!((told.streams, told.tally.unchanged), (0, 200));
    for number in 0..200 {
        let path = format!("/srv/site/f{number}");
        let owner = told.server.owners.get(path.as_bytes());
        assert_eq!(owner, Some(&(5, 9)), "{path}");
    }
}

#[test]
fn what_may_not_be_given_away_is_not_put_in_place() {
    let (plan, server) = owned(true);
    let told = play(Host::Unpacks, plan, server, None);
    // The files and their folder.
    assert_eq!((told.failed.len(), told.done), (202, 0));
    let is_owner = |trouble: &Trouble| matches!(trouble, Trouble::Owner { .. });
    assert!(told.failed.iter().all(is_owner), "{:?}", told.failed);
    assert_eq!(parts(&told.server), 0);
}
