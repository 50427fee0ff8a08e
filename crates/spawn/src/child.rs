//! A program that was started: waiting for it, signalling it, talking to it.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::OnceLock;
use std::thread;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitIdStatus, pidfd_open};

use crate::kernel::Started;

/// A program that was started.
///
/// Dropping it neither ends the program nor waits for it: what is never waited for stays a zombie until its parent ends.
#[derive(Debug)]
pub struct Child {
    pid: Pid,
    pidfd: OnceLock<OwnedFd>,
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
            pidfd: started.pidfd.map(OnceLock::from).unwrap_or_default(),
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

    #[cfg(feature = "tokio")]
    pub(crate) fn has_status(&self) -> bool {
        self.status.is_some()
    }

    /// The descriptor that stands for the process: poll(2) finds it readable when the process has ended. Made at the
    /// first call, unless [`Command::with_pidfd`](crate::Command::with_pidfd) had it made before; closed with the Child.
    ///
    /// The error is ENOSYS before Linux 5.3, and ECHILD or ESRCH where the process has been waited for by now.
    pub fn pidfd(&self) -> io::Result<BorrowedFd<'_>> {
        if let Some(pidfd) = self.pidfd.get() {
            return Ok(pidfd.as_fd());
        }
        if self.status.is_some() {
            return Err(Errno::CHILD.into());
        }
        let pidfd = pidfd_open(self.pid, PidfdFlags::empty())?;
        // Were the process gone without our knowledge, its number might be a stranger's: who is no child of ours.
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match rustix::process::waitid(WaitId::PidFd(pidfd.as_fd()), look) {
            // Linux 5.3 cannot tell.
            Ok(_) | Err(Errno::INVAL) => Ok(self.pidfd.get_or_init(|| pidfd).as_fd()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Waits for its end. Its standard input, if it is a pipe and still here, is closed first.
    ///
    /// The error is ECHILD if someone else in this program has waited for it, or if the program ignores SIGCHLD.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        drop(self.stdin.take());
        if self.status.is_none() {
            // Who waits would sleep until the program has ended. If that waits for this very processor it goes first,
            // which spares both the sleep and the waking.
            thread::yield_now();
        }
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
        if self.status.is_some() {
            return Ok(());
        }
        match self.pidfd() {
            Ok(pidfd) => Ok(rustix::process::pidfd_send_signal(pidfd, signal)?),
            Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => {
                Ok(rustix::process::kill_process(self.pid, signal)?)
            }
            Err(error) => Err(error),
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

    /// By the descriptor, if there is one and the kernel (5.4) can; otherwise by the number, which is ours until it is
    /// waited for.
    fn wait_id(&self, options: WaitIdOptions) -> io::Result<Option<WaitIdStatus>> {
        let wait = |id: WaitId<'_>| rustix::process::waitid(id, options);
        let by_number = || rustix::io::retry_on_intr(|| wait(WaitId::Pid(self.pid)));
        let answer = match self.pidfd.get() {
            None => by_number(),
            Some(pidfd) => match rustix::io::retry_on_intr(|| wait(WaitId::PidFd(pidfd.as_fd()))) {
                Err(Errno::INVAL) => by_number(),
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
