//! One attempt at a host by the installed ssh: what it writes is the host's output, what it says of itself moves the host
//! on, and its end is the host's.
//!
//! The gates come first, both of them: a process that has begun cannot be made to wait. From there on phases are what ssh
//! says they are, so that the fleet's deadlines and limits hold as for native hosts.

use std::cell::RefCell;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use rustix::process::Signal;
use sshoal_fleet::{Event, Failure, FailureKind, Fate, Gate, HostId, KillVerdict, Outcome, Phase};
use sshoal_openssh::{End, Input, Log, Progress, Ssh};
use sshoal_proto::{ExecFate, Stream};
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::{Notify, watch};
use tokio::time::timeout;

use crate::failures::Ended;
use crate::hints;
use crate::host::{Orders, aborted, pass};
use crate::input::Feeder;
use crate::plan::SshPlan;
use crate::process::is_shortage;
use crate::timing::SshTiming;
use crate::trial::{SshTrial, ZEROS};
use crate::worker::{Banner, Control, Report, Worker};

/// From SIGTERM to SIGKILL. The fleet waits 5 s for the answer to an abort.
const GRACE: Duration = Duration::from_secs(2);
/// Most octets that are kept of what comes before the command, and told of.
const MAX_TOLD: usize = 4 * 1024;

/// What becomes of such a host where files are copied: its own failure, and nobody else's.
pub(crate) fn copies_nothing(plan: &SshPlan) -> Failure {
    let detail = format!("goes by ssh ({}), by which sshoal does not copy", plan.why);
    let remedy = "take out of ssh_config what that names, or use scp for this host";
    Failure::with_remedy(FailureKind::Transfer, detail, remedy)
}

/// Runs the host's command by an ssh, to its end.
pub(crate) async fn run(
    worker: &Rc<Worker>,
    host: HostId,
    plan: &SshPlan,
    orders: &mut Orders,
) -> Result<Outcome, Ended> {
    pass(worker, host, orders, Gate::Login).await?;
    pass(worker, host, orders, Gate::Session).await?;
    let reads = plan.reads && !plan.lends_terminal;
    let feeder = worker
        .plan
        .input
        .as_ref()
        .filter(|_| reads)
        .map(Feeder::new);
    let measures = worker.plan.trial.is_some();
    let timing = SshTiming::begin(worker, host);
    let input = match (plan.lends_terminal, &feeder) {
        (true, _) => Input::Terminal,
        (false, Some(_)) => Input::Pipe,
        (false, None) if measures => Input::Pipe,
        (false, None) => Input::Nothing,
    };
    worker.record(host).await?;
    let mut ssh =
        Ssh::start(&worker.plan.ssh, &plan.line, input).map_err(|error| not_started(&error))?;
    if !plan.lends_terminal && timing.is_none() && worker.plan.gives_way() {
        // Everything else on the machine comes first (docs/adr/0009).
        hints::lengthen_time_slice_of(ssh.id());
    }
    let pipes = Pipes::of(&mut ssh);
    let heard = Heard {
        worker,
        host,
        plan,
        log: RefCell::default(),
        told: RefCell::default(),
        trial: SshTrial::begin(&worker.plan, host.0, ssh.id()).map(RefCell::new),
        timing: timing.map(RefCell::new),
        moved: Notify::new(),
    };
    if plan.lends_terminal {
        // ssh has the terminal, and tells us nothing: it keeps its own deadlines until the command ends.
        worker.enter(host, Phase::Command);
    }
    let mut interrupted = false;
    let torn_down = {
        let mut work = std::pin::pin!(heard.listen(&ssh, pipes, feeder));
        loop {
            tokio::select! {
                biased;
                order = orders.recv() => match order {
                    Some(Control::Admit(_)) => {}
                    Some(Control::Interrupt) => {
                        interrupted = true;
                        ssh.signal(Signal::INT);
                        heard.tell_of_killing();
                    }
                    order @ (Some(Control::Abort | Control::Terminate) | None) => {
                        ssh.signal(Signal::TERM);
                        if order == Some(Control::Terminate) {
                            heard.tell_of_killing();
                        }
                        // What the command has written until then is not lost.
                        let _ = timeout(GRACE, &mut work).await;
                        break true;
                    }
                },
                end = &mut work => {
                    end?;
                    break false;
                }
            }
        }
    };
    if torn_down {
        let _ = ssh.kill().await;
        return Err(aborted(exec_fate(heard.log.borrow().fate())));
    }
    let status = match interrupted {
        // One that was not in a session yet does not end its ProxyCommand when a signal ends it.
        true => ssh.kill().await,
        false => ssh.reap().await,
    };
    let status = status.map_err(|error| heard.lost(format!("waiting for ssh: {error}")))?;
    if plan.lends_terminal
        && let Some(code) = status.code()
    {
        return Ok(Outcome::Exit(code.cast_unsigned()));
    }
    let told = heard.told.borrow();
    let end = heard
        .log
        .borrow()
        .end(status, &String::from_utf8_lossy(&told));
    match end {
        End::Exit(status) => Ok(Outcome::Exit(status)),
        End::Signal => Ok(Outcome::Signal {
            // ssh does not tell which.
            name: "unknown".to_owned(),
            core_dumped: false,
            message: String::new(),
        }),
        End::Failed(_, fate) if interrupted => Err(interrupted_with(fate)),
        End::Failed(failure, fate) => Err(Ended::new(failure, exec_fate(fate))),
    }
}

