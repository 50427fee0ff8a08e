//! Shows a run as mpssh.py does, and has all that is not shown done as in any run.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::time::Instant;

use sshoal_fleet::{HostId, HostResult, Outcome, Progress};
use sshoal_net::{Confirmation, Interruption, Observer, Secret, Stream};
use sshoal_report::{SIGNALLED, Summary, UNKNOWN_STATUS, signal_status};

use super::bursts::{Bursts, Piece};
use super::header::Counts;
use super::lines::{Form, Sign};
use super::ssh_words::{self, Reached};
use crate::observer::{Reporting, cut_short};

/// ssh's own status where it failed itself.
const SSH_FAILED: u32 = 255;

/// What is shown of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shown {
    /// Of the hosts' standard output and error.
    pub(super) output: bool,
    pub(super) errors: bool,
    /// Why a host could not be reached, and what servers say before a login.
    pub(super) words: bool,
    /// Exit codes of 0.
    pub(super) zero_codes: bool,
    /// Other ones but ssh's own, which always are.
    pub(super) other_codes: bool,
    /// How many characters were left out.
    pub(super) warnings: bool,
    pub(super) closing_line: bool,
}

/// Prints mpssh.py's lines by way of the report.
pub(super) struct Printing {
    report: Reporting,
    shown: Shown,
    form: Form,
    bursts: Bursts,
    hosts: Vec<Reached>,
    /// Octets that were left out of a burst that goes on.
    left_out: HashMap<(usize, Stream), usize>,
    counts: Counts,
}

impl Printing {
    pub(super) fn new(
        report: Reporting,
        shown: Shown,
        form: Form,
        bursts: Bursts,
        hosts: Vec<Reached>,
    ) -> Printing {
        Printing {
            report,
            shown,
            form,
            bursts,
            hosts,
            left_out: HashMap::new(),
            counts: Counts::default(),
        }
    }

    pub(super) fn show_header(&mut self, lines: &[u8]) -> io::Result<()> {
        self.report.print(&self.form.shown(lines))
    }

    /// No host was reached, since the program for that cannot be started.
    pub(super) fn show_unstarted(&mut self, program: &Path, error: &io::Error) -> io::Result<()> {
        let number = error.raw_os_error().unwrap_or_default();
        let said = error.to_string();
        let said = said.split(" (os error").next().unwrap_or_default();
        let line = format!("exec({}) error({number}): {said}", program.display());
        let mut out = Vec::new();
        for host in 0..self.form.hosts() {
            self.form.push(host, Sign::Bad, line.as_bytes(), &mut out);
        }
        self.counts.ssh_failed = self.form.hosts();
        self.report.print(&out)
    }

    fn show(&mut self, piece: &Piece) -> io::Result<()> {
        let (sign, is_shown) = match piece.stream {
            Stream::Stdout => (Sign::Out, self.shown.output),
            Stream::Stderr => (Sign::Err, self.shown.errors),
        };
        if !is_shown {
            return Ok(());
        }
        let mut out = Vec::new();
        let mut left_out = self.form.push(piece.host, sign, &piece.octets, &mut out);
        let burst = (piece.host, piece.stream);
        left_out += self.left_out.remove(&burst).unwrap_or_default();
        match left_out {
            0 => {}
            _ if !piece.ends => drop(self.left_out.insert(burst, left_out)),
            _ if !self.shown.warnings => {}
            count => {
                let warning = format!("{count} non-printable characters were ignored");
                self.form
                    .push(piece.host, Sign::Bad, warning.as_bytes(), &mut out);
            }
        }
        self.report.print(&out)
    }

    fn show_all(&mut self, pieces: &[Piece]) -> io::Result<()> {
        pieces.iter().try_for_each(|piece| self.show(piece))
    }

    /// Something about a host that is shown as what it wrote to standard error.
    fn show_words(&mut self, host: usize, words: &[u8]) -> io::Result<()> {
        match self.shown.words {
            true => self.show(&Piece {
                host,
                stream: Stream::Stderr,
                octets: words.to_vec(),
                ends: true,
            }),
            false => Ok(()),
        }
    }

