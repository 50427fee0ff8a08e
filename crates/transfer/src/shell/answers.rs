//! What the host's shell says, as `host.sh` has it. All of it is the host's choice: everything has a limit.

use std::collections::VecDeque;

use super::words::BLOCK;
use super::{ShellError, TOGETHER};
use crate::path::{MAX_NAME, MAX_PATH};
use crate::sftp::{Attributes, printable};

/// Octets that start-up files may say before the shell does.
const PREAMBLE: usize = 64 * 1024;
/// The longest line: a failure that quotes two paths.
const LINE: usize = 64 * 1024;
/// Names that come together.
const GROUP: usize = 500;
/// Octets of what is no answer that are quoted.
const QUOTED: usize = 200;

/// How what was asked is answered.
#[derive(Debug, Clone, Copy)]
pub(super) enum Expected {
    /// So many lines.
    Lines(usize),
    /// What is wrong with the file, if anything is, and what dd says.
    Written,
    Names,
    Contents,
    Path,
}

/// What has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// The loop that reads the program runs.
    Here,
    /// The program is there, and what it needs; the account's umask.
    Ready(u32),
    Done,
    /// A file is open, and which one it is.
    Opened(String),
    Written {
        counts: Counts,
        failed: Option<String>,
    },
    Failed(String),
    Attributes(Attributes),
    /// A folder can be listed; names follow, then `Done`.
    Begun,
    Names(Vec<(Vec<u8>, Attributes)>),
    /// As many octets as were asked for, of which perhaps not all were in the file. Without counts, nor are any: it is another one.
    Contents {
        octets: Vec<u8>,
        counts: Option<Counts>,
    },
    Path(Vec<u8>),
    /// The size of a block, blocks that may be written, files, files that may be made.
    Filesystem([u64; 4]),
}

impl Answer {
    pub(super) fn unexpected(&self) -> ShellError {
        let said = format!("{self:?}");
        ShellError::NoAnswer(said.chars().take(QUOTED).collect())
    }
}

/// Puts answers together from the pieces in which they come.
#[derive(Debug, Default)]
pub(super) struct Answers {
    stage: Stage,
    expected: VecDeque<Expected>,
    /// A line or a name, as far as it has come.
    piece: Vec<u8>,
    /// Octets that have come before the shell's first word.
    preamble: usize,
    /// The last line of them.
    said: String,
    /// Whether all names of the folder have come that is listed.
    are_all: bool,
}

#[derive(Debug, Default)]
enum Stage {
    #[default]
    Hello,
    Program,
    /// The first line of an answer, or one of several.
    Line,
    /// In a folder's listing: a group, or the end.
    Group,
    Name {
        left: usize,
        names: VecDeque<Vec<u8>>,
    },
    Looked {
        names: VecDeque<Vec<u8>>,
        all: Vec<(Vec<u8>, Attributes)>,
    },
    Octets {
        left: usize,
        octets: Vec<u8>,
    },
    /// What dd says of them.
    Counts(Vec<u8>),
    /// What dd says of what was written, and what is wrong with it.
    Taken(String),
}

impl Answers {
    pub(super) fn expect(&mut self, expected: Expected) {
        self.expected.push_back(expected);
    }

    /// What was said last in place of the shell's first word; empty after that.
    pub(super) fn said(&self) -> &str {
        match self.stage {
            Stage::Hello => &self.said,
            _ => "",
        }
    }

    /// Takes octets off the front of `input`, until something has come that is of use by itself.
    pub(super) fn next(&mut self, input: &mut &[u8]) -> Result<Option<Answer>, ShellError> {
        while !input.is_empty() {
            if let Some(answer) = self.step(input)? {
                return Ok(Some(answer));
            }
        }
        Ok(None)
    }

