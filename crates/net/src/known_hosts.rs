//! known_hosts files on the disk.

mod command;
mod file;
mod files;
mod index_cache;
mod key_updates;
mod new_keys;

pub use command::KnownHostsCommand;
pub(crate) use command::{Invocation, ShownKey};
pub use file::KnownHostsFile;
pub use files::{KnownHostsFiles, Searched, Unreadable};
pub use index_cache::IndexCache;
pub(crate) use key_updates::KeyUpdate;
pub(crate) use new_keys::NewKeys;
