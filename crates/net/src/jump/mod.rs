//! Jump hosts (ssh -J, ProxyJump): one connection to each, shared by all hosts behind it.
//!
//! ```text
//!   fleet: Connect -> connect -> Jump -> connection: login, then driver <--desk--> tunnels of the hosts
//!                                  \--> a further one, once the first has no room for channels
//! ```
//!
//! A jump host is connected when the fleet says so, before the hosts behind it start; jump hosts before it on the
//! way are connected on the occasion. All tasks that meet in one first jump host run in one thread, so that
//! they share its connection without locks.

mod session;
mod tunnel;

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sshoal_fleet::{Failure, FailureKind, JumpEvent, JumpId, Limits};
use sshoal_proto::ExecFate;
use sshoal_wire::reason;
use tokio::sync::{Semaphore, oneshot, watch};
use tracing::Instrument;

use crate::crash::caught;
use crate::dial::{self, LookupTurn};
use crate::failures::{self, Ended};
use crate::host_key_questions::{Asker, HostKeyQuestion};
use crate::link::Link;
use crate::plan::Endpoint;
use crate::proxy;
use crate::trust::UnknownKey;
use crate::worker::{Report, Worker};
use session::JumpSession;
use tunnel::{Desk, NotOpened, Target};

pub(crate) use tunnel::Tunnel;

/// Connections to one jump host, each with room for some 900 channels.
const MAX_CONNECTIONS: usize = 16;

/// What the jump hosts of all threads share: the fleet's limits are for hosts.
#[derive(Clone)]
pub(crate) struct JumpLimits {
    logins: Arc<Semaphore>,
    signatures: Arc<Semaphore>,
}

impl JumpLimits {
    pub(crate) fn new(limits: &Limits) -> Self {
        JumpLimits {
            logins: Arc::new(Semaphore::new(limits.logins as usize)),
            signatures: Arc::new(Semaphore::new(limits.signatures as usize)),
        }
    }
}

/// The jump hosts of one thread.
#[derive(Default)]
pub(crate) struct Jumps(RefCell<HashMap<JumpId, Jump>>);

impl Jumps {
    fn with<T>(&self, jump: JumpId, act: impl FnOnce(&mut Jump) -> T) -> T {
        act(self.0.borrow_mut().entry(jump).or_default())
    }
}

/// A jump host's connections.
#[derive(Default)]
struct Jump {
    /// The desks of those that are logged in, the first to be asked first.
    desks: Vec<Rc<Desk>>,
    /// A login in progress.
    login: Option<Login>,
}

/// How a login ends, for all who wait for it.
type Login = watch::Receiver<Option<Result<(), Failure>>>;

/// Sees to it that the jump host is connected, and tells the fleet.
pub(crate) async fn connect(worker: Rc<Worker>, jump: JumpId) {
    let event = match up(&worker, jump).await {
        Ok(()) => JumpEvent::Up,
        Err(failure) => JumpEvent::Down(failure),
    };
    worker.report(Report::Jump(jump, event));
}

/// A tunnel to an endpoint behind a jump host that is connected.
pub(crate) async fn tunnel(
    worker: &Rc<Worker>,
    jump: JumpId,
    to: &Endpoint,
) -> Result<Tunnel, Ended> {
    let label = &worker.plan.jump(jump).label;
    let target = Target {
        name: to.name.clone(),
        port: to.port,
    };
    loop {
        let desk = desk_with_room(worker, jump).await?;
        let tunnel = desk.open(target.clone());
        match tunnel.opened().await {
            Ok(()) => return Ok(tunnel),
            Err(NotOpened::Lost(failure)) => {
                return Err(Ended::stranded(failure, ExecFate::NotSent));
            }
            Err(NotOpened::Refused(refusal)) => {
                drop(tunnel);
                if refusal.reason_code == reason::OPEN_RESOURCE_SHORTAGE && desk.note_full() {
                    continue;
                }
                let (code, words) = (refusal.reason_code, &refusal.description);
                return Err(failures::tunnel(label, &target.to_string(), code, words).into());
            }
        }
    }
}

