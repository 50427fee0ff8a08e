//! What follows `up`: whoever asked hears how it goes and is asked what only a person knows, for the process that logs in
//! has no terminal. JSON, an object a line; the octets of a secret follow the line that announces them, as they are.
//!
//! ```text
//!   pool                                     caller (`sshoal up`)
//!   ----                                     --------------------
//!   Begun, Say ...                    -->    shown
//!   Ask, Confirm (each a number)      -->    put on its terminal
//!          <-- Secret, Confirmation, Nothing (with that number)
//!   Withdrawn                         -->    the question is of no use any more
//!   Settled or Refused                -->    the end
//! ```

use std::io::{self, BufRead, BufReader, Read};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use sshoal_net::{Confirmation, Secret};

use crate::control::{Ask, AskError, put, write_line};
use crate::folder::Folder;

/// The longest line either way, octets: what is shown of 50,000 hosts in one question.
const MAX_LINE: u64 = 4 * 1024 * 1024;
/// The longest secret, octets.
const MAX_SECRET: usize = 64 * 1024;
/// How long a person may take for an answer: as long as for host keys in a run.
const ANSWER_PATIENCE: Duration = Duration::from_secs(600);
/// How soon it is noticed that an answer is not wanted any more.
const GLANCE: Duration = Duration::from_millis(100);

/// What a pool tells the caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "tell", rename_all = "snake_case")]
pub enum Tell {
    /// The request was understood.
    Begun,
    /// Something for the user to read.
    Say {
        /// A line, or several; not sanitised.
        text: String,
    },
    /// A secret is asked for.
    Ask {
        /// For the answer.
        number: u64,
        /// What is shown.
        question: String,
    },
    /// A yes or no about host keys is asked for.
    Confirm {
        /// For the answer.
        number: u64,
        /// What is shown.
        lines: String,
        /// Typed, it is a yes.
        fingerprint: Option<String>,
    },
    /// No question is of use any more.
    Withdrawn,
    /// It is known of every host whether it is kept.
    Settled(Settled),
    /// Nothing was begun, and why.
    Refused {
        /// For the user to read.
        why: String,
    },
}

/// What became of the hosts of one `up`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settled {
    /// Logged in to.
    pub up: usize,
    /// Not before somebody needs them.
    pub lazy: usize,
    /// Not to be had.
    pub failed: usize,
    /// Kept already, as the user named them now.
    pub kept: Vec<String>,
}

/// What the caller answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
enum Reply {
    /// So many octets follow.
    Secret { number: u64, octets: usize },
    /// There is nobody, or he gives none.
    Nothing { number: u64 },
    /// Yes, no, or why there is neither.
    Confirmation { number: u64, word: Word },
}

/// A [`Confirmation`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Word {
    Yes,
    No,
    Unanswered,
    Nobody(String),
}

/// An answer as it was heard.
enum Answer {
    Secret(Option<Secret>),
    Confirmation(Confirmation),
}

/// The pool's end. Copies are of the same conversation.
#[derive(Clone)]
pub struct Conversation(Arc<Line>);

struct Line {
    stream: Mutex<UnixStream>,
    /// Held by whoever asks: one question at a time.
    answers: Mutex<Answers>,
    has_left: Arc<AtomicBool>,
}

struct Answers {
    next: u64,
    heard: Receiver<(u64, Answer)>,
}

impl Conversation {
    /// Begins to listen. `left` is called once when the caller is gone.
    pub(crate) fn begin(
        stream: UnixStream,
        left: impl FnOnce() + Send + 'static,
    ) -> io::Result<Self> {
        let reading = stream.try_clone()?;
        reading.set_read_timeout(None)?;
        let has_left = Arc::new(AtomicBool::new(false));
        let (sender, heard) = channel();
        let flag = has_left.clone();
        thread::Builder::new()
            .name("answers".to_owned())
            .spawn(move || {
                listen(reading, &sender);
                flag.store(true, Ordering::Relaxed);
                left();
            })?;
        let conversation = Conversation(Arc::new(Line {
            stream: Mutex::new(stream),
            answers: Mutex::new(Answers { next: 1, heard }),
            has_left,
        }));
        conversation.tell(&Tell::Begun);
        Ok(conversation)
    }

    /// Tells the caller something, if it is still there.
    pub fn tell(&self, what: &Tell) {
        if !self.has_left() && write_line(&mut *locked(&self.0.stream), what).is_err() {
            self.0.has_left.store(true, Ordering::Relaxed);
        }
    }

    /// Whether nobody hears any more.
    pub fn has_left(&self) -> bool {
        self.0.has_left.load(Ordering::Relaxed)
    }

    /// The end: the caller needs nothing more.
    pub(crate) fn end(&self, with: &Tell) {
        self.tell(with);
        self.0.has_left.store(true, Ordering::Relaxed);
        // If it is closed already, so much the better.
        let _ = locked(&self.0.stream).shutdown(Shutdown::Both);
    }

    /// Asks for a secret; `None` if there is none, or as soon as `wanted` says that it is of no use any more.
    pub fn ask(&self, question: &str, wanted: &dyn Fn() -> bool) -> Option<Secret> {
        let question = question.to_owned();
        let put = |number| Tell::Ask { number, question };
        match self.question(put, wanted) {
            Some(Answer::Secret(secret)) => secret,
            _ => None,
        }
    }

