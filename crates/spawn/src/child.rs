//! A program that was started: waiting for it, signalling it, talking to it.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus};

use crate::kernel::Started;

/// A program that was started.
///
/// Dropping it neither ends the program nor waits for it: what is never waited for stays a zombie until its parent ends.
#[derive(Debug)]
pub struct Child {
    pid: Pid,
    pidfd: Option<OwnedFd>,
    status: Option<ExitStatus>,
    /// Writes to the program's standard input, if that is a pipe.
    pub stdin: Option<PipeWriter>,
    /// Reads from its standard output, if that is a pipe.
    pub stdout: Option<PipeReader>,
    /// Reads from its standard error, if that is a pipe.
    pub stderr: Option<PipeReader>,
}

impl Child {
    pub(crate) fn new(
        started: Started,
        stdin: Option<OwnedFd>,
        stdout: Option<OwnedFd>,
        stderr: Option<OwnedFd>,
    ) -> Child {
        Child {
            pid: started.pid,
            pidfd: started.pidfd,
            status: None,
            stdin: stdin.map(PipeWriter::from),
            stdout: stdout.map(PipeReader::from),
            stderr: stderr.map(PipeReader::from),
        }
    }

    /// Its process number. Once it has been waited for, another process may have it.
    pub fn id(&self) -> u32 {
        self.pid.as_raw_pid().unsigned_abs()
    }

    #[cfg(feature = "tokio")]
    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// The descriptor that stands for the process: poll(2) finds it readable when the process has ended. None before
    /// Linux 5.2.
    pub fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.pidfd.as_ref().map(AsFd::as_fd)
    }

    /// Waits for its end. Its standard input, if it is a pipe and still here, is closed first.
    ///
    /// The error is ECHILD if someone else in this program has waited for it, or if the program ignores SIGCHLD.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        drop(self.stdin.take());
        loop {
            if let Some(status) = self.reap(WaitIdOptions::EXITED)? {
                return Ok(status);
            }
        }
    }

    /// Its status if it has ended, without waiting.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.reap(WaitIdOptions::EXITED | WaitIdOptions::NOHANG)
    }

    /// Sends a signal, to this process and no other: once it has been waited for, nothing is sent.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        match (self.status, &self.pidfd) {
            (Some(_), _) => Ok(()),
            (None, Some(pidfd)) => Ok(rustix::process::pidfd_send_signal(pidfd, signal)?),
            (None, None) => Ok(rustix::process::kill_process(self.pid, signal)?),
        }
    }

    /// Ends it with SIGKILL.
    pub fn kill(&self) -> io::Result<()> {
        self.signal(Signal::KILL)
    }

    fn reap(&mut self, options: WaitIdOptions) -> io::Result<Option<ExitStatus>> {
        if self.status.is_none() {
            let ended = self.wait_id(options)?;
            self.status = ended.as_ref().map(exit_status);
        }
        Ok(self.status)
    }

    /// By the descriptor, where the kernel (5.4) can; otherwise by the number, which is ours until it is waited for.
    fn wait_id(&self, options: WaitIdOptions) -> io::Result<Option<WaitIdStatus>> {
        let wait = |id: WaitId<'_>| rustix::process::waitid(id, options);
        let by_number = || rustix::io::retry_on_intr(|| wait(WaitId::Pid(self.pid)));
        let answer = match &self.pidfd {
            None => by_number(),
            Some(pidfd) => match rustix::io::retry_on_intr(|| wait(WaitId::PidFd(pidfd.as_fd()))) {
                Err(rustix::io::Errno::INVAL) => by_number(),
                answer => answer,
            },
        };
        Ok(answer?)
    }
}

/// waitid's words in wait's form.
fn exit_status(ended: &WaitIdStatus) -> ExitStatus {
    const DUMPED: i32 = 0x80;
    let raw = match (ended.exit_status(), ended.terminating_signal()) {
        (Some(status), _) => (status & 0xff) << 8,
        (None, Some(signal)) if ended.dumped() => signal | DUMPED,
        (None, signal) => signal.unwrap_or(0),
    };
    ExitStatus::from_raw(raw)
}
