//! A login by ssh that is measured: the lines of its log, as they come.

use std::time::Instant;

use sshoal_fleet::HostId;

use super::marks::{Passed, Timing};
use crate::worker::Worker;

/// A line of the log is kept up to so many octets.
const MAX_LINE: usize = 512;

/// One login by ssh.
pub(crate) struct SshTiming {
    timing: Timing,
    lines: Lines,
    has_output: bool,
}

impl SshTiming {
    /// It begins now, if its run measures.
    pub(crate) fn begin(worker: &Worker, host: HostId) -> Option<SshTiming> {
        Some(SshTiming {
            timing: Timing::begin(worker, host)?,
            lines: Lines::default(),
            has_output: false,
        })
    }

    /// Takes what was read of the log just now.
    pub(crate) fn take_log(&mut self, octets: &[u8]) {
        let now = Instant::now();
        for line in self.lines.take(octets) {
            self.timing.pass_at(now, Passed::Said(line));
        }
    }

    /// The command has written something.
    pub(crate) fn take_output(&mut self) {
        if !std::mem::replace(&mut self.has_output, true) {
            self.timing.pass(Passed::Output);
        }
    }
}

/// Lines that come in pieces.
#[derive(Default)]
struct Lines {
    /// The last one, as far as it has come and is kept.
    unfinished: Vec<u8>,
}

impl Lines {
    /// The lines that these octets complete, but for empty ones.
    fn take(&mut self, octets: &[u8]) -> Vec<String> {
        let mut whole = Vec::new();
        for &octet in octets {
            if octet != b'\n' {
                if self.unfinished.len() < MAX_LINE {
                    self.unfinished.push(octet);
                }
                continue;
            }
            let line = String::from_utf8_lossy(self.unfinished.trim_ascii()).into_owned();
            self.unfinished.clear();
            if !line.is_empty() {
                whole.push(line);
            }
        }
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_whatever_pieces_they_come_in() {
        for size in [1, 3, 7, 100] {
            let mut lines = Lines::default();
            let pieces = b"debug1: one\r\n\r\ndebug1: two\r\nand no end".chunks(size);
            let whole: Vec<String> = pieces.flat_map(|piece| lines.take(piece)).collect();
            assert_eq!(whole, ["debug1: one", "debug1: two"]);
        }
    }

    #[test]
    fn of_a_long_line_the_beginning_is_kept() {
        let mut lines = Lines::default();
        assert!(lines.take(&[b'x'; 100_000]).is_empty());
        assert_eq!(
            lines.take(b"\nnext\n"),
            ["x".repeat(MAX_LINE).as_str(), "next"]
        );
    }
}
