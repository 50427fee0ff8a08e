//! The end of a report: what was gathered, the results, the closing summary.

use std::{
    io::{self, Write as _},
    time::{Duration, Instant},
};

use super::{Reporter, View};
use crate::{
    CutShort, Layout, Summary, Verbosity, console::Stream, diff::write_diffs, exit_status,
    gather::write_groups, json, sanitise::visible,
};

/// How long `--diff` may look for the shortest differences, over all groups.
const DIFF_TIME: Duration = Duration::from_secs(10);

/// How the run itself ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunEnd {
    /// What ended it before all hosts had, as far as the report does not know that itself.
    pub cut_short: Option<CutShort>,
    /// How long it took.
    pub elapsed: Duration,
}

impl Reporter {
    /// Shows what was gathered and the summary, and keeps the results for `--retry-failed`: these whatever fails.
    /// The summary's status is the one to exit with.
    pub fn finish(mut self, end: RunEnd) -> Summary {
        let tally = std::mem::take(&mut self.tally);
        let mut summary = tally.close(&self.labels, end, self.options.exit_policy);
        // What fails is remembered, and told at the end.
        let _ = self.pause();
        let _ = self.show(Reporter::finish_output);
        let _ = self.show(|reporter| reporter.finish_json(&summary));
        if let Some(failure) = &self.failure {
            let cut_short = end.cut_short.max(Some(CutShort::by(failure)));
            summary.is_cut_short = true;
            summary.exit_status = exit_status(&summary.counts, cut_short, self.options.exit_policy);
        }
        if let Some(file) = self.result_file.take()
            && let Err(error) = file.commit(&json::summary_record(&summary))
        {
            self.results_lost(&error);
        }
        // The hosts' output is out: if nobody can be told how it went, the status still says so.
        let _ = self.say_last(&summary);
        summary
    }

    /// Shows all output that is still kept.
    fn finish_output(&mut self) -> io::Result<()> {
        let Reporter {
            console,
            spill,
            labels,
            ..
        } = self;
        match &mut self.view {
            View::Lines(_) => (0..self.hosts.len()).try_for_each(|host| self.end_lines(host))?,
            View::Gather(gathered) => {
                let stdout = gathered.take(Stream::Stdout, labels, spill)?;
                let stderr = gathered.take(Stream::Stderr, labels, spill)?;
                let same = (stdout.len() == 1).then(|| stdout[0].hosts.len());
                if self.options.layout == Layout::Diff {
                    let deadline = Instant::now() + DIFF_TIME;
                    write_diffs(stdout, labels, deadline, console, spill)?;
                } else {
                    write_groups(stdout, labels, Stream::Stdout, console, spill)?;
                }
                write_groups(stderr, labels, Stream::Stderr, console, spill)?;
                if let Some(hosts) = same
                    && self.options.layout == Layout::Diff
                {
                    self.notice(&format!(
                        "no differences: {hosts} hosts gave the same output"
                    ))?;
                }
            }
            View::Json(_) | View::Raw | View::Own => {}
        }
        self.console.flush()
    }

    /// Ends JSON Lines. Without this they are known to be cut off.
    fn finish_json(&mut self, summary: &Summary) -> io::Result<()> {
        if self.options.layout != Layout::Json {
            return Ok(());
        }
        let mut out = self.console.writer(Stream::Stdout);
        let mut record = json::summary_record(summary);
        if let Some(transferred) = &self.all_transferred {
            transferred.extend(&mut record);
        }
        self.killed.extend_summary(&mut record);
        out.write_all(&record)?;
        out.write_all(b"\n")?;
        out.flush()
    }

    /// Says on standard error why the run was cut short, even if it is to be quiet, and how it ended.
    fn say_last(&mut self, summary: &Summary) -> io::Result<()> {
        // What could not be written is no reason to say nothing elsewhere.
        let _ = self.console.flush();
        match &self.failure {
            Some(error) if CutShort::by(error) == CutShort::ReaderGone => return Ok(()),
            Some(error) => {
                let text = format!("sshoal: {}\n", visible(&error.to_string()));
                self.say(&text)?;
            }
            None => {}
        }
        if self.speaks() && self.is_of_interest(summary) {
            self.say(&summary.text())?;
            if let Some(transferred) = self.all_transferred {
                self.say(&transferred.text())?;
            }
            let killed = self.killed.text(&self.labels);
            self.say(&killed)?;
        }
        self.console.flush()
    }

    fn is_of_interest(&self, summary: &Summary) -> bool {
        match self.options.layout {
            _ if self.options.verbosity == Verbosity::Verbose || self.failure.is_some() => true,
            // Who used a program there has seen how it ended.
            Layout::Raw => summary.counts.failed + summary.counts.not_started > 0,
            Layout::Own => self.console.is_terminal(Stream::Stderr) && !summary.all_ok(),
            _ => self.console.is_terminal(Stream::Stderr) || !summary.all_ok(),
        }
    }
}
