//! What is to be fetched, what that needs of this machine, and what is told of it.

use std::sync::Arc;

use sshoal_journal::Segments;

use crate::Trouble;
use crate::glob::Excludes;
use crate::hashing::{FileHash, Hashing};
use crate::owners::{Owner, Owners, Rights};
use crate::sftp::Data;
use crate::surplus::{Deletion, SurplusHere};
use crate::upload::Method;

/// What to fetch.
#[derive(Debug, Clone)]
pub struct DownloadPlan {
    /// Paths and patterns on the host, as the user typed them.
    pub sources: Vec<Vec<u8>>,
    /// Whether folders are fetched with all that is in them.
    pub recursive: bool,
    /// Whether modes and times are kept.
    pub preserve: bool,
    /// Whom everything is to belong to here. Accounts that are given are numbers.
    pub owners: Owners,
    /// Whom this machine's user may give files to.
    pub rights: Rights,
    /// What is left out.
    pub excludes: Excludes,
    /// What hashes are used for.
    pub hashing: Hashing,
    /// What becomes of what is surplus here, in folders that are fetched.
    pub deletion: Deletion,
    /// Whether one file is fetched after the other, each from its beginning: to be printed.
    pub in_order: bool,
    /// How small files come.
    pub method: Method,
    /// Octets of one channel that may be asked for and not written yet.
    pub in_flight: usize,
}

/// A local file of a download, by a number of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocalFile(pub u64);

/// What a download needs of this machine. Paths are relative to the host's folder; none leads out of it. Each is
/// answered by [`Download::provide`](crate::Download::provide) with its [`Fetched`], in any order, but for `Discard`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DownloadNeed {
    /// Make a folder, unless it is there: [`Fetched::Folder`].
    Folder {
        /// To be given back.
        id: u64,
        /// Where.
        path: Vec<u8>,
    },
    /// Hash what is there, if it is a regular file of this size: [`Fetched::Compared`].
    Compare {
        /// Which file is to be fetched.
        file: LocalFile,
        /// Where.
        path: Vec<u8>,
        /// Octets.
        size: u64,
    },
    /// Find the numbers of users and groups of this machine: [`Fetched::Accounts`].
    Accounts {
        /// Names, in no particular encoding, as a host has given them.
        users: Vec<Vec<u8>>,
        /// The same of groups.
        groups: Vec<Vec<u8>>,
    },
    /// Give a file that is there its owner, mode and times: [`Fetched::Touched`].
    Touch {
        /// Which was to be fetched.
        file: LocalFile,
        /// Where.
        path: Vec<u8>,
        /// Whom it is to belong to.
        owner: Owner,
        /// Permissions.
        mode: Option<u32>,
        /// Last access and modification.
        times: Option<(u32, u32)>,
    },
    /// Begin a file: [`Fetched::Begun`].
    Begin {
        /// Which.
        file: LocalFile,
        /// Where.
        path: Vec<u8>,
        /// Octets and time of modification on the host.
        like: Option<(u64, u32)>,
        /// Octets, as far as is known before it is opened.
        size: Option<u64>,
        /// Whether a file that has both already is unchanged.
        trusts_time: bool,
        /// Permissions, before this machine's umask.
        mode: u32,
        /// Whom it is to belong to: one that is unchanged is given it.
        owner: Owner,
        /// Permissions that one that is unchanged is given, unless it has them.
        keeps: Option<u32>,
    },
    /// Write: [`Fetched::Written`].
    Write {
        /// Which file.
        file: LocalFile,
        /// To be given back.
        channel: usize,
        /// Where in it.
        offset: u64,
        /// What.
        data: Data,
    },
    /// All octets are written: hash them: [`Fetched::Hashed`].
    Hash {
        /// Which file.
        file: LocalFile,
        /// Octets.
        size: u64,
    },
    /// All octets are written: give it its length, owner, mode and times, bring it to the disk, put it in place:
    /// [`Fetched::Finished`].
    Finish {
        /// Which.
        file: LocalFile,
        /// Octets.
        size: u64,
        /// Whom it is to belong to: to be set before its mode.
        owner: Owner,
        /// Permissions, if they are to be kept.
        mode: Option<u32>,
        /// Last access and modification, if they are to be kept.
        times: Option<(u32, u32)>,
    },
    /// Give a file up that was begun, and remove what there is of it.
    Discard {
        /// Which.
        file: LocalFile,
    },
    /// Make a symbolic link in place of a file or link: [`Fetched::Linked`].
    Link {
        /// Where.
        path: Vec<u8>,
        /// What it says.
        target: Vec<u8>,
        /// Whom it is to belong to, one that is there included.
        owner: Owner,
    },
    /// Delete what is surplus, or tell what would be: [`Fetched::Deleted`].
    Delete {
        /// What is.
        surplus: Arc<SurplusHere>,
    },
    /// Give a folder its owner, mode and times: [`Fetched::FolderFinished`].
    FinishFolder {
        /// Where.
        path: Vec<u8>,
        /// Whom it is to belong to.
        owner: Owner,
        /// Permissions.
        mode: Option<u32>,
        /// Last access and modification.
        times: Option<(u32, u32)>,
    },
}

/// What became of a [`DownloadNeed`]; errors are the system's words.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)] // each member is one of the need's
pub enum Fetched {
    Folder {
        id: u64,
        made: Result<(), String>,
    },
    /// In the need's order; `None` where there is none.
    Accounts {
        users: Vec<Option<u32>>,
        groups: Vec<Option<u32>>,
    },
    /// `None` if there is no such file.
    Compared {
        file: LocalFile,
        hash: Result<Option<FileHash>, String>,
    },
    Touched {
        file: LocalFile,
        touched: Result<(), String>,
    },
    Begun {
        file: LocalFile,
        begun: Result<Begun, String>,
    },
    Hashed {
        file: LocalFile,
        hash: Result<FileHash, String>,
    },
    Written {
        file: LocalFile,
        channel: usize,
        octets: usize,
        written: Result<(), String>,
    },
    Finished {
        file: LocalFile,
        finished: Result<(), String>,
    },
    /// `true` if it was there already.
    Linked {
        path: Vec<u8>,
        linked: Result<bool, String>,
    },
    /// Places of this machine's; those of folders with a slash at their ends.
    Deleted {
        deleted: Vec<Vec<u8>>,
        failed: Vec<String>,
    },
    FolderFinished {
        path: Vec<u8>,
        finished: Result<(), String>,
    },
}

/// How a file begins on this side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begun {
    /// It is there already.
    Unchanged,
    /// It is to be written, but for what an earlier transfer has proven to be in its part: of a file of the size and time of
    /// modification that [`DownloadNeed::Begin`] names.
    Ready(Segments),
}

/// What became of something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DownloadEvent {
    /// It is in place, or was there unchanged.
    Done {
        /// The path here, relative to the host's folder.
        path: Vec<u8>,
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
        /// Where it was, here; with a slash at its end that of a folder.
        path: Vec<u8>,
    },
    /// So many octets more are known to be fetched.
    Found(u64),
    /// So many octets more are here.
    Moved(u64),
    /// Everything has ended; the channels may be closed.
    Ended,
}
