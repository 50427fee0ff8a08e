//! Logins carried out: a run over each host several times, by sshoal and by ssh in turns.

use std::sync::Arc;

use sshoal_fleet::{Deadlines, HostResult, Limits, Outcome, RetryPolicy};
use sshoal_net::{
    Errand, HostPlan, Observer, Preparation, RunPlan, Secret, SshOptions, TimedLogin, TimingPlan,
    Timings, Transport, Work,
};
use sshoal_proto::SessionRequest;
use sshoal_report::INTERRUPTED;
use sshoal_targets::Target;
use sshoal_why::Client;

use super::args::WhyArgs;
use crate::args::PaceArgs;
use crate::observer::cut_short;
use crate::{fan_out, prompt, run, terminal, transport};

/// What each login runs: a line that is there at once.
pub(super) const COMMAND: &[u8] = b"echo";
/// What would have a login go by a connection that is there already, or open more than the command needs.
const EVERY_LOGIN: [(&str, &str); 2] = [("ControlPath", "none"), ("ControlMaster", "no")];

/// One login that was made.
pub(super) struct Done {
    /// The host's number.
    pub(super) host: usize,
    pub(super) by: Client,
    pub(super) timed: TimedLogin,
    /// Why it came no further, and by which kind of failure.
    pub(super) failure: Option<sshoal_fleet::Failure>,
}

/// What has come of all of them.
pub(super) enum Performed {
    /// And of which hosts sshoal cannot log in to at all, and why.
    Done(Vec<Done>, Vec<(usize, String)>),
    /// A signal has ended them; with this exit status.
    CutShort(u8),
}

/// Why there is nothing to measure.
#[derive(Debug, thiserror::Error)]
#[error(
    "{label}: goes by ssh ({why}), whose configuration asks for what sshoal's own client cannot do; measure it without, \
     with --transport native (docs/transports.md)"
)]
struct BySsh {
    label: String,
    why: String,
}

/// One login that is to be made.
struct Planned {
    host: usize,
    by: Client,
    plan: HostPlan,
    errands: Option<Vec<Errand>>,
}

/// What follows logins by sshoal to a host, on the same connection.
#[derive(Default)]
pub(super) struct Following {
    /// The first of several.
    pub(super) first: Vec<Errand>,
    /// The last.
    pub(super) last: Vec<Errand>,
}

/// Which logins are made.
pub(super) struct Logins<'a> {
    /// How often each client logs in.
    pub(super) repeat: u32,
    /// What each of them runs.
    pub(super) command: &'static [u8],
    /// What follows them.
    pub(super) following: &'a Following,
    /// Whether ssh logs in, too.
    pub(super) with_ssh: bool,
    /// `--ask-pass`.
    pub(super) password: Option<Secret>,
}

/// Makes them, by turns.
pub(super) fn perform<O: Observer<Summary = Vec<HostResult>>>(
    args: &WhyArgs,
    targets: &[Target],
    logins: Logins,
    observer: O,
) -> Result<Performed, Box<dyn std::error::Error>> {
    let mut native = Preparation::new(&options(args, args.login.transport.into()))?;
    let mut by_ssh = Preparation::new(&options(args, Transport::OpenSsh))?;
    let targets: Vec<Target> = targets.iter().map(measured).collect();
    let mut planned = Vec::new();
    for round in 0..logins.repeat {
        let is_last = round + 1 == logins.repeat;
        let command = logins.command;
        planned.extend(plans(&mut native, Client::Sshoal, &targets, command)?);
        let Following { first, last } = logins.following;
        let errands = match round {
            _ if is_last => Some(last),
            0 => Some(first).filter(|first| !first.is_empty()),
            _ => None,
        };
        let ours = planned.iter_mut().rev().take(targets.len());
        ours.for_each(|planned| planned.errands = errands.cloned());
        if logins.with_ssh {
            planned.extend(plans(&mut by_ssh, Client::Ssh, &targets, command)?);
        }
    }
    let foreign = without_foreign(&mut planned, logins.with_ssh)?;
    let machines = planned.iter().map(|planned| planned.host as u32);
    let machines: Vec<u32> = machines.collect();
    let whose: Vec<(usize, Client)> = planned.iter().map(|it| (it.host, it.by)).collect();
    let errands = planned.iter_mut().map(|it| it.errands.take()).collect();
    let hosts: Vec<HostPlan> = planned.into_iter().map(|it| it.plan).collect();
    let timings = Arc::new(Timings::default());
    let at_a_time = args
        .parallel
        .min(u32::try_from(targets.len()).unwrap_or(u32::MAX));
    let mut plan = plan(args, native, hosts, at_a_time, logins.password)?;
    plan.timing = Some(TimingPlan::new(machines, errands, timings.clone()));
    let end = sshoal_net::run(plan, observer)?;
    let Some(mut results) = end.summary else {
        terminal::take_back();
        return Ok(Performed::CutShort(INTERRUPTED));
    };
    if let Some(cut) = cut_short(end.interruption) {
        return Ok(Performed::CutShort(cut.exit_status()));
    }
    results.sort_by_key(|result| result.host);
    let done = results.into_iter().zip(whose);
    let done = done.map(|(result, (host, by))| Done {
        host,
        by,
        timed: timings.of(result.host.0),
        failure: failure(result),
    });
    Ok(Performed::Done(done.collect(), foreign))
}

