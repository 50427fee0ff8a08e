//! What the user sees while something is measured: on a terminal how far it is, otherwise what must be known.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use sshoal_fleet::{HostId, HostResult, Progress};
use sshoal_net::{Confirmation, Interruption, Observer, Secret, Stream};
use sshoal_report::push_visible;

use crate::prompt;
use crate::say::say;

/// The least time between two drawings.
const REDRAW_EVERY: Duration = Duration::from_millis(200);
/// Takes the line away.
const CLEAR: &[u8] = b"\r\x1b[K";

/// Collects the results.
pub(crate) struct Watch {
    what: String,
    since: Instant,
    results: Vec<HostResult>,
    /// Whether the status line can be drawn.
    on_terminal: bool,
    drawn: Option<Instant>,
}

impl Watch {
    /// `what` is measured, as in "web1: 3 rounds".
    pub(crate) fn new(what: String) -> Watch {
        Watch {
            what,
            since: Instant::now(),
            results: Vec::new(),
            on_terminal: io::stderr().is_terminal(),
            drawn: None,
        }
    }

    fn draw(&mut self, total: u32) {
        let now = Instant::now();
        let is_early = |drawn| now.saturating_duration_since(drawn) < REDRAW_EVERY;
        if !self.on_terminal || self.drawn.is_some_and(is_early) {
            return;
        }
        self.drawn = Some(now);
        let done = u32::try_from(self.results.len()).unwrap_or(u32::MAX);
        let mut line = format!("{}: {done} of {total} measurements", self.what);
        if let Some(each) = self.since.elapsed().checked_div(done) {
            let left = each.saturating_mul(total.saturating_sub(done)).as_secs();
            line.push_str(&format!(", {}:{:02} left", left / 60, left % 60));
        }
        // A status line that cannot be shown is none.
        let _ = io::stderr().write_all(&[CLEAR, line.as_bytes()].concat());
    }

    fn clear(&mut self) {
        if self.drawn.take().is_some() {
            let _ = io::stderr().write_all(CLEAR);
        }
    }
}

impl Observer for Watch {
    /// There is none: what is measured keeps its output to itself.
    fn output(&mut self, _: HostId, _: Stream, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn result(&mut self, result: &HostResult) -> io::Result<()> {
        self.results.push(result.clone());
        Ok(())
    }

    fn notice(&mut self, text: &str) -> io::Result<()> {
        self.clear();
        say(text);
        Ok(())
    }

    fn demand(&mut self, text: &str) -> io::Result<()> {
        self.notice(text)
    }

    /// The same one at every login: once is enough.
    fn banner(&mut self, from: &str, text: &[u8]) -> io::Result<()> {
        if !self.results.is_empty() || !self.on_terminal {
            return Ok(());
        }
        self.clear();
        for line in text.split(|&octet| octet == b'\n') {
            let mut shown = format!("{from}: ").into_bytes();
            push_visible(line.strip_suffix(b"\r").unwrap_or(line), &mut shown);
            shown.push(b'\n');
            let _ = io::stderr().write_all(&shown);
        }
        Ok(())
    }

    fn ask(&mut self, question: &str, wanted: &dyn Fn() -> bool) -> io::Result<Option<Secret>> {
        self.clear();
        let (secret, notice) = prompt::secret_or_notice(question, wanted);
        if let Some(notice) = notice {
            self.notice(&notice)?;
        }
        Ok(secret)
    }

    fn confirm(
        &mut self,
        lines: &str,
        fingerprint: Option<&str>,
        wanted: &dyn Fn() -> bool,
    ) -> io::Result<Confirmation> {
        self.clear();
        Ok(prompt::confirm(lines, fingerprint, wanted))
    }

    /// Nothing is read that could be too large to keep.
    fn fail(&mut self, why: &str) -> io::Error {
        io::Error::other(why.to_owned())
    }

    /// Nothing has one.
    fn terminal_lent(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn progress(&mut self, progress: &Progress) -> io::Result<()> {
        self.draw(progress.total);
        Ok(())
    }

    type Summary = Vec<HostResult>;

    fn finish(mut self, _: Interruption) -> Vec<HostResult> {
        self.clear();
        self.results
    }
}
