//! A run's journal, read piece by piece: it may hold more output than there is memory.

use sshoal_wire::Put;

use super::record::{MAX_RECORD, RunRecord};
use crate::frame::{self, First};

const MAGIC: &[u8; 8] = b"sshoal R";
const VERSION: u32 = 1;
/// Octets before the first record.
const HEADER: usize = 12;

/// Why a journal says nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunJournalError {
    /// Something else, or one whose first octets never came to the disk.
    #[error("it is no journal of a run")]
    NoJournal,
    /// Of another release.
    #[error("its format is version {0}, and this program knows {VERSION}")]
    Version(u32),
}

/// Octets in, records out. What follows the first record that does not add up is no record any more.
#[derive(Debug, Default)]
pub struct RunReader {
    buffer: Vec<u8>,
    /// Octets of the buffer that have become records.
    taken: usize,
    /// Octets of the journal that add up.
    valid: u64,
    is_torn: bool,
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
        if !self.is_torn {
            self.buffer.drain(..std::mem::take(&mut self.taken));
            self.buffer.extend_from_slice(octets);
        }
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
                Ok(None) | Err(_) => None,
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

    /// Octets from the front that add up. What follows them is to be cut off before anything is appended.
    pub fn valid(&self) -> u64 {
        self.valid
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
            VERSION => {
                (self.taken, self.valid) = (HEADER, HEADER as u64);
                Ok(true)
            }
            other => Err(RunJournalError::Version(other)),
        }
    }
}
