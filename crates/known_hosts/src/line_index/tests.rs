#![allow(clippy::unwrap_used)]

use super::*;
use crate::testing::{ed25519, hashed, lines_for, text};
use crate::{Content, Found, HashedSearch, Query, Verdict};
use crate::{Presented, line_index::layout::HEAD_LEN};

mod properties;

const IDENTITY: FileIdentity = FileIdentity {
    device: 1,
    inode: 2,
    size: 3,
    modified: (-4, 5),
    changed: (6, 7),
};
const KEY: [u8; INDEX_KEY_LEN] = [7; INDEX_KEY_LEN];

fn key(seed: u8) -> String {
    text(&ed25519(seed))
}

fn hashed_content(names: &[&str]) -> Vec<u8> {
    let lines = names.iter().enumerate();
    let line =
        |(at, name): (usize, &&str)| format!("{} {}\n", hashed(name, at as u8), key(at as u8));
    lines.map(line).collect::<String>().into_bytes()
}

fn parse(content: &[u8]) -> KnownHosts {
    KnownHosts::parse(vec![("f".into(), content.to_vec())])
}

fn identity(content: &[u8]) -> FileIdentity {
    FileIdentity {
        size: content.len() as u64,
        ..IDENTITY
    }
}

fn in_order(search: &HashedSearch) -> Vec<Found> {
    vec![search.scan(0..search.entries())]
}

fn open(index: Vec<u8>) -> Result<LineIndex<Vec<u8>>, IndexError> {
    let len = index.len() as u64;
    LineIndex::open(index, len)
}

const NEW: IndexBase<'static, Vec<u8>> = IndexBase::New(KEY);

/// An index of all plain names, and of these in hashed lines.
fn index_of(content: &[u8], learned: &[&str]) -> Vec<u8> {
    let mut known = parse(content);
    let hosts: Vec<HostName<'_>> = learned.iter().map(|name| HostName::new(name)).collect();
    known.learn(&hosts, in_order);
    known.write_index(0, &identity(content), true, NEW).unwrap()
}

