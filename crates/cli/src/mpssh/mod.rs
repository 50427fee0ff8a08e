//! `mpssh`: the program for which sshoal was begun, with its flags, its host file and its output, on sshoal's engine.
//!
//! What it prints is what mpssh.py 1.2 prints, octet for octet: `header` before and behind the hosts' lines, `lines` for
//! each of them, `bursts` for how a host's output is taken apart, `ssh_words` for hosts that were not reached. docs/mpssh.md
//! says what is different.

mod args;
mod bursts;
mod header;
mod hosts;
mod job;
mod lines;
mod observer;
mod ssh_flags;
mod ssh_program;
mod ssh_words;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Instant;

use clap::{CommandFactory, Parser};
use sshoal_net::local_user;
use sshoal_report::USAGE;

use crate::manual;
use crate::say::say;
use crate::script::{self, ScriptError};
use args::Mpssh;
use job::Job;
use ssh_flags::SshFlags;

pub(crate) use args::MpsshArgs;

/// The name under which the program is this one.
pub(crate) const NAME: &str = "mpssh";
/// The run was interrupted, or could not begin.
pub(crate) const FAILED: u8 = 1;

/// The arguments as `sshoal mpssh` takes them, if the program was called as mpssh or mpssh.py.
pub(crate) fn as_command(arguments: &[OsString]) -> Option<Vec<OsString>> {
    let (program, rest) = arguments.split_first()?;
    let is_mpssh = Path::new(program).file_stem() == Some(OsStr::new(NAME));
    is_mpssh.then(|| {
        let command = [program.clone(), OsString::from(NAME)];
        command.into_iter().chain(rest.iter().cloned()).collect()
    })
}

/// The same arguments as those of a program of its own: its errors and its help call it by its name.
pub(crate) fn parsed_alone(arguments: &[OsString]) -> Result<MpsshArgs, clap::Error> {
    Mpssh::try_parse_from(&arguments[1..]).map(|mpssh| mpssh.args)
}

/// The program of its own, for its manual page and completions.
pub(crate) fn program() -> clap::Command {
    Mpssh::command().version(env!("CARGO_PKG_VERSION"))
}

/// Runs the command; returns the exit status.
pub(crate) fn run(args: &MpsshArgs) -> Result<u8, Box<dyn std::error::Error>> {
    let since = Instant::now();
    if args.version {
        let (theirs, ours) = (header::VERSION, env!("CARGO_PKG_VERSION"));
        let text = format!("MPSSH.py {theirs}\nsshoal {ours}\n");
        return Ok(manual::print(text.as_bytes()));
    }
    let Some(file) = &args.file else {
        return Ok(unusable("no host file was given"));
    };
    if args.command.is_none() && args.c.script.is_none() {
        return Ok(unusable("no command was given"));
    }
    let job = Job {
        args,
        user: args.user.clone().unwrap_or_else(local_user),
        flags: SshFlags::parse(&args.flags_of_ssh())?,
        command: command(args)?,
        hosts: hosts::read(file, args.c.label.as_deref())?,
    };
    let program = match (&args.sshbin, job.flags.foreign) {
        (Some(program), _) => Some(program.clone()),
        (None, Some(_)) => Some(ssh_program::installed()),
        (None, None) => None,
    };
    match program {
        None => job.run_natively(since),
        Some(program) => job.run_by(&program, since),
    }
}

/// Says what the arguments lack; returns the exit status.
fn unusable(why: &str) -> u8 {
    say(format!(
        "{why}; type for example: mpssh -f hosts.txt uptime"
    ));
    USAGE
}

/// What the hosts' shells get.
fn command(args: &MpsshArgs) -> Result<Vec<u8>, ScriptError> {
    let line = match (&args.c.script, &args.command) {
        (Some(path), _) => script::with_interpreter(path)?,
        (None, command) => command.as_deref().unwrap_or_default().as_bytes().to_vec(),
    };
    match line.len() > script::MAX_LINE {
        true => Err(ScriptError::TooLong),
        false => Ok(line),
    }
}