/// ssh cannot pass a signal on: it has ended, and the command may go on.
fn interrupted_with(fate: Fate) -> Ended {
    let detail = match fate.is_proven_not_run() {
        true => "interrupted before the command was sent",
        false => {
            "interrupted: ssh has ended, which cannot pass the signal on; the command may go on on the host"
        }
    };
    Ended::new(Failure::new(FailureKind::Lost, detail), exec_fate(fate))
}

fn not_started(error: &io::Error) -> Ended {
    let kind = match is_shortage(error) {
        true => FailureKind::Throttled,
        false => FailureKind::Unreachable,
    };
    let remedy = match kind {
        FailureKind::Throttled => {
            "lower the number of hosts at a time (-p), or raise the limits of this machine (ulimit -u, -n)"
        }
        _ => "check the program that --ssh names",
    };
    Ended::before_command(Failure::with_remedy(kind, error.to_string(), remedy))
}

/// The connection's name for what ssh's log knows.
fn exec_fate(fate: Fate) -> ExecFate {
    match fate {
        Fate::NotSent => ExecFate::NotSent,
        Fate::ProvenDiscarded => ExecFate::ProvenDiscarded,
        Fate::MayHaveRun => ExecFate::MayHaveRun,
        Fate::Ran => ExecFate::Ran,
    }
}

/// The ends that are ours.
struct Pipes {
    stdin: Option<Sender>,
    stdout: Option<Receiver>,
    stderr: Option<Receiver>,
    log: Option<Receiver>,
    log_writer: Option<OwnedFd>,
}

impl Pipes {
    fn of(ssh: &mut Ssh) -> Pipes {
        Pipes {
            stdin: ssh.stdin.take(),
            stdout: ssh.stdout.take(),
            stderr: ssh.stderr.take(),
            log: ssh.log.take(),
            log_writer: ssh.log_writer.take(),
        }
    }
}

/// What was heard of one ssh.
struct Heard<'a> {
    worker: &'a Rc<Worker>,
    host: HostId,
    plan: &'a SshPlan,
    log: RefCell<Log>,
    /// What came on standard error before the command was sent: a banner, and what is said on the way.
    told: RefCell<Vec<u8>>,
    /// What is measured in place of a command.
    trial: Option<RefCell<SshTrial>>,
    /// When what was passed, if the login is measured.
    timing: Option<RefCell<SshTiming>>,
    /// Something has come for it.
    moved: Notify,
}

