#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

const MILLI: Duration = Duration::from_millis(1);

fn piece(host: usize, stream: Stream, octets: &[u8], ends: bool) -> Piece {
    Piece {
        host,
        stream,
        octets: octets.to_vec(),
        ends,
    }
}

#[test]
fn a_pause_shows_what_came_also_without_an_end_of_line() {
    let mut bursts = Bursts::new(2, 80);
    let start = Instant::now();
    assert_eq!(bursts.push(start, 1, Stream::Stdout, b"wor"), None);
    assert_eq!(
        bursts.push(start + 150 * MILLI, 1, Stream::Stdout, b"king"),
        None
    );
    assert_eq!(bursts.due(start + 349 * MILLI), []);
    let shown = [piece(1, Stream::Stdout, b"working", true)];
    assert_eq!(bursts.due(start + 350 * MILLI), shown);
    assert_eq!(bursts.due(start + 900 * MILLI), []);
}

#[test]
fn standard_output_comes_first() {
    let mut bursts = Bursts::new(1, 80);
    let start = Instant::now();
    bursts.push(start, 0, Stream::Stderr, b"err\n");
    bursts.push(start + 100 * MILLI, 0, Stream::Stdout, b"out\n");
    assert_eq!(
        bursts.due(start + 200 * MILLI),
        [],
        "it waits behind the other"
    );
    let both = [
        piece(0, Stream::Stdout, b"out\n", true),
        piece(0, Stream::Stderr, b"err\n", true),
    ];
    assert_eq!(bursts.due(start + 300 * MILLI), both);
    bursts.push(start, 0, Stream::Stderr, b"err\n");
    bursts.push(start, 0, Stream::Stdout, b"out\n");
    assert_eq!(bursts.end(0), both);
    assert_eq!(bursts.end_all(), []);
}

#[test]
fn much_output_does_not_wait_and_its_lines_stay_whole() {
    let mut bursts = Bursts::new(1, 80);
    let start = Instant::now();
    let line = [b'x'; 1000];
    let mut shown = Vec::new();
    for _ in 0..100 {
        for part in [&line[..], b"\r", b"\n"] {
            if let Some(piece) = bursts.push(start, 0, Stream::Stdout, part) {
                assert!(!piece.ends && piece.octets.ends_with(b"\r\n"), "{piece:?}");
                shown.extend(piece.octets);
            }
            let waiting = bursts.hosts[0][0].as_ref().map(|burst| burst.octets.len());
            assert!(waiting <= Some(MAX_WAITING));
        }
    }
    assert!(shown.len() > 80_000);
    let rest = bursts.end(0);
    assert!(rest[0].ends);
    shown.extend(&rest[0].octets);
    assert_eq!(shown, [&line[..], b"\r\n"].concat().repeat(100));
}

#[test]
fn a_line_without_an_end_is_shown_in_full_parts() {
    let mut bursts = Bursts::new(1, 80);
    let mut shown = 0;
    for _ in 0..40 {
        let piece = bursts.push(Instant::now(), 0, Stream::Stdout, &[b'x'; 1000]);
        shown += piece.map_or(0, |piece| {
            assert_eq!(piece.octets.len() % 80, 0);
            piece.octets.len()
        });
    }
    assert!(shown > 20_000);
}

#[test]
fn lines_that_may_be_long_wait_for_their_end() {
    let mut bursts = Bursts::new(1, 100_000);
    for _ in 0..100 {
        let octets = [b'x'; 1000];
        assert_eq!(
            bursts.push(Instant::now(), 0, Stream::Stdout, &octets),
            None
        );
    }
    let piece = bursts
        .push(Instant::now(), 0, Stream::Stdout, b"x")
        .unwrap();
    assert_eq!(piece.octets.len(), 100_000);
}

proptest! {
    /// What is shown before more is known is what would have been shown of the whole.
    #[test]
    fn whole_lines_are_a_part_of_all_lines(
        octets in prop::collection::vec(prop::sample::select(b"ab\r\n".to_vec()), 1..40),
        max_line in 1usize..6,
    ) {
        let shown = |octets: &[u8]| {
            let form = super::super::lines::Form::plain(["h"].into_iter(), max_line, false, false);
            let mut out = Vec::new();
            form.push(0, super::super::lines::Sign::Out, octets, &mut out);
            out
        };
        for more in ["", "c", "\n", "\rc"] {
            let more = [octets.as_slice(), more.as_bytes()].concat();
            let (first, rest) = more.split_at(whole_lines(&octets, max_line));
            prop_assert_eq!([shown(first), shown(rest)].concat(), shown(&more));
        }
    }
}
