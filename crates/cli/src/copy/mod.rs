//! `sshoal put` and `sshoal get`: from arguments to a plan, from a plan to an exit status.

mod args;
mod get;
mod owners;
mod part_tag;
mod put;

use std::io;
use std::path::Path;
use std::thread;
use std::time::Instant;

use sshoal_fleet::RetryPolicy;
use sshoal_net::{
    HostPlan, NativePlan, Preparation, RollingPlan, RunPlan, Telling, TransferPlan, Way, Work,
    server_cache_path,
};
use sshoal_openssh::Surroundings;
use sshoal_proto::SessionRequest;
use sshoal_report::Host;
use sshoal_transfer::Deletion;

use crate::args::OutputArgs;
use crate::dry_run::{self, DryRun};
use crate::fan_out::{self, Showing};
use crate::prompt;
use crate::rolling::Batched;
use crate::run;
use crate::transport;
use crate::warm::Kept;

use args::CopyArgs;
pub(crate) use args::{GetArgs, PutArgs};
pub(crate) use get::get;
pub(crate) use put::put;

/// What was typed in place of a command line that can be carried out.
#[derive(Debug, thiserror::Error)]
enum CopyError {
    #[error("{missing}; type for example: {example}")]
    Missing {
        missing: &'static str,
        example: &'static str,
    },
    #[error("{0} and - both read standard input; put one of them into a file")]
    StandardInput(&'static str),
    #[error("standard input, -, goes into one file: name it, and nothing else to send")]
    StandardInputAlone,
    #[error("--delete is about folders, and none is among what is sent")]
    DeleteWithoutFolder,
    #[error("--delete would empty the whole host but for what is sent; name a folder below /")]
    DeleteAll,
    #[error("- is for the contents of files, and -r for folders; they do not go together")]
    FoldersToOutput,
    #[error(
        "--checksum and --verify are for files that are put in place; - prints them as they come"
    )]
    HashesOfOutput,
    #[error("{} is there, and is no folder; get puts a folder for each host into it", .0.display())]
    NoFolder(std::path::PathBuf),
    #[error("{} is not there, and nothing but a device is written to in /dev; look for its name (lsblk)", .0.display())]
    NoDevice(std::path::PathBuf),
    #[error("{} is a block device, and writing it destroys what it holds; add --yes if that is what you want", .0.display())]
    DeviceNotConfirmed(std::path::PathBuf),
    #[error("{} is a block device: it takes the contents of one file, of one host, without -r", .0.display())]
    DeviceForOne(std::path::PathBuf),
    #[error("a block device is not read back: leave --checksum and --verify out")]
    HashesOfDevice,
    #[error("standard input has no owner to be kept; --chown gives the file one")]
    OwnerOfInput,
    #[error("--owner and --chown are for files that are put in place; - prints them as they come")]
    OwnersOfOutput,
    #[error("a block device's owner is not changed: leave --owner and --chown out")]
    OwnersOfDevice,
    #[error("this machine has no {kind} {name:?}: give a number in place of the name")]
    NoAccount { kind: &'static str, name: String },
    #[error("only root gives files to {0} here: run it as root, or leave --chown out")]
    NotRoot(String),
    #[error("standard input cannot be sent: {0}")]
    Unreadable(io::Error),
    #[error("standard output cannot take what is fetched: {0}")]
    Unwritable(io::Error),
    #[error(
        "{label}: goes by ssh ({why}), by which sshoal does not copy, and so does every other host; change that, or use scp"
    )]
    BySsh { label: String, why: String },
}

/// Hosts, resolved and ready but for what is copied.
struct Ready<'a> {
    args: &'a CopyArgs,
    preparation: Preparation,
    plans: Vec<HostPlan>,
    hosts: Vec<Host>,
    /// Those that are not logged in to.
    kept: Kept,
    rolling: Option<RollingPlan>,
    since: Instant,
}

