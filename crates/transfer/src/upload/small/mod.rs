//! Small files, in batches: an archive into tar(1) on the host (`stream`), each file under its part's name beside its
//! target, all of a batch brought to the disk at once, and renamed over SFTP.
//!
//! ```text
//! Look (not in a folder that we have made) -> read here -> archive -> on the disk -> Own (if owners are set) -> Rename
//! ```
//!
//! Where the host runs no such command (internal-sftp alone, no shell, no tar, files seen elsewhere), and where a batch does
//! not arrive whole, its files go over SFTP as large ones do: what fails is found and named there.
//!
//! `streams` is what sessions see of it, `stream` one of them, `sending` the way of a file into a batch, `ending` what becomes of
//! batches.

mod ending;
mod sending;
mod stream;
mod streams;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::{Entry, Kind, UploadPlan};
use crate::hashing::{FileHash, Verify};
use crate::part_name::PartTag;
use crate::sftp::Attributes;
use stream::{Stage, Stream};

/// The largest file that goes with others.
pub const MAX_SMALL: u64 = 64 * 1024;
/// Files that are worth a process on the host.
pub(crate) const FEWEST: usize = 64;
/// Set-user-ID, set-group-ID, sticky (stat(2)).
const SPECIAL_BITS: u32 = 0o7000;
/// Octets, and files, after which a batch is brought to the disk.
const BATCH_OCTETS: u64 = 16 * 1024 * 1024;
const BATCH_FILES: usize = 8192;
/// Batches that are being filled: one cannot use more than its channel's window.
const MOST_FILLING: usize = 2;
/// Octets for which a second one is worth its opening.
const WORTH_A_SECOND: u64 = 4 * 1024 * 1024;
/// Sessions open at a time, those included whose files are being brought to the disk.
const MOST_OPEN: usize = 4;
/// Files that are read by one job.
const GROUP: usize = 128;
/// Requests about small files in flight: so many fit a round trip of 50 ms at the pace of sftp-server.
const REQUESTS: usize = 768;

/// How small files go to hosts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Method {
    /// In batches where there are many and the host allows it.
    #[default]
    Auto,
    /// Each by itself over SFTP.
    Sftp,
    /// In batches, however few there are, where the host allows it.
    Tar,
}

/// Small files that are to be read for a stream: [`Upload::provide_small`](crate::Upload::provide_small).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmallGroup {
    /// For which stream.
    pub stream: usize,
    /// Which of the plan's entries.
    pub entries: Vec<usize>,
}

/// A small file, read whole and found unchanged afterwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmallFile {
    /// All of it.
    pub data: Arc<Vec<u8>>,
    /// Permissions.
    pub mode: u32,
    /// Last modification, seconds since 1970.
    pub modified: u32,
    /// Its hash, if the plan has what arrives verified.
    pub hash: Option<FileHash>,
}

/// Why a small file was not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SmallProblem {
    /// It is larger than [`MAX_SMALL`] by now.
    Grown,
    /// It changed meanwhile.
    Changed,
    /// What the system said.
    Failed(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::upload) enum SmallStep {
    Look,
    /// It is the same, and gets its mode and times.
    Touch,
    /// The same with its owner.
    TouchOwner,
    /// Whom its part belongs to.
    LookAtOwner,
    Own,
    Rename,
    /// The answer does not matter.
    Remove,
    /// The same, and it is about no entry.
    RemoveProof,
}

/// How far the agreement with the host is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Undecided,
    /// A file is being made that proves to a stream that it sees what SFTP sees.
    Proving,
    /// Streams are opened.
    Open,
    /// All batches have arrived: their names are being brought to the disk.
    Syncing,
    /// No more streams.
    Closed,
    /// There never were any.
    Unused,
}

