//! One host's command by a connection that another process keeps, to its end.

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use sshoal_fleet::{Failure, FailureKind, Gate, HostId, KillVerdict, Outcome, Phase};
use sshoal_proto::{Command, ExecFate};
use sshoal_warm::{INPUT_WINDOW, MAX_FRAME_LEN, MAX_VARIABLES, Order, Start};

use super::stream::{Ended as EndOfCommand, Mailbox, OwnedEnd, Stream};
use super::{KEEPER_GONE, KEPT, WarmBerth, goes_cold};
use crate::drive::sleep_until;
use crate::failures::Ended;
use crate::host::{Orders, aborted, interrupted, pass};
use crate::input::Feeder;
use crate::plan::NativePlan;
use crate::worker::{Control, Report, Worker};

/// From SIGTERM to the end of the channel, and from there to that of our patience with the keeper. The fleet waits 5 s for the
/// answer to an abort.
const GRACE: Duration = Duration::from_secs(2);
/// Octets of a frame that are neither command nor variables, at most.
const FRAME_OVERHEAD: usize = 64;

/// Why the host is not waited for any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaving {
    /// The run was interrupted before the command was known to run.
    Interrupted,
    /// The command's time is over: it was told to end.
    Terminated,
    /// The fleet wants no more of it.
    Aborted,
}

/// Runs the command. A host that its keeper turns out not to have, before the command can have left, is to be begun anew.
pub(crate) async fn run(
    worker: &Rc<Worker>,
    host: HostId,
    plan: &NativePlan,
    berth: WarmBerth,
    orders: &mut Orders,
) -> Result<Outcome, Ended> {
    pass(worker, host, orders, Gate::Session).await?;
    let Some(stream) = worker.keepers.stream(host, berth).cloned() else {
        return Err(goes_cold(worker, host, "its keeper is gone".to_owned()));
    };
    tokio::select! {
        biased;
        () = stream.room() => {}
        _ = orders.recv() => return Err(aborted(ExecFate::NotSent)),
    }
    worker.record(host).await?;
    if !stream.is_open() {
        // It has ended meanwhile, and tells nobody anything any more.
        return Err(goes_cold(worker, host, KEEPER_GONE.to_owned()));
    }
    let mut errand = Errand {
        worker,
        host,
        plan,
        mailbox: stream.subscribe(host),
        stream: &stream,
        ordered: 0,
        feeder: worker.plan.input.as_ref().map(Feeder::new),
        input_under_way: 0,
        has_started: false,
        delivered: 0,
        leaving: None,
        last_moment: None,
    };
    errand.start(berth);
    let end = errand.perform(orders).await;
    stream.unsubscribe(host);
    end
}

/// Whether the session of a plan can be had by a connection that is kept: without a terminal and without an agent. That of a
/// transfer always can.
pub(crate) fn serves(plan: &NativePlan) -> bool {
    let request = &plan.request;
    let variables = request.environment.iter();
    let variables: usize = variables
        .map(|(name, value)| name.len() + value.len() + 8)
        .sum();
    let fits = |line: &[u8]| {
        let octets = line.len() + variables + FRAME_OVERHEAD;
        let is_plain = |octets: &[u8]| !octets.contains(&0);
        let mut variables = request.environment.iter();
        octets <= MAX_FRAME_LEN
            && request.environment.len() <= MAX_VARIABLES as usize
            && is_plain(line)
            && variables.all(|(name, value)| is_plain(name) && is_plain(value))
    };
    !request.forward_agent
        && request.pty.is_none()
        && match &request.command {
            Command::Exec(line) => fits(line),
            Command::Subsystem(_) => true,
            Command::Shell => false,
        }
}

struct Errand<'a> {
    worker: &'a Rc<Worker>,
    host: HostId,
    plan: &'a NativePlan,
    stream: &'a Rc<Stream>,
    mailbox: Rc<Mailbox>,
    /// Octets of orders up to and with the one that starts the command.
    ordered: u64,
    feeder: Option<Feeder>,
    /// Octets of input that the keeper has not taken.
    input_under_way: usize,
    /// Whether it is known that the command runs, or ran.
    has_started: bool,
    /// Octets handed on that the keeper has not been told of.
    delivered: usize,
    leaving: Option<Leaving>,
    /// When nothing is waited for any more.
    last_moment: Option<Instant>,
}

