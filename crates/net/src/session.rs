//! One host's connection and its one session: login, command, output, status.

mod ends;
mod state;

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use sshoal_fleet::{Failure, FailureKind, Gate, HostId, Outcome};
use sshoal_proto::{Connection, ExecFate, HostKeyQuestion, LocalChannel};

use tokio::sync::OwnedSemaphorePermit;
use tracing::Instrument;

use crate::agent::AgentForwarding;
use crate::announcement::Announcement;
use crate::crash::caught;
use crate::drive::{Alarm, Broken, Drive, sleep_until};
use crate::failures::Ended;
use crate::guess;
use crate::host::{Orders, aborted};
use crate::host_key_update::HostKeyUpdate;
use crate::input::Feeder;
use crate::keep::{Keeping, Kept};
use crate::kill::{KillOrder, Killing};
use crate::link::Link;
use crate::login::Login;
use crate::outbox::Outbox;
use crate::plan::NativePlan;
use crate::shortcuts::Shortcuts;
use crate::timing::{Errands, Timing};
use crate::transfer::{LaneId, Lanes, Transfer};
use crate::trial::Trial;
use crate::warm::{KEPT, SharedConnection, goes_cold};
use crate::window::WindowChanges;
use crate::worker::{Control, Worker};

/// How long a server may take to prove host keys that are new after its command has ended.
const PROOF_PATIENCE: Duration = Duration::from_secs(1);

/// A host's connection, and what came of its session so far.
pub(crate) struct HostSession<'a> {
    drive: Drive,
    /// Standard input, if the command reads any.
    feeder: Option<Feeder>,
    window: WindowChanges,
    /// For what the connection has to do by itself.
    alarm: Alarm,
    state: State<'a>,
}

/// All but the octets on their way.
struct State<'a> {
    worker: &'a Rc<Worker>,
    host: HostId,
    plan: &'a NativePlan,
    channel: LocalChannel,
    /// Whether the connection is somebody else's, who has logged in.
    is_shared: bool,
    /// The server's address, where this side knows it.
    peer: Option<SocketAddr>,
    login: Login<'a>,
    shortcuts: Shortcuts,
    host_keys: Option<HostKeyUpdate<'a>>,
    /// Until when a server that owes a proof of its keys is waited for, once the command has ended.
    proof_by: Option<Instant>,
    /// Whether the server confirmed that the command started: before, nothing of a pipe may be taken.
    started: bool,
    pty_refused: bool,
    outbox: Outbox,
    /// What must come before the output, if the command outlives its connection.
    announcement: Option<Box<Announcement>>,
    /// Files to the host or from it, in place of a command.
    transfer: Option<Box<Transfer>>,
    /// Further connections for it, from when it has begun.
    lanes: Option<Box<Lanes<'a>>>,
    /// The host key that was shown, here or to whoever shares the connection; for transfers only.
    host_key: Option<Rc<HostKeyQuestion>>,
    /// How long connecting took, at least a round trip.
    round_trip: Duration,
    /// What is measured in place of a command.
    trial: Option<Box<Trial>>,
    /// When what was passed, if the login is measured.
    timing: Option<Timing>,
    /// What follows it then.
    errands: Option<Box<Errands>>,
    /// What the connection is kept for, in place of a command.
    keeping: Option<Box<Keeping>>,
    /// The agent's channels, if it is forwarded.
    forwarding: Option<Box<AgentForwarding>>,
    /// Octets handed on that the server has not been told of.
    delivered: usize,
    /// Why the host failed, decided here rather than by the connection.
    failure: Option<Failure>,
    /// How the command ended, as soon as the server has said so.
    outcome: Option<Outcome>,
    /// Whether there is no more output.
    ended: bool,
    closed: bool,
    /// The fleet waits for the session's end: nothing may hold it up.
    torn_down: bool,
    /// When a command that was told to end is waited for no longer.
    last_moment: Option<Instant>,
    /// How far its end is, if that is looked after.
    killing: Option<Box<Killing>>,
}

