//! A trial by commands of the server's shell: dd writes zeros, cat reads ours, and marks between them say how much CPU
//! time the server's process for the connection has had.
//!
//! What is moved first, either way, is not measured, and its reader lets it wait: sshd and ssh allocate what waits anew for
//! each packet by which it grows (sshbuf.c, `sshbuf_allocate`), and so the first two megabytes that wait cost as much as a hundred later.

use std::time::{Duration, Instant};

use sshoal_proto::Stream;

use super::processor::{Processor, parsed};
use super::{BLOCK, Leg, ZEROS};

/// What a line of standard error begins with that is a mark.
const MARK: &str = "sshoal-trial ";
/// Longest line of standard error that is kept, octets: what a shell's start-up files say may be longer.
const MAX_LINE: usize = 4096;
/// Marks: before and behind each direction.
const MARKS: usize = 4;
/// Blocks that go first and are not measured, if as many are measured: the window of OpenSSH's twice (channels.h,
/// CHAN_SES_WINDOW_DEFAULT), of ours and of the server's.
const MOST_FIRST: u64 = 64;
/// How long what goes first is left to wait.
const PAUSE: Duration = Duration::from_millis(200);

/// The line for the user's shell. What runs is sh, whatever that shell is; its parent is the process that has the
/// connection (session.c, do_exec_no_pty).
pub(super) fn command(blocks: u64) -> String {
    let mark = format!(
        "m() {{ printf \"{MARK}%s|%s\\n\" \"$(cat /proc/$PPID/schedstat 2>/dev/null)\" \
         \"$(cat /proc/$PPID/stat 2>/dev/null)\" >&2; }}"
    );
    let first = blocks.min(MOST_FIRST);
    let moved = match blocks {
        0 => "m; m; m; cat >/dev/null; m".to_owned(),
        // Not every sleep knows parts of a second.
        blocks => format!(
            "d() {{ dd bs=65536 \"$@\" 2>/dev/null; }}; \
             d if=/dev/zero count={first}; m; d if=/dev/zero count={blocks}; m; \
             sleep 0.2 2>/dev/null || sleep 1; d of=/dev/null count={first}; m; cat >/dev/null; m"
        ),
    };
    format!("exec sh -c '{mark}; {moved}'")
}

/// How far the trial is.
pub(super) struct Exec {
    /// How much is to go either way, of that which is measured.
    octets: u64,
    /// How much goes before it.
    first: u64,
    processor: Processor,
    /// The last, unfinished line of standard error.
    line: Vec<u8>,
    marks: Vec<Option<Duration>>,
    /// When what goes first had come, or the mark behind it.
    began: Option<Moment>,
    received: u64,
    /// When all had come.
    received_all: Option<Moment>,
    /// Whether ours may go.
    sends: bool,
    /// When what goes first had been read.
    sending: Option<Moment>,
    sent: u64,
    has_paused: bool,
    ended: Option<Moment>,
}

/// A moment, and the CPU time of this side so far.
#[derive(Clone, Copy)]
struct Moment {
    at: Instant,
    cpu: Option<Duration>,
}

impl Exec {
    pub(super) fn new(octets: u64, processor: Processor) -> Exec {
        Exec {
            octets,
            first: octets.min(MOST_FIRST * BLOCK),
            processor,
            line: Vec::new(),
            marks: Vec::with_capacity(MARKS),
            began: None,
            received: 0,
            received_all: None,
            sends: false,
            sending: None,
            sent: 0,
            has_paused: false,
            ended: None,
        }
    }

    fn moment(&self, at: Instant) -> Option<Moment> {
        let cpu = self.processor.time();
        Some(Moment { at, cpu })
    }

    pub(super) fn handle(&mut self, stream: Stream, octets: &[u8], now: Instant) {
        match stream {
            Stream::Stdout => self.received += octets.len() as u64,
            Stream::Stderr => self.take_lines(octets),
        }
        let has_first = match self.first {
            0 => !self.marks.is_empty(),
            first => self.received >= first,
        };
        if self.began.is_none() && has_first {
            self.began = self.moment(now);
        }
        let has_all = self.received >= self.first + self.octets;
        if self.received_all.is_none() && has_all && !self.marks.is_empty() {
            self.received_all = self.moment(now);
        }
        self.sends |= self.received_all.is_some() && self.marks.len() > 1;
        if self.sending.is_none() && self.sends && self.marks.len() > 2 {
            self.sending = self.moment(now);
        }
        if self.ended.is_none() && self.marks.len() == MARKS {
            self.ended = self.moment(now);
        }
    }

    fn take_lines(&mut self, octets: &[u8]) {
        for &octet in octets {
            if octet != b'\n' {
                if self.line.len() < MAX_LINE {
                    self.line.push(octet);
                }
                continue;
            }
            let line = std::mem::take(&mut self.line);
            let line = String::from_utf8_lossy(&line);
            if let Some((_, accounts)) = line.split_once(MARK)
                && self.marks.len() < MARKS
            {
                let (schedstat, stat) = accounts.split_once('|').unwrap_or((accounts, ""));
                self.marks.push(parsed(schedstat, stat));
            }
        }
    }

