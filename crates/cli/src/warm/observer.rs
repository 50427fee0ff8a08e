//! What is said while hosts are logged in to, and what of those that fail.

use std::io;

use sshoal_fleet::{HostId, HostResult, Outcome, Progress};
use sshoal_net::{Confirmation, Interruption, Observer, Secret, Stream};
use sshoal_pool::Round;
use sshoal_report::push_visible;

use super::voice::Voice;

/// Tells whoever asked for the hosts, as long as he is there, and the pool.
pub(super) struct Watch {
    pub(super) round: Round,
    pub(super) labels: Vec<String>,
    pub(super) voice: Voice,
}

impl Observer for Watch {
    /// There is none.
    fn output(&mut self, _: HostId, _: Stream, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn result(&mut self, result: &HostResult) -> io::Result<()> {
        let label = &self.labels[result.host.0 as usize];
        match &result.outcome {
            Outcome::Failed { failure, .. } => {
                let (kind, detail, remedy) = (failure.kind, &failure.detail, &failure.remedy);
                // Who has ended this very process knows why.
                if !(self.round.is_interrupted() && self.voice.is_own()) {
                    let words = format!("{label}: {kind}: {detail}; {remedy}");
                    self.voice.say(&words);
                }
                self.round.failed(result.host, &failure.detail);
            }
            // It was told to end.
            _ => self.round.ended(result.host),
        }
        Ok(())
    }

    fn notice(&mut self, text: &str) -> io::Result<()> {
        self.voice.say(text);
        Ok(())
    }

    fn demand(&mut self, text: &str) -> io::Result<()> {
        self.notice(text)
    }

    fn banner(&mut self, from: &str, text: &[u8]) -> io::Result<()> {
        for line in text.split(|&octet| octet == b'\n') {
            let mut shown = Vec::new();
            push_visible(line.strip_suffix(b"\r").unwrap_or(line), &mut shown);
            let line = String::from_utf8_lossy(&shown);
            self.voice.say(&format!("{from}: {line}"));
        }
        Ok(())
    }

    fn ask(&mut self, question: &str, wanted: &dyn Fn() -> bool) -> io::Result<Option<Secret>> {
        Ok(self.voice.ask(question, wanted))
    }

    fn confirm(
        &mut self,
        lines: &str,
        fingerprint: Option<&str>,
        wanted: &dyn Fn() -> bool,
    ) -> io::Result<Confirmation> {
        Ok(self.voice.confirm(lines, fingerprint, wanted))
    }

    /// Nothing is read that could be too large to keep.
    fn fail(&mut self, why: &str) -> io::Error {
        io::Error::other(why.to_owned())
    }

    /// Nothing has one.
    fn terminal_lent(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn progress(&mut self, _: &Progress) -> io::Result<()> {
        Ok(())
    }

    type Summary = ();

    fn finish(self, _: Interruption) {}
}
