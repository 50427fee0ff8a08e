//! Small files, in batches: a tar(1) on the host is told their names and sends an archive (`stream`), each file goes into its
//! part as it comes, and gets its name when the batch has ended.
//!
//! ```text
//! listed -> looked at here -> asked for -> in its part here -> (looked at again there) -> in place
//! ```
//!
//! A file is taken from an archive only if its name was asked for, and if its size, time of modification, permissions and
//! owner are those that SFTP told: so a command that sees other files than SFTP brings none. What an archive does not
//! bring like that goes over SFTP, as all does where the host runs no such command: what fails is found and named there.
//! GNU's tar tells by its status whether a file changed while it was read; after another's, each is looked at again.
//!
//! `streams` is what sessions see of it, `stream` one of them, `asking` the way of a file into a batch, `settling` what
//! becomes of what has come.

mod asking;
mod settling;
mod stream;
mod streams;

use std::collections::{HashMap, VecDeque};

use super::{DownloadPlan, Item};
use crate::owners::Owner;
use crate::upload::{FEWEST, MAX_SMALL, Method};
use stream::{Stage, Stream};

/// Octets, and files, of one batch.
const BATCH_OCTETS: u64 = 16 * 1024 * 1024;
const BATCH_FILES: usize = 8192;
/// Batches at a time.
const MOST_OPEN: usize = 2;
/// Octets for which a second one is worth its opening while the first has yet to begin.
const WORTH_A_SECOND: u64 = 4 * 1024 * 1024;
/// Files that one job of this machine is about.
const GROUP: usize = 128;
/// Such jobs that look whether files are here already, at a time.
const LOOKS: usize = 4;
/// Requests about files that have come, in flight.
const REQUESTS: usize = 768;

/// What small files need of this machine. Paths are relative to the host's folder; none leads out of it. Each is answered by
/// [`Download::provide_small`](crate::Download::provide_small) with its [`FetchedSmall`], but for `Discard`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SmallNeed {
    /// Look whether files of this size and time of modification are there: [`FetchedSmall::Seen`].
    Look {
        /// To be given back.
        id: u64,
        /// What is looked for.
        files: Vec<SmallLook>,
    },
    /// Write files into their parts, and bring them to the disk: [`FetchedSmall::Stored`].
    Store {
        /// All of each.
        files: Vec<SmallPart>,
    },
    /// Put what is in parts in place: [`FetchedSmall::Placed`].
    Place {
        /// Numbers to be given back, and paths.
        files: Vec<(u64, Vec<u8>)>,
    },
    /// Remove the parts of these, which go over SFTP: [`FetchedSmall::Cleared`].
    Clear {
        /// Numbers to be given back, and paths.
        files: Vec<(u64, Vec<u8>)>,
    },
    /// Remove the parts of these.
    Discard {
        /// Their paths.
        paths: Vec<Vec<u8>>,
    },
}

/// A small file that may be here already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmallLook {
    /// Where.
    pub path: Vec<u8>,
    /// Octets, and time of modification, in seconds since 1970.
    pub like: (u64, u32),
    /// Whom it is to belong to if it is there.
    pub owner: Owner,
    /// Permissions that it is to have if it is there.
    pub mode: Option<u32>,
}

/// A small file that has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmallPart {
    /// Which: to be given back.
    pub number: SmallNumber,
    /// Where it goes.
    pub path: Vec<u8>,
    /// Permissions, before this machine's umask.
    pub mode: u32,
    /// Whom it is to belong to: to be set before its mode.
    pub owner: Owner,
    /// Permissions and times that are to be kept.
    pub kept: (Option<u32>, Option<(u32, u32)>),
    /// All of it.
    pub data: Vec<u8>,
}

/// A file of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SmallNumber {
    /// Which batch.
    pub stream: usize,
    /// Which of its files.
    pub file: usize,
}

/// What became of a [`SmallNeed`]; errors are the system's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FetchedSmall {
    /// Whether each is there.
    Seen {
        /// The need's.
        id: u64,
        /// In the need's order.
        seen: Vec<Result<bool, String>>,
    },
    /// What became of each. What failed has left no part.
    Stored(Vec<(SmallNumber, Result<(), String>)>),
    /// What became of each.
    Placed(Vec<(u64, Result<(), String>)>),
    /// Their parts are gone, as far as that could be done.
    Cleared(Vec<u64>),
}

/// A file that goes, or went, with others.
#[derive(Debug)]
struct Wanted {
    item: Item,
    /// How the archive calls it: relative to its base.
    name: Vec<u8>,
}

impl Wanted {
    fn size(&self) -> u64 {
        self.item.attributes.size.unwrap_or(0)
    }
}

/// What names in an archive are relative to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Base {
    Home,
    Root,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Too few have been found.
    Undecided,
    Open,
    /// No more batches, or none at all.
    Closed,
}

