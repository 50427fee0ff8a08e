//! One attempt at one host, from its name to the end of its command.

use std::rc::Rc;
use std::time::{Duration, Instant};

use sshoal_fleet::{Event as FleetEvent, Failure, FailureKind, Gate, HostId, Outcome, Phase};
use sshoal_proto::ExecFate;
use tokio::sync::mpsc;

use crate::crash::{Watch, caught};
use crate::dial::{self, LookupTurn};
use crate::each;
use crate::failures::{self, Ended};
use crate::host_key_questions::{Asker, HostKeyQuestion};
use crate::jump;
use crate::link::Link;
use crate::openssh;
use crate::plan::{HostPlan, NativePlan, Work};
use crate::proxy;
use crate::session::HostSession;
use crate::timing::{Passed, Timing, Turn};
use crate::warm;
use crate::worker::{Control, Report, Worker};

/// Where a host's task gets its orders.
pub(crate) type Orders = mpsc::UnboundedReceiver<Control>;

/// Runs one attempt and reports its end.
pub(crate) async fn attempt(worker: Rc<Worker>, host: HostId, mut orders: Orders) {
    let watch = Watch::begin(&worker, host);
    let end = match begin_keeping(&worker, host) {
        Ok(true) => caught(run(&worker, host, &mut orders)).await,
        Ok(false) => return watch.end(FleetEvent::Parked),
        Err(failure) => Ok(Err(failure.into())),
    };
    if parks(&worker, host, &end) {
        return watch.end(FleetEvent::Parked);
    }
    let event = match end {
        Ok(Err(Ended {
            asks: Some(unknown),
            ..
        })) => {
            let asker = Asker::Host(host);
            worker.report(Report::UnknownHostKey(HostKeyQuestion { asker, unknown }));
            FleetEvent::Held
        }
        Ok(end) => {
            if let Err(Ended { failure, fate, .. }) = &end {
                tracing::warn!(kind = %failure.kind, detail = failure.detail, ?fate, "failed");
                if let Some(journal) = &worker.plan.journal
                    && fate.safe_to_resend()
                    // One that outlives its connection runs, whatever became of an attempt to reach it again.
                    && !worker.is_announced(host)
                {
                    journal.note_unsent(host);
                }
            }
            ending(end)
        }
        Err(failure) => FleetEvent::Crashed(failure),
    };
    watch.end(event);
}

/// Whether the host is to be logged in to now: where connections are kept it may have to wait until somebody needs it.
fn begin_keeping(worker: &Rc<Worker>, host: HostId) -> Result<bool, Failure> {
    match worker.attend(host)? {
        Some(kept) => kept.is_wanted(),
        None => Ok(true),
    }
}

/// Whether the attempt's end is not the host's, for whoever keeps its connections.
fn parks(worker: &Worker, host: HostId, end: &Result<Result<Outcome, Ended>, Failure>) -> bool {
    let Some(kept) = worker.kept(host) else {
        return false;
    };
    let failure = match end {
        Ok(Ok(_)) => None,
        // The user is asked, and the host comes back with the answer or not at all.
        Ok(Err(Ended { asks: Some(_), .. })) if kept.may_ask() => return false,
        Ok(Err(ended)) => Some(&ended.failure),
        Err(crash) => Some(crash),
    };
    let parks = kept.parks(failure);
    if !parks {
        worker.let_go(host);
    }
    parks
}

async fn run(worker: &Rc<Worker>, host: HostId, orders: &mut Orders) -> Result<Outcome, Ended> {
    let turn = Turn::take(worker, host, orders).await?;
    let end = perform(worker, host, orders).await;
    if let Some(turn) = turn {
        turn.end(&end);
    }
    end
}

async fn perform(worker: &Rc<Worker>, host: HostId, orders: &mut Orders) -> Result<Outcome, Ended> {
    let index = host.0 as usize;
    match &worker.plan.work {
        Work::Sessions(hosts) => match &hosts[index] {
            HostPlan::Native(plan) => {
                if let Some(berth) = worker.berth(host) {
                    return warm::run(worker, host, plan, berth, orders).await;
                }
                if let Some(sharing) = worker.sharing(host) {
                    return warm::transfer(worker, host, plan, sharing, orders).await;
                }
                let mut attempt = Attempt {
                    worker,
                    host,
                    plan,
                    orders,
                };
                attempt.run().await
            }
            HostPlan::OpenSsh(plan) if worker.plan.transfer.is_some() => {
                Err(Ended::before_command(openssh::copies_nothing(plan)))
            }
            HostPlan::OpenSsh(plan) => openssh::run(worker, host, plan, orders).await,
        },
        Work::Local(commands) => each::run(worker, host, &commands[index], orders).await,
    }
}

/// What the fleet is told of an attempt's end.
fn ending(end: Result<Outcome, Ended>) -> FleetEvent {
    match end {
        Ok(outcome) => FleetEvent::Finished(outcome),
        Err(Ended {
            failure,
            fate,
            is_cut: true,
            ..
        }) => FleetEvent::Cut {
            failure,
            fate: failures::fate(fate),
        },
        Err(Ended {
            failure,
            fate,
            stranded: true,
            ..
        }) => FleetEvent::Stranded {
            failure,
            fate: failures::fate(fate),
        },
        Err(Ended { failure, fate, .. }) => FleetEvent::Failed {
            failure,
            safe_to_retry: fate.safe_to_resend(),
            fate: failures::fate(fate),
        },
    }
}

