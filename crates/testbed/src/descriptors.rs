//! Room for thousands of sockets in one process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use thiserror::Error;

/// The process may not have as many open files as the hosts need.
#[derive(Debug, Error)]
#[error(
    "{needed} open files are needed and the limit is {limit}: raise it (ulimit -Hn {needed}, or run as root) or use fewer hosts"
)]
pub struct DescriptorError {
    /// Descriptors needed.
    pub needed: u64,
    /// The hard limit that could not be raised.
    pub limit: u64,
}

/// Raises this process's RLIMIT_NOFILE to `needed` where it is lower; the hard limit too if it must
/// be and may be (root, up to /proc/sys/fs/nr_open).
///
/// # Errors
/// When the limit stays below `needed`.
pub fn allow_descriptors(needed: u64) -> Result<(), DescriptorError> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    let hard = limit.maximum.map(|hard| hard.max(needed));
    let raised = Rlimit {
        current: Some(needed),
        maximum: hard,
    };
    setrlimit(Resource::Nofile, raised).map_err(|_| DescriptorError {
        needed,
        limit: limit.maximum.unwrap_or(u64::MAX),
    })
}

/// The soft limit of open files now, or `None` when there is none.
pub fn descriptor_limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}
