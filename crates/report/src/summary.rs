//! The closing summary: what failed, by kind, under folded names, and what to do about it.

use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

use sshoal_fleet::{Failure, FailureKind, HostResult, Outcome};
use sshoal_targets::fold;

use crate::{
    CutShort, RunEnd,
    exit_status::{Counts, ExitPolicy, exit_status, remote_status, signal_status},
    sanitise::visible,
};

/// How many hosts of one kind of failure the summary quotes.
const MAX_EXAMPLES: usize = 3;

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// How many hosts ended how.
    pub counts: Counts,
    /// The hosts that failed, by kind; those whose command failed by status or signal too.
    pub failures: Vec<FailureGroup>,
    /// Names of the hosts that were not started.
    pub not_started: Vec<String>,
    /// Whether a signal ended the run: the user's, or the system's.
    pub interrupted: bool,
    /// Whether anything ended it before all hosts had, or kept what they wrote from being shown.
    pub is_cut_short: bool,
    /// The status to exit with.
    pub exit_status: u8,
    /// From the first start to the last end.
    pub elapsed: Duration,
}

/// Hosts that failed in the same way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureGroup {
    /// The kind.
    pub kind: FailureKind,
    /// The status or the signal, where that makes the kind.
    pub reason: Option<Reason>,
    /// The hosts' names.
    pub hosts: Vec<String>,
    /// What happened to hosts of which it is not the same, at most three.
    pub examples: Vec<Example>,
    /// Whether that leaves hosts out to which something else happened.
    pub has_more: bool,
}

/// How a command failed that ran.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Its exit status.
    Status(u32),
    /// The signal that ended it, without `SIG`.
    Signal(String),
}

/// One host's failure, standing for others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// The host's name.
    pub host: String,
    /// What happened there.
    pub detail: String,
    /// What to do about it.
    pub remedy: String,
}

/// Counts results as they come.
#[derive(Default)]
pub(crate) struct Tally {
    counts: Counts,
    failures: BTreeMap<(FailureKind, Option<Reason>), Failed>,
    not_started: Vec<usize>,
}

/// The hosts of one kind of failure, so far.
#[derive(Default)]
struct Failed {
    hosts: Vec<usize>,
    examples: Vec<Example>,
    /// What the examples say, but for what is about one host alone.
    gists: Vec<String>,
    has_more: bool,
}

impl Failed {
    /// Quotes the failure if nothing like it has been quoted yet.
    fn quote(&mut self, label: &str, failure: &Failure) {
        let gist = gist(label, failure);
        if self.gists.contains(&gist) {
            return;
        }
        if self.examples.len() == MAX_EXAMPLES {
            self.has_more = true;
            return;
        }
        self.gists.push(gist);
        self.examples.push(Example {
            host: label.to_owned(),
            detail: failure.detail.clone(),
            remedy: failure.remedy.clone(),
        });
    }
}

/// What one host's failure may have in common with another's: without its name and without words with digits, which
/// are addresses, ports, fingerprints and times.
fn gist(label: &str, failure: &Failure) -> String {
    let is_label = |word: &str| word.trim_matches(|c: char| c.is_ascii_punctuation()) == label;
    let is_common =
        |word: &&str| !is_label(word) && !word.bytes().any(|byte| byte.is_ascii_digit());
    let words = failure.detail.split_whitespace().filter(is_common);
    let mut gist: String = words.flat_map(|word| [word, " "]).collect();
    gist.push_str(&failure.remedy);
    gist
}

impl Tally {
    pub(crate) fn add(&mut self, host: usize, label: &str, result: &HostResult) {
        let counts = &mut self.counts;
        let (kind, reason) = match &result.outcome {
            Outcome::Exit(0) => {
                counts.ok += 1;
                return;
            }
            Outcome::NotStarted => {
                counts.not_started += 1;
                self.not_started.push(host);
                return;
            }
            Outcome::Exit(status) => {
                counts.exited += 1;
                counts.largest_status = counts.largest_status.max(remote_status(*status));
                (FailureKind::Exit, Some(Reason::Status(*status)))
            }
            Outcome::Signal { name, .. } => {
                counts.signalled += 1;
                counts.largest_status = counts.largest_status.max(signal_status(name));
                (FailureKind::Signal, Some(Reason::Signal(name.clone())))
            }
            Outcome::Failed { failure, .. } => {
                counts.failed += 1;
                (failure.kind, None)
            }
        };
        let failed = self.failures.entry((kind, reason)).or_default();
        failed.hosts.push(host);
        if let Outcome::Failed { failure, .. } = &result.outcome {
            failed.quote(label, failure);
        }
    }

