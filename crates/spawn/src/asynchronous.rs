//! Waiting on tokio's reactor, without a thread and without SIGCHLD.

use std::io;
use std::process::ExitStatus;

use rustix::process::{WaitId, WaitIdOptions};

use crate::child::Child;
use crate::kernel;

impl Child {
    /// Waits for its end on tokio's reactor, which must have its I/O driver enabled. Its standard input, if it is a
    /// pipe and still here, is closed first. May be dropped and called again.
    ///
    /// Pipes become tokio's by `tokio::net::unix::pipe::{Sender, Receiver}::from_owned_fd(pipe.into())`.
    pub async fn wait_async(&mut self) -> io::Result<ExitStatus> {
        drop(self.stdin.take());
        loop {
            if let Some(status) = self.try_wait()? {
                return Ok(status);
            }
            match self.pidfd() {
                Ok(pidfd) => {
                    let ended = kernel::watch(pidfd)?;
                    let _ = ended.readable().await?;
                }
                Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => {
                    self.wait_in_thread().await?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Until it has ended, without fetching its status: that is left to a wait. May be dropped and called again.
    pub async fn ended_async(&self) -> io::Result<()> {
        if self.has_status() {
            return Ok(());
        }
        match self.pidfd() {
            Ok(pidfd) => {
                let ended = kernel::watch(pidfd)?;
                let _ = ended.readable().await?;
                Ok(())
            }
            Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => self.wait_in_thread().await,
            Err(error) => Err(error),
        }
    }

    /// Lets it be waited for by nobody in particular, on the tokio runtime of this thread, so that it does not stay a
    /// zombie. Without a runtime, or when that ends, it stays one until this program ends.
    pub fn reap_later(mut self) {
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            drop(runtime.spawn(async move { self.wait_async().await }));
        }
    }

    /// Whether nobody has learnt its status yet: it runs, or is a zombie.
    pub fn is_unreaped(&self) -> bool {
        !self.has_status()
    }

    /// For kernels without pidfds: a thread of tokio's sees the end and leaves the status to be fetched.
    async fn wait_in_thread(&self) -> io::Result<()> {
        let pid = self.pid();
        let wait = move || {
            rustix::io::retry_on_intr(|| {
                rustix::process::waitid(
                    WaitId::Pid(pid),
                    WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
                )
            })
        };
        tokio::task::spawn_blocking(wait).await??;
        Ok(())
    }
}
