//! What the tracer writes, taken apart: a first line, then frames of a letter, a length in four octets and a content.

use thiserror::Error;

/// The line after which the frames begin. What a shell's start-up files write comes before it.
const FIRST_LINE: &[u8] = b"sshoal-trace 1\n";
/// What other versions' first lines begin with.
const ANY_VERSION: &[u8] = b"sshoal-trace ";
/// Octets before the first line.
const MAX_BEFORE: usize = 64 * 1024;
/// Octets of a frame: a page of the ring buffer has up to 64 KiB, the description of an event a few.
const MAX_FRAME: usize = 256 * 1024;
/// Lines of one kind that are told when it begins, and characters of each.
const MAX_LINES: usize = 16;
const MAX_WORDS: usize = 512;
/// Octets of a whole trace: the tracer keeps 48 MiB.
pub const MAX_OCTETS: u64 = 64 * 1024 * 1024;

/// One frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// `A`: from now on all is recorded.
    Armed(Armed),
    /// `B`: probes, a line each: "NUMBER MODULE FUNCTION".
    Probes(String),
    /// `C`: the host's time, in nanoseconds, in answer to a line.
    Clock(u64),
    /// `E`: all has come; why it ended: `asked`, `late` (nobody asked), `full` (there was more than can be kept).
    End(String),
    /// `F`: "SYSTEM/EVENT", then its `format` file.
    Format(String),
    /// `H`: the layout of the pages (`events/header_page`).
    PageHeader(String),
    /// `L`: lost records, a line for each processor: "CPU OVERRUN DROPPED".
    Lost(String),
    /// `N`: names of processes, a line each: "PID NAME".
    Names(String),
    /// `P`: a page of a processor's ring buffer, as far as it is used.
    Page(u16, Vec<u8>),
    /// `R`: what was told of processes, a line each; see `told`.
    Told(String),
    /// `S`: counters of the whole host, a line each: "NAME NUMBER". The first before the login, the second after it.
    Samples(String),
    /// `X`: there is no trace: a word for the reason, and words for the user.
    Failed(String, String),
}

/// What is told when the trace has begun.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Armed {
    /// The host's monotonic clock, in nanoseconds.
    pub time: u64,
    /// The kernel's number of the process that is followed, with all that it starts.
    pub followed: u32,
    /// How it is followed: `tracefs`, `proc-connector` or `proc`.
    pub by: String,
    /// What is not told, by the tracer's words for it: `uprobes`, `files`.
    pub lacks: Vec<String>,
    /// What would have been better, and why it is not to be had.
    pub refused: Vec<(String, String)>,
}

/// What came is no trace.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StreamError {
    /// There was no tracer.
    #[error("the tracer's first line did not come in {MAX_BEFORE} octets")]
    NoFirstLine,
    /// Of another program than ours.
    #[error("the tracer speaks another version than this sshoal")]
    Version,
    /// A letter that no frame has.
    #[error("no frame begins with octet {0}")]
    Letter(u8),
    /// A frame is longer than any is.
    #[error("a frame of {0} octets is longer than the {MAX_FRAME} that any has")]
    TooLong(usize),
    /// There is more than a trace has.
    #[error("a trace has no more than {MAX_OCTETS} octets")]
    TooMuch,
    /// A frame does not hold what its letter promises.
    #[error("a frame {0} does not hold what it should")]
    Content(char),
}

/// Takes the octets as they come, and gives frames.
#[derive(Debug, Default)]
pub struct Frames {
    waiting: Vec<u8>,
    /// How much of that has been given out.
    taken: usize,
    has_begun: bool,
    all: u64,
}

impl Frames {
    /// Octets of the tracer's standard output.
    ///
    /// # Errors
    ///
    /// There were more than a trace has.
    pub fn handle_input(&mut self, octets: &[u8]) -> Result<(), StreamError> {
        self.all += octets.len() as u64;
        if self.all > MAX_OCTETS {
            return Err(StreamError::TooMuch);
        }
        self.waiting.drain(..self.taken);
        self.taken = 0;
        self.waiting.extend_from_slice(octets);
        Ok(())
    }

    /// The next frame that is there whole.
    ///
    /// # Errors
    ///
    /// What came is no trace: nothing behind it is.
    pub fn poll_frame(&mut self) -> Result<Option<Frame>, StreamError> {
        if !self.has_begun && !self.begin()? {
            return Ok(None);
        }
        let rest = &self.waiting[self.taken..];
        let Some((head, rest)) = rest.split_first_chunk::<5>() else {
            return Ok(None);
        };
        let [letter, length @ ..] = *head;
        let length = u32::from_be_bytes(length) as usize;
        if length > MAX_FRAME {
            return Err(StreamError::TooLong(length));
        }
        let Some(content) = rest.get(..length) else {
            return Ok(None);
        };
        let frame = frame(letter, content)?;
        self.taken += head.len() + length;
        Ok(Some(frame))
    }

    /// Whether frames have begun to come.
    pub fn have_begun(&self) -> bool {
        self.has_begun
    }

    /// What came before the frames, or instead of them: words of a shell, or of sudo.
    pub fn before(&self) -> String {
        match self.has_begun {
            true => String::new(),
            false => String::from_utf8_lossy(&self.waiting[self.taken..]).into_owned(),
        }
    }