/// The first connection with room for another channel; when all are full, a new one.
async fn desk_with_room(worker: &Rc<Worker>, jump: JumpId) -> Result<Rc<Desk>, Ended> {
    let label = &worker.plan.jump(jump).label;
    loop {
        let (desk, connections) = worker.jumps.with(jump, |jump| {
            let with_room = jump.desks.iter().find(|desk| desk.has_room());
            (with_room.cloned(), jump.desks.len())
        });
        if let Some(desk) = desk {
            return Ok(desk);
        }
        match connections {
            // Only the fleet has it connected: with back-off, and once for all.
            0 => {
                let failure = failures::jump_lost(label, "it has not come back yet");
                return Err(Ended::stranded(failure, ExecFate::NotSent));
            }
            MAX_CONNECTIONS.. => {
                let detail = format!("all {connections} connections to jump host {label} are full");
                return Err(Failure::new(FailureKind::Throttled, detail).into());
            }
            _ => login(worker, jump).await?,
        }
    }
}

/// Waits until the jump host is logged in to, beginning that if nobody has.
pub(crate) async fn up(worker: &Rc<Worker>, jump: JumpId) -> Result<(), Failure> {
    match worker.jumps.with(jump, |jump| jump.desks.is_empty()) {
        false => Ok(()),
        true => login(worker, jump).await,
    }
}

/// Waits for a login in progress, or for one that begins now.
async fn login(worker: &Rc<Worker>, jump: JumpId) -> Result<(), Failure> {
    let begin = || {
        let (outcome, login) = watch::channel(None);
        let span = tracing::error_span!("jump", name = worker.plan.jump(jump).label);
        let kept = keep_connection(worker.clone(), jump, outcome);
        tokio::task::spawn_local(kept.instrument(span));
        login
    };
    let mut login = worker
        .jumps
        .with(jump, |jump| jump.login.get_or_insert_with(begin).clone());
    let outcome = login.wait_for(Option::is_some).await;
    // The task gives its sender up only with an outcome, or at the end of the run.
    let outcome = outcome.ok().and_then(|outcome| outcome.clone());
    outcome.unwrap_or_else(|| Err(Failure::new(FailureKind::Lost, "the run is over")))
}

/// One connection to a jump host, from its beginning to its end.
async fn keep_connection(
    worker: Rc<Worker>,
    jump: JumpId,
    outcome: watch::Sender<Option<Result<(), Failure>>>,
) {
    let plan = worker.plan.clone();
    let endpoint = plan.jump(jump);
    // Boxed: a jump host behind another waits for that one's login here.
    let logged_in = caught(log_in(&worker, jump, endpoint)).await;
    let logged_in =
        logged_in.unwrap_or_else(|crash| Err(failures::of_jump(&endpoint.label, &crash)));
    worker.jumps.with(jump, |jump| {
        jump.login = None;
        let desk = logged_in.as_ref().ok().map(JumpSession::desk);
        jump.desks.extend(desk);
    });
    let mut session = match logged_in {
        Err(failure) => {
            outcome.send_replace(Some(Err(failure)));
            return;
        }
        Ok(session) => session,
    };
    outcome.send_replace(Some(Ok(())));
    let end = caught(session.serve()).await;
    let failure = end.unwrap_or_else(|crash| failures::of_jump(&endpoint.label, &crash));
    let failure = session.part_from_proxy(failure).await;
    let desk = session.desk();
    let was_last = worker.jumps.with(jump, |jump| {
        jump.desks.retain(|other| !Rc::ptr_eq(other, &desk));
        jump.desks.is_empty()
    });
    // First the fleet hears of the jump host, then of the hosts behind it.
    if was_last {
        let event = JumpEvent::Down(failure.clone());
        worker.report(Report::Jump(jump, event));
    }
    session.lose(&failure);
}

/// Connects and logs in, each within its deadline.
async fn log_in<'a>(
    worker: &'a Rc<Worker>,
    jump: JumpId,
    endpoint: &'a Endpoint,
) -> Result<JumpSession<'a>, Failure> {
    let label = &endpoint.label;
    if let Some(before) = endpoint.via {
        up(worker, before).await?;
    }
    loop {
        let mut session = begin_login(worker, jump, endpoint).await?;
        let limit = worker.plan.deadlines.login;
        let overdue = || overdue(label, FailureKind::LoginTimeout, "not logged in", limit);
        let logged_in = within(limit, session.log_in(), overdue).await;
        match (logged_in, session.take_unknown_key()) {
            (Ok(()), _) => return Ok(session),
            (Err(failure), None) => return Err(failure),
            (Err(_), Some(unknown)) => {
                drop(session);
                // Accepted, it is known now.
                let answer = ask(worker, jump, unknown).await;
                answer.map_err(|failure| failures::of_jump(label, &failure))?;
            }
        }
    }
}

