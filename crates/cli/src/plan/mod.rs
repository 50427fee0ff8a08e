//! `sshoal plan`: named steps in their order, each a `run`, `each`, `put` or `get` of its own process.

mod args;
mod commands;
mod explain;
mod output;
mod performance;
mod sudo;
mod summary;

use std::fmt::Display;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use sshoal_plan::{MAX_PLAN, Plan, Step};

use crate::manual;

pub(crate) use args::PlanArgs;
use args::{CheckPlanArgs, PlanCommand};
pub(crate) use sudo::answer;

/// Does what was asked; returns the exit status.
pub(crate) fn run(args: &PlanArgs) -> Result<u8, Box<dyn std::error::Error>> {
    match &args.command {
        PlanCommand::Run(args) => performance::run(args),
        PlanCommand::Explain(args) => explain::run(args),
        PlanCommand::Check(args) => check(args),
    }
}

fn check(args: &CheckPlanArgs) -> Result<u8, Box<dyn std::error::Error>> {
    let PlanFile { path, plan } = PlanFile::read(&args.file)?;
    let commands = commands::of_all(&path, &plan)?;
    let steps = match commands.len() {
        1 => "1 step".to_owned(),
        steps => format!("{steps} steps"),
    };
    let text = format!("{}: {steps}, nothing is wrong\n", path.display());
    Ok(manual::print(text.as_bytes()))
}

/// The names of a plan's steps, for who completes one: `~` is as it was typed. `None` if that is no plan.
pub(crate) fn step_names(path: &Path) -> Option<Vec<String>> {
    let home = path.strip_prefix("~").ok();
    let home = home.and_then(|rest| Some(Path::new(&std::env::var_os("HOME")?).join(rest)));
    let path = home.as_deref().unwrap_or(path);
    // A pipe would be waited for.
    let is_file = path.metadata().is_ok_and(|found| found.is_file());
    let plan = is_file.then(|| PlanFile::parse(path).ok()).flatten()?;
    let steps = plan.steps().iter();
    Some(steps.map(|step| step.name.clone()).collect())
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlanFileError {
    #[error("cannot read the plan {}: {error}", path.display())]
    Unreadable {
        path: PathBuf,
        error: std::io::Error,
    },
    #[error("cannot read the plan {}: it is no text in UTF-8", .0.display())]
    NoText(PathBuf),
    #[error("{}: {what}", path.display())]
    Chosen { path: PathBuf, what: String },
    /// `deploy.toml:12: step upgrade: sshoal run has no flag --foo`
    #[error("{}:{line}: {what}", path.display())]
    Wrong {
        path: PathBuf,
        line: usize,
        what: String,
    },
}

impl PlanFileError {
    fn of_step(path: &Path, step: &Step, line: usize, what: impl Display) -> Self {
        PlanFileError::Wrong {
            path: path.to_owned(),
            line,
            what: format!("step {}: {what}", step.name),
        }
    }
}

/// A plan, and where it is from.
struct PlanFile {
    /// As it was typed.
    path: PathBuf,
    plan: Plan,
}

impl PlanFile {
    /// Reads it, and goes to the folder that it is in: paths in a plan are relative to that.
    fn read(path: &Path) -> Result<PlanFile, PlanFileError> {
        let plan = PlanFile::parse(path)?;
        if let Some(folder) = path.parent().filter(|it| !it.as_os_str().is_empty()) {
            std::env::set_current_dir(folder).map_err(|error| PlanFileError::Unreadable {
                path: path.to_owned(),
                error,
            })?;
        }
        Ok(PlanFile {
            path: path.to_owned(),
            plan,
        })
    }

    fn parse(path: &Path) -> Result<Plan, PlanFileError> {
        let unreadable = |error| PlanFileError::Unreadable {
            path: path.to_owned(),
            error,
        };
        let mut octets = Vec::new();
        let file = File::open(path).map_err(unreadable)?;
        // One more than a plan may have is too large already.
        let mut file = file.take(MAX_PLAN as u64 + 1);
        file.read_to_end(&mut octets).map_err(unreadable)?;
        let text = String::from_utf8(octets).map_err(|_| PlanFileError::NoText(path.to_owned()))?;
        Plan::parse(&text).map_err(|error| PlanFileError::Wrong {
            path: path.to_owned(),
            line: error.line,
            what: error.to_string(),
        })
    }
}