/// What the index says of hosts, asked without the rest of the file.
fn through_index(
    index: &LineIndex<Vec<u8>>,
    content: &[u8],
    hosts: &[HostName<'_>],
) -> Result<Option<KnownHosts>, IndexError> {
    let lines = index.lines_for(hosts, &content.to_vec())?;
    Ok(lines.map(|lines| KnownHosts::assemble(vec![("f".into(), Content::Indexed(lines))])))
}

#[test]
fn what_was_learned_is_recalled_hits_and_misses() {
    let content = hashed_content(&["a", "b", "a", "c"]);
    let index = open(index_of(&content, &["a", "b", "missing"])).unwrap();
    assert_eq!(index.hashed_rows(), 4);
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
    let found: Vec<Vec<usize>> = hosts.iter().map(|host| lines_for(&known, host)).collect();
    assert_eq!(found, [vec![1, 3], vec![2], vec![], vec![4]]);

    let extended = IndexBase::Extend(&index);
    let longer = known.write_index(0, &identity(&content), true, extended);
    let longer = open(longer.unwrap()).unwrap();
    assert_eq!(longer.hashed_rows(), 5);
    let known = through_index(&longer, &content, &hosts).unwrap().unwrap();
    let again: Vec<Vec<usize>> = hosts.iter().map(|host| lines_for(&known, host)).collect();
    assert_eq!(again, found);
}

#[test]
fn a_name_never_looked_for_in_hashed_lines_is_not_taken_for_a_miss() {
    let content = hashed_content(&["a", "b"]);
    let index = open(index_of(&content, &["a"])).unwrap();
    let ask = |host| through_index(&index, &content, &[host]).unwrap().is_some();
    assert!(ask(HostName::new("a")));
    assert!(!ask(HostName::new("b")));
    // Where the port is unknown the bare name counts, and the other way round.
    assert!(!ask(HostName::with_port("a", 2222)));
    // Without hashed lines, all names of the file are there.
    let plain = format!("a {}\n", key(1)).into_bytes();
    let index = open(index_of(&plain, &[])).unwrap();
    let known = through_index(&index, &plain, &[HostName::new("b")]).unwrap();
    assert!(known.unwrap().is_empty());
}

#[test]
fn an_index_keeps_no_name_in_the_clear() {
    let content = format!(
        "plain-secret {}\n{} {}\n",
        key(1),
        hashed("deep-secret", 1),
        key(2)
    );
    let bytes = index_of(content.as_bytes(), &["deep-secret", "missed-secret"]);
    assert!(!bytes.windows(6).any(|part| part == b"secret"));
    // Another key makes another index of the same names.
    let known = parse(content.as_bytes());
    let base = IndexBase::<Vec<u8>>::New([8; INDEX_KEY_LEN]);
    let other = known.write_index(0, &identity(content.as_bytes()), true, base);
    assert_ne!(bytes[HEAD_LEN..], other.unwrap()[HEAD_LEN..]);
}

#[test]
fn an_index_is_of_one_file_in_one_state() {
    let content = hashed_content(&["a", "b"]);
    let index = open(index_of(&content, &["a"])).unwrap();
    let same = identity(&content);
    assert!(index.is_of(&same) && index.is_of_content(&content) && index.is_settled());
    let other = [
        FileIdentity { device: 9, ..same },
        FileIdentity { inode: 9, ..same },
        FileIdentity { size: 9, ..same },
        FileIdentity {
            modified: (9, 5),
            ..same
        },
        FileIdentity {
            modified: (-4, 9),
            ..same
        },
        FileIdentity {
            changed: (9, 7),
            ..same
        },
        FileIdentity {
            changed: (6, 9),
            ..same
        },
    ];
    assert!(!other.iter().any(|other| index.is_of(other)));
    let mut changed = content.clone();
    changed[10] ^= 1;
    assert!(!index.is_of_content(&changed) && !index.is_of_content(&content[..9]));

    let mut known = parse(&hashed_content(&["a"]));
    let hosts = [HostName::new("a")];
    assert_eq!(known.recall(0, &index, &hosts), Err(IndexError::Stale));
    assert_eq!(known.recall(7, &index, &hosts), Err(IndexError::Stale));
    let extended = known.write_index(0, &same, true, IndexBase::Extend(&index));
    assert_eq!(extended, None);
}

#[test]
fn a_file_is_settled_when_its_last_change_is_ticks_ago() {
    assert!(!IDENTITY.is_settled(6) && !IDENTITY.is_settled(8));
    assert!(IDENTITY.is_settled(9));
    let known = parse(b"");
    let fresh = known.write_index(0, &IDENTITY, false, NEW).unwrap();
    assert!(!open(fresh).unwrap().is_settled());
}

#[test]
fn a_damaged_index_is_never_used() {
    let mut content = hashed_content(&["a", "b"]);
    content.extend(format!("plain {}\n* {}\n", key(3), key(4)).bytes());
    let good = index_of(&content, &["a", "b", "plain"]);
    let hosts = ["a", "b", "plain"].map(HostName::new);
    let is_used = |bytes: Vec<u8>| {
        let index = open(bytes)?;
        let known = through_index(&index, &content, &hosts)?.ok_or(IndexError::Stale)?;
        Ok::<_, IndexError>(known.len())
    };
    assert_eq!(is_used(good.clone()), Ok(4));
    for at in 0..good.len() {
        let mut bytes = good.clone();
        bytes[at] ^= 0x40;
        assert!(is_used(bytes).is_err(), "byte {at}");
        assert!(is_used(good[..at].to_vec()).is_err(), "cut at {at}");
    }
    assert!(is_used([good.as_slice(), b"x"].concat()).is_err());
    for version in [1, 2, 4] {
        let mut other = good.clone();
        other[11] = version;
        let refused = IndexError::Version(u32::from(version));
        assert_eq!(is_used(other), Err(refused));
    }
}

#[test]
fn a_file_that_was_read_in_part_has_no_index() {
    let content = format!("a {}\nb {}\n", key(1), key(2)).into_bytes();
    let hosts = [HostName::new("a")];
    let files = vec![("f".into(), content.clone())];
    let wanted = KnownHosts::parse_for(files, &hosts);
    assert_eq!(wanted.write_index(0, &identity(&content), true, NEW), None);
    let index = open(index_of(&content, &[])).unwrap();
    let picked = through_index(&index, &content, &hosts).unwrap().unwrap();
    assert_eq!(picked.write_index(0, &identity(&content), true, NEW), None);
    assert_eq!(picked.write_index(1, &identity(&content), true, NEW), None);
}

#[test]
fn what_was_seen_of_a_file_is_known_without_reading_it() {
    let content = format!("a {}\n", key(1)).into_bytes();
    let index = open(index_of(&content, &[])).unwrap();
    let hosts = [HostName::new("a")];
    let picked = through_index(&index, &content, &hosts).unwrap().unwrap();
    for known in [picked, parse(&content)] {
        let longer = [content.as_slice(), b"b"].concat();
        assert_eq!(known.seen_of("f", &longer), content.len());
        assert_eq!(known.seen_of("f", &content), content.len());
        assert_eq!(known.seen_of("f", &content[1..]), 0);
        assert_eq!(known.seen_of("f", &longer[1..]), 0);
        assert_eq!(known.seen_of("other", &content), 0);
    }
}

#[test]
fn lines_that_were_added_are_searched_and_the_others_are_not() {
    let before = hashed_content(&["a", "b", "c"]);
    let index = open(index_of(&before, &["a", "b", "missing"])).unwrap();
    let more = format!("{} {}\nnew {}\n", hashed("b", 9), key(9), key(8));
    let content = [before.as_slice(), more.as_bytes()].concat();
    assert!(index.is_of_content(&content) && !index.is_of(&identity(&content)));
    // What is added to a line makes another line of it.
    assert!(
        !open(index_of(&before[..before.len() - 1], &["a"]))
            .unwrap()
            .is_of_content(&content)
    );

    let (mut known, mut pairs) = (parse(&content), 0);
    let asked = ["b", "new"].map(HostName::new);
    assert_eq!(known.recall(0, &index, &asked), Ok(1));
    known.learn(&asked, |search| {
        pairs = search.pairs();
        in_order(search)
    });
    assert_eq!(pairs, 1 + 4);
    let longer = known.write_index(0, &identity(&content), true, IndexBase::Extend(&index));
    let longer = open(longer.unwrap()).unwrap();
    let known = through_index(&longer, &content, &asked).unwrap().unwrap();
    assert_eq!(
        asked.map(|host| lines_for(&known, &host)),
        [vec![2, 4], vec![5]]
    );
    // Who was not asked for is remembered as far as was searched.
    let rest = ["a", "missing"].map(HostName::new);
    assert!(
        through_index(&longer, &content, &rest[..1])
            .unwrap()
            .is_none()
    );
    let mut known = parse(&content);
    assert_eq!(known.recall(0, &longer, &rest), Ok(2));
    known.learn(&rest, |search| {
        pairs = search.pairs();
        Vec::new()
    });
    assert_eq!(pairs, 2);
    assert_eq!(rest.map(|host| lines_for(&known, &host)), [vec![1], vec![]]);
}

#[test]
fn each_file_has_its_own_index() {
    let (one, two) = (
        hashed_content(&["a", "b"]),
        hashed_content(&["b", "a", "a"]),
    );
    let second = open(index_of(&two, &["a"])).unwrap();
    let hosts = [HostName::new("a")];
    let mut known = KnownHosts::parse(vec![("1".into(), one.clone()), ("2".into(), two.clone())]);
    assert_eq!(known.recall(0, &second, &hosts), Err(IndexError::Stale));
    assert_eq!(known.recall(1, &second, &hosts), Ok(1));
    let lines = second.lines_for(&hosts, &two).unwrap().unwrap();
    let files = vec![
        ("1".into(), Content::Whole(one)),
        ("2".into(), Content::Indexed(lines)),
    ];
    for mut known in [known, KnownHosts::assemble(files)] {
        // The first file is still searched, and only that.
        let mut pairs = 0;
        known.learn(&hosts, |search| {
            pairs = search.pairs();
            Vec::new()
        });
        assert_eq!(pairs, 2);
        assert_eq!(lines_for(&known, &hosts[0]), [1, 2, 3]);
    }
}

/// An index with the statements of a true one but for those about lines, sealed by who has the key.
fn forged(
    content: &[u8],
    always: Vec<Span>,
    plain: Vec<Row>,
    looked_up: Vec<Row>,
) -> LineIndex<Vec<u8>> {
    let identity = identity(content);
    let hashed = parse(content).hashed_entries(0) as u32;
    let looked_up = looked_up.into_iter().map(|row| Row {
        searched: hashed,
        ..row
    });
    let looked_up = looked_up.collect();
    open(write::forged(
        &identity,
        content,
        hashed,
        always,
        [plain, looked_up],
    ))
    .unwrap()
}

fn row(name: &str, span: Span) -> Row {
    Row {
        tag: Keys::derive(&[0; INDEX_KEY_LEN]).tag_of_name(name.as_bytes()),
        span,
        searched: 0,
    }
}

fn span(start: usize, len: usize) -> Span {
    Span {
        start: start as u32,
        len: len as u32,
        line: 1,
    }
}

#[test]
fn a_line_that_does_not_prove_itself_is_not_believed() {
    let inner = format!("evil {}", key(1));
    let comment = format!("# {inner}\n");
    let (plain, wild) = (format!("good {}\n", key(2)), format!("e* {}\n", key(3)));
    let secret = format!("{} {}\n", hashed("h", 1), key(4));
    let content = [comment.as_str(), &plain, &wild, &secret]
        .concat()
        .into_bytes();
    let starts = [0, comment.len(), comment.len() + plain.len()];
    let hash_at = starts[2] + wild.len();
    let hosts = ["evil", "good", "h"].map(HostName::new);
    let ask = |plain: Vec<Row>, mut looked_up: Vec<Row>| {
        let names = ["evil", "good", "h"].map(|name| row(name, Span::NONE));
        let is_said = |none: &Row| !looked_up.iter().any(|row| row.tag == none.tag);
        let missing: Vec<Row> = names.into_iter().filter(is_said).collect();
        looked_up.extend(missing);
        let index = forged(&content, Vec::new(), plain, looked_up);
        let known = through_index(&index, &content, &hosts)?.unwrap();
        Ok::<_, IndexError>(known.len())
    };
    let good = span(starts[1], plain.len() - 1);
    let secret_span = span(hash_at, secret.len() - 1);
    assert_eq!(
        ask(vec![row("good", good)], vec![row("h", secret_span)]),
        Ok(2)
    );
    let contradicted = [
        ("a piece of a comment", span(2, inner.len())),
        ("a comment", span(0, comment.len() - 1)),
        ("another name's", good),
        ("a pattern's", span(starts[2], wild.len() - 1)),
        ("a hashed one", secret_span),
        ("without its end", span(starts[1], plain.len() - 2)),
        ("two lines", span(starts[1], plain.len() + wild.len() - 1)),
        ("nothing", span(starts[1], 0)),
    ];
    for (what, place) in contradicted {
        let plain = ask(vec![row("evil", place)], vec![]);
        assert_eq!(plain, Err(IndexError::Contradicted), "{what}");
        let looked_up = ask(vec![], vec![row("evil", place)]);
        assert_eq!(looked_up, Err(IndexError::Contradicted), "{what}");
    }
    let beyond = [
        span(content.len(), 1),
        span(hash_at, secret.len() + 1),
        span(u32::MAX as usize, u32::MAX as usize),
    ];
    for place in beyond {
        let asked = ask(vec![row("evil", place)], vec![]);
        assert_eq!(asked, Err(IndexError::Damaged), "{place:?}");
    }
    // One byte in two lines: such an index could make us read for ever.
    let overlapping = vec![row("good", good), row("good", span(starts[1] + 1, 2))];
    assert_eq!(ask(overlapping, vec![]), Err(IndexError::Damaged));
}

#[test]
fn no_index_hides_a_hashed_revocation() {
    let revoked = format!("@revoked {} {}\n", hashed("h", 1), key(1));
    let content = [
        revoked.as_str(),
        &format!("{} {}\n", hashed("h", 2), key(1)),
    ]
    .concat()
    .into_bytes();
    let (first, second) = (span(0, revoked.len() - 1), span(revoked.len(), 0));
    let rest = span(second.start as usize, content.len() - revoked.len() - 1);
    let hosts = [HostName::new("h")];
    // The table forgets the revocation.
    let index = forged(&content, vec![first], vec![], vec![row("h", rest)]);
    let picked = through_index(&index, &content, &hosts).unwrap().unwrap();
    let mut recalled = parse(&content);
    assert_eq!(recalled.recall(0, &index, &hosts), Ok(1));
    for known in [picked, recalled] {
        let query = Query {
            names: &hosts,
            now: 0,
        };
        let verdict = known.judge(&query, &Presented::Key(&ed25519(1)));
        assert!(matches!(verdict, Verdict::Revoked { .. }), "{verdict:?}");
    }
}
