//! ProxyCommand: a process on this machine whose standard input and output are the connection (`ssh_proxy_connect`,
//! sshconnect.c).
//!
//! It leads a process group of its own, so that Ctrl-C on the terminal reaches it through the fleet only. What it writes
//! to standard error is told with the host's name. When the connection is over the group gets SIGHUP, as ssh sends it
//! (`ssh_kill_proxy_command`), and SIGKILL if it is still there a little later.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::process::ExitStatus;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::process::Signal;
use sshoal_fleet::{Failure, FailureKind};
use sshoal_spawn::Stdio;
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::dial;
use crate::failures;
use crate::plan::Endpoint;
use crate::process::{Process, is_shortage};
use crate::shell;
use crate::worker::{Report, Worker};

/// From SIGHUP to SIGKILL. The fleet waits 5 s for the answer to an abort.
const GRACE: Duration = Duration::from_secs(1);
/// How long a process whose connection has ended may take to say why.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Most octets of standard error that are told of one process: two screens. A run has thousands of them.
const MAX_TOLD: usize = 4 * 1024;
/// Octets of standard error read at a time, and the longest line told.
const LINE: usize = 1024;

/// A ProxyCommand that runs.
pub(crate) struct Proxy {
    reading: Receiver,
    writing: Sender,
    process: Process,
    command: String,
    said: Rc<RefCell<Said>>,
    listener: JoinHandle<()>,
}

/// What it has written to standard error.
#[derive(Default)]
struct Said {
    /// Octets told so far.
    told: usize,
    /// The last line that is not blank.
    last: String,
}

/// Starts the endpoint's command, and waits for the server's first octet or for the command's end, no longer than
/// ConnectTimeout.
///
/// ssh counts the server's identification as part of the connection, too: before it comes, nobody knows whether the
/// command has reached anything.
pub(crate) async fn connect(
    worker: &Rc<Worker>,
    to: &Endpoint,
    command: &str,
) -> Result<Proxy, Failure> {
    let proxy =
        Proxy::start(worker, &to.label, command).map_err(|error| not_started(command, &error))?;
    let heard = async {
        let heard = proxy.reading.readable().await;
        heard.map_err(|error| not_started(command, &error))
    };
    dial::within_connect_timeout(to.tcp.connect_timeout, heard).await?;
    Ok(proxy)
}

fn not_started(command: &str, error: &io::Error) -> Failure {
    let detail = format!("starting ProxyCommand {}: {error}", shortened(command));
    match is_shortage(error) {
        true => {
            let remedy = "lower the number of hosts at a time (-p), or raise the limits of this machine (ulimit -u, -n)";
            Failure::with_remedy(FailureKind::Throttled, detail, remedy)
        }
        false => {
            let remedy = "check that SHELL names a shell that can be executed";
            Failure::with_remedy(FailureKind::Unreachable, detail, remedy)
        }
    }
}

impl Proxy {
    fn start(worker: &Rc<Worker>, label: &str, command: &str) -> io::Result<Proxy> {
        let mut shell = shell::command(&format!("exec {command}"));
        shell
            .stdin(Stdio::pipe())
            .stdout(Stdio::pipe())
            .stderr(Stdio::pipe());
        let mut process = Process::start(&mut shell)?;
        let stdin = process.stdin.take();
        let (stdout, stderr) = (process.stdout.take(), process.stderr.take());
        let (Some(writing), Some(reading), Some(stderr)) = (stdin, stdout, stderr) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let said = Rc::default();
        let listening = listen(worker.clone(), label.to_owned(), stderr, Rc::clone(&said));
        Ok(Proxy {
            reading,
            writing,
            process,
            command: command.to_owned(),
            said,
            listener: tokio::task::spawn_local(listening),
        })
    }

    pub(crate) fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.reading).poll_read(context, buffer)
    }

    pub(crate) fn poll_write_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.writing.poll_write_ready(context)
    }

    pub(crate) fn try_write(&self, octets: &[u8]) -> io::Result<usize> {
        self.writing.try_write(octets)
    }

    /// What a connection's failure comes to with what the process knows of it, if the connection just ended: as
    /// itself, unless the process has ended with an error or has said something. `heard` is whether the server has
    /// said anything; `named` puts a jump host's name to a failure.
    pub(crate) async fn explained(
        &mut self,
        mut failure: Failure,
        heard: bool,
        named: impl Fn(&Failure) -> Failure,
    ) -> Failure {
        let hung_up = matches!(
            failure.kind,
            FailureKind::Throttled | FailureKind::Closed | FailureKind::Lost
        );
        if !hung_up {
            return failure;
        }
        let Ok(Ok(status)) = timeout(LAST_WORDS, self.process.wait()).await else {
            return failure;
        };
        // What it has started may keep its standard error open.
        let _ = timeout(LAST_WORDS, &mut self.listener).await;
        let last = self.said.borrow().last.clone();
        if status.success() && last.is_empty() {
            if !heard {
                let words = format!("; ProxyCommand ended with {status} and said nothing");
                failure.detail.push_str(&words);
            }
            return failure;
        }
        let words = last_words(status, &last);
        if heard {
            failure.detail.push_str("; ");
            failure.detail.push_str(&words);
            return failure;
        }
        named(&failures::proxy(&shortened(&self.command), &words))
    }

    /// Ends the process, and waits until it has ended.
    pub(crate) async fn end(&mut self) {
        self.process.group.signal(Signal::HUP);
        // One that was stopped for reading from the terminal would not notice.
        self.process.group.signal(Signal::CONT);
        if timeout(GRACE, self.process.wait()).await.is_err() {
            self.process.group.signal(Signal::KILL);
            // The system's error would be that there is no such child.
            let _ = self.process.wait().await;
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

fn last_words(status: ExitStatus, last: &str) -> String {
    let words = format!("ProxyCommand ended with {status}");
    match last {
        "" => words,
        last => format!("{words}; it said: {last}"),
    }
}

/// A command for messages.
fn shortened(command: &str) -> String {
    const SHOWN: usize = 200;
    match command.char_indices().nth(SHOWN) {
        None => command.to_owned(),
        Some((end, _)) => format!("{}...", &command[..end]),
    }
}

/// Tells what the process writes to standard error, a line at a time. All of it is read, so that the process never
/// waits for us.
async fn listen(worker: Rc<Worker>, label: String, mut stderr: Receiver, said: Rc<RefCell<Said>>) {
    let mut line = Vec::with_capacity(LINE);
    let mut buffer = [0; LINE];
    // A pipe knows no error but those of this program: nothing more comes of it.
    while let Ok(read @ 1..) = stderr.read(&mut buffer).await {
        for &octet in &buffer[..read] {
            if octet != b'\n' && octet != b'\r' && line.len() < LINE {
                line.push(octet);
                continue;
            }
            tell(&worker, &label, &line, &said);
            line.clear();
        }
    }
    tell(&worker, &label, &line, &said);
}

fn tell(worker: &Worker, label: &str, line: &[u8], said: &RefCell<Said>) {
    let line = String::from_utf8_lossy(line.trim_ascii()).into_owned();
    if line.is_empty() {
        return;
    }
    let mut said = said.borrow_mut();
    said.told += line.len();
    if said.told <= MAX_TOLD {
        worker.report(Report::Notice(format!("{label}: ProxyCommand: {line}")));
    }
    said.last = line;
}
