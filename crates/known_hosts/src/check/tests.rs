#![allow(clippy::unwrap_used)]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::*;
use crate::reader::put_string;
use crate::testing::{ed25519, foreign, hashed, known_hosts, rsa, text};

fn at(line: usize) -> Location {
    Location {
        file: "known_hosts".into(),
        line,
    }
}

#[test]
fn names_are_compared_one_by_one() {
    let report = known_hosts(&[
        format!("a,b {}", text(&ed25519(1))),
        format!("B {}", text(&ed25519(1))),
        format!("c,a {}", text(&ed25519(2))),
        format!("a {}", text(&rsa(1, 1))),
        format!("a {}", text(&rsa(1, 3))),
        format!("@cert-authority a {}", text(&ed25519(1))),
    ])
    .check(&BTreeSet::new());
    let duplicate = |name: &str, first, again| Duplicate {
        name: name.into(),
        first: at(first),
        again: at(again),
    };
    assert_eq!(
        report.duplicates,
        [duplicate("b", 1, 2), duplicate("a", 4, 5)]
    );
    let two = TwoKeys {
        name: "a".into(),
        key_type: KeyType::Ed25519,
        first: at(1),
        other: at(3),
    };
    assert_eq!(report.two_keys, [two]);
    assert_eq!((report.weak, report.broken), (vec![], vec![]));
}

#[test]
fn a_key_of_a_type_that_is_not_known_here_is_told_of() {
    let report = known_hosts(&[format!("a {}", text(&foreign(1)))]).check(&BTreeSet::new());
    let why = "the key type is unknown; the host counts as known by another key";
    let told: Vec<_> = report
        .broken
        .iter()
        .map(|it| (it.line, it.why.as_str()))
        .collect();
    assert_eq!(told, [(1, why)]);
}

#[test]
fn patterns_and_hashed_names_that_nobody_knows_are_compared_as_written() {
    let key = text(&ed25519(1));
    let report = known_hosts(&[
        format!("*.a,!b.a {key}"),
        format!("*.a {key}"),
        format!("*.a {key}"),
        format!("{} {key}", hashed("x", 1)),
        format!("{} {key}", hashed("x", 2)),
        format!("{} {key}", hashed("x", 1)),
        format!("{} {}", hashed("x", 1), text(&ed25519(2))),
    ])
    .check(&BTreeSet::new());
    let lines: Vec<_> = report
        .duplicates
        .iter()
        .map(|found| (found.first.line, found.again.line))
        .collect();
    assert_eq!(lines, [(2, 3), (4, 6)]);
    assert_eq!(report.two_keys.len(), 1, "{:?}", report.two_keys);
    assert_eq!(report.two_keys[0].other, at(7));
}

#[test]
fn hashed_names_are_recognised_by_plain_lines_and_by_what_else_is_known() {
    let (key, other) = (text(&ed25519(1)), text(&ed25519(2)));
    let known = known_hosts(&[
        format!("A,[b]:2222 {key}"),
        format!("{} {key}", hashed("a", 1)),
        format!("{} {other}", hashed("[b]:2222", 2)),
        format!("{} {key}", hashed("c", 3)),
        format!("{} {key}", hashed("c", 4)),
        format!("*.d {key}"),
    ]);
    let mut names = known.plain_names();
    assert_eq!(names.iter().collect::<Vec<_>>(), ["[b]:2222", "a"]);
    let said = |report: &Report| {
        let duplicates = report.duplicates.iter();
        let duplicates = duplicates.map(|found| (found.name.clone(), found.again.line));
        let two_keys = report.two_keys.iter();
        let two_keys = two_keys.map(|found| (found.name.clone(), found.other.line));
        (duplicates.collect::<Vec<_>>(), two_keys.collect::<Vec<_>>())
    };
    let (a, b, c) = ("a".to_owned(), "[b]:2222".to_owned(), "c".to_owned());
    let by_lines = (vec![(a.clone(), 2)], vec![(b.clone(), 3)]);
    assert_eq!(said(&known.check(&names)), by_lines);
    names.insert("c".to_owned());
    let all = (vec![(a, 2), (c, 5)], vec![(b, 3)]);
    assert_eq!(said(&known.check(&names)), all);
    assert_eq!(said(&known.check(&BTreeSet::new())), (vec![], vec![]));
}

#[test]
fn weak_keys_are_named_with_their_size() {
    let number = |bits: usize| {
        let mut number = vec![0xff; bits.div_ceil(8)];
        number[0] >>= (8 - bits % 8) % 8;
        [&[0][..], &number].concat()
    };
    let blob = |parts: &[&[u8]]| {
        let mut out = Vec::new();
        parts.iter().for_each(|part| put_string(&mut out, part));
        out
    };
    let short = blob(&[b"ssh-rsa", &[3], &number(2047)]);
    let long = blob(&[b"ssh-rsa", &[3], &number(2048)]);
    let dsa = blob(&[b"ssh-dss", &number(1024), &[1], &[1], &[1]]);
    let report = known_hosts(&[
        format!("a {}", text(&short)),
        format!("b {}", text(&long)),
        format!("c {}", text(&dsa)),
        format!("@revoked d {}", text(&short)),
        format!("@cert-authority e {}", text(&short)),
    ])
    .check(&BTreeSet::new());
    let weak: Vec<_> = report.weak.iter().map(ToString::to_string).collect();
    assert_eq!(
        weak,
        [
            "known_hosts:1: the ssh-rsa key has 2047 bits; fewer than 2048 are refused",
            "known_hosts:3: ssh-dss keys are not accepted any more",
            "known_hosts:5: the ssh-rsa key has 2047 bits; fewer than 2048 are refused",
        ]
    );
}

#[test]
fn broken_lines_and_damaged_keys_come_in_order() {
    let report = known_hosts(&[
        format!("a ssh-rsa {}", STANDARD.encode(ed25519(1))),
        "b".into(),
        "@revoked c ssh-ed25519 AAAA".into(),
        "d ssh-ed25519 AAAA".into(),
    ])
    .check(&BTreeSet::new());
    let lines: Vec<usize> = report.broken.iter().map(|problem| problem.line).collect();
    assert_eq!(lines, [1, 2, 3, 4]);
}
