#![allow(clippy::unwrap_used)]

use aws_lc_rs::hmac as lc_hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;

use super::*;
use crate::testing::{ed25519, known_hosts, lines_for, text};

fn hash(salt: u8, name: &str) -> String {
    let salt = [salt; 20];
    let key = lc_hmac::Key::new(lc_hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &salt);
    let hash = lc_hmac::sign(&key, name.as_bytes());
    format!("|1|{}|{}", STANDARD.encode(salt), STANDARD.encode(hash))
}

/// The lines that apply to a host, by looking at each of them.
fn naive(lines: &[String], name: &str) -> Vec<usize> {
    let applies = |line: &&String| {
        let hosts = line
            .trim_start_matches("@revoked ")
            .split(' ')
            .next()
            .unwrap();
        if let Some(rest) = hosts.strip_prefix("|1|") {
            let salt = STANDARD.decode(rest.split('|').next().unwrap()).unwrap();
            return hash(salt[0], &name.to_lowercase()) == hosts;
        }
        pattern::matches_list(hosts.as_bytes(), name.to_lowercase().as_bytes())
            == ListMatch::Matched
    };
    let numbered = lines.iter().enumerate().filter(|(_, line)| applies(line));
    numbered.map(|(index, _)| index + 1).collect()
}

fn host_field() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        4 => "[ab]{1,2}(\\.[AB])?",
        1 => "\\[[ab]\\]:2222",
        1 => "[ab*?]{1,3}",
        1 => "![ab*]{1,2}",
    ];
    prop_oneof![
        4 => prop::collection::vec(name, 1..4).prop_map(|names| names.join(",")),
        1 => (any::<u8>(), "[ab]{1,2}(\\.[ab])?").prop_map(|(salt, name)| hash(salt, &name)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn looking_up_equals_a_naive_scan(
        fields in prop::collection::vec((any::<bool>(), host_field()), 0..30),
        names in prop::collection::vec("[abAB]{1,2}(\\.[ab])?", 1..6),
    ) {
        let key = text(&ed25519(1));
        let lines: Vec<String> = fields
            .iter()
            .map(|(revoked, hosts)| {
                format!("{}{hosts} {key}", if *revoked { "@revoked " } else { "" })
            })
            .collect();
        let mut known = known_hosts(&lines);
        prop_assert!(known.problems().is_empty());
        let hosts: Vec<HostName<'_>> = names.iter().map(|name| HostName::new(name)).collect();
        let with_port = HostName::with_port("a", 2222);
        for host in hosts.iter().chain([&with_port]) {
            prop_assert_eq!(lines_for(&known, host), naive(&lines, &host.written()));
        }
        known.learn(&hosts, |search| {
            search.ranges(3).into_iter().map(|range| search.scan(range)).collect()
        });
        for host in &hosts {
            prop_assert_eq!(lines_for(&known, host), naive(&lines, &host.written()));
        }
    }

    #[test]
    fn reading_for_one_host_equals_reading_all(
        lines in prop::collection::vec(
            ("(@revoked |@cert-authority |@Revoked | |\t)?", host_field(), 0u8..3, "( @revoked| x@y|!|\r)?"),
            0..20,
        ),
        name in "[abAB]{1,2}(\\.[ab])?",
        port in prop_oneof![Just(22), Just(2222)],
        seed in 0u8..3,
    ) {
        let lines: Vec<String> = lines
            .iter()
            .map(|(marker, hosts, seed, end)| format!("{marker}{hosts} {}{end}", text(&ed25519(*seed))))
            .collect();
        let files = || vec![("known_hosts".to_string(), lines.join("\n").into_bytes())];
        let host = HostName::with_port(&name, port);
        let some = KnownHosts::parse_for(files(), &[host]);
        let all = KnownHosts::parse(files());
        prop_assert_eq!(lines_for(&some, &host), lines_for(&all, &host));
        let verdict = |known: &KnownHosts| {
            let query = crate::Query { names: &[host], now: 0 };
            known.judge(&query, &crate::Presented::Key(&ed25519(seed)))
        };
        prop_assert_eq!(verdict(&some), verdict(&all));
        prop_assert_eq!(some.key_types(&host), all.key_types(&host));
    }

    #[test]
    fn no_bytes_are_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let known = KnownHosts::parse(vec![("f".into(), bytes)]);
        let _ = known.lookup(&HostName::new("a"));
    }
}

#[test]
fn a_learned_port_brings_the_types_of_the_bare_name() {
    let mut known = known_hosts(&[format!("{} {}", hash(1, "a"), text(&ed25519(1)))]);
    let host = HostName::with_port("A", 2222);
    known.learn(&[host], |_| Vec::new());
    assert_eq!(known.key_types(&host).types, [KeyType::Ed25519]);
}

#[test]
fn entries_carry_what_their_lines_say() {
    let one = format!("# comment\n\na,b {} me@there\n", text(&ed25519(1)));
    let two = format!(
        "@cert-authority *.b {}\r\n@revoked a {}",
        text(&ed25519(2)),
        text(&ed25519(3))
    );
    let known = KnownHosts::parse(vec![
        ("one".into(), one.into()),
        ("two".into(), two.into_bytes()),
    ]);
    assert_eq!((known.len(), known.problems()), (3, Vec::new()));

    let entries: Vec<_> = known.lookup(&HostName::new("A")).iter().collect();
    let seen: Vec<_> = entries
        .iter()
        .map(|entry| {
            (
                entry.location().to_string(),
                entry.marker(),
                entry.key_blob().unwrap(),
            )
        })
        .collect();
    let expected = [
        ("one:3".to_string(), Marker::None, ed25519(1)),
        ("two:2".to_string(), Marker::Revoked, ed25519(3)),
    ];
    assert_eq!(seen, expected);
    assert_eq!(entries[0].hosts(), b"a,b");
    assert_eq!(entries[0].key_type(), Some(KeyType::Ed25519));

    let authority = known.lookup(&HostName::new("x.b"));
    assert_eq!(
        authority.iter().next().unwrap().marker(),
        Marker::CertAuthority
    );
    assert!(known.lookup(&HostName::new("c")).is_empty());
}

