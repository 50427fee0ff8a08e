//! What an upload asks of whoever drives it, and what it tells.

use crate::Trouble;
#[cfg(doc)]
use crate::Upload;

/// What an upload needs of this machine. Each is answered by the method that it names, in any order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UploadNeed {
    /// Open an entry's file: [`Upload::provide_opened`].
    Open {
        /// Which of the plan's entries.
        entry: usize,
    },
    /// Read: [`Upload::provide_data`] with as many octets, less only at the file's end.
    Read {
        /// Which entry.
        entry: usize,
        /// For which channel.
        channel: usize,
        /// Which of the file's writers asks.
        writer: usize,
        /// From where.
        offset: u64,
        /// How many octets.
        len: usize,
    },
    /// Tell whether the file is what it was when it was opened, and close it: [`Upload::provide_checked`].
    Check {
        /// Which entry.
        entry: usize,
        /// Whether its hash is to be told, too.
        hashes: bool,
    },
    /// Hash an entry's file: [`Upload::provide_hash`].
    Hash {
        /// Which entry.
        entry: usize,
    },
    /// Forget, before anything else is done and for good, what was proven of the file, for its part goes:
    /// [`Upload::provide_forgotten`].
    Forget {
        /// Which entry.
        entry: usize,
    },
    /// Close the file; there is nothing to be answered.
    Release {
        /// Which entry.
        entry: usize,
    },
}

/// What became of something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UploadEvent {
    /// It is in place, or was there unchanged.
    Done {
        /// Which of the plan's entries.
        entry: usize,
        /// Whether nothing had to be done.
        unchanged: bool,
    },
    /// It is not there, or as it was before.
    Failed {
        /// The path on the host.
        path: Vec<u8>,
        /// Why.
        trouble: Trouble,
    },
    /// It was surplus and is no longer there, or would not be.
    Deleted {
        /// The path on the host; with a slash at its end that of a folder.
        path: Vec<u8>,
    },
    /// So many octets more are on the host.
    Moved(u64),
    /// Everything has ended; the channels may be closed.
    Ended,
}
