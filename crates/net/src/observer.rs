//! Who hears of a run: in a thread of its own, so that a slow terminal delays no host.

use std::io;
use std::slice;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use sshoal_fleet::{HostId, HostResult, KillVerdict, Progress};
use sshoal_proto::{Secret, Stream};
use sshoal_transfer::Tally;
use tokio::sync::oneshot;

use crate::agent::KeyAddition;
use crate::hints;
use crate::host_key_questions::HostKeyPrompt;
use crate::login::LockedKey;
use crate::passphrases::Passphrases;
use crate::runs::RunJournal;
use crate::signals::Interruption;
use crate::worker::{Banner, Output};

/// Hears what happens in a run, in order for each host. The first error ends the run: after it only the hosts' results
/// are told, and nobody asks how that went.
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

    /// Something that the user must do now, or hosts wait until their deadlines.
    ///
    /// # Errors
    ///
    /// It could not be passed on.
    fn demand(&mut self, text: &str) -> io::Result<()>;

    /// What the server that the user named `from` says before a login, or the first 4 KiB of it. Not sanitised.
    ///
    /// # Errors
    ///
    /// It could not be passed on.
    fn banner(&mut self, from: &str, text: &[u8]) -> io::Result<()>;

    /// The same of a host itself, and no jump host: several may go by one name.
    ///
    /// # Errors
    ///
    /// It could not be passed on.
    fn host_banner(&mut self, _host: HostId, from: &str, text: &[u8]) -> io::Result<()> {
        self.banner(from, text)
    }

    /// Asks the user for a secret. `None` if there is nobody to ask, if the user gives none, or as soon as `wanted`
    /// says that the answer is of no use any more. Nothing else is told meanwhile: the terminal is the question's.
    ///
    /// # Errors
    ///
    /// The question could not be put, for a reason that makes going on useless.
    fn ask(&mut self, question: &str, wanted: &dyn Fn() -> bool) -> io::Result<Option<Secret>>;

    /// Shows the user whole lines about host keys and asks whether to accept them. Typing the `fingerprint`, if there
    /// is one, means yes. [`Confirmation::Unanswered`] as soon as `wanted` says that the answer is of no use any more.
    ///
    /// # Errors
    ///
    /// The question could not be put, for a reason that makes going on useless.
    fn confirm(
        &mut self,
        lines: &str,
        fingerprint: Option<&str>,
        wanted: &dyn Fn() -> bool,
    ) -> io::Result<Confirmation>;

    /// A command has started that talks to the user's terminal: every key is the remote program's from now on.
    ///
    /// # Errors
    ///
    /// The terminal cannot be lent, for a reason that makes going on useless.
    fn terminal_lent(&mut self) -> io::Result<()>;

    /// What became of a host's files in one attempt at it; another one or its result follows. Never told in a run that copies
    /// none, nor of an attempt that has not come to the files.
    ///
    /// # Errors
    ///
    /// It could not be passed on.
    fn transferred(&mut self, _host: HostId, _tally: &Tally) -> io::Result<()> {
        Ok(())
    }

    /// Whether a command that had to end is gone; the host's result follows. Never told in a run that does not look.
    ///
    /// # Errors
    ///
    /// It could not be passed on.
    fn killed(&mut self, _host: HostId, _verdict: &KillVerdict) -> io::Result<()> {
        Ok(())
    }

    /// What all hosts need cannot be had, and why: nothing more is to be done. The error, which ends the run as the
    /// observer's own do, is what the user is to be told.
    fn fail(&mut self, why: &str) -> io::Error;

    /// How far the run is: after each batch of the other two, and several times a second.
    ///
    /// # Errors
    ///
    /// It could not be passed on.
    fn progress(&mut self, progress: &Progress) -> io::Result<()>;

    /// What is left of the observer when the run is over.
    type Summary: Send + 'static;

    /// All hosts have ended, and everything was told, or all results. What is still to be said may take its time: the
    /// user can leave meanwhile.
    fn finish(self, interruption: Interruption) -> Self::Summary;
}

/// What the user says to a question with yes or no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Confirmation {
    /// Go on.
    Yes,
    /// Do not.
    No,
    /// Nothing, while it was wanted.
    Unanswered,
    /// There is nobody to ask, and why.
    Nobody(String),
}

/// What the observer is told.
pub(crate) enum Notice {
    Output(Output),
    Result(HostResult),
    Words(String),
    Demand(String),
    Banner(Option<HostId>, Banner),
    TerminalLent,
    Transferred(HostId, Tally),
    Killed(HostId, KillVerdict),
    /// Ask for the key's passphrase, and settle the key.
    Unlock(Arc<LockedKey>),
    /// Ask about unknown host keys.
    HostKeys(HostKeyPrompt),
    /// Add the key to the agent.
    AddKey(Arc<KeyAddition>),
    /// It is of no use to go on, and why.
    Failed(Arc<str>),
}

impl Notice {
    fn result(&self) -> Option<&HostResult> {
        match self {
            Notice::Result(result) => Some(result),
            _ => None,
        }
    }
}

struct Batch {
    notices: Vec<Notice>,
    progress: Progress,
}

