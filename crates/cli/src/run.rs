//! `sshoal run`: from arguments to a plan, from a plan to an exit status.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sshoal_fleet::{Deadlines, Limits, RetryPolicy};
use sshoal_net::{
    HostPlan, Input, Preparation, RunPlan, Secret, SshOptions, connections_allowed,
    server_cache_path,
};
use sshoal_proto::SessionRequest;
use sshoal_report::{ExitPolicy, Host, Layout, Options, Reporter, RunEnd, Sink, Verbosity};
use sshoal_targets::{Target, labels};

use crate::args::{OutputArgs, PaceArgs, RunArgs, SshArgs};
use crate::dry_run;
use crate::hosts;
use crate::observer::Reporting;
use crate::prompt::{self, PromptError};
use crate::script::{self, ScriptError};
use crate::template::Template;
use crate::terminal;

/// Hosts for which a further thread is worth its start.
const HOSTS_A_WORKER: usize = 1000;

/// Logins at a time that each need a touch of a security key: one is touched for, the next is ready.
const TOUCHED_LOGINS: u32 = 2;

/// Runs the command; returns the exit status.
pub(crate) fn run(args: &RunArgs) -> Result<u8, Box<dyn std::error::Error>> {
    let started = Instant::now();
    let targets = hosts::targets(&args.hosts)?;
    let mut preparation = Preparation::new(&ssh_options(&args.ssh))?;
    let command = command(args)?;
    if args.tty && targets.len() > 1 {
        return Err(format!("-t is for one host; {} were named", targets.len()).into());
    }
    let input = input(args, targets.len())?;
    let pty = args.tty.then(terminal::pty);
    let mut plans = Vec::with_capacity(targets.len());
    for target in &targets {
        plans.push(preparation.host(target, |place| {
            let line = command.fill(place);
            SessionRequest {
                standard_input: input.is_some(),
                pty: pty.clone(),
                ..SessionRequest::exec(if args.sudo {
                    script::with_sudo(&line)
                } else {
                    line
                })
            }
        })?);
    }
    preparation.look_up_hashed(&mut plans);
    for problem in preparation.known_hosts_problems() {
        eprintln!("sshoal: {problem}");
    }
    if args.dry_run {
        dry_run::print(&plans)?;
        return Ok(0);
    }
    let reporter = reporter(&targets, &plans, &args.output, args.tty)?;
    let deadlines = deadlines(&args.pace);
    let plan = RunPlan {
        limits: limits(&args.pace, &plans, &deadlines),
        deadlines,
        retry: RetryPolicy::default(),
        password: password(&args.ssh, plans.len())?,
        seed: seed(),
        input,
        server_cache: server_cache_path(),
        workers: args.pace.workers.unwrap_or_else(|| workers(plans.len())),
        hosts: plans,
    };
    let raw = args.tty.then(terminal::RawMode::enter).flatten();
    let end = sshoal_net::run(plan, Reporting(reporter))?;
    drop(raw);
    match end.heard {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            return Ok(sshoal_report::BROKEN_PIPE);
        }
        Err(error) => return Err(error.into()),
    }
    let interrupted = end.interrupts > 0;
    let end_of_run = RunEnd {
        interrupted,
        elapsed: started.elapsed(),
    };
    let summary = match end.observer.0.finish(end_of_run) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            return Ok(sshoal_report::BROKEN_PIPE);
        }
        result => result?,
    };
    Ok(summary.exit_status(exit_policy(&args.output)))
}

/// What the commands read: `--stdin`, the terminal with `-t`, and before it sudo's password.
fn input(args: &RunArgs, hosts: usize) -> Result<Option<Input>, Box<dyn std::error::Error>> {
    let path = if args.tty {
        Some(Path::new("-"))
    } else {
        args.stdin.as_deref()
    };
    let input = path
        .filter(|_| !args.dry_run)
        .map(|path| open_input(path, hosts))
        .transpose()?;
    if !args.sudo || args.dry_run {
        return Ok(input);
    }
    let password = prompt::secret("[sudo] password: ", &|| true)?;
    let line = Secret::new([password.expose(), b"\n"].concat());
    Ok(Some(Input::with_preamble(line, input)))
}