    fn show_end(&mut self, host: usize, outcome: &Outcome) -> io::Result<()> {
        let mut text = None;
        let code = match outcome {
            Outcome::NotStarted => return Ok(()),
            Outcome::Exit(code) => (*code).min(SSH_FAILED),
            Outcome::Signal { name, .. } => {
                // Where it ended a command over there, ssh ends with its own status and says nothing.
                text = self.starts_ssh().then(|| {
                    let number = signal_number(name);
                    format!("SSH killed with signal {number}")
                });
                SSH_FAILED
            }
            Outcome::Failed { failure, .. } => {
                let words = match self.hosts.get(host) {
                    Some(reached) => reached.words(failure),
                    None => ssh_words::ours(failure),
                };
                self.show_words(host, words.as_bytes())?;
                SSH_FAILED
            }
        };
        let shown = self.shown;
        let (count, sign, is_shown, more) = match code {
            0 => (&mut self.counts.ok, Sign::Good, shown.zero_codes, ""),
            SSH_FAILED => {
                let more = " (possible SSH failure)";
                (&mut self.counts.ssh_failed, Sign::Bad, true, more)
            }
            _ => (&mut self.counts.non_ok, Sign::Bad, shown.other_codes, ""),
        };
        *count += 1;
        let mut out = Vec::new();
        if is_shown {
            let line = text.unwrap_or_else(|| format!("SSH exit code {code}{more}"));
            self.form.push(host, sign, line.as_bytes(), &mut out);
        }
        self.report.print(&out)
    }

    /// Whether an ssh is started for each host.
    fn starts_ssh(&self) -> bool {
        self.hosts.is_empty()
    }
}

/// The number of a signal by its name without `SIG`, or as it stands.
fn signal_number(name: &str) -> String {
    let number = match (name, signal_status(name)) {
        // Of Linux: these can end a program of this machine, and no server names them (RFC 4254 section 6.10).
        ("TRAP", _) => 5,
        ("BUS", _) => 7,
        ("XCPU", _) => 24,
        ("XFSZ", _) => 25,
        ("SYS", _) => 31,
        (_, UNKNOWN_STATUS) => return name.to_owned(),
        (_, status) => status - SIGNALLED,
    };
    number.to_string()
}

impl Observer for Printing {
    fn output(&mut self, host: HostId, stream: Stream, octets: &[u8]) -> io::Result<()> {
        self.report.output(host, stream, octets)?;
        let now = Instant::now();
        let piece = self.bursts.push(now, host.0 as usize, stream, octets);
        piece.map_or(Ok(()), |piece| self.show(&piece))
    }

    fn result(&mut self, result: &HostResult) -> io::Result<()> {
        let host = result.host.0 as usize;
        let left = self.bursts.end(host);
        let shown = self
            .show_all(&left)
            .and_then(|()| self.show_end(host, &result.outcome));
        // Whatever can be shown, the result is kept.
        self.report.result(result).and(shown)
    }

    fn notice(&mut self, text: &str) -> io::Result<()> {
        self.report.notice(text)
    }

    fn demand(&mut self, text: &str) -> io::Result<()> {
        self.report.demand(text)
    }

    fn banner(&mut self, from: &str, text: &[u8]) -> io::Result<()> {
        self.report.banner(from, text)
    }

    /// ssh shows it on standard error.
    fn host_banner(&mut self, host: HostId, _from: &str, text: &[u8]) -> io::Result<()> {
        self.show_words(host.0 as usize, text)
    }

    fn ask(&mut self, question: &str, wanted: &dyn Fn() -> bool) -> io::Result<Option<Secret>> {
        self.report.ask(question, wanted)
    }

    fn confirm(
        &mut self,
        lines: &str,
        fingerprint: Option<&str>,
        wanted: &dyn Fn() -> bool,
    ) -> io::Result<Confirmation> {
        self.report.confirm(lines, fingerprint, wanted)
    }

    fn terminal_lent(&mut self) -> io::Result<()> {
        self.report.terminal_lent()
    }

    fn fail(&mut self, why: &str) -> io::Error {
        self.report.fail(why)
    }

    fn progress(&mut self, progress: &Progress) -> io::Result<()> {
        let due = self.bursts.due(Instant::now());
        self.show_all(&due)?;
        self.report.progress(progress)
    }

    type Summary = Summary;

    fn finish(mut self, interruption: Interruption) -> Summary {
        // What cannot be written the report remembers, and tells in its summary.
        let left = self.bursts.end_all();
        let _ = self.show_all(&left);
        let _ = match cut_short(interruption) {
            Some(_) => {
                let (ended, all) = (self.counts.all(), self.form.hosts());
                let text = format!("interrupted: {ended} of {all} hosts were processed");
                self.report.notice(&text)
            }
            None if self.shown.closing_line => self.report.print(self.counts.line().as_bytes()),
            None => Ok(()),
        };
        self.report.finish(interruption)
    }
}