    fn begin(&mut self) -> Result<bool, StreamError> {
        let rest = &self.waiting[self.taken..];
        let find = |line: &[u8]| rest.windows(line.len()).position(|part| part == line);
        match find(FIRST_LINE) {
            Some(at) if at <= MAX_BEFORE => {
                self.taken += at + FIRST_LINE.len();
                self.has_begun = true;
                Ok(true)
            }
            _ if rest.len() > MAX_BEFORE => Err(StreamError::NoFirstLine),
            _ => match find(ANY_VERSION) {
                Some(at) if rest.len() >= at + FIRST_LINE.len() => Err(StreamError::Version),
                _ => Ok(false),
            },
        }
    }
}

fn frame(letter: u8, content: &[u8]) -> Result<Frame, StreamError> {
    let text = || String::from_utf8_lossy(content).into_owned();
    let bad = || StreamError::Content(char::from(letter));
    Ok(match letter {
        b'A' => Frame::Armed(armed(&text()).ok_or_else(bad)?),
        b'B' => Frame::Probes(text()),
        b'C' => Frame::Clock(text().trim().parse().map_err(|_| bad())?),
        b'E' => Frame::End(text()),
        b'F' => Frame::Format(text()),
        b'H' => Frame::PageHeader(text()),
        b'L' => Frame::Lost(text()),
        b'N' => Frame::Names(text()),
        b'R' => Frame::Told(text()),
        b'P' => {
            let (processor, page) = content.split_first_chunk::<2>().ok_or_else(bad)?;
            Frame::Page(u16::from_be_bytes(*processor), page.to_vec())
        }
        b'S' => Frame::Samples(text()),
        b'X' => {
            let text = text();
            let (kind, words) = text.split_once(' ').unwrap_or((&text, ""));
            Frame::Failed(kind.to_owned(), words.to_owned())
        }
        _ => return Err(StreamError::Letter(letter)),
    })
}

fn armed(text: &str) -> Option<Armed> {
    let values = |name: &'static str| {
        let pairs = text.lines().filter_map(|line| line.split_once(' '));
        pairs
            .filter(move |(known, _)| *known == name)
            .map(|(_, value)| value)
    };
    let value = |name| values(name).next();
    let short = |text: &str| text.chars().take(MAX_WORDS).collect::<String>();
    let refused = values("refused").filter_map(|line| line.split_once(' '));
    let refused = refused.map(|(way, why)| (short(way), short(why)));
    Some(Armed {
        time: value("time")?.parse().ok()?,
        followed: value("followed")?.parse().ok()?,
        by: short(value("by")?),
        lacks: values("lacks").take(MAX_LINES).map(short).collect(),
        refused: refused.take(MAX_LINES).collect(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    fn framed(letter: u8, content: &[u8]) -> Vec<u8> {
        let length = (content.len() as u32).to_be_bytes();
        [&[letter], &length[..], content].concat()
    }

    fn all(octets: &[u8], step: usize) -> Result<Vec<Frame>, StreamError> {
        let mut frames = Frames::default();
        let mut found = Vec::new();
        for part in octets.chunks(step) {
            frames.handle_input(part)?;
            while let Some(frame) = frames.poll_frame()? {
                found.push(frame);
            }
        }
        Ok(found)
    }

    #[test]
    fn frames_follow_the_first_line_wherever_the_octets_are_cut() {
        let mut octets = b"Welcome to sshoal-land\nsshoal-trace 1\n".to_vec();
        octets.extend(framed(
            b'A',
            b"time 5\nfollowed 7\nby proc\nlacks files\nrefused tracefs there is none\nnews 9",
        ));
        octets.extend(framed(b'P', &[0, 3, 1, 2]));
        octets.extend(framed(b'X', b"not-root tracing is root's alone"));
        let wanted = vec![
            Frame::Armed(Armed {
                time: 5,
                followed: 7,
                by: "proc".to_owned(),
                lacks: vec!["files".to_owned()],
                refused: vec![("tracefs".to_owned(), "there is none".to_owned())],
            }),
            Frame::Page(3, vec![1, 2]),
            Frame::Failed("not-root".to_owned(), "tracing is root's alone".to_owned()),
        ];
        for step in 1..octets.len() {
            assert_eq!(all(&octets, step), Ok(wanted.clone()), "{step}");
        }
    }

    #[test]
    fn what_is_no_trace_is_refused_and_never_kept() {
        let begun = |rest: Vec<u8>| [FIRST_LINE.to_vec(), rest].concat();
        assert_eq!(
            all(&vec![b'x'; MAX_BEFORE + 1], 1000),
            Err(StreamError::NoFirstLine)
        );
        assert_eq!(all(b"sshoal-trace 2\n\n", 99), Err(StreamError::Version));
        assert_eq!(
            all(&begun(framed(b'z', b"")), 9),
            Err(StreamError::Letter(b'z'))
        );
        let long = [&[b'P'][..], &u32::MAX.to_be_bytes()].concat();
        assert_eq!(
            all(&begun(long), 99),
            Err(StreamError::TooLong(u32::MAX as usize))
        );
        assert_eq!(
            all(&begun(framed(b'C', b"soon")), 99),
            Err(StreamError::Content('C'))
        );
    }

    proptest! {
        #[test]
        fn no_octets_are_too_much_for_it(octets: Vec<u8>, step in 1_usize..64) {
            let _ = all(&octets, step);
            let _ = all(&[FIRST_LINE, &octets].concat(), step);
        }
    }
}