/// Small files of one download.
pub(super) struct Small {
    way: Way,
    /// Files for which a batch is worth it.
    fewest: usize,
    /// What has been listed and not been looked for here.
    found: VecDeque<(Base, Wanted)>,
    looks: HashMap<u64, Vec<(Base, Wanted)>>,
    /// What is to be fetched, by [`Base`].
    ready: [VecDeque<Wanted>; 2],
    ready_octets: u64,
    streams: Vec<Stream>,
    /// How many streams the host bears.
    most: usize,
    needs: VecDeque<SmallNeed>,
    /// Files that are being stored.
    storing: usize,
    /// Files that have come and wait to be looked at again.
    to_check: VecDeque<Wanted>,
    checking: HashMap<u64, Wanted>,
    to_place: VecDeque<(u64, Vec<u8>)>,
    placing: HashMap<u64, Item>,
    to_discard: Vec<Vec<u8>>,
    /// Files that go over SFTP once their parts are out of the way.
    clearing: HashMap<u64, Item>,
    /// Whether any batch has brought something.
    has_worked: bool,
    octets_left: u64,
}

impl Small {
    pub(super) fn new(plan: &DownloadPlan) -> Small {
        // What is hashed at both ends is hashed file by file.
        let is_possible = plan.method != Method::Sftp && !plan.in_order && !plan.hashing.is_used();
        Small {
            way: match is_possible {
                true => Way::Undecided,
                false => Way::Closed,
            },
            fewest: match plan.method {
                Method::Tar => 1,
                Method::Auto | Method::Sftp => FEWEST,
            },
            found: VecDeque::new(),
            looks: HashMap::new(),
            ready: Default::default(),
            ready_octets: 0,
            streams: Vec::new(),
            most: MOST_OPEN,
            needs: VecDeque::new(),
            storing: 0,
            to_check: VecDeque::new(),
            checking: HashMap::new(),
            to_place: VecDeque::new(),
            placing: HashMap::new(),
            to_discard: Vec::new(),
            clearing: HashMap::new(),
            has_worked: false,
            octets_left: 0,
        }
    }

    /// Takes what may go with others; gives back what may not.
    pub(super) fn take(&mut self, item: Item) -> Option<Item> {
        let attributes = item.attributes;
        // Nothing is known of those that seem to be empty.
        let is_small = attributes
            .size
            .is_some_and(|size| (1..=MAX_SMALL).contains(&size));
        if self.way == Way::Closed || !is_small || attributes.times.is_none() {
            return Some(item);
        }
        let Some((base, name)) = name_in_archive(&item.remote) else {
            return Some(item);
        };
        self.octets_left += attributes.size.unwrap_or(0);
        self.found.push_back((base, Wanted { item, name }));
        None
    }

    /// Files that are found and not asked for.
    pub(super) fn waiting(&self) -> usize {
        let looking: usize = self.looks.values().map(Vec::len).sum();
        self.found.len() + looking + self.ready()
    }

    pub(super) fn octets_left(&self) -> u64 {
        self.octets_left
    }

    fn ready(&self) -> usize {
        self.ready.iter().map(VecDeque::len).sum()
    }

    /// Streams that have not begun.
    fn beginning(&self) -> usize {
        let streams = self.streams.iter();
        let beginning = streams.filter(|it| matches!(it.stage, Stage::Opening | Stage::Greeted));
        beginning.count()
    }

    /// Streams that have not ended.
    fn open(&self) -> usize {
        let streams = self.streams.iter();
        let open = streams.filter(|it| !matches!(it.stage, Stage::Closed | Stage::Over));
        open.count()
    }

    pub(super) fn is_over(&self) -> bool {
        self.waiting() == 0
            && self.streams.iter().all(|it| it.stage == Stage::Over)
            && self.storing == 0
            && self.to_check.is_empty()
            && self.checking.is_empty()
            && self.placing.is_empty()
            && self.clearing.is_empty()
    }

    /// So many octets will not come by streams, or have.
    fn leave(&mut self, octets: u64) {
        self.octets_left = self.octets_left.saturating_sub(octets);
    }
}

/// How tar(1) is told of a path, such that it stays what it is: without `.` and doubled slashes, and relative, for tar would
/// make it so. `None` for what leads upward, which it would not take either.
fn name_in_archive(path: &[u8]) -> Option<(Base, Vec<u8>)> {
    let base = match path.starts_with(b"/") {
        true => Base::Root,
        false => Base::Home,
    };
    let mut name = Vec::with_capacity(path.len());
    for part in path.split(|&octet| octet == b'/') {
        match part {
            b"" | b"." => continue,
            b".." => return None,
            _ if !name.is_empty() => name.push(b'/'),
            _ => {}
        }
        name.extend_from_slice(part);
    }
    (!name.is_empty() && !name.contains(&0)).then_some((base, name))
}

#[cfg(test)]
mod fake_host;
#[cfg(test)]
mod tests;
