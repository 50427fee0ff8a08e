#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;
use crate::{Sink, recorded::Recorded};

const LABELS: [&str; 3] = ["web1", "::1", "u@db:22"];

/// Three hosts' lines on a console.
struct Run {
    console: Console,
    spill: Spill,
    style: LineStyle,
    hosts: [HostLines; 3],
}

impl Run {
    fn new(stdout: Sink, stderr: Sink, max_line: u64) -> Run {
        Run {
            console: Console::new(stdout, stderr),
            spill: Spill::new(std::env::temp_dir()),
            style: LineStyle {
                prefix: true,
                max_line,
            },
            hosts: Default::default(),
        }
    }

    fn push(&mut self, host: usize, stream: Stream, bytes: &[u8]) {
        let Run {
            console,
            spill,
            style,
            hosts,
        } = self;
        let mut writer = LineWriter {
            console,
            spill,
            style: *style,
            label: LABELS[host],
            stream,
        };
        writer.push(&mut hosts[host], bytes).unwrap();
    }

    fn end(&mut self) {
        let Run {
            console,
            spill,
            style,
            hosts,
        } = self;
        for (host, lines) in hosts.iter_mut().enumerate() {
            for stream in [Stream::Stdout, Stream::Stderr] {
                let label = LABELS[host];
                LineWriter {
                    console,
                    spill,
                    style: *style,
                    label,
                    stream,
                }
                .end(lines)
                .unwrap();
            }
        }
        console.flush().unwrap();
        assert_eq!(spill.in_memory, 0, "all memory is accounted for");
    }
}

/// What a host's bytes must look like: its lines, the last one ended, long ones broken.
fn expected_lines(bytes: &[u8], max_line: usize) -> Vec<Vec<u8>> {
    let ended = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    if bytes.is_empty() {
        return Vec::new();
    }
    let broken = |line: &[u8]| -> Vec<Vec<u8>> {
        if line.is_empty() {
            vec![Vec::new()]
        } else {
            line.chunks(max_line).map(<[u8]>::to_vec).collect()
        }
    };
    ended
        .split(|byte| *byte == b'\n')
        .flat_map(broken)
        .collect()
}

/// The lines of one host in what was written.
fn lines_of(label: &str, written: &[u8]) -> Vec<Vec<u8>> {
    let prefix = format!("{label}: ");
    let lines = written
        .strip_suffix(b"\n")
        .unwrap_or(written)
        .split(|byte| *byte == b'\n');
    lines
        .filter_map(|line| line.strip_prefix(prefix.as_bytes()))
        .map(<[u8]>::to_vec)
        .collect()
}

fn chunk() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![4 => Just(b'\n'), 1 => Just(b'\r'), 2 => Just(b':'), 20 => any::<u8>()];
    proptest::collection::vec(byte, 0..40)
}

proptest! {
    /// However bytes are cut and hosts take turns: each host's lines come whole, in order, exact, and
    /// nothing else comes.
    #[test]
    fn lines_come_whole_in_order_and_exact(
        chunks in proptest::collection::vec((0usize..3, any::<bool>(), chunk()), 0..60),
        max_line in prop_oneof![1u64..20, Just(MAX_LINE)],
    ) {
        let (stdout, stderr) = (Recorded::default(), Recorded::default());
        let mut run = Run::new(stdout.file(), stderr.file(), max_line);
        let mut sent: [[Vec<u8>; 2]; 3] = Default::default();
        for (host, to_stderr, chunk) in &chunks {
            let stream = if *to_stderr { Stream::Stderr } else { Stream::Stdout };
            run.push(*host, stream, chunk);
            sent[*host][stream as usize].extend(chunk);
        }
        run.end();
        for (stream, written) in [stdout.bytes(), stderr.bytes()].iter().enumerate() {
            let mut count = 0;
            for (host, label) in LABELS.iter().enumerate() {
                let expected = expected_lines(&sent[host][stream], max_line as usize);
                count += expected.len();
                prop_assert_eq!(lines_of(label, written), expected);
            }
            prop_assert_eq!(written.split(|byte| *byte == b'\n').count() - 1, count);
        }
    }

    /// On a terminal nothing but the newline steers it, whatever comes.
    #[test]
    fn a_terminal_gets_no_control_characters(chunks in proptest::collection::vec(chunk(), 0..20)) {
        let screen = Recorded::default();
        let mut run = Run::new(screen.terminal(false), Recorded::default().file(), 30);
        chunks.iter().for_each(|chunk| run.push(0, Stream::Stdout, chunk));
        run.end();
        let steering = screen.text().chars().find(|c| *c != '\n' && *c != '\t' && c.is_control());
        prop_assert_eq!(steering, None);
    }
}

#[test]
fn a_ten_megabyte_line_is_one_line_and_not_in_memory() {
    let stdout = Recorded::default();
    let mut run = Run::new(stdout.file(), Recorded::default().file(), MAX_LINE);
    let piece: Vec<u8> = (0..32_768u32).map(|n| b'a' + (n % 26) as u8).collect();
    let mut long: Vec<u8> = Vec::new();
    while long.len() < 10_000_000 {
        run.push(0, Stream::Stdout, &piece);
        run.push(1, Stream::Stdout, b"meanwhile\n");
        long.extend(&piece);
        assert!(run.spill.in_memory < 200_000);
    }
    run.push(0, Stream::Stdout, b"\n");
    run.end();
    let written = stdout.bytes();
    assert!(lines_of("web1", &written) == [long.clone()]);
    assert_eq!(lines_of("::1", &written).len(), long.len() / piece.len());
}

#[test]
fn a_line_beyond_the_limit_is_broken_there() {
    let stdout = Recorded::default();
    let mut run = Run::new(stdout.file(), Recorded::default().file(), 4);
    run.push(0, Stream::Stdout, b"12345678\n1234\n");
    run.push(0, Stream::Stdout, b"123");
    run.push(0, Stream::Stdout, b"45");
    run.end();
    assert_eq!(
        stdout.text(),
        "web1: 1234\nweb1: 5678\nweb1: 1234\nweb1: 1234\nweb1: 5\n"
    );
}

#[test]
fn terminals_get_readable_lines_and_pipes_the_bytes() {
    let bytes = b"\x1b[31mred\xff\r\nin\rside\ttab\r\n\xe2\x82\xac";
    let (screen, pipe) = (Recorded::default(), Recorded::default());
    for sink in [screen.terminal(true), pipe.file()] {
        let mut run = Run::new(sink, Recorded::default().file(), MAX_LINE);
        bytes
            .chunks(4)
            .for_each(|chunk| run.push(0, Stream::Stdout, chunk));
        run.end();
    }
    assert_eq!(
        screen.text(),
        "web1: \\x1b[31mred\\xff\nweb1: in\\x0dside\ttab\nweb1: €\n"
    );
    assert_eq!(
        pipe.bytes(),
        b"web1: \x1b[31mred\xff\r\nweb1: in\rside\ttab\r\nweb1: \xe2\x82\xac\n"
    );
}

#[test]
fn errors_are_red_on_a_terminal_that_has_colours() {
    for (color, expected) in [
        (true, "\x1b[31mweb1:\x1b[0m oops\n"),
        (false, "web1: oops\n"),
    ] {
        let screen = Recorded::default();
        let mut run = Run::new(Recorded::default().file(), screen.terminal(color), MAX_LINE);
        run.push(0, Stream::Stderr, b"oops\n");
        run.end();
        assert_eq!(screen.text(), expected);
    }
}
