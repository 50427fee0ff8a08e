//! One host's command on this machine: `sshoal each`.
//!
//! The command leads a process group of its own, so that a signal reaches all that it has started, and so that
//! Ctrl-C on the terminal reaches it through the fleet only.

use std::future::poll_fn;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::pin::Pin;
use std::process::ExitStatus;
use std::rc::Rc;
use std::task::ready;
use std::time::Duration;

use rustix::process::Signal;
use sshoal_fleet::{Failure, FailureKind, Gate, HostId, Outcome, Phase};
use sshoal_proto::{ExecFate, Stream};
use sshoal_spawn::{Command, Stdio};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::unix::pipe::Sender;
use tokio::time::timeout;

use crate::failures::Ended;
use crate::host::{Orders, aborted, pass};
use crate::input::Feeder;
use crate::plan::LocalCommand;
use crate::process::{Process, is_shortage};
use crate::worker::{Control, Worker};

/// From SIGTERM to SIGKILL. The fleet waits 5 s for the answer to an abort.
const GRACE: Duration = Duration::from_secs(2);
/// What a shell exits with when there is no such program, and when it cannot be executed (POSIX, 2.8.2).
const NOT_FOUND: u32 = 127;
const NOT_EXECUTABLE: u32 = 126;

/// Runs the command to its end, or to that of its process group.
pub(crate) async fn run(
    worker: &Rc<Worker>,
    host: HostId,
    command: &LocalCommand,
    orders: &mut Orders,
) -> Result<Outcome, Ended> {
    pass(worker, host, orders, Gate::Session).await?;
    let feeder = worker.plan.input.as_ref().map(Feeder::new);
    worker.record(host).await?;
    let mut process = match spawn(command, feeder.is_some()) {
        Ok(process) => process,
        Err(error) => return not_started(worker, host, command, &error).await,
    };
    worker.enter(host, Phase::Command);
    let group = process.group.clone();
    let mut work = std::pin::pin!(perform(worker, host, &mut process, feeder));
    loop {
        tokio::select! {
            biased;
            order = orders.recv() => match order {
                Some(Control::Admit(_)) => {}
                Some(Control::Interrupt) => group.signal(Signal::INT),
                Some(Control::Abort | Control::Terminate) | None => break,
            },
            end = &mut work => {
                let status = end?;
                group.release();
                return Ok(outcome(status));
            }
        }
    }
    group.signal(Signal::TERM);
    // Its output is read on: who writes last words must not be kept from ending by a full pipe.
    let end = async { tokio::join!(work, group.ended()) };
    // Without an end within the grace, dropping the process kills its group.
    let _ = timeout(GRACE, end).await;
    Err(aborted(ExecFate::Ran))
}

fn spawn(command: &LocalCommand, reads: bool) -> io::Result<Process> {
    let stdin = if reads { Stdio::pipe() } else { Stdio::null() };
    let mut started = Command::new(&command.program);
    for (name, value) in &command.variables {
        started.env(name, value);
    }
    started
        .args(&command.arguments)
        .stdin(stdin)
        .stdout(Stdio::pipe())
        .stderr(Stdio::pipe())
        // What the user's shell has opened for us (3<file) is the command's, as it would be for xargs.
        .inherit_descriptors(true);
    Process::start(&mut started)
}

/// What became of a command that could not be started.
async fn not_started(
    worker: &Rc<Worker>,
    host: HostId,
    command: &LocalCommand,
    error: &io::Error,
) -> Result<Outcome, Ended> {
    let said = format!("{}: {error}", command.program.to_string_lossy());
    if is_shortage(error) {
        let remedy = "lower the number of hosts at a time (-p), or raise the limits of this machine (ulimit -u)";
        let failure = Failure::with_remedy(FailureKind::Throttled, said, remedy);
        return Err(Ended::before_command(failure));
    }
    let said = format!("sshoal: {said}\n").into_bytes();
    worker.deliver(host, Stream::Stderr, said).await;
    Ok(Outcome::Exit(match error.kind() {
        io::ErrorKind::NotFound => NOT_FOUND,
        _ => NOT_EXECUTABLE,
    }))
}

/// Until the command has ended and nobody writes its output any more, as with a session of sshd.
async fn perform(
    worker: &Rc<Worker>,
    host: HostId,
    process: &mut Process,
    feeder: Option<Feeder>,
) -> Result<ExitStatus, Ended> {
    let stdin = process.stdin.take();
    let (stdout, stderr) = (process.stdout.take(), process.stderr.take());
    let end = async {
        let (status, (), ()) = tokio::join!(
            process.wait(),
            carry(worker, host, Stream::Stdout, stdout),
            carry(worker, host, Stream::Stderr, stderr),
        );
        status.map_err(|error| lost(format!("waiting for the command: {error}")))
    };
    tokio::select! {
        status = end => status,
        error = feed(feeder, stdin) => Err(lost(format!("reading standard input: {error}"))),
    }
}

fn lost(detail: String) -> Ended {
    Ended::new(Failure::new(FailureKind::Lost, detail), ExecFate::Ran)
}

/// Hands one of the command's streams on, to its end.
async fn carry(
    worker: &Rc<Worker>,
    host: HostId,
    stream: Stream,
    pipe: Option<impl AsyncRead + Unpin>,
) {
    let Some(mut pipe) = pipe else { return };
    loop {
        let read = poll_fn(|context| {
            let mut buffer = worker.buffer.borrow_mut();
            let mut unfilled = ReadBuf::new(&mut buffer);
            ready!(Pin::new(&mut pipe).poll_read(context, &mut unfilled))?;
            std::task::Poll::Ready(Ok::<_, io::Error>(unfilled.filled().to_vec()))
        });
        match read.await {
            // A pipe knows no error but those of this program: nothing more comes of it.
            Ok(octets) if octets.is_empty() => return,
            Err(_) => return,
            Ok(octets) => worker.deliver(host, stream, octets).await,
        }
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

fn outcome(status: ExitStatus) -> Outcome {
    match (status.code(), status.signal()) {
        (Some(code), _) => Outcome::Exit(code.cast_unsigned()),
        (None, signal) => Outcome::Signal {
            name: signal_name(signal.unwrap_or_default()),
            core_dumped: status.core_dumped(),
            message: String::new(),
        },
    }
}

/// Without `SIG`, as a server would give it (RFC 4254 section 6.10).
fn signal_name(number: i32) -> String {
    let name = Signal::from_named_raw(number).map(|signal| match signal {
        Signal::HUP => "HUP",
        Signal::INT => "INT",
        Signal::QUIT => "QUIT",
        Signal::ILL => "ILL",
        Signal::TRAP => "TRAP",
        Signal::ABORT => "ABRT",
        Signal::BUS => "BUS",
        Signal::FPE => "FPE",
        Signal::KILL => "KILL",
        Signal::USR1 => "USR1",
        Signal::SEGV => "SEGV",
        Signal::USR2 => "USR2",
        Signal::PIPE => "PIPE",
        Signal::ALARM => "ALRM",
        Signal::TERM => "TERM",
        Signal::XCPU => "XCPU",
        Signal::XFSZ => "XFSZ",
        Signal::SYS => "SYS",
        _ => "",
    });
    match name {
        Some(name) if !name.is_empty() => name.to_owned(),
        _ => number.to_string(),
    }
}
