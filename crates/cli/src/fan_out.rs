//! What `run` and `each` share: bounds, the report, and the run itself down to its exit status.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sshoal_fleet::Deadlines;
use sshoal_journal::run::RunId;
use sshoal_net::{Input, Observer, RunPlan};
use sshoal_report::{
    BROKEN_PIPE, CutShort, ExitPolicy, Host, INTERRUPTED, Layout, Options, Reporter, Sink, Summary,
    Verbosity,
};
use sshoal_targets::{Target, labels};

use crate::args::{HostArgs, OutputArgs, PaceArgs};
use crate::hosts;
use crate::observer::{Reporting, cut_short};
use crate::say::say;
use crate::terminal;

/// There is nothing to run.
#[derive(Debug, thiserror::Error)]
#[error("{missing} given; type for example: {example}")]
pub(crate) struct NoCommand {
    missing: &'static str,
    example: &'static str,
}

impl NoCommand {
    pub(crate) fn new(hosts: &HostArgs, example: &'static str) -> Self {
        let missing = match hosts::are_named(hosts) {
            true => "no command was",
            false => "neither hosts nor a command were",
        };
        NoCommand { missing, example }
    }
}

/// How a run is shown.
pub(crate) struct Showing<'a> {
    pub(crate) output: &'a OutputArgs,
    /// Whether the command talks to our terminal.
    pub(crate) tty: bool,
    /// Whether output is shown as it is, without names: that of a single host, or a file.
    pub(crate) raw: bool,
    /// When the program was started.
    pub(crate) since: Instant,
    /// Whether it has succeeded if no more hosts fail than --max-failures lets.
    pub(crate) forgives: bool,
}

impl Showing<'_> {
    /// Carries out the plan, shows it, and returns the exit status.
    ///
    /// An error means that nothing was run. What goes wrong later is told, and makes the exit status.
    pub(crate) fn carry_out(
        &self,
        plan: RunPlan,
        hosts: Vec<Host>,
    ) -> Result<u8, Box<dyn std::error::Error>> {
        let moved = plan
            .transfer
            .as_ref()
            .map(|transfer| transfer.moved.clone());
        let options = Options {
            result_file: hosts::results_path(),
            run: plan
                .journal
                .as_ref()
                .map(|journal| journal.id().to_string()),
            ..self.options()
        };
        let reporter = Reporter::new(hosts, options, Sink::stdout()?, Sink::stderr()?)?;
        let journal = plan.journal.clone();
        let most = plan.rolling.as_ref().and_then(|it| it.rolling.max_failures);
        let observer = Reporting::new(reporter, self.since, moved);
        let performed = performed(plan, observer)?;
        let forgiven = most
            .filter(|_| self.forgives)
            .and_then(|most| Some((performed.forgivable(most)?, most)));
        let status = match forgiven {
            Some(_) => sshoal_report::OK,
            None => performed.status,
        };
        if let Some(journal) = journal {
            journal.note_status(status);
            if !self.output.quiet && journal.is_anything_left() {
                tell_how_to_go_on(performed.end, journal.id());
            }
        }
        if let Some((failed, most)) = forgiven
            && !self.output.quiet
        {
            let hosts = match failed {
                1 => "1 host has".to_owned(),
                hosts => format!("{hosts} hosts have"),
            };
            say(format!(
                "{hosts} failed, and --max-failures lets {most}: this step has succeeded"
            ));
        }
        Ok(status)
    }

    fn options(&self) -> Options {
        let layout = match self.output {
            _ if self.tty || self.raw => Layout::Raw,
            OutputArgs { json: true, .. } => Layout::Json,
            OutputArgs { gather: true, .. } => Layout::Gather,
            OutputArgs { diff: true, .. } => Layout::Diff,
            _ => Layout::Lines { prefix: true },
        };
        let verbosity = match (self.output.quiet, self.output.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, 0) => Verbosity::Normal,
            (false, _) => Verbosity::Verbose,
        };
        Options {
            layout,
            verbosity,
            outdir: self.output.outdir.clone(),
            exit_policy: self.exit_policy(),
            ..Options::default()
        }
    }

    fn exit_policy(&self) -> ExitPolicy {
        let is_largest = self.output.largest_status && !self.output.as_step;
        match is_largest || self.tty {
            true => ExitPolicy::LargestRemote,
            false => ExitPolicy::ByKind,
        }
    }
}

