//! Archives to files, in whatever pieces they come.

use std::fmt;

use super::BLOCK;
use crate::path::MAX_PATH;

/// Octets of extended records of one entry that are accepted (pax(1), "pax Extended Header"): a path, and some for what
/// else a tar(1) may say of a file.
const MAX_RECORDS: u64 = 64 * 1024;

/// What a file is that an archive holds, as its header says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// As it stands there: nothing is known of where it leads.
    pub name: Vec<u8>,
    /// Whether it is a regular file; contents follow of others, too, and are to be passed over.
    pub is_regular: bool,
    /// Octets of contents that follow.
    pub size: u64,
    /// Permissions.
    pub mode: u32,
    /// Numbers of user and group.
    pub owner: (u64, u64),
    /// Last modification, seconds since 1970; before that, their two's complement.
    pub modified: u64,
}

/// The next thing in an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece<'a> {
    /// A file begins.
    Entry(Entry),
    /// Some of the contents of the file that began last.
    Contents(&'a [u8]),
}

/// What is no archive, or is none that is accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TarError {
    /// A header whose sum is not that of its octets.
    #[error("what came is no archive of tar: the sum of a header is wrong")]
    Sum,
    /// A field of a header that is no number, or too large a one.
    #[error("a header of the archive has no number for the {0}")]
    Number(&'static str),
    /// Something before a file that says more of it.
    #[error("the archive has {0} of {1} octets, more than the {2} accepted")]
    TooLong(What, u64, u64),
    /// Extended records that cannot be read.
    #[error("the archive's extended records of a file are malformed")]
    Records,
}

/// What goes before a file and says more of it than its header can.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// GNU's long names.
    Name,
    /// GNU's long targets of links.
    Target,
    /// pax' records of the file that follows.
    Records,
    /// pax' records of all that follow.
    GlobalRecords,
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            What::Name => "a name",
            What::Target => "a link's target",
            What::Records | What::GlobalRecords => "extended records",
        })
    }
}

/// Takes an archive apart, or several one after the other. It keeps a header, a name and the records of one file, and no
/// contents.
#[derive(Debug, Default)]
pub struct Reader {
    stage: Stage,
    /// The part of a header, name or records that has come.
    kept: Vec<u8>,
    /// What went before the next file.
    name: Option<Vec<u8>>,
    size: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default)]
enum Stage {
    #[default]
    Header,
    /// So many octets of something that says more, and what fills its block.
    More { what: What, left: u64, fill: u64 },
    /// So many octets of contents, and what fills their block.
    Contents { left: u64, fill: u64 },
}

