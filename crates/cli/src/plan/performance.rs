//! `sshoal plan run`: each step is a process of its own, of this same program, so that it is what its command line would be.
//!
//! One step at a time shares our terminal, and its questions and progress are there; the terminal's Ctrl-C reaches both. Several
//! at once have none, and what they say has their names before it.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Instant;

use rustix::process::{Signal, getpgrp};
use rustix::termios::tcgetpgrp;
use sshoal_net::{Signals, Wanted};
use sshoal_plan::{Course, Plan, Verb};
use sshoal_spawn::{Child, Command, Stdio};
use tokio::net::unix::pipe::Receiver;
use tokio::sync::mpsc;
use tokio::task::{JoinSet, LocalSet};

use super::args::RunPlanArgs;
use super::commands::{self, StepCommand};
use super::output::{Mark, Stream, copy};
use super::sudo::SudoPassword;
use super::summary::{Ending, Summary, status_without_output};
use super::{PlanFile, PlanFileError};
use crate::say::say;

/// Carries the plan out; returns the exit status.
pub(super) fn run(args: &RunPlanArgs) -> Result<u8, Box<dyn std::error::Error>> {
    let since = Instant::now();
    let PlanFile { path, plan } = PlanFile::read(&args.file)?;
    let wrong = |what: String| PlanFileError::Chosen {
        path: path.clone(),
        what,
    };
    let chosen = plan.chosen(&args.only, &args.from);
    let chosen = chosen.map_err(|error| wrong(error.to_string()))?;
    let commands = commands::of_all(&path, &plan)?;
    let wants_sudo = commands
        .iter()
        .zip(&chosen)
        .any(|(it, chosen)| *chosen && it.sudo);
    let password = (wants_sudo && !args.dry_run).then(SudoPassword::ask);
    let performance = Performance {
        args,
        plan: &plan,
        commands: &commands,
        password: password.transpose()?,
        stdout: Stream::of(io::stdout())?,
        stderr: Stream::of(io::stderr())?,
        sharing: Sharing::of(args),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let course = Course::new(plan.graph(), &chosen);
    let mut summary = LocalSet::new().block_on(&runtime, performance.perform(course))?;
    summary.elapsed = since.elapsed();
    let written = match args {
        _ if args.dry_run => Ok(()),
        RunPlanArgs { json: true, .. } => {
            let record = summary.record(&plan);
            runtime.block_on(performance.stdout.write(record.as_bytes()))
        }
        _ => Ok(()),
    };
    // A write that does not end is left behind.
    runtime.shutdown_background();
    if !args.quiet && !args.dry_run {
        say(summary.text(&path, &plan));
    }
    Ok(match written {
        Err(error) => status_without_output(&error),
        Ok(()) => summary.exit_status(),
    })
}

/// Which of our streams and what of our terminal a step has.
#[derive(Clone, Copy)]
struct Sharing {
    /// Our session, and so the terminal that asks.
    session: bool,
    stdout: bool,
    stderr: bool,
}

impl Sharing {
    fn of(args: &RunPlanArgs) -> Sharing {
        let alone = args.steps_at_once == 1;
        Sharing {
            session: alone,
            stdout: alone && !args.json && io::stdout().is_terminal(),
            stderr: alone && io::stderr().is_terminal(),
        }
    }
}

/// A step that has begun.
struct Begun {
    step: usize,
    since: Instant,
    signals: mpsc::UnboundedSender<Signal>,
}

/// How a step's process has ended, and why what it wrote on its standard output could not all be passed on.
type Ended = (usize, io::Result<(ExitStatus, Option<io::Error>)>);

struct Performance<'a> {
    args: &'a RunPlanArgs,
    plan: &'a Plan,
    commands: &'a [StepCommand],
    password: Option<SudoPassword>,
    stdout: Stream,
    stderr: Stream,
    sharing: Sharing,
}

