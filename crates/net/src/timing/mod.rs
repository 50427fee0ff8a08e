//! Logins that are measured: one step after the other, with the time of each.
//!
//! A run with a [`TimingPlan`] merges no flights: each message of the login waits for the server's answer to the one before,
//! and keys are offered before they sign, as ssh does it. What was passed when is left in [`Timings`], as marks: what they
//! add up to is for others to say. An ssh that logs in leaves the lines of its log (LogLevel DEBUG3) in the same way.
//!
//! ```text
//!   Turn::take -> Timing::begin -> marks of dial, of the connection's arrivals, of what is offered
//!        |                             |
//!        |                    first output, session closed -> Errands: round trips, further sessions
//!        +--> Turn::end: the last mark
//! ```

mod errands;
mod local;
mod marks;
mod ssh;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use sshoal_fleet::{Failure, HostId};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::failures::Ended;
use crate::host::{Orders, aborted};
use crate::plan::{RunPlan, Work};
use crate::worker::Worker;
use sshoal_proto::ExecFate;

pub(crate) use errands::Errands;
pub use errands::{Errand, ErrandDone, ErrandEnd};
pub use local::{time_agent, time_lookup};
pub(crate) use marks::Timing;
pub use marks::{Mark, Passed, TimedLogin, Timings};
pub(crate) use ssh::SshTiming;

/// What the logins of a run measure.
pub struct TimingPlan {
    /// For each host of the run, which machine it is.
    machines: Vec<u32>,
    /// For each host of the run, what follows its login on the same connection.
    errands: Vec<Option<Vec<Errand>>>,
    /// By machine: its logins come one after the other.
    turns: Vec<Semaphore>,
    /// Machines that one of the two clients, ssh or ours, could not log in to, and why.
    failed: Mutex<HashMap<(u32, bool), Failure>>,
    timings: Arc<Timings>,
}

impl TimingPlan {
    /// `machines` says for each host of the run which machine it is: logins to one come one after the other, in the order
    /// of the hosts, and none follows one of the same client that has failed. `errands` says for each what follows its
    /// login on the same connection: after round trips these sessions, or nothing at all. Logins by ssh have none.
    pub fn new(
        machines: Vec<u32>,
        errands: Vec<Option<Vec<Errand>>>,
        timings: Arc<Timings>,
    ) -> TimingPlan {
        let most = machines.iter().max().map_or(0, |last| *last as usize + 1);
        TimingPlan {
            machines,
            errands,
            turns: (0..most).map(|_| Semaphore::new(1)).collect(),
            failed: Mutex::default(),
            timings,
        }
    }

    fn machine(&self, host: u32) -> u32 {
        self.machines.get(host as usize).copied().unwrap_or(0)
    }
}

/// A machine's turn to be logged in to.
pub(crate) struct Turn<'a> {
    plan: &'a TimingPlan,
    host: HostId,
    by_ssh: bool,
    _place: Option<SemaphorePermit<'a>>,
}

impl<'a> Turn<'a> {
    /// Waits for it, if the run measures.
    ///
    /// # Errors
    ///
    /// The host is torn down before; or the machine is one that this client could not log in to.
    pub(crate) async fn take(
        worker: &'a Worker,
        host: HostId,
        orders: &mut Orders,
    ) -> Result<Option<Turn<'a>>, Ended> {
        let Some(plan) = &worker.plan.timing else {
            return Ok(None);
        };
        let machine = plan.machine(host.0);
        let place = match plan.turns.get(machine as usize) {
            None => None,
            Some(turns) => tokio::select! {
                biased;
                // The semaphore is never closed.
                place = turns.acquire() => place.ok(),
                _ = orders.recv() => return Err(aborted(ExecFate::NotSent)),
            },
        };
        let by_ssh = is_by_ssh(&worker.plan, host);
        let failed = plan.failed.lock().unwrap_or_else(PoisonError::into_inner);
        match failed.get(&(machine, by_ssh)) {
            Some(failure) => Err(Ended::before_command(failure.clone())),
            None => Ok(Some(Turn {
                plan,
                host,
                by_ssh,
                _place: place,
            })),
        }
    }

    /// The login is over.
    pub(crate) fn end<T>(self, end: &Result<T, Ended>) {
        self.plan
            .timings
            .note(self.host.0, Instant::now(), Passed::Ended);
        if let Err(Ended {
            failure,
            stranded: false,
            asks: None,
            ..
        }) = end
        {
            let machine = self.plan.machine(self.host.0);
            let failed = self.plan.failed.lock();
            let mut failed = failed.unwrap_or_else(PoisonError::into_inner);
            failed.insert((machine, self.by_ssh), failure.clone());
        }
    }
}

fn is_by_ssh(plan: &RunPlan, host: HostId) -> bool {
    match &plan.work {
        Work::Sessions(hosts) => hosts
            .get(host.0 as usize)
            .is_some_and(|host| host.openssh().is_some()),
        Work::Local(_) => false,
    }
}
