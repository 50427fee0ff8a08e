//! Performs a run: the fleet decides, tasks act, the observer is told.

use std::collections::HashMap;
use std::io;
use std::rc::Rc;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use sshoal_fleet::{
    Action, EventError, Failure, FailureKind, Fleet, HostId, Job, JumpEvent, JumpId, Outcome,
    PlanError,
};
use tokio::runtime::Builder;
use tokio::sync::mpsc;
use tokio::task::{LocalSet, spawn_blocking};

use crate::descriptors;
use crate::failures;
use crate::host_key_questions::{Asker, HostKeyQuestion, HostKeyQuestions, not_accepted};
use crate::input::Input;
use crate::keep::RunHandle;
use crate::known_hosts::NewKeys;
use crate::observer::{Confirmation, Notice, Observer, ObserverThread};
use crate::plan::RunPlan;
use crate::server_cache::Learned;
use crate::signals::{Interruption, Signals, Wanted};
use crate::transfer::TransferPlan;
use crate::warm::{Keepers, WarmPlan};
use crate::worker::{Control, Order, Report, Shared, Worker, WorkerThread};

/// How often the observer hears of progress.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
/// The same while connections are kept.
const KEEPING_INTERVAL: Duration = Duration::from_secs(3600);
/// How long notices are collected before the observer's thread is woken: waking it costs more than a login's
/// whole arithmetic.
const COLLECTED_FOR: Duration = Duration::from_millis(25);
/// Notices that are worth waking it at once.
const COLLECTED_AT_MOST: usize = 1024;
/// How long the observer may take for the end of a run that the user has left: a terminal or a pipe that is read needs
/// a moment only.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// Reports handled before the fleet is asked again.
const REPORTS_AT_ONCE: usize = 256;

/// Why a run could not begin.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The plan contradicts itself.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The operating system gave no thread, timer or signal handler.
    #[error("cannot start: {0}")]
    System(#[from] io::Error),
}

/// How a run ended.
pub struct RunEnd<S> {
    /// What the observer left. `None` if the user left while there was still something to tell, because whoever reads
    /// it does not.
    pub summary: Option<S>,
    /// What signals did, up to the very end.
    pub interruption: Interruption,
    /// Whether nothing was begun any more because too many hosts had failed, or what must be between two batches did not succeed.
    pub is_halted: bool,
}

/// Runs the plan to its end. The observer is called from a thread of its own.
///
/// # Errors
///
/// [`RunError`] before anything was started.
pub fn run<O: Observer>(mut plan: RunPlan, observer: O) -> Result<RunEnd<O::Summary>, RunError> {
    let streams = plan.warm.as_mut();
    let streams = streams.map_or_else(Vec::new, WarmPlan::take_streams);
    let plan = Arc::new(plan);
    let hosts = (0..plan.work.hosts() as u32).map(HostId);
    let jobs = hosts.map(|host| Job {
        host,
        // Who is kept needs no jump host.
        via: plan.via(host).filter(|_| !plan.is_warm(host)),
    });
    let mut fleet = Fleet::new(jobs, plan.limits, plan.deadlines, plan.retry, plan.seed)?;
    if let Some(rolling) = &plan.rolling {
        fleet = fleet.rolling(&rolling.rolling);
    }
    descriptors::make_room(plan.limits.sessions.min(plan.work.hosts() as u32));
    descriptors::check_for_reactor()?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let observer = ObserverThread::start(observer, plan.journal.clone())?;
    let local = LocalSet::new();
    let (reports_in, reports) = mpsc::unbounded_channel();
    let shared = Shared::new(plan.clone(), reports_in.clone());
    let others = (1..plan.workers)
        .map(|_| WorkerThread::start(shared.clone()))
        .collect::<io::Result<_>>()?;
    let end = local.block_on(&runtime, async move {
        let clears_up = plan.transfer.is_some() || plan.keeper.is_some();
        let mut signals = Signals::listen(clears_up);
        if let Some(keeper) = &plan.keeper {
            keeper.started(RunHandle::new(reports_in.clone()));
        }
        let mut coordinator = Coordinator {
            fleet,
            worker: Rc::new(Worker::with_keepers(shared, Keepers::begin(streams)?)),
            others,
            reports,
            answers: reports_in,
            questions: HostKeyQuestions::default(),
            orders: HashMap::new(),
            observer,
            notices: Vec::new(),
            learned: Learned::default(),
            has_told_halt: false,
            told: Instant::now(),
        };
        coordinator.run(&mut signals).await;
        coordinator.worker.let_all_go();
        let said = record(&coordinator.worker.new_keys, &mut signals).await;
        coordinator.tell(said.into_iter().map(Notice::Words).collect());
        if let Some(path) = &coordinator.worker.plan.server_cache
            && let Err(error) = coordinator.learned.save(path)
        {
            tracing::warn!(path = %path.display(), %error, "the server cache cannot be written");
        }
        let so_far = signals.interruption();
        let is_halted = coordinator.fleet.is_halted();
        let leaving = leaving(&mut signals);
        let summary = coordinator.observer.finish(so_far, leaving).await;
        Ok(RunEnd {
            summary,
            interruption: signals.interruption(),
            is_halted,
        })
    });
    // A name lookup that does not end is left behind.
    runtime.shutdown_background();
    end
}

