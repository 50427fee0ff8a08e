//! One attempt at one host, from its name to the end of its command.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use sshoal_crypto::fingerprint_sha256;
use sshoal_fleet::{Event as FleetEvent, Failure, FailureKind, Gate, HostId, Outcome, Phase};
use sshoal_proto::{Command, Connection, Event, ExecFate, LocalChannel, Pipelining, Stream};
use tokio::io::ReadBuf;
use tokio::sync::mpsc;

use crate::dial;
use crate::failures::{self, Ended};
use crate::guess;
use crate::input::Feeder;
use crate::link::Link;
use crate::login::{Login, Wish};
use crate::plan::HostPlan;
use crate::server_cache::KnownServer;
use crate::trust::Accepted;
use crate::worker::{Control, Output, What, Worker};

/// Least room for a read behind an incomplete packet, octets: a whole packet of data.
const LEAST_READ: usize = 64 * 1024;

/// Where a host's task gets its orders.
pub(crate) type Orders = mpsc::UnboundedReceiver<Control>;

/// Runs one attempt and reports its end.
pub(crate) async fn attempt(worker: Rc<Worker>, host: HostId, mut orders: Orders) {
    let plan = worker.plan.clone();
    let Some(host_plan) = plan.hosts.get(host.0 as usize) else {
        return;
    };
    let mut attempt = Attempt {
        worker: &worker,
        host,
        plan: host_plan,
        orders: &mut orders,
    };
    let event = match attempt.run().await {
        Ok(outcome) => FleetEvent::Finished(outcome),
        Err(Ended { failure, fate }) => FleetEvent::Failed {
            failure,
            safe_to_retry: fate.safe_to_resend(),
            fate: failures::fate(fate),
        },
    };
    worker.report(host, What::Event(event));
}

struct Attempt<'a> {
    worker: &'a Rc<Worker>,
    host: HostId,
    plan: &'a HostPlan,
    orders: &'a mut Orders,
}

impl Attempt<'_> {
    /// The phases, in order.
    async fn run(&mut self) -> Result<Outcome, Ended> {
        let (name, port) = (self.plan.name.as_str(), self.plan.port);
        let addresses = self.unless_aborted(dial::addresses(name, port)).await?;
        self.enter(Phase::Connect);
        let connecting = Instant::now();
        let link = self.unless_aborted(dial::connect(&addresses)).await?;
        let round_trip = connecting.elapsed();
        self.pass(Gate::Login).await?;
        self.enter(Phase::Login);
        // The command may leave with the login, so its gate comes first; it only closes when interrupted.
        self.pass(Gate::Session).await?;
        let mut session = Box::new(HostSession::begin(
            self.worker,
            self.host,
            self.plan,
            link,
            round_trip,
        )?);
        let end = session.drive(self.orders).await;
        session.hang_up();
        end
    }

    fn enter(&self, phase: Phase) {
        self.worker
            .report(self.host, What::Event(FleetEvent::Entered(phase)));
    }

    /// Waits at a gate.
    async fn pass(&mut self, gate: Gate) -> Result<(), Ended> {
        self.worker
            .report(self.host, What::Event(FleetEvent::Reached(gate)));
        match self.orders.recv().await {
            Some(Control::Admit(_)) => Ok(()),
            _ => Err(aborted(ExecFate::NotSent)),
        }
    }

    /// Does `work`, unless the fleet wants the host torn down before it is done.
    async fn unless_aborted<T>(
        &mut self,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Ended> {
        tokio::select! {
            biased;
            result = work => result.map_err(Ended::before_command),
            _ = self.orders.recv() => Err(aborted(ExecFate::NotSent)),
        }
    }
}

/// The answer to an abort: the fleet has its own reason, and only wants the command's fate.
fn aborted(fate: ExecFate) -> Ended {
    Ended {
        failure: Failure::new(FailureKind::Lost, "stopped by this side"),
        fate,
    }
}

/// A host's connection, its one session, and what came of it so far.
struct HostSession<'a> {
    worker: &'a Rc<Worker>,
    host: HostId,
    plan: &'a HostPlan,
    link: Link,
    connection: Connection,
    channel: LocalChannel,
    login: Login<'a>,
    /// Whether login and command may share a flight, as far as this side knows.
    merges: bool,
    /// Standard input, if the command reads any.
    feeder: Option<Feeder>,
    /// Whether the server confirmed that the command started: before, nothing of a pipe may be taken.
    started: bool,
    /// Whether writing still works.
    writable: bool,
    /// An incomplete packet that the next read completes.
    rest: Vec<u8>,
    output: Vec<(Stream, Vec<u8>)>,
    /// Why the host failed, decided here rather than by the connection.
    failure: Option<Failure>,
    outcome: Option<Outcome>,
    closed: bool,
}

