//! What a journal says in all, and what is appended to say more.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use sshoal_wire::{Decoder, Put};

use crate::frame;
use crate::record::Record;
use crate::segments::Segments;

/// Octets that a journal may have. One that would have more is written anew, with what counts.
pub const MAX_JOURNAL: usize = 16 * 1024 * 1024;
/// Octets of one that has just been written anew.
const MAX_REWRITTEN: usize = MAX_JOURNAL / 2;
/// Files that one journal may know that have not ended. Of others nothing is noted: they are transferred from their beginning.
pub const MAX_FILES: usize = 4096;
/// Octets of what a file is called.
pub const MAX_KEY: usize = 8192;
/// Octets of what a file is known by.
pub const MAX_IDENTITY: usize = 256;

const MAGIC: &[u8; 8] = b"sshoal J";
const VERSION: u32 = 1;

/// Why a journal proves nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// Something else, or one whose first octets never came to the disk.
    #[error("it is no journal of a transfer")]
    NoJournal,
    /// Of another release.
    #[error("its format is version {0}, and this program knows 1")]
    Version(u32),
    /// More than [`MAX_JOURNAL`] octets.
    #[error("it is larger than {MAX_JOURNAL} octets")]
    TooLarge,
}

/// What a journal says. Its methods return the octets that are to be appended, for the same to be read back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Journal {
    files: BTreeMap<Vec<u8>, File>,
    next: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct File {
    number: u32,
    identity: Vec<u8>,
    proven: Segments,
    has_ended: bool,
}

impl File {
    /// Appends all that is known of it.
    fn put(&self, key: &[u8], out: &mut Vec<u8>) {
        let file = self.number;
        let began = Record::Began {
            file,
            key: key.to_vec(),
            identity: self.identity.clone(),
        };
        frame::put(&began.encode(), out);
        let segments = self.proven.clone();
        frame::put(&Record::Proven { file, segments }.encode(), out);
        if self.has_ended {
            frame::put(&Record::Ended { file }.encode(), out);
        }
    }
}

impl Journal {
    /// The octets that a journal begins with.
    pub fn header() -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.put_u32(VERSION);
        out
    }

    /// Reads a journal; returns what it says, and how many of its octets add up. What follows those is to be cut off before
    /// anything is appended.
    ///
    /// # Errors
    ///
    /// It proves nothing, and is to be begun anew.
    pub fn replay(octets: &[u8]) -> Result<(Journal, usize), JournalError> {
        if octets.len() > MAX_JOURNAL {
            return Err(JournalError::TooLarge);
        }
        let (magic, rest) = octets
            .split_first_chunk::<8>()
            .ok_or(JournalError::NoJournal)?;
        let mut fields = Decoder::named("journal", rest);
        let version = fields.field("version").u32();
        let version = version.map_err(|_| JournalError::NoJournal)?;
        if magic != MAGIC {
            return Err(JournalError::NoJournal);
        }
        if version != VERSION {
            return Err(JournalError::Version(version));
        }
        let mut journal = Journal::default();
        let mut rest = fields.rest();
        let mut valid = octets.len() - rest.len();
        while let Some((body, behind)) = frame::next(rest) {
            let Ok(Some(record)) = Record::decode(body) else {
                break;
            };
            journal.apply(record);
            valid += frame::framed_len(body);
            rest = behind;
        }
        Ok((journal, valid))
    }

    /// What is proven of a file, if it is known by the same as now.
    pub fn proven(&self, key: &[u8], identity: &[u8]) -> Option<&Segments> {
        let file = self.files.get(key)?;
        (file.identity == identity).then_some(&file.proven)
    }

    /// What a file is known by.
    pub fn identity(&self, key: &[u8]) -> Option<&[u8]> {
        Some(&self.files.get(key)?.identity)
    }

    /// Whether anything is known of a file.
    pub fn knows(&self, key: &[u8]) -> bool {
        self.files.contains_key(key)
    }

    /// A file is begun, from nothing: what was proven of one with this key is forgotten. `None` if nothing can be noted of it.
    #[must_use]
    pub fn begin(&mut self, key: &[u8], identity: &[u8]) -> Option<Vec<u8>> {
        let is_full = self.is_full_for(key) && self.longest_ended().is_none();
        if is_full || key.len() > MAX_KEY || identity.len() > MAX_IDENTITY {
            return None;
        }
        let record = Record::Began {
            file: self.next,
            key: key.to_vec(),
            identity: identity.to_vec(),
        };
        Some(self.note(record))
    }

    /// Segments of a file are proven. `None` if it has not begun.
    #[must_use]
    pub fn prove(&mut self, key: &[u8], segments: &Segments) -> Option<Vec<u8>> {
        let file = self.files.get(key)?.number;
        let segments = segments.clone();
        Some(self.note(Record::Proven { file, segments }))
    }

    /// A file is in place, or given up: when others need the room, it is forgotten. `None` if nothing is known of it.
    #[must_use]
    pub fn end(&mut self, key: &[u8]) -> Option<Vec<u8>> {
        let file = self.files.get(key)?.number;
        Some(self.note(Record::Ended { file }))
    }

    /// Whether there is no room for a file that is not known.
    fn is_full_for(&self, key: &[u8]) -> bool {
        self.files.len() >= MAX_FILES && !self.knows(key)
    }

    /// Of those that have ended the one that was begun first.
    fn longest_ended(&self) -> Option<&[u8]> {
        let ended = self.files.iter().filter(|(_, file)| file.has_ended);
        let first = ended.min_by_key(|(_, file)| file.number);
        first.map(|(key, _)| key.as_slice())
    }

    /// A whole journal that says the same in the fewest words, and has room for more. What it has no room for is forgotten: files
    /// that have ended before others, and those of which little is proven first.
    pub fn rewrite(&mut self) -> Vec<u8> {
        let mut files: Vec<_> = self.files.iter().collect();
        files.sort_by_key(|(_, file)| (file.has_ended, Reverse(file.proven.octets())));
        let mut out = Journal::header();
        let mut forgotten = Vec::new();
        for (key, known) in files {
            let before = out.len();
            known.put(key, &mut out);
            if out.len() > MAX_REWRITTEN {
                out.truncate(before);
                forgotten.push(key.clone());
            }
        }
        for key in forgotten {
            self.files.remove(&key);
        }
        out
    }

    fn note(&mut self, record: Record) -> Vec<u8> {
        let mut out = Vec::new();
        frame::put(&record.encode(), &mut out);
        self.apply(record);
        out
    }

    fn by_number(&mut self, number: u32) -> Option<&mut File> {
        let mut files = self.files.values_mut();
        files.find(|known| known.number == number)
    }

    fn apply(&mut self, record: Record) {
        match record {
            Record::Began {
                file,
                key,
                identity,
            } => {
                if key.len() > MAX_KEY || identity.len() > MAX_IDENTITY {
                    return;
                }
                if self.is_full_for(&key) {
                    let Some(ended) = self.longest_ended().map(<[u8]>::to_vec) else {
                        return;
                    };
                    self.files.remove(&ended);
                }
                self.next = self.next.max(file.wrapping_add(1));
                let begun = File {
                    number: file,
                    identity,
                    proven: Segments::default(),
                    has_ended: false,
                };
                self.files.insert(key, begun);
            }
            Record::Proven { file, segments } => {
                if let Some(file) = self.by_number(file) {
                    file.proven.extend(&segments);
                }
            }
            Record::Ended { file } => {
                if let Some(file) = self.by_number(file) {
                    file.has_ended = true;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
