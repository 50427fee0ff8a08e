//! What makes all connections doubtful at once: the machine slept, this process was stopped, or the network has changed.
//! They are then asked for a sign of life, in place of waiting until each one's turn has come.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};
use rustix::time::{ClockId, clock_gettime};

use crate::control::Alarm;
use crate::pool::Pool;

/// How often the clocks are looked at.
const GLANCE: Duration = Duration::from_secs(2);
/// A glance that comes so much too late was slept over, or spent stopped: a busy machine is not as late.
const LATENESS: Duration = Duration::from_secs(3);
/// How far the clocks may come apart between two glances before it was a sleep.
const DRIFT: Duration = Duration::from_secs(1);
/// How long changes of the network are gathered: there are dozens when an interface comes up.
const SETTLES_IN: Duration = Duration::from_millis(500);

/// Multicast groups of rtnetlink(7): RTMGRP_LINK, RTMGRP_IPV4_IFADDR, RTMGRP_IPV4_ROUTE, RTMGRP_IPV6_IFADDR,
/// RTMGRP_IPV6_ROUTE.
const GROUPS: u32 = 0x1 | 0x10 | 0x40 | 0x100 | 0x400;

/// Begins to watch, in a thread of its own.
pub(crate) fn watch(pool: Pool) -> io::Result<()> {
    // Without it the clocks are still looked at, and keepalive finds the rest.
    let changes = changes().inspect_err(|error| {
        tracing::warn!(%error, "changes of the network are not noticed");
    });
    let mut clocks = Clocks::new(now());
    thread::Builder::new()
        .name("alarm".to_owned())
        .spawn(move || {
            loop {
                if wait(changes.as_ref().ok(), GLANCE) {
                    if let Ok(changes) = &changes {
                        let_settle(changes);
                    }
                    pool.raise(Alarm::NetworkChange);
                    // That has taken a while, too.
                    clocks = Clocks::new(now());
                } else if let Some(alarm) = clocks.look(now()) {
                    pool.raise(alarm);
                }
            }
        })?;
    Ok(())
}

/// A socket that hears of addresses, routes and interfaces.
fn changes() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    // The protocol is NETLINK_ROUTE, which is 0.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
    bind(&socket, &SocketAddrNetlink::new(0, GROUPS))?;
    Ok(socket)
}

/// Waits for a change, no longer than `limit`; returns whether there was one.
fn wait(changes: Option<&OwnedFd>, limit: Duration) -> bool {
    let limit = Timespec {
        tv_sec: limit.as_secs().cast_signed(),
        tv_nsec: limit.subsec_nanos().into(),
    };
    let mut waiting: Vec<PollFd<'_>> = changes
        .into_iter()
        .map(|socket| PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN))
        .collect();
    poll(&mut waiting, Some(&limit)).is_ok_and(|ready| ready > 0)
}

/// Takes what was said, until it is quiet, or for ten times as long. What it was does not matter.
fn let_settle(changes: &OwnedFd) {
    let mut octets = [0; 8192];
    for _ in 0..10 {
        // What was lost, for there was too much of it, was a change as well.
        while let Ok(_) | Err(Errno::NOBUFS | Errno::INTR) =
            recv(changes, &mut octets[..], RecvFlags::DONTWAIT)
        {}
        if !wait(Some(changes), SETTLES_IN) {
            return;
        }
    }
}

/// What the clocks showed.
#[derive(Debug, Clone, Copy)]
struct Reading {
    /// CLOCK_MONOTONIC: stands still while the machine sleeps.
    monotonic: Duration,
    /// CLOCK_BOOTTIME: does not.
    boottime: Duration,
}

fn now() -> Reading {
    let read = |clock| {
        let time = clock_gettime(clock);
        Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec as u32)
    };
    Reading {
        monotonic: read(ClockId::Monotonic),
        boottime: read(ClockId::Boottime),
    }
}

/// Looks for time that has passed unnoticed.
struct Clocks {
    last: Reading,
}

impl Clocks {
    fn new(now: Reading) -> Self {
        Clocks { last: now }
    }

    /// A glance; they are [`GLANCE`] apart, unless something happened.
    fn look(&mut self, now: Reading) -> Option<Alarm> {
        let last = std::mem::replace(&mut self.last, now);
        let noticed = now.monotonic.saturating_sub(last.monotonic);
        let passed = now.boottime.saturating_sub(last.boottime);
        if passed.saturating_sub(noticed) > DRIFT {
            return Some(Alarm::Sleep);
        }
        (noticed > GLANCE + LATENESS).then_some(Alarm::Stop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(monotonic: u64, boottime: u64) -> Reading {
        Reading {
            monotonic: Duration::from_secs(monotonic),
            boottime: Duration::from_secs(boottime),
        }
    }

    #[test]
    fn a_sleep_and_a_stop_are_noticed_and_time_that_passes_as_it_should_is_not() {
        let mut clocks = Clocks::new(at(100, 5_000));
        assert_eq!(clocks.look(at(102, 5_002)), None);
        assert_eq!(clocks.look(at(105, 5_005)), None, "a busy machine");
        // An hour with the lid closed.
        assert_eq!(clocks.look(at(107, 8_607)), Some(Alarm::Sleep));
        assert_eq!(clocks.look(at(109, 8_609)), None);
        assert_eq!(clocks.look(at(169, 8_669)), Some(Alarm::Stop));
        assert_eq!(clocks.look(at(171, 8_671)), None);
        // A clock that runs backwards is none of ours.
        assert_eq!(clocks.look(at(170, 8_670)), None);
    }

    #[test]
    fn the_kernel_tells_of_changes() {
        assert!(changes().is_ok());
    }
}