struct Coordinator<O: Observer> {
    fleet: Fleet,
    worker: Rc<Worker>,
    /// Threads that perform hosts beside this one.
    others: Vec<WorkerThread>,
    reports: mpsc::UnboundedReceiver<Report>,
    /// Where the observer's thread reports.
    answers: mpsc::UnboundedSender<Report>,
    questions: HostKeyQuestions,
    orders: HashMap<HostId, mpsc::UnboundedSender<Control>>,
    observer: ObserverThread<O>,
    notices: Vec<Notice>,
    /// What was learned of servers.
    learned: Learned,
    /// Whether the user knows that nothing is begun any more.
    has_told_halt: bool,
    /// When the observer was last told.
    told: Instant,
}

impl<O: Observer> Coordinator<O> {
    /// Until every host has ended.
    async fn run(&mut self, signals: &mut Signals) {
        let mut progress = tokio::time::interval(match self.worker.plan.keeper {
            None => PROGRESS_INTERVAL,
            // It would be a reason to wake up for as long as connections are kept.
            Some(_) => KEEPING_INTERVAL,
        });
        progress.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        let keeper = self.worker.plan.keeper.clone();
        loop {
            self.act();
            if self.fleet.is_done() {
                signals.hosts_have_ended();
                return;
            }
            let notices_due = (!self.notices.is_empty()).then_some(self.told + COLLECTED_FOR);
            let timeout = self
                .fleet
                .poll_timeout()
                .into_iter()
                .chain(notices_due)
                .chain(self.questions.due(&self.fleet.progress()))
                .min();
            tokio::select! {
                biased;
                report = self.reports.recv() => self.take_reports(report),
                () = sleep_until(timeout), if timeout.is_some() => {}
                wanted = signals.next() => {
                    self.questions.withdraw();
                    if let Some(keeper) = &keeper {
                        keeper.interrupted();
                    }
                    match wanted {
                        Wanted::Interrupt => self.fleet.interrupt(Instant::now()),
                        Wanted::Stop => self.fleet.abandon(Instant::now()),
                    }
                }
                _ = progress.tick() => self.tell(Vec::new()),
            }
            match self.observer.has_failed() {
                // What is half there goes, whoever hears of it.
                true if self.copies() => self.fleet.interrupt(Instant::now()),
                true => self.fleet.abandon(Instant::now()),
                false => {}
            }
        }
    }

    /// Whether files are copied, in place of commands that run.
    fn copies(&self) -> bool {
        self.worker.plan.transfer.is_some()
    }

    /// Does what the fleet wants done, and passes on what is finished.
    fn act(&mut self) {
        let now = Instant::now();
        while let Some(action) = self.fleet.poll_action(now) {
            match action {
                Action::Start { host, .. } => self.start(host),
                Action::Admit { host, gate } => self.order(host, Control::Admit(gate)),
                Action::Abort { host, failure } => self.order(host, tear_down(&failure)),
                Action::Interrupt { host } => self.order(host, Control::Interrupt),
                Action::Connect { jump, .. } => self.connect(jump),
                Action::AgreeToBatch { ended } => self.agree_to_batch(ended),
            }
        }
        let told_so_far = self.notices.len();
        while let Some(mut result) = self.fleet.poll_result() {
            self.orders.remove(&result.host);
            let plan = &self.worker.plan;
            if let Outcome::Failed { failure, .. } = &mut result.outcome {
                // Those that come after it would fare no better: they would have a part of their input.
                let input = plan.input.as_ref().and_then(Input::unkept);
                let sent = plan.transfer.as_ref().and_then(TransferPlan::unkept);
                self.notices.extend(input.or(sent).map(Notice::Failed));
                if plan.transfer.is_some() {
                    failures::tell_of_copy(failure, plan.deadlines.command);
                }
                if result.times.is_warm() {
                    failures::tell_of_kept(failure, plan.deadlines.login);
                }
            }
            self.notices.push(Notice::Result(result));
        }
        if let Some(journal) = &self.worker.plan.journal {
            journal.note_at_once(&self.notices[told_so_far..]);
        }
        let progress = self.fleet.progress();
        let is_short = self.fleet.is_halted() && progress.not_started > 0;
        if is_short && !std::mem::replace(&mut self.has_told_halt, true) {
            let text = format!(
                "{} failed, which is one too many: nothing else is started",
                match progress.failed {
                    1 => "1 host has".to_owned(),
                    hosts => format!("{hosts} hosts have"),
                }
            );
            self.notices.push(Notice::Demand(text));
        }
        let prompt = self
            .questions
            .put(now, &progress, &self.worker.plan, &self.answers);
        self.notices.extend(prompt.map(Notice::HostKeys));
        let due = now >= self.told + COLLECTED_FOR
            || self.notices.len() >= COLLECTED_AT_MOST
            || self.fleet.is_done();
        if due && !self.notices.is_empty() {
            let notices = std::mem::take(&mut self.notices);
            self.tell(notices);
            self.told = now;
        }
    }

