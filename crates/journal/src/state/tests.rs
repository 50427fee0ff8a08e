//! What a journal says of a file: after a replay, after a torn tail, and within its limits.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

fn segments(pieces: &[(u64, u64)]) -> Segments {
    let mut segments = Segments::default();
    for &(start, end) in pieces {
        segments.insert(start..end);
    }
    segments
}

/// A journal of two files, and its octets.
fn example() -> (Journal, Vec<u8>) {
    let mut journal = Journal::default();
    let mut octets = Journal::header();
    octets.extend(journal.begin(b"/srv/a", b"one").unwrap());
    octets.extend(journal.prove(b"/srv/a", &segments(&[(0, 10)])).unwrap());
    octets.extend(journal.begin(b"/srv/b", b"two").unwrap());
    octets.extend(
        journal
            .prove(b"/srv/a", &segments(&[(10, 20), (30, 40)]))
            .unwrap(),
    );
    octets.extend(journal.prove(b"/srv/b", &segments(&[(5, 6)])).unwrap());
    (journal, octets)
}

#[test]
fn what_was_proven_is_read_back() {
    let (journal, octets) = example();
    let (read, valid) = Journal::replay(&octets).unwrap();
    assert_eq!((&read, valid), (&journal, octets.len()));
    assert_eq!(
        read.proven(b"/srv/a", b"one"),
        Some(&segments(&[(0, 20), (30, 40)]))
    );
    assert_eq!(read.proven(b"/srv/b", b"two"), Some(&segments(&[(5, 6)])));
    assert_eq!(read.proven(b"/srv/c", b"one"), None);
}

#[test]
fn a_file_that_is_known_by_something_else_now_has_nothing_proven() {
    let (mut journal, _) = example();
    assert_eq!(journal.proven(b"/srv/a", b"changed"), None);
    assert!(journal.knows(b"/srv/a"));
    journal.begin(b"/srv/a", b"changed").unwrap();
    assert_eq!(journal.proven(b"/srv/a", b"one"), None);
    assert_eq!(
        journal.proven(b"/srv/a", b"changed"),
        Some(&Segments::default())
    );
}

#[test]
fn what_is_begun_anew_is_not_remembered_after_a_replay_either() {
    let (mut journal, mut octets) = example();
    octets.extend(journal.begin(b"/srv/a", b"one").unwrap());
    let (mut read, _) = Journal::replay(&octets).unwrap();
    assert_eq!(read.proven(b"/srv/a", b"one"), Some(&Segments::default()));
    assert_eq!(read.prove(b"/srv/d", &segments(&[(0, 1)])), None);
    // Numbers are not given twice: what was proven of an old file is not a new one's.
    octets.extend(read.begin(b"/srv/c", b"three").unwrap());
    let (read, _) = Journal::replay(&octets).unwrap();
    assert_eq!(read.proven(b"/srv/c", b"three"), Some(&Segments::default()));
}

#[test]
fn a_torn_tail_takes_nothing_with_it_but_itself() {
    let (_, octets) = example();
    let header = Journal::header().len();
    let mut ends = vec![header];
    let mut rest = &octets[header..];
    while let Some((body, behind)) = frame::next(rest) {
        ends.push(ends[ends.len() - 1] + frame::framed_len(body));
        rest = behind;
    }
    assert_eq!(ends.len(), 6);
    for len in header..=octets.len() {
        let (read, valid) = Journal::replay(&octets[..len]).unwrap();
        let whole = ends.iter().rev().find(|&&end| end <= len).copied();
        assert_eq!(Some(valid), whole, "cut at {len}");
        assert_eq!(
            read,
            Journal::replay(&octets[..valid]).unwrap().0,
            "cut at {len}"
        );
    }
}

#[test]
fn a_rotten_record_and_all_behind_it_prove_nothing() {
    let (_, octets) = example();
    for at in Journal::header().len()..octets.len() {
        let mut rotten = octets.clone();
        rotten[at] ^= 0x10;
        let (_, valid) = Journal::replay(&rotten).unwrap();
        assert!(valid <= at, "octet {at} is believed");
    }
}

#[test]
fn what_is_no_journal_of_this_version_is_refused() {
    let (_, octets) = example();
    assert_eq!(Journal::replay(b""), Err(JournalError::NoJournal));
    assert_eq!(Journal::replay(b"sshoal"), Err(JournalError::NoJournal));
    assert_eq!(Journal::replay(&[0; 100]), Err(JournalError::NoJournal));
    let mut newer = octets.clone();
    newer[11] = 2;
    assert_eq!(Journal::replay(&newer), Err(JournalError::Version(2)));
    let mut large = octets;
    large.resize(MAX_JOURNAL + 1, 0);
    assert_eq!(Journal::replay(&large), Err(JournalError::TooLarge));
}