impl<'a> Ready<'a> {
    /// `wants_own`: whether something is wanted that only a connection of its own can have.
    fn new(
        args: &'a CopyArgs,
        batched: &Batched,
        wants_own: bool,
        since: Instant,
    ) -> Result<Self, Box<dyn std::error::Error>> {
        let targets = &batched.targets;
        let mut preparation = Preparation::new(&run::ssh_options(&args.config, &args.login))?;
        let mut plans = preparation.hosts(targets, |_| SessionRequest::exec(Vec::new()))?;
        transport::check(&args.login, &mut plans)?;
        let natives = plans.iter_mut().filter_map(HostPlan::native_mut);
        natives.for_each(NativePlan::transfers);
        // One that goes by ssh among others fails by itself, in its turn.
        if let Some(plan) = plans.first().and_then(HostPlan::openssh)
            && plans.iter().all(|plan| plan.native().is_none())
        {
            let (label, why) = (plan.label.clone(), plan.why.clone());
            return Err(CopyError::BySsh { label, why }.into());
        }
        run::read_known_hosts(
            &mut preparation,
            &mut plans,
            &args.login,
            args.shown.verbose,
        )?;
        let mut hosts = run::described(targets, &plans);
        // A password is for logging in.
        let wants_own = wants_own || args.no_pool || args.login.ask_pass;
        let kept = Kept::of_copy(wants_own, &plans, preparation.jumps());
        kept.mark(&mut hosts);
        Ok(Ready {
            args,
            preparation,
            plans,
            hosts,
            kept,
            rolling: batched.plan.clone(),
            since,
        })
    }

    /// `--dry-run`: what would be done, a line a host; returns the exit status if that is all.
    fn dry_run(&self, what: impl Fn(usize) -> Vec<u8>) -> Option<u8> {
        match (
            self.args.dry_run,
            self.args.deletion(),
            self.args.shown.json,
        ) {
            (false, ..) => None,
            // What would be deleted is seen on the hosts, or beside what they have.
            (true, Deletion::Told, true) => None,
            (true, Deletion::Told, false) => Some(self.show(what)).filter(|status| *status != 0),
            (true, ..) => Some(self.show(what)),
        }
    }

    /// What would be done, a line a host.
    fn show(&self, what: impl Fn(usize) -> Vec<u8>) -> u8 {
        let lines = self.hosts.iter().zip(&self.plans).enumerate();
        let lines = lines.map(|(number, (host, plan))| DryRun {
            host,
            name: Some(plan.name()),
            place: run::place(host, plan),
            what: match plan.openssh() {
                Some(_) => b"nothing is copied: it goes by ssh".to_vec(),
                None => what(number),
            },
        });
        dry_run::print(self.args.shown.json, self.rolling.as_ref(), lines)
    }

    fn carry_out(self, way: Way, raw: bool) -> Result<u8, Box<dyn std::error::Error>> {
        let args = self.args;
        let mut plans = self.plans;
        let password = run::password(&args.login, plans.len())?;
        let deadlines = run::deadlines(&args.login, &args.pace, &mut plans);
        let jumps = self.preparation.into_jumps();
        let workers = args.login.workers.unwrap_or_else(|| workers(plans.len()));
        let (limit, lanes) = (args.limit, args.lanes.number());
        let mut transfer = TransferPlan::new(way, plans.len(), limit, lanes);
        transfer.telling = match args.deletion() {
            Deletion::Told => Telling::WouldDelete,
            Deletion::Done if args.shown.verbose > 0 => Telling::Deleted,
            Deletion::Done | Deletion::None => Telling::Nothing,
        };
        let plan = RunPlan {
            limits: run::limits(&args.login, &args.pace, &plans, jumps.len(), &deadlines),
            deadlines,
            retry: RetryPolicy::default(),
            password,
            seed: fan_out::seed(),
            input: None,
            asks: prompt::is_possible(),
            server_cache: server_cache_path(),
            ssh: Surroundings::default(),
            workers,
            work: Work::Sessions(plans),
            jumps,
            transfer: Some(transfer),
            kill: None,
            trial: None,
            timing: None,
            rolling: self.rolling,
            keeper: None,
            journal: None,
            warm: self.kept.sharing(),
        };
        let showing = Showing {
            output: &output(args),
            tty: false,
            raw,
            since: self.since,
            forgives: args.rolling.forgives(),
        };
        showing.carry_out(plan, self.hosts)
    }
}

/// A thread a core: unlike logins, contents keep them busy.
fn workers(hosts: usize) -> usize {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    hosts.clamp(1, cores)
}

/// As a command's output, of which there is only what has failed, or the contents of files.
fn output(args: &CopyArgs) -> OutputArgs {
    OutputArgs {
        lines: false,
        gather: false,
        diff: false,
        json: args.shown.json,
        outdir: None,
        quiet: args.shown.quiet,
        verbose: args.shown.verbose,
        largest_status: false,
        as_step: false,
    }
}

/// Standard input has one reader.
fn check_standard_input(args: &CopyArgs) -> Result<(), CopyError> {
    let is_ours = |path: &std::path::PathBuf| path.as_path() == Path::new("-");
    match args.hosts.file.iter().any(is_ours) {
        true => Err(CopyError::StandardInput("-f -")),
        false => Ok(()),
    }
}

/// `3 files`, `1 file`.
fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