    fn tell(&self, notices: Vec<Notice>) {
        self.observer.tell(notices, self.fleet.progress());
    }

    fn start(&mut self, host: HostId) {
        let (orders, receiver) = mpsc::unbounded_channel();
        self.orders.insert(host, orders);
        if self.worker.berth(host).is_some() {
            return self.worker.take(Order::Attempt(host, receiver));
        }
        let via = self.worker.plan.via(host);
        let jump = via.filter(|via| *via != JumpId::PROGRAM);
        let turn = jump.map_or(host.0, |jump| self.worker.plan.first_jump(jump).0);
        self.give(turn, Order::Attempt(host, receiver));
    }

    fn connect(&mut self, jump: JumpId) {
        if jump == JumpId::PROGRAM {
            let event = match self.worker.plan.ssh.check() {
                Ok(()) => JumpEvent::Up,
                Err(failure) => JumpEvent::Down(failure),
            };
            return self.fleet.handle_jump(Instant::now(), jump, event);
        }
        let turn = self.worker.plan.first_jump(jump).0;
        self.give(turn, Order::Connect(jump));
    }

    /// Sees to what is between two batches; [`Report::BatchAgreed`] will tell.
    fn agree_to_batch(&self, ended: u32) {
        let (plan, reports) = (self.worker.plan.clone(), self.answers.clone());
        tokio::task::spawn_local(async move {
            // Without a coordinator there is no run any more.
            let tell = |what| drop(reports.send(Report::Notice(what)));
            let agreed = match &plan.rolling {
                Some(rolling) => rolling.between(ended, tell).await,
                None => Ok(()),
            };
            let _ = reports.send(Report::BatchAgreed(agreed));
        });
    }

    /// Gives an order to one of the threads. All that goes through one jump host is done by the same.
    fn give(&self, turn: u32, order: Order) {
        match (turn as usize % (self.others.len() + 1)).checked_sub(1) {
            None => self.worker.take(order),
            Some(other) => {
                if let Err(order) = self.others[other].take(order) {
                    self.worker.decline(order);
                }
            }
        }
    }

    fn order(&self, host: HostId, control: Control) {
        if let Some(orders) = self.orders.get(&host) {
            // A host that has just ended has reported it, and needs no order.
            let _ = orders.send(control);
        }
    }

    fn take_reports(&mut self, first: Option<Report>) {
        let mut next = first;
        let mut left = REPORTS_AT_ONCE;
        while let Some(report) = next {
            self.take(report);
            left -= 1;
            next = if left > 0 {
                self.reports.try_recv().ok()
            } else {
                None
            };
        }
    }