impl<'a> HostSession<'a> {
    fn begin(
        worker: &'a Rc<Worker>,
        host: HostId,
        plan: &'a HostPlan,
        link: Link,
        round_trip: Duration,
    ) -> Result<Self, Ended> {
        let (settings, opening) =
            guess::opening(plan, &worker.servers, &worker.adapted, round_trip);
        let merges = settings.pipelining == Pipelining::Exec;
        let unusable =
            |why: String| Ended::before_command(Failure::new(FailureKind::NoCommonAlgorithm, why));
        let mut connection = Connection::new(settings, opening, Instant::now())
            .map_err(|error| unusable(error.to_string()))?;
        let channel = connection
            .open_session(plan.request.clone())
            .map_err(|error| unusable(error.to_string()))?;
        Ok(HostSession {
            worker,
            host,
            plan,
            link,
            connection,
            channel,
            login: Login::new(plan, &worker.plan),
            merges,
            feeder: worker.plan.input.as_ref().map(Feeder::new),
            started: false,
            writable: true,
            rest: Vec::new(),
            output: Vec::new(),
            failure: None,
            outcome: None,
            closed: false,
        })
    }

    /// Moves octets both ways until the command's channel is closed or the connection is over.
    async fn drive(&mut self, orders: &mut Orders) -> Result<Outcome, Ended> {
        loop {
            self.settle();
            self.deliver_output().await?;
            if let Some(failure) = self.failure.take() {
                return Err(Ended {
                    failure,
                    fate: self.connection.exec_fate(self.channel),
                });
            }
            if self.closed {
                return self.outcome.take().ok_or_else(|| self.no_status());
            }
            self.flush();
            self.feed()?;
            self.wait(orders).await?;
        }
    }

    /// Sends standard input for as long as server and stream take it.
    fn feed(&mut self) -> Result<(), Ended> {
        let Some(mut feeder) = self.feeder.take_if(|_| self.started) else {
            return Ok(());
        };
        let fed = loop {
            match feeder.feed(&mut self.connection, self.channel) {
                Ok(0) => break Ok(()),
                Ok(_) => self.flush(),
                Err(error) => break Err(self.ended(&error)),
            }
            if self.connection.poll_transmit().is_some() {
                break Ok(());
            }
        };
        self.flush();
        self.feeder = Some(feeder);
        fed
    }

    /// Waits for the server, an order or a timer, and does what it brings.
    async fn wait(&mut self, orders: &mut Orders) -> Result<(), Ended> {
        let timeout = self.connection.poll_timeout();
        let mut feeder = self.feeder.take();
        let hungry = self.started && feeder.as_ref().is_some_and(Feeder::is_hungry);
        let result = tokio::select! {
            biased;
            order = orders.recv() => self.obey(order),
            result = poll_fn(|context| self.poll_progress(context)) => result,
            () = sleep_until(timeout), if timeout.is_some() => {
                let result = self.connection.handle_timeout(Instant::now());
                result.map_err(|error| self.ended(&error))
            }
            result = next_chunk(feeder.as_mut()), if hungry => result.map_err(|error| {
                let detail = format!("reading standard input: {error}");
                let fate = self.connection.exec_fate(self.channel);
                Ended { failure: Failure::new(FailureKind::Lost, detail), fate }
            }),
        };
        self.feeder = feeder;
        result
    }

    fn obey(&mut self, order: Option<Control>) -> Result<(), Ended> {
        match order {
            Some(Control::Admit(Gate::Signature)) => {
                self.login.handle_admitted(&mut self.connection);
                Ok(())
            }
            Some(Control::Admit(_)) => Ok(()),
            Some(Control::Interrupt)
                if self.connection.exec_fate(self.channel) == ExecFate::Ran =>
            {
                self.connection
                    .signal(self.channel, "INT")
                    .map_err(|error| self.ended(&error))
            }
            Some(Control::Interrupt | Control::Abort) | None => {
                Err(aborted(self.connection.exec_fate(self.channel)))
            }
        }
    }

