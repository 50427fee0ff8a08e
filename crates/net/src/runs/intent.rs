//! What is on record before a command leaves.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use sshoal_fleet::{Failure, FailureKind, HostId};

use super::sync::Synced;
use super::writer::RunJournal;

/// The record that one host's command is about to leave.
pub(crate) struct Intent {
    journal: Arc<RunJournal>,
    host: HostId,
    state: State,
}

enum State {
    Unwritten,
    /// Written, and on its way to the disk.
    Syncing(Synced),
    Recorded,
    Failed(Failure),
}

impl Intent {
    pub(crate) fn new(journal: Arc<RunJournal>, host: HostId) -> Intent {
        let state = State::Unwritten;
        Intent {
            journal,
            host,
            state,
        }
    }

    /// Writes the record, unless that was done; whether the command may leave.
    pub(crate) fn record(&mut self) -> bool {
        if matches!(self.state, State::Unwritten) {
            self.state = match self.journal.note_sent(self.host) {
                Ok(None) => State::Recorded,
                Ok(Some(synced)) => State::Syncing(synced),
                Err(error) => State::Failed(failure(&error, &self.journal)),
            };
        }
        matches!(self.state, State::Recorded)
    }

    /// Ready when the wait for a record that is written is over, be it on the disk or not.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let State::Syncing(synced) = &mut self.state else {
            return Poll::Ready(());
        };
        synced.poll(context).map(|done| {
            self.state = match done {
                Ok(()) => State::Recorded,
                Err(error) => State::Failed(failure(&error, &self.journal)),
            };
        })
    }

    /// Why the command may never leave, if it may not.
    pub(crate) fn failed(&self) -> Result<(), Failure> {
        match &self.state {
            State::Failed(failure) => Err(failure.clone()),
            _ => Ok(()),
        }
    }

    /// Waits until the command may leave.
    pub(crate) async fn recorded(mut self) -> Result<(), Failure> {
        if !self.record() && self.failed().is_ok() {
            poll_fn(|context| self.poll(context)).await;
        }
        self.failed()
    }
}

fn failure(error: &io::Error, journal: &RunJournal) -> Failure {
    let remedy = match journal.is_synced() {
        true => {
            "make room on that disk and run `sshoal resume`, or do without a journal that survives power loss (--journal=write)"
        }
        false => "make room on that disk and run `sshoal resume`",
    };
    Failure::with_remedy(
        FailureKind::Internal,
        format!(
            "the command was not sent, because that could not be noted in the run's journal: {error}"
        ),
        remedy,
    )
}