/// The observer's thread.
pub(crate) struct ObserverThread<O: Observer> {
    batches: mpsc::Sender<Batch>,
    failed: Arc<AtomicBool>,
    /// Set when the run is over: no question needs an answer any more.
    over: Arc<OnceLock<Interruption>>,
    /// What is left of the observer, once it has finished.
    summary: oneshot::Receiver<O::Summary>,
    thread: JoinHandle<()>,
}

impl<O: Observer> ObserverThread<O> {
    pub(crate) fn start(mut observer: O, journal: Option<Arc<RunJournal>>) -> io::Result<Self> {
        let (batches, receiver) = mpsc::channel::<Batch>();
        let failed = Arc::new(AtomicBool::new(false));
        let flag = failed.clone();
        let over = Arc::new(OnceLock::new());
        let run_over = over.clone();
        let (give_back, summary) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("observer".to_owned())
            .spawn(move || {
                hints::lengthen_time_slice();
                let mut listens = true;
                let mut passphrases = Passphrases::default();
                let wanted = || run_over.get().is_none();
                for batch in receiver {
                    if let Some(journal) = &journal {
                        listens &= keep(journal, &batch.notices, listens, &mut observer);
                    }
                    // Output that nobody hears gives its budget back all the same, so that no host waits for ever.
                    let mut notices = batch.notices.iter();
                    if listens {
                        let heard = hear(&mut observer, &mut passphrases, &wanted, &mut notices)
                            .and_then(|()| observer.progress(&batch.progress));
                        listens = heard.is_ok();
                    }
                    flag.store(!listens, Ordering::Relaxed);
                    for result in notices.filter_map(Notice::result) {
                        // The first error was the one that counts.
                        let _ = observer.result(result);
                    }
                }
                if let Some(interruption) = run_over.get() {
                    if let Some(journal) = &journal {
                        // Without its last record the run is one that did not come to its end.
                        let _ = journal.note_end(*interruption);
                    }
                    // Nobody waits for it if the user has left.
                    let _ = give_back.send(observer.finish(*interruption));
                }
            })?;
        Ok(ObserverThread {
            batches,
            failed,
            over,
            summary,
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

    /// Waits until everything was heard and said; or until the user leaves: then the thread stays behind, perhaps in a
    /// write that nobody reads.
    pub(crate) async fn finish(
        self,
        interruption: Interruption,
        leaving: impl Future<Output = ()>,
    ) -> Option<O::Summary> {
        self.over.get_or_init(|| interruption);
        drop(self.batches);
        tokio::select! {
            biased;
            summary = self.summary => match summary {
                Ok(summary) => Some(summary),
                Err(_) => match self.thread.join() {
                    Ok(()) => None,
                    Err(panic) => std::panic::resume_unwind(panic),
                },
            },
            () = leaving => None,
        }
    }
}

/// Notes in the journal what is about to be told. Returns whether the run goes on: what cannot be kept where it must be ends it.
fn keep(
    journal: &RunJournal,
    notices: &[Notice],
    listens: bool,
    observer: &mut impl Observer,
) -> bool {
    let noted = journal.note(notices);
    let lost = journal.take_loss();
    let told = lost.map_or(Ok(()), |text| observer.demand(&text));
    match noted {
        Ok(()) => told.is_ok(),
        Err(error) if listens => {
            // The first of its errors is the one that counts.
            let _ = observer.fail(&format!("the run's journal cannot be written: {error}"));
            false
        }
        Err(_) => false,
    }
}

/// Tells the observer, until it returns an error; leaves the notices after that one.
fn hear(
    observer: &mut impl Observer,
    passphrases: &mut Passphrases,
    wanted: &dyn Fn() -> bool,
    notices: &mut slice::Iter<'_, Notice>,
) -> io::Result<()> {
    for notice in notices {
        match notice {
            Notice::Output(output) => {
                observer.output(output.host, output.stream, &output.octets)?
            }
            Notice::Result(result) => observer.result(result)?,
            Notice::Words(text) => observer.notice(text)?,
            Notice::Demand(text) => observer.demand(text)?,
            Notice::Banner(None, Banner { from, text }) => observer.banner(from, text)?,
            Notice::Banner(Some(host), Banner { from, text }) => {
                observer.host_banner(*host, from, text)?
            }
            Notice::TerminalLent => observer.terminal_lent()?,
            Notice::Transferred(host, tally) => observer.transferred(*host, tally)?,
            Notice::Killed(host, verdict) => observer.killed(*host, verdict)?,
            Notice::Unlock(key) => passphrases.unlock(key, observer, wanted)?,
            Notice::HostKeys(prompt) => {
                let wanted = || wanted() && prompt.is_wanted();
                let fingerprint = prompt.fingerprint.as_deref();
                prompt.answer(observer.confirm(&prompt.text, fingerprint, &wanted)?);
            }
            // The run may be over by now; the question is about all runs to come.
            Notice::AddKey(addition) => addition.perform(observer, &|| true)?,
            Notice::Failed(why) => return Err(observer.fail(why)),
        }
    }
    Ok(())
}
