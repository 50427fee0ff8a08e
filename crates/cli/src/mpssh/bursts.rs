//! A host's output in the pieces in which mpssh.py reads it: what comes of one stream without a pause, standard output
//! before standard error. Pieces of several hosts do not mix.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use sshoal_net::Stream;

/// A pause: what has come of the stream so far is shown.
const PAUSE: Duration = Duration::from_millis(200);

/// Octets of a stream that wait for a pause, at most; more only for one line that `-l` allows to be longer.
const MAX_WAITING: usize = 16 * 1024;

/// Octets of one stream of one host that are to be shown.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) host: usize,
    pub(super) stream: Stream,
    pub(super) octets: Vec<u8>,
    /// Whether there was a pause behind it. If not, it ends with a line, or a full part of one.
    pub(super) ends: bool,
}

/// What waits for a pause.
pub(super) struct Bursts {
    hosts: Vec<[Option<Burst>; 2]>,
    /// The hosts of which anything waits.
    waiting: BTreeSet<usize>,
    max_line: usize,
}

struct Burst {
    octets: Vec<u8>,
    /// When the last of them came.
    latest: Instant,
}

const STREAMS: [Stream; 2] = [Stream::Stdout, Stream::Stderr];

fn index(stream: Stream) -> usize {
    match stream {
        Stream::Stdout => 0,
        Stream::Stderr => 1,
    }
}

impl Bursts {
    /// Lines are broken after `max_line` octets.
    pub(super) fn new(hosts: usize, max_line: usize) -> Bursts {
        Bursts {
            hosts: (0..hosts).map(|_| [None, None]).collect(),
            waiting: BTreeSet::new(),
            max_line,
        }
    }

    /// Takes output; returns what cannot wait any longer.
    pub(super) fn push(
        &mut self,
        now: Instant,
        host: usize,
        stream: Stream,
        octets: &[u8],
    ) -> Option<Piece> {
        let burst = self.hosts[host][index(stream)].get_or_insert_with(|| Burst {
            octets: Vec::new(),
            latest: now,
        });
        burst.octets.extend_from_slice(octets);
        burst.latest = now;
        self.waiting.insert(host);
        if burst.octets.len() <= MAX_WAITING.max(self.max_line) {
            return None;
        }
        let cut = whole_lines(&burst.octets, self.max_line);
        let rest = burst.octets.split_off(cut);
        Some(Piece {
            host,
            stream,
            octets: std::mem::replace(&mut burst.octets, rest),
            ends: false,
        })
    }

    /// What is to be shown since there was a pause behind it.
    pub(super) fn due(&mut self, now: Instant) -> Vec<Piece> {
        let mut due = Vec::new();
        for host in self.waiting.iter().copied().collect::<Vec<_>>() {
            for stream in STREAMS {
                let waits = &self.hosts[host][index(stream)];
                let goes_on = |burst: &Burst| now.duration_since(burst.latest) < PAUSE;
                if waits.as_ref().is_some_and(goes_on) {
                    // Standard error does not overtake standard output.
                    break;
                }
                due.extend(self.take(host, stream));
            }
        }
        due
    }

    /// All that is left of a host.
    pub(super) fn end(&mut self, host: usize) -> Vec<Piece> {
        let left = STREAMS.map(|stream| self.take(host, stream));
        left.into_iter().flatten().collect()
    }

    /// All that is left.
    pub(super) fn end_all(&mut self) -> Vec<Piece> {
        (0..self.hosts.len())
            .flat_map(|host| self.end(host))
            .collect()
    }

    fn take(&mut self, host: usize, stream: Stream) -> Option<Piece> {
        let burst = self.hosts[host][index(stream)].take();
        if self.hosts[host].iter().all(Option::is_none) {
            self.waiting.remove(&host);
        }
        burst.map(|burst| Piece {
            host,
            stream,
            octets: burst.octets,
            ends: true,
        })
    }
}

/// How much of the octets can be shown before more are known, as it will be shown in the end. A CR at the end may be
/// half an end of line. Of a line that goes on something is left, or its end alone would look like an empty line.
fn whole_lines(octets: &[u8], max_line: usize) -> usize {
    let settled = octets.strip_suffix(b"\r").unwrap_or(octets);
    let newline = settled.iter().rposition(|octet| *octet == b'\n');
    let carriage_return = || settled.iter().rposition(|octet| *octet == b'\r');
    match newline.or_else(carriage_return) {
        Some(at) => at + 1,
        None => settled.len().saturating_sub(1) / max_line * max_line,
    }
}

#[cfg(test)]
#[path = "bursts_tests.rs"]
mod tests;