/// The report of a run that was carried out before: it is not the last run by being shown again.
/// `has_output` tells whether the hosts' output was kept.
pub(crate) fn reporter(
    output: &OutputArgs,
    hosts: Vec<Host>,
    has_output: bool,
) -> io::Result<Reporter> {
    let showing = Showing {
        output,
        tty: false,
        raw: false,
        since: Instant::now(),
        forgives: false,
    };
    let options = Options {
        progress: false,
        has_output,
        ..showing.options()
    };
    Reporter::new(hosts, options, Sink::stdout()?, Sink::stderr()?)
}

/// Carries out the plan and returns the exit status.
pub(crate) fn carried_out(
    plan: RunPlan,
    observer: impl Observer<Summary = Summary>,
) -> Result<u8, Box<dyn std::error::Error>> {
    performed(plan, observer).map(|performed| performed.status)
}

/// How a run came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// A signal cut it short.
    Interrupted,
    /// Nothing more was to be started.
    Halted,
    /// Every host has had its turn, or whoever read the output went away.
    Over,
}

/// Says how a run is gone on with that has hosts left, if it has not come to its end.
fn tell_how_to_go_on(end: End, run: RunId) {
    match end {
        End::Interrupted => say(format!("`sshoal resume {run}` goes on with this run")),
        End::Halted => say(format!(
            "`sshoal resume {run}` goes on with the hosts that were not started; --max-failures says how many may fail in all"
        )),
        End::Over => {}
    }
}

/// How a run has gone.
struct Performed {
    status: u8,
    end: End,
    /// Unless the user left before all was told.
    summary: Option<Summary>,
    is_halted: bool,
}

impl Performed {
    /// How many hosts have failed, if it is `most` of them and nothing else went wrong.
    fn forgivable(&self, most: u32) -> Option<usize> {
        let summary = self.summary.as_ref()?;
        let is_whole = !self.is_halted && !summary.is_cut_short && summary.counts.not_started == 0;
        let failed = summary.hosts() - summary.counts.ok;
        (is_whole && 0 < failed && failed <= most as usize).then_some(failed)
    }
}

/// The same, and how it went.
fn performed(
    plan: RunPlan,
    observer: impl Observer<Summary = Summary>,
) -> Result<Performed, Box<dyn std::error::Error>> {
    let ended = sshoal_net::run(plan, observer)?;
    let interruption = ended.interruption;
    let (status, end) = match &ended.summary {
        Some(summary) => {
            let end = match summary.counts.not_started {
                _ if cut_short(interruption).is_some() => End::Interrupted,
                0 => End::Over,
                _ if summary.exit_status == BROKEN_PIPE => End::Over,
                _ => End::Halted,
            };
            (summary.exit_status, end)
        }
        None => {
            // Whoever holds the terminal sits in a write that does not end.
            terminal::take_back();
            let status = cut_short(interruption).map_or(INTERRUPTED, CutShort::exit_status);
            (status, End::Interrupted)
        }
    };
    Ok(Performed {
        status,
        end,
        summary: ended.summary,
        is_halted: ended.is_halted,
    })
}

/// The report's hosts, of which only the targets and their labels are known yet.
pub(crate) fn hosts(targets: &[Target]) -> Vec<Host> {
    let labelled = targets.iter().zip(labels(targets));
    labelled
        .map(|(target, label)| Host {
            label,
            target: target.clone(),
            user: None,
            port: None,
            way: None,
        })
        .collect()
}

/// `--stdin`.
pub(crate) fn input(path: &Path, hosts: usize) -> Result<Input, String> {
    Input::open(path, hosts).map_err(|error| {
        format!(
            "cannot read standard input from {}: {error}",
            path.display()
        )
    })
}

/// Deadlines as far as all kinds of run have them.
pub(crate) fn deadlines(pace: &PaceArgs) -> Deadlines {
    Deadlines {
        command: pace.command_timeout.filter(|time| !time.is_zero()),
        ..Deadlines::default()
    }
}

pub(crate) fn start_interval(pace: &PaceArgs) -> Duration {
    Duration::from_millis(pace.delay)
}

/// Differs from run to run; only back-off jitter hangs on it.
pub(crate) fn seed() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos() as u64)
}