    /// Asks about host keys.
    pub fn confirm(
        &self,
        lines: &str,
        fingerprint: Option<&str>,
        wanted: &dyn Fn() -> bool,
    ) -> Confirmation {
        if self.has_left() {
            return Confirmation::Nobody("whoever began it has left".to_owned());
        }
        let (lines, fingerprint) = (lines.to_owned(), fingerprint.map(str::to_owned));
        let put = |number| Tell::Confirm {
            number,
            lines,
            fingerprint,
        };
        match self.question(put, wanted) {
            Some(Answer::Confirmation(confirmation)) => confirmation,
            _ => Confirmation::Unanswered,
        }
    }

    fn question(&self, put: impl FnOnce(u64) -> Tell, wanted: &dyn Fn() -> bool) -> Option<Answer> {
        let mut answers = locked(&self.0.answers);
        let number = answers.next;
        answers.next += 1;
        self.tell(&put(number));
        let answer_by = Instant::now() + ANSWER_PATIENCE;
        while wanted() && !self.has_left() && Instant::now() < answer_by {
            match answers.heard.recv_timeout(GLANCE) {
                Ok((to, answer)) if to == number => return Some(answer),
                // To a question that was withdrawn.
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.tell(&Tell::Withdrawn);
        None
    }
}

/// Reads answers until the caller is gone, or makes no sense.
fn listen(stream: UnixStream, answers: &Sender<(u64, Answer)>) {
    let mut reader = BufReader::new(stream);
    while let Ok(Some(reply)) = read_line::<Reply>(&mut reader) {
        let (number, answer) = match reply {
            Reply::Secret { number, octets } if octets <= MAX_SECRET => {
                let mut secret = vec![0; octets];
                let read = reader.read_exact(&mut secret);
                let secret = Secret::new(secret);
                if read.is_err() {
                    return;
                }
                (number, Answer::Secret(Some(secret)))
            }
            Reply::Secret { .. } => return,
            Reply::Nothing { number } => (number, Answer::Secret(None)),
            Reply::Confirmation { number, word } => {
                let confirmation = match word {
                    Word::Yes => Confirmation::Yes,
                    Word::No => Confirmation::No,
                    Word::Unanswered => Confirmation::Unanswered,
                    Word::Nobody(why) => Confirmation::Nobody(why),
                };
                (number, Answer::Confirmation(confirmation))
            }
        };
        if answers.send((number, answer)).is_err() {
            return;
        }
    }
}

/// The caller's end.
pub struct Caller {
    reader: BufReader<UnixStream>,
    stream: UnixStream,
}

/// Where the caller's answers go.
pub struct Answering(UnixStream);

impl Caller {
    /// Asks the user's pool, and waits until it has understood.
    ///
    /// # Errors
    ///
    /// There is none, or it does not answer.
    pub fn begin(folder: &Folder, question: &Ask) -> Result<Caller, AskError> {
        let stream = put(folder, question).map_err(AskError::of)?;
        let reader = stream.try_clone().map_err(AskError::NoAnswer)?;
        let mut caller = Caller {
            reader: BufReader::new(reader),
            stream,
        };
        match caller.hear() {
            Ok(Some(Tell::Begun)) => Ok(caller),
            // It ends just now.
            Ok(None) => Err(AskError::NoPool),
            Ok(Some(_)) => Err(AskError::NoAnswer(io::ErrorKind::InvalidData.into())),
            Err(error) => Err(AskError::of(error)),
        }
    }

    /// What the pool tells next; `None` when it has hung up.
    ///
    /// # Errors
    ///
    /// It cannot be understood.
    pub fn hear(&mut self) -> io::Result<Option<Tell>> {
        read_line(&mut self.reader)
    }

    /// Where answers go, for another thread.
    ///
    /// # Errors
    ///
    /// No further descriptor is to be had.
    pub fn answering(&self) -> io::Result<Answering> {
        self.stream.try_clone().map(Answering)
    }
}

impl Answering {
    /// Answers [`Tell::Ask`].
    ///
    /// # Errors
    ///
    /// The pool does not hear it.
    pub fn secret(&mut self, number: u64, secret: Option<&Secret>) -> io::Result<()> {
        use io::Write;
        match secret.map(Secret::expose) {
            None => write_line(&mut self.0, &Reply::Nothing { number }),
            Some(secret) => {
                let octets = secret.len();
                write_line(&mut self.0, &Reply::Secret { number, octets })?;
                self.0.write_all(secret)
            }
        }
    }

    /// Answers [`Tell::Confirm`].
    ///
    /// # Errors
    ///
    /// The pool does not hear it.
    pub fn confirmation(&mut self, number: u64, confirmation: Confirmation) -> io::Result<()> {
        let word = match confirmation {
            Confirmation::Yes => Word::Yes,
            Confirmation::No => Word::No,
            Confirmation::Unanswered => Word::Unanswered,
            Confirmation::Nobody(why) => Word::Nobody(why),
        };
        write_line(&mut self.0, &Reply::Confirmation { number, word })
    }
}

/// The next line; `None` at the end.
fn read_line<T: for<'a> Deserialize<'a>>(reader: &mut impl BufRead) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    reader.take(MAX_LINE).read_until(b'\n', &mut line)?;
    match line.is_empty() {
        true => Ok(None),
        false => Ok(Some(serde_json::from_slice(&line)?)),
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "conversation_tests.rs"]
mod tests;
