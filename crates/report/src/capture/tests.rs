#![allow(clippy::unwrap_used)]

use std::io::Read as _;

use proptest::prelude::*;

use super::*;

fn spill() -> Spill {
    Spill::new(std::env::temp_dir())
}

fn contents(capture: &Capture, spill: &Spill) -> Vec<u8> {
    let mut out = Vec::new();
    capture.reader(spill).read_to_end(&mut out).unwrap();
    out
}

#[test]
fn what_is_too_much_for_memory_comes_back_from_the_file() {
    let mut spill = spill();
    let (mut a, mut b) = (Capture::default(), Capture::default());
    let (mut expected_a, mut expected_b): (Vec<u8>, Vec<u8>) = Default::default();
    for round in 0..40u8 {
        let piece = vec![round; 7001];
        a.push(&piece, &mut spill).unwrap();
        expected_a.extend(&piece);
        b.push(&piece[..5003], &mut spill).unwrap();
        expected_b.extend(&piece[..5003]);
    }
    assert!(spill.in_memory < 2 * MAX_IN_MEMORY);
    assert!(contents(&a, &spill) == expected_a);
    assert!(contents(&b, &spill) == expected_b);
    a.clear(&mut spill).unwrap();
    assert!(a.is_empty());
    assert!(
        contents(&b, &spill) == expected_b,
        "a released neighbour must not matter"
    );
    b.clear(&mut spill).unwrap();
    assert_eq!(spill.in_memory, 0);
}

#[test]
fn many_captures_share_one_budget() {
    let mut spill = spill();
    let mut captures: Vec<Capture> = (0..5000).map(|_| Capture::default()).collect();
    for _ in 0..10 {
        for capture in &mut captures {
            capture.push(&[b'x'; 3000], &mut spill).unwrap();
        }
    }
    assert!(spill.in_memory <= MAX_IN_MEMORY_TOTAL + captures.len() * MIN_EXTENT);
    assert!(captures.iter().all(|capture| capture.len() == 30_000));
}

#[test]
fn a_directory_that_does_not_serve_is_named() {
    let mut spill = Spill::new("/nonexistent/dir".into());
    let error = Capture::default()
        .push(&[0; MAX_IN_MEMORY], &mut spill)
        .unwrap_err();
    assert!(error.to_string().contains("/nonexistent/dir"), "{error}");
    assert!(error.to_string().contains("TMPDIR"), "{error}");
}

proptest! {
    #[test]
    fn sameness_is_that_of_the_bytes(
        pieces in proptest::collection::vec((any::<u8>(), 0usize..40_000), 0..8),
        cut in 0usize..200_000,
        flip in proptest::option::of(0usize..200_000),
    ) {
        let mut spill = spill();
        let bytes: Vec<u8> = pieces.iter().flat_map(|(byte, len)| vec![*byte; *len]).collect();
        let mut other = bytes.clone();
        if let Some(byte) = flip.and_then(|at| other.get_mut(at)) {
            *byte ^= 1;
        }
        let (mut a, mut b) = (Capture::default(), Capture::default());
        let (front, back) = bytes.split_at(cut.min(bytes.len()));
        a.push(front, &mut spill).unwrap();
        a.push(back, &mut spill).unwrap();
        for piece in other.chunks(10_001) {
            b.push(piece, &mut spill).unwrap();
        }
        prop_assert_eq!(a.same_as(&b, &spill).unwrap(), bytes == other);
        let state = RandomState::new();
        let (hash_a, hash_b) = (a.hash(&spill, &state).unwrap(), b.hash(&spill, &state).unwrap());
        prop_assert_eq!(hash_a == hash_b, bytes == other);
        prop_assert!(contents(&a, &spill) == bytes);
    }
}

/// With the budget used up pieces move at other sizes: neither hash nor sameness may notice.
#[test]
fn a_hash_does_not_depend_on_where_the_bytes_are() {
    let (mut roomy, mut crowded) = (spill(), spill());
    crowded.in_memory = 2 * MAX_IN_MEMORY_TOTAL;
    let (mut a, mut b) = (Capture::default(), Capture::default());
    let bytes: Vec<u8> = (0..50_000u32).map(|n| (n % 251) as u8).collect();
    a.push(&bytes, &mut roomy).unwrap();
    for piece in bytes.chunks(777) {
        b.push(piece, &mut crowded).unwrap();
    }
    let state = RandomState::new();
    assert_eq!(
        a.hash(&roomy, &state).unwrap(),
        b.hash(&crowded, &state).unwrap()
    );
}

#[test]
fn text_blocks_never_cut_a_character_or_a_line_end() {
    let mut spill = spill();
    for shift in 0..4 {
        let mut capture = Capture::default();
        let text = format!("{}{}", "x".repeat(shift), "ä€漢🐟\r\n".repeat(20_000));
        capture.push(text.as_bytes(), &mut spill).unwrap();
        let mut joined = String::new();
        let whole = |block: &[u8]| {
            assert!(!block.ends_with(b"\r"));
            joined.push_str(std::str::from_utf8(block).unwrap());
            Ok(())
        };
        capture.for_each_text_block(&spill, whole).unwrap();
        assert!(joined == text);
    }
}

#[test]
fn sameness_holds_between_memory_and_file() {
    let mut spill = spill();
    let (mut in_memory, mut in_file) = (Capture::default(), Capture::default());
    let bytes = [b'x'; 50_000];
    in_memory.push(&bytes, &mut spill).unwrap();
    spill.in_memory += MAX_IN_MEMORY_TOTAL; // crowded from here on
    in_file.push(&bytes[..30_000], &mut spill).unwrap();
    in_file.push(&bytes[..19_999], &mut spill).unwrap();
    in_file.push(b"x", &mut spill).unwrap();
    assert_eq!((in_memory.extents.len(), in_file.extents.len()), (0, 1));
    assert!(in_memory.same_as(&in_file, &spill).unwrap());
    assert!(in_file.same_as(&in_memory, &spill).unwrap());
}
