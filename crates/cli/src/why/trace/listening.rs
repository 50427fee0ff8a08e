//! Hears what sessions write, for somebody in another thread; all else is watched as usual.

use std::io;
use std::sync::mpsc::Sender;
use std::time::Instant;

use sshoal_fleet::{HostId, HostResult, Outcome, Progress};
use sshoal_net::{Confirmation, Interruption, Observer, Secret, Stream};

use crate::watch::Watch;

/// What is heard.
pub(super) enum Said {
    /// On standard output, and when.
    Output(Instant, Vec<u8>),
    /// On standard error.
    Error(Vec<u8>),
    /// It is over; why it failed, if it did.
    Ended(Option<String>),
}

/// Watches, and passes on what is said.
pub(super) struct Listening {
    watch: Watch,
    said: Sender<Said>,
}

impl Listening {
    pub(super) fn new(watch: Watch, said: Sender<Said>) -> Listening {
        Listening { watch, said }
    }

    /// Nobody may listen any more.
    fn pass_on(&self, said: Said) -> io::Result<()> {
        let _ = self.said.send(said);
        Ok(())
    }
}

impl Observer for Listening {
    fn output(&mut self, _: HostId, stream: Stream, octets: &[u8]) -> io::Result<()> {
        self.pass_on(match stream {
            Stream::Stdout => Said::Output(Instant::now(), octets.to_vec()),
            Stream::Stderr => Said::Error(octets.to_vec()),
        })
    }

    fn result(&mut self, result: &HostResult) -> io::Result<()> {
        let failure = match &result.outcome {
            Outcome::Failed { failure, .. } => Some(failure.detail.clone()),
            Outcome::Exit(_) | Outcome::Signal { .. } | Outcome::NotStarted => None,
        };
        self.pass_on(Said::Ended(failure))?;
        self.watch.result(result)
    }

    fn notice(&mut self, text: &str) -> io::Result<()> {
        self.watch.notice(text)
    }

    fn demand(&mut self, text: &str) -> io::Result<()> {
        self.watch.demand(text)
    }

    /// It was shown before.
    fn banner(&mut self, _: &str, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn ask(&mut self, question: &str, wanted: &dyn Fn() -> bool) -> io::Result<Option<Secret>> {
        self.watch.ask(question, wanted)
    }

    fn confirm(
        &mut self,
        lines: &str,
        fingerprint: Option<&str>,
        wanted: &dyn Fn() -> bool,
    ) -> io::Result<Confirmation> {
        self.watch.confirm(lines, fingerprint, wanted)
    }

    fn fail(&mut self, why: &str) -> io::Error {
        self.watch.fail(why)
    }

    fn terminal_lent(&mut self) -> io::Result<()> {
        self.watch.terminal_lent()
    }

    /// Nothing of it can be counted.
    fn progress(&mut self, _: &Progress) -> io::Result<()> {
        Ok(())
    }

    type Summary = Vec<HostResult>;

    fn finish(self, interruption: Interruption) -> Vec<HostResult> {
        self.watch.finish(interruption)
    }
}
