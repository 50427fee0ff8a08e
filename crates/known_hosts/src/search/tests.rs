#![allow(clippy::unwrap_used)]

use super::*;
use crate::testing::{ed25519, hashed, known_hosts, lines_for, text};

fn known() -> KnownHosts {
    let names = ["a", "b", "a", "c", "[a]:2222"];
    let lines = names.iter().enumerate();
    let line =
        |(at, name): (usize, &&str)| format!("{} {}", hashed(name, at as u8), text(&ed25519(1)));
    known_hosts(&lines.map(line).collect::<Vec<_>>())
}

#[test]
fn ranges_cover_all_entries_once() {
    let known = known();
    let search = known.search(&[HostName::new("a")]);
    for parts in 0..8 {
        let ranges = search.ranges(parts);
        assert!(ranges.len() <= parts.max(1));
        let all: Vec<usize> = ranges.into_iter().flatten().collect();
        assert_eq!(all, [0, 1, 2, 3, 4]);
    }
    assert_eq!((search.entries(), search.pairs()), (5, 5));
}

#[test]
fn what_the_caller_leaves_out_is_scanned_all_the_same() {
    for done in [
        &[][..],
        &[0..2, 0..2],
        &[5..5, 3..5],
        &[1..3, 2..4],
        &[4..9, 0..1],
    ] {
        let mut known = known();
        known.learn(&[HostName::new("a"), HostName::new("c")], |search| {
            done.iter().map(|part| search.scan(part.clone())).collect()
        });
        let learned = &known.files[0].hashed.learned;
        assert_eq!(learned["a"].positions, [0, 2], "{done:?}");
        assert_eq!(learned["c"].positions, [3], "{done:?}");
    }
}

#[test]
fn a_learned_port_brings_the_bare_name() {
    let mut known = known();
    known.learn(&[HostName::with_port("A", 2222)], |_| Vec::new());
    let learned = &known.files[0].hashed.learned;
    assert_eq!(
        (
            &learned["a"].positions[..],
            &learned["[a]:2222"].positions[..]
        ),
        (&[0, 2][..], &[4][..])
    );
    assert_eq!(lines_for(&known, &HostName::new("a")), [1, 3]);
    let learn_again = known.search(&[HostName::new("a"), HostName::with_port("a", 2222)]);
    assert_eq!(learn_again.pairs(), 0);
}

#[test]
fn of_entries_that_were_searched_before_only_the_rest_is_searched() {
    let mut known = known();
    let hosts = ["a", "b", "c"].map(HostName::new);
    for (name, positions, searched) in [("a", vec![0], 2), ("b", vec![1], 5)] {
        let learned = Learned {
            positions,
            searched,
        };
        Arc::make_mut(&mut known.files[0])
            .hashed
            .learn(name.to_owned(), learned);
    }
    let lines = |known: &KnownHosts| hosts.map(|host| lines_for(known, &host));
    assert_eq!(lines(&known), [vec![1, 3], vec![2], vec![4]]);
    let search = known.search(&hosts);
    // All five for `c`, three for `a`, none for `b`.
    assert_eq!((search.entries(), search.pairs()), (8, 8));
    known.learn(&hosts, |search| {
        let parts = search.ranges(3).into_iter();
        parts.map(|range| search.scan(range)).collect()
    });
    assert_eq!(lines(&known), [vec![1, 3], vec![2], vec![4]]);
    assert_eq!(known.search(&hosts).pairs(), 0);
    assert_eq!(known.files[0].hashed.learned().count(), 3);
}
