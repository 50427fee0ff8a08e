//! `sshoal attach RUN`: what the commands of a detached run have written, and how they are.

use std::time::Duration;

use clap::Args;
use sshoal_journal::run::{Left, RunId};
use sshoal_net::{find_run, read_run};

use super::Task;
use crate::args::{Command, EXIT_STATUS, OutputArgs, seconds};
use crate::kill::GRACE;
use crate::rolling::RollingArgs;
use crate::run;
use crate::runs::{Further, Journal, Sitting, arguments, doubt};
use crate::say::say;

/// How long a lost host is tried again while its command is followed.
const PATIENCE: Duration = Duration::from_secs(600);

/// `sshoal attach`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS)]
pub(crate) struct AttachArgs {
    /// The run: its identifier, the beginning of it, or "last".
    #[arg(value_name = "RUN")]
    run: String,
    /// Say how the commands are, and do nothing else: running, ended with which status, or lost.
    #[arg(long, conflicts_with_all = ["kill", "remove"])]
    status: bool,
    /// End the commands with all that they have started, and say whether they are gone.
    #[arg(long, conflicts_with = "remove")]
    kill: bool,
    /// Seconds from SIGTERM to SIGKILL for commands that --kill ends; 5 if not given.
    #[arg(long, value_name = "SECONDS", requires = "kill", value_parser = seconds, allow_negative_numbers = true)]
    kill_grace: Option<Duration>,
    /// Remove what the hosts keep of commands that have ended.
    #[arg(long)]
    remove: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Why there is nothing to attach to.
#[derive(Debug, thiserror::Error)]
enum AttachError {
    #[error(
        "run {0} was begun without --detach and without --survive: its commands have ended with their connections"
    )]
    NotDetached(RunId),
    #[error(
        "run {0} is being carried out, and more of its commands may begin: wait for its end, or interrupt it; `sshoal runs` lists it"
    )]
    IsOn(RunId),
    #[error("run {0} has begun no command")]
    NothingBegun(RunId),
    #[error("the command line of run {run} is not understood: {why}")]
    NotUnderstood { run: RunId, why: String },
}

impl AttachArgs {
    fn task(&self) -> Task {
        match self {
            AttachArgs { status: true, .. } => Task::Status,
            AttachArgs { remove: true, .. } => Task::Remove,
            AttachArgs { kill: true, .. } => {
                let grace = self.kill_grace.unwrap_or(GRACE);
                Task::Kill(grace.as_secs() + u64::from(grace.subsec_nanos() > 0))
            }
            _ => Task::Follow,
        }
    }
}

/// Does what is wanted on all hosts of the run whose command may have begun; returns the exit status.
pub(crate) fn attach(args: &AttachArgs) -> Result<u8, Box<dyn std::error::Error>> {
    let id = find_run(&args.run)?;
    let mut known = read_run(id, |_| {})?;
    if !known.state.is_planned {
        return Err(AttachError::NothingBegun(id).into());
    }
    // Commands that have begun may look as if they had not.
    known.undamaged()?;
    let cli = crate::parsed(&arguments(&known.state), false);
    let cli = cli.map_err(|error| AttachError::NotUnderstood {
        run: id,
        why: error.to_string(),
    })?;
    let Command::Run(mut begun) = cli.command else {
        return Err(AttachError::NotDetached(id).into());
    };
    if begun.detach.detached().is_none() {
        return Err(AttachError::NotDetached(id).into());
    }
    let task = args.task();
    if known.is_on && matches!(task, Task::Kill(_) | Task::Remove) {
        return Err(AttachError::IsOn(id).into());
    }
    let lacks_records = known.may_lack_records() && known.state.count(Left::ToRun) > 0;
    if lacks_records {
        say(doubt(&known));
    }
    let states = known.state.states.iter().enumerate();
    let may_run = states.filter(|(_, state)| {
        state.may_have_run() || (lacks_records && state.left() == Left::ToRun)
    });
    let hosts: Vec<u32> = may_run.map(|(host, _)| host as u32).collect();
    if hosts.is_empty() {
        return Err(AttachError::NothingBegun(id).into());
    }
    begun.detach.task = Some(task);
    begun.detach.survive = task.is_followed().then_some(PATIENCE);
    begun.output = args.output.clone();
    // All at once, and no run of its own.
    begun.rolling = RollingArgs::default();
    known.state.plan.canaries = 0;
    (begun.journal.journal, begun.journal.record) = (Journal::Off, false);
    let further = Further { run: known, hosts };
    run::run(&begun, &Sitting::Further(&further))
}
