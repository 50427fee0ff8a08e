//! Octets on their way into files here. Those of one file are written by one job after the other, each with all that came
//! during the last one: a job costs two threads a change of who runs, and two that write to one file wait for each other.

use std::sync::Arc;

use sshoal_transfer::sftp::Data;
use sshoal_transfer::{Fetched, LocalFile};

use super::disk::Jobs;
use super::engine::Answer;
use super::folder::Part;
use super::performing::PANICKED;

/// What is told of a file that was given up.
const CLOSED: &str = "it is closed";

/// A file that is being written.
pub(super) struct Writing {
    pub(super) part: Arc<Part>,
    waiting: Vec<Piece>,
    is_busy: bool,
}

/// Octets, and where they belong.
pub(super) struct Piece {
    pub(super) channel: usize,
    pub(super) offset: u64,
    pub(super) data: Data,
}

impl Piece {
    /// What is told of it if its file is not open any more.
    pub(super) fn closed(&self, file: LocalFile) -> Answer {
        Answer::Written(file, vec![self.told(file, Err(CLOSED.to_owned()))])
    }

    fn told(&self, file: LocalFile, written: Result<(), String>) -> Fetched {
        Fetched::Written {
            file,
            channel: self.channel,
            octets: self.data.len(),
            written,
        }
    }
}

impl Writing {
    pub(super) fn new(part: Arc<Part>) -> Writing {
        Writing {
            part,
            waiting: Vec::new(),
            is_busy: false,
        }
    }

    pub(super) fn push(&mut self, piece: Piece) {
        self.waiting.push(piece);
    }

    /// Has what waits written, unless the last job is not done yet.
    pub(super) fn go_on(&mut self, file: LocalFile, jobs: &Jobs<Answer>) {
        if self.is_busy || self.waiting.is_empty() {
            return;
        }
        self.is_busy = true;
        let (pieces, part) = (std::mem::take(&mut self.waiting), self.part.clone());
        let panicked = give_up(&pieces, file, PANICKED);
        jobs.perform(Answer::Written(file, panicked), move || {
            let written = pieces.into_iter().map(|piece| {
                let (channel, octets) = (piece.channel, piece.data.len());
                let written = part.write_hashed(piece.offset, piece.data);
                let noted = written.and_then(|is_due| match is_due {
                    true => part.note(),
                    false => Ok(()),
                });
                Fetched::Written {
                    file,
                    channel,
                    octets,
                    written: noted.map_err(|error| part.told(&error)),
                }
            });
            Answer::Written(file, written.collect())
        });
    }

    /// Writes where nothing waits for a disk; gives the octets back where something may.
    pub(super) fn write_at_once(
        &self,
        file: LocalFile,
        piece: Piece,
        jobs: &Jobs<Answer>,
    ) -> Result<Fetched, Piece> {
        if !self.part.is_near {
            return Err(piece);
        }
        let written = self.part.write(piece.offset, &piece.data);
        if let Ok(true) = written {
            // The journal may be elsewhere.
            let part = self.part.clone();
            jobs.perform(Answer::Noted, move || {
                // Nothing is lost but what would be sent again.
                let _ = part.note();
                Answer::Noted
            });
        }
        let written = written.map(drop).map_err(|error| self.part.told(&error));
        Ok(piece.told(file, written))
    }

    /// The job has ended.
    pub(super) fn done(&mut self) {
        self.is_busy = false;
    }

    /// The file is given up: what waits is not written any more.
    pub(super) fn close(self, file: LocalFile, jobs: &Jobs<Answer>) -> Arc<Part> {
        let closed = give_up(&self.waiting, file, CLOSED);
        if !closed.is_empty() {
            jobs.answer(Answer::Written(file, closed));
        }
        self.part
    }
}

fn give_up(pieces: &[Piece], file: LocalFile, why: &str) -> Vec<Fetched> {
    let told = |piece: &Piece| piece.told(file, Err(why.to_owned()));
    pieces.iter().map(told).collect()
}