impl<'a> HostSession<'a> {
    /// On a connection that is to be made.
    pub(crate) fn begin(
        worker: &'a Rc<Worker>,
        host: HostId,
        plan: &'a NativePlan,
        link: Link,
        round_trip: Duration,
        host_key_algorithms: Vec<&'static str>,
        timing: Option<Timing>,
    ) -> Result<Self, Ended> {
        let opened = guess::opening(
            &plan.endpoint,
            worker,
            round_trip,
            worker.window(&plan.endpoint, round_trip),
            host_key_algorithms,
        );
        let unusable =
            |why: String| Ended::before_command(Failure::new(FailureKind::NoCommonAlgorithm, why));
        let mut connection = Connection::new(opened.settings, opened.opening, Instant::now())
            .map_err(|error| unusable(error.to_string()))?;
        let keeper = worker.plan.keeper.as_ref();
        let keeping = keeper.map(|_| Box::new(Keeping::of(link.peer_address())));
        let channel = match &keeping {
            None => connection.open_session(plan.request_after(worker.come(host))),
            Some(_) => Ok(LocalChannel::REFUSED),
        };
        let channel = channel.map_err(|error| unusable(error.to_string()))?;
        let peer = plan.endpoint.trust.peer(&link);
        let mut drive = Drive::new(connection, link);
        drive.records(worker.intent(host));
        let mut session = HostSession::with(worker, host, plan, drive, channel, round_trip);
        let state = &mut session.state;
        (state.peer, state.shortcuts) = (peer, opened.shortcuts);
        state.errands = timing.as_ref().and_then(Timing::errands);
        (state.timing, state.keeping) = (timing, keeping);
        Ok(session)
    }

    /// A transfer on a connection that somebody else has logged in.
    pub(crate) fn share(
        worker: &'a Rc<Worker>,
        host: HostId,
        plan: &'a NativePlan,
        shared: SharedConnection,
    ) -> Result<Self, Ended> {
        let gone = |why: String| goes_cold(worker, host, format!("{KEPT}: {why}"));
        let SharedConnection {
            socket,
            server,
            round_trip,
            address,
            host_key: (algorithm, blob),
        } = shared;
        let socket = socket
            .set_nonblocking(true)
            .and_then(|()| tokio::net::UnixStream::from_std(socket));
        let link = Link::Shared(socket.map_err(|error| gone(error.to_string()))?);
        let window = worker.window(&plan.endpoint, round_trip);
        let settings = guess::settings_of_shared(&plan.endpoint, worker, window);
        let mut connection = Connection::shared(settings, &server, Instant::now())
            .map_err(|error| gone(error.to_string()))?;
        let channel = connection
            .open_session(plan.request.clone())
            .map_err(|error| gone(error.to_string()))?;
        let drive = Drive::new(connection, link);
        let mut session = HostSession::with(worker, host, plan, drive, channel, round_trip);
        let mut ours = plan.endpoint.trust.algorithms.iter().copied();
        // By its name alone a further connection may come to another server that has the same key.
        let is_one_place = address.is_some() || plan.endpoint.via.is_some();
        let algorithm = ours.find(|ours| is_one_place && *ours == algorithm);
        let state = &mut session.state;
        state.host_key = algorithm.map(|algorithm| Rc::new(HostKeyQuestion { algorithm, blob }));
        (state.is_shared, state.peer) = (true, address);
        Ok(session)
    }

    fn with(
        worker: &'a Rc<Worker>,
        host: HostId,
        plan: &'a NativePlan,
        drive: Drive,
        channel: LocalChannel,
        round_trip: Duration,
    ) -> Self {
        HostSession {
            drive,
            feeder: worker.plan.input.as_ref().map(Feeder::new),
            window: WindowChanges::watch(plan.request.pty.as_ref().filter(|_| plan.lends_terminal)),
            alarm: Alarm::default(),
            state: State {
                worker,
                host,
                plan,
                channel,
                is_shared: false,
                peer: None,
                login: Login::of_session(&plan.endpoint, &worker.plan),
                shortcuts: Shortcuts::none(),
                host_keys: None,
                proof_by: None,
                started: false,
                pty_refused: false,
                outbox: Outbox::default(),
                announcement: plan
                    .announcement
                    .as_ref()
                    .map(|mark| Box::new(Announcement::new(mark))),
                transfer: Transfer::begin(&worker.plan, host.0, channel, round_trip),
                lanes: None,
                host_key: None,
                round_trip,
                trial: Trial::begin(&worker.plan, host.0, channel),
                errands: None,
                timing: None,
                keeping: None,
                forwarding: plan
                    .forwarded_agent
                    .clone()
                    .map(|agent| Box::new(AgentForwarding::new(agent))),
                delivered: 0,
                failure: None,
                outcome: None,
                ended: false,
                closed: false,
                torn_down: false,
                last_moment: None,
                killing: None,
            },
        }
    }