#[test]
fn a_port_is_part_of_the_name() {
    let key = text(&ed25519(1));
    let known = known_hosts(&[
        format!("a {key}"),
        format!("[a]:2222 {key}"),
        format!("[::1]:2222,::1 {key}"),
        format!("[*]:2222 {key}"),
    ]);
    assert_eq!(lines_for(&known, &HostName::new("a")), [1]);
    assert_eq!(lines_for(&known, &HostName::with_port("a", 0)), [1]);
    assert_eq!(lines_for(&known, &HostName::with_port("A", 2222)), [2, 4]);
    assert_eq!(
        lines_for(&known, &HostName::with_port("a", 2223)),
        [0usize; 0]
    );
    assert_eq!(lines_for(&known, &HostName::with_port("::1", 2222)), [3, 4]);
    assert_eq!(lines_for(&known, &HostName::new("::1")), [3]);
}

#[test]
fn broken_lines_are_reported_and_the_others_work() {
    let lines = [
        "a ssh-ed25519".to_string(),
        format!("b {}", text(&ed25519(1))),
        "a".repeat(100_000),
        format!("c ssh-ed25519 {}!", STANDARD.encode(ed25519(1))),
        format!("@revoked d ssh-ed25519 {}!", STANDARD.encode(ed25519(1))),
        "@what is this".to_string(),
        format!("{} {}", "e,".repeat(50_000), text(&ed25519(1))),
    ];
    let known = known_hosts(&lines);
    let problems: Vec<_> = known
        .problems()
        .iter()
        .map(|problem| problem.line)
        .collect();
    assert_eq!(problems, [1, 3, 4, 5, 6]);
    assert_eq!(
        known.problems()[3].to_string(),
        "known_hosts:5: the key is not whole base64; the line grants no trust, and the key in it \
         is refused for its hosts"
    );
    assert_eq!(lines_for(&known, &HostName::new("b")), [2]);
    assert_eq!(lines_for(&known, &HostName::new("a")), [0usize; 0]);
    assert_eq!(lines_for(&known, &HostName::new("d")), [5]);
    assert_eq!(lines_for(&known, &HostName::new("e")), [7]);
}

#[test]
fn a_key_that_is_not_of_its_type_is_no_key() {
    let known = known_hosts(&[
        format!("a ssh-rsa {}", STANDARD.encode(ed25519(1))),
        "a ssh-ed25519 AAAAC3NzaC1lZDI1NTE5".into(),
    ]);
    let entries: Vec<_> = known.lookup(&HostName::new("a")).iter().collect();
    assert_eq!(entries.len(), 2);
    assert!(entries.iter().all(|entry| entry.key_blob().is_none()));
}

#[test]
fn the_last_line_needs_no_line_feed_and_empty_files_are_fine() {
    let line = format!("a {}", text(&ed25519(1)));
    let files = [("", 0), ("\n\n", 0), (line.as_str(), 1)];
    for (content, entries) in files {
        let known = KnownHosts::parse(vec![("f".into(), content.into())]);
        assert_eq!(known.len(), entries);
        assert_eq!(known.is_empty(), entries == 0);
        assert_eq!(known.lookup(&HostName::new("a")).len(), entries);
    }
}

#[test]
fn files_that_are_shared_say_what_they_say_together() {
    let (one, two) = (text(&ed25519(1)), text(&ed25519(2)));
    let user = format!("a {one}\n{} {one}\nwhat\n", hash(1, "b"));
    let global = format!(
        "a {two}\n*.c {two}\n@revoked a {one}\n{} {two}\n",
        hash(2, "b")
    );
    let file = |label: &str, content: &String| (label.to_owned(), content.clone().into_bytes());
    let together = KnownHosts::parse(vec![file("user", &user), file("global", &global)]);
    let shared = KnownHosts::parse(vec![file("global", &global)]);
    let mut own = KnownHosts::parse(vec![file("user", &user)]);
    own.learn(&[HostName::new("b")], |_| Vec::new());
    let chained = KnownHosts::chain([&own, &shared]);
    let said = |known: &KnownHosts, name: &str| {
        let matches = known.lookup(&HostName::new(name));
        let lines = matches.iter().map(|entry| entry.location().to_string());
        lines.collect::<Vec<_>>()
    };
    for name in ["a", "b", "x.c", "nobody"] {
        assert_eq!(said(&chained, name), said(&together, name), "{name}");
    }
    let all = |known: &KnownHosts| {
        let entries = known.entries().map(|entry| entry.location().to_string());
        entries.collect::<Vec<_>>()
    };
    assert_eq!(all(&chained), all(&together));
    assert_eq!(chained.problems(), together.problems());
    assert_eq!(chained.len(), together.len());
    let user_files = ["user".to_owned()];
    assert_eq!(chained.leading_files(&user_files), 1);
    assert_eq!(chained.seen_of("global", global.as_bytes()), global.len());
    // What one list learns is no other's business.
    let mut learned = KnownHosts::chain([&shared]);
    learned.learn(&[HostName::new("b")], |_| Vec::new());
    assert_eq!(said(&learned, "b"), said(&shared, "b"));
    assert_eq!(shared.files[0].hashed.learned().count(), 0);
}
