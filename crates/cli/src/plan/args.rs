//! The arguments of `sshoal plan`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use crate::args::at_least_one;

/// What `run` ends with.
const EXIT_STATUS: &str = "Exit status: 0 all steps succeeded; otherwise that of the step that ended worst; 2 the plan is wrong, and \
    nothing was run; 130 interrupted. See docs/plan.md.";

/// `sshoal plan`.
#[derive(Debug, Args)]
#[command(disable_help_subcommand = true)]
pub(crate) struct PlanArgs {
    #[command(subcommand)]
    pub(crate) command: PlanCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PlanCommand {
    /// Run the steps of a plan, each when those that it comes after have succeeded.
    Run(RunPlanArgs),
    /// Show what each step does, what it waits for and what waits for it.
    Explain(ExplainPlanArgs),
    /// Look whether a plan could be run, and do nothing.
    Check(CheckPlanArgs),
}

/// `sshoal plan run`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS)]
pub(crate) struct RunPlanArgs {
    /// The plan.
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// These steps alone, comma separated.
    #[arg(long, value_name = "STEP", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// This step and all that comes after it; several are separated by commas.
    #[arg(long, value_name = "STEP", value_delimiter = ',')]
    pub(crate) from: Vec<String>,
    /// Steps that may run at the same time, if none of them waits for another; 1 if not given.
    #[arg(long, value_name = "N", value_parser = at_least_one, default_value_t = 1, hide_default_value = true, allow_negative_numbers = true)]
    pub(crate) steps_at_once: u32,
    /// Show what each step would do, and do nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// The JSON objects of each step with its name in them, and one of the plan at the end (docs/json.md).
    #[arg(long)]
    pub(crate) json: bool,
    /// Only the hosts' output: no progress, no summary. The exit status tells of failures.
    #[arg(short = 'q', long)]
    pub(crate) quiet: bool,
}

/// `sshoal plan explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainPlanArgs {
    /// The plan.
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// The steps to explain; all if none is named.
    pub(crate) steps: Vec<String>,
    /// One JSON object a line for each step (docs/json.md).
    #[arg(long)]
    pub(crate) json: bool,
}

/// `sshoal plan check`.
#[derive(Debug, Args)]
pub(crate) struct CheckPlanArgs {
    /// The plan.
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
}
