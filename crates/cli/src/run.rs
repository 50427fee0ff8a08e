//! `sshoal run`: from arguments to a plan, from a plan to an exit status.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sshoal_fleet::{Deadlines, Limits, RetryPolicy};
use sshoal_net::{
    HostPlan, NoPassphrase, Preparation, RunPlan, SshOptions, connections_allowed,
    server_cache_path,
};
use sshoal_proto::SessionRequest;
use sshoal_report::{
    ExitPolicy, Host, Layout, Options, Reporter, RunEnd, Sink, Verbosity, last_run_path,
};
use sshoal_targets::{Target, labels};

use crate::args::{OutputArgs, PaceArgs, RunArgs, SshArgs};
use crate::hosts;
use crate::observer::Reporting;
use crate::template::Template;

/// Hosts for which a further thread is worth its start.
const HOSTS_A_WORKER: usize = 1000;

/// Runs the command; returns the exit status.
pub(crate) fn run(args: &RunArgs) -> Result<u8, Box<dyn std::error::Error>> {
    let started = Instant::now();
    let targets = hosts::targets(&args.hosts)?;
    let mut preparation = Preparation::new(&ssh_options(&args.ssh), Box::new(NoPassphrase))?;
    let command = Template::parse(&joined(&args.command));
    let mut plans = Vec::with_capacity(targets.len());
    for target in &targets {
        plans.push(preparation.host(target, |place| SessionRequest::exec(command.fill(place)))?);
    }
    preparation.look_up_hashed(&mut plans);
    for problem in preparation.known_hosts_problems() {
        eprintln!("sshoal: {problem}");
    }
    let reporter = reporter(&targets, &plans, &args.output)?;
    let plan = RunPlan {
        limits: limits(&args.pace),
        deadlines: deadlines(&args.pace),
        retry: RetryPolicy::default(),
        seed: seed(),
        server_cache: server_cache_path(),
        workers: args.pace.workers.unwrap_or_else(|| workers(plans.len())),
        hosts: plans,
    };
    let end = sshoal_net::run(plan, Reporting(reporter))?;
    match end.heard {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            return Ok(sshoal_report::BROKEN_PIPE);
        }
        Err(error) => return Err(error.into()),
    }
    let interrupted = end.interrupts > 0;
    let summary = end.observer.0.finish(RunEnd {
        interrupted,
        elapsed: started.elapsed(),
    })?;
    Ok(summary.exit_status(exit_policy(&args.output)))
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

fn reporter(targets: &[Target], plans: &[HostPlan], args: &OutputArgs) -> io::Result<Reporter> {
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
    let variable = |name: &str| std::env::var_os(name);
    let options = Options {
        layout,
        verbosity,
        outdir: args.outdir.clone(),
        result_file: last_run_path(
            variable("XDG_STATE_HOME").as_deref(),
            variable("HOME").as_deref(),
        ),
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

fn limits(pace: &PaceArgs) -> Limits {
    let defaults = Limits::default();
    let allowed = connections_allowed();
    let sessions = pace.parallel.unwrap_or(defaults.sessions).min(allowed);
    Limits {
        sessions,
        connects: defaults.connects.min(sessions),
        logins: pace.logins.unwrap_or(defaults.logins).min(sessions),
        start_interval: Duration::from_millis(pace.delay),
        ..defaults
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