    fn step(&mut self, input: &mut &[u8]) -> Result<Option<Answer>, ShellError> {
        if let Stage::Octets { left, octets } = &mut self.stage {
            let (taken, rest) = input.split_at(input.len().min(*left));
            octets.extend_from_slice(taken);
            (*input, *left) = (rest, *left - taken.len());
            if *left == 0 {
                self.stage = Stage::Counts(std::mem::take(octets));
            }
            return Ok(None);
        }
        let is_path = matches!(self.expected.front(), Some(Expected::Path))
            && self.piece.first().or(input.first()) == Some(&b'p');
        let (end, limit) = match self.stage {
            Stage::Name { .. } => (0, MAX_NAME + 2),
            Stage::Line if is_path => (0, MAX_PATH + 1),
            Stage::Hello => (b'\n', PREAMBLE),
            _ => (b'\n', LINE),
        };
        let at = input.iter().position(|&octet| octet == end);
        let part = &input[..at.unwrap_or(input.len())];
        if self.piece.len() + part.len() > limit {
            return Err(match self.stage {
                Stage::Hello => ShellError::Another(quoted(&self.piece)),
                _ => ShellError::TooMuch("a line, a name or a path without an end"),
            });
        }
        self.piece.extend_from_slice(part);
        *input = &input[part.len() + usize::from(at.is_some())..];
        if at.is_none() {
            return Ok(None);
        }
        let piece = std::mem::take(&mut self.piece);
        self.handle(piece)
    }

    fn handle(&mut self, piece: Vec<u8>) -> Result<Option<Answer>, ShellError> {
        match std::mem::take(&mut self.stage) {
            Stage::Hello => {
                self.preamble += piece.len() + 1;
                if piece == b"sshoal-shell" {
                    self.stage = Stage::Program;
                    return Ok(Some(Answer::Here));
                }
                self.said = quoted(&piece);
                match self.preamble > PREAMBLE {
                    true => Err(ShellError::Another(quoted(&piece))),
                    false => Ok(None),
                }
            }
            Stage::Program => {
                if let Some(lacks) = piece.strip_prefix(b"sshoal-lacks") {
                    let lacks = quoted(lacks);
                    let each: Vec<&str> = lacks.split_whitespace().collect();
                    return Err(ShellError::Lacks(each.join(", ")));
                }
                let umask = piece.strip_prefix(b"sshoal-ready ").and_then(octal);
                self.stage = Stage::Line;
                let umask = umask.ok_or_else(|| no_answer(&piece))?;
                Ok(Some(Answer::Ready(umask & 0o777)))
            }
            Stage::Line => self.handle_line(&piece),
            Stage::Group => self.handle_group(&piece),
            Stage::Name { left, mut names } => {
                let name = piece.strip_prefix(b"./").unwrap_or(&piece).to_vec();
                names.push_back(name);
                self.stage = match left {
                    1 => Stage::Looked {
                        names,
                        all: Vec::new(),
                    },
                    left => Stage::Name {
                        left: left - 1,
                        names,
                    },
                };
                Ok(None)
            }
            Stage::Looked { mut names, mut all } => {
                // What cannot be looked at, or has gone since, is a name all the same.
                let attributes = match &piece[..] {
                    b"-" => Attributes::default(),
                    line => attributes(line).ok_or_else(|| no_answer(line))?,
                };
                match names.pop_front().unwrap_or_default() {
                    name if name == b"/" => self.are_all = true,
                    name => all.push((name, attributes)),
                }
                if names.is_empty() {
                    self.stage = Stage::Group;
                    return Ok((!all.is_empty()).then_some(Answer::Names(all)));
                }
                self.stage = Stage::Looked { names, all };
                Ok(None)
            }
            Stage::Counts(octets) => {
                let words = String::from_utf8_lossy(&piece);
                let words = words.strip_prefix('t').ok_or_else(|| no_answer(&piece))?;
                let counts = (words.trim() != "changed").then(|| Counts::read(words));
                self.end_one();
                Ok(Some(Answer::Contents { octets, counts }))
            }
            Stage::Taken(failed) => {
                let words = String::from_utf8_lossy(&piece);
                let counts = words.strip_prefix('w').map(Counts::read);
                let counts = counts.ok_or_else(|| no_answer(&piece))?;
                self.end_one();
                let failed = Some(failed);
                Ok(Some(Answer::Written { counts, failed }))
            }
            // Its octets are not a piece.
            stage @ Stage::Octets { .. } => {
                self.stage = stage;
                Ok(None)
            }
        }
    }

