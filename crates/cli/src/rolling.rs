//! Runs in batches: `--canary`, `--batch`, `--max-failures`, `--pause`, `--until`.

use std::num::NonZeroU32;
use std::time::Duration;

use clap::{Args, ValueHint};
use sshoal_fleet::Rolling;
use sshoal_journal::run::RunId;
use sshoal_net::{RollingPlan, Until};
use sshoal_targets::Target;

use crate::args::{HostArgs, seconds, some_seconds};
use crate::hosts::{self, HostsError};
use crate::say::say;

/// How long `--until` is repeated, unless the user says otherwise.
const UNTIL: Duration = Duration::from_secs(300);

/// In which batches hosts begin.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "In batches")]
pub(crate) struct RollingArgs {
    /// Hosts of a batch: a number, or a part of all as in 10%. The next batch begins when all hosts of the one before have ended.
    #[arg(long, value_name = "N|N%", value_parser = share, allow_negative_numbers = true)]
    batch: Option<Share>,
    /// Hosts that go first, a batch of their own, in the form of -w: if one of them fails, nothing else is started.
    #[arg(long, value_name = "LIST", value_hint = ValueHint::Hostname)]
    canary: Vec<String>,
    /// Hosts that may fail: a number, or a part of all as in 10%. With one more nothing else is started, and what runs ends.
    #[arg(long, value_name = "N|N%", value_parser = share, allow_negative_numbers = true)]
    max_failures: Option<Share>,
    /// Seconds to wait before each further batch.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    pause: Option<Duration>,
    /// A command of this machine that must succeed before each further batch, after the pause: it is repeated every second until
    /// it does. SSHOAL_BATCH is the number of batches that have ended.
    #[arg(long, value_name = "COMMAND", value_parser = line, value_hint = ValueHint::CommandString)]
    until: Option<String>,
    /// Seconds after which --until is given up, and nothing else is started. If not given: 300.
    #[arg(long, value_name = "SECONDS", value_parser = some_seconds, requires = "until", allow_negative_numbers = true)]
    until_timeout: Option<Duration>,
    /// Said by a plan to its steps: failures that --max-failures lets pass are none of theirs.
    #[arg(long, hide = true)]
    forgive: bool,
}

impl RollingArgs {
    /// Whether hosts may fail.
    pub(crate) fn lets_fail(&self) -> bool {
        self.max_failures.is_some()
    }

    /// Whether it has succeeded if no more hosts fail than may.
    pub(crate) fn forgives(&self) -> bool {
        self.forgive
    }
}

/// A number of hosts, or a part of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Share {
    Hosts(u32),
    Percent(f64),
}

/// Why hosts cannot go in batches.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RollingError {
    #[error(transparent)]
    Hosts(#[from] HostsError),
    #[error("--canary names {0}, which is not among the hosts")]
    NoCanary(String),
    #[error("--canary names no host")]
    NoCanaries,
    #[error("--canary: {0}")]
    Canary(HostsError),
    #[error("{0} is for what is between batches: add --batch N, or --canary LIST")]
    OneBatch(&'static str),
    #[error("a batch of no hosts never ends: --batch takes a number from 1, or more than 0%")]
    EmptyBatch,
    #[error(
        "the canary {name} has failed in this run: nothing else is started; `--retry-failed not-started --of {run}` begins anew with the \
         hosts that were not started"
    )]
    CanaryFailed { name: String, run: RunId },
    #[error(
        "{failed} hosts have failed in this run, and --max-failures is {most}: nothing else is started; \
         `sshoal resume {run} --max-failures N` goes on, if more may fail"
    )]
    TooManyFailed {
        failed: usize,
        most: u32,
        run: RunId,
    },
    #[error("{0}; nothing else is started")]
    NotAgreed(String),
}

/// What has been of a run that is gone on with.
pub(crate) struct Past<'a> {
    /// What it is called.
    pub(crate) run: RunId,
    /// All of its hosts.
    pub(crate) hosts: u32,
    /// So many of the first are canaries.
    pub(crate) canaries: u32,
    /// The numbers of those that are left, in order.
    pub(crate) left: &'a [u32],
    /// Hosts that have failed, and are not left: their numbers and names.
    pub(crate) failed: Vec<(u32, &'a str)>,
}

/// The hosts in the order in which they begin, and their batches.
pub(crate) struct Batched {
    pub(crate) targets: Vec<Target>,
    pub(crate) plan: Option<RollingPlan>,
}

