//! Files to hosts and from them: a host's channels and their conversation, and this machine's files, off the threads that
//! serve all hosts.
//!
//! `plan` is what is to be done, the same for all hosts; `scan` lists what is to be sent. For each host a [`Transfer`]
//! joins an `Engine` (crate `transfer`) with its session's channels. What an engine needs of this machine is done by
//! `disk`'s threads: `source` reads, once for all hosts that are about as far, `spool` copies what can be read only once,
//! `folder` writes, `keeper` notes what is proven. `rate` keeps to the user's limit.

mod channels;
mod disk;
mod engine;
mod extents;
mod folder;
mod keeper;
mod performing;
mod plan;
mod printed;
mod progress;
mod rate;
mod scan;
mod source;
mod spool;

pub(crate) use channels::Transfer;
pub use folder::PartNames;
pub use plan::{Get, GetTarget, Moved, Put, TransferPlan, Way};
pub use rate::Rate;
pub use scan::{Scan, ScanError, scan};
pub use source::Source;
