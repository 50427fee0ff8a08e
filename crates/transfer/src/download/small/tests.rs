//! Small files come in batches from hosts whose tar is good, bad or hostile: all that was listed comes, and nothing else.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::super::limits::Octets;
use super::fake_host::{Here, Host, archive, contents, server};
use super::*;
use crate::fake_server::{FakeChannel, MODIFIED, Node};
use crate::glob::Excludes;
use crate::tar::put_file;
use crate::{Download, DownloadEvent, Tally, Trouble};

struct FakeStream {
    input: Vec<u8>,
    output: Vec<u8>,
    is_ready: bool,
    is_over: bool,
}

/// What came of it.
struct Told {
    /// By path: contents, and whether it was stored with others.
    here: BTreeMap<Vec<u8>, (Vec<u8>, bool)>,
    parts: Vec<Vec<u8>>,
    failed: Vec<(Vec<u8>, Trouble)>,
    streams: usize,
    tally: Tally,
    left: u64,
    /// Octets that were kept from the host at a time.
    most_held: usize,
}

impl Told {
    /// How many came in batches.
    fn in_batches(&self) -> usize {
        self.here.values().filter(|(_, batch)| *batch).count()
    }
}

fn plan(method: Method) -> DownloadPlan {
    DownloadPlan {
        sources: vec![b"/srv".to_vec()],
        recursive: true,
        preserve: false,
        owners: crate::Owners::default(),
        rights: crate::Rights::default(),
        excludes: Excludes::default(),
        in_order: false,
        method,
        hashing: crate::Hashing::default(),
        deletion: crate::Deletion::None,
        in_flight: 1 << 20,
    }
}

fn play(host: Host, files: usize, method: Method, interrupt_after: Option<usize>) -> Told {
    play_on(Here::default(), host, files, method, interrupt_after)
}

fn play_on(
    here: Here,
    host: Host,
    files: usize,
    method: Method,
    interrupt_after: Option<usize>,
) -> Told {
    play_plan(plan(method), here, host, files, interrupt_after)
}

fn play_plan(
    plan: DownloadPlan,
    mut here: Here,
    host: Host,
    files: usize,
    interrupt_after: Option<usize>,
) -> Told {
    let mut server = server(files);
    let mut download = Download::new(Arc::new(plan));
    let mut channel = FakeChannel::default();
    let mut streams: Vec<FakeStream> = Vec::new();
    let (mut failed, mut has_ended, mut most_held) = (Vec::new(), false, 0);
    for round in 0..100_000 {
        if interrupt_after == Some(round) {
            download.interrupt();
        }
        while download.wants_stream() {
            let number = download.add_stream();
            let others = streams.iter().any(|stream| !stream.is_over);
            let is_over = host == Host::Refuses || host == Host::TakesOne && others;
            streams.push(FakeStream {
                input: Vec::new(),
                output: Vec::new(),
                is_ready: false,
                is_over,
            });
            if is_over {
                download.end_stream(number);
            }
        }
        if host == Host::Waits && round % 50 == 49 {
            download.give_up_streams();
        }
        while let Some(need) = download.poll_need() {
            if let Some(fetched) = here.fetch(need) {
                download.provide(fetched);
            }
        }
        while let Some(need) = download.poll_small() {
            if let Some(fetched) = here.fetch_small(need) {
                download.provide_small(fetched);
            }
        }
        let sent = download.transmit(0).collect::<Vec<_>>().concat();
        download.transmitted(0, sent.len());
        let answer = server.handle(&mut channel, &sent);
        download.handle_input(0, &answer).unwrap();
        for (number, stream) in streams.iter_mut().enumerate() {
            let sent = download.stream_transmit(number);
            let sent = sent[..sent.len().min(3000)].to_vec();
            stream.input.extend_from_slice(&sent);
            download.stream_transmitted(number, sent.len());
            let is_whole =
                download.stream_is_complete(number) && download.stream_transmit(number).is_empty();
            if stream.is_over || host == Host::Waits {
                continue;
            }
            if !stream.is_ready && stream.input.starts_with(b"/\n") {
                stream.input.drain(..2);
                stream.is_ready = true;
                stream.output = match host {
                    Host::SendsBlindly | Host::Changes => b"Welcome!\nsshoal-ready .\n".to_vec(),
                    _ => b"Welcome!\nsshoal-ready changes.\n".to_vec(),
                };
            } else if is_whole && stream.is_ready && stream.output.is_empty() {
                let archive = archive(host, &stream.input, &server);
                for piece in archive.chunks(30_000) {
                    download.handle_stream_input(number, piece);
                    most_held = most_held.max(download.stream_holds(number));
                    while let Some(need) = download.poll_small() {
                        if let Some(fetched) = here.fetch_small(need) {
                            download.provide_small(fetched);
                        }
                    }
                }
                if host == Host::Changes {
                    server
                        .nodes
                        .insert(b"/srv/f9".to_vec(), Node::File(b"new".to_vec()));
                }
                stream.is_over = true;
                download.end_stream_input(number);
                let is_well = !matches!(host, Host::LacksOne | Host::SeesNothing | Host::BreaksOff);
                download.stream_exited(number, Some(if is_well { 0 } else { 123 }));
                download.end_stream(number);
                continue;
            }
            let said = std::mem::take(&mut stream.output);
            download.handle_stream_input(number, &said);
        }
        while let Some(event) = download.poll_event() {
            match event {
                DownloadEvent::Deleted { .. } => unreachable!("nothing is to be deleted"),
                DownloadEvent::Failed { path, trouble } => failed.push((path, trouble)),
                DownloadEvent::Ended => has_ended = true,
                DownloadEvent::Done { .. } | DownloadEvent::Found(_) | DownloadEvent::Moved(_) => {}
            }
        }
        if has_ended {
            while let Some(need) = download.poll_small() {
                assert!(matches!(need, SmallNeed::Discard { .. }), "{need:?}");
                here.fetch_small(need);
            }
            return Told {
                here: here.files,
                parts: here.parts.into_keys().collect(),
                failed,
                streams: streams.len(),
                tally: download.tally(),
                left: download.octets_left(),
                most_held,
            };
        }
    }
    panic!("it does not end");
}

