//! What the hosts of one thread share.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use sshoal_fleet::{Event, Failure, Gate, HostId, JumpEvent, JumpId, KillVerdict, Phase};
use sshoal_proto::Stream;
use sshoal_transfer::Tally;
use tokio::runtime::Builder;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::LocalSet;
use tracing::Instrument;

use crate::agent::KeyAddition;
use crate::crash;
use crate::failures::Ended;
use crate::guess::AdaptedSettings;
use crate::hints;
use crate::host::{self, Orders};
use crate::host_key_questions::HostKeyQuestion;
use crate::jump::{self, JumpLimits, Jumps};
use crate::keep::{Kept, More};
use crate::known_hosts::NewKeys;
use crate::login::LockedKey;
use crate::observer::Confirmation;
use crate::plan::{Endpoint, RunPlan};
use crate::runs::Intent;
use crate::server_cache::{KnownServer, ServerCache};
use crate::shortcuts::Doubts;
use crate::transfer::{LaneLimits, TransferPlan};
use crate::warm::{Keepers, Sharing, WarmBerth};

/// Octets read at a time. sshd writes up to 256 KiB; less only costs more system calls.
const READ_SIZE: usize = 256 * 1024;
/// Octets of output that all hosts together may have under way to the observer.
const OUTPUT_BUDGET: usize = 64 * 1024 * 1024;

/// What all threads of a run share.
#[derive(Clone)]
pub(crate) struct Shared {
    plan: Arc<RunPlan>,
    reports: mpsc::UnboundedSender<Report>,
    output_budget: Arc<Semaphore>,
    servers: Arc<ServerCache>,
    new_keys: Arc<NewKeys>,
    jump_limits: JumpLimits,
    lane_limits: LaneLimits,
}

/// One thread's share: idle connections own no read buffer, they borrow this one.
pub(crate) struct Worker {
    pub(crate) plan: Arc<RunPlan>,
    reports: mpsc::UnboundedSender<Report>,
    /// Octets of output that may still be sent to the observer.
    output_budget: Arc<Semaphore>,
    pub(crate) buffer: RefCell<Vec<u8>>,
    /// What servers are, as the last runs saw them.
    pub(crate) servers: Arc<ServerCache>,
    /// Which keys were accepted of hosts nothing was known of.
    pub(crate) new_keys: Arc<NewKeys>,
    pub(crate) adapted: AdaptedSettings,
    /// How many logins share this thread at a time, at most.
    pub(crate) crowd: u32,
    /// The window of each session that runs a command, octets.
    session_window: u32,
    /// Which servers do not bear which shortcuts.
    pub(crate) doubts: Doubts,
    pub(crate) jumps: Jumps,
    pub(crate) jump_limits: JumpLimits,
    pub(crate) lane_limits: LaneLimits,
    /// Whoever keeps the connections of this thread's hosts.
    kept: RefCell<HashMap<HostId, Rc<dyn Kept>>>,
    /// Octets of output and of errors that have come of commands that outlive their connections.
    come: RefCell<HashMap<HostId, [u64; 2]>>,
    /// Who keeps connections for the run: those with streams in the coordinator's thread alone.
    pub(crate) keepers: Keepers,
}

/// What tasks tell the coordinator.
pub(crate) enum Report {
    /// What happened to a host, for the fleet.
    Host(HostId, Event),
    /// What happened to a jump host, for the fleet.
    Jump(JumpId, JumpEvent),
    /// What the server with this host key is, which the cache did not know.
    Learned(String, KnownServer),
    /// For the user to read.
    Notice(String),
    /// For the user to do.
    Demand(String),
    /// For the user to read, from a server: the host's, or a jump host's.
    Banner(Option<HostId>, Banner),
    /// The user is to be asked for this key's passphrase.
    Unlock(Arc<LockedKey>),
    /// The user is to be asked about an unknown host key.
    UnknownHostKey(HostKeyQuestion),
    /// What the user said to the host keys that were shown.
    HostKeysAnswered(Confirmation),
    /// The key is to be added to the agent.
    AddKey(Arc<KeyAddition>),
    /// For the observer; the permit is given back when the output is out of the way.
    Output(Output),
    /// A command has started that talks to the user's terminal.
    TerminalLent,
    /// Whether a command that had to end is gone.
    Killed(HostId, KillVerdict),
    /// What became of a host's files.
    Transferred(HostId, Tally),
    /// Whether the next batch may begin, and if not, why.
    BatchAgreed(Result<(), String>),
    /// A host that is parked is needed now.
    Resumed(HostId),
    /// A host that is parked is not needed any more.
    Dismissed(HostId),
    /// No host is needed any more.
    Abandoned,
    /// New host keys are to be recorded before the run is over.
    HostKeysDue,
}