    /// The summary; its status is that of the run, as long as all of it can be shown.
    pub(crate) fn close(self, labels: &[String], end: RunEnd, policy: ExitPolicy) -> Summary {
        let names =
            |hosts: Vec<usize>| hosts.into_iter().map(|host| labels[host].clone()).collect();
        let group = |((kind, reason), failed): (_, Failed)| FailureGroup {
            kind,
            reason,
            hosts: names(failed.hosts),
            examples: failed.examples,
            has_more: failed.has_more,
        };
        Summary {
            counts: self.counts,
            failures: self.failures.into_iter().map(group).collect(),
            not_started: names(self.not_started),
            interrupted: end.cut_short.is_some_and(CutShort::is_interruption),
            is_cut_short: end.cut_short.is_some(),
            exit_status: exit_status(&self.counts, end.cut_short, policy),
            elapsed: end.elapsed,
        }
    }
}

impl Summary {
    /// How many hosts have ended.
    pub fn hosts(&self) -> usize {
        let Counts {
            ok,
            exited,
            signalled,
            failed,
            not_started,
            ..
        } = self.counts;
        ok + exited + signalled + failed + not_started
    }

    /// Whether the command returned 0 on every host.
    pub fn all_ok(&self) -> bool {
        self.counts.ok == self.hosts() && !self.interrupted
    }

    /// The summary for people: a line of counts, then a paragraph for each kind of failure.
    pub fn text(&self) -> String {
        let mut text = self.headline();
        for group in &self.failures {
            group.write(&mut text);
        }
        if !self.not_started.is_empty() {
            push_line(
                &mut text,
                format_args!("not started: {}", visible(&named(&self.not_started))),
            );
        }
        text
    }

    fn headline(&self) -> String {
        let Counts {
            ok,
            exited,
            signalled,
            failed,
            not_started,
            ..
        } = self.counts;
        let mut line = match self.hosts() {
            1 => format!("sshoal: {ok} of 1 host ok"),
            hosts => format!("sshoal: {ok} of {hosts} hosts ok"),
        };
        for (count, what) in [
            (exited + signalled + failed, "failed"),
            (not_started, "not started"),
        ] {
            if count > 0 {
                line.push_str(&format!(", {count} {what}"));
            }
        }
        if self.interrupted {
            line.push_str(", interrupted");
        }
        line.push_str(&format!(", in {:.1} s\n", self.elapsed.as_secs_f64()));
        line
    }
}

impl FailureGroup {
    fn write(&self, text: &mut String) {
        let kind = match &self.reason {
            None => self.kind.to_string(),
            Some(Reason::Status(status)) => format!("exit {status}"),
            Some(Reason::Signal(name)) => format!("signal {}", visible(name)),
        };
        push_line(
            text,
            format_args!("{kind}: {}", visible(&named(&self.hosts))),
        );
        let mut examples = self.examples.iter().peekable();
        while let Some(Example {
            host,
            detail,
            remedy,
        }) = examples.next()
        {
            let (host, detail) = (visible(host), visible(detail));
            push_line(text, format_args!("    {host}: {detail}"));
            if examples.peek().is_none_or(|next| next.remedy != *remedy) {
                push_line(text, format_args!("    to do: {}", visible(remedy)));
            }
        }
        if self.has_more {
            push_line(
                text,
                format_args!("    on others it was something else: -v or --json tells of each"),
            );
        }
    }
}

/// Folded names, and their number when there are several: `web[1-40,42] (41)`.
pub(crate) fn named(names: &[impl AsRef<str>]) -> String {
    match names {
        [name] => name.as_ref().to_owned(),
        _ => format!("{} ({})", fold(names), names.len()),
    }
}

fn push_line(text: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("writing to a String cannot fail");
}

#[cfg(test)]
mod tests;
