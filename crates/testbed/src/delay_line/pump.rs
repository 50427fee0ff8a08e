//! The thread that moves packets: from one TUN device through the queue into the other, both ways.
//!
//! One thread for both directions, so that "sent before the answer came" is decided by one order of events.
//! It sleeps in ppoll(2) until a packet comes or one is due, to the nanosecond as far as the kernel keeps it.

use std::io;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::thread::set_current_timer_slack;

use super::monitor::{DIRECTIONS, Direction, Monitor, Trace};
use super::queue::Queue;
use super::spec::LineSpec;
use super::tun::Tun;

/// Packets read from one device before the other has its turn and what is due goes out.
const BATCH: usize = 128;

/// The monitor, shared with whoever asks for counts.
#[derive(Debug, Clone, Default)]
pub(super) struct SharedMonitor(Arc<Mutex<Monitor>>);

impl SharedMonitor {
    /// The monitor holds plain counts, which a panic elsewhere leaves whole.
    pub(super) fn lock(&self) -> MutexGuard<'_, Monitor> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Both devices, both queues.
pub(super) struct Pump {
    /// The device in the client's namespace, then the one in the server's.
    ends: [Tun; 2],
    /// By direction.
    queues: [Queue<Option<Trace>>; 2],
    monitor: SharedMonitor,
    started: Instant,
    /// Readable or hung up when the pump is to end.
    stop: OwnedFd,
}

impl Pump {
    pub(super) fn new(
        spec: &LineSpec,
        client: Tun,
        server: Tun,
        monitor: SharedMonitor,
        stop: OwnedFd,
    ) -> Pump {
        Pump {
            ends: [client, server],
            queues: DIRECTIONS.map(|direction| Queue::new(spec, direction.index() as u64)),
            monitor,
            started: Instant::now(),
            stop,
        }
    }

    /// Move packets until told to stop.
    pub(super) fn run(mut self) -> io::Result<()> {
        // The kernel adds 50 us to a thread's sleeps unless told otherwise.
        set_current_timer_slack(NonZeroU64::new(1))?;
        while !self.sleep()? {
            let shared = self.monitor.clone();
            let mut monitor = shared.lock();
            // What was sent before a delivery must not be taken for an answer to it: first in, then out.
            for direction in DIRECTIONS {
                self.take_in(direction, &mut monitor)?;
            }
            for direction in DIRECTIONS {
                self.give_out(direction, &mut monitor);
            }
        }
        Ok(())
    }

    /// Wait for a packet, for the time at which one is due, or for the end; true means the end.
    fn sleep(&self) -> io::Result<bool> {
        let next_due = self.queues.iter().filter_map(Queue::next_due).min();
        let timeout = next_due.map(|due| timespec(due.saturating_sub(self.started.elapsed())));
        let mut watched = [
            PollFd::new(&self.ends[0], PollFlags::IN),
            PollFd::new(&self.ends[1], PollFlags::IN),
            PollFd::new(&self.stop, PollFlags::IN),
        ];
        match poll(&mut watched, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(!watched[2].revents().is_empty()),
            Err(errno) => Err(errno.into()),
        }
    }

    fn take_in(&mut self, direction: Direction, monitor: &mut Monitor) -> io::Result<()> {
        let source = &mut self.ends[direction.index()];
        let queue = &mut self.queues[direction.index()];
        for _ in 0..BATCH {
            let Some(packet) = source.receive()? else {
                break;
            };
            let now = self.started.elapsed();
            let trace = monitor.enter(now, direction, &packet);
            monitor.judged(direction, queue.offer(now, packet, trace));
        }
        Ok(())
    }

    fn give_out(&mut self, direction: Direction, monitor: &mut Monitor) {
        let queue = &mut self.queues[direction.index()];
        let now = self.started.elapsed();
        while let Some((packet, trace)) = queue.take_due(now) {
            monitor.deliver(direction, trace);
            let target = &mut self.ends[direction.reverse().index()];
            if target.deliver(&packet).is_err() {
                monitor.refused(direction);
            }
            self.ends[direction.index()].recycle(packet);
        }
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}