    /// An answer that is one line, or that begins so.
    fn handle_line(&mut self, line: &[u8]) -> Result<Option<Answer>, ShellError> {
        let Some(expected) = self.expected.front_mut() else {
            return Err(no_answer(line));
        };
        if let Some(words) = line.strip_prefix(b"!") {
            let words = String::from_utf8_lossy(words).trim().to_owned();
            if matches!(expected, Expected::Written) {
                self.stage = Stage::Taken(words);
                return Ok(None);
            }
            let words = Answer::Failed(words);
            self.end_one();
            return Ok(Some(words));
        }
        let answer = match (expected, line) {
            (Expected::Names, b"0") => {
                (self.stage, self.are_all) = (Stage::Group, false);
                return Ok(Some(Answer::Begun));
            }
            (Expected::Contents, [b'd', len @ ..]) => {
                let len = number(len).filter(|&len| len <= 2 * TOGETHER);
                self.stage = match len.ok_or_else(|| no_answer(line))? as usize {
                    0 => Stage::Counts(Vec::new()),
                    left => Stage::Octets {
                        left,
                        octets: Vec::new(),
                    },
                };
                return Ok(None);
            }
            (Expected::Path, [b'p', path @ ..]) => Some(Answer::Path(path.to_vec())),
            (Expected::Written, [b'w', words @ ..]) => Some(Answer::Written {
                counts: Counts::read(&String::from_utf8_lossy(words)),
                failed: None,
            }),
            (Expected::Lines(_), b"0") => Some(Answer::Done),
            (Expected::Lines(_), [b'=', identity @ ..]) => identified(identity),
            (Expected::Lines(_), [b'v', numbers @ ..]) => filesystem(numbers),
            (Expected::Lines(_), line) => attributes(line).map(Answer::Attributes),
            _ => None,
        };
        self.end_one();
        answer.map(Some).ok_or_else(|| no_answer(line))
    }

    /// A line has come, or all of what is no line.
    fn end_one(&mut self) {
        match self.expected.front_mut() {
            Some(Expected::Lines(left)) if *left > 1 => *left -= 1,
            _ => {
                self.expected.pop_front();
            }
        }
        self.stage = Stage::Line;
    }

    fn handle_group(&mut self, line: &[u8]) -> Result<Option<Answer>, ShellError> {
        if line == b"." {
            self.end_one();
            let failed = || Answer::Failed("not all of its names were told".to_owned());
            let is_whole = std::mem::take(&mut self.are_all);
            return Ok(Some(if is_whole { Answer::Done } else { failed() }));
        }
        if let Some(words) = line.strip_prefix(b"!") {
            let words = String::from_utf8_lossy(words).trim().to_owned();
            self.end_one();
            return Ok(Some(Answer::Failed(words)));
        }
        let count = line.strip_prefix(b"n").and_then(number);
        let count = count.filter(|&count| (1..=GROUP as u64).contains(&count));
        self.stage = Stage::Name {
            left: count.ok_or_else(|| no_answer(line))? as usize,
            names: VecDeque::new(),
        };
        Ok(None)
    }
}

fn quoted(octets: &[u8]) -> String {
    printable(&octets[..octets.len().min(QUOTED)])
}

fn no_answer(line: &[u8]) -> ShellError {
    ShellError::NoAnswer(quoted(line))
}