    /// The connection is one more of a host that is kept already.
    pub(crate) fn is_further(&mut self, kept: Rc<dyn Kept>, login: Option<OwnedSemaphorePermit>) {
        let keeping = self.state.keeping.get_or_insert_default();
        keeping.is_further(kept, login);
        let limit = self.state.worker.plan.deadlines.login;
        self.state.last_moment = limit.map(|limit| Instant::now() + limit);
    }

    /// Whether the connection has ever been of use to whoever it is kept for.
    pub(crate) fn was_kept(&self) -> bool {
        let keeping = self.state.keeping.as_ref();
        keeping.is_some_and(|keeping| keeping.was_kept())
    }

    /// Until the command's channel is closed or the connection is over.
    pub(crate) async fn run(&mut self, orders: &mut Orders) -> Result<Outcome, Ended> {
        let span = self.span();
        let end = caught(self.advance(orders).instrument(span)).await;
        self.look();
        let is_ending = self.state.killing.is_some() || self.state.last_moment.is_some();
        self.state.tell_of_killing();
        match end {
            Ok(end) => {
                let (worker, host) = (self.state.worker, self.state.host);
                self.state.login.show_last_banners(worker, Some(host));
                self.drive.hang_up();
                if let Some(keeping) = &mut self.state.keeping {
                    keeping.handle_end(&self.drive.connection);
                }
                self.state.show_held();
                self.state.deliver_rest(orders).await;
                let end = self.part_from_proxy(end).await;
                let end = end.map_err(|ended| self.outlived(ended, is_ending));
                self.leave_transfer(end, orders).await
            }
            // Nothing more is sent: what waits to leave is as doubtful as the state that it was made in.
            Err(failure) => Err(Ended::new(failure, self.fate())),
        }
    }

    /// The connection in the trace; our end is asked for only where somebody reads it.
    fn span(&self) -> tracing::Span {
        if !tracing::enabled!(tracing::Level::DEBUG) {
            return tracing::Span::none();
        }
        let from = self.drive.local_address().map(tracing::field::display);
        tracing::debug_span!("connection", from)
    }

    async fn advance(&mut self, orders: &mut Orders) -> Result<Outcome, Ended> {
        loop {
            self.drive.answer_events(&mut self.state);
            self.state.fail(self.drive.is_recordable());
            self.look();
            self.state.grant_wishes();
            self.state.advance_transfer();
            self.state.end_with_errands();
            self.state.end_with_keeping();
            self.advance_killing()?;
            self.deliver()?;
            if let Some(failure) = self.state.failure.take() {
                return Err(self.failed(failure));
            }
            if self.state.is_over() && !self.state.awaits_proof() && !self.state.is_killing() {
                let is_another = self.state.misses_announcement();
                return match self.state.last_moment {
                    None if is_another => Err(self.answered_by_another()),
                    None => self.state.outcome.take().ok_or_else(|| self.no_status()),
                    // It ended because its time was over, whatever it says.
                    Some(_) => Err(aborted(self.fate())),
                };
            }
            if self.state.has_left() {
                self.leave()?;
                continue;
            }
            // Who serves a kept connection may have more for the same flight.
            let keeping = self.state.keeping.as_ref();
            if !keeping.is_some_and(|keeping| keeping.is_serving()) {
                self.drive.flush();
            }
            self.hasten();
            self.feed()?;
            let errands = self.state.errands.as_ref();
            if self.state.transfer.as_mut().is_some_and(|it| it.has_news())
                || errands.is_some_and(|errands| errands.are_over())
            {
                continue;
            }
            self.state.limit_proof();
            match self.wait(orders).await {
                // The command has ended, and what else comes is of no concern to it.
                Err(_) if self.state.is_over() => self.state.give_up_proof(),
                Err(_) if self.state.runs_errands() => self.state.give_up_errands(),
                result => result?,
            }
        }
    }

    /// Where login and command go message by message, sshd's next one waits for our acknowledgement of the last
    /// (ADR 0003).
    fn hasten(&self) {
        if self.state.timing.is_some() {
            return self.drive.acknowledge_at_once();
        }
        let phase = self.drive.connection.phase();
        let step_by_step = matches!(
            phase,
            sshoal_proto::Phase::Authentication | sshoal_proto::Phase::Connection
        );
        if step_by_step && !self.state.started && self.fate() == ExecFate::NotSent {
            self.drive.acknowledge_at_once();
        }
    }