impl Performance<'_> {
    /// Until no step runs and none may begin.
    async fn perform(&self, mut course: Course<'_>) -> io::Result<Summary> {
        let mut signals = Signals::listen(true);
        let mut running: JoinSet<Ended> = JoinSet::new();
        let mut begun: Vec<Begun> = Vec::new();
        let mut endings = vec![None; self.commands.len()];
        loop {
            while begun.len() < self.args.steps_at_once as usize
                && let Some(step) = course.begin_next()
            {
                begun.push(self.begin(step, &mut running).await);
            }
            if begun.is_empty() {
                break;
            }
            tokio::select! {
                biased;
                wanted = signals.next() => {
                    course.halt();
                    self.pass_on(&begun, wanted, signals.interruption().stopped_by);
                }
                Some(joined) = running.join_next() => {
                    let ended = joined.map_err(io::Error::other)?;
                    let step = ended.0;
                    let ending = self.ending(ended);
                    // All is to be shown, whatever does not exist yet.
                    course.end(step, ending.is_done() || self.args.dry_run);
                    if ending.ends_plan() {
                        course.halt();
                    }
                    let at = begun.iter().position(|begun| begun.step == step);
                    let since = at.map(|at| begun.swap_remove(at).since);
                    endings[step] = since.map(|since| (ending, since.elapsed()));
                }
            }
        }
        Ok(Summary {
            outcomes: course.outcomes().to_vec(),
            endings,
            interruption: signals.interruption(),
            elapsed: Default::default(),
        })
    }

    /// Starts a step. What keeps it from starting is how it ended.
    async fn begin(&self, step: usize, running: &mut JoinSet<Ended>) -> Begun {
        let name = &self.plan.steps()[step].name;
        if !self.args.quiet {
            let text = format!("sshoal: step {name}: {}\n", self.heading(step));
            // That nobody can be told is no reason not to begin.
            let _ = self.stderr.write(text.as_bytes()).await;
        }
        let (orders, orders_in) = mpsc::unbounded_channel();
        let mark = Mark::of(name, self.args.json);
        let streams = (self.stdout.clone(), self.stderr.clone());
        let words = Mark::of(name, false);
        let started = self.start(step);
        running.spawn_local(async move {
            let ended = match started {
                Ok(child) => ended(child, orders_in, [(mark, streams.0), (words, streams.1)]).await,
                Err(error) => Err(error),
            };
            (step, ended)
        });
        Begun {
            step,
            since: Instant::now(),
            signals: orders,
        }
    }

    fn ending(&self, (step, ended): Ended) -> Ending {
        let name = &self.plan.steps()[step].name;
        match ended {
            Ok((status, None)) => Ending::of(status),
            Ok((_, Some(error))) => {
                // That nobody reads any more is no mishap.
                if error.kind() != io::ErrorKind::BrokenPipe {
                    say(format!(
                        "step {name}: its output cannot be written: {error}"
                    ));
                }
                Ending::without_output(&error)
            }
            Err(error) => {
                say(format!("step {name}: it cannot be started: {error}"));
                Ending::NOT_STARTED
            }
        }
    }

    fn heading(&self, step: usize) -> String {
        let verb = self.plan.steps()[step].action.verb.key();
        match self.commands[step].hosts {
            1 => format!("{verb}, 1 host"),
            hosts => format!("{verb}, {hosts} hosts"),
        }
    }

    fn start(&self, step: usize) -> io::Result<Child> {
        let verb = self.plan.steps()[step].action.verb;
        let step = &self.commands[step];
        let mut more = Vec::new();
        // Only those have the largest status to exit with.
        let has_statuses = matches!(verb, Verb::Run | Verb::Script | Verb::Each);
        more.extend(has_statuses.then_some("--as-step"));
        more.extend(step.lets_fail.then_some("--forgive"));
        more.extend(self.args.dry_run.then_some("--dry-run"));
        more.extend(self.args.json.then_some("--json"));
        more.extend(self.args.quiet.then_some("--quiet"));
        let shared = |is_shared| match is_shared {
            true => Stdio::inherit(),
            false => Stdio::pipe(),
        };
        let mut command = Command::new(std::env::current_exe()?);
        command
            .arg0(OsStr::new("sshoal"))
            .args(step.arguments(&more))
            .stdin(Stdio::null())
            .stdout(shared(self.sharing.stdout))
            .stderr(shared(self.sharing.stderr))
            .with_pidfd();
        if !self.sharing.session {
            command.new_session();
        }
        if let Some(password) = self.password.as_ref().filter(|_| step.sudo) {
            for (name, value) in password.variables()? {
                command.env(name, value);
            }
        }
        Ok(command.spawn()?)
    }

    /// Has the steps that run end as we are to.
    fn pass_on(&self, begun: &[Begun], wanted: Wanted, stopped_by: Option<i32>) {
        let signal = match stopped_by.and_then(Signal::from_named_raw) {
            Some(signal) => signal,
            None if self.sharing.session && is_in_foreground() => return,
            None => Signal::INT,
        };
        tracing::debug!(?wanted, ?signal, "passed on to the steps");
        for step in begun {
            // One that has just ended needs no signal.
            let _ = step.signals.send(signal);
        }
    }
}

/// Whether the terminal's keys signal us, and with us all that shares our session.
fn is_in_foreground() -> bool {
    let terminal = File::open("/dev/tty");
    terminal.is_ok_and(|terminal| tcgetpgrp(terminal).is_ok_and(|group| group == getpgrp()))
}

/// Waits for a step's end, with all that it has written, and signals it meanwhile.
async fn ended(
    mut child: Child,
    mut orders: mpsc::UnboundedReceiver<Signal>,
    [stdout, stderr]: [(Mark, Stream); 2],
) -> io::Result<(ExitStatus, Option<io::Error>)> {
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let pipes = [(out, stdout, true), (err, stderr, false)];
    let mut copies = JoinSet::new();
    for (pipe, (mark, stream), is_output) in pipes {
        if let Some(pipe) = pipe {
            let pipe = Receiver::from_owned_fd(pipe.into())?;
            copies.spawn_local(async move {
                let copied = copy(pipe, mark, stream).await;
                // Words that nobody can be told are not worth a step.
                copied.err().filter(|_| is_output)
            });
        }
    }
    let status = loop {
        tokio::select! {
            status = child.wait_async() => break status?,
            Some(signal) = orders.recv() => child.signal(signal)?,
        }
    };
    let mut unwritten = None;
    while let Some(copied) = copies.join_next().await {
        unwritten = unwritten.or(copied.map_err(io::Error::other)?);
    }
    let status = match status.signal() {
        None => status,
        // As a shell has it.
        Some(signal) => ExitStatus::from_raw((128 + signal) << 8),
    };
    Ok((status, unwritten))
}