    fn take(&mut self, report: Report) {
        match report {
            Report::Host(host, event) => {
                if let Err(error) = self.fleet.handle(Instant::now(), host, event) {
                    tracing::error!(host = host.0, %error, "the fleet refused an event");
                }
            }
            Report::Jump(jump, event) => self.fleet.handle_jump(Instant::now(), jump, event),
            Report::Learned(fingerprint, server) => self.learned.insert(fingerprint, server),
            Report::Notice(text) => self.notices.push(Notice::Words(text)),
            Report::Demand(text) => self.notices.push(Notice::Demand(text)),
            Report::Banner(of, banner) => self.notices.push(Notice::Banner(of, banner)),
            Report::Unlock(key) => self.notices.push(Notice::Unlock(key)),
            Report::UnknownHostKey(question) => self.questions.add(question, Instant::now()),
            Report::HostKeysAnswered(answer) => {
                for question in self.questions.answered() {
                    self.pass_on(question, &answer);
                }
            }
            Report::AddKey(addition) => self.notices.push(Notice::AddKey(addition)),
            Report::Output(output) => self.notices.push(Notice::Output(output)),
            Report::TerminalLent => self.notices.push(Notice::TerminalLent),
            Report::Resumed(host) => {
                let told = self.fleet.resume(host);
                self.heed(host, told);
            }
            Report::Dismissed(host) => {
                let failure = Failure::new(FailureKind::Lost, "not needed any more");
                let told = self.fleet.give_up(Instant::now(), host, failure);
                self.heed(host, told);
            }
            Report::Abandoned => self.fleet.abandon(Instant::now()),
            Report::HostKeysDue => self.record_host_keys(),
            Report::BatchAgreed(Ok(())) => self.fleet.begin_batch(),
            Report::BatchAgreed(Err(why)) => {
                let text = format!("{why}; nothing else is started");
                self.notices.push(Notice::Demand(text));
                self.has_told_halt = true;
                self.fleet.halt(Instant::now());
            }
            Report::Killed(host, verdict) => {
                self.notices.push(Notice::Killed(host, verdict));
                if let (Some(journal), Some(killed)) =
                    (&self.worker.plan.journal, self.notices.last())
                {
                    journal.note_at_once(slice::from_ref(killed));
                }
            }
            Report::Transferred(host, tally) => {
                self.notices.push(Notice::Transferred(host, tally));
            }
        }
    }

    /// Lets a host go on whose key the user has accepted, or has it end.
    fn pass_on(&mut self, question: HostKeyQuestion, answer: &Confirmation) {
        let trust = &question.endpoint(&self.worker.plan).trust;
        let unknown = &question.unknown;
        let result = match answer {
            Confirmation::Yes => trust.accept_asked(unknown, &self.worker.new_keys),
            _ => Err(not_accepted(unknown, answer)),
        };
        match (question.asker, result) {
            // A jump host that nobody waits for any more needs no answer.
            (Asker::Jump(_, answer), result) => drop(answer.send(result)),
            (Asker::Host(host), result) => {
                let told = match result {
                    Ok(()) => self.fleet.resume(host),
                    Err(failure) => self.fleet.give_up(Instant::now(), host, failure),
                };
                self.heed(host, told);
            }
        }
    }

    fn heed(&self, host: HostId, told: Result<(), EventError>) {
        if let Err(error) = told {
            tracing::error!(host = host.0, %error, "the fleet refused an answer");
        }
    }

    /// Records the host keys that were accepted so far, beside the run.
    fn record_host_keys(&self) {
        let (keys, reports) = (self.worker.new_keys.clone(), self.answers.clone());
        if keys.is_empty() {
            return;
        }
        spawn_blocking(move || {
            for words in keys.record(&|| true) {
                // Without a coordinator nobody is told.
                let _ = reports.send(Report::Notice(words));
            }
        });
    }
}

/// Records host keys while signals are heard: somebody who does not wait until another program unlocks known_hosts is
/// told what is not in it.
async fn record(new_keys: &Arc<NewKeys>, signals: &mut Signals) -> Vec<String> {
    if new_keys.is_empty() {
        return Vec::new();
    }
    let has_left = Arc::new(AtomicBool::new(false));
    let (keys, flag) = (new_keys.clone(), has_left.clone());
    let mut recording = spawn_blocking(move || keys.record(&|| !flag.load(Ordering::Relaxed)));
    let recorded = tokio::select! {
        biased;
        recorded = &mut recording => Some(recorded),
        () = leaving(signals) => {
            has_left.store(true, Ordering::Relaxed);
            tokio::time::timeout(LAST_WORDS, recording).await.ok()
        }
    };
    match recorded {
        Some(Ok(said)) => said,
        Some(Err(error)) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Vec::new(),
        },
        None => vec!["new host keys may not be in known_hosts: you did not wait".to_owned()],
    }
}

fn tear_down(why: &Failure) -> Control {
    match why.kind {
        FailureKind::CommandTimeout => Control::Terminate,
        _ => Control::Abort,
    }
}

/// Until the user does not want to wait any more for the rest to be told.
async fn leaving(signals: &mut Signals) {
    if signals.stopped() {
        tokio::select! {
            () = tokio::time::sleep(LAST_WORDS) => return,
            wanted = signals.next() => if wanted == Wanted::Stop { return },
        }
    }
    while signals.next().await != Wanted::Stop {}
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}
