//! What a large known_hosts costs: `cargo bench -p sshoal-known-hosts`.
//!
//! The file of the project's first complaint, 21,000 lines and 2.3 MB, plain and hashed; each
//! figure is the best of several runs.

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::{Duration, Instant};

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sshoal_known_hosts::{
    Content, FileIdentity, Found, HashedSearch, HostName, IndexBase, KnownHosts, LineIndex,
};

const LINES: usize = 21_000;

fn main() {
    let plain = file(|index| {
        format!(
            "host{index:05}.example.com,10.1.{}.{}",
            index / 256,
            index % 256
        )
    });
    let hashed = file(|index| {
        let salt = [index as u8; 20];
        let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &salt);
        let hash = hmac::sign(&key, format!("host{index:05}.example.com").as_bytes());
        format!("|1|{}|{}", STANDARD.encode(salt), STANDARD.encode(hash))
    });
    for (label, bytes) in [("plain", plain), ("hashed", hashed)] {
        println!("{label}: {LINES} lines, {} bytes", bytes.len());
        let parse = |bytes: Vec<u8>| KnownHosts::parse(vec![("known_hosts".into(), bytes)]);
        report(
            "parse",
            best(21, || bytes.clone(), |bytes| drop(black_box(parse(bytes)))),
        );
        let only = [HostName::new("host20999.example.com")];
        let parse_for = |bytes| KnownHosts::parse_for(vec![("known_hosts".into(), bytes)], &only);
        report(
            "parse for one host",
            best(
                21,
                || bytes.clone(),
                |bytes| drop(black_box(parse_for(bytes))),
            ),
        );
        let known = parse(bytes.clone());
        assert!(known.problems().is_empty());
        let host = HostName::new("host20999.example.com");
        assert_eq!(known.lookup(&host).len(), 1);
        report(
            "look one host up",
            best(9, || (), |()| drop(black_box(known.lookup(&host)))),
        );
        let names: Vec<String> = (0..1000)
            .map(|n| format!("host{n:05}.example.com"))
            .collect();
        let hosts: Vec<HostName<'_>> = names.iter().map(|name| HostName::new(name)).collect();
        let mut known = parse(bytes.clone());
        report(
            "learn 1000 hosts",
            best(
                1,
                || (),
                |()| known.learn(&hosts, |search| on_threads(search, 2)),
            ),
        );
        through_index(&known, &bytes, &hosts);
        report(
            "look 1000 learned hosts up",
            best(
                9,
                || (),
                |()| {
                    for host in &hosts {
                        assert_eq!(known.lookup(host).len(), 1);
                    }
                },
            ),
        );
    }
}

/// The cached index: written, and asked about hosts without the rest of the file.
fn through_index(known: &KnownHosts, content: &[u8], hosts: &[HostName<'_>]) {
    let identity = FileIdentity {
        size: content.len() as u64,
        ..FileIdentity::default()
    };
    let write = || {
        let base = IndexBase::<Vec<u8>>::New([7; 32]);
        let index = known.write_index(0, &identity, true, base);
        index.expect("the file is not too large")
    };
    report(
        "write the index",
        best(9, || (), |()| drop(black_box(write()))),
    );
    let (bytes, file) = (write(), content.to_vec());
    for count in [1, 1000] {
        let ask = |bytes: Vec<u8>| {
            let len = bytes.len() as u64;
            let index = LineIndex::open(bytes, len).expect("it is whole");
            let lines = index.lines_for(&hosts[..count], &file).expect("it is true");
            let content = Content::Indexed(lines.expect("all hosts were looked for"));
            KnownHosts::assemble(vec![("known_hosts".into(), content)])
        };
        assert_eq!(ask(bytes.clone()).len(), count);
        let time = best(9, || bytes.clone(), |bytes| drop(black_box(ask(bytes))));
        report(&format!("{count} hosts through the index"), time);
    }
}

fn on_threads(search: &HashedSearch, threads: usize) -> Vec<Found> {
    std::thread::scope(|scope| {
        let spawn = |range| scope.spawn(move || search.scan(range));
        let running: Vec<_> = search.ranges(threads).into_iter().map(spawn).collect();
        let found = running.into_iter().map(|thread| thread.join());
        found.filter_map(Result::ok).collect()
    })
}

fn file(host: impl Fn(usize) -> String) -> Vec<u8> {
    let mut text = String::new();
    for index in 0..LINES {
        let mut blob = b"\0\0\0\x0bssh-ed25519\0\0\0\x20".to_vec();
        blob.extend((0..32).map(|byte| (index >> (byte % 16)) as u8 ^ byte));
        let _ = writeln!(
            text,
            "{} ssh-ed25519 {}",
            host(index),
            STANDARD.encode(blob)
        );
    }
    text.into_bytes()
}

fn best<T>(runs: usize, prepare: impl Fn() -> T, mut work: impl FnMut(T)) -> Duration {
    let run = |_| {
        let prepared = prepare();
        let start = Instant::now();
        work(prepared);
        start.elapsed()
    };
    (0..runs).map(run).min().unwrap_or_default()
}

fn report(what: &str, time: Duration) {
    println!("  {what}: {:.3} ms", time.as_secs_f64() * 1e3);
}