/// Waits for the user to accept the jump host's key.
async fn ask(worker: &Rc<Worker>, jump: JumpId, unknown: Box<UnknownKey>) -> Result<(), Failure> {
    let (answer, answered) = oneshot::channel();
    let asker = Asker::Jump(jump, answer);
    worker.report(Report::UnknownHostKey(HostKeyQuestion { asker, unknown }));
    let over = || Failure::new(FailureKind::Lost, "the run is over");
    answered.await.unwrap_or_else(|_| Err(over()))
}

async fn begin_login<'a>(
    worker: &'a Rc<Worker>,
    jump: JumpId,
    endpoint: &'a Endpoint,
) -> Result<JumpSession<'a>, Failure> {
    let label = &endpoint.label;
    // The semaphore is never closed.
    let turn = worker.jump_limits.logins.clone().acquire_owned().await.ok();
    let (link, round_trip) = connection(worker, endpoint).await?;
    let named = |failure: Failure| failures::of_jump(label, &failure);
    let algorithms = endpoint.trust.ordered_algorithms().await.map_err(named)?;
    JumpSession::begin(worker, jump, link, round_trip, turn, algorithms).map_err(named)
}

/// TCP, a ProxyCommand, or the tunnel through the jump host before; and how long that took, at least a round trip.
async fn connection(worker: &Rc<Worker>, endpoint: &Endpoint) -> Result<(Link, Duration), Failure> {
    let label = &endpoint.label;
    let deadlines = &worker.plan.deadlines;
    let named = |failure: Failure| failures::of_jump(label, &failure);
    let overdue = || {
        overdue(
            label,
            FailureKind::ConnectTimeout,
            "no connection",
            deadlines.connect,
        )
    };
    if let Some(command) = &endpoint.proxy_command {
        let connecting = Instant::now();
        let connect = async {
            let proxy = proxy::connect(worker, endpoint, command).await;
            proxy.map_err(named)
        };
        let proxy = within(deadlines.connect, connect, overdue).await?;
        return Ok((Link::Proxy(Box::new(proxy)), connecting.elapsed()));
    }
    let Some(before) = endpoint.via else {
        let lookup = dial::look_up(endpoint, LookupTurn::of_jump());
        let late = || self::overdue(label, FailureKind::Resolve, "no address", deadlines.lookup);
        let lookup = async { lookup.await.map_err(named) };
        let addresses = within(deadlines.lookup, lookup, late).await?;
        let connecting = Instant::now();
        let connect = async {
            dial::connect(&addresses, &endpoint.tcp)
                .await
                .map_err(named)
        };
        let link = within(deadlines.connect, connect, overdue).await?;
        return Ok((link, connecting.elapsed()));
    };
    let connecting = Instant::now();
    let connect = async {
        // A loss is the other jump host's, and names it.
        tunnel(worker, before, endpoint)
            .await
            .map_err(|ended| match ended.stranded {
                true => ended.failure,
                false => named(ended.failure),
            })
    };
    let tunnel = within(deadlines.connect, connect, overdue).await?;
    Ok((Link::Tunnel(tunnel), connecting.elapsed()))
}

async fn within<T>(
    limit: Option<Duration>,
    work: impl Future<Output = Result<T, Failure>>,
    overdue: impl FnOnce() -> Failure,
) -> Result<T, Failure> {
    match limit {
        None => work.await,
        Some(limit) => match tokio::time::timeout(limit, work).await {
            Ok(result) => result,
            Err(_) => Err(overdue()),
        },
    }
}

fn overdue(label: &str, kind: FailureKind, what: &str, limit: Option<Duration>) -> Failure {
    let limit = limit.unwrap_or_default();
    Failure::new(kind, format!("jump host {label}: {what} within {limit:?}"))
}
