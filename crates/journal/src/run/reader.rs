//! A run's journal, read piece by piece: it may hold more output than there is memory.

use sshoal_wire::Put;

use super::record::{MAX_RECORD, RunRecord};
use crate::frame::{self, First, HEAD};

const MAGIC: &[u8; 8] = b"sshoal R";
/// The version of the format that is written. The first, which has no KILLED, no STATUS and less in BEGAN, is read as well; what is
/// appended to one is of the first, too.
pub const VERSION: u32 = 2;
const FIRST_VERSION: u32 = 1;
/// Octets before the first record.
const HEADER: usize = 12;

/// Why a journal says nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunJournalError {
    /// Something else, or one whose first octets never came to the disk.
    #[error("it is no journal of a run")]
    NoJournal,
    /// Of another release.
    #[error("its format is version {0}, and this program knows {FIRST_VERSION} to {VERSION}")]
    Version(u32),
}

/// Octets of a tail that one write may have left torn: more is no such tail.
const MAX_TAIL: usize = HEAD + MAX_RECORD;
/// Octets that are summed up in search of a record behind one that does not add up. Beyond that there is held to be one.
const MAX_SEARCH: usize = 64 * 1024 * 1024;

/// Octets in, records out. What follows the first record that does not add up is no record any more.
#[derive(Debug, Default)]
pub struct RunReader {
    buffer: Vec<u8>,
    /// Octets of the buffer that have become records.
    taken: usize,
    /// That of its header; 0 before it has come.
    version: u32,
    /// Octets of the journal that add up.
    valid: u64,
    is_torn: bool,
    /// Set by a record that adds up and is not understood.
    is_unknown: bool,
}

impl RunReader {
    /// The octets that a journal begins with.
    pub fn header() -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.put_u32(VERSION);
        out
    }

    /// The next octets of the journal.
    pub fn handle_input(&mut self, octets: &[u8]) {
        self.buffer.drain(..std::mem::take(&mut self.taken));
        let room = match self.is_torn {
            true => (MAX_TAIL + 1).saturating_sub(self.buffer.len()),
            false => octets.len(),
        };
        // Zeros at the end are what a disk has of octets that never came to it.
        let octets = match self.is_torn && octets.iter().all(|octet| *octet == 0) {
            true => &[],
            false => octets,
        };
        self.buffer
            .extend_from_slice(&octets[..octets.len().min(room)]);
    }

    /// The next record; `None` if that needs more octets, or if there is none any more.
    ///
    /// # Errors
    ///
    /// It is no journal that this program knows.
    pub fn poll_record(&mut self) -> Result<Option<RunRecord>, RunJournalError> {
        if self.valid == 0 && !self.take_header()? {
            return Ok(None);
        }
        if self.is_torn {
            return Ok(None);
        }
        let record = match frame::first(&self.buffer[self.taken..], MAX_RECORD) {
            First::Unfinished => return Ok(None),
            First::Wrong => None,
            First::Whole(body) => match RunRecord::decode(body) {
                Ok(Some(record)) => Some((record, frame::framed_len(body))),
                Ok(None) | Err(_) => {
                    self.is_unknown = true;
                    None
                }
            },
        };
        let Some((record, len)) = record else {
            self.is_torn = true;
            return Ok(None);
        };
        self.taken += len;
        self.valid += len as u64;
        Ok(Some(record))
    }

    /// The version of the journal's format; 0 if it has not told.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Octets from the front that add up. What follows them is to be cut off before anything is appended.
    pub fn valid(&self) -> u64 {
        self.valid
    }

    /// Whether more is behind the octets that add up than an end in the middle of a write leaves: a whole record, or more octets
    /// than any has. Then what is behind must not be taken for something that never was. Asked when there are no more octets.
    pub fn is_damaged(&self) -> bool {
        if self.valid == 0 {
            return false;
        }
        let tail = &self.buffer[self.taken..];
        let last = tail.iter().rposition(|octet| *octet != 0);
        let without_zeros = last.map_or(0, |last| last + 1);
        self.is_unknown || without_zeros > MAX_TAIL || holds_a_record(tail)
    }

    fn take_header(&mut self) -> Result<bool, RunJournalError> {
        let octets = &self.buffer[..self.buffer.len().min(HEADER)];
        let known = octets.len().min(MAGIC.len());
        if octets[..known] != MAGIC[..known] {
            return Err(RunJournalError::NoJournal);
        }
        let Some((_, version)) = octets.split_last_chunk::<4>() else {
            return Ok(false);
        };
        if octets.len() < HEADER {
            return Ok(false);
        }
        match u32::from_be_bytes(*version) {
            version @ FIRST_VERSION..=VERSION => {
                self.version = version;
                (self.taken, self.valid) = (HEADER, HEADER as u64);
                Ok(true)
            }
            other => Err(RunJournalError::Version(other)),
        }
    }
}

/// Whether a record that adds up begins anywhere behind the first octet.
fn holds_a_record(tail: &[u8]) -> bool {
    let mut searched = 0;
    for start in 1..tail.len() {
        let Some((len, _)) = tail[start..].split_first_chunk() else {
            return false;
        };
        let body_len = u32::from_be_bytes(*len) as usize;
        if body_len == 0 || body_len > (tail.len() - start).saturating_sub(HEAD) {
            continue;
        }
        searched += body_len;
        if searched > MAX_SEARCH
            || matches!(frame::first(&tail[start..], MAX_RECORD), First::Whole(_))
        {
            return true;
        }
    }
    false
}