    /// What can be sent now.
    pub(super) fn transmit(&self) -> &'static [u8] {
        if !self.sends {
            return &[];
        }
        let left = self.first + self.octets - self.sent;
        let left = usize::try_from(left).unwrap_or(ZEROS.len());
        &ZEROS[..left.min(ZEROS.len())]
    }

    pub(super) fn transmitted(&mut self, octets: usize) {
        self.sent += octets as u64;
    }

    pub(super) fn has_sent_all(&self) -> bool {
        self.sends && self.sent >= self.first + self.octets
    }

    /// How long nothing is to be read, once, when the first octets have come.
    pub(super) fn take_pause(&mut self) -> Option<Duration> {
        let is_due = !self.has_paused && self.received > 0 && self.first > 0;
        self.has_paused |= is_due;
        is_due.then_some(PAUSE)
    }

    /// What was measured from the server and to it.
    pub(super) fn legs(&self) -> (Option<Leg>, Option<Leg>) {
        let leg = |from: Option<Moment>, to: Option<Moment>, mark: usize| {
            let (from, to) = from.zip(to)?;
            let server = self.marks.get(mark).zip(self.marks.get(mark + 1));
            (self.octets > 0).then(|| Leg {
                octets: self.octets,
                elapsed: to.at.saturating_duration_since(from.at),
                client_cpu: between(from.cpu, to.cpu),
                server_cpu: server.and_then(|(from, to)| between(*from, *to)),
            })
        };
        (
            leg(self.began, self.received_all, 0),
            leg(self.sending, self.ended, 2),
        )
    }
}

fn between(from: Option<Duration>, to: Option<Duration>) -> Option<Duration> {
    to.zip(from).map(|(to, from)| to.saturating_sub(from))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_trial_goes_by_its_marks_and_octets_however_they_are_cut() {
        let mut exec = Exec::new(1000, Processor::own());
        let begun = Instant::now();
        let at = |seconds| begun + Duration::from_secs(seconds);
        assert!(exec.transmit().is_empty());
        assert_eq!(exec.take_pause(), None);
        exec.handle(Stream::Stdout, &[0; 900], at(0));
        assert_eq!(exec.take_pause(), Some(PAUSE));
        assert_eq!(exec.take_pause(), None);
        exec.handle(Stream::Stderr, b"welcome\nsshoal-tri", at(0));
        exec.handle(Stream::Stderr, b"al 1000 1 1|17 (sshd) S\n", at(0));
        exec.handle(Stream::Stdout, &[0; 100], at(1));
        exec.handle(Stream::Stdout, &[0; 600], at(2));
        exec.handle(Stream::Stderr, b"sshoal-trial 5000 1 1|\n", at(3));
        assert!(exec.transmit().is_empty(), "not all has come");
        exec.handle(Stream::Stdout, &[0; 400], at(4));
        assert_eq!(exec.transmit().len(), 2000);
        assert!(!exec.has_sent_all());
        exec.transmitted(2000);
        assert!(exec.has_sent_all());
        exec.handle(Stream::Stderr, b"sshoal-trial 5100 1 1|\n", at(5));
        exec.handle(Stream::Stderr, b"sshoal-trial 5600 1 1|\n", at(10));
        let (down, up) = exec.legs();
        let (down, up) = (down.unwrap(), up.unwrap());
        assert_eq!((down.octets, up.octets), (1000, 1000));
        assert_eq!(down.elapsed, Duration::from_secs(3));
        assert_eq!(up.elapsed, Duration::from_secs(5));
        assert_eq!(down.server_cpu, Some(Duration::from_nanos(4000)));
        assert_eq!(up.server_cpu, Some(Duration::from_nanos(500)));
    }

    #[test]
    fn accounts_that_cannot_be_read_are_nothing_and_a_shell_that_is_none_measures_nothing() {
        let mut exec = Exec::new(10, Processor::own());
        let now = Instant::now();
        exec.handle(
            Stream::Stdout,
            b"This account is currently not available.\n",
            now,
        );
        assert_eq!(exec.legs(), (None, None));
        exec.handle(Stream::Stdout, &[0; 20], now);
        exec.handle(Stream::Stderr, b"sshoal-trial |\nsshoal-trial |\n", now);
        assert_eq!(exec.legs().0.unwrap().server_cpu, None);
    }

    #[test]
    fn the_command_quotes_itself_once() {
        let line = command(16);
        assert_eq!(line.matches('\'').count(), 2, "{line}");
        assert!(line.contains("count=16; m"), "{line}");
        assert!(command(1000).contains("count=64; m; d if=/dev/zero count=1000; m"));
        assert!(!command(0).contains("dd"));
    }
}