impl Reader {
    /// The next thing, taken from the front of `input`; `None` once that is empty.
    ///
    /// # Errors
    ///
    /// What is no archive; nothing that follows can be told apart.
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Piece<'a>>, TarError> {
        loop {
            match self.stage {
                Stage::Header => {
                    if !self.keep(input, BLOCK) {
                        return Ok(None);
                    }
                    let header = std::mem::take(&mut self.kept);
                    if let Some(entry) = self.take_header(&header)? {
                        return Ok(Some(Piece::Entry(entry)));
                    }
                }
                Stage::More { what, left, fill } => {
                    if !self.keep(input, (left + fill) as usize) {
                        return Ok(None);
                    }
                    self.stage = Stage::Header;
                    let mut more = std::mem::take(&mut self.kept);
                    more.truncate(left as usize);
                    self.take_more(what, more)?;
                }
                Stage::Contents { left: 0, fill } => {
                    let len = fill.min(input.len() as u64);
                    *input = &input[len as usize..];
                    if len < fill {
                        let fill = fill - len;
                        self.stage = Stage::Contents { left: 0, fill };
                        return Ok(None);
                    }
                    self.stage = Stage::Header;
                }
                Stage::Contents { left, fill } => {
                    let len = left.min(input.len() as u64);
                    if len == 0 {
                        return Ok(None);
                    }
                    let (contents, rest) = input.split_at(len as usize);
                    *input = rest;
                    let left = left - len;
                    self.stage = Stage::Contents { left, fill };
                    return Ok(Some(Piece::Contents(contents)));
                }
            }
        }
    }

    /// Keeps what comes; returns whether it is so many octets by now.
    fn keep(&mut self, input: &mut &[u8], len: usize) -> bool {
        let missing = (len - self.kept.len()).min(input.len());
        let (part, rest) = input.split_at(missing);
        self.kept.extend_from_slice(part);
        *input = rest;
        self.kept.len() == len
    }

    /// A header; `None` if it is none of a file.
    fn take_header(&mut self, header: &[u8]) -> Result<Option<Entry>, TarError> {
        // Two blocks of zeros end an archive, more fill its record, and another may follow.
        if header.iter().all(|&octet| octet == 0) {
            return Ok(None);
        }
        check_sum(header)?;
        let kind = header[156];
        let told = number(&header[124..136]).ok_or(TarError::Number("size"))?;
        let more = match kind {
            b'L' => Some((What::Name, MAX_PATH as u64 + 1)),
            b'K' => Some((What::Target, MAX_PATH as u64 + 1)),
            b'x' => Some((What::Records, MAX_RECORDS)),
            b'g' => Some((What::GlobalRecords, MAX_RECORDS)),
            _ => None,
        };
        if let Some((what, most)) = more {
            if told > most {
                return Err(TarError::TooLong(what, told, most));
            }
            self.stage = Stage::More {
                what,
                left: told,
                fill: fill(told),
            };
            return Ok(None);
        }
        // Links, devices, pipes and folders have no contents, whatever size they are said to have.
        let size = match kind {
            b'1'..=b'6' => 0,
            _ => self.size.unwrap_or(told),
        };
        self.size = None;
        self.stage = Stage::Contents {
            left: size,
            fill: fill(size),
        };
        let number = |field, what| number(field).ok_or(TarError::Number(what));
        Ok(Some(Entry {
            name: self.name.take().unwrap_or_else(|| name(header)),
            is_regular: matches!(kind, b'0' | b'7' | 0),
            size,
            mode: (number(&header[100..108], "mode")? & 0o7777) as u32,
            owner: (
                number(&header[108..116], "user")?,
                number(&header[116..124], "group")?,
            ),
            modified: number(&header[136..148], "time")?,
        }))
    }

    fn take_more(&mut self, what: What, mut more: Vec<u8>) -> Result<(), TarError> {
        match what {
            What::Name => {
                let end = more.iter().position(|&octet| octet == 0);
                more.truncate(end.unwrap_or(more.len()));
                self.name = Some(more);
            }
            What::Records => self.take_records(&more)?,
            What::Target | What::GlobalRecords => {}
        }
        Ok(())
    }

    /// Records are "LENGTH KEYWORD=VALUE\n", the length being that of all of it.
    fn take_records(&mut self, mut records: &[u8]) -> Result<(), TarError> {
        while !records.is_empty() {
            let space = records.iter().position(|&octet| octet == b' ');
            let (digits, _) = records.split_at(space.ok_or(TarError::Records)?);
            let len = decimal(digits).ok_or(TarError::Records)?;
            let len = usize::try_from(len).map_err(|_| TarError::Records)?;
            let record = records.get(digits.len() + 1..len).and_then(|record| {
                let record = record.strip_suffix(b"\n")?;
                let equals = record.iter().position(|&octet| octet == b'=')?;
                Some((&record[..equals], &record[equals + 1..]))
            });
            let (keyword, value) = record.ok_or(TarError::Records)?;
            match keyword {
                b"path" if value.len() > MAX_PATH => {
                    let (len, most) = (value.len() as u64, MAX_PATH as u64);
                    return Err(TarError::TooLong(What::Name, len, most));
                }
                b"path" => self.name = Some(value.to_vec()),
                b"size" => self.size = Some(decimal(value).ok_or(TarError::Records)?),
                _ => {}
            }
            records = &records[len..];
        }
        Ok(())
    }
}

/// What fills a whole number of blocks.
fn fill(len: u64) -> u64 {
    let block = BLOCK as u64;
    (block - len % block) % block
}

/// The sum of all octets with spaces in its own place.
fn check_sum(header: &[u8]) -> Result<(), TarError> {
    let told = number(&header[148..156]).ok_or(TarError::Number("sum"))?;
    let others = header[..148].iter().chain(&header[156..]);
    let sum: u64 = others.map(|&octet| u64::from(octet)).sum();
    match told == sum + 8 * u64::from(b' ') {
        true => Ok(()),
        false => Err(TarError::Sum),
    }
}

/// The name in a header, and in POSIX' own what goes before it.
fn name(header: &[u8]) -> Vec<u8> {
    let text = |field: &[u8]| {
        let end = field.iter().position(|&octet| octet == 0);
        field[..end.unwrap_or(field.len())].to_vec()
    };
    let name = text(&header[..100]);
    // GNU's headers have times there.
    let is_posix = header[257..263] == *b"ustar\0";
    let prefix = text(&header[345..500]);
    match is_posix && !prefix.is_empty() {
        true => [&prefix[..], b"/", &name].concat(),
        false => name,
    }
}

/// Octal digits between spaces and zeros, or, with the first bit set, a number in two's complement (GNU's, for what has
/// too many digits).
fn number(field: &[u8]) -> Option<u64> {
    let (&first, rest) = field.split_first()?;
    if first & 0x80 != 0 {
        // The bit after the first one is the sign.
        let is_negative = first & 0x40 != 0;
        let start: u64 = if is_negative { u64::MAX } else { 0 };
        let first = if is_negative { first } else { first & 0x7f };
        return std::iter::once(&first)
            .chain(rest)
            .try_fold(start, |number, &octet| {
                let shifted = number << 8 | u64::from(octet);
                // What is shifted out must be nothing but the sign.
                (number >> 56 == start >> 56).then_some(shifted)
            });
    }
    let start = field.iter().position(|&octet| octet != b' ');
    let digits = &field[start.unwrap_or(field.len())..];
    let end = digits.iter().position(|octet| matches!(octet, b' ' | 0));
    let digits = &digits[..end.unwrap_or(digits.len())];
    digits.iter().try_fold(0u64, |number, &digit| match digit {
        b'0'..=b'7' => Some((number << 3) | u64::from(digit - b'0')),
        _ => None,
    })
}

fn decimal(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
