//! Answers what an ssh_config asks of the system while a host is resolved.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use sshoal_ssh_config::{Answers, Config, Query, Question, ResolveError, Resolved, Unresolved};

use super::{config_files, inquiries};
use crate::interfaces;

/// What was asked so far, and the answers: they serve all hosts, so that a `Match exec` runs once for each different
/// command, and a name is looked up once.
#[derive(Default)]
pub(super) struct Questions {
    answers: Mutex<Answers>,
    /// Whether a command of `Match exec` was among them.
    has_run: AtomicBool,
}

/// Questions that are yet to be put, each once.
#[derive(Default)]
pub(super) struct Open {
    known: HashSet<Question>,
    in_order: Vec<Question>,
}

impl Open {
    pub(super) fn add(&mut self, question: Question) {
        if self.known.insert(question.clone()) {
            self.in_order.push(question);
        }
    }
}

impl Questions {
    /// Resolves a host, answering what is asked.
    pub(super) fn resolve(
        &self,
        config: &Config,
        query: &Query<'_>,
    ) -> Result<Resolved, ResolveError> {
        loop {
            match self.begin(config, query)? {
                Ok(resolved) => return Ok(resolved),
                Err(question) => {
                    let mut open = Open::default();
                    open.add(question);
                    self.find_out(open);
                }
            }
        }
    }

    /// Resolves a host as far as that goes without a question that takes time.
    pub(super) fn begin(
        &self,
        config: &Config,
        query: &Query<'_>,
    ) -> Result<Result<Resolved, Question>, ResolveError> {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match config.resolve(query, &answers) {
                Ok(resolved) => return Ok(Ok(resolved)),
                Err(Unresolved::Refused(error)) => return Err(error),
                Err(Unresolved::Asks(question)) => {
                    if let Some(question) = answer(question, &mut answers) {
                        return Ok(Err(question));
                    }
                }
            }
        }
    }

    /// Whether any command of `Match exec` was run.
    pub(super) fn have_run_commands(&self) -> bool {
        self.has_run.load(Ordering::Relaxed)
    }

    /// Answers questions that take time, many at a time.
    pub(super) fn find_out(&self, open: Open) {
        let is_command = |question: &Question| matches!(question, Question::Exec { .. });
        if open.in_order.iter().any(is_command) {
            self.has_run.store(true, Ordering::Relaxed);
        }
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        inquiries::find_out(open.in_order, &mut answers);
    }
}

/// Answers at once; gives the question back if that would take time.
fn answer(question: Question, answers: &mut Answers) -> Option<Question> {
    match question {
        Question::Exec { .. } | Question::Lookup { .. } => return Some(question),
        Question::LocalAddresses => answers.local_addresses(interfaces::local_addresses()),
        Question::Home { user } => {
            let home = config_files::home_of(&user);
            answers.home(user, home);
        }
        Question::Include(request) => {
            let mut loader = request.loader(config_files::environment());
            config_files::supply_all(&mut loader);
            answers.included(request, loader.finish());
        }
    }
    None
}
