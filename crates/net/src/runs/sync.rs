//! Has what was written come to the disk: a thread of its own, and one fdatasync(2) for all who wait meanwhile.

use std::fs::File;
use std::io;
use std::pin::Pin;
use std::sync::mpsc;
use std::task::{Context, Poll};
use std::thread;

use tokio::sync::oneshot;

/// What the thread answers: why it did not come to the disk, if it did not.
type Answer = Result<(), (io::ErrorKind, String)>;

/// The thread. Ends when it is dropped.
pub(super) struct Syncing {
    requests: mpsc::Sender<oneshot::Sender<Answer>>,
}

/// Ready when all is on the disk that was written before it was asked for.
pub(super) struct Synced(oneshot::Receiver<Answer>);

impl Syncing {
    pub(super) fn start(file: File) -> io::Result<Syncing> {
        let (requests, waiting) = mpsc::channel::<oneshot::Sender<Answer>>();
        thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || {
                // A failure is told once by the kernel, and what it lost is not tried again.
                let mut done = Ok(());
                while let Ok(first) = waiting.recv() {
                    let group: Vec<_> = [first].into_iter().chain(waiting.try_iter()).collect();
                    if done.is_ok() {
                        done = file.sync_data();
                    }
                    for waiter in group {
                        let done = done
                            .as_ref()
                            .map_err(|error| (error.kind(), error.to_string()));
                        // Who does not wait any more has ended.
                        let _ = waiter.send(done.copied());
                    }
                }
            })?;
        Ok(Syncing { requests })
    }

    pub(super) fn ask(&self) -> Synced {
        let (answer, synced) = oneshot::channel();
        // Without its thread the answer is that there is none.
        let _ = self.requests.send(answer);
        Synced(synced)
    }
}

impl Synced {
    /// From a thread that may wait.
    pub(super) fn wait(self) -> io::Result<()> {
        answered(self.0.blocking_recv())
    }

    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll(context).map(answered)
    }
}

fn answered(answer: Result<Answer, oneshot::error::RecvError>) -> io::Result<()> {
    match answer {
        Ok(Ok(())) => Ok(()),
        Ok(Err((kind, text))) => Err(io::Error::new(kind, text)),
        Err(_) => Err(io::Error::other("its thread is gone")),
    }
}
