//! A process of this machine, started by sshoal-spawn: as fast as vfork, in a group of its own, waited for by its
//! descriptor.

use std::io;
use std::process::ExitStatus;

use rustix::io::Errno;
use sshoal_spawn::{Child, Command, SpawnError, Step};
use tokio::net::unix::pipe::{Receiver, Sender};

use crate::process_group::Group;

/// A process, and the group that it leads. Dropping it kills the group, unless that was released, and leaves no zombie.
pub(crate) struct Process {
    child: Option<Child>,
    pub(crate) group: Group,
    pub(crate) stdin: Option<Sender>,
    pub(crate) stdout: Option<Receiver>,
    pub(crate) stderr: Option<Receiver>,
}

impl Process {
    /// Starts it at the head of a new process group. The error of its execution comes as the system gives it.
    pub(crate) fn start(command: &mut Command) -> io::Result<Process> {
        let started = command.process_group(0).with_pidfd().spawn();
        let mut child = started.map_err(plain)?;
        let group = Group::of(&child);
        let reading = |pipe: io::PipeReader| Receiver::from_owned_fd(pipe.into());
        let stdin = child
            .stdin
            .take()
            .map(|pipe| Sender::from_owned_fd(pipe.into()));
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        // From here on whatever fails ends the process again.
        let mut process = Process {
            child: Some(child),
            group,
            stdin: None,
            stdout: None,
            stderr: None,
        };
        process.stdin = stdin.transpose()?;
        process.stdout = stdout.map(reading).transpose()?;
        process.stderr = stderr.map(reading).transpose()?;
        Ok(process)
    }

    /// Waits for its end. May be dropped and called again.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        match &mut self.child {
            Some(child) => child.wait_async().await,
            None => Err(Errno::CHILD.into()),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.group.kill();
        if let Some(child) = self.child.take()
            && child.is_unreaped()
        {
            child.reap_later();
        }
    }
}

/// What the user named could not be executed: the system's own error says it best.
fn plain(error: SpawnError) -> io::Error {
    match error.step() {
        Step::Exec => io::Error::from_raw_os_error(error.errno()),
        _ => error.into(),
    }
}

/// Whether this machine has no room for one more process now: clone(2), pipe(2).
pub(crate) fn is_shortage(error: &io::Error) -> bool {
    let shortages = [Errno::AGAIN, Errno::NOMEM, Errno::MFILE, Errno::NFILE];
    let within = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<SpawnError>());
    let number = within.map(SpawnError::errno).or(error.raw_os_error());
    number.is_some_and(|number| shortages.contains(&Errno::from_raw_os_error(number)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use sshoal_spawn::Stdio;

    use super::*;

    #[tokio::test]
    async fn a_process_that_is_dropped_is_killed_and_waited_for() {
        let process =
            Process::start(Command::new("sleep").arg("3600").stdin(Stdio::null())).unwrap();
        let id = process.child.as_ref().unwrap().id();
        drop(process);
        let path = format!("/proc/{id}");
        while std::path::Path::new(&path).exists() {
            tokio::task::yield_now().await;
            std::thread::yield_now();
        }
    }

    #[tokio::test]
    async fn a_program_that_is_not_there_is_no_shortage() {
        let error = Process::start(&mut Command::new("/no/such/program"))
            .err()
            .unwrap();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(!is_shortage(&error));
        assert!(is_shortage(&Errno::MFILE.into()));
    }
}