/// All targets of the run, canaries first.
pub(crate) fn targets(hosts: &HostArgs, args: &RollingArgs) -> Result<Batched, RollingError> {
    let targets = hosts::targets(hosts)?;
    let is_divided = args.batch.is_some() || !args.canary.is_empty();
    match args {
        _ if is_divided => {}
        RollingArgs { pause: Some(_), .. } => return Err(RollingError::OneBatch("--pause")),
        RollingArgs { until: Some(_), .. } => return Err(RollingError::OneBatch("--until")),
        RollingArgs {
            max_failures: None, ..
        } => {
            let plan = None;
            return Ok(Batched { targets, plan });
        }
        _ => {}
    }
    let (targets, canaries) = match args.canary.as_slice() {
        [] => (targets, 0),
        lists => {
            let named = hosts::among(&targets, lists, hosts).map_err(RollingError::Canary)?;
            canaries_first(targets, &named)?
        }
    };
    let all = u32::try_from(targets.len()).unwrap_or(u32::MAX);
    let plan = Some(plan(args, all, canaries)?);
    Ok(Batched { targets, plan })
}

/// The batches of what is left of a run. What is between two is seen to first, where any host has had its turn.
pub(crate) fn further(
    args: &RollingArgs,
    past: &Past<'_>,
) -> Result<Option<RollingPlan>, RollingError> {
    let mut plan = plan(args, past.hosts, past.canaries)?;
    let rolling = &mut plan.rolling;
    let is_canary = |host: &u32| *host < past.canaries;
    if let Some((_, name)) = past.failed.iter().find(|(host, _)| is_canary(host)) {
        let (name, run) = ((*name).to_owned(), past.run);
        return Err(RollingError::CanaryFailed { name, run });
    }
    if let Some(most) = &mut rolling.max_failures {
        let failed = past.failed.len();
        *most = most
            .checked_sub(failed as u32)
            .ok_or(RollingError::TooManyFailed {
                failed,
                most: *most,
                run: past.run,
            })?;
    }
    rolling.canaries = past.left.iter().filter(|host| is_canary(host)).count() as u32;
    let first = past.left.first().map_or(past.hosts, |host| *host);
    if first > 0 {
        let size = rolling.batch.map_or(past.hosts, NonZeroU32::get);
        let others = first.saturating_sub(past.canaries) / size.max(1);
        let ended = u32::from(past.canaries > 0 && first >= past.canaries) + others;
        plan.agree(ended, say).map_err(RollingError::NotAgreed)?;
    }
    let is_plain = plan.rolling == Rolling::default();
    Ok((!is_plain).then_some(plan))
}

fn plan(args: &RollingArgs, all: u32, canaries: u32) -> Result<RollingPlan, RollingError> {
    let batch = args.batch.map(|share| share.rounded(all, f64::ceil));
    if batch == Some(0) {
        return Err(RollingError::EmptyBatch);
    }
    Ok(RollingPlan {
        rolling: Rolling {
            canaries,
            batch: batch.and_then(NonZeroU32::new),
            max_failures: args
                .max_failures
                .map(|share| share.rounded(all, f64::floor)),
        },
        pause: args.pause.unwrap_or_default(),
        until: args.until.clone().map(|line| Until {
            line,
            at_most: args.until_timeout.unwrap_or(UNTIL),
        }),
    })
}

/// The number of the batch, from 1, in which a host begins; `None` if there is only one.
pub(crate) fn batch_of(rolling: &Rolling, host: u32) -> Option<u32> {
    let Rolling {
        canaries, batch, ..
    } = *rolling;
    let others = host.saturating_sub(canaries);
    match batch {
        None if canaries == 0 => None,
        _ if host < canaries => Some(1),
        batch => Some(1 + u32::from(canaries > 0) + batch.map_or(0, |size| others / size)),
    }
}

/// The same hosts, those first that one of `canaries` names, and how many these are.
fn canaries_first(
    targets: Vec<Target>,
    canaries: &[Target],
) -> Result<(Vec<Target>, u32), RollingError> {
    // A canary without user or port stands for all that are called so.
    let names = |canary: &Target, target: &Target| {
        canary.name == target.name
            && (canary.user.is_none() || canary.user == target.user)
            && (canary.port.is_none() || canary.port == target.port)
    };
    if canaries.is_empty() {
        return Err(RollingError::NoCanaries);
    }
    let is_missing = |canary: &&Target| !targets.iter().any(|target| names(canary, target));
    if let Some(canary) = canaries.iter().find(is_missing) {
        return Err(RollingError::NoCanary(canary.to_string()));
    }
    let is_canary = |target: &Target| canaries.iter().any(|canary| names(canary, target));
    let (mut first, others): (Vec<_>, Vec<_>) = targets.into_iter().partition(is_canary);
    let count = u32::try_from(first.len()).unwrap_or(u32::MAX);
    first.extend(others);
    Ok((first, count))
}

impl RollingArgs {
    /// Lets so many hosts fail, whatever was said before.
    pub(crate) fn allow_failures(&mut self, share: Share) {
        self.max_failures = Some(share);
    }
}

