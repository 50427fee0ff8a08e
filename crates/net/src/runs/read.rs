//! Reading a run's journal.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::path::PathBuf;
use std::time::Duration;

use sshoal_journal::run::{RunId, RunJournalError, RunReader, RunRecord, RunState};

use super::boot::boot_id;
use super::folder;

/// Octets read at a time.
const PIECE: usize = 256 * 1024;

/// What a journal says, and whether its run is on.
#[derive(Debug)]
pub struct KnownRun {
    /// What the run is called.
    pub id: RunId,
    /// All that it says.
    pub state: RunState,
    /// The version of its format; 0 if it does not even say that.
    pub version: u32,
    /// Octets of it that add up.
    pub valid: u64,
    /// Whether what follows them is more than an end in the middle of a write leaves.
    pub is_damaged: bool,
    /// Octets that it had when it was read.
    pub octets: u64,
    /// Whether a process carries the run out now.
    pub is_on: bool,
}

/// Why a run's journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It cannot be read.
    #[error("cannot read the journal {path}: {error}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It says nothing.
    #[error("the journal {path} cannot be used: {error}")]
    Unusable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: RunJournalError,
    },
    /// A record in the midst of it does not add up, or is not understood.
    #[error(
        "the journal {path} is damaged at octet {offset}, and what it says behind that is lost: hosts that have ended may look as if they \
         had not; `sshoal show` shows what is before. Begin anew on the hosts that are left, or cut the rest off (truncate -s {offset} {path}) \
         if the command may run again on any of them"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The first octet that does not add up.
        offset: u64,
    },
}

impl KnownRun {
    /// When the run began, since 1970; by its identifier, if its plan was not noted.
    pub fn began(&self) -> Duration {
        match self.state.plan.at_ms {
            0 => self.id.began(),
            at_ms => Duration::from_millis(at_ms),
        }
    }

    /// Whether the last records may be missing without a trace: the machine was started anew since they were written, they were not synced,
    /// and they do not say that the run has ended.
    pub fn may_lack_records(&self) -> bool {
        match self.state.boot {
            Some(boot) if !boot.is_synced && !self.is_on && self.state.ended.is_none() => {
                boot_id().is_some_and(|now| now != boot.id)
            }
            _ => false,
        }
    }

    /// That all is known that the journal ever said, but for what a torn tail lacks.
    ///
    /// # Errors
    ///
    /// It is damaged: no command is to be sent on its word.
    pub fn undamaged(&self) -> Result<(), ReadError> {
        match self.is_damaged {
            false => Ok(()),
            true => Err(ReadError::Damaged {
                path: folder::run_path(&folder::runs_folder().unwrap_or_default(), self.id),
                offset: self.valid,
            }),
        }
    }
}

/// Reads the journal of a run; `hear` is told each record.
///
/// # Errors
///
/// It cannot be read, or says nothing.
pub fn read_run(id: RunId, mut hear: impl FnMut(&RunRecord)) -> Result<KnownRun, ReadError> {
    let folder = folder::runs_folder().unwrap_or_default();
    let path = folder::run_path(&folder, id);
    let unreadable = |error| ReadError::Unreadable {
        path: path.clone(),
        error,
    };
    let mut file = folder::open(&path, OpenOptions::new().read(true)).map_err(unreadable)?;
    let is_on = folder::is_locked(&file).map_err(unreadable)?;
    let (mut reader, mut state) = (RunReader::default(), RunState::default());
    let mut piece = vec![0; PIECE];
    let mut octets = 0;
    loop {
        let read = file.read(&mut piece).map_err(unreadable)?;
        reader.handle_input(&piece[..read]);
        octets += read as u64;
        while let Some(record) = reader.poll_record().map_err(|error| ReadError::Unusable {
            path: path.clone(),
            error,
        })? {
            hear(&record);
            state.apply(record);
        }
        if read == 0 {
            break;
        }
    }
    Ok(KnownRun {
        id,
        state,
        version: reader.version(),
        valid: reader.valid(),
        is_damaged: reader.is_damaged(),
        octets,
        is_on,
    })
}
