//! This machine's files are worked on by threads of their own: a disk may hang, and hosts must not.

use std::cell::Cell;
use std::future::ready;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::sync::{Semaphore, mpsc};
use tokio::task::{spawn_blocking, spawn_local};

/// Jobs at a time: enough for several disks, few enough for one.
const JOBS: usize = 16;

/// A bound on the jobs of all hosts.
#[derive(Clone)]
pub(super) struct Disk(Arc<Semaphore>);

impl Default for Disk {
    fn default() -> Self {
        Disk(Arc::new(Semaphore::new(JOBS)))
    }
}

/// Whether a host has given up what it wanted of its jobs: a long one looks at it now and then.
#[derive(Debug, Clone, Default)]
pub(super) struct Stop(Arc<AtomicBool>);

impl Stop {
    pub(super) fn is_ordered(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// # Errors
    ///
    /// Nobody wants to know any more.
    pub(super) fn check(&self) -> io::Result<()> {
        match self.is_ordered() {
            true => Err(io::Error::other("interrupted")),
            false => Ok(()),
        }
    }

    pub(super) fn order(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// One host's jobs.
pub(super) struct Jobs<T> {
    disk: Disk,
    stop: Stop,
    answers: mpsc::UnboundedSender<T>,
    answered: mpsc::UnboundedReceiver<T>,
    open: Cell<usize>,
}

impl<T: Send + 'static> Jobs<T> {
    pub(super) fn new(disk: &Disk) -> Jobs<T> {
        let (answers, answered) = mpsc::unbounded_channel();
        Jobs {
            disk: disk.clone(),
            stop: Stop::default(),
            answers,
            answered,
            open: Cell::new(0),
        }
    }

    /// Has a job done; what it comes to is an answer. `panicked` is it if it panics, which is a defect of ours.
    pub(super) fn perform(&self, panicked: T, job: impl FnOnce() -> T + Send + 'static) {
        self.perform_after(ready(()), panicked, job);
    }

    /// The same as soon as something has happened that may take for ever: until then the job takes no other's place.
    pub(super) fn perform_after(
        &self,
        event: impl Future<Output = ()> + 'static,
        panicked: T,
        job: impl FnOnce() -> T + Send + 'static,
    ) {
        self.open.set(self.open.get() + 1);
        let (places, answers) = (self.disk.0.clone(), self.answers.clone());
        spawn_local(async move {
            event.await;
            // The semaphore is never closed.
            let _place = places.acquire_owned().await;
            // Whoever asked may have left meanwhile.
            let _ = answers.send(spawn_blocking(job).await.unwrap_or(panicked));
        });
    }

    /// What long jobs are to look at.
    pub(super) fn stop(&self) -> Stop {
        self.stop.clone()
    }

    /// An answer for which nothing had to be done.
    pub(super) fn answer(&self, answer: T) {
        self.open.set(self.open.get() + 1);
        let _ = self.answers.send(answer);
    }

    /// Whether answers are still to come.
    pub(super) fn are_open(&self) -> bool {
        self.open.get() > 0
    }

    /// The next answer.
    pub(super) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<T> {
        match self.answered.poll_recv(context) {
            Poll::Ready(Some(answer)) => {
                self.open.set(self.open.get() - 1);
                Poll::Ready(answer)
            }
            // The sender is here: there is always more to come.
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }
}

impl<T> Drop for Jobs<T> {
    /// Nobody hears what they come to any more.
    fn drop(&mut self) {
        self.stop.order();
    }
}
