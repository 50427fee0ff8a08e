//! Trials carried out: a run over one host many times, one at a time, each time with other algorithms.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use sshoal_fleet::{Deadlines, HostResult, Limits, RetryPolicy};
use sshoal_net::{
    BetweenRuns, HostPlan, Measured, Measurements, Preparation, RunPlan, Secret, SshOptions,
    Transport, TrialPlan, TrialWay, Work, server_cache_path,
};
use sshoal_proto::SessionRequest;
use sshoal_report::INTERRUPTED;
use sshoal_targets::Target;

use super::args::CiphersArgs;
use super::pairs::By;
use crate::args::PaceArgs;
use crate::observer::cut_short;
use crate::watch::Watch;
use crate::{fan_out, prompt, run, terminal, transport};

/// What would have a measurement go by a connection that is there already, or measure how zeros are compressed.
const EVERY_TRIAL: [(&str, &str); 3] = [
    ("ControlPath", "none"),
    ("ControlMaster", "no"),
    ("Compression", "no"),
];

/// One measurement that is to be made.
#[derive(Debug, Clone)]
pub(super) struct Trial {
    pub(super) by: By,
    /// Options of ssh_config for it alone.
    pub(super) options: Vec<(String, String)>,
    /// Blocks of 64 KiB either way.
    pub(super) blocks: u64,
}

/// One measurement that was made.
pub(super) struct Done {
    pub(super) result: HostResult,
    pub(super) measured: Measured,
}

/// What has come of all of them.
pub(super) enum Performed {
    Done(Vec<Done>),
    /// A signal has ended them; with this exit status.
    CutShort(u8),
}

/// Why there is nothing to measure.
#[derive(Debug, thiserror::Error)]
#[error(
    "{label}: goes by ssh ({why}), and what its server offers is learned by sshoal's own client; measure it with \
     --transport native and with what that can do (docs/transports.md)"
)]
struct BySsh {
    label: String,
    why: String,
}

/// How trials are made.
pub(super) struct Trials<'a> {
    pub(super) args: &'a CiphersArgs,
    pub(super) target: &'a Target,
    pub(super) password: Option<Secret>,
    pub(super) way: TrialWay,
    /// How long one may take once it has begun.
    pub(super) patience: Duration,
    pub(super) between: BetweenRuns,
}

impl Trials<'_> {
    /// Makes them, in this order.
    pub(super) fn perform(
        &self,
        trials: &[Trial],
        watch: Watch,
    ) -> Result<Performed, Box<dyn std::error::Error>> {
        let login = &self.args.login;
        let mut native = Preparation::new(&self.options(self.args.login.transport.into()))?;
        let mut plans = self.plans(&mut native, trials, By::Native)?;
        if let Some(plan) = plans.iter().find_map(|(_, plan)| plan.openssh()) {
            let (label, why) = (plan.label.clone(), plan.why.clone());
            return Err(BySsh { label, why }.into());
        }
        let mut by_ssh = Preparation::new(&self.options(Transport::OpenSsh))?;
        plans.extend(self.plans(&mut by_ssh, trials, By::Ssh)?);
        plans.sort_by_key(|(number, _)| *number);
        let mut hosts: Vec<HostPlan> = plans.into_iter().map(|(_, plan)| plan).collect();
        for (plan, trial) in hosts.iter_mut().zip(trials) {
            match plan {
                HostPlan::Native(plan) => plan.measures(self.way, trial.blocks),
                HostPlan::OpenSsh(plan) => plan.measures(trial.blocks),
            }
        }
        transport::check(login, &mut hosts)?;
        run::read_known_hosts(&mut native, &mut hosts, login, self.args.verbose)?;
        let deadlines = Deadlines {
            command: Some(self.patience),
            ..run::deadlines(login, &PaceArgs::default(), &mut hosts)
        };
        let measurements = Arc::new(Measurements::default());
        let plan = RunPlan {
            limits: one_at_a_time(),
            deadlines,
            retry: RetryPolicy::default(),
            ssh: transport::surroundings(login, &hosts, self.password.as_ref())?,
            password: self.password.clone(),
            seed: fan_out::seed(),
            input: None,
            asks: prompt::is_possible(),
            server_cache: server_cache_path(),
            workers: 1,
            work: Work::Sessions(hosts),
            jumps: native.into_jumps(),
            transfer: None,
            timing: None,
            rolling: None,
            keeper: None,
            journal: None,
            kill: None,
            warm: None,
            trial: Some(TrialPlan {
                way: self.way,
                blocks: trials.iter().map(|trial| trial.blocks).collect(),
                measurements: measurements.clone(),
            }),
        };
        if self.between.is_interrupted() {
            return Ok(Performed::CutShort(INTERRUPTED));
        }
        let end = sshoal_net::run(plan, watch)?;
        let Some(mut results) = end.summary else {
            terminal::take_back();
            return Ok(Performed::CutShort(INTERRUPTED));
        };
        if let Some(cut) = cut_short(end.interruption) {
            return Ok(Performed::CutShort(cut.exit_status()));
        }
        results.sort_by_key(|result| result.host);
        let done = results.into_iter().map(|result| Done {
            measured: measurements.of(result.host.0),
            result,
        });
        Ok(Performed::Done(done.collect()))
    }

    fn options(&self, transport: Transport) -> SshOptions {
        SshOptions {
            transport,
            forward_agent: false,
            ..run::ssh_options(&self.args.config, &self.args.login)
        }
    }

    /// The trials of one client, with their numbers.
    fn plans(
        &self,
        preparation: &mut Preparation,
        trials: &[Trial],
        by: By,
    ) -> Result<Vec<(usize, HostPlan)>, Box<dyn std::error::Error>> {
        let chosen = trials.iter().enumerate();
        let chosen: Vec<(usize, &Trial)> = chosen.filter(|(_, trial)| trial.by == by).collect();
        let targets: Vec<Target> = chosen.iter().map(|(_, trial)| self.target(trial)).collect();
        let plans = preparation.hosts(&targets, |_| SessionRequest::exec(Vec::new()))?;
        let numbers = chosen.into_iter().map(|(number, _)| number);
        Ok(numbers.zip(plans).collect())
    }

    /// The host with the options of a trial before its own.
    fn target(&self, trial: &Trial) -> Target {
        let usual = EVERY_TRIAL.iter();
        let usual = usual.map(|&(keyword, value)| (keyword.to_owned(), value.to_owned()));
        let mut options: Vec<(String, String)> = trial.options.clone();
        options.extend(usual);
        options.extend(self.target.options.iter().cloned());
        Target {
            options,
            ..self.target.clone()
        }
    }
}

/// Which ssh is meant.
pub(super) fn ssh_program(args: &CiphersArgs) -> OsString {
    args.login.ssh.clone().unwrap_or_else(|| "ssh".into())
}

fn one_at_a_time() -> Limits {
    Limits {
        sessions: 1,
        connects: 1,
        logins: 1,
        ..Limits::default()
    }
}
