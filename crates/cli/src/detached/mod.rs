//! Commands that outlive their connection: `run --detach`, `run --survive`, `sshoal attach`.
//!
//! All of them send the same script (`detached.sh`) on standard input to a POSIX shell of the host's, with a task. That shell's own output and
//! status are the command's, so that a run of them is a run like any other.

mod attach;

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;
use sshoal_net::{HostPlan, KILL_SCRIPT};
use sshoal_proto::Command::Exec;

use crate::args::some_seconds;
use crate::fan_out;
use crate::script::quoted;

pub(crate) use attach::{AttachArgs, attach};

/// So many octets of output and of errors have come when the line is sent first.
const START: &[u8] = b"first 0 0";
const SCRIPT: &str = include_str!("detached.sh");
/// How long a lost host is tried again, unless the user says otherwise.
const SURVIVE: &str = "600";

/// What outlives a connection.
#[derive(Debug, Args)]
#[command(next_help_heading = "If the connection ends")]
pub(crate) struct DetachArgs {
    /// Begin the command and leave: it goes on without a connection, and has no standard input. sshoal attach collects what it
    /// writes.
    #[arg(long, conflicts_with_all = ["stdin", "tty", "survive"])]
    pub(crate) detach: bool,
    /// Have the command outlive a lost connection, and go on with its output where it was: a host is tried again for so many
    /// seconds after each loss, 600 if no number is given. It has no standard input.
    #[arg(
        long,
        value_name = "SECONDS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = SURVIVE,
        value_parser = some_seconds,
        conflicts_with_all = ["stdin", "tty"]
    )]
    pub(crate) survive: Option<Duration>,
    /// What the hosts call the run, in the journal of one that was begun.
    #[arg(long, hide = true, value_name = "NAME", value_parser = name, default_value_t = new_name())]
    pub(crate) detached_as: String,
    /// What is done about a run that was detached, in place of beginning one.
    #[arg(skip)]
    pub(crate) task: Option<Task>,
}

/// What the script does on a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Task {
    /// Begins the command, unless that was done.
    Begin,
    /// The same, then as `Follow`.
    Survive,
    /// Writes what the command has written, until its end; its status is the command's.
    Follow,
    Status,
    /// Ends the command, and looks whether it is gone; seconds from SIGTERM to SIGKILL.
    Kill(u64),
    /// Takes the folder away.
    Remove,
}

/// A run that outlives its connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Detached {
    /// What the hosts call it.
    pub(crate) name: String,
    pub(crate) task: Task,
}

impl DetachArgs {
    /// `None` if the command ends with its connection.
    pub(crate) fn detached(&self) -> Option<Detached> {
        let task = match (self.task, self.detach, self.survive) {
            (Some(task), ..) => task,
            (None, true, _) => Task::Begin,
            (None, false, Some(_)) => Task::Survive,
            (None, false, None) => return None,
        };
        Some(Detached {
            name: self.detached_as.clone(),
            task,
        })
    }

    /// The command line as it goes into the journal: with the name that the hosts know the run by, so that going on with it begins
    /// nothing a second time there.
    pub(crate) fn noted(&self, arguments: &[OsString]) -> Vec<OsString> {
        let mut noted = arguments.to_vec();
        let behind = noted.len().min(2);
        if self.detached().is_some() {
            noted.insert(behind, format!("--detached-as={}", self.detached_as).into());
        }
        noted
    }
}

impl Task {
    /// Whether output is written from where it was, so that a lost connection is no end.
    pub(crate) fn is_followed(self) -> bool {
        matches!(self, Task::Survive | Task::Follow)
    }
}

impl Detached {
    pub(crate) fn name(&self) -> String {
        self.name.clone()
    }

    /// The command line for a host, but for which one it is.
    pub(crate) fn line(&self, command: &[u8]) -> Vec<u8> {
        let begins = matches!(self.task, Task::Begin | Task::Survive);
        let command = begins.then(|| [b" ".to_vec(), quoted(command)].concat());
        [
            self.line_before(),
            START.to_vec(),
            command.unwrap_or_default(),
        ]
        .concat()
    }

    fn line_before(&self) -> Vec<u8> {
        format!("exec /bin/sh -s {} ", self.name).into_bytes()
    }

    /// Makes a plan that has the line the plan for a host, by its number in the run: several may be one machine.
    pub(crate) fn number(&self, plan: &mut HostPlan, number: u32) {
        let before = self.line_before();
        // What comes by ssh is shown as it comes.
        let announces = match plan {
            HostPlan::Native(_) => "told",
            HostPlan::OpenSsh(_) => "mute",
        };
        let line = match plan {
            HostPlan::Native(plan) => match &mut plan.request.command {
                Exec(line) => line,
                _ => return,
            },
            HostPlan::OpenSsh(plan) => &mut plan.line.command,
        };
        let whole = [&before, START].concat();
        let Some(at) = line.windows(whole.len()).position(|part| part == whole) else {
            return;
        };
        let at = at + before.len();
        let words = format!("{number} {announces} ");
        line.splice(at..at, words.bytes());
        if let HostPlan::Native(plan) = plan {
            // The line does not have it as it stands: something that repeats the line is not the script.
            plan.announcement = Some(format!("sshoal-{}-{number};", self.name).into_bytes());
            if self.task.is_followed() {
                plan.outlives(&[before, words.into_bytes()].concat());
            }
        }
    }

    /// What the line reads from standard input.
    pub(crate) fn script(&self) -> Vec<u8> {
        let task = match self.task {
            Task::Begin => "begin",
            Task::Survive => "survive",
            Task::Follow => "follow",
            Task::Status => "status",
            Task::Kill(_) => "kill",
            Task::Remove => "remove",
        };
        let mut script = format!("task={task}\n{SCRIPT}");
        if let Task::Kill(grace) = self.task {
            // Those of this host's number alone.
            let settings = format!("run=$run.$number. grace={grace} told= sudo= password= mark=\n");
            script.extend([settings.as_str(), KILL_SCRIPT]);
        }
        script.into_bytes()
    }
}

/// A name that no other run has: of two that began in the same nanosecond one is another process.
fn new_name() -> String {
    format!("{:x}{:x}", fan_out::seed(), std::process::id())
}

/// What a shell takes as it is.
fn name(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric();
    match !text.is_empty() && text.chars().all(is_plain) {
        true => Ok(text.to_owned()),
        false => Err("it must be letters and digits".to_owned()),
    }
}
