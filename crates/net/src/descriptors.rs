//! File descriptors: the limit is raised as far as allowed, and never hit.

use std::fs::File;
use std::io;

use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors kept for everything but connections: standard streams, epoll, timers, files, agents.
const RESERVE: u64 = 64;
/// Descriptors of a local command that runs: three pipes, a pidfd, and one to spare while it is started.
const DESCRIPTORS_A_PROCESS: u64 = 5;
/// The same of one that carries a host's connection: an ssh has a log besides, of which both ends are open at first.
const DESCRIPTORS_A_CARRIER: u64 = 7;

/// Descriptors of tokio's reactor: epoll twice, an eventfd, a socket pair for signals and a copy of one end.
const REACTOR: usize = 6;

/// Raises the soft limit of open files to the hard one and returns how many hosts may be in flight, of which up to
/// `proxied` are reached by a process, a ProxyCommand or an ssh: the others have one descriptor each. At least 1.
pub fn connections_allowed(proxied: u32) -> u32 {
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
    let free = limit.saturating_sub(RESERVE);
    let beside = u64::from(proxied) * (DESCRIPTORS_A_CARRIER - 1);
    let allowed = free
        .saturating_sub(beside)
        .max(free / DESCRIPTORS_A_CARRIER);
    u32::try_from(allowed.max(1)).unwrap_or(u32::MAX)
}

/// Whether there are as many left as tokio takes for its reactor and its signals: it panics where a socket pair for
/// these is refused.
pub(crate) fn check_for_reactor() -> io::Result<()> {
    let any = File::open("/dev/null")?;
    let others = (1..REACTOR).map(|_| any.try_clone());
    others.collect::<io::Result<Vec<_>>>().map(drop)
}

/// Has the kernel make room for so many connections now, before there are threads: later the table of descriptors
/// doubles again and again, and socket(2) waits 10 ms each time, for everybody who may be looking at the old one
/// (fs/file.c, expand_fdtable).
pub(crate) fn make_room(connections: u32) {
    let Some(highest) = u64::from(connections)
        .checked_add(RESERVE)
        .and_then(|all| i32::try_from(all).ok())
    else {
        return;
    };
    // The descriptor itself is not needed; if it cannot be had, only time is lost.
    if let Ok(any) = File::open("/dev/null") {
        drop(fcntl_dupfd_cloexec(any, highest));
    }
}

/// How many of `wanted` local commands may run at a time. The soft limit of open files is raised only as far as
/// that needs: the commands inherit it, and some close, or count on, every descriptor below it.
pub fn processes_allowed(wanted: u32) -> u32 {
    let needed = u64::from(wanted) * DESCRIPTORS_A_PROCESS + RESERVE;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_some_and(|current| current < needed) {
        let current = Some(maximum.map_or(needed, |maximum| maximum.min(needed)));
        // If it cannot be raised, the present limit holds.
        let _ = setrlimit(Resource::Nofile, Rlimit { current, maximum });
    }
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let allowed = limit.saturating_sub(RESERVE) / DESCRIPTORS_A_PROCESS;
    u32::try_from(allowed).unwrap_or(u32::MAX).clamp(1, wanted)
}
