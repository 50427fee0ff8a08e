#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;
use crate::testing::{ed25519, hashed, lines_for, text};
use crate::{Found, HashedSearch};

const IDENTITY: FileIdentity = FileIdentity {
    device: 1,
    inode: 2,
    size: 3,
    modified_seconds: -4,
    modified_nanoseconds: 5,
};
const KEY: [u8; INDEX_KEY_LEN] = [7; INDEX_KEY_LEN];

fn content(names: &[&str]) -> Vec<u8> {
    let lines = names.iter().enumerate();
    let line = |(at, name): (usize, &&str)| {
        format!("{} {}\n", hashed(name, at as u8), text(&ed25519(at as u8)))
    };
    lines.map(line).collect::<String>().into_bytes()
}

fn parse(content: &[u8]) -> KnownHosts {
    KnownHosts::parse(vec![("f".into(), content.to_vec())])
}

fn in_order(search: &HashedSearch) -> Vec<Found> {
    vec![search.scan(0..search.entries())]
}

/// An index that knows `a` twice, `b`, and that there is no `missing`.
fn index_of(content: &[u8]) -> Vec<u8> {
    let mut known = parse(content);
    known.learn(&[HostName::new("a"), HostName::new("b")], in_order);
    known.learn(&[HostName::new("missing")], in_order);
    let new = IndexBase::New(KEY);
    known.write_index(0, &IDENTITY, new).unwrap()
}

#[test]
fn what_was_learned_is_recalled_hits_and_misses() {
    let content = content(&["a", "b", "a", "c"]);
    let index = HashedIndex::parse(index_of(&content), &IDENTITY, &content).unwrap();
    assert_eq!(index.names(), 3);
    let mut known = parse(&content);
    let hosts = ["A", "b", "missing", "c"].map(HostName::new);
    assert_eq!(known.recall(0, &index, &hosts), Ok(3));
    // Only `c` is left to be searched for.
    let mut pairs = 0;
    known.learn(&hosts, |search| {
        pairs = search.pairs();
        in_order(search)
    });
    assert_eq!(pairs, 4);
    assert_eq!(lines_for(&known, &hosts[0]), [1, 3]);
    assert_eq!(lines_for(&known, &hosts[1]), [2]);
    assert_eq!(lines_for(&known, &hosts[2]), [0usize; 0]);
    assert_eq!(lines_for(&known, &hosts[3]), [4]);

    let longer = known.write_index(0, &IDENTITY, IndexBase::Extend(&index));
    let longer = HashedIndex::parse(longer.unwrap(), &IDENTITY, &content).unwrap();
    assert_eq!(longer.names(), 4);
    let mut again = parse(&content);
    assert_eq!(again.recall(0, &longer, &hosts), Ok(4));
}

#[test]
fn an_index_keeps_no_name_in_the_clear() {
    let content = content(&["some-secret-host"]);
    let mut known = parse(&content);
    known.learn(&[HostName::new("some-secret-host")], in_order);
    let new = || IndexBase::New(KEY);
    let bytes = known.write_index(0, &IDENTITY, new()).unwrap();
    assert!(!bytes.windows(6).any(|part| part == b"secret"));
    // Another key makes another index of the same names.
    let other = known.write_index(0, &IDENTITY, IndexBase::New([8; INDEX_KEY_LEN]));
    assert_ne!(bytes[96..], other.unwrap()[96..]);
}

#[test]
fn an_index_of_another_state_is_stale() {
    let content = content(&["a", "b"]);
    let bytes = index_of(&content);
    let stale = |identity: FileIdentity, content: &[u8]| {
        let parsed = HashedIndex::parse(bytes.clone(), &identity, content);
        assert_eq!(parsed.err(), Some(IndexError::Stale));
    };
    let base = IDENTITY;
    stale(FileIdentity { device: 9, ..base }, &content);
    stale(FileIdentity { inode: 9, ..base }, &content);
    stale(FileIdentity { size: 9, ..base }, &content);
    let touched = FileIdentity {
        modified_seconds: 9,
        ..base
    };
    stale(touched, &content);
    let touched = FileIdentity {
        modified_nanoseconds: 9,
        ..base
    };
    stale(touched, &content);
    // The same length, the same times: only the bytes differ.
    let mut changed = content.clone();
    changed[10] ^= 1;
    stale(base, &changed);

    let index = HashedIndex::parse(bytes.clone(), &base, &content).unwrap();
    let mut other = parse(&super::tests::content(&["a", "b", "c"]));
    let hosts = [HostName::new("a")];
    assert_eq!(other.recall(0, &index, &hosts), Err(IndexError::Stale));
    assert_eq!(other.recall(7, &index, &hosts), Err(IndexError::Stale));
    assert_eq!(other.write_index(0, &base, IndexBase::Extend(&index)), None);
}