fn number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// What stat says: mode in hexadecimal, size, user, group, last access and modification.
fn attributes(line: &[u8]) -> Option<Attributes> {
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.split(' ');
    let mode = u32::from_str_radix(words.next()?, 16).ok()?;
    let size = words.next()?.parse().ok()?;
    let owner = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    // Version 3 has 32 bits, and what does not fit comes round, as OpenSSH's server has it.
    let mut time = || words.next()?.parse::<i64>().ok().map(|time| time as u32);
    let times = (time()?, time()?);
    words.next().is_none().then_some(Attributes {
        size: Some(size),
        owner: Some(owner),
        mode: Some(mode),
        times: Some(times),
    })
}

fn filesystem(numbers: &[u8]) -> Option<Answer> {
    let mut numbers = numbers.split(|&octet| octet == b' ').map(number);
    let mut next = || numbers.next().flatten();
    Some(Answer::Filesystem([next()?, next()?, next()?, next()?]))
}

fn octal(digits: &[u8]) -> Option<u32> {
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok()
}

/// The numbers of a device and an inode, which are said again as they are.
fn identified(identity: &[u8]) -> Option<Answer> {
    let is_one = (1..=64).contains(&identity.len())
        && identity.iter().all(|it| it.is_ascii_digit() || *it == b':');
    let identity = is_one.then(|| String::from_utf8_lossy(identity).into_owned());
    identity.map(Answer::Opened)
}

/// What several dd, one after the other, say that they have read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Whole blocks, whatever they are, and others.
    whole: u64,
    partial: u64,
    /// Octets; not every dd says.
    octets: Option<u64>,
    /// The size of the file, where a part of a block was read.
    size: Option<u64>,
}

impl Counts {
    pub(super) fn read(words: &str) -> Counts {
        let mut counts = Counts::default();
        let words: Vec<&str> = words.split_whitespace().collect();
        if let [.., "size", size] = words[..] {
            counts.size = size.parse().ok();
        }
        for three in words.windows(3) {
            match *three {
                [blocks, "records", "in"] => {
                    let (whole, partial) = blocks.split_once('+').unwrap_or_default();
                    counts.whole += whole.parse::<u64>().unwrap_or_default();
                    counts.partial += partial.parse::<u64>().unwrap_or(1);
                }
                [number, "bytes" | "byte", _] => {
                    let number: Option<u64> = number.parse().ok();
                    counts.octets = number.map(|number| counts.octets.unwrap_or(0) + number);
                }
                _ => {}
            }
        }
        counts
    }

    /// Whether as much was read as was asked for: whole blocks and a rest.
    pub(super) fn are_whole(self, octets: u64) -> bool {
        let blocks = octets / BLOCK + u64::from(!octets.is_multiple_of(BLOCK));
        (self.whole, self.partial) == (blocks, 0)
    }

    /// How much was read where so much was asked for, from an offset on; `None` if that cannot be told.
    pub(super) fn octets(self, offset: u64, asked: u64) -> Option<u64> {
        let read = match (self.partial, self.octets, self.size) {
            _ if self.are_whole(asked) => return Some(asked),
            (0, ..) => self.whole.min(asked / BLOCK) * BLOCK,
            (_, Some(octets), _) => octets,
            (_, None, size) => size?.saturating_sub(offset),
        };
        (read < asked).then_some(read)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_listing_that_ends_before_all_names_were_told_has_failed() {
        let last = |said: &[u8]| {
            let mut answers = Answers {
                stage: Stage::Line,
                ..Answers::default()
            };
            answers.expect(Expected::Names);
            let mut input = said;
            let found = std::iter::from_fn(|| answers.next(&mut input).unwrap());
            found.last().unwrap()
        };
        assert!(matches!(last(b"0\nn1\n./a\0-\n.\n"), Answer::Failed(_)));
        assert!(matches!(last(b"0\n.\n"), Answer::Failed(_)));
        assert!(matches!(last(b"0\nn2\n./a\0/\0-\n-\n.\n"), Answer::Done));
        assert!(matches!(last(b"0\nn1\n/\0-\n.\n"), Answer::Done));
    }
}
