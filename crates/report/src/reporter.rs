//! One run's report, from its first byte to its closing summary.

use std::{
    collections::HashMap,
    io::{self, Write as _},
    path::Path,
    time::Instant,
};

use sshoal_fleet::{HostId, HostResult, KillVerdict, Outcome, Progress};

use crate::{
    Host, Layout, Options, Sink, Verbosity,
    console::{Console, Stream},
    gather::Gathered,
    json,
    kept::Kept,
    killed::Killed,
    last_run::ResultFile,
    lines::{HostLines, LineStyle, LineWriter, MAX_LINE},
    outdir::OutDir,
    progress::{NAMED_HOSTS, StatusLine},
    result_line::result_line,
    sanitise::{push_visible_lines, visible},
    spill::Spill,
    summary::Tally,
    transferred::{Moving, Transferred},
};

mod closing;

pub use closing::RunEnd;

/// Shows a run: output and results go in, text comes out of the two sinks.
///
/// Text is collected and written in blocks; [`Reporter::tick`] writes what is there, so it is to be called
/// after each batch of events, and at least ten times a second while a run is on a terminal. Writing blocks
/// while the reader of our output is slow: the caller reads no more from its hosts meanwhile.
///
/// The first error of a method ends what is shown. The hosts' results are still to be handed over, for the summary
/// and for `--retry-failed`; whatever else comes is dropped. [`Reporter::finish`] tells of the error, unless it is
/// a [`io::ErrorKind::BrokenPipe`]: then whoever read our output has seen enough.
pub struct Reporter {
    hosts: Vec<Host>,
    labels: Vec<String>,
    options: Options,
    console: Console,
    spill: Spill,
    view: View,
    outdir: Option<OutDir>,
    result_file: Option<ResultFile>,
    tally: Tally,
    ended: Vec<bool>,
    status: StatusLine,
    /// What became of files, of each host whose result is still to come, and of all those that have ended.
    transferred: HashMap<usize, Transferred>,
    all_transferred: Option<Transferred>,
    killed: Killed,
    /// The first error of our output.
    failure: Option<io::Error>,
}

/// What a layout keeps of the output that it has not shown.
enum View {
    Lines(Vec<HostLines>),
    Gather(Gathered),
    Json(Vec<[Kept; 2]>),
    Raw,
    Own,
}

impl Reporter {
    /// Begins a report. The position of a host in `hosts` is its [`HostId`].
    ///
    /// # Errors
    /// The output directory cannot be made. A result file that cannot be made is only told on `stderr`.
    pub fn new(
        hosts: Vec<Host>,
        options: Options,
        stdout: Sink,
        stderr: Sink,
    ) -> io::Result<Reporter> {
        let labels: Vec<String> = hosts.iter().map(|host| host.label.clone()).collect();
        let count = hosts.len();
        let view = match options.layout {
            Layout::Lines { .. } => View::Lines((0..count).map(|_| HostLines::default()).collect()),
            Layout::Gather => View::Gather(Gathered::new(count, false)),
            Layout::Diff => View::Gather(Gathered::new(count, true)),
            Layout::Json => View::Json((0..count).map(|_| Default::default()).collect()),
            Layout::Raw => View::Raw,
            Layout::Own => View::Own,
        };
        let outdir = options
            .outdir
            .clone()
            .map(|dir| OutDir::create(dir, &labels))
            .transpose()?;
        let mut reporter = Reporter {
            hosts,
            labels,
            console: Console::new(stdout, stderr),
            spill: Spill::new(options.spill_dir.clone()),
            view,
            outdir,
            result_file: None,
            tally: Tally::default(),
            ended: vec![false; count],
            status: StatusLine::default(),
            transferred: HashMap::new(),
            all_transferred: None,
            killed: Killed::default(),
            failure: None,
            options,
        };
        reporter.begin_result_file();
        Ok(reporter)
    }

    fn begin_result_file(&mut self) {
        let run = self.options.run.as_deref();
        let path = self.options.result_file.as_deref();
        match path.map(|path| ResultFile::begin(path, run)) {
            Some(Ok(file)) => self.result_file = Some(file),
            Some(Err(error)) => self.results_lost(&error),
            None => {}
        }
    }