/// What a server says before a login (RFC 4252 section 5.4).
pub(crate) struct Banner {
    /// The host or jump host as the user named it.
    pub(crate) from: String,
    pub(crate) text: Vec<u8>,
}

/// A piece of a command's output.
pub(crate) struct Output {
    pub(crate) host: HostId,
    pub(crate) stream: Stream,
    pub(crate) octets: Vec<u8>,
    pub(crate) _permit: Option<OwnedSemaphorePermit>,
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
    /// The command's time is over: have it end, then tear everything down.
    Terminate,
}

impl Shared {
    pub(crate) fn new(plan: Arc<RunPlan>, reports: mpsc::UnboundedSender<Report>) -> Self {
        Shared {
            reports,
            output_budget: Arc::new(Semaphore::new(OUTPUT_BUDGET)),
            servers: Arc::new(ServerCache::read(plan.server_cache.as_deref())),
            new_keys: Arc::default(),
            jump_limits: JumpLimits::new(&plan.limits),
            lane_limits: LaneLimits::new(&plan.limits),
            plan,
        }
    }
}

impl Worker {
    pub(crate) fn new(shared: Shared) -> Self {
        Worker {
            crowd: shared.plan.logins_a_worker(),
            session_window: shared.plan.window_of(shared.plan.work.hosts()),
            plan: shared.plan,
            reports: shared.reports,
            output_budget: shared.output_budget,
            buffer: RefCell::new(vec![0; READ_SIZE]),
            servers: shared.servers,
            new_keys: shared.new_keys,
            adapted: AdaptedSettings::default(),
            doubts: Doubts::default(),
            jumps: Jumps::default(),
            jump_limits: shared.jump_limits,
            lane_limits: shared.lane_limits,
            kept: RefCell::default(),
            come: RefCell::default(),
            keepers: Keepers::default(),
        }
    }

    /// One that talks to keepers besides.
    pub(crate) fn with_keepers(shared: Shared, keepers: Keepers) -> Self {
        Worker {
            keepers,
            ..Worker::new(shared)
        }
    }

    /// Whoever keeps the host's connections.
    pub(crate) fn kept(&self, host: HostId) -> Option<Rc<dyn Kept>> {
        self.kept.borrow().get(&host).cloned()
    }

    /// Whoever keeps its connections from now on, if the run keeps any.
    pub(crate) fn attend(self: &Rc<Self>, host: HostId) -> Result<Option<Rc<dyn Kept>>, Failure> {
        let (Some(keeper), None) = (&self.plan.keeper, self.kept(host)) else {
            return Ok(self.kept(host));
        };
        let kept = keeper.attend(host, More::new(self, host))?;
        self.kept.borrow_mut().insert(host, kept.clone());
        Ok(Some(kept))
    }

    /// Nobody keeps its connections any more.
    pub(crate) fn let_go(&self, host: HostId) {
        self.kept.borrow_mut().remove(&host);
    }

    /// The run is over. They hold this worker, and it holds them.
    pub(crate) fn let_all_go(&self) {
        let kept = self.kept.take();
        drop(kept);
    }

    /// Octets of output and of errors that have come of a command that outlives its connection; `None` if it is not known to have
    /// begun.
    pub(crate) fn come(&self, host: HostId) -> Option<[u64; 2]> {
        self.come.borrow().get(&host).copied()
    }

    /// Whether such a command is what the host runs.
    pub(crate) fn is_announced(&self, host: HostId) -> bool {
        self.come.borrow().contains_key(&host)
    }

    pub(crate) fn has_come(&self, host: HostId, stream: Stream, octets: usize) {
        let mut come = self.come.borrow_mut();
        let [out, err] = come.entry(host).or_default();
        *match stream {
            Stream::Stdout => out,
            Stream::Stderr => err,
        } += octets as u64;
    }

    /// The window of each channel of a connection to a host that is so far away, octets.
    pub(crate) fn window(&self, endpoint: &Endpoint, round_trip: Duration) -> u32 {
        match &self.plan.transfer {
            None => self.session_window.min(endpoint.settings.window),
            Some(_) => TransferPlan::window(self.plan.hosts_at_once(), round_trip),
        }
    }

    /// Where a host is kept for this thread, as far as anybody knows.
    pub(crate) fn berth(&self, host: HostId) -> Option<WarmBerth> {
        let berth = self.plan.berth(host)?;
        self.keepers.stream(host, berth).map(|_| berth)
    }