/// Small files of one upload.
pub(in crate::upload) struct Small {
    way: Way,
    /// What streams unpack in: the target's folder.
    pub(in crate::upload) base: Vec<u8>,
    /// The next of the plan's entries.
    next: usize,
    looking: usize,
    /// Files that may go, with the permissions of what they replace.
    ready: VecDeque<(usize, Option<u32>)>,
    groups: VecDeque<SmallGroup>,
    streams: Vec<Stream>,
    /// Permissions of what files replace that are being read.
    replaced: HashMap<usize, u32>,
    umask: u32,
    /// Files for which the first one is worth it.
    fewest: usize,
    /// How many may be filled at a time.
    filling: usize,
    /// Files that wait for their names.
    arrived: VecDeque<usize>,
    /// What unchanged files are still to be given.
    pub(in crate::upload) lacks: HashMap<usize, VecDeque<Attributes>>,
    /// Parts that are to go.
    unwanted: VecDeque<usize>,
    asked: usize,
    has_renamed: bool,
    proof_made: bool,
    /// Files that go over SFTP after all.
    pub(in crate::upload) for_sftp: VecDeque<usize>,
    pub(in crate::upload) octets_left: u64,
}

impl Small {
    /// Where it is worth it, octets are counted as those of streams from the beginning.
    pub(in crate::upload) fn new(plan: &UploadPlan) -> Small {
        let fewest = match plan.method {
            Method::Auto => FEWEST,
            Method::Sftp => usize::MAX,
            Method::Tar => 1,
        };
        let files = plan.entries.iter();
        let files = files.filter(|entry| is_small(entry, plan.preserve));
        let (count, octets) = files.fold((0, 0), |(count, octets), entry| {
            (count + 1, octets + entry.size())
        });
        let is_worth_it = count >= fewest;
        Small {
            way: match is_worth_it {
                true => Way::Undecided,
                false => Way::Unused,
            },
            base: Vec::new(),
            next: 0,
            looking: 0,
            ready: VecDeque::new(),
            groups: VecDeque::new(),
            streams: Vec::new(),
            replaced: HashMap::new(),
            umask: 0o022,
            fewest,
            filling: match octets >= WORTH_A_SECOND {
                true => MOST_FILLING,
                false => 1,
            },
            arrived: VecDeque::new(),
            lacks: HashMap::new(),
            unwanted: VecDeque::new(),
            asked: 0,
            has_renamed: false,
            proof_made: false,
            for_sftp: VecDeque::new(),
            octets_left: if is_worth_it { octets } else { 0 },
        }
    }

    /// Whether an entry is none that channels begin of themselves.
    pub(in crate::upload) fn takes(&self, entry: &Entry, preserve: bool) -> bool {
        self.way != Way::Unused && is_small(entry, preserve)
    }

    fn is_over(&self) -> bool {
        matches!(self.way, Way::Closed | Way::Unused)
            && self.asked == 0
            && self.arrived.is_empty()
            && self.unwanted.is_empty()
            && self.for_sftp.is_empty()
            && self
                .streams
                .iter()
                .all(|it| it.stage == Stage::Over && it.reading == 0)
    }

    /// Whether no file is left that could join a batch.
    fn is_exhausted(&self, entries: usize) -> bool {
        self.next >= entries && self.looking == 0 && self.ready.is_empty()
    }

    /// Whether nothing is left that a stream would be opened for.
    fn has_rest(&self, entries: usize) -> bool {
        let is_last = self.next >= entries && self.looking == 0;
        is_last
            && (self.ready.is_empty() || self.streams.is_empty() && self.ready.len() < self.fewest)
    }

    fn open(&self) -> usize {
        let streams = self.streams.iter();
        streams.filter(|stream| stream.stage != Stage::Over).count()
    }

    fn being_filled(&self) -> usize {
        let streams = self.streams.iter();
        streams
            .filter(|stream| !matches!(stream.stage, Stage::Complete | Stage::Over))
            .count()
    }
}

/// Bits for set-user-ID and the like are not kept by every tar (BusyBox').
fn is_small(entry: &Entry, preserve: bool) -> bool {
    let has_bits = preserve && entry.mode & SPECIAL_BITS != 0;
    matches!(entry.kind, Kind::File { size } if size <= MAX_SMALL) && !has_bits
}

/// What a batch's hashes are called while it is unpacked: no part of any file is called like this either.
fn manifest(tag: PartTag, stream: usize) -> Vec<u8> {
    format!(".{tag}.{stream}.part").into_bytes()
}

/// The file that is made over SFTP, and seen by streams: no part of any file is called like this.
fn proof(tag: PartTag) -> Vec<u8> {
    format!(".{tag}.part").into_bytes()
}

#[cfg(test)]
mod tests;
