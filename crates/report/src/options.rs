//! What a report is to be.

use std::path::PathBuf;

use crate::ExitPolicy;

/// In which form the hosts' output appears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Lines as they come, `host: line`.
    Lines {
        /// Whether the host's name stands before each line.
        prefix: bool,
    },
    /// `-b`: at the end, equal output once under folded names.
    Gather,
    /// `--diff`: at the end, what differs from the most common output.
    Diff,
    /// `--json`: an object for each host as it ends, its output inside.
    Json,
    /// Bytes as they come, without names or sanitising: for `-t` on one host, whose user talks to a program
    /// there as with ssh.
    Raw,
    /// In the caller's own form, by [`Reporter::print`](crate::Reporter::print), and in `--outdir`. A summary is for a
    /// terminal, if anything failed.
    Own,
}

/// How much we say ourselves, on standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// Nothing but what the user must do at once: neither progress nor summary.
    Quiet,
    /// Progress on a terminal, and a summary if anything failed or someone watches.
    Normal,
    /// Also what servers say before a login, a line for each host as it ends, and always a summary.
    Verbose,
}

/// What a report is to be.
#[derive(Debug, Clone)]
pub struct Options {
    /// The form of the hosts' output.
    pub layout: Layout,
    /// What we say ourselves.
    pub verbosity: Verbosity,
    /// Whether a terminal shows a status line.
    pub progress: bool,
    /// Whether the hosts' output is handed over at all: without it `--json` has no members for it.
    pub has_output: bool,
    /// `--outdir`: a directory for each host's output, beside what `layout` shows.
    pub outdir: Option<PathBuf>,
    /// Where the results are kept (see [`crate::last_run_path`]).
    pub result_file: Option<PathBuf>,
    /// The run's identifier, by which [`crate::read_last_run`] finds its journal.
    pub run: Option<String>,
    /// Where output that is too much for memory goes, in a file without a name.
    pub spill_dir: PathBuf,
    /// What the exit status tells.
    pub exit_policy: ExitPolicy,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            layout: Layout::Lines { prefix: true },
            verbosity: Verbosity::Normal,
            progress: true,
            has_output: true,
            outdir: None,
            result_file: None,
            run: None,
            spill_dir: std::env::temp_dir(),
            exit_policy: ExitPolicy::default(),
        }
    }
}
