//! Hosts that go by the installed ssh: what of a run they cannot have, and what their ssh's are started with.

use std::thread;
use std::time::Duration;

use sshoal_fleet::Deadlines;
use sshoal_net::{HostPlan, Secret, SshPlan};
use sshoal_openssh::{AskPass, Surroundings, check_words};
use sshoal_report::Way;

use crate::args::LoginArgs;

/// The program, unless `--ssh` says otherwise.
const SSH: &str = "ssh";
/// Logins of ssh's in progress for each core, unless `--logins` says otherwise (docs/adr/0009).
const LOGINS_A_CORE: u32 = 4;
/// Seconds that every ssh takes for a time: a day.
const LONGEST_TIMEOUT: f64 = 24.0 * 60.0 * 60.0;

/// How many ssh's may log in at a time.
pub(crate) fn logins_at_a_time() -> u32 {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    u32::try_from(cores)
        .unwrap_or(u32::MAX)
        .saturating_mul(LOGINS_A_CORE)
}

/// How a host is reached, for the report.
pub(crate) fn way(plan: &HostPlan) -> Way {
    match plan {
        HostPlan::Native(_) => Way {
            transport: "native",
            why: None,
            is_warm: false,
        },
        HostPlan::OpenSsh(plan) => Way {
            transport: "openssh",
            why: Some(plan.why.clone()),
            is_warm: false,
        },
    }
}

/// Refuses what hosts that go by ssh cannot have, naming the first of them; and tells ssh's of the password.
pub(crate) fn check(args: &LoginArgs, plans: &mut [HostPlan]) -> Result<(), String> {
    let by_ssh = plans.iter().any(|plan| plan.openssh().is_some());
    if !args.ssh_word.is_empty() && !by_ssh {
        return Err(
            "--ssh-word is for hosts that go by ssh, and none does; --transport openssh has all of them go by it".to_owned(),
        );
    }
    check_words(&args.ssh_word).map_err(|error| format!("--ssh-word: {error}"))?;
    if !args.ask_pass {
        return Ok(());
    }
    let by_ssh = plans.iter_mut().filter_map(HostPlan::openssh_mut);
    for plan in by_ssh.filter(|plan| plan.takes_password) {
        if plan.is_proxied {
            return Err(format!(
                "{}: --ask-pass is not possible for a host that goes by ssh ({}) through a jump host or a ProxyCommand: \
                 those would be given the password, too",
                plan.label, plan.why
            ));
        }
        plan.line.has_password = true;
    }
    Ok(())
}

/// Tells an ssh how long connecting may take: its `own` time, or what never ends before the run's deadlines do. ssh counts
/// the server's identification as part of it (ssh_config(5), ConnectTimeout), and the run as part of the login.
pub(crate) fn limit_connecting(plan: &mut SshPlan, own: Option<Duration>, deadlines: &Deadlines) {
    let all = deadlines.connect.zip(deadlines.login);
    let limit = own.or(all.map(|(connect, login)| connect.saturating_add(login)));
    if let Some(limit) = limit {
        let seconds = limit.as_secs_f64().ceil().clamp(1.0, LONGEST_TIMEOUT);
        plan.line
            .overrides
            .push(format!("ConnectTimeout={seconds}"));
    }
}

/// What ssh's are started with.
pub(crate) fn surroundings(
    args: &LoginArgs,
    plans: &[HostPlan],
    password: Option<&Secret>,
) -> Result<Surroundings, String> {
    let has_need = plans.iter().any(|plan| plan.openssh().is_some());
    let ask_pass = password.filter(|_| has_need).map(|password| {
        let program = std::env::current_exe()?;
        AskPass::new(program, password.expose())
    });
    let ask_pass = ask_pass.transpose();
    Ok(Surroundings {
        program: args.ssh.clone().unwrap_or_else(|| SSH.into()),
        ask_pass: ask_pass
            .map_err(|error| format!("--ask-pass: no place for the password: {error}"))?,
    })
}
