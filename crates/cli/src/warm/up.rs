//! `sshoal up`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::thread;

use sshoal_fleet::RetryPolicy;
use sshoal_net::{HostPlan, Preparation, RunPlan, Work, server_cache_path};
use sshoal_openssh::Surroundings;
use sshoal_pool::{Ask, Folder, Member, Pool, ask};
use sshoal_proto::SessionRequest;
use sshoal_targets::labels;

use super::args::UpArgs;
use super::background;
use super::observer::Watch;
use crate::args::PaceArgs;
use crate::observer::cut_short;
use crate::say::say;
use crate::{fan_out, hosts, prompt, run, transport};

/// A host could not be logged in to (docs/exit-status.md).
const FAILED: u8 = 3;

/// Why nobody is logged in to.
#[derive(Debug, thiserror::Error)]
enum UpError {
    #[error(
        "connections are kept already, by process {pid} for {hosts}; one process keeps them all: `sshoal down` ends it, and then \
         `sshoal up` may name these and the new ones"
    )]
    IsUp { pid: u32, hosts: String },
    #[error("connections are kept already, by a process that does not say by which")]
    IsLocked,
    #[error(
        "{label}: goes by ssh ({why}), whose connections sshoal cannot keep; leave the host out (-x), and use ControlPersist for it"
    )]
    BySsh { label: String, why: String },
    #[error(
        "{wanted} hosts are more than the {allowed} that this process may have open files for (ulimit -n)"
    )]
    TooMany { wanted: usize, allowed: u32 },
}

/// Logs in and keeps the connections; returns the exit status.
pub(crate) fn up(args: &UpArgs) -> Result<u8, Box<dyn std::error::Error>> {
    let folder = Folder::of_user()?;
    if args.ssh_config {
        print_ssh_config(&folder)?;
        return Ok(0);
    }
    if !args.foreground && !args.detach {
        return Ok(background::start()?);
    }
    let mut named = args.hosts.clone();
    named.list.extend(args.lists.iter().cloned());
    let targets = hosts::targets(&named)?;
    let Some(lock) = folder.lock()? else {
        return Err(is_up(&folder).into());
    };
    let mut preparation = Preparation::new(&run::ssh_options(&args.config, &args.login))?;
    let mut plans = preparation.hosts(&targets, |_| SessionRequest::exec(Vec::new()))?;
    transport::check(&args.login, &mut plans)?;
    run::read_known_hosts(&mut preparation, &mut plans, &args.login, args.verbose)?;
    let members = members(&folder, &plans, labels(&targets))?;
    let labels = members.iter().map(|member| member.label.clone()).collect();
    let pool = Pool::new(folder, lock, members, args.idle);
    pool.answer_questions()?;
    watch(args, pool.clone())?;
    let plan = plan(args, &pool, preparation, plans)?;
    let watch = Watch {
        pool: pool.clone(),
        labels,
    };
    let end = sshoal_net::run(plan, watch)?;
    pool.clear();
    Ok(match cut_short(end.interruption) {
        Some(cut) => cut.exit_status(),
        None if pool.has_failures() => FAILED,
        None => 0,
    })
}

/// Says how many hosts are kept, and leaves the terminal, once that is known.
fn watch(args: &UpArgs, pool: Pool) -> std::io::Result<()> {
    let (detaches, is_quiet) = (args.detach, args.quiet);
    thread::Builder::new()
        .name("settling".to_owned())
        .spawn(move || {
            let (up, failed) = pool.wait_until_settled();
            if up > 0 && !is_quiet {
                say(match failed {
                    0 => format!("{up} up"),
                    failed => format!("{up} up, {failed} failed"),
                });
            }
            if up > 0 && detaches {
                let status = if failed > 0 { FAILED } else { 0 };
                if let Err(error) = background::leave(status) {
                    say(format!("cannot go to the background: {error}"));
                }
            }
        })?;
    Ok(())
}

fn is_up(folder: &Folder) -> UpError {
    match ask(folder, &Ask::Status) {
        Ok(status) => UpError::IsUp {
            pid: status.pid,
            hosts: match status.hosts.len() {
                1 => "1 host".to_owned(),
                hosts => format!("{hosts} hosts"),
            },
        },
        Err(_) => UpError::IsLocked,
    }
}

fn members(
    folder: &Folder,
    plans: &[HostPlan],
    labels: Vec<String>,
) -> Result<Vec<Member>, Box<dyn std::error::Error>> {
    let labelled = plans.iter().zip(labels);
    labelled
        .map(|(plan, label)| match plan {
            HostPlan::Native(_) => {
                let socket = folder.socket(plan.user(), plan.name(), plan.port())?;
                Ok(Member { label, socket })
            }
            HostPlan::OpenSsh(plan) => Err(UpError::BySsh {
                label,
                why: plan.why.clone(),
            }
            .into()),
        })
        .collect()
}

fn plan(
    args: &UpArgs,
    pool: &Pool,
    preparation: Preparation,
    mut plans: Vec<HostPlan>,
) -> Result<RunPlan, Box<dyn std::error::Error>> {
    let wanted = plans.len();
    let pace = PaceArgs {
        parallel: Some(u32::try_from(wanted)?),
        ..PaceArgs::default()
    };
    let password = run::password(&args.login, wanted)?;
    let deadlines = run::deadlines(&args.login, &pace, &mut plans);
    let jumps = preparation.into_jumps();
    let limits = run::limits(&args.login, &pace, &plans, jumps.len(), &deadlines);
    if (limits.sessions as usize) < wanted {
        let allowed = limits.sessions;
        return Err(UpError::TooMany { wanted, allowed }.into());
    }
    Ok(RunPlan {
        limits,
        deadlines,
        retry: RetryPolicy::default(),
        password,
        seed: fan_out::seed(),
        input: None,
        asks: prompt::is_possible(),
        server_cache: server_cache_path(),
        ssh: Surroundings::default(),
        workers: args.login.workers.unwrap_or_else(|| run::workers(wanted)),
        work: Work::Sessions(plans),
        jumps,
        transfer: None,
        trial: None,
        timing: None,
        rolling: None,
        keeper: Some(Arc::new(pool.clone())),
        journal: None,
    })
}

/// `--ssh-config`.
fn print_ssh_config(folder: &Folder) -> std::io::Result<()> {
    use std::io::Write;
    let path = folder.control_path();
    let mut out = std::io::stdout().lock();
    out.write_all(b"# Hosts that `sshoal up` keeps; all others as before.\nHost *\n    ControlMaster no\n    ControlPath ")?;
    out.write_all(&quoted(&path))?;
    out.write_all(b"\n")
}

/// As ssh_config(5) has arguments with blanks.
fn quoted(path: &OsStr) -> Vec<u8> {
    let octets = path.as_bytes();
    match octets.iter().any(|octet| b" \t'\\".contains(octet)) {
        false => octets.to_vec(),
        true => {
            let escaped = octets.iter().flat_map(|octet| match octet {
                b'"' | b'\\' => vec![b'\\', *octet],
                octet => vec![*octet],
            });
            [b"\"".to_vec(), escaped.collect(), b"\"".to_vec()].concat()
        }
    }
}