    /// Who has a host's connection shared, as far as anybody knows.
    pub(crate) fn sharing(&self, host: HostId) -> Option<Arc<dyn Sharing>> {
        let sharing = self.plan.sharing(host)?;
        (!self.keepers.is_cold(host)).then(|| sharing.clone())
    }

    /// Begins a task.
    pub(crate) fn take(self: &Rc<Self>, order: Order) {
        match order {
            Order::Attempt(host, orders) => {
                let span = tracing::error_span!("host", name = self.plan.label(host));
                let attempt = host::attempt(self.clone(), host, orders);
                tokio::task::spawn_local(attempt.instrument(span));
            }
            Order::Connect(jump) => {
                tokio::task::spawn_local(jump::connect(self.clone(), jump));
            }
        }
    }

    /// Reports what a thread that is gone would have been told to begin.
    pub(crate) fn decline(&self, order: Order) {
        let failure = crash::failure("its thread is gone");
        self.report(match order {
            Order::Attempt(host, _) => Report::Host(host, Event::Crashed(failure)),
            Order::Connect(jump) => Report::Jump(jump, JumpEvent::Down(failure)),
        });
    }

    /// What is to be on record before the host's command leaves.
    pub(crate) fn intent(&self, host: HostId) -> Option<Intent> {
        let journal = self.plan.journal.as_ref()?;
        Some(Intent::new(journal.clone(), host))
    }

    /// Waits until it is on record that the host's command is about to be started.
    ///
    /// # Errors
    ///
    /// That cannot be noted: it must not be started.
    pub(crate) async fn record(&self, host: HostId) -> Result<(), Ended> {
        match self.intent(host) {
            Some(intent) => intent.recorded().await.map_err(Ended::before_command),
            None => Ok(()),
        }
    }

    /// Tells the fleet that a host is in this phase now.
    pub(crate) fn enter(&self, host: HostId, phase: Phase) {
        tracing::trace!(%phase, "entered");
        self.report(Report::Host(host, Event::Entered(phase)));
    }

    /// Hands output to the observer, within the budget all hosts share: a slow reader slows the senders.
    pub(crate) async fn deliver(&self, host: HostId, stream: Stream, octets: Vec<u8>) {
        let permit = self.room(octets.len()).await;
        let output = Output {
            host,
            stream,
            octets,
            _permit: permit,
        };
        self.report(Report::Output(output));
    }

    /// Waits until so many octets have their place in the budget, which is never closed.
    pub(crate) fn room(
        &self,
        octets: usize,
    ) -> impl Future<Output = Option<OwnedSemaphorePermit>> + 'static {
        let turn = self.output_budget.clone().acquire_many_owned(octets as u32);
        async { turn.await.ok() }
    }

    /// The same without waiting; those that wait come first.
    pub(crate) fn room_now(&self, octets: usize) -> Option<OwnedSemaphorePermit> {
        let budget = self.output_budget.clone();
        budget.try_acquire_many_owned(octets as u32).ok()
    }

    /// Tells the coordinator. Without a coordinator there is nobody left to tell.
    pub(crate) fn report(&self, report: Report) {
        let _ = self.reports.send(report);
    }
}

/// What a thread is to begin.
pub(crate) enum Order {
    /// An attempt at a host.
    Attempt(HostId, Orders),
    /// A login to a jump host.
    Connect(JumpId),
}

/// A thread that performs hosts. Ends when it is dropped and its hosts have ended.
pub(crate) struct WorkerThread {
    orders: mpsc::UnboundedSender<Order>,
}

impl WorkerThread {
    pub(crate) fn start(shared: Shared) -> io::Result<Self> {
        let (orders, mut receiver) = mpsc::unbounded_channel();
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let gives_way = shared.plan.gives_way();
        std::thread::Builder::new()
            .name("hosts".to_owned())
            .spawn(move || {
                if gives_way {
                    hints::lengthen_time_slice();
                }
                LocalSet::new().block_on(&runtime, async move {
                    let worker = Rc::new(Worker::new(shared));
                    while let Some(order) = receiver.recv().await {
                        worker.take(order);
                    }
                    worker.let_all_go();
                });
            })?;
        Ok(WorkerThread { orders })
    }

    /// Gives the order back if the thread is gone: it ends by itself only with this sender, so it has panicked.
    pub(crate) fn take(&self, order: Order) -> Result<(), Order> {
        self.orders.send(order).map_err(|refused| refused.0)
    }
}