    /// Notes what was passed, if the login is measured.
    fn look(&mut self) {
        if let Some(timing) = &mut self.state.timing {
            timing.look(&self.drive.connection, self.state.login.offered_now());
        }
    }

    /// Goes on with what follows a login that is measured. The login stays what it was if that fails.
    fn run_errands(&mut self) {
        if let Some(errands) = &mut self.state.errands {
            if errands.advance(&mut self.drive.connection).is_err() {
                errands.give_up();
            }
            self.drive.flush();
        }
    }

    /// Sends standard input for as long as server and stream take it.
    fn feed(&mut self) -> Result<(), Ended> {
        if self.state.errands.is_some() {
            self.run_errands();
            return Ok(());
        }
        if self.state.transfer.is_some() {
            return self.feed_transfer();
        }
        if self.state.keeping.is_some() {
            return self.feed_kept();
        }
        if self.state.trial.is_some() {
            return self.feed_trial();
        }
        let Some(feeder) = self.feeder.as_mut().filter(|_| self.state.started) else {
            return Ok(());
        };
        loop {
            let connection = &mut self.drive.connection;
            match feeder.feed(connection, self.state.channel) {
                Ok(0) => break,
                Ok(_) => self.drive.flush(),
                Err(error) => return Err(self.ended(&error)),
            }
            if self.drive.connection.poll_transmit().is_some() {
                break;
            }
        }
        self.drive.flush();
        Ok(())
    }

    /// The same for files.
    fn feed_transfer(&mut self) -> Result<(), Ended> {
        while let Some(transfer) = &mut self.state.transfer {
            if self.state.outbox.is_empty() {
                transfer.confirm_output();
            }
            if let Err(error) = transfer.pump(LaneId::FIRST, &mut self.drive) {
                return Err(self.ended(&error));
            }
            if !self.state.advance_lanes(&self.drive) {
                break;
            }
        }
        Ok(())
    }

    /// The same for whoever the connection is kept for.
    fn feed_kept(&mut self) -> Result<(), Ended> {
        while let Some(keeping) = &mut self.state.keeping {
            if let Err(error) = keeping.advance(&mut self.drive.connection) {
                return Err(self.ended(&error));
            }
            self.drive.flush();
            if self.drive.queued() > 0 {
                break;
            }
            // What has left may have made room for more.
            self.drive.answer_events(&mut self.state);
            let keeping = self.state.keeping.as_ref();
            let takes_packets = self.drive.connection.takes_packets();
            if !keeping.is_some_and(|keeping| keeping.has_work(takes_packets)) {
                break;
            }
        }
        Ok(())
    }

    /// The same for what is measured.
    fn feed_trial(&mut self) -> Result<(), Ended> {
        while let Some(trial) = &mut self.state.trial {
            match trial.feed(&mut self.drive.connection) {
                Ok(fed) => {
                    self.drive.flush();
                    if fed == 0 || self.drive.connection.poll_transmit().is_some() {
                        break;
                    }
                }
                Err(error) => return Err(self.ended(&error)),
            }
        }
        Ok(())
    }

    /// Waits for the server, an order or a timer, and does what it brings.
    async fn wait(&mut self, orders: &mut Orders) -> Result<(), Ended> {
        let HostSession {
            drive,
            feeder,
            window,
            alarm,
            state,
        } = self;
        let timeout = drive.connection.poll_timeout();
        let wake = state.transfer.as_ref().and_then(|transfer| transfer.wake());
        let lanes = state.lanes.as_ref().and_then(|lanes| lanes.wake());
        let errands = state.errands.as_ref().and_then(|errands| errands.wake());
        let killing = state.killing.as_ref().and_then(|killing| killing.wake());
        let wake = wake
            .into_iter()
            .chain(lanes)
            .chain(errands)
            .chain(killing)
            .min();
        let last_moment = state.last_moment.into_iter().chain(state.proof_by).min();
        let started = state.started;
        let feeder = feeder
            .as_mut()
            .filter(|feeder| started && feeder.is_hungry());
        let result = tokio::select! {
            biased;
            order = orders.recv() => return self.obey(order),
            result = poll_fn(|context| poll_progress(drive, state, context)) => result,
            () = poll_fn(|context| alarm.poll(context, timeout)), if timeout.is_some() => {
                drive.connection.handle_timeout(Instant::now()).map_err(Broken::from)
            }
            () = sleep_until(last_moment), if last_moment.is_some() => {
                return Err(aborted(self.fate()));
            }
            () = sleep_until(wake), if wake.is_some() => Ok(()),
            result = next_chunk(feeder) => match result {
                Ok(()) => Ok(()),
                Err(error) => return Err(self.no_input(&error)),
            },
            (columns, rows) = window.next(), if started => {
                let told = drive.connection.change_window(state.channel, columns, rows);
                told.map_err(Broken::from)
            }
        };
        result.map_err(|broken| self.broken(broken))
    }

