//! Hears what sessions write, for somebody in another thread; all else is watched as usual.

use std::io;
use std::sync::mpsc::Sender;
use std::time::Instant;

use sshoal_fleet::{HostId, HostResult, Progress};
use sshoal_net::{Confirmation, Interruption, Observer, Secret, Stream};

use crate::watch::Watch;

/// What is heard.
pub(super) enum Said {
    /// On standard output, by which session, and when.
    Output(HostId, Instant, Vec<u8>),
    /// On standard error.
    Error(Vec<u8>),
    /// It is over; behind it comes nothing.
    Over(Over),
}

/// How it came to its end.
pub(super) enum Over {
    /// By itself; why it failed, if it did.
    Ended(Option<String>),
    /// By a signal; with this exit status.
    CutShort(u8),
}

/// Watches, and passes on what is said.
pub(super) struct Listening {
    watch: Watch,
    said: Sender<Said>,
    /// Octets that are still passed on: nobody else limits what a host says.
    room: usize,
}

impl Listening {
    /// Passes on so many octets, and lets the rest go.
    pub(super) fn new(watch: Watch, said: Sender<Said>, room: usize) -> Listening {
        Listening { watch, said, room }
    }
}

impl Observer for Listening {
    fn output(&mut self, host: HostId, stream: Stream, octets: &[u8]) -> io::Result<()> {
        let octets = octets[..octets.len().min(self.room)].to_vec();
        self.room -= octets.len();
        let said = match stream {
            Stream::Stdout => Said::Output(host, Instant::now(), octets),
            Stream::Stderr => Said::Error(octets),
        };
        // Nobody may listen any more.
        let _ = self.said.send(said);
        Ok(())
    }

    fn result(&mut self, result: &HostResult) -> io::Result<()> {
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
