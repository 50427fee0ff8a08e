//! Who hears of a run: in a thread of its own, so that a slow terminal delays no host.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;

use sshoal_fleet::{HostId, HostResult, Progress};
use sshoal_proto::{Secret, Stream};
use tokio::sync::oneshot;

use crate::login::LockedKey;
use crate::passphrases::Passphrases;
use crate::worker::Output;

/// Hears what happens in a run, in order for each host. The first error ends the run: nobody listens any more.
pub trait Observer: Send + 'static {
    /// A piece of a command's output.
    ///
    /// # Errors
    ///
    /// It could not be passed on.
    fn output(&mut self, host: HostId, stream: Stream, octets: &[u8]) -> io::Result<()>;

    /// A host has ended; nothing more of it comes.
    ///
    /// # Errors
    ///
    /// It could not be passed on.
    fn result(&mut self, result: &HostResult) -> io::Result<()>;

    /// Something that the user should know now.
    ///
    /// # Errors
    ///
    /// It could not be passed on.
    fn notice(&mut self, text: &str) -> io::Result<()>;

    /// Asks the user for a secret. `None` if there is nobody to ask, if the user gives none, or as soon as `wanted`
    /// says that the answer is of no use any more. Nothing else is told meanwhile: the terminal is the question's.
    ///
    /// # Errors
    ///
    /// The question could not be put, for a reason that makes going on useless.
    fn ask(&mut self, question: &str, wanted: &dyn Fn() -> bool) -> io::Result<Option<Secret>>;

    /// A command has started that talks to the user's terminal: every key is the remote program's from now on.
    ///
    /// # Errors
    ///
    /// The terminal cannot be lent, for a reason that makes going on useless.
    fn terminal_lent(&mut self) -> io::Result<()>;

    /// How far the run is: after each batch of the other two, and several times a second.
    ///
    /// # Errors
    ///
    /// It could not be passed on.
    fn progress(&mut self, progress: &Progress) -> io::Result<()>;
}

/// What the observer is told.
pub(crate) enum Notice {
    Output(Output),
    Result(HostResult),
    Words(String),
    TerminalLent,
    /// Ask for the key's passphrase, and settle the key.
    Unlock(Arc<LockedKey>),
}

struct Batch {
    notices: Vec<Notice>,
    progress: Progress,
}

/// The observer's thread.
pub(crate) struct ObserverThread<O> {
    batches: mpsc::Sender<Batch>,
    failed: Arc<AtomicBool>,
    /// Set when the run is over: no question needs an answer any more.
    over: Arc<AtomicBool>,
    /// The observer and its first error, once all was heard.
    heard: oneshot::Receiver<(O, io::Result<()>)>,
    thread: JoinHandle<()>,
}

impl<O: Observer> ObserverThread<O> {
    pub(crate) fn start(mut observer: O) -> io::Result<Self> {
        let (batches, receiver) = mpsc::channel::<Batch>();
        let failed = Arc::new(AtomicBool::new(false));
        let flag = failed.clone();
        let over = Arc::new(AtomicBool::new(false));
        let run_over = over.clone();
        let (give_back, heard) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("observer".to_owned())
            .spawn(move || {
                let mut result = Ok(());
                let mut passphrases = Passphrases::default();
                let wanted = || !run_over.load(Ordering::Relaxed);
                for batch in receiver {
                    // Output that nobody hears gives its budget back all the same, so that no host waits for ever.
                    if result.is_ok() {
                        result = hear(&mut observer, &mut passphrases, &wanted, &batch);
                        flag.store(result.is_err(), Ordering::Relaxed);
                    }
                }
                // Nobody waits for it if the user has left.
                let _ = give_back.send((observer, result));
            })?;
        Ok(ObserverThread {
            batches,
            failed,
            over,
            heard,
            thread,
        })
    }

    pub(crate) fn tell(&self, notices: Vec<Notice>, progress: Progress) {
        // The thread ends only after this sender is gone, or by a panic, which `finish` passes on.
        let _ = self.batches.send(Batch { notices, progress });
    }

    /// Whether the observer hears no more.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed) || self.thread.is_finished()
    }

    /// Waits until everything was heard, and gives the observer back with its first error; or until the user leaves:
    /// then the thread stays behind, perhaps in a write that nobody reads.
    pub(crate) async fn finish(
        self,
        leaving: impl Future<Output = ()>,
    ) -> Option<(O, io::Result<()>)> {
        self.over.store(true, Ordering::Relaxed);
        drop(self.batches);
        tokio::select! {
            biased;
            heard = self.heard => match heard {
                Ok(heard) => Some(heard),
                Err(_) => match self.thread.join() {
                    Ok(()) => None,
                    Err(panic) => std::panic::resume_unwind(panic),
                },
            },
            () = leaving => None,
        }
    }
}

fn hear(
    observer: &mut impl Observer,
    passphrases: &mut Passphrases,
    wanted: &dyn Fn() -> bool,
    batch: &Batch,
) -> io::Result<()> {
    for notice in &batch.notices {
        match notice {
            Notice::Output(output) => {
                observer.output(output.host, output.stream, &output.octets)?
            }
            Notice::Result(result) => observer.result(result)?,
            Notice::Words(text) => observer.notice(text)?,
            Notice::TerminalLent => observer.terminal_lent()?,
            Notice::Unlock(key) => passphrases.unlock(key, observer, wanted)?,
        }
    }
    observer.progress(&batch.progress)
}
