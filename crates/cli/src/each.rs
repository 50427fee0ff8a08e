//! `sshoal each`: a command on this machine for each host.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::fs::{Access, access};
use sshoal_fleet::{Limits, RetryPolicy};
use sshoal_net::{LocalCommand, Place, Preparation, RunPlan, SshOptions, Work, processes_allowed};
use sshoal_report::Host;

use crate::args::{ConfigArgs, EachArgs, PaceArgs};
use crate::dry_run::{self, DryRun};
use crate::fan_out::{self, NoCommand, Showing};
use crate::rolling::Batched;
use crate::runs::{Reads, Sitting};
use crate::script::quoted;
use crate::template::Template;

/// Commands at a time, unless `-p` says otherwise: each is a process of this machine, unlike a session on a host. The
/// same goes for a ProxyCommand.
pub(crate) const PROCESSES: u32 = 64;

/// What to type.
const EXAMPLE: &str = "sshoal each -w 'bmc[1-40]' ipmitool -H %h power status";

/// A command that cannot be started.
#[derive(Debug, thiserror::Error)]
#[error("no executable program {} was found; sshoal each runs its command on this machine, and finds it in PATH or by its path", .0.display())]
struct NoProgram(PathBuf);

/// Runs the commands; returns the exit status.
pub(crate) fn run(
    args: &EachArgs,
    sitting: &Sitting<'_>,
) -> Result<u8, Box<dyn std::error::Error>> {
    let since = Instant::now();
    if args.command.is_empty() {
        return Err(NoCommand::new(&args.hosts, EXAMPLE).into());
    }
    let Batched {
        targets,
        plan: rolling,
    } = sitting.batched(&args.hosts, &args.rolling)?;
    let mut preparation = Preparation::new(&ssh_options(&args.config))?;
    let words: Vec<Template> = args
        .command
        .iter()
        .map(|word| Template::parse(word.as_bytes()))
        .collect();
    let mut hosts = fan_out::hosts(&targets);
    let places = preparation.places(&targets, |place| {
        let at = (Some(place.user.to_owned()), Some(place.port));
        (at, command(&words, place))
    })?;
    let mut commands = Vec::with_capacity(targets.len());
    for (host, (at, command)) in hosts.iter_mut().zip(places) {
        (host.user, host.port) = at;
        commands.push(command);
    }
    sitting.name(&mut hosts);
    if args.dry_run {
        let lines = hosts.iter().zip(&commands);
        let lines = lines.map(|(host, command)| line(host, command));
        return Ok(dry_run::print(args.output.json, rolling.as_ref(), lines));
    }
    find_programs(&commands)?;
    let input = args
        .stdin
        .as_deref()
        .map(|path| fan_out::input(path, commands.len()))
        .transpose()?;
    let canaries = rolling.as_ref().map_or(0, |plan| plan.rolling.canaries);
    let reads = || Reads::of(args.stdin.as_deref(), None);
    let kept = (&args.journal, args.output.quiet);
    let journal = sitting.journal("each", kept, (&hosts, canaries, false), reads)?;
    let plan = RunPlan {
        work: Work::Local(commands),
        jumps: Vec::new(),
        limits: limits(&args.pace),
        deadlines: fan_out::deadlines(&args.pace),
        retry: RetryPolicy::default(),
        password: None,
        seed: fan_out::seed(),
        input,
        asks: false,
        server_cache: None,
        ssh: Default::default(),
        workers: 1,
        transfer: None,
        kill: None,
        trial: None,
        timing: None,
        rolling,
        keeper: None,
        journal,
        warm: None,
    };
    let showing = Showing {
        output: &args.output,
        tty: false,
        raw: false,
        since,
        forgives: args.rolling.forgives(),
    };
    showing.carry_out(plan, hosts)
}

fn ssh_options(config: &ConfigArgs) -> SshOptions {
    SshOptions {
        config_file: config.config.clone(),
        options: config.options(),
        user: config.user.clone(),
        tag: config.tag.clone(),
        ..SshOptions::default()
    }
}

fn command(words: &[Template], place: &Place<'_>) -> LocalCommand {
    let mut words = words
        .iter()
        .map(|word| OsString::from_vec(word.fill(place)));
    LocalCommand {
        program: words.next().unwrap_or_default(),
        arguments: words.collect(),
        variables: Vec::new(),
    }
}

/// What `--dry-run` says: a line for a shell.
fn line<'a>(host: &'a Host, command: &LocalCommand) -> DryRun<'a> {
    let words = std::iter::once(&command.program).chain(&command.arguments);
    let words: Vec<Vec<u8>> = words.map(|word| quoted(word.as_bytes())).collect();
    DryRun {
        host,
        name: None,
        place: String::new(),
        what: words.join(&b' '),
    }
}

/// Looks for each program once, so that a misspelt name ends the run before it has begun.
fn find_programs(commands: &[LocalCommand]) -> Result<(), NoProgram> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let programs: BTreeSet<&OsString> = commands.iter().map(|command| &command.program).collect();
    match programs
        .into_iter()
        .find(|program| !is_found(program, &path))
    {
        Some(program) => Err(NoProgram(PathBuf::from(program))),
        None => Ok(()),
    }
}

fn is_found(program: &OsStr, path: &OsStr) -> bool {
    let is_executable = |file: &Path| file.is_file() && access(file, Access::EXEC_OK).is_ok();
    match program.as_bytes().contains(&b'/') {
        true => is_executable(Path::new(program)),
        false => std::env::split_paths(path).any(|folder| is_executable(&folder.join(program))),
    }
}

fn limits(pace: &PaceArgs) -> Limits {
    let processes = processes_allowed(pace.parallel.unwrap_or(PROCESSES));
    Limits {
        sessions: processes,
        connects: processes,
        start_interval: fan_out::start_interval(pace),
        ..Limits::default()
    }
}