fn open_input(path: &Path, hosts: usize) -> Result<Input, String> {
    Input::open(path, hosts).map_err(|error| {
        format!(
            "cannot read standard input from {}: {error}",
            path.display()
        )
    })
}

fn command(args: &RunArgs) -> Result<Template, ScriptError> {
    let command = match &args.script {
        Some(script) => script::command_line(script, &args.command)?,
        None => joined(&args.command),
    };
    match args.literal || args.script.is_some() {
        true => Ok(Template::literal(&command)),
        false => Ok(Template::parse(&command)),
    }
}

/// `--ask-pass`: before anything is begun, so that nobody waits for the answer.
fn password(args: &SshArgs, hosts: usize) -> Result<Option<Secret>, PromptError> {
    let question = match hosts {
        1 => "Password for 1 host: ".to_owned(),
        hosts => format!("Password for {hosts} hosts: "),
    };
    args.ask_pass
        .then(|| prompt::secret(&question, &|| true))
        .transpose()
}

fn ssh_options(args: &SshArgs) -> SshOptions {
    SshOptions {
        config_file: args.config.clone(),
        options: args.option.clone(),
        user: args.user.clone(),
        identities: args.identity.clone(),
    }
}

/// The words of the command as ssh joins them: by single spaces (ssh.c).
fn joined(words: &[OsString]) -> Vec<u8> {
    words
        .iter()
        .map(|word| word.as_bytes())
        .collect::<Vec<_>>()
        .join(&b' ')
}

fn reporter(
    targets: &[Target],
    plans: &[HostPlan],
    args: &OutputArgs,
    tty: bool,
) -> io::Result<Reporter> {
    let hosts = targets
        .iter()
        .zip(labels(targets))
        .zip(plans)
        .map(|((target, label), plan)| Host {
            label,
            target: target.clone(),
            user: Some(plan.user.clone()),
            port: Some(plan.port),
        });
    let layout = match args {
        _ if tty => Layout::Raw,
        OutputArgs { json: true, .. } => Layout::Json,
        OutputArgs { gather: true, .. } => Layout::Gather,
        OutputArgs { diff: true, .. } => Layout::Diff,
        _ => Layout::Lines { prefix: true },
    };
    let verbosity = match (args.quiet, args.verbose) {
        (true, _) => Verbosity::Quiet,
        (false, 0) => Verbosity::Normal,
        (false, _) => Verbosity::Verbose,
    };
    let options = Options {
        layout,
        verbosity,
        outdir: args.outdir.clone(),
        result_file: hosts::results_path(),
        exit_policy: exit_policy(args),
        ..Options::default()
    };
    Reporter::new(hosts.collect(), options, Sink::stdout()?, Sink::stderr()?)
}

fn exit_policy(args: &OutputArgs) -> ExitPolicy {
    match args.largest_status {
        true => ExitPolicy::LargestRemote,
        false => ExitPolicy::ByKind,
    }
}

fn limits(pace: &PaceArgs, hosts: &[HostPlan], deadlines: &Deadlines) -> Limits {
    let mut limits = Limits::default();
    if sshoal_net::logins_wait_for_touch(hosts, deadlines) {
        (limits.connects, limits.logins) = (TOUCHED_LOGINS, TOUCHED_LOGINS);
    }
    let allowed = connections_allowed();
    let sessions = pace.parallel.unwrap_or(limits.sessions).min(allowed);
    Limits {
        sessions,
        connects: limits.connects.min(sessions),
        logins: pace.logins.unwrap_or(limits.logins).min(sessions),
        start_interval: Duration::from_millis(pace.delay),
        ..limits
    }
}

fn deadlines(pace: &PaceArgs) -> Deadlines {
    let defaults = Deadlines::default();
    Deadlines {
        connect: pace.connect_timeout.or(defaults.connect),
        login: pace.login_timeout.or(defaults.login),
        command: pace.command_timeout,
        ..defaults
    }
}

fn workers(hosts: usize) -> usize {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    hosts.div_ceil(HOSTS_A_WORKER).clamp(1, cores)
}

/// Differs from run to run; only back-off jitter hangs on it.
fn seed() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos() as u64)
}
