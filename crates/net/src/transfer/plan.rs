//! What a transfer is to do: the same for all hosts.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sshoal_transfer::{DownloadPlan, UploadPlan};

use super::accounts::Accounts;
use super::disk::Disk;
use super::folder::PartNames;
use super::moved::Moved;
use super::rate::Rate;
use super::source::Source;
use crate::congestion::CongestionControl;
use crate::link::Link;

/// Octets that all hosts together may have read ahead, or asked for and not written.
const BUDGET: usize = 64 * 1024 * 1024;
/// Octets read at a time at most.
const LARGEST_BLOCK: usize = 256 * 1024;
/// The least: a channel's packet.
const LEAST_BLOCK: usize = 32 * 1024;
/// Blocks that one channel may have read ahead, at most.
const MOST_AHEAD: usize = 8;
/// What sshd gives us, too.
const LEAST_WINDOW: u32 = 2 * 1024 * 1024;
/// sshd moves its buffer about more often if more is to be kept in it.
const MOST_WINDOW: u32 = 8 * 1024 * 1024;
/// Octets of one channel that may be asked for and not written, at most: one of the largest windows.
const MOST_IN_FLIGHT: usize = 8 * 1024 * 1024;

/// What is done on every host of a run.
pub struct TransferPlan {
    /// Which way, and what.
    pub way: Way,
    /// Octets a second, of all hosts together.
    pub rate: Option<Rate>,
    /// How many connections each host gets, if it is not to be found out.
    pub lanes: Option<usize>,
    /// How far all hosts are.
    pub moved: Arc<Moved>,
    /// What is told of what is surplus.
    pub telling: Telling,
    pub(super) disk: Disk,
}

/// What is told of what is surplus, a line each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Telling {
    /// Nothing but how much it was.
    #[default]
    Nothing,
    /// That it is deleted.
    Deleted,
    /// That it would be.
    WouldDelete,
}

/// Which way files go.
pub enum Way {
    /// To the hosts.
    Put(Put),
    /// From the hosts.
    Get(Get),
}

/// What goes to the hosts.
pub struct Put {
    /// What, and where to.
    pub upload: Arc<UploadPlan>,
    /// Its contents.
    pub source: Arc<Source>,
    /// Where to keep a journal of what goes to each host, in the order of the run's hosts; empty for none.
    pub journals: Vec<PathBuf>,
    /// What decides how fast is sent, if not the kernel's default does.
    pub congestion: Option<CongestionControl>,
}

/// What comes from the hosts.
pub struct Get {
    /// What.
    pub download: Arc<DownloadPlan>,
    /// Where to.
    pub target: GetTarget,
    /// This machine's users and groups.
    pub accounts: Arc<Accounts>,
}

/// Where fetched files go.
pub enum GetTarget {
    /// Into a folder for each host, in the order of the run's hosts.
    Folders {
        /// The hosts' folders.
        hosts: Vec<PathBuf>,
        /// What files are called until they are whole.
        parts: PartNames,
        /// Where to keep a journal of what comes from each host, in the same order; empty for none.
        journals: Vec<PathBuf>,
    },
    /// Onto a block device of this machine: one file of one host.
    Device(PathBuf),
    /// To the observer, as a command's output.
    Output,
}

impl TransferPlan {
    /// A plan for so many hosts; octets a second are those of all of them together.
    pub fn new(
        way: Way,
        hosts: usize,
        octets_a_second: Option<u64>,
        lanes: Option<usize>,
    ) -> TransferPlan {
        TransferPlan {
            way,
            lanes,
            rate: octets_a_second.map(Rate::new),
            moved: Arc::new(Moved::new(hosts)),
            telling: Telling::default(),
            disk: Disk::default(),
        }
    }

    /// Why no host can have all of standard input, where that is because we cannot keep it.
    pub(crate) fn unkept(&self) -> Option<Arc<str>> {
        match &self.way {
            Way::Put(put) => put.source.unkept(),
            Way::Get(_) => None,
        }
    }

    /// Before anything large is sent on a connection, whose making took so long.
    pub(crate) fn control_congestion(&self, link: &Link, round_trip: Duration) {
        if let Way::Put(put) = &self.way
            && let Some(congestion) = &put.congestion
        {
            congestion.apply(link, round_trip);
        }
    }

    /// The window of each channel of one of so many hosts: twice what a line of 1 Gbit/s holds, within what does not cost
    /// sshd more than it gains (channels.h, sshbuf.c).
    pub(crate) fn window(hosts: usize, round_trip: Duration) -> u32 {
        let held = round_trip.as_micros() * 125 * 2;
        let held = u32::try_from(held).unwrap_or(u32::MAX);
        let share = u32::try_from(BUDGET / hosts.max(1)).unwrap_or(u32::MAX);
        held.clamp(LEAST_WINDOW, MOST_WINDOW)
            .min(share)
            .max(2 * LEAST_BLOCK as u32)
    }

    /// How much is read at a time, and how many such blocks ahead, for so many hosts.
    pub fn reading(hosts: usize) -> (usize, usize) {
        let share = BUDGET / hosts.max(1);
        // A power of two, so that blocks of several hosts are the same ones.
        let block = (share / 4).clamp(LEAST_BLOCK, LARGEST_BLOCK);
        let block = 1 << block.ilog2();
        (block, (share / block).clamp(2, MOST_AHEAD))
    }

    /// How much one channel may have in flight, for so many hosts.
    pub fn in_flight(hosts: usize) -> usize {
        (BUDGET / hosts.max(1)).clamp(2 * LEAST_BLOCK, MOST_IN_FLIGHT)
    }
}