impl Heard<'_> {
    /// A command that must end is told so by ssh's own end: nobody looks after it.
    fn tell_of_killing(&self) {
        let may_run = !exec_fate(self.log.borrow().fate()).safe_to_resend();
        if self.worker.plan.kill.is_some() && may_run {
            let why = "hosts that are reached by ssh are not looked after";
            let verdict = KillVerdict::NotConfirmed(why.to_owned());
            self.worker.report(Report::Killed(self.host, verdict));
        }
    }

    /// Until ssh has ended, and all that it wrote is on its way.
    async fn listen(&self, ssh: &Ssh, pipes: Pipes, feeder: Option<Feeder>) -> Result<(), Ended> {
        let (over, is_over) = watch::channel(false);
        let end = async {
            let ended = ssh.ended().await;
            // Whoever reads has not gone before.
            let _ = over.send(true);
            ended
        };
        let log = pipes.log.as_ref();
        let all = async {
            let (ended, (), (), ()) = tokio::join!(
                end,
                self.follow_log(log, pipes.log_writer, is_over.clone()),
                self.carry_output(pipes.stdout, is_over.clone()),
                self.carry_errors(pipes.stderr, log, is_over.clone()),
            );
            ended.map_err(|error| self.lost(format!("waiting for ssh: {error}")))
        };
        if let Some(trial) = &self.trial {
            let ((), ended) = tokio::join!(self.feed_trial(trial, pipes.stdin), all);
            return ended;
        }
        tokio::select! {
            ended = all => ended,
            error = feed(feeder, pipes.stdin) => {
                Err(self.lost(format!("reading standard input: {error}")))
            }
        }
    }

    /// Gives the trial's command what it is to read, as soon as all has come that it has written; or until it reads no more.
    async fn feed_trial(&self, trial: &RefCell<SshTrial>, stdin: Option<Sender>) {
        let Some(mut stdin) = stdin else { return };
        loop {
            let due = trial.borrow_mut().due();
            match due {
                None => return,
                Some(0) => tokio::select! {
                    () = self.moved.notified() => {}
                    // Nobody reads any more.
                    _ = stdin.ready(Interest::ERROR) => return,
                },
                Some(octets) => {
                    if stdin.write_all(&ZEROS[..octets]).await.is_err() {
                        return;
                    }
                    trial.borrow_mut().sent(octets);
                }
            }
        }
    }

    /// Hands on what the command has written; or measures it.
    async fn hand_on(&self, stream: Stream, octets: Vec<u8>) {
        if let Some(timing) = &self.timing {
            return timing.borrow_mut().take_output();
        }
        match &self.trial {
            None => self.worker.deliver(self.host, stream, octets).await,
            Some(trial) => {
                trial.borrow_mut().handle(stream, &octets);
                self.moved.notify_one();
                let pause = trial.borrow_mut().take_pause();
                if let Some(pause) = pause {
                    tokio::time::sleep(pause).await;
                }
            }
        }
    }

    async fn follow_log(
        &self,
        log: Option<&Receiver>,
        mut writer: Option<OwnedFd>,
        mut is_over: watch::Receiver<bool>,
    ) {
        let Some(log) = log else { return };
        while let Some(octets) = self.next(log, &mut is_over).await {
            writer = None;
            self.take_log(&octets);
        }
        drop(writer);
    }

    /// Reads what is there of the log, so that what comes on standard error is not judged by an older one.
    fn catch_up(&self, log: &Receiver) {
        let mut buffer = [0; 4096];
        while let Ok(read @ 1..) = rustix::io::read(log, &mut buffer) {
            self.take_log(&buffer[..read]);
        }
    }

    fn take_log(&self, octets: &[u8]) {
        if let Some(timing) = &self.timing {
            timing.borrow_mut().take_log(octets);
        }
        let mut steps = Vec::new();
        self.log
            .borrow_mut()
            .handle(octets, |step| steps.push(step));
        for step in steps {
            match step {
                // From the start; but now it is known.
                Progress::Telling => self.worker.enter(self.host, Phase::Lookup),
                Progress::Connecting => self.worker.enter(self.host, Phase::Connect),
                Progress::Connected => self.worker.enter(self.host, Phase::Login),
                Progress::KeysExchanged => self
                    .worker
                    .report(Report::Host(self.host, Event::KeysExchanged)),
                Progress::LoggedIn => self.worker.enter(self.host, Phase::Session),
                Progress::CommandSent => {
                    self.worker.enter(self.host, Phase::Command);
                    self.tell();
                }
            }
        }
    }

    /// Tells what came before the command, once it is known that nothing went wrong by it.
    fn tell(&self) {
        let told = std::mem::take(&mut *self.told.borrow_mut());
        let label = &self.plan.label;
        if told.is_empty() {
            return;
        }
        if !self.plan.is_proxied {
            let from = label.clone();
            return self
                .worker
                .report(Report::Banner(Some(self.host), Banner { from, text: told }));
        }
        for line in String::from_utf8_lossy(&told).lines() {
            let line = line.trim();
            if !line.is_empty() {
                self.worker
                    .report(Report::Notice(format!("{label}: on the way: {line}")));
            }
        }
    }

    async fn carry_output(&self, pipe: Option<Receiver>, mut is_over: watch::Receiver<bool>) {
        let Some(pipe) = pipe else { return };
        while let Some(octets) = self.next(&pipe, &mut is_over).await {
            self.log.borrow_mut().handle_output();
            self.hand_on(Stream::Stdout, octets).await;
        }
    }

    async fn carry_errors(
        &self,
        pipe: Option<Receiver>,
        log: Option<&Receiver>,
        mut is_over: watch::Receiver<bool>,
    ) {
        let (Some(pipe), Some(log)) = (pipe, log) else {
            return;
        };
        // What may be ssh's own last words is kept until it is known what comes behind it.
        let mut farewell = Vec::new();
        while let Some(octets) = self.next(&pipe, &mut is_over).await {
            self.catch_up(log);
            if self.log.borrow().progress() < Some(Progress::CommandSent) {
                let mut told = self.told.borrow_mut();
                let room = MAX_TOLD.saturating_sub(told.len()).min(octets.len());
                told.extend_from_slice(&octets[..room]);
                continue;
            }
            let whole = [std::mem::take(&mut farewell), octets].concat();
            let (output, last) = whole.split_at(whole.len() - sshoal_openssh::farewell(&whole));
            farewell = last.to_vec();
            self.pass_errors(output).await;
        }
        // All of the log has been read when ssh has ended.
        self.catch_up(log);
        let has_end = self.log.borrow().has_end();
        match has_end {
            true => self.pass_errors(&farewell).await,
            false => self.log.borrow_mut().handle_farewell(&farewell),
        }
    }

    async fn pass_errors(&self, octets: &[u8]) {
        if !octets.is_empty() {
            self.log.borrow_mut().handle_output();
            self.hand_on(Stream::Stderr, octets.to_vec()).await;
        }
    }

    /// What comes next of a pipe; after ssh's end, what is left in it.
    ///
    /// The end of the pipe is not waited for then: what ssh has left running (a ControlPersist master) may hold it open.
    async fn next(&self, pipe: &Receiver, is_over: &mut watch::Receiver<bool>) -> Option<Vec<u8>> {
        loop {
            if *is_over.borrow() {
                let mut buffer = self.worker.buffer.borrow_mut();
                let read = rustix::io::read(pipe, &mut **buffer).ok()?;
                return (read > 0).then(|| buffer[..read].to_vec());
            }
            tokio::select! {
                ready = pipe.readable() => {
                    ready.ok()?;
                    let mut buffer = self.worker.buffer.borrow_mut();
                    match pipe.try_read(&mut buffer) {
                        Ok(0) => return None,
                        Ok(read) => return Some(buffer[..read].to_vec()),
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                        // A pipe knows no error but those of this program: nothing more comes of it.
                        Err(_) => return None,
                    }
                }
                _ = is_over.changed() => {}
            }
        }
    }

    fn lost(&self, detail: String) -> Ended {
        let fate = exec_fate(self.log.borrow().fate());
        Ended::new(Failure::new(FailureKind::Lost, detail), fate)
    }
}

/// Gives the command its input; returns only if that cannot be read.
async fn feed(feeder: Option<Feeder>, stdin: Option<Sender>) -> io::Error {
    if let (Some(feeder), Some(stdin)) = (feeder, stdin)
        && let Err(error) = feeder.pour(stdin).await
    {
        return error;
    }
    std::future::pending().await
}