impl Share {
    /// So many of `all` hosts.
    fn rounded(self, all: u32, round: fn(f64) -> f64) -> u32 {
        match self {
            Share::Hosts(hosts) => hosts,
            Share::Percent(percent) => {
                let exact = f64::from(all) * percent / 100.0;
                // 0.1% of 3000 is three, though 0.1 is not quite a tenth to the machine.
                let nearest = exact.round();
                match (exact - nearest).abs() < 1e-6 {
                    true => nearest as u32,
                    false => round(exact) as u32,
                }
            }
        }
    }
}

/// `--until`: an empty command, of a variable that is not set, would always succeed.
fn line(text: &str) -> Result<String, &'static str> {
    match text.trim().is_empty() {
        true => Err("an empty command would check nothing"),
        false => Ok(text.to_owned()),
    }
}

/// A number, or a number and a percent sign.
pub(crate) fn share(text: &str) -> Result<Share, String> {
    let wrong = || format!("{text:?} is neither a number of hosts nor a part as in 10%");
    match text.strip_suffix('%') {
        None => text.parse().map(Share::Hosts).map_err(|_| wrong()),
        Some(percent) => match percent.parse() {
            Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(Share::Percent(percent)),
            _ => Err(wrong()),
        },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn hosts(names: &str) -> HostArgs {
        HostArgs {
            list: vec![names.to_owned()],
            ..HostArgs::default()
        }
    }

    fn rolling(batch: &str, max_failures: &str) -> Rolling {
        let args = RollingArgs {
            batch: Some(share(batch).unwrap()),
            max_failures: Some(share(max_failures).unwrap()),
            ..RollingArgs::default()
        };
        targets(&hosts("h[1-25]"), &args)
            .unwrap()
            .plan
            .unwrap()
            .rolling
    }

    #[test]
    fn parts_are_of_all_hosts_batches_at_least_one_host_and_failures_no_more_than_said() {
        let sizes = |rolling: Rolling| (rolling.batch.unwrap().get(), rolling.max_failures);
        assert_eq!(sizes(rolling("10", "3")), (10, Some(3)));
        assert_eq!(sizes(rolling("10%", "10%")), (3, Some(2)));
        assert_eq!(sizes(rolling("0.1%", "0%")), (1, Some(0)));
        let exactly = |percent, all| {
            let share = Share::Percent(percent);
            [f64::ceil, f64::floor].map(|round| share.rounded(all, round))
        };
        assert_eq!(exactly(1.1, 1000), [11, 11]);
        assert_eq!(exactly(0.57, 10_000), [57, 57]);
        assert_eq!(exactly(1.15, 1000), [12, 11]);
        for wrong in ["", "%", "-1", "101%", "1.5", "nan%", "ten"] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn each_host_has_its_batch() {
        let batches = |canaries, batch| {
            let rolling = Rolling {
                canaries,
                batch: NonZeroU32::new(batch),
                max_failures: Some(1),
            };
            let batches = (0..5).filter_map(|host| batch_of(&rolling, host));
            batches.collect::<Vec<_>>()
        };
        assert!(batches(0, 0).is_empty());
        assert_eq!(batches(2, 0), [1, 1, 2, 2, 2]);
        assert_eq!(batches(0, 2), [1, 1, 2, 2, 3]);
        assert_eq!(batches(1, 3), [1, 2, 2, 2, 3]);
    }

    #[test]
    fn canaries_go_first_and_must_be_among_the_hosts() {
        let batched = |canary: &str| {
            let args = RollingArgs {
                canary: vec![canary.to_owned()],
                ..RollingArgs::default()
            };
            targets(&hosts("a,root@b,b:23,c,d"), &args)
        };
        let order = |canary| {
            let batched = batched(canary).unwrap();
            let names: Vec<String> = batched.targets.iter().map(Target::to_string).collect();
            (names.join(" "), batched.plan.unwrap().rolling.canaries)
        };
        assert_eq!(order("d,b"), ("root@b b:23 d a c".to_owned(), 3));
        assert_eq!(order("root@b"), ("root@b a b:23 c d".to_owned(), 1));
        let by_glob = order("b*").0;
        assert_eq!(by_glob, "root@b b:23 a c d", "it chooses from the hosts");
        let error = |canary| batched(canary).err().unwrap().to_string();
        assert!(error("a,e").contains("names e, which is not among"));
        assert_eq!(error("a,-a"), "--canary names no host");
        assert!(error("a[").starts_with("--canary: "));
    }

    #[test]
    fn what_is_between_batches_needs_batches() {
        let pause = RollingArgs {
            pause: Some(Duration::from_secs(1)),
            ..RollingArgs::default()
        };
        let error = targets(&hosts("a"), &pause).err().unwrap();
        assert!(matches!(error, RollingError::OneBatch("--pause")));
        let empty = RollingArgs {
            batch: Some(Share::Hosts(0)),
            ..RollingArgs::default()
        };
        let error = targets(&hosts("a"), &empty).err().unwrap();
        assert!(matches!(error, RollingError::EmptyBatch));
        let none = targets(&hosts("a"), &RollingArgs::default()).unwrap();
        assert!(none.plan.is_none());
    }
}