impl Errand<'_> {
    fn start(&mut self, berth: WarmBerth) {
        let request = &self.plan.request;
        let Command::Exec(command) = &request.command else {
            return;
        };
        let start = Start {
            host: berth.host,
            identity: *berth.identity.octets(),
            standard_input: request.standard_input,
            command,
            environment: request.environment.as_slice().into(),
        };
        let id = self.host.0;
        self.ordered = self.stream.order(&Order::Start { id, start });
        self.worker.enter(self.host, Phase::Session);
    }

    async fn perform(&mut self, orders: &mut Orders) -> Result<Outcome, Ended> {
        loop {
            self.look();
            self.deliver();
            let ended = self.mailbox.letters.borrow_mut().ended.take();
            if let Some(end) = ended {
                self.deliver_rest(orders).await;
                return self.conclude(end);
            }
            self.feed();
            self.wait(orders).await?;
        }
    }

    /// Takes note of how far the command is.
    fn look(&mut self) {
        let mut letters = self.mailbox.letters.borrow_mut();
        self.input_under_way -= std::mem::take(&mut letters.taken).min(self.input_under_way);
        if letters.is_started && !std::mem::replace(&mut self.has_started, true) {
            self.worker.enter(self.host, Phase::Command);
        }
    }

    /// Hands output to the observer, and the keeper the room for more.
    fn deliver(&mut self) {
        let mut letters = self.mailbox.letters.borrow_mut();
        let is_over = letters.ended.is_some();
        self.delivered += letters.outbox.deliver(self.worker, self.host);
        let delivered = std::mem::take(&mut self.delivered);
        if delivered > 0 && !is_over {
            let octets = u32::try_from(delivered).unwrap_or(u32::MAX);
            let id = self.host.0;
            self.stream.order(&Order::Consumed { id, octets });
        }
    }

    /// Hands over what came before the end, as there is room; at once if the host is torn down meanwhile.
    async fn deliver_rest(&mut self, orders: &mut Orders) {
        let Errand {
            worker,
            host,
            mailbox,
            leaving,
            ..
        } = self;
        let is_empty = || mailbox.letters.borrow().outbox.is_empty();
        while !is_empty() {
            if leaving.is_some() {
                let mut letters = mailbox.letters.borrow_mut();
                return letters.outbox.deliver_regardless(worker, *host);
            }
            tokio::select! {
                biased;
                order = orders.recv() => match order {
                    Some(Control::Abort | Control::Terminate) | None => {
                        *leaving = Some(Leaving::Aborted);
                    }
                    _ => {}
                },
                _ = poll_fn(|context| {
                    mailbox.letters.borrow_mut().outbox.poll_deliver(worker, *host, context)
                }) => {}
            }
        }
    }

    /// Sends standard input for as long as the keeper takes it.
    fn feed(&mut self) {
        let has_started = self.has_started;
        let Some(feeder) = self.feeder.as_mut().filter(|_| has_started) else {
            return;
        };
        let (stream, id) = (self.stream, self.host.0);
        let room = INPUT_WINDOW.saturating_sub(self.input_under_way);
        let (handed, is_all) = feeder.hand_out(room, |octets| {
            stream.order(&Order::Input { id, octets });
        });
        self.input_under_way += handed;
        if is_all {
            stream.order(&Order::InputEnd { id });
        }
    }

    /// Waits for the keeper, an order or a timer, and does what it brings.
    async fn wait(&mut self, orders: &mut Orders) -> Result<(), Ended> {
        let Errand {
            worker,
            host,
            mailbox,
            feeder,
            has_started,
            delivered,
            last_moment,
            ..
        } = self;
        let feeder = feeder
            .as_mut()
            .filter(|feeder| *has_started && feeder.is_hungry());
        let last_moment = *last_moment;
        tokio::select! {
            biased;
            order = orders.recv() => self.obey(order),
            () = poll_fn(|context| mailbox.poll_news(context)) => {}
            octets = poll_fn(|context| {
                mailbox.letters.borrow_mut().outbox.poll_deliver(worker, *host, context)
            }) => *delivered += octets,
            () = sleep_until(last_moment), if last_moment.is_some() => return self.give_up(),
            result = next_chunk(feeder) => if let Err(error) = result {
                self.order_leave();
                let detail = format!("reading standard input: {error}");
                return Err(Ended::new(Failure::new(FailureKind::Lost, detail), ExecFate::Ran));
            },
        }
        Ok(())
    }

    fn obey(&mut self, order: Option<Control>) {
        let id = self.host.0;
        let signal = |name| {
            self.stream.order(&Order::Signal { id, name });
        };
        match order {
            Some(Control::Admit(_)) => {}
            Some(Control::Interrupt) if self.has_started => signal("INT"),
            Some(Control::Interrupt) => self.leave(Leaving::Interrupted),
            Some(Control::Terminate) if self.has_started => {
                signal("TERM");
                self.tell_of_killing();
                self.leaving = Some(Leaving::Terminated);
                self.last_moment = Some(Instant::now() + GRACE);
            }
            Some(Control::Terminate | Control::Abort) | None => self.leave(Leaving::Aborted),
        }
    }

    /// Other commands share the connection: nothing there tells which processes are this one's.
    fn tell_of_killing(&self) {
        if self.worker.plan.kill.is_some() {
            let why = "commands on connections that `sshoal up` keeps are not looked after; --no-pool logs in";
            let verdict = KillVerdict::NotConfirmed(why.to_owned());
            self.worker.report(Report::Killed(self.host, verdict));
        }
    }

    /// Has the keeper close the channel; its answer says what is known of the command.
    fn leave(&mut self, why: Leaving) {
        self.order_leave();
        self.leaving = Some(why);
        self.last_moment = Some(Instant::now() + GRACE);
    }

    fn order_leave(&self) {
        self.stream.order(&Order::Leave { id: self.host.0 });
    }

    /// The last moment has come: of a command that did not end in its time, or of a keeper that does not answer.
    fn give_up(&mut self) -> Result<(), Ended> {
        match self.leaving {
            Some(Leaving::Terminated) => {
                let (id, name) = (self.host.0, "KILL");
                self.stream.order(&Order::Signal { id, name });
                self.leave(Leaving::Aborted);
                Ok(())
            }
            Some(Leaving::Interrupted) => Err(interrupted(self.presumed_fate())),
            Some(Leaving::Aborted) | None => Err(aborted(self.presumed_fate())),
        }
    }

    /// What is known of the command without the keeper.
    fn presumed_fate(&self) -> ExecFate {
        match self.has_started {
            true => ExecFate::Ran,
            false if self.stream.has_left(self.ordered) => ExecFate::MayHaveRun,
            false => ExecFate::NotSent,
        }
    }

    fn conclude(&self, EndOfCommand { end, fate }: EndOfCommand) -> Result<Outcome, Ended> {
        let fate = match end {
            OwnedEnd::KeeperGone => self.presumed_fate(),
            _ => fate,
        };
        let outcome = match (end, self.leaving) {
            // It ended because its time was over, whatever it says.
            (_, Some(Leaving::Terminated)) => return Err(aborted(fate)),
            (OwnedEnd::Exit(status), _) => Outcome::Exit(status),
            (
                OwnedEnd::Signal {
                    name,
                    core_dumped,
                    message,
                },
                _,
            ) => Outcome::Signal {
                name,
                core_dumped,
                message,
            },
            (_, Some(Leaving::Interrupted)) => return Err(interrupted(fate)),
            (_, Some(Leaving::Aborted)) => return Err(aborted(fate)),
            (end, None) => return Err(self.failed(end, fate)),
        };
        if self.leaving == Some(Leaving::Aborted) {
            let label = &self.plan.endpoint.label;
            self.worker.report(Report::Notice(format!(
                "{label}: the command has ended, but something that it started keeps its output open; no longer waited for"
            )));
        }
        Ok(outcome)
    }

    fn failed(&self, end: OwnedEnd, fate: ExecFate) -> Ended {
        let detail = match end {
            OwnedEnd::NoStatus => "the command ended without an exit status".to_owned(),
            OwnedEnd::KeeperGone => KEEPER_GONE.to_owned(),
            OwnedEnd::Lost(why) => format!("{KEPT}: {why}"),
            _ => format!("{KEPT}: the command was given up"),
        };
        match fate.safe_to_resend() {
            true => goes_cold(self.worker, self.host, detail),
            false => Ended::new(Failure::new(FailureKind::Lost, detail), fate),
        }
    }
}

async fn next_chunk(feeder: Option<&mut Feeder>) -> io::Result<()> {
    match feeder {
        Some(feeder) => feeder.next().await,
        None => std::future::pending().await,
    }
}