#[test]
fn everything_comes_whatever_the_host_does_with_streams() {
    for (host, in_batches, why) in [
        (Host::Sends, 200, None),
        (Host::SendsBlindly, 200, None),
        (Host::TakesOne, 200, None),
        (Host::Refuses, 0, Some("runs no tar")),
        (Host::Waits, 0, Some("runs no tar")),
        (Host::SeesOthers, 0, Some("did not send")),
        (Host::SeesNothing, 0, Some("did not send")),
        (Host::LacksOne, 199, None),
        (Host::IsHostile, 200, None),
        (Host::Babbles, 0, Some("did not send")),
        (Host::Floods, 200, Some("did not send")),
        (Host::Changes, 199, None),
    ] {
        let told = play(host, 200, Method::Auto, None);
        assert_eq!(told.failed, [], "{host:?}");
        assert_eq!(told.in_batches(), in_batches, "{host:?}");
        assert_eq!(told.here.len(), 202, "{host:?}");
        for number in 0..200 {
            let (came, _) = &told.here[format!("srv/f{number}").as_bytes()];
            match (host, number) {
                (Host::Changes, 9) => assert_eq!(came, b"new"),
                _ => assert_eq!(*came, contents(number), "{host:?}: f{number}"),
            }
        }
        let says = told.tally.why_no_batches;
        assert_eq!(says.is_some(), why.is_some(), "{host:?}: {says:?}");
        assert!(
            why.is_none_or(|why| says.unwrap().contains(why)),
            "{says:?}"
        );
        assert_eq!((told.parts.len(), told.left), (0, 0), "{host:?}");
        // The folder, too.
        assert_eq!(told.tally.done, 203, "{host:?}");
    }
    let told = play(Host::BreaksOff, 200, Method::Auto, None);
    assert!(told.in_batches() > 20 && told.in_batches() < 200);
    assert_eq!(
        (told.failed.len(), told.here.len(), told.parts.len()),
        (0, 202, 0)
    );
}

#[test]
fn few_files_and_unchanged_ones_open_no_stream() {
    for (files, method, streams) in [
        (FEWEST - 1, Method::Auto, 0),
        (FEWEST, Method::Auto, 1),
        (3, Method::Tar, 1),
        (200, Method::Sftp, 0),
    ] {
        let told = play(Host::Sends, files, method, None);
        assert_eq!(told.streams, streams, "{files} {method:?}");
        assert_eq!(told.here.len(), files + 2);
    }
    let mut here = Here::default();
    for number in 0..200 {
        let path = format!("srv/f{number}").into_bytes();
        here.files.insert(path, (contents(number), false));
    }
    let kept = DownloadPlan {
        preserve: true,
        ..plan(Method::Auto)
    };
    let told = play_plan(kept, here.clone(), Host::Sends, 200, None);
    assert_eq!((told.streams, told.tally.unchanged, told.left), (0, 200, 0));
    let told = play_on(here, Host::Sends, 200, Method::Auto, None);
    let unchanged = told.tally.unchanged;
    assert_eq!(unchanged, 0, "a time that is not kept tells nothing");
}