    /// No reason to end anything: the run goes on.
    fn results_lost(&mut self, error: &io::Error) {
        self.result_file = None;
        let path = self.options.result_file.as_deref();
        let text = format!(
            "cannot keep the results in {}: {error}; --retry-failed will not know this run",
            path.unwrap_or(Path::new("")).display()
        );
        if self.speaks() {
            // A standard error that cannot be written is noticed where more than this is lost.
            let _ = self.say(&format!("sshoal: {}\n", visible(&text)));
        }
    }

    /// Shows something, unless a failure has ended that before; remembers the first failure.
    fn show(&mut self, something: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<()> {
        if self.failure.is_some() {
            return Ok(());
        }
        let shown = something(self);
        if let Err(error) = &shown {
            self.failure = Some(io::Error::new(error.kind(), error.to_string()));
        }
        shown
    }

    /// What the run needs of this machine failed, and it was not our output: told, and counted, as if it were.
    pub fn fail(&mut self, why: &str) -> io::Error {
        let _ = self.show(|_| Err(io::Error::other(why.to_owned())));
        io::Error::other(why.to_owned())
    }

    /// Takes output as it came from a host.
    ///
    /// # Errors
    /// Our output, the output directory or the spill file cannot be written.
    pub fn handle_output(&mut self, host: HostId, stream: Stream, bytes: &[u8]) -> io::Result<()> {
        self.show(|reporter| reporter.take_output(host, stream, bytes))
    }

    fn take_output(&mut self, host: HostId, stream: Stream, bytes: &[u8]) -> io::Result<()> {
        let host = self.position(host)?;
        if bytes.is_empty() {
            return Ok(());
        }
        if let Some(outdir) = &mut self.outdir {
            outdir.push(host, stream, bytes)?;
        }
        match &mut self.view {
            View::Lines(hosts) => {
                let style = line_style(self.options.layout);
                let (console, spill, label) =
                    (&mut self.console, &mut self.spill, &self.labels[host]);
                LineWriter {
                    console,
                    spill,
                    style,
                    label,
                    stream,
                }
                .push(&mut hosts[host], bytes)
            }
            View::Gather(gathered) => gathered.push(host, stream, bytes, &mut self.spill),
            View::Json(kept) => kept[host][stream as usize].push(bytes, &mut self.spill),
            View::Raw => self.console.writer(stream).write_all(bytes),
            View::Own => Ok(()),
        }
    }

    /// Takes the end of a host. All its output has been handed over before.
    ///
    /// # Errors
    /// As [`Reporter::handle_output`]; also a host that is not of this run, or has ended before.
    pub fn handle_result(&mut self, result: &HostResult) -> io::Result<()> {
        match self.keep_result(result) {
            Ok((host, record)) => self.show(|reporter| reporter.show_result(host, result, &record)),
            Err(error) => self.show(|_| Err(error)),
        }
    }

    /// Takes what became of a host's files in one attempt, before its result.
    ///
    /// # Errors
    /// A host that is not of this run.
    pub fn handle_transferred(&mut self, host: HostId, transferred: Transferred) -> io::Result<()> {
        let host = self.position(host)?;
        let all_attempts = match self.transferred.get(&host) {
            Some(before) => transferred.after(before),
            None => transferred,
        };
        self.transferred.insert(host, all_attempts);
        Ok(())
    }

    /// Takes whether a host's command that had to end is gone, before its result.
    ///
    /// # Errors
    /// A host that is not of this run.
    pub fn handle_killed(&mut self, host: HostId, verdict: &KillVerdict) -> io::Result<()> {
        let host = self.position(host)?;
        self.killed.add(host, verdict.clone());
        Ok(())
    }

    /// Takes how far the files of all hosts are, and asks for those of each host whose files are under way if that is shown:
    /// for the status lines.
    pub fn handle_moving(&mut self, all: Moving, of_hosts: impl FnOnce() -> Vec<(HostId, Moving)>) {
        let is_shown = self.hosts.len() > 1 && self.status_size().is_some();
        let hosts = if is_shown { of_hosts() } else { Vec::new() };
        self.status.moving = Some((all, hosts));
    }

    /// Counts and records the result. Returns the host's position, and the record if anybody wants it.
    fn keep_result(&mut self, result: &HostResult) -> io::Result<(usize, Vec<u8>)> {
        let host = self.position(result.host)?;
        if std::mem::replace(&mut self.ended[host], true) {
            return Err(io::Error::other(format!(
                "{} ended twice",
                self.labels[host]
            )));
        }
        self.tally.add(host, &self.labels[host], result);
        let mut record = match self.options.layout {
            Layout::Json => json::host_record(&self.hosts[host], result),
            _ if self.result_file.is_some() => json::host_record(&self.hosts[host], result),
            _ => Vec::new(),
        };
        if let Some(transferred) = self.transferred.remove(&host) {
            transferred.extend(&mut record);
            self.all_transferred
                .get_or_insert_default()
                .add(&transferred);
        }
        self.killed.extend(host, &mut record);
        if let Some(file) = &mut self.result_file
            && let Err(error) = file.record(&record)
        {
            self.results_lost(&error);
        }
        Ok((host, record))
    }

    fn show_result(&mut self, host: usize, result: &HostResult, record: &[u8]) -> io::Result<()> {
        if let Some(outdir) = &mut self.outdir {
            outdir.end(host)?;
        }
        self.end_output(host, result, record)?;
        if self.options.verbosity == Verbosity::Verbose {
            let line = result_line(&self.labels[host], result);
            self.say(&line)?;
        }
        Ok(())
    }

    /// Shows what is left of a host's output, or keeps it for the end of the run.
    fn end_output(&mut self, host: usize, result: &HostResult, record: &[u8]) -> io::Result<()> {
        match &mut self.view {
            View::Lines(_) => self.end_lines(host),
            View::Gather(gathered) => {
                let ran = matches!(result.outcome, Outcome::Exit(_) | Outcome::Signal { .. });
                gathered.end(host, ran, &mut self.spill)
            }
            View::Json(kept) => {
                let mut kept = std::mem::take(&mut kept[host]);
                let mut out = self.console.writer(Stream::Stdout);
                if !self.options.has_output {
                    out.write_all(record)?;
                    return out.write_all(b"\n");
                }
                json::write_with_output(record, &kept, &self.spill, &mut out)?;
                kept.iter_mut()
                    .try_for_each(|kept| kept.capture.clear(&mut self.spill))
            }
            View::Raw | View::Own => Ok(()),
        }
    }

    /// Ends a host's unfinished lines.
    fn end_lines(&mut self, host: usize) -> io::Result<()> {
        let View::Lines(hosts) = &mut self.view else {
            return Ok(());
        };
        for stream in [Stream::Stdout, Stream::Stderr] {
            let style = line_style(self.options.layout);
            let (console, spill, label) = (&mut self.console, &mut self.spill, &self.labels[host]);
            LineWriter {
                console,
                spill,
                style,
                label,
                stream,
            }
            .end(&mut hosts[host])?;
        }
        Ok(())
    }

    /// Writes what has been collected, and draws the status lines when they are due.
    ///
    /// # Errors
    /// Our output cannot be written.
    pub fn tick(&mut self, now: Instant, progress: &Progress) -> io::Result<()> {
        self.show(|reporter| reporter.draw(now, progress))
    }

    /// Columns and rows that there are for status lines; `None` if none is to be shown.
    fn status_size(&self) -> Option<(usize, usize)> {
        let wanted = self.options.progress && self.options.layout != Layout::Raw;
        let size = self.console.status_size();
        size.filter(|_| wanted && self.speaks())
    }

    fn draw(&mut self, now: Instant, progress: &Progress) -> io::Result<()> {
        self.console.flush()?;
        let Some(size) = self.status_size() else {
            return Ok(());
        };
        if !self.status.is_due(now) {
            return Ok(());
        }
        let left = progress.total.saturating_sub(progress.done) as usize;
        let mut names = Vec::new();
        if left <= NAMED_HOSTS {
            let running = self
                .labels
                .iter()
                .zip(&self.ended)
                .filter(|(_, ended)| !**ended);
            names.extend(running.map(|(label, _)| visible(label)).take(NAMED_HOSTS));
        }
        let lines = self.status.lines(now, progress, &names, &self.labels, size);
        self.console.draw_status(&lines)
    }

    /// Writes whole lines of the caller's on standard output.
    ///
    /// # Errors
    /// Our output cannot be written.
    pub fn print(&mut self, lines: &[u8]) -> io::Result<()> {
        self.show(|reporter| reporter.console.writer(Stream::Stdout).write_all(lines))
    }

    /// Says something on standard error, on a line of its own, unless the run is to be quiet.
    ///
    /// # Errors
    /// Our output cannot be written.
    pub fn notice(&mut self, text: &str) -> io::Result<()> {
        if !self.speaks() {
            return Ok(());
        }
        self.show(|reporter| {
            reporter.say(&format!("sshoal: {}\n", visible(text)))?;
            reporter.console.flush()
        })
    }

    /// Says what the user must do now, or the run waits: on standard error, even if the run is to be quiet.
    ///
    /// # Errors
    /// Our output cannot be written.
    pub fn demand(&mut self, text: &str) -> io::Result<()> {
        self.show(|reporter| {
            reporter.say(&format!("sshoal: {}\n", visible(text)))?;
            reporter.console.flush()
        })
    }

    /// Shows what the server `from` says before a login (RFC 4252 section 5.4), made visible, on standard error: if
    /// more than usual is to be said.
    ///
    /// # Errors
    /// Our output cannot be written.
    pub fn banner(&mut self, from: &str, text: &[u8]) -> io::Result<()> {
        if self.options.verbosity < Verbosity::Verbose {
            return Ok(());
        }
        let mut lines = Vec::new();
        push_visible_lines(text, &mut lines);
        let text = String::from_utf8_lossy(&lines);
        self.show(|reporter| {
            text.lines().try_for_each(|line| {
                reporter.say(&format!("sshoal: {}: banner: {line}\n", visible(from)))
            })
        })
    }

    /// Shows something about a host that is of no consequence for its result, if more than usual is to be said.
    ///
    /// # Errors
    /// A host that is not of this run, or our output cannot be written.
    pub fn remark(&mut self, host: HostId, text: &str) -> io::Result<()> {
        let host = self.position(host)?;
        if self.options.verbosity < Verbosity::Verbose {
            return Ok(());
        }
        let (label, text) = (visible(&self.labels[host]), visible(text));
        let line = format!("sshoal: {label}: {text}\n");
        self.show(|reporter| reporter.say(&line))
    }

    /// Makes the terminal ours no longer, until the next tick: for a question to the user.
    ///
    /// # Errors
    /// Our output cannot be written.
    pub fn pause(&mut self) -> io::Result<()> {
        self.show(|reporter| {
            reporter.console.flush()?;
            reporter.console.erase_status()
        })
    }

    /// Appends text of ours, whole lines, to standard error.
    fn say(&mut self, text: &str) -> io::Result<()> {
        self.console
            .text(Stream::Stderr)?
            .extend_from_slice(text.as_bytes());
        self.console.written()
    }

    fn speaks(&self) -> bool {
        self.options.verbosity > Verbosity::Quiet
    }

    fn position(&self, host: HostId) -> io::Result<usize> {
        let position = host.0 as usize;
        if position < self.hosts.len() {
            Ok(position)
        } else {
            Err(io::Error::other(format!(
                "host {position} is not part of this run"
            )))
        }
    }
}

fn line_style(layout: Layout) -> LineStyle {
    let prefix = !matches!(layout, Layout::Lines { prefix: false });
    LineStyle {
        prefix,
        max_line: MAX_LINE,
    }
}

#[cfg(test)]
mod tests;
