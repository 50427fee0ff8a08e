//! Files to hosts and from them: a host's channels and their conversation, and this machine's files, off the threads that
//! serve all hosts.
//!
//! `plan` is what is to be done, the same for all hosts; `scan` lists what is to be sent. For each host a [`Transfer`]
//! joins an `Engine` (crate `transfer`) with its session's channels, and with those of further connections, its `lanes`. What an engine needs of this machine is done by
//! `disk`'s threads: `source` reads, once for all hosts that are about as far, `spool` copies what can be read only once,
//! `folder` writes (into folders that were closed as `lent` opens them), `changed` are the folders that are brought to the disk at the end, `surplus` deletes what the host does not have, `block_hash` hashes what is read and written, `asking` has the host do so and asks it for accounts, `accounts` knows
//! those of this machine, `keeper` notes what is proven. `moved` tells how far all are, `silence` which channels hang, `rate` keeps to the user's limit.

mod accounts;
mod answering;
mod asking;
mod at_once;
mod batches;
mod beside;
mod block_hash;
mod blocks;
mod changed;
mod channels;
mod device;
mod disk;
mod engine;
mod extents;
mod folder;
mod keeper;
mod lanes;
mod lent;
mod moved;
mod performing;
mod plan;
mod printed;
mod progress;
mod rate;
mod scan;
mod silence;
mod small_files;
mod small_parts;
mod source;
mod spool;
mod streams;
mod surplus;
mod writing;

/// What a channel's message of data holds: a window of 2 MiB is 64 of them (channels.h, CHAN_SES_PACKET_DEFAULT), and
/// whole ones fill it to the last octet.
const PACKET: usize = 32 * 1024;

pub use accounts::{Accounts, names_of, rights};
pub(crate) use channels::{LaneId, Transfer};
pub use folder::PartNames;
pub(crate) use lanes::{First, LaneLimits, Lanes};
pub use moved::Moved;
pub use plan::{Get, GetTarget, Put, Telling, TransferPlan, Way};
pub use rate::Rate;
pub use scan::{Scan, ScanError, scan};
pub use source::Source;