#[test]
fn what_cannot_be_written_here_is_named_and_the_rest_comes() {
    let here = Here {
        is_full_for: vec![b"srv/f3".to_vec()],
        ..Here::default()
    };
    let told = play_on(here, Host::Sends, 100, Method::Auto, None);
    let error = "no space".to_owned();
    let doing = "writing";
    let trouble = Trouble::Local { doing, error };
    assert_eq!(told.failed, [(b"/srv/f3".to_vec(), trouble)]);
    assert_eq!(
        (told.here.len(), told.in_batches(), told.left),
        (101, 99, 0)
    );
    assert!(
        (1000..33_000).contains(&told.most_held),
        "{}",
        told.most_held
    );
}

#[test]
fn names_are_told_only_to_a_host_that_is_ready() {
    let mut stream = Stream::new();
    stream.greet(Base::Root);
    assert_eq!(stream.transmit(), b"/\n");
    let mut input = &b"Welcome!\nsshoal-ready .\nrest"[..];
    assert_eq!(stream.hear(&mut input), Ok(Some(stream::Heard::Ready)));
    assert_eq!(input, b"rest");
    assert!(!stream.tells_changes);
}

#[test]
fn an_interrupt_at_any_moment_leaves_no_part() {
    for host in [Host::Sends, Host::SendsBlindly] {
        for round in 0..60 {
            let told = play(host, 150, Method::Auto, Some(round));
            assert_eq!(told.parts.len(), 0, "{host:?} after {round} rounds");
            for (path, (came, _)) in &told.here {
                let number = String::from_utf8_lossy(path).replace("srv/f", "");
                let whole = number.parse().map_or(came.clone(), contents);
                assert_eq!(*came, whole);
            }
        }
    }
}

#[test]
fn names_lead_nowhere_else() {
    for (path, name) in [
        (&b"/srv/a"[..], Some((Base::Root, &b"srv/a"[..]))),
        (b"//srv/./a", Some((Base::Root, b"srv/a"))),
        (b"./a b", Some((Base::Home, b"a b"))),
        (b"-a\n", Some((Base::Home, b"-a\n"))),
        (b"a/..b", Some((Base::Home, b"a/..b"))),
        (b"/srv/../etc", None),
        (b"..", None),
        (b"/", None),
        (b".", None),
    ] {
        let found = name_in_archive(path);
        let found = found.as_ref().map(|(base, name)| (*base, &name[..]));
        assert_eq!(found, name, "{path:?}");
    }
}

proptest! {
    /// Whatever a host sends, only what was asked for is taken, and never more than was listed.
    #[test]
    fn nothing_unasked_for_is_taken(
        entries in prop::collection::vec(("[a-c./]{1,6}", 0usize..5, any::<bool>()), 0..12),
        piece in 1usize..2000,
    ) {
        let wanted = |name: &str, size| Wanted {
            item: Item::new(
                [format!("/{name}").into_bytes(), name.as_bytes().to_vec(), Vec::new()],
                crate::sftp::Attributes {
                    size: Some(size),
                    times: Some((0, MODIFIED)),
                    ..Default::default()
                },
                &Octets::default(),
            ),
            name: name.as_bytes().to_vec(),
        };
        let mut stream = Stream::new();
        stream.greet(Base::Root);
        stream.hear(&mut &b"sshoal-ready .\n"[..]).unwrap();
        stream.ask(vec![wanted("a", 1), wanted("a/b", 2), wanted("c", 3)]);
        let mut archive = Vec::new();
        for (name, size, is_new) in &entries {
            let modified = if *is_new { MODIFIED } else { 1 };
            put_file(&mut archive, name.as_bytes(), 0o644, modified, &vec![7; *size]);
        }
        let mut came = Vec::new();
        for mut input in archive.chunks(piece) {
            while let Some(heard) = stream.hear(&mut input).unwrap() {
                let stream::Heard::File(file, data) = heard else { unreachable!() };
                prop_assert_eq!(data.len(), file + 1);
                came.push(file);
            }
        }
        let mut once = came.clone();
        once.sort_unstable();
        once.dedup();
        prop_assert_eq!(once.len(), came.len());
    }
}
