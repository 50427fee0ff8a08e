//! An ssh that runs: its pipes, its signals, its end.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::process::ExitStatus;

use rustix::fs::{Access, access};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, kill_process_group};
use sshoal_spawn::{Child, Command, Stdio};
use tokio::net::unix::pipe::{Receiver, Sender};

use sshoal_fleet::{Failure, FailureKind};

use crate::arguments::CommandLine;
use crate::ask_pass::AskPass;

/// What the command reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// Nothing.
    Nothing,
    /// What is written to [`Ssh::stdin`].
    Pipe,
    /// Our terminal, which ssh then has for all it does: it writes there, too, and has no log.
    Terminal,
}

/// What an ssh of a run has around it.
#[derive(Debug, Default)]
pub struct Surroundings {
    /// The program: a path, or a name to look for in PATH.
    pub program: OsString,
    /// Who answers when it asks for the account's password.
    pub ask_pass: Option<AskPass>,
}

impl Surroundings {
    /// Whether there is such a program.
    ///
    /// # Errors
    ///
    /// There is none, for all hosts that it was to reach.
    pub fn check(&self) -> Result<(), Failure> {
        let is_executable = |file: &Path| file.is_file() && access(file, Access::EXEC_OK).is_ok();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let is_there = match self.program.as_encoded_bytes().contains(&b'/') {
            true => is_executable(Path::new(&self.program)),
            false => std::env::split_paths(&path)
                .any(|folder| is_executable(&folder.join(&self.program))),
        };
        if is_there {
            return Ok(());
        }
        let detail = format!("there is no program {}", self.program.to_string_lossy());
        let remedy = "install OpenSSH's client, or name its ssh with --ssh";
        Err(Failure::with_remedy(
            FailureKind::Unreachable,
            detail,
            remedy,
        ))
    }
}

/// An ssh that runs. Dropping it kills it and all that it has started.
#[derive(Debug)]
pub struct Ssh {
    /// Here until this is dropped.
    child: Option<Child>,
    /// Whether it leads a session, and has not been waited for.
    group: Option<Pid>,
    /// Writes to the command's standard input.
    pub stdin: Option<Sender>,
    /// The command's standard output.
    pub stdout: Option<Receiver>,
    /// The command's standard error; before the login, what others have to say.
    pub stderr: Option<Receiver>,
    /// What [`Log`](crate::Log) reads.
    pub log: Option<Receiver>,
    /// The end of the log that ssh opens by its name: to be kept until it has written something.
    pub log_writer: Option<OwnedFd>,
}

impl Ssh {
    /// Starts one. Must be called within tokio's runtime.
    ///
    /// Without a terminal it leads a session of its own: neither it nor what it starts (a ProxyCommand, the ssh to a jump
    /// host) can ask on ours, and Ctrl-C reaches it through us only.
    ///
    /// # Errors
    ///
    /// It cannot be executed, or no pipe could be made.
    pub fn start(around: &Surroundings, line: &CommandLine, input: Input) -> io::Result<Ssh> {
        match input {
            Input::Terminal => Ssh::start_on_terminal(around, line),
            Input::Nothing => Ssh::start_with(around, line, Stdio::null()),
            Input::Pipe => Ssh::start_with(around, line, Stdio::pipe()),
        }
    }

    fn start_with(around: &Surroundings, line: &CommandLine, stdin: Stdio) -> io::Result<Ssh> {
        let (log, log_writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // ssh closes what it inherits (ssh.c, closefrom), and so opens the pipe anew by its name.
        let place = format!("/proc/{}/fd/{}", std::process::id(), log_writer.as_raw_fd());
        let mut command = Command::new(&around.program);
        command
            .args(line.arguments(Some(OsStr::new(&place))))
            .stdin(stdin)
            .stdout(Stdio::pipe())
            .stderr(Stdio::pipe())
            .new_session()
            .with_pidfd();
        surround(
            &mut command,
            around.ask_pass.as_ref().filter(|_| line.has_password),
        );
        let mut child = command.spawn()?;
        let group = Pid::from_raw(child.id().cast_signed());
        let stdin = child
            .stdin
            .take()
            .map(|pipe| Sender::from_owned_fd(pipe.into()));
        let stdout = child
            .stdout
            .take()
            .map(|pipe| Receiver::from_owned_fd(pipe.into()));
        let stderr = child
            .stderr
            .take()
            .map(|pipe| Receiver::from_owned_fd(pipe.into()));
        Ok(Ssh {
            group,
            child: Some(child),
            stdin: stdin.transpose()?,
            stdout: stdout.transpose()?,
            stderr: stderr.transpose()?,
            log: Some(Receiver::from_owned_fd(log)?),
            log_writer: Some(log_writer),
        })
    }

    fn start_on_terminal(around: &Surroundings, line: &CommandLine) -> io::Result<Ssh> {
        let mut command = Command::new(&around.program);
        command.args(line.arguments(None)).with_pidfd();
        let child = command.spawn()?;
        Ok(Ssh {
            child: Some(child),
            group: None,
            stdin: None,
            stdout: None,
            stderr: None,
            log: None,
            log_writer: None,
        })
    }

    /// Its process number.
    pub fn id(&self) -> u32 {
        self.child.as_ref().map_or(0, Child::id)
    }

    /// Signals it alone: it ends what it has started, and closes its connection.
    pub fn signal(&self, signal: Signal) {
        // One that has ended needs no signal.
        if let Some(child) = &self.child {
            let _ = child.signal(signal);
        }
    }

    /// Until it has ended; [`reap`](Ssh::reap) tells how. May be dropped and called again.
    ///
    /// # Errors
    ///
    /// The system gives no descriptor for the process.
    pub async fn ended(&self) -> io::Result<()> {
        match &self.child {
            Some(child) => child.ended_async().await,
            None => Ok(()),
        }
    }

    /// How it has ended, waiting for its end if it has not.
    ///
    /// What it has started and left is meant to stay: the master of ControlPersist, and its ProxyCommand.
    ///
    /// # Errors
    ///
    /// Somebody else has waited for it.
    pub async fn reap(&mut self) -> io::Result<ExitStatus> {
        let status = self.wait().await;
        self.group = None;
        status
    }

    /// Kills it and all that it has started, and waits until it is gone.
    ///
    /// # Errors
    ///
    /// Somebody else has waited for it.
    pub async fn kill(&mut self) -> io::Result<ExitStatus> {
        self.kill_group();
        self.wait().await
    }

    async fn wait(&mut self) -> io::Result<ExitStatus> {
        match &mut self.child {
            Some(child) => child.wait_async().await,
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn kill_group(&mut self) {
        match self.group.take() {
            // It has not been waited for: the number is still its own.
            Some(group) => drop(kill_process_group(group, Signal::KILL)),
            None => self.signal(Signal::KILL),
        }
    }
}

impl Drop for Ssh {
    fn drop(&mut self) {
        self.kill_group();
        if let Some(child) = self.child.take()
            && child.is_unreaped()
        {
            child.reap_later();
        }
    }
}

/// What it asks goes to our own program, or to nobody.
fn surround(command: &mut Command, ask_pass: Option<&AskPass>) {
    match ask_pass {
        Some(ask_pass) => {
            for (name, value) in ask_pass.variables() {
                command.env(name, value);
            }
        }
        None => {
            command.env_remove("SSH_ASKPASS");
            command.env("SSH_ASKPASS_REQUIRE", "never");
        }
    }
}
