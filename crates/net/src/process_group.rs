//! The processes of one command on this machine.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use sshoal_spawn::Child;
use tokio::time::sleep;

/// How often a group is looked at that was asked to end.
const GLANCE: Duration = Duration::from_millis(20);

/// A command's process group, for all who signal it.
#[derive(Clone)]
pub(crate) struct Group(Rc<Cell<Option<Pid>>>);

impl Group {
    /// The group that a child leads.
    pub(crate) fn of(leader: &Child) -> Self {
        let leader = Pid::from_raw(leader.id().cast_signed());
        Group(Rc::new(Cell::new(leader)))
    }

    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(group) = self.0.get() {
            // A group that has ended needs no signal.
            let _ = kill_process_group(group, signal);
        }
    }

    /// Until no process of the group is left.
    pub(crate) async fn ended(&self) {
        while let Some(group) = self.0.get() {
            match test_kill_process_group(group) {
                Err(Errno::SRCH) => self.release(),
                // Others' processes (sudo) are there, too, though they cannot be signalled.
                _ => sleep(GLANCE).await,
            }
        }
    }

    /// Kills what is left of it, unless it was released.
    pub(crate) fn kill(&self) {
        self.signal(Signal::KILL);
        self.release();
    }

    /// The command has ended by itself: what it left running is meant to stay.
    pub(crate) fn release(&self) {
        self.0.set(None);
    }
}
