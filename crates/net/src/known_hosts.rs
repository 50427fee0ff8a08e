//! known_hosts files on the disk.

mod file;
mod new_keys;

pub use file::KnownHostsFile;
pub(crate) use new_keys::NewKeys;
