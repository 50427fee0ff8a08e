//! File descriptors: the limit is raised as far as allowed, and never hit.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors kept for everything but connections: standard streams, epoll, timers, files, agents.
const RESERVE: u64 = 64;

/// Raises the soft limit of open files to the hard one and returns how many hosts may be in flight: one
/// descriptor each. At least 1.
pub fn connections_allowed() -> u32 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        // If it cannot be raised, the present limit holds.
        let _ = setrlimit(
            Resource::Nofile,
            Rlimit {
                current: maximum,
                maximum,
            },
        );
    }
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    u32::try_from(limit.saturating_sub(RESERVE).max(1)).unwrap_or(u32::MAX)
}
