//! What the hosts of one thread share.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use sshoal_fleet::{Event, Gate, HostId, Phase};
use sshoal_proto::Stream;
use tokio::runtime::Builder;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::LocalSet;

use crate::guess::AdaptedSettings;
use crate::host::{self, Orders};
use crate::login::LockedKey;
use crate::plan::RunPlan;
use crate::server_cache::{KnownServer, ServerCache};

/// Octets read at a time. sshd writes up to 256 KiB; less only costs more system calls.
const READ_SIZE: usize = 256 * 1024;
/// Octets of output that all hosts together may have under way to the observer.
pub(crate) const OUTPUT_BUDGET: usize = 64 * 1024 * 1024;

/// One thread's share: idle connections own no read buffer, they borrow this one.
pub(crate) struct Worker {
    pub(crate) plan: Arc<RunPlan>,
    pub(crate) reports: mpsc::UnboundedSender<Report>,
    /// Octets of output that may still be sent to the observer.
    pub(crate) output_budget: Arc<Semaphore>,
    pub(crate) buffer: RefCell<Vec<u8>>,
    /// What servers are, as the last runs saw them.
    pub(crate) servers: Arc<ServerCache>,
    pub(crate) adapted: AdaptedSettings,
}

/// What a host's task tells the coordinator.
pub(crate) struct Report {
    pub(crate) host: HostId,
    pub(crate) what: What,
}

/// The kinds of report.
pub(crate) enum What {
    /// For the fleet.
    Event(Event),
    /// What the server with this host key is, which the cache did not know.
    Learned(String, KnownServer),
    /// For the user to read.
    Notice(String),
    /// The user is to be asked for this key's passphrase.
    Unlock(Arc<LockedKey>),
    /// For the observer; the permit is given back when the output is out of the way.
    Output(Output),
    /// A command has started that talks to the user's terminal.
    TerminalLent,
}

/// A piece of a command's output.
pub(crate) struct Output {
    pub(crate) host: HostId,
    pub(crate) stream: Stream,
    pub(crate) octets: Vec<u8>,
    pub(crate) _permit: OwnedSemaphorePermit,
}

/// What the coordinator tells a host's task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Control {
    /// Pass the gate.
    Admit(Gate),
    /// Tear everything down; the reason is known.
    Abort,
    /// Signal the command and go on.
    Interrupt,
}

impl Worker {
    pub(crate) fn new(
        plan: Arc<RunPlan>,
        reports: mpsc::UnboundedSender<Report>,
        output_budget: Arc<Semaphore>,
        servers: Arc<ServerCache>,
    ) -> Self {
        Worker {
            plan,
            reports,
            output_budget,
            buffer: RefCell::new(vec![0; READ_SIZE]),
            servers,
            adapted: AdaptedSettings::default(),
        }
    }

    /// The same for another thread: its own buffer, the same coordinator.
    pub(crate) fn sibling(&self) -> Self {
        Worker::new(
            self.plan.clone(),
            self.reports.clone(),
            self.output_budget.clone(),
            self.servers.clone(),
        )
    }

    /// Tells the fleet that a host is in this phase now.
    pub(crate) fn enter(&self, host: HostId, phase: Phase) {
        self.report(host, What::Event(Event::Entered(phase)));
    }

    /// Hands output to the observer, within the budget all hosts share: a slow reader slows the senders.
    pub(crate) async fn deliver(&self, host: HostId, stream: Stream, octets: Vec<u8>) {
        let budget = self.output_budget.clone();
        // The budget is never closed.
        let Ok(permit) = budget.acquire_many_owned(octets.len() as u32).await else {
            return;
        };
        let output = Output {
            host,
            stream,
            octets,
            _permit: permit,
        };
        self.report(host, What::Output(output));
    }

    /// Tells the coordinator. Without a coordinator there is nobody left to tell.
    pub(crate) fn report(&self, host: HostId, what: What) {
        let _ = self.reports.send(Report { host, what });
    }
}

/// A thread that performs hosts. Ends when it is dropped and its hosts have ended.
pub(crate) struct WorkerThread {
    attempts: mpsc::UnboundedSender<(HostId, Orders)>,
}

impl WorkerThread {
    pub(crate) fn start(worker: Worker) -> io::Result<Self> {
        let (attempts, mut receiver) = mpsc::unbounded_channel();
        let runtime = Builder::new_current_thread().enable_all().build()?;
        std::thread::Builder::new()
            .name("hosts".to_owned())
            .spawn(move || {
                LocalSet::new().block_on(&runtime, async move {
                    let worker = Rc::new(worker);
                    while let Some((host, orders)) = receiver.recv().await {
                        tokio::task::spawn_local(host::attempt(worker.clone(), host, orders));
                    }
                });
            })?;
        Ok(WorkerThread { attempts })
    }

    pub(crate) fn attempt(&self, host: HostId, orders: Orders) {
        // The thread receives for as long as this sender is there.
        let _ = self.attempts.send((host, orders));
    }
}
