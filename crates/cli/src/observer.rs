//! Joins the network's observer with the report.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use sshoal_fleet::{HostId, HostResult, KillVerdict, Progress};
use sshoal_net::{Confirmation, Interruption, Moved, Observer, Secret, Stream, Tally};
use sshoal_report::{CutShort, Moving, Reporter, RunEnd, Summary, Transferred};

use crate::prompt;
use crate::terminal::RawMode;

/// Passes everything on to the report.
pub(crate) struct Reporting {
    reporter: Reporter,
    /// When the program was started.
    since: Instant,
    /// The terminal's lending, while it lasts.
    lent: Option<RawMode>,
    /// How far files are.
    moved: Option<Arc<Moved>>,
}

impl Reporting {
    pub(crate) fn new(reporter: Reporter, since: Instant, moved: Option<Arc<Moved>>) -> Self {
        Reporting {
            reporter,
            since,
            lent: None,
            moved,
        }
    }

    /// Writes whole lines on standard output, in place of the report's own.
    pub(crate) fn print(&mut self, lines: &[u8]) -> io::Result<()> {
        self.reporter.print(lines)
    }
}

/// What signals mean for the run's end.
pub(crate) fn cut_short(by: Interruption) -> Option<CutShort> {
    match (by.stopped_by, by.interrupts) {
        (Some(signal), _) => Some(CutShort::Stopped(signal)),
        (None, 0) => None,
        (None, _) => Some(CutShort::Interrupted),
    }
}

impl Observer for Reporting {
    fn output(&mut self, host: HostId, stream: Stream, octets: &[u8]) -> io::Result<()> {
        let stream = match stream {
            Stream::Stdout => sshoal_report::Stream::Stdout,
            Stream::Stderr => sshoal_report::Stream::Stderr,
        };
        self.reporter.handle_output(host, stream, octets)
    }

    fn result(&mut self, result: &HostResult) -> io::Result<()> {
        self.reporter.handle_result(result)
    }

    fn notice(&mut self, text: &str) -> io::Result<()> {
        self.reporter.notice(text)
    }

    fn demand(&mut self, text: &str) -> io::Result<()> {
        self.reporter.demand(text)
    }

    fn banner(&mut self, from: &str, text: &[u8]) -> io::Result<()> {
        self.reporter.banner(from, text)
    }

    fn ask(&mut self, question: &str, wanted: &dyn Fn() -> bool) -> io::Result<Option<Secret>> {
        self.reporter.pause()?;
        let (secret, notice) = prompt::secret_or_notice(question, wanted);
        if let Some(notice) = notice {
            self.reporter.notice(&notice)?;
        }
        Ok(secret)
    }

    fn confirm(
        &mut self,
        lines: &str,
        fingerprint: Option<&str>,
        wanted: &dyn Fn() -> bool,
    ) -> io::Result<Confirmation> {
        self.reporter.pause()?;
        Ok(prompt::confirm(lines, fingerprint, wanted))
    }

    fn terminal_lent(&mut self) -> io::Result<()> {
        self.lent = RawMode::enter();
        Ok(())
    }

    fn transferred(&mut self, host: HostId, tally: &Tally) -> io::Result<()> {
        let Tally {
            done,
            unchanged,
            failed,
            octets,
            verified,
            deleted,
            why_no_batches,
            why_unverified,
            why_numbers,
            why_shell,
        } = *tally;
        if let Some(why) = why_shell {
            let text = format!("the host has no SFTP, its shell and its programs stood in: {why}");
            self.reporter.remark(host, &text)?;
        }
        if let Some(why) = why_numbers {
            let text = format!("users and groups were kept by number in part: {why}");
            self.reporter.remark(host, &text)?;
        }
        if let Some(why) = why_unverified {
            let text = format!("files were not verified: {why}");
            self.reporter.remark(host, &text)?;
        }
        if let Some(why) = why_no_batches {
            let text = format!("small files went one by one over SFTP: {why}");
            self.reporter.remark(host, &text)?;
        }
        let transferred = Transferred {
            done,
            unchanged,
            failed,
            verified,
            deleted,
            octets,
        };
        self.reporter.handle_transferred(host, transferred)
    }

    fn killed(&mut self, host: HostId, verdict: &KillVerdict) -> io::Result<()> {
        self.reporter.handle_killed(host, verdict)
    }

    fn fail(&mut self, why: &str) -> io::Error {
        self.reporter.fail(why)
    }

    fn progress(&mut self, progress: &Progress) -> io::Result<()> {
        if let Some(moved) = &self.moved {
            let (done, left) = (moved.done(), moved.left());
            let of_hosts = || {
                let hosts = moved.of_hosts();
                let hosts = hosts.map(|(host, done, left)| (host, Moving { done, left }));
                hosts.collect()
            };
            self.reporter.handle_moving(Moving { done, left }, of_hosts);
        }
        self.reporter.tick(Instant::now(), progress)
    }

    type Summary = Summary;

    /// Takes the terminal back, and closes the report.
    fn finish(self, interruption: Interruption) -> Summary {
        drop(self.lent);
        self.reporter.finish(RunEnd {
            cut_short: cut_short(interruption),
            elapsed: self.since.elapsed(),
        })
    }
}
