//! The processes of one command on this machine.

use std::io;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::Child;
use tokio::time::sleep;

/// How often a group is looked at that was asked to end.
const GLANCE: Duration = Duration::from_millis(20);

/// A command's process group. Dropping it kills what is left, unless it was released.
pub(crate) struct Group(Option<Pid>);

impl Group {
    /// The group that a child leads.
    pub(crate) fn of(leader: &Child) -> Self {
        Group(leader.id().and_then(|id| Pid::from_raw(id.cast_signed())))
    }

    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(group) = self.0 {
            // A group that has ended needs no signal.
            let _ = kill_process_group(group, signal);
        }
    }

    /// Until no process of the group is left.
    pub(crate) async fn ended(&mut self) {
        while let Some(group) = self.0 {
            match test_kill_process_group(group) {
                Err(Errno::SRCH) => self.release(),
                // Others' processes (sudo) are there, too, though they cannot be signalled.
                _ => sleep(GLANCE).await,
            }
        }
    }

    /// The command has ended by itself: what it left running is meant to stay.
    pub(crate) fn release(&mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// Whether this machine has no room for one more process now: fork(2), pipe(2).
pub(crate) fn is_shortage(error: &io::Error) -> bool {
    let shortages = [Errno::AGAIN, Errno::NOMEM, Errno::MFILE, Errno::NFILE];
    Errno::from_io_error(error).is_some_and(|errno| shortages.contains(&errno))
}
