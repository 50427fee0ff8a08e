#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;
use crate::KnownHosts;
use crate::testing::{ecdsa, ed25519, foreign, hashed, lines_for, rsa, text};

fn salts() -> impl FnMut() -> [u8; SALT_LEN] {
    let mut next = 0;
    move || {
        next += 1;
        [next; SALT_LEN]
    }
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn key(seed: u8) -> String {
    text(&ed25519(seed))
}

fn addition<'a>(name: &'a str, key: &'a [u8]) -> Addition<'a> {
    Addition {
        host: HostName::new(name),
        address: None,
        key,
    }
}

#[test]
fn forgetting_removes_lines_and_nothing_else() {
    let k = key(1);
    let file = [
        "# a\tcomment \r\n".to_string(),
        format!("a {k}\r\n"),
        format!("b,A {k}\n"),
        format!("{} {k}\n", hashed("a", 3)),
        format!("{} {k}\n", hashed("b", 4)),
        format!("? {k}\n"),
        format!("*,!a {k}\n"),
        format!("@revoked a {k}\n"),
        "broken\n".into(),
        "a ssh-ed25519 damaged!\n".into(),
        format!("[a]:2222 {k}\n"),
        format!("  c {k}"),
    ];
    let forgotten = forget(file.concat().as_bytes(), &[HostName::new("A")]);
    let kept = [0, 4, 6, 7, 8, 10, 11].map(|at| file[at].clone());
    assert_eq!(shown(&forgotten.bytes), kept.concat());
    let removed: Vec<_> = forgotten
        .removed
        .iter()
        .map(|removed| (removed.line, removed.others))
        .collect();
    assert_eq!(
        removed,
        [(2, false), (3, true), (4, false), (6, true), (10, false)]
    );
    assert_eq!((forgotten.marked, forgotten.broken), (vec![8], vec![9]));

    let two = [HostName::with_port("a", 2222), HostName::new("c")];
    let forgotten = forget(file.concat().as_bytes(), &two);
    assert_eq!(
        shown(&forgotten.bytes),
        file[..5].concat() + &file[7..10].concat()
    );
}

#[test]
fn keys_of_types_that_are_not_known_here_are_edited_and_not_taken_over() {
    let (own, k) = (text(&foreign(1)), key(1));
    let file = format!("a {own}\r\na {k}\nb {own} comment\n");
    let forgotten = forget(file.as_bytes(), &[HostName::new("a")]);
    assert_eq!(shown(&forgotten.bytes), format!("b {own} comment\n"));
    assert_eq!((forgotten.removed.len(), forgotten.broken), (2, vec![]));
    let done = hash(file.as_bytes(), &mut salts());
    assert_eq!((done.lines, done.broken), (3, vec![]));
    // A key that is new for such a host contradicts what is known.
    let other = ed25519(2);
    let appended = append(b"", file.as_bytes(), &[addition("b", &other)], None);
    assert_eq!(appended.unwrap().conflicts, [0]);
    let imported = import(b"", file.as_bytes());
    let problems: Vec<_> = imported
        .problems
        .iter()
        .map(|it| (it.line, it.why))
        .collect();
    let why = "the key type is unknown";
    assert_eq!(
        (problems, imported.added),
        (vec![(1, why), (3, why)], vec![2])
    );
    // What a server tells of its keys does not touch them.
    let keys: &[&[u8]] = &[&other];
    let wanted = Update {
        host: HostName::new("b"),
        address: None,
        keys,
    };
    let done = updated(file.as_bytes(), &[wanted], None).unwrap();
    assert_eq!(shown(&done.bytes), format!("{file}b {}\n", key(2)));
}

#[test]
fn hashing_makes_a_line_for_each_name() {
    let k = key(1);
    let file = format!(
        "# x\na,,B {k} comment \r\n*.c {k}\n@revoked d {k}\nbroken\n{} {k}\n, {k}\n\te {k}",
        hashed("f", 9)
    );
    let mut salts = salts();
    let done = hash(file.as_bytes(), &mut salts);
    let expected = format!(
        "# x\n{} {k} comment \r\n{} {k} comment \r\n*.c {k}\n@revoked d {k}\nbroken\n{} {k}\n{} {k}",
        hashed("a", 1),
        hashed("b", 2),
        hashed("f", 9),
        hashed("e", 3),
    );
    assert_eq!(shown(&done.bytes), expected);
    assert_eq!(done.lines, 3);
    assert_eq!(done.kept, [KeptPlain::Wildcard(3), KeptPlain::Marked(4)]);
    assert_eq!(done.broken, [5]);
}

#[test]
fn new_hosts_are_appended_in_one_piece() {
    let (one, two) = (ed25519(1), rsa(2, 3));
    let file = format!("x {}", key(9));
    let additions = [
        addition("A", &one),
        Addition {
            host: HostName::with_port("b", 2222),
            address: Some(HostName::with_port("10.0.0.1", 2222)),
            key: &two,
        },
        addition("a", &one),
    ];
    let appended = append(file.as_bytes(), file.as_bytes(), &additions, None).unwrap();
    let rsa = text(&rsa(2, 1));
    let plain = format!("\na {}\n[b]:2222,[10.0.0.1]:2222 {rsa}\n", key(1));
    assert_eq!(shown(&appended.tail), plain);
    assert_eq!((appended.added, &appended.present[..]), (2, &[2][..]));

    let mut salts = salts();
    let appended = append(b"", b"", &additions, Some(&mut salts)).unwrap();
    let names = ["a", "[b]:2222", "[10.0.0.1]:2222"];
    let [a, b, c] = [1, 2, 3].map(|salt| hashed(names[usize::from(salt) - 1], salt));
    let expected = format!("{a} {}\n{b} {rsa}\n{c} {rsa}\n", key(1));
    assert_eq!(shown(&appended.tail), expected);
}

#[test]
fn what_others_appended_meanwhile_is_respected() {
    let (one, two) = (ed25519(1), ed25519(2));
    let judged = format!("old {}\ncut", key(9));
    let additions = [
        addition("a", &one),
        addition("b", &one),
        addition("c", &one),
    ];
    let tail = format!(" off\n{} {}\nb {}\n", hashed("a", 7), key(1), text(&two));
    let now = judged.clone() + &tail;
    let appended = append(judged.as_bytes(), now.as_bytes(), &additions, None).unwrap();
    assert_eq!(shown(&appended.tail), format!("c {}\n", key(1)));
    assert_eq!((appended.added, &appended.present[..]), (1, &[0][..]));
    assert_eq!(appended.conflicts, [1]);

    // A file that was rewritten is looked through from the start.
    let rewritten = format!("a {}\n@revoked b {}\n", key(1), key(1));
    let appended = append(judged.as_bytes(), rewritten.as_bytes(), &additions, None).unwrap();
    assert_eq!((appended.added, &appended.present[..]), (1, &[0][..]));
    assert_eq!(appended.conflicts, [1]);
}

/// Each run judged the same old content, and gets the lock after the others.
#[test]
fn twenty_runs_lose_and_double_no_line() {
    for hashing in [false, true] {
        let judged = format!("old {}", key(99));
        let mut file = judged.clone().into_bytes();
        let mut salts = salts();
        for run in 0..20u8 {
            let hosts: Vec<(String, Vec<u8>)> = (run..run + 5)
                .map(|host| (format!("host{host}"), ed25519(host)))
                .collect();
            let additions: Vec<_> = hosts
                .iter()
                .map(|(name, key)| addition(name, key))
                .collect();
            let salts: Option<Salts<'_>> = hashing.then_some(&mut salts);
            let done = append(judged.as_bytes(), &file, &additions, salts).unwrap();
            assert_eq!(done.added, if run == 0 { 5 } else { 1 });
            file.extend(done.tail);
        }
        let known = KnownHosts::parse(vec![("f".into(), file)]);
        assert_eq!((known.len(), known.problems().len()), (25, 0));
        for host in 0..24 {
            let name = format!("host{host}");
            assert_eq!(lines_for(&known, &HostName::new(&name)).len(), 1);
        }
    }
}

#[test]
fn only_names_and_keys_that_make_a_line_are_written() {
    let key = ed25519(1);
    let bad = [
        "", "a b", "a,b", "a\nb", "*", "a?", "!a", "@a", "#a", "|1|", "[a]", "a\0", "a'",
    ];
    for name in bad {
        let error = append(b"", b"", &[addition(name, &key)], None);
        assert_eq!(error, Err(EntryError::Name(name.into())));
    }
    let with_address = Addition {
        address: Some(HostName::new("1 2")),
        ..addition("a", &key)
    };
    assert!(append(b"", b"", &[with_address], None).is_err());
    for cut in 0..key.len() {
        let error = append(b"", b"", &[addition("a", &key[..cut])], None);
        assert_eq!(error, Err(EntryError::Key("a".into())));
    }
    for name in [
        "a",
        "A-b_c.example.com",
        "fe80::1%eth0",
        "b\u{fc}cher.example",
    ] {
        assert!(
            append(b"", b"", &[addition(name, &key)], None).is_ok(),
            "{name}"
        );
    }
}

fn updated(
    file: &[u8],
    updates: &[Update<'_>],
    salts: Option<Salts<'_>>,
) -> Result<Updated, EntryError> {
    let known = KnownHosts::parse(vec![("known_hosts".into(), file.to_vec())]);
    update(&known, "known_hosts", updates, salts)
}

#[test]
fn updating_replaces_a_hosts_keys() {
    let (old, kept, new) = (ed25519(1), ecdsa(2), rsa(3, 1));
    let [old, kept, new_text] = [&old, &kept, &new].map(|blob| text(blob));
    let file = [
        format!("a {old}\n"),
        format!("a {kept}\n"),
        format!("{} {old}\n", hashed("a", 1)),
        format!("b {old}\n"),
        format!("@revoked a {old}\n"),
        "a ssh-ed25519 AAAA\n".into(),
        "# end".into(),
    ];
    let keys = [ecdsa(2), new];
    let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let wanted = Update {
        host: HostName::new("a"),
        address: None,
        keys: &keys,
    };
    let done = updated(file.concat().as_bytes(), &[wanted], None).unwrap();
    let expected = [&file[1], &file[3], &file[4], &file[5], &file[6]].map(String::as_str);
    assert_eq!(
        shown(&done.bytes),
        expected.concat() + &format!("\na {new_text}\n")
    );
    assert_eq!((done.added, done.removed), (1, vec![1, 3]));

    // Nothing to do, nothing done.
    let again = updated(&done.bytes, &[wanted], None).unwrap();
    assert_eq!(again.bytes, done.bytes);

    // The files behind the first only lose lines.
    let wanted = Update {
        keys: &[],
        ..wanted
    };
    let done = updated(file.concat().as_bytes(), &[wanted], None).unwrap();
    assert_eq!((done.added, done.removed), (0, vec![1, 2, 3]));
}

#[test]
fn updating_completes_host_and_address() {
    let keys = [ed25519(1), ed25519(2), ed25519(3), ed25519(4)];
    let blobs: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let wanted = Update {
        host: HostName::new("a"),
        address: Some(HostName::new("::1")),
        keys: &blobs,
    };
    let file = format!(
        "a {}\n::1 {}\n::1,a {}\n::1 {}\n",
        key(1),
        key(2),
        key(3),
        key(9)
    );
    let done = updated(file.as_bytes(), &[wanted], None).unwrap();
    let kept = format!("a {}\n::1 {}\n::1,a {}\n", key(1), key(2), key(3));
    let added = format!("::1 {}\na {}\na,::1 {}\n", key(1), key(2), key(4));
    assert_eq!(shown(&done.bytes), kept + &added);
    assert_eq!((done.added, done.removed), (3, vec![4]));

    let mut salts = salts();
    let done = updated(b"", &[wanted], Some(&mut salts)).unwrap();
    assert_eq!(done.bytes.iter().filter(|&&c| c == b'\n').count(), 8);
    let bad = Update {
        keys: &[b"x"],
        ..wanted
    };
    assert!(updated(b"", &[bad], None).is_err());
}

#[test]
fn many_hosts_are_updated_as_one_after_the_other() {
    let file = [
        format!("a {}\n", key(1)),
        format!("{} {}\n", hashed("b", 1), key(2)),
        format!("c {}\n", key(3)),
        format!("{} {}", hashed("a", 2), key(4)),
    ];
    let keys = [ed25519(1), ed25519(2), ecdsa(5), ecdsa(6)];
    let [a, b] = [[0, 2], [1, 3]].map(|own| own.map(|at: usize| keys[at].as_slice()));
    let updates = [("A", &a), ("b", &b)].map(|(name, keys)| Update {
        host: HostName::new(name),
        address: None,
        keys,
    });
    let at_once = updated(file.concat().as_bytes(), &updates, None).unwrap();
    let first = updated(file.concat().as_bytes(), &updates[..1], None).unwrap();
    let second = updated(&first.bytes, &updates[1..], None).unwrap();
    assert_eq!(shown(&at_once.bytes), shown(&second.bytes));
    assert_eq!((at_once.added, at_once.removed), (2, vec![4]));
}

#[test]
fn importing_adds_only_what_is_new() {
    let file = format!(
        "a {}\n*.w {}\n{} {}\n@revoked r {}",
        key(1),
        key(2),
        hashed("h", 1),
        key(3),
        key(4)
    );
    let other = [
        "# comment".to_string(),
        format!("A {} other comment", key(1)),
        format!("x.w {}", key(2)),
        format!("h {}", key(3)),
        format!("{} {}", hashed("a", 5), key(1)),
        format!("a {}", key(7)),
        format!("r {}", key(4)),
        format!("a {}", text(&ecdsa(1))),
        format!("n {}\r", key(1)),
        format!("n {}", key(1)),
        format!("n {}", key(2)),
        "broken".into(),
        "n ssh-ed25519 AAAA".into(),
        format!("@revoked * {}!", key(8)),
        format!("@cert-authority *.w {}", key(2)),
        format!("a,n {}", key(1)),
    ];
    let imported = import(file.as_bytes(), other.join("\n").as_bytes());
    assert_eq!(imported.added, [8, 9, 14, 15]);
    assert_eq!(imported.duplicates, [2, 3, 4, 5, 10, 16]);
    let conflicts: Vec<_> = imported
        .conflicts
        .iter()
        .map(|conflict| (conflict.line, conflict.name.as_str()))
        .collect();
    assert_eq!(conflicts, [(6, "a"), (7, "r"), (11, "n")]);
    let problems: Vec<_> = imported
        .problems
        .iter()
        .map(|problem| (problem.line, problem.kept))
        .collect();
    assert_eq!(problems, [(12, false), (13, false), (14, true)]);
    let tail = [7, 8, 13, 14].map(|at| format!("{}\n", other[at])).concat();
    assert_eq!(shown(&imported.bytes), format!("{file}\n{tail}"));

    let again = import(&imported.bytes, other.join("\n").as_bytes());
    assert_eq!((again.bytes, again.added), (imported.bytes, vec![]));
}

/// Lines of every kind, in bytes that nothing must change by the way.
fn any_line() -> impl Strategy<Value = String> {
    let end = prop_oneof!["\n", "\r\n", " comment\n", "\t\n"];
    let hosts = prop_oneof![
        "[ab](,[abc])?",
        "[ab*?]{1,3}",
        "\\[[ab]\\]:2222",
        (0u8..3, "[ab]").prop_map(|(salt, name)| hashed(&name, salt)),
    ];
    let marker = prop_oneof![6 => Just(""), 1 => Just("@revoked "), 1 => Just("@cert-authority ")];
    let line = (marker, hosts, 0u8..3, end)
        .prop_map(|(marker, hosts, seed, end)| format!("{marker}{hosts} {}{end}", key(seed)));
    prop_oneof![8 => line, 1 => "[ #ab@]{0,4}\n", 1 => "\n"]
}

fn any_file() -> impl Strategy<Value = String> {
    prop::collection::vec(any_line(), 0..12).prop_map(|lines| lines.concat())
}

proptest! {
    #[test]
    fn lines_printed_again_are_the_file(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let printed: Vec<u8> = lines::lines(&bytes).flat_map(|line| line.text.to_vec()).collect();
        prop_assert_eq!(&printed, &bytes);
        prop_assert_eq!(forget(&bytes, &[]).bytes, bytes);
    }

    #[test]
    fn entries_printed_and_parsed_again_are_the_same(file in any_file()) {
        let parse = |bytes: Vec<u8>| KnownHosts::parse(vec![("f".into(), bytes)]);
        let print = |known: &KnownHosts| -> Vec<u8> {
            let lines = known.entries();
            lines.flat_map(|entry| [entry.line_text(), b"\n"].concat()).collect()
        };
        let said = |known: &KnownHosts| -> Vec<_> {
            let entries = known.entries();
            entries.map(|e| (e.marker(), e.hosts().to_vec(), e.key_type(), e.key_blob())).collect()
        };
        let known = parse(file.into_bytes());
        let printed = print(&known);
        let again = parse(printed.clone());
        prop_assert_eq!(said(&again), said(&known));
        prop_assert_eq!(print(&again), printed);
    }

    #[test]
    fn a_forgotten_host_is_gone_and_the_others_are_not(file in any_file()) {
        let parse = |bytes: &[u8]| KnownHosts::parse(vec![("f".into(), bytes.to_vec())]);
        let forgotten = forget(file.as_bytes(), &[HostName::new("a")]);
        let after = parse(&forgotten.bytes);
        let lookup = |known: &KnownHosts, name: &str| -> Vec<Vec<u8>> {
            let matches = known.lookup(&HostName::new(name));
            matches.iter().map(|entry| entry.line_text().to_vec()).collect()
        };
        let left = after.lookup(&HostName::new("a"));
        prop_assert!(left.iter().all(|entry| entry.marker() != crate::Marker::None));
        let gone: Vec<&[u8]> = forgotten
            .removed
            .iter()
            .map(|removed| file.split('\n').nth(removed.line - 1).unwrap().as_bytes())
            .collect();
        let mut expected = lookup(&parse(file.as_bytes()), "b");
        expected.retain(|line| !gone.contains(&line.as_slice()));
        prop_assert_eq!(lookup(&after, "b"), expected);
    }

    #[test]
    fn hashing_changes_no_verdict(file in any_file()) {
        let parse = |bytes: &[u8]| KnownHosts::parse(vec![("f".into(), bytes.to_vec())]);
        let mut salts = salts();
        let done = hash(file.as_bytes(), &mut salts);
        let (before, after) = (parse(file.as_bytes()), parse(&done.bytes));
        for name in ["a", "b", "c"] {
            for port in [22, 2222] {
                let host = HostName::with_port(name, port);
                prop_assert_eq!(
                    lines_for(&before, &host).is_empty(),
                    lines_for(&after, &host).is_empty()
                );
                for seed in 0..3 {
                    let trusted = |known: &KnownHosts| {
                        let query = crate::Query { names: &[host], now: 0 };
                        let key = ed25519(seed);
                        let verdict = known.judge(&query, &crate::Presented::Key(&key));
                        matches!(verdict, crate::Verdict::Trusted { .. })
                    };
                    prop_assert_eq!(trusted(&before), trusted(&after));
                }
            }
        }
    }
}
