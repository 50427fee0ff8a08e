//! The status lines of a run that copies files, on a terminal and elsewhere.

use super::*;

/// What a terminal shows after these bytes, row by row (ECMA-48: CR, LF, CUU, EL).
fn screen(bytes: &str) -> Vec<String> {
    let mut rows = vec![Vec::new()];
    let (mut row, mut column) = (0, 0);
    let mut rest = bytes;
    while let Some(letter) = rest.chars().next() {
        let line: &mut Vec<char> = &mut rows[row];
        if let Some(after) = rest.strip_prefix("\x1b[K") {
            line.truncate(column);
            rest = after;
            continue;
        }
        if let Some(after) = rest.strip_prefix("\x1b[A") {
            row -= 1;
            rest = after;
            continue;
        }
        match letter {
            '\r' => column = 0,
            '\n' => {
                row += 1;
                // As a terminal's line discipline has it (ONLCR).
                column = 0;
                if row == rows.len() {
                    rows.push(Vec::new());
                }
            }
            letter => {
                line.truncate(column);
                line.push(letter);
                column += 1;
            }
        }
        rest = &rest[letter.len_utf8()..];
    }
    rows.iter().map(|row| row.iter().collect()).collect()
}

fn moving(done: u64) -> Moving {
    let left = 10 - done;
    Moving { done, left }
}

#[test]
fn each_host_has_a_line_until_it_ends_and_output_stands_above_all() {
    let terminal = Recorded::default();
    let stderr = terminal.terminal(false);
    let options = Options::default();
    let mut reporter = Reporter::new(webs(2), options, terminal.terminal(false), stderr).unwrap();
    let start = Instant::now();
    let mut progress = Progress {
        total: 2,
        command: 2,
        ..Progress::default()
    };
    let hosts = |done: &[(u32, u64)]| -> Vec<(HostId, Moving)> {
        let hosts = done.iter();
        hosts
            .map(|(host, done)| (HostId(*host), moving(*done)))
            .collect()
    };
    let at = |ms| start + Duration::from_millis(ms);
    reporter.tick(at(0), &progress).unwrap();
    reporter.handle_moving(moving(3), || hosts(&[(0, 1), (1, 2)]));
    reporter.tick(at(400), &progress).unwrap();
    let shown = screen(&terminal.text());
    assert_eq!(shown[..2], ["web1: 1 B of 10 B", "web2: 2 B of 10 B"]);
    assert!(
        shown[2].starts_with("3 B of 10 B; 0 of 2 done") && shown[2].contains("2 in transfer"),
        "{shown:?}"
    );
    reporter
        .handle_output(HostId(0), Stream::Stderr, b"a line\n")
        .unwrap();
    reporter.handle_result(&exit(0, 0)).unwrap();
    (progress.command, progress.done) = (1, 1);
    reporter.handle_moving(moving(4), || hosts(&[(1, 4)]));
    reporter.tick(at(1400), &progress).unwrap();
    let shown = screen(&terminal.text());
    assert_eq!(
        shown[..2],
        ["web1: a line", "web2: 4 B of 10 B, 2 B/s, 0:03 left"]
    );
    assert!(shown[2].starts_with("4 B of 10 B, 1 B/s"), "{shown:?}");
    reporter.handle_result(&exit(1, 0)).unwrap();
    reporter.finish(RunEnd::default());
    let shown = screen(&terminal.text());
    assert_eq!(
        shown[..2],
        ["web1: a line", "sshoal: 2 of 2 hosts ok, in 0.0 s"]
    );
    assert!(shown[2..].iter().all(String::is_empty), "{shown:?}");
}

#[test]
fn a_pipe_and_a_single_host_are_not_asked_about_hosts() {
    for (hosts, is_terminal) in [(2, false), (1, true)] {
        let output = Recorded::default();
        let stderr = match is_terminal {
            true => output.terminal(false),
            false => output.file(),
        };
        let stdout = Recorded::default().file();
        let mut reporter = Reporter::new(webs(hosts), Options::default(), stdout, stderr).unwrap();
        reporter.handle_moving(moving(3), || panic!("nobody shows them"));
        let start = Instant::now();
        for ms in [0, 400] {
            let now = start + Duration::from_millis(ms);
            reporter.tick(now, &Progress::default()).unwrap();
        }
        assert_eq!(output.text().contains("3 B of 10 B"), is_terminal);
    }
}

#[test]
fn what_an_attempt_has_moved_that_was_cut_counts_with_the_next_one() {
    let output = Recorded::default();
    let options = Options {
        layout: Layout::Json,
        ..Options::default()
    };
    let stderr = Recorded::default().file();
    let mut reporter = Reporter::new(webs(1), options, output.file(), stderr).unwrap();
    let attempt = |done, octets| Transferred {
        done,
        octets,
        ..Transferred::default()
    };
    let mut told = |transferred| reporter.handle_transferred(HostId(0), transferred);
    told(attempt(1, 100)).unwrap();
    told(attempt(3, 50)).unwrap();
    reporter.handle_result(&exit(0, 0)).unwrap();
    reporter.finish(RunEnd::default());
    let text = output.text();
    let both =
        r#""transfer":{"done":3,"unchanged":0,"failed":0,"verified":0,"deleted":0,"octets":150}"#;
    assert_eq!(text.matches(both).count(), 2, "host and summary: {text}");
}