    fn obey(&mut self, order: Option<Control>) -> Result<(), Ended> {
        if self.state.runs_errands() && !matches!(order, Some(Control::Admit(_))) {
            self.state.torn_down |= order != Some(Control::Interrupt);
            self.state.give_up_errands();
            return Ok(());
        }
        let fate = self.fate();
        let connection = &mut self.drive.connection;
        match order {
            Some(Control::Interrupt) if fate == ExecFate::Ran && self.state.transfer.is_some() => {
                self.state.interrupt_transfer();
                Ok(())
            }
            Some(Control::Admit(Gate::Signature)) => {
                self.state.login.handle_admitted(connection);
                Ok(())
            }
            Some(Control::Admit(_)) => Ok(()),
            Some(Control::Interrupt) if self.state.may_kill(fate) => {
                self.begin_killing(KillOrder::Interrupt)
            }
            Some(Control::Interrupt) if fate == ExecFate::Ran => connection
                .signal(self.state.channel, "INT")
                .map_err(|error| self.ended(&error)),
            Some(Control::Interrupt) => Err(self.interrupted(fate)),
            Some(Control::Terminate) => self.terminate(),
            Some(Control::Abort) | None => self.give_up(),
        }
    }

    /// Hands output to the observer, and the server the room for more.
    fn deliver(&mut self) -> Result<(), Ended> {
        let state = &mut self.state;
        state.delivered += state.outbox.deliver(state.worker, state.host);
        let delivered = std::mem::take(&mut state.delivered);
        // What a transfer has to say did not come on the channel as it is.
        let is_ours = state.worker.plan.transfer.is_some();
        if delivered == 0 || is_ours || state.is_over() || state.runs_errands() {
            return Ok(());
        }
        let channel = state.channel;
        let told = self.drive.connection.consumed(channel, delivered);
        told.map_err(|error| self.ended(&error))
    }
}

/// Ready when the login has come further, or the output, or the link.
fn poll_progress(
    drive: &mut Drive,
    state: &mut State<'_>,
    context: &mut Context<'_>,
) -> Poll<Result<(), Broken>> {
    let news = &state.worker.new_keys;
    if let Poll::Ready(result) = state.login.poll_work(context, &mut drive.connection, news) {
        state.fail(result);
        return Poll::Ready(Ok(()));
    }
    if let Some(forwarding) = &mut state.forwarding
        && let Poll::Ready(result) = forwarding.poll(context, &mut drive.connection)
    {
        return Poll::Ready(result.map_err(Broken::from));
    }
    if let Some(keeping) = &mut state.keeping
        && keeping
            .poll(context, &mut state.login, &mut drive.connection)
            .is_ready()
    {
        return Poll::Ready(Ok(()));
    }
    if let Some(transfer) = &mut state.transfer
        && transfer.poll_answers(context).is_ready()
    {
        return Poll::Ready(Ok(()));
    }
    let State { worker, host, .. } = *state;
    if let Poll::Ready(delivered) = state.outbox.poll_deliver(worker, host, context) {
        state.delivered += delivered;
        return Poll::Ready(Ok(()));
    }
    let lanes = match (&mut state.lanes, &mut state.transfer) {
        (Some(lanes), Some(transfer)) => lanes.poll(context, transfer),
        _ => Poll::Pending,
    };
    // All connections have their turns.
    match drive.poll(context, &worker.buffer, state) {
        Poll::Pending => lanes.map(Ok),
        ready => ready,
    }
}

async fn next_chunk(feeder: Option<&mut Feeder>) -> io::Result<()> {
    match feeder {
        Some(feeder) => feeder.next().await,
        None => std::future::pending().await,
    }
}
