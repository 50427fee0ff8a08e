//! Answers through an index are those of a naive scan, whatever the lines are and whatever became of file and index.

use proptest::prelude::*;

use super::*;

/// Names as they are looked up, of which all but the last stand in files.
const NAMES: [&str; 7] = [
    "a",
    "b.example.com",
    "10.0.0.1",
    "::1",
    "[a]:2222",
    "e",
    "never",
];

/// A line of some kind about some of the names.
fn line() -> impl Strategy<Value = String> {
    let name = || prop::sample::select(&NAMES[..6]);
    let seed = 1u8..4;
    prop_oneof![
        4 => (name(), seed.clone()).prop_map(|(name, seed)| format!("{name} {}", key(seed))),
        4 => (name(), 1u8..40, seed.clone())
            .prop_map(|(name, salt, seed)| format!("{} {}", hashed(name, salt), key(seed))),
        1 => (name(), name(), seed.clone())
            .prop_map(|(a, b, seed)| format!("{},{b} {} a comment\r", a.to_uppercase(), key(seed))),
        1 => (name(), seed.clone()).prop_map(|(name, seed)| format!("*.com,!{name} {}", key(seed))),
        1 => (name(), seed.clone()).prop_map(|(name, seed)| format!("@revoked {name} {}", key(seed))),
        1 => (name(), 1u8..40, seed)
            .prop_map(|(name, salt, seed)| format!("@revoked {} {}", hashed(name, salt), key(seed))),
        1 => name().prop_map(|name| format!("@cert-authority {name},* {}", key(9))),
        1 => name().prop_map(|name| format!("{name} ssh-ed25519 AAAA")),
        1 => name().prop_map(|name| format!("@revoked {name} ssh-ed25519 !!!")),
        1 => Just("# a comment".to_owned()),
        1 => Just(String::new()),
        1 => Just("nonsense".to_owned()),
    ]
}

/// All that a program can learn of hosts, as text.
fn answers(known: &KnownHosts, hosts: &[HostName<'_>]) -> Vec<String> {
    let mut answers: Vec<String> = known.problems().iter().map(ToString::to_string).collect();
    for host in hosts {
        for entry in known.lookup(host).iter() {
            let line = String::from_utf8_lossy(entry.line_text()).into_owned();
            answers.push(format!("{}: {line} {:?}", entry.location(), entry.marker()));
        }
        answers.push(format!("{:?}", known.key_types(host)));
        for seed in 1..4 {
            let query = Query {
                names: &[*host],
                now: 0,
            };
            let verdict = known.judge(&query, &Presented::Key(&ed25519(seed)));
            answers.push(format!("{verdict:?}"));
        }
    }
    answers
}

fn hosts(places: &[usize]) -> Vec<HostName<'static>> {
    let host = |&at: &usize| match NAMES[at] {
        "[a]:2222" => HostName::with_port("a", 2222),
        name => HostName::new(name),
    };
    places.iter().map(host).collect()
}

proptest! {
    #[test]
    fn answers_through_the_index_are_those_of_a_naive_scan(
        lines in prop::collection::vec(line(), 1..20),
        ends_with_a_feed in any::<bool>(),
        first in prop::collection::vec(0usize..7, 0..6),
        then in prop::collection::vec(0usize..7, 1..5),
        added in 0usize..4,
    ) {
        let mut content = lines.join("\n").into_bytes();
        if ends_with_a_feed {
            content.push(b'\n');
        }
        let (first, then) = (hosts(&first), hosts(&then));
        let naive = parse(&content);
        let mut known = parse(&content);
        known.learn(&first, |search| {
            search.ranges(3).into_iter().map(|range| search.scan(range)).collect()
        });
        let index = known.write_index(0, &identity(&content), true, NEW).unwrap();
        let index = open(index).unwrap();
        if let Some(known) = through_index(&index, &content, &then).unwrap() {
            prop_assert_eq!(answers(&known, &then), answers(&naive, &then));
        } else {
            prop_assert!(naive.hashed_entries(0) > 0);
        }
        let mut known = parse(&content);
        known.recall(0, &index, &then).unwrap();
        known.learn(&then, |_| Vec::new());
        prop_assert_eq!(answers(&known, &then), answers(&naive, &then));
        // What is found out now is known to the next index.
        let index = known.write_index(0, &identity(&content), true, IndexBase::Extend(&index));
        let index = open(index.unwrap()).unwrap();
        let known = through_index(&index, &content, &then).unwrap().unwrap();
        prop_assert_eq!(answers(&known, &then), answers(&naive, &then));
        // The same if the last lines were added meanwhile.
        let cut = memchr::memrchr_iter(b'\n', &content).nth(added);
        let before = &content[..cut.map_or(0, |feed| feed + 1)];
        let mut known = parse(before);
        known.learn(&first, |_| Vec::new());
        let earlier = known.write_index(0, &identity(before), true, NEW).unwrap();
        let earlier = open(earlier).unwrap();
        prop_assert!(earlier.is_of_content(&content));
        let mut known = parse(&content);
        known.recall(0, &earlier, &then).unwrap();
        known.learn(&then, |_| Vec::new());
        prop_assert_eq!(answers(&known, &then), answers(&naive, &then));
        let later = known.write_index(0, &identity(&content), true, IndexBase::Extend(&earlier));
        let later = open(later.unwrap()).unwrap();
        let known = through_index(&later, &content, &then).unwrap().unwrap();
        prop_assert_eq!(answers(&known, &then), answers(&naive, &then));
        if let Some(known) = through_index(&later, &content, &first).unwrap() {
            prop_assert_eq!(answers(&known, &first), answers(&naive, &first));
        }
    }

    /// Whatever an index says, and whatever became of the file meanwhile: no line counts that is not there.
    #[test]
    fn an_index_shows_no_line_that_a_naive_scan_does_not(
        lines in prop::collection::vec(line(), 1..12),
        rows in prop::collection::vec((0usize..7, 0usize..12, 0usize..3), 0..8),
        edit in prop::option::of((any::<prop::sample::Index>(), prop_oneof![Just(b'\n'), Just(b'#'), any::<u8>()])),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let content = (lines.join("\n") + "\n").into_bytes();
        let mut starts = vec![0];
        starts.extend(memchr::memchr_iter(b'\n', &content).map(|feed| feed + 1));
        let place = |line: usize, off: usize| {
            let start = starts[line % (starts.len() - 1)];
            let end = starts[line % (starts.len() - 1) + 1] - 1;
            span((start + off).min(end), end.saturating_sub(start + off))
        };
        let rows: Vec<Row> = rows.iter().map(|&(name, line, off)| row(NAMES[name], place(line, off))).collect();
        let mut looked_up = rows.clone();
        looked_up.extend(NAMES.map(|name| row(name, Span::NONE)));
        let index = forged(&content, Vec::new(), rows, looked_up);
        let mut now = content.clone();
        if let Some((at, byte)) = edit {
            let at = at.index(now.len());
            now[at] = byte;
        }
        if let Some(cut) = cut {
            now.truncate(cut.index(now.len()));
        }
        let all = hosts(&[0, 1, 2, 3, 4, 5, 6]);
        if let Ok(Some(known)) = through_index(&index, &now, &all) {
            let naive = parse(&now);
            for host in &all {
                let texts = |known: &KnownHosts| -> Vec<Vec<u8>> {
                    known.lookup(host).iter().map(|entry| entry.line_text().to_vec()).collect()
                };
                let there = texts(&naive);
                prop_assert!(texts(&known).iter().all(|line| there.contains(line)));
            }
        }
    }
}
