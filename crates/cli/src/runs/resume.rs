//! `sshoal resume RUN`: a run is gone on with, on the hosts whose command is known not to have run, and where the user says so on
//! those where it may have.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use sshoal_fleet::HostId;
use sshoal_journal::run::{Left, RunId, RunState};
use sshoal_net::{KnownRun, find_run, read_run, result_of};
use sshoal_report::HOST_FAILED;
use sshoal_targets::fold;

use super::args::{MaybeRan, ResumeArgs};
use super::sitting::{self, Further, Sitting};
use super::{Reads, doubt};
use crate::args::Command;
use crate::prompt;
use crate::say::say;
use crate::{each, run};

/// Why a run cannot be gone on with.
#[derive(Debug, thiserror::Error)]
enum ResumeError {
    #[error("run {0} is on: another sshoal carries it out")]
    IsOn(RunId),
    #[error("the plan of run {0} was not noted whole: nothing was begun, so begin anew")]
    NoPlan(RunId),
    #[error("run {run} began in {}, which cannot be gone to: {error}", folder.display())]
    NoFolder {
        run: RunId,
        folder: PathBuf,
        error: std::io::Error,
    },
    #[error("the command line of run {run} is not understood: {why}")]
    NotUnderstood { run: RunId, why: String },
}

/// Goes on with the run; returns the exit status.
pub(crate) fn run(args: &ResumeArgs) -> Result<u8, Box<dyn std::error::Error>> {
    let id = find_run(&args.run)?;
    let known = read_run(id, |_| {})?;
    if known.is_on {
        return Err(ResumeError::IsOn(id).into());
    }
    if !known.state.is_planned {
        return Err(ResumeError::NoPlan(id).into());
    }
    known.undamaged()?;
    let mut maybe_ran = hosts(&known.state, Left::MaybeRan);
    let mut hosts = hosts(&known.state, Left::ToRun);
    if known.may_lack_records() && !hosts.is_empty() {
        say(doubt(&known));
        maybe_ran.append(&mut hosts);
        maybe_ran.sort_unstable();
    }
    let is_rerun = !maybe_ran.is_empty() && is_rerun(args, &known.state, &maybe_ran);
    if is_rerun {
        hosts.extend(&maybe_ran);
        hosts.sort_unstable();
    }
    let status = match hosts.is_empty() {
        true => {
            say(format!("nothing is left to be done in run {id}"));
            if let Some(failed) = failed(id, &known.state) {
                say(failed);
            }
            0
        }
        false => go_on(args, known, hosts)?,
    };
    Ok(match maybe_ran.is_empty() || is_rerun {
        true => status,
        false => status.max(HOST_FAILED),
    })
}

/// The hosts that have come to an end of their own, and not to a good one, and what is for them; `None` if there are none.
fn failed(id: RunId, state: &RunState) -> Option<String> {
    let (mut names, mut kinds) = (Vec::new(), BTreeSet::new());
    for (number, host) in state.states.iter().enumerate() {
        let outcome = result_of(HostId(number as u32), host).outcome;
        if let (Left::Nothing, Some(kind)) = (host.left(), outcome.failure_kind()) {
            names.push(&state.hosts[number].label);
            kinds.insert(kind.name());
        }
    }
    let hosts = match names.len() {
        0 => return None,
        1 => "1 host has".to_owned(),
        hosts => format!("{hosts} hosts have"),
    };
    let kinds: Vec<&str> = kinds.into_iter().collect();
    Some(format!(
        "{hosts} ended without success: {}; `--retry-failed {} --of {id}` begins anew there",
        fold(names),
        kinds.join(",")
    ))
}

fn go_on(
    resume: &ResumeArgs,
    run: KnownRun,
    hosts: Vec<u32>,
) -> Result<u8, Box<dyn std::error::Error>> {
    let id = run.id;
    let folder = PathBuf::from(OsString::from_vec(run.state.plan.folder.clone()));
    std::env::set_current_dir(&folder).map_err(|error| ResumeError::NoFolder {
        run: id,
        folder,
        error,
    })?;
    Reads::check(&run.state)?;
    let arguments = sitting::arguments(&run.state);
    let not_understood = |why: String| ResumeError::NotUnderstood { run: id, why };
    let cli = crate::parsed(&arguments, false);
    let mut cli = cli.map_err(|error| not_understood(error.to_string()))?;
    if let Some(share) = resume.max_failures {
        match &mut cli.command {
            Command::Run(args) => args.rolling.allow_failures(share),
            Command::Each(args) => args.rolling.allow_failures(share),
            _ => {}
        }
    }
    let further = Further { run, hosts };
    let sitting = Sitting::Further(&further);
    match &cli.command {
        Command::Run(args) => run::run(args, &sitting),
        Command::Each(args) => each::run(args, &sitting),
        _ => Err(not_understood("it is no run".to_owned()).into()),
    }
}

/// The hosts that are left so.
fn hosts(state: &RunState, left: Left) -> Vec<u32> {
    let states = state.states.iter().enumerate();
    let hosts = states.filter(|(_, state)| state.left() == left);
    hosts.map(|(host, _)| host as u32).collect()
}

/// Whether the command is run again where it may have run. Without an answer it is not.
fn is_rerun(args: &ResumeArgs, state: &RunState, hosts: &[u32]) -> bool {
    let names = hosts.iter().map(|host| &state.hosts[*host as usize].label);
    let names = fold(names);
    let of_hosts = match hosts.len() {
        1 => "on 1 host".to_owned(),
        hosts => format!("on {hosts} hosts"),
    };
    let known = format!("the command may have run {of_hosts}, and its end is not known: {names}");
    let is_rerun = match args.maybe_ran {
        Some(what) => what == MaybeRan::Rerun,
        None => prompt::is_agreed(&format!("sshoal: {known}\nRun it there again")),
    };
    match is_rerun {
        true => say(format!("{known}; it is run again there")),
        false => say(format!(
            "{known}; it is not run again there (--maybe-ran rerun does)"
        )),
    }
    is_rerun
}
