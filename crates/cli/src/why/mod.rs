//! `sshoal why`: why the login to a host is slow.
//!
//! `logins` has sshoal and ssh log in, in turns; `ours` and `stock` take what was timed apart into phases; `local` says what
//! this machine adds, `host` what a user finds out on the host. `trace` follows further logins on the host itself.
//! `compose` makes evidence of all that, which the crate `sshoal-why` judges and reports on.

mod args;
mod compose;
mod host;
mod local;
mod logins;
mod ours;
mod report;
mod stock;
mod throttling;
mod trace;

use sshoal_net::Secret;
use sshoal_openssh::Surroundings;
use sshoal_targets::{Target, labels};
use sshoal_trace::Traced;
use sshoal_why::{Client, Evidence};

use crate::args::HostArgs;
use crate::hosts;
use crate::run;
use crate::say::say;
use crate::watch::Watch;

pub(crate) use args::WhyArgs;
use compose::Known;
use local::Local;
use logins::{Done, Following, Logins, Performed};
use trace::{Traces, Untraced};

/// A host that failed: as in a run (docs/exit-status.md).
const FAILED: u8 = 3;

/// Measures and reports; returns the exit status.
pub(crate) fn run(args: &WhyArgs) -> Result<u8, Box<dyn std::error::Error>> {
    let targets = targets(args)?;
    report::check(args, targets.len())?;
    let is_alone = targets.len() == 1;
    let mut local = Local::default();
    let mut known = Vec::with_capacity(targets.len());
    for (target, label) in targets.iter().zip(labels(&targets)) {
        known.push(Known {
            host: label,
            facts: local.facts(args, target, is_alone)?,
            asks_host: !args.no_host,
            foreign: None,
        });
    }
    let with_ssh = takes_ssh(args);
    let following = match args.no_host {
        true => Following::default(),
        false => host::errands(),
    };
    let watch = Watch::new(title(&known, args.repeat));
    let password = run::password(&args.login, targets.len())?;
    let all = Logins {
        repeat: args.repeat,
        command: logins::COMMAND,
        following: &following,
        with_ssh,
        password: password.clone(),
    };
    let done = match logins::perform(args, &targets, all, watch)? {
        Performed::Done(done, foreign) => {
            for (host, why) in foreign {
                known[host].foreign = Some(why);
            }
            done
        }
        Performed::CutShort(status) => return Ok(status),
    };
    let failed: Vec<bool> = (0..known.len())
        .map(|host| has_failed(host, &done))
        .collect();
    let foreign: Vec<_> = known.iter().map(|known| known.foreign.clone()).collect();
    let mut evidence: Vec<Evidence> = known
        .into_iter()
        .enumerate()
        .map(|(host, known)| {
            let of_host = done.iter().filter(|done| done.host == host);
            compose::evidence(known, &of_host.collect::<Vec<_>>())
        })
        .collect();
    let mut traces = match args.trace {
        true => match traces(
            args,
            &targets,
            &evidence,
            &foreign,
            &failed,
            password.as_ref(),
        ) {
            Ok(traces) => traces,
            Err(status) => return Ok(status),
        },
        false => Vec::new(),
    };
    for (evidence, traced) in evidence.iter_mut().zip(&mut traces) {
        trace::learn(traced, evidence);
    }
    let shown = traces
        .into_iter()
        .map(|traces| traces.ok().and_then(Traces::shown));
    let traces: Vec<Option<Traced>> = shown.collect();
    let status = report::show(args, &evidence, &failed, &traces)?;
    Ok(match (status, failed.contains(&true)) {
        (0, true) => FAILED,
        (status, _) => status,
    })
}

/// Follows further logins to each host, one host after the other; the error is an exit status.
fn traces(
    args: &WhyArgs,
    targets: &[Target],
    evidence: &[Evidence],
    foreign: &[Option<String>],
    failed: &[bool],
    password: Option<&Secret>,
) -> Result<Vec<Result<Traces, String>>, u8> {
    let mut traces = Vec::with_capacity(targets.len());
    let hosts = targets.iter().zip(evidence).zip(foreign).zip(failed);
    for (((target, evidence), foreign), failed) in hosts {
        let why_not = match (foreign, failed) {
            (Some(why), _) => Some(format!("the host goes by ssh ({why})")),
            (None, true) => Some("nobody was logged in".to_owned()),
            (None, false) => None,
        };
        traces.push(match why_not {
            Some(why) => Err(why),
            None => {
                let count = trace::count(evidence);
                match trace::follow(args, target, &evidence.host, count, password) {
                    Ok(traced) => Ok(traced),
                    Err(Untraced::Because(why)) => Err(why),
                    Err(Untraced::CutShort(status)) => return Err(status),
                }
            }
        });
    }
    Ok(traces)
}

/// The host that is named alone, and those of the flags.
fn targets(args: &WhyArgs) -> Result<Vec<Target>, Box<dyn std::error::Error>> {
    let mut named: HostArgs = args.hosts.clone();
    named.list.extend(args.host.iter().cloned());
    Ok(hosts::targets(&named)?)
}

/// Whether ssh logs in, too: unless that is not wanted, or there is none.
fn takes_ssh(args: &WhyArgs) -> bool {
    if args.no_ssh {
        return false;
    }
    let program = args.login.ssh.clone().unwrap_or_else(|| "ssh".into());
    let surroundings = Surroundings {
        program,
        ask_pass: None,
    };
    match surroundings.check() {
        Ok(()) => true,
        Err(failure) => {
            say(format!("{}; only sshoal logs in", failure.detail));
            false
        }
    }
}

fn title(known: &[Known], repeat: u32) -> String {
    let rounds = match repeat {
        1 => "1 round".to_owned(),
        rounds => format!("{rounds} rounds"),
    };
    match known {
        [only] => format!("{}: {rounds}", only.host),
        hosts => format!("{} hosts: {rounds}", hosts.len()),
    }
}

/// Whether nobody came to the end of a login: by sshoal, or where that cannot, by ssh.
fn has_failed(host: usize, done: &[Done]) -> bool {
    let of = |by: Client| done.iter().filter(move |it| it.host == host && it.by == by);
    let by = match of(Client::Sshoal).next() {
        Some(_) => Client::Sshoal,
        None => Client::Ssh,
    };
    !of(by).any(|done| done.failure.is_none())
}