#[test]
fn rewritten_it_says_the_same_in_fewer_words() {
    let (mut journal, mut octets) = example();
    for number in 0..1000 {
        let more = segments(&[(0, 100 + number)]);
        octets.extend(journal.prove(b"/srv/a", &more).unwrap());
    }
    let rewritten = journal.rewrite();
    assert!(rewritten.len() < 300);
    assert_eq!(
        Journal::replay(&rewritten).unwrap(),
        (journal, rewritten.len())
    );
}

#[test]
fn limits_are_kept() {
    let mut journal = Journal::default();
    assert_eq!(journal.begin(&[b'x'; MAX_KEY + 1], b""), None);
    assert_eq!(journal.begin(b"x", &[0; MAX_IDENTITY + 1]), None);
    for number in 0..MAX_FILES {
        assert!(journal.begin(&number.to_be_bytes(), b"").is_some());
    }
    assert_eq!(journal.begin(b"one more", b""), None);
    assert!(journal.begin(&0usize.to_be_bytes(), b"again").is_some());
    // No record is longer than what replay takes.
    let mut many = Segments::default();
    for number in 0..crate::MAX_SEGMENTS as u64 {
        many.insert(2 * number..2 * number + 1);
    }
    let mut octets = journal.rewrite();
    octets.extend(journal.prove(&0usize.to_be_bytes(), &many).unwrap());
    let (read, valid) = Journal::replay(&octets).unwrap();
    assert_eq!(valid, octets.len());
    assert_eq!(read.proven(&0usize.to_be_bytes(), b"again"), Some(&many));
}

#[test]
fn rewritten_it_has_room_for_more_and_forgets_what_is_worth_least() {
    let mut journal = Journal::default();
    let mut many = Segments::default();
    for number in 0..crate::MAX_SEGMENTS as u64 {
        many.insert(2 * number..2 * number + 1);
    }
    let key = |number: usize| vec![number as u8; MAX_KEY];
    for number in 0..200 {
        assert!(journal.begin(&key(number), b"").is_some());
        assert!(journal.prove(&key(number), &many).is_some());
    }
    let more = segments(&[(1 << 30, 2 << 30)]);
    assert!(journal.prove(&key(199), &more).is_some());
    assert!(journal.end(&key(3)).is_some());
    let rewritten = journal.rewrite();
    assert!(rewritten.len() <= MAX_JOURNAL / 2);
    let (read, valid) = Journal::replay(&rewritten).unwrap();
    assert_eq!(valid, rewritten.len());
    assert_eq!(read, journal);
    assert!(journal.knows(&key(199)), "most is proven of it");
    assert!(!journal.knows(&key(3)), "it has ended");
    let left = (0..200).filter(|&number| journal.knows(&key(number)));
    assert!(left.count() > 50, "only what has no room is forgotten");
    assert_eq!(journal.prove(&key(3), &many), None);
}

#[test]
fn files_that_have_ended_make_room_the_first_first_and_others_do_not() {
    let mut journal = Journal::default();
    let mut octets = Journal::header();
    let key = |number: usize| number.to_be_bytes();
    for number in 0..MAX_FILES {
        octets.extend(journal.begin(&key(number), b"").unwrap());
    }
    octets.extend(journal.prove(&key(7), &segments(&[(0, 9)])).unwrap());
    for number in [9, 7] {
        octets.extend(journal.end(&key(number)).unwrap());
    }
    assert_eq!(journal.end(b"another"), None);
    // Nobody needs the room yet.
    assert_eq!(journal.proven(&key(7), b""), Some(&segments(&[(0, 9)])));
    let rewritten = journal.rewrite();
    assert_eq!(Journal::replay(&rewritten).unwrap().0, journal);
    octets.extend(journal.begin(b"one more", b"").unwrap());
    assert!(!journal.knows(&key(7)) && journal.knows(&key(9)));
    // One that is begun anew has not ended.
    octets.extend(journal.begin(&key(9), b"").unwrap());
    assert_eq!(journal.begin(b"too many", b""), None);
    octets.extend(journal.end(b"one more").unwrap());
    octets.extend(journal.begin(b"the last", b"").unwrap());
    assert!(!journal.knows(b"one more") && journal.knows(&key(9)));
    let (read, valid) = Journal::replay(&octets).unwrap();
    assert!((&read, valid) == (&journal, octets.len()));
}

proptest! {
    /// Octets of no sense harm nobody.
    #[test]
    fn noise_behind_a_header_is_cut_off(noise in prop::collection::vec(any::<u8>(), 0..200)) {
        let (journal, mut octets) = example();
        let len = octets.len();
        octets.extend(noise);
        let (read, valid) = Journal::replay(&octets).unwrap();
        prop_assert!(valid >= len);
        prop_assert!(valid > len || read == journal);
    }
}