struct Attempt<'w, 'a> {
    worker: &'w Rc<Worker>,
    host: HostId,
    plan: &'w NativePlan,
    orders: &'a mut Orders,
}

impl<'w> Attempt<'w, '_> {
    /// The phases, in order.
    async fn run(&mut self) -> Result<Outcome, Ended> {
        let mut session = caught(self.begin()).await??;
        session.run(self.orders).await
    }

    /// Everything before the first octet that is sent.
    async fn begin(&mut self) -> Result<Box<HostSession<'w>>, Ended> {
        let timing = Timing::begin(self.worker, self.host);
        let (link, round_trip) = self.connect(timing.as_ref()).await?;
        if let Some(transfer) = &self.worker.plan.transfer {
            transfer.control_congestion(&link, round_trip);
        }
        self.pass(Gate::Login).await?;
        self.worker.enter(self.host, Phase::Login);
        // The command may leave with the login, so its gate comes first; it only closes when interrupted.
        self.pass(Gate::Session).await?;
        let algorithms = self.plan.endpoint.trust.ordered_algorithms();
        let algorithms = self.unless_aborted(algorithms).await?;
        let session = HostSession::begin(
            self.worker,
            self.host,
            self.plan,
            link,
            round_trip,
            algorithms,
            timing,
        )?;
        Ok(Box::new(session))
    }

    /// Connects directly, by a ProxyCommand or through the jump host; also tells how long that took, at least a round trip.
    async fn connect(&mut self, timing: Option<&Timing>) -> Result<(Link, Duration), Ended> {
        let endpoint = &self.plan.endpoint;
        if let Some(command) = &endpoint.proxy_command {
            self.worker.enter(self.host, Phase::Connect);
            let connecting = Instant::now();
            let proxy = proxy::connect(self.worker, endpoint, command);
            let proxy = self.unless_aborted(proxy).await?;
            pass_timing(timing, Passed::Connected(None));
            return Ok((Link::Proxy(Box::new(proxy)), connecting.elapsed()));
        }
        let Some(jump) = endpoint.via else {
            let turn = match LookupTurn::at_once(endpoint) {
                Some(turn) => turn,
                None => {
                    let queued = Report::Host(self.host, FleetEvent::Queued);
                    self.worker.report(queued);
                    let turn = LookupTurn::awaited(endpoint);
                    let turn = self.unless_aborted(async { Ok::<_, Ended>(turn.await) });
                    let turn = turn.await?;
                    self.worker.enter(self.host, Phase::Lookup);
                    turn
                }
            };
            let lookup = dial::look_up(endpoint, turn);
            let addresses = self.unless_aborted(lookup).await?;
            pass_timing(timing, Passed::LookedUp(addresses.len()));
            self.worker.enter(self.host, Phase::Connect);
            let connecting = Instant::now();
            let mut tried = Vec::new();
            let link = dial::connect_telling(&addresses, &endpoint.tcp, &mut tried);
            let link = self.unless_aborted(link).await;
            if let Some(timing) = timing {
                timing.connected(tried);
            }
            return Ok((link?, connecting.elapsed()));
        };
        // The jump host looks the name up.
        self.worker.enter(self.host, Phase::Connect);
        let connecting = Instant::now();
        if self.worker.plan.is_warm(self.host) {
            // The fleet has not had it connected for a host that was kept.
            self.unless_aborted(jump::up(self.worker, jump)).await?;
        }
        let tunnel = jump::tunnel(self.worker, jump, endpoint);
        let tunnel = self.unless_aborted(tunnel).await?;
        pass_timing(timing, Passed::Connected(None));
        Ok((Link::Tunnel(tunnel), connecting.elapsed()))
    }

    async fn pass(&mut self, gate: Gate) -> Result<(), Ended> {
        pass(self.worker, self.host, self.orders, gate).await
    }

    /// Does `work`, unless the fleet wants the host torn down before it is done.
    async fn unless_aborted<T, E: Into<Ended>>(
        &mut self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Ended> {
        tokio::select! {
            biased;
            result = work => result.map_err(E::into),
            _ = self.orders.recv() => Err(aborted(ExecFate::NotSent)),
        }
    }
}

fn pass_timing(timing: Option<&Timing>, what: Passed) {
    if let Some(timing) = timing {
        timing.pass(what);
    }
}

/// Waits at a gate.
pub(crate) async fn pass(
    worker: &Worker,
    host: HostId,
    orders: &mut Orders,
    gate: Gate,
) -> Result<(), Ended> {
    worker.report(Report::Host(host, FleetEvent::Reached(gate)));
    match orders.recv().await {
        Some(Control::Admit(_)) => Ok(()),
        _ => Err(aborted(ExecFate::NotSent)),
    }
}

/// The answer to an interruption before the command is known to run.
pub(crate) fn interrupted(fate: ExecFate) -> Ended {
    let detail = match fate {
        ExecFate::NotSent => "interrupted before the command was sent",
        _ => "interrupted while the command was being sent; whether it ran is not known",
    };
    Ended::new(Failure::new(FailureKind::Lost, detail), fate)
}

/// The answer to an abort: the fleet has its own reason, and only wants the command's fate.
pub(crate) fn aborted(fate: ExecFate) -> Ended {
    let failure = Failure::new(FailureKind::Lost, "stopped by this side");
    Ended::new(failure, fate)
}
