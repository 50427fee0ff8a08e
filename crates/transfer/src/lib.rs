//! Bulk transfer over SFTP, sans-I/O: values in, values out.
//!
//! [`sftp`] is the protocol's client for one channel: requests out, replies in, all sizes bounded. An [`Upload`] brings a
//! list of local things to one host over one or several channels, a [`Download`] fetches what a host has. Both say what
//! they need of this machine's files (`poll_need`) and are given it by methods; the channels' octets come in by
//! `handle_input` and leave by `transmit`. Names are octets everywhere.
//!
//! ```text
//!                    poll_need / provide_*                  poll_event
//!   local files  <------------------------->  Upload  ---------------------> what became of each file
//!                                            Download
//!   channels     <------------------------->
//!                  handle_input / transmit
//! ```

mod channels;
mod conversation;
mod device;
mod download;
mod glob;
mod hashing;
mod owners;
mod part_name;
mod path;
mod ranges;
mod reads;
pub mod sftp;
mod shell;
mod surplus;
pub mod tar;
mod trouble;
mod upload;

#[cfg(test)]
mod fake_hasher;
#[cfg(test)]
mod fake_server;

pub use download::{
    Begun, Download, DownloadEvent, DownloadNeed, DownloadPlan, Fetched, FetchedSmall, LocalFile,
    MAX_FOLDERS, MAX_HELD, MAX_KEPT, MAX_NAMES, SmallLook, SmallNeed, SmallNumber, SmallPart,
};
pub use glob::{Excludes, PatternError, check_exclude, matches as glob_matches};
pub use hashing::{FileHash, Hashing, HostHashes, Verify};
pub use owners::{Account, AccountKind, HostAccounts, Names, Owner, Owners, Rights, accounts};
pub use part_name::{PartTag, part_name};
pub use path::{MAX_NAME, MAX_PATH, join as join_path};
pub use shell::{SHELL_COMMAND, ShellError, ShellServer};
pub use surplus::{Deletion, Surplus, SurplusHere};
pub use trouble::{MAX_TOLD, Remote, Trouble};
pub use upload::{
    CHECKPOINT, Entry, Kind, LeftOut, MAX_SMALL, Method, Opened, SmallFile, SmallGroup,
    SmallProblem, Upload, UploadEvent, UploadNeed, UploadPlan, UploadRoot,
};

/// How far a transfer is, for one host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Files, links and folders that are in place.
    pub done: u64,
    /// Files, links and folders that were there already, unchanged.
    pub unchanged: u64,
    /// Files, links and folders that could not be transferred.
    pub failed: u64,
    /// Files, links and folders that were surplus, and were deleted.
    pub deleted: u64,
    /// Octets of files' contents that the other side has confirmed.
    pub octets: u64,
    /// Files whose contents were hashed at both ends when they had arrived.
    pub verified: u64,
    /// Why files went over SFTP that were to go in batches.
    pub why_no_batches: Option<&'static str>,
    /// Why files were not hashed that were to be where that is possible.
    pub why_unverified: Option<&'static str>,
    /// Why users and groups were kept by number that were to be kept by name.
    pub why_numbers: Option<&'static str>,
    /// Why a shell on the host did what an SFTP server does.
    pub why_shell: Option<&'static str>,
}