#[test]
fn a_damaged_index_is_never_used() {
    let content = content(&["a", "b"]);
    let good = index_of(&content);
    let refused = |bytes: Vec<u8>| HashedIndex::parse(bytes, &IDENTITY, &content).is_err();
    for at in 0..good.len() {
        let mut bytes = good.clone();
        bytes[at] ^= 0x40;
        assert!(refused(bytes), "byte {at}");
        assert!(refused(good[..at].to_vec()), "cut at {at}");
    }
    assert!(refused([good.as_slice(), b"x"].concat()));
    let mut newer = good.clone();
    newer[11] = 2;
    let parsed = HashedIndex::parse(newer, &IDENTITY, &content);
    assert_eq!(parsed.err(), Some(IndexError::Version(2)));
}

/// Replaces the positions in an index and seals it again, as somebody with the key could.
fn forged(good: &[u8], positions: &[u32]) -> Vec<u8> {
    let head = Head::read(good).unwrap();
    let keys = Keys::derive(&head.key);
    let mut bytes = good[..good.len() - TAG_LEN].to_vec();
    let start = head.hits_range().start;
    for (at, position) in positions.iter().enumerate() {
        let at = start + at * HIT_LEN;
        bytes[at..at + HIT_LEN].copy_from_slice(&position.to_be_bytes());
    }
    let tag = keys.tag_of_index(&bytes);
    bytes.extend(tag);
    bytes
}

#[test]
fn a_forged_hit_is_not_believed() {
    let content = content(&["a", "b"]);
    let good = index_of(&content);
    let hosts = [HostName::new("a"), HostName::new("b")];
    let recall = |bytes: Vec<u8>| {
        let index = HashedIndex::parse(bytes, &IDENTITY, &content).unwrap();
        let mut known = parse(&content);
        let result = known.recall(0, &index, &hosts);
        // Nothing of it was remembered.
        assert!(result.is_ok() || known.files[0].hashed.learned().next().is_none());
        result
    };
    let tags = |index: &[u8]| Head::read(index).unwrap().hits;
    assert_eq!(tags(&good), 2);
    assert_eq!(recall(forged(&good, &[])), Ok(2));
    let exchanged = if recall(forged(&good, &[0, 1])).is_ok() {
        [1, 0]
    } else {
        [0, 1]
    };
    assert_eq!(
        recall(forged(&good, &exchanged)),
        Err(IndexError::Contradicted)
    );
    assert_eq!(recall(forged(&good, &[2, 2])), Err(IndexError::Damaged));
    assert_eq!(
        recall(forged(&good, &[u32::MAX, 0])),
        Err(IndexError::Damaged)
    );
}

#[test]
fn no_hashed_entry_no_index() {
    let known = parse(format!("a {}", text(&ed25519(1))).as_bytes());
    assert_eq!(known.hashed_entries(0), 0);
    assert_eq!(known.hashed_entries(1), 0);
    let written = known.write_index(0, &IDENTITY, IndexBase::New(KEY));
    assert_eq!(written, None);
}

#[test]
fn each_file_has_its_own_index() {
    let (one, two) = (content(&["a", "b"]), content(&["b", "a", "a"]));
    let files = || vec![("1".into(), one.clone()), ("2".into(), two.clone())];
    let mut known = KnownHosts::parse(files());
    let hosts = [HostName::new("a")];
    known.learn(&hosts, in_order);
    let new = IndexBase::New(KEY);
    let second = known.write_index(1, &IDENTITY, new).unwrap();
    let second = HashedIndex::parse(second, &IDENTITY, &two).unwrap();
    let mut known = KnownHosts::parse(files());
    assert_eq!(known.recall(0, &second, &hosts), Err(IndexError::Stale));
    assert_eq!(known.recall(1, &second, &hosts), Ok(1));
    // The first file is still searched.
    assert_eq!(lines_for(&known, &hosts[0]), [1, 2, 3]);
    let mut pairs = 0;
    known.learn(&hosts, |search| {
        pairs = search.pairs();
        Vec::new()
    });
    assert_eq!(pairs, 2);
    assert_eq!(lines_for(&known, &hosts[0]), [1, 2, 3]);
}

proptest! {
    #[test]
    fn a_cached_index_equals_a_naive_scan(
        lines in prop::collection::vec(0usize..5, 1..20),
        first in prop::collection::vec(0usize..6, 0..4),
        then in prop::collection::vec(0usize..6, 1..5),
    ) {
        const NAMES: [&str; 6] = ["a", "b.example.com", "10.0.0.1", "::1", "e", "never"];
        let names: Vec<&str> = lines.iter().map(|&at| NAMES[at]).collect();
        let content = content(&names);
        let naive = parse(&content);
        let hosts = |places: &[usize]| -> Vec<HostName<'static>> {
            places.iter().map(|&at| HostName::new(NAMES[at])).collect()
        };
        let mut known = parse(&content);
        known.learn(&hosts(&first), |search| {
            search.ranges(3).into_iter().map(|range| search.scan(range)).collect()
        });
        let index = known.write_index(0, &IDENTITY, IndexBase::New(KEY)).unwrap();
        let index = HashedIndex::parse(index, &IDENTITY, &content).unwrap();
        let mut known = parse(&content);
        known.recall(0, &index, &hosts(&then)).unwrap();
        known.learn(&hosts(&then), |_| Vec::new());
        for host in hosts(&then) {
            prop_assert_eq!(lines_for(&known, &host), lines_for(&naive, &host));
        }
    }
}