/// A run over these hosts, so many at a time.
pub(super) fn plan(
    args: &WhyArgs,
    mut preparation: Preparation,
    mut hosts: Vec<HostPlan>,
    at_once: u32,
    password: Option<Secret>,
) -> Result<RunPlan, Box<dyn std::error::Error>> {
    transport::check(&args.login, &mut hosts)?;
    run::read_known_hosts(&mut preparation, &mut hosts, &args.login, args.verbose)?;
    let deadlines = Deadlines {
        // A dead name server is a finding; the C library gives up by itself.
        lookup: None,
        ..run::deadlines(&args.login, &PaceArgs::default(), &mut hosts)
    };
    Ok(RunPlan {
        limits: at_a_time(at_once),
        deadlines,
        // Whoever is turned away is told so.
        retry: RetryPolicy {
            attempts: 1,
            ..RetryPolicy::default()
        },
        ssh: transport::surroundings(&args.login, &hosts, password.as_ref())?,
        password,
        seed: fan_out::seed(),
        input: None,
        asks: prompt::is_possible(),
        // Nothing is guessed and nothing merged, so that there is nothing to learn from.
        server_cache: None,
        workers: 1,
        work: Work::Sessions(hosts),
        jumps: preparation.into_jumps(),
        transfer: None,
        kill: None,
        trial: None,
        timing: None,
        rolling: None,
        keeper: None,
        journal: None,
        warm: None,
    })
}

/// One login of each host by one client.
fn plans(
    preparation: &mut Preparation,
    by: Client,
    targets: &[Target],
    command: &[u8],
) -> Result<Vec<Planned>, Box<dyn std::error::Error>> {
    let mut plans = preparation.hosts(targets, |_| SessionRequest::exec(Vec::new()))?;
    for plan in &mut plans {
        match plan {
            HostPlan::Native(plan) => plan.is_timed(command),
            HostPlan::OpenSsh(plan) => plan.is_timed(command),
        }
    }
    let planned = plans.into_iter().enumerate().map(|(host, plan)| Planned {
        host,
        by,
        plan,
        errands: None,
    });
    Ok(planned.collect())
}

/// Takes out what would be a login by sshoal and has to go by ssh; says of which hosts, and why.
fn without_foreign(
    planned: &mut Vec<Planned>,
    with_ssh: bool,
) -> Result<Vec<(usize, String)>, BySsh> {
    let mut foreign: Vec<(usize, String)> = Vec::new();
    for Planned { host, by, plan, .. } in planned.iter() {
        let Some(plan) = plan.openssh().filter(|_| *by == Client::Sshoal) else {
            continue;
        };
        if !with_ssh {
            let (label, why) = (plan.label.clone(), plan.why.clone());
            return Err(BySsh { label, why });
        }
        if !foreign.iter().any(|(known, _)| known == host) {
            foreign.push((*host, plan.why.clone()));
        }
    }
    planned.retain(|it| it.by == Client::Ssh || it.plan.native().is_some());
    Ok(foreign)
}

pub(super) fn options(args: &WhyArgs, transport: Transport) -> SshOptions {
    SshOptions {
        transport,
        forward_agent: false,
        ..run::ssh_options(&args.config, &args.login)
    }
}

/// The host with what every login needs before its own options.
pub(super) fn measured(target: &Target) -> Target {
    let usual = EVERY_LOGIN.iter();
    let usual = usual.map(|&(keyword, value)| (keyword.to_owned(), value.to_owned()));
    Target {
        options: usual.chain(target.options.iter().cloned()).collect(),
        ..target.clone()
    }
}

fn at_a_time(hosts: u32) -> Limits {
    let hosts = hosts.max(1);
    Limits {
        sessions: hosts,
        connects: hosts,
        logins: hosts,
        logins_by_program: hosts,
        ..Limits::default()
    }
}

/// Why there was no session; whatever its command returned.
pub(super) fn failure(result: HostResult) -> Option<sshoal_fleet::Failure> {
    match result.outcome {
        Outcome::Failed { failure, .. } => Some(failure),
        Outcome::Exit(_) | Outcome::Signal { .. } | Outcome::NotStarted => None,
    }
}
