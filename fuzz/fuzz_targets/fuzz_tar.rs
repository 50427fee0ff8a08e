//! Archives of whatever octets, in whatever pieces: the reader neither panics nor keeps more than it may, says the same
//! however they are cut, and finds what the writer wrote before them.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sshoal_transfer::tar::{Entry, Piece, Reader, TarError, put_end, put_file};

/// What an archive holds, as far as it can be read.
fn read(archive: &[u8], piece: usize) -> (Vec<(Entry, Vec<u8>)>, Option<TarError>) {
    let mut reader = Reader::default();
    let mut found: Vec<(Entry, Vec<u8>)> = Vec::new();
    for mut input in archive.chunks(piece) {
        loop {
            match reader.next(&mut input) {
                Ok(Some(Piece::Entry(entry))) => {
                    assert!(entry.name.len() <= 4097);
                    found.push((entry, Vec::new()));
                }
                Ok(Some(Piece::Contents(contents))) => {
                    let (entry, all) = found.last_mut().expect("a file has begun");
                    all.extend_from_slice(contents);
                    assert!(!contents.is_empty() && all.len() as u64 <= entry.size);
                }
                Ok(None) => break,
                Err(error) => return (found, Some(error)),
            }
        }
        assert!(input.is_empty());
    }
    (found, None)
}

fuzz_target!(|octets: &[u8]| {
    judge(octets);
    // No chance finds a header's sum: the same with a right one in each block.
    let mut summed = octets.to_vec();
    summed.resize(octets.len().next_multiple_of(512), 0);
    summed.chunks_exact_mut(512).for_each(sum);
    judge(&summed);

    // The first octets as a file's name and contents, all of them as what follows.
    let (name, contents) = octets.split_at(octets.len() / 3);
    let name: Vec<u8> = name.iter().copied().filter(|&octet| octet != 0).take(4096).collect();
    let mut archive = Vec::new();
    put_file(&mut archive, &name, 0o640, 7, contents);
    let written = archive.len() as u64;
    put_end(&mut archive, written);
    archive.extend_from_slice(octets);
    let (found, _) = read(&archive, 1000);
    assert_eq!((&found[0].0.name, found[0].0.mode), (&name, 0o640));
    assert_eq!(found[0].1, contents);
});

/// Puts a header's sum where it belongs.
fn sum(header: &mut [u8]) {
    header[148..156].fill(b' ');
    let sum: u64 = header.iter().map(|&octet| u64::from(octet)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}

fn judge(octets: &[u8]) {
    let whole = read(octets, usize::MAX);
    let piece = octets.first().map_or(1, |&first| usize::from(first) + 1);
    assert_eq!(read(octets, piece), whole);
    // What is read as a file can be written, and read again.
    for (entry, contents) in whole.0.iter().filter(|(entry, _)| entry.is_regular) {
        let is_path = entry.name.len() <= 4096 && !entry.name.contains(&0);
        if !is_path || contents.len() as u64 != entry.size {
            continue;
        }
        let mut again = Vec::new();
        put_file(&mut again, &entry.name, entry.mode, entry.modified as u32, contents);
        let (found, error) = read(&again, 512);
        assert_eq!(error, None);
        assert_eq!((&found[0].0.name, &found[0].1), (&entry.name, contents));
    }
}