    /// Ready when the login has come further, or the link.
    fn poll_progress(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Ended>> {
        match self.login.poll_work(context, &mut self.connection) {
            Poll::Ready(result) => {
                self.fail(result);
                Poll::Ready(Ok(()))
            }
            Poll::Pending => self.poll_link(context),
        }
    }

    /// Makes the login's failure the host's, unless it has one.
    fn fail(&mut self, result: Result<(), Failure>) {
        self.failure = self.failure.take().or(result.err());
    }

    /// Answers events that did not come with input, and passes on what the login wants done.
    fn settle(&mut self) {
        while let Some(event) = self.connection.poll_event() {
            self.answer(event, &[]);
        }
        while let Some(wish) = self.login.poll_wish() {
            let what = match wish {
                Wish::ReachGate => What::Event(FleetEvent::Reached(Gate::Signature)),
                Wish::LeaveGate => What::Event(FleetEvent::Left(Gate::Signature)),
                Wish::Say(text) => What::Notice(text),
                Wish::Unlock(key) => What::Unlock(key),
            };
            self.worker.report(self.host, what);
        }
    }

    /// Ready when there is room for pending output, or when input was handled.
    fn poll_link(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Ended>> {
        let pending = self.writable && self.connection.poll_transmit().is_some();
        if pending && self.link.poll_write_ready(context).is_ready() {
            return Poll::Ready(Ok(()));
        }
        match self.connection.wants_input() {
            true => self.poll_input(context),
            false => Poll::Pending,
        }
    }

    /// Reads into the thread's buffer, behind what was left of the last read, and handles it.
    fn poll_input(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Ended>> {
        let worker = self.worker.clone();
        let mut buffer = worker.buffer.borrow_mut();
        let kept = self.rest.len();
        if buffer.len() < kept + LEAST_READ {
            buffer.resize(kept + LEAST_READ, 0);
        }
        buffer[..kept].copy_from_slice(&self.rest);
        let mut unfilled = ReadBuf::new(&mut buffer[kept..]);
        let read = match ready!(self.link.poll_read(context, &mut unfilled)) {
            Ok(()) => unfilled.filled().len(),
            Err(error) => return Poll::Ready(Err(self.broken(&error))),
        };
        if read == 0 {
            let error = self.connection.handle_eof();
            return Poll::Ready(Err(self.ended(&error)));
        }
        let filled = kept + read;
        let taken = self.handle(&mut buffer[..filled])?;
        self.rest.clear();
        self.rest.extend_from_slice(&buffer[taken..filled]);
        if self.rest.is_empty() {
            self.rest = Vec::new();
        }
        Poll::Ready(Ok(()))
    }

    /// Gives input to the connection and answers its events; returns how many octets were taken.
    fn handle(&mut self, input: &mut [u8]) -> Result<usize, Ended> {
        let now = Instant::now();
        let mut taken = 0;
        loop {
            let result = self.connection.handle_input(now, &mut input[taken..]);
            let from = taken;
            let mut answered = false;
            while let Some(event) = self.connection.poll_event() {
                answered = true;
                self.answer(event, &input[from..]);
            }
            match result {
                Ok(octets) => taken += octets,
                // What came before the error may have settled the host already.
                Err(_) if self.closed || self.failure.is_some() => return Ok(input.len()),
                Err(error) => return Err(self.ended(&error)),
            }
            if taken == input.len() || (taken == from && !answered) || self.failure.is_some() {
                return Ok(taken);
            }
        }
    }

    fn answer(&mut self, event: Event, input: &[u8]) {
        match event {
            Event::HostKey(question) => match self.plan.trust.judge(&question) {
                // An error stays the connection's answer and comes back from its next call.
                Ok(accepted) => {
                    if accepted == Accepted::Changed {
                        self.login.withhold_password();
                    }
                    drop(self.connection.accept_host_key());
                }
                Err(failure) => {
                    self.failure = Some(failure);
                    self.connection.refuse_host_key();
                }
            },
            Event::AuthenticationNeeded(last) => {
                self.report(FleetEvent::KeysExchanged);
                let result = self.login.handle_needed(&mut self.connection, last);
                self.fail(result);
            }
            Event::SignatureNeeded(request) => {
                self.login.handle_signature(&self.connection, request);
            }
            Event::PromptsToAnswer { prompts, .. } => {
                let result = self.login.handle_prompts(&mut self.connection, &prompts);
                self.fail(result);
            }
            Event::PasswordExpired { .. } => self.failure = Some(self.login.password_expired()),
            Event::Authenticated => {
                self.login.handle_authenticated();
                self.learn(!self.login.took_several());
                self.report(FleetEvent::Entered(Phase::Session));
            }
            Event::Started(_) => {
                self.started = true;
                self.report(FleetEvent::Entered(Phase::Command));
            }
            Event::ChannelRefused {
                description,
                reason_code,
                ..
            } => {
                let detail =
                    format!("the server opened no session: {description} (reason {reason_code})");
                self.failure = Some(Failure::new(FailureKind::ChannelRefused, detail));
            }
            Event::StartRefused(_) => {
                let detail = "the server refused to run the command";
                self.failure = Some(Failure::new(FailureKind::ChannelRefused, detail));
            }
            Event::Data { stream, range, .. } => self.output.push((stream, input[range].to_vec())),
            Event::ExitStatus { status, .. } => self.outcome = Some(Outcome::Exit(status)),
            Event::ExitSignal {
                name,
                core_dumped,
                message,
                ..
            } => {
                self.outcome = Some(Outcome::Signal {
                    name,
                    core_dumped,
                    message,
                });
            }
            Event::Closed(_) => self.closed = true,
            Event::Banner(_)
            | Event::ChannelOpened(_)
            | Event::PtyRefused(_)
            | Event::Eof(_)
            | Event::Writable(_) => {}
        }
    }

    /// Hands output to the observer, within the budget all hosts share: a slow reader slows the senders.
    async fn deliver_output(&mut self) -> Result<(), Ended> {
        for (stream, octets) in std::mem::take(&mut self.output) {
            let len = octets.len();
            let budget = self.worker.output_budget.clone();
            // The budget is never closed.
            let Ok(permit) = budget.acquire_many_owned(len as u32).await else {
                continue;
            };
            let host = self.host;
            self.worker.report(
                host,
                What::Output(Output {
                    host,
                    stream,
                    octets,
                    _permit: permit,
                }),
            );
            if !self.closed {
                self.connection
                    .consumed(self.channel, len)
                    .map_err(|error| self.ended(&error))?;
            }
        }
        Ok(())
    }

    /// Writes what there is room for.
    fn flush(&mut self) {
        while let Some(octets) = self.connection.poll_transmit() {
            match self.link.write(octets) {
                Ok(Some(written)) => self.connection.transmitted(written),
                Ok(None) => return,
                // The server's last words may still be readable: reading tells how it ended.
                Err(_) => {
                    self.writable = false;
                    return;
                }
            }
        }
    }

    /// Says goodbye, as far as the stream takes it at once.
    fn hang_up(&mut self) {
        self.connection.disconnect();
        self.flush();
    }

    fn report(&self, event: FleetEvent) {
        self.worker.report(self.host, What::Event(event));
    }

    /// Remembers what the server is, if that is news.
    fn learn(&self, pipelining: bool) {
        let (Some(profile), Some((host_key, _))) = (
            self.connection.server_profile(),
            self.connection.host_key_proof(),
        ) else {
            return;
        };
        let pipelining = pipelining && self.merges;
        let fingerprint = fingerprint_sha256(host_key);
        let server = KnownServer {
            profile: profile.clone(),
            pipelining,
        };
        if self.worker.servers.is_news(&fingerprint, &server) {
            self.worker
                .report(self.host, What::Learned(fingerprint, server));
        }
    }

    fn ended(&self, error: &sshoal_proto::ConnectionError) -> Ended {
        let fate = self.connection.exec_fate(self.channel);
        if fate == ExecFate::MayHaveRun
            && self.connection.phase() == sshoal_proto::Phase::Authentication
        {
            self.learn(false);
        }
        let mut failure = failures::connection(error, fate);
        if failure.kind == FailureKind::AuthDenied {
            failure = self.login.cut_off(&failure.detail);
        }
        Ended { failure, fate }
    }

    fn broken(&self, error: &std::io::Error) -> Ended {
        let fate = self.connection.exec_fate(self.channel);
        Ended {
            failure: failures::stream(error, fate, self.connection.phase()),
            fate,
        }
    }

    fn no_status(&self) -> Ended {
        let what = match self.plan.request.command {
            Command::Exec(_) => "the command",
            Command::Shell | Command::Subsystem(_) => "the session",
        };
        let fate = self.connection.exec_fate(self.channel);
        Ended {
            failure: Failure::new(
                FailureKind::Lost,
                format!("{what} ended without an exit status"),
            ),
            fate,
        }
    }
}

async fn next_chunk(feeder: Option<&mut Feeder>) -> std::io::Result<()> {
    match feeder {
        Some(feeder) => feeder.next().await,
        None => std::future::pending().await,
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}
