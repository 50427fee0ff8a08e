//! A run's journal of whatever octets: reading it neither panics nor believes a record that is not there, in whatever pieces it
//! comes, and what it read is what it writes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sshoal_journal::run::{Left, RunReader, RunRecord, RunState};

/// All records, and how many octets add up.
fn read(octets: &[u8], piece: usize) -> Option<(Vec<RunRecord>, u64)> {
    let mut reader = RunReader::default();
    let mut records = Vec::new();
    for piece in octets.chunks(piece) {
        reader.handle_input(piece);
        while let Some(record) = reader.poll_record().ok()? {
            records.push(record);
        }
    }
    Some((records, reader.valid()))
}

/// As IEEE 802.3 has it, bit by bit: not the code that is tested.
fn crc32(octets: &[u8]) -> u32 {
    let shifted = |sum: u32, _| (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg());
    !octets
        .iter()
        .fold(u32::MAX, |sum, octet| (0..8).fold(sum ^ u32::from(*octet), shifted))
}

fuzz_target!(|octets: &[u8]| {
    // The octets as a journal, and as what is behind a good beginning.
    let behind = [RunReader::header().as_slice(), octets].concat();
    // A body by itself, in a frame that adds up: most octets would not.
    let mut framed = RunReader::header();
    let len = (octets.len() as u32).to_be_bytes();
    let sum = crc32(&[&len, octets].concat());
    framed.extend_from_slice(&[&len, &sum.to_be_bytes(), octets].concat());
    for journal in [octets, behind.as_slice(), framed.as_slice()] {
        let whole = read(journal, usize::MAX);
        assert_eq!(whole, read(journal, 7));
        let Some((records, valid)) = whole else {
            continue;
        };
        assert!(valid <= journal.len() as u64);
        let mut again = RunReader::header();
        let mut state = RunState::default();
        for record in records.iter().cloned() {
            record.put(&mut again);
            state.apply(record);
        }
        if valid > 0 {
            let (written, _) = read(&again, usize::MAX).expect("its header is whole");
            assert_eq!(written, records);
        }
        assert!(state.count(Left::MaybeRan) <= state.hosts.len());
    }
});
