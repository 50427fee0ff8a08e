//! A journal of whatever octets: replay neither panics nor believes a record that is not there, and what it read is what
//! it writes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sshoal_journal::{Journal, Segments};

fuzz_target!(|octets: &[u8]| {
    if let Ok((journal, valid)) = Journal::replay(octets) {
        assert!(valid <= octets.len());
        let again = Journal::replay(&octets[..valid]);
        assert_eq!(again, Ok((journal.clone(), valid)));
    }
    // The same octets as what is behind a good beginning.
    let mut journal = Journal::default();
    let mut whole = Journal::header();
    let mut segments = Segments::default();
    for pair in octets.chunks_exact(4) {
        let start = u64::from(u16::from_be_bytes([pair[0], pair[1]]));
        segments.insert(start..start + u64::from(pair[2]));
    }
    whole.extend(journal.begin(b"file", b"known").into_iter().flatten());
    whole.extend(journal.prove(b"file", &segments).into_iter().flatten());
    let len = whole.len();
    whole.extend_from_slice(octets);
    let (read, valid) = Journal::replay(&whole).expect("its header is whole");
    assert!(valid >= len);
    if valid == len {
        assert_eq!(read, journal);
        let rewritten = journal.rewrite();
        assert_eq!(Journal::replay(&rewritten), Ok((journal, rewritten.len())));
    }
});
