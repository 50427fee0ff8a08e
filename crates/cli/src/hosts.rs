//! The hosts of a run: lists, groups, files, programs, inventories, WCOLL, exclusions.

mod dsh;
mod files;
mod inventory;
mod known_names;
mod lists;
mod program;
mod supply;
mod vars_files;

use std::io;
use std::path::PathBuf;

use sshoal_report::last_run_path;
use sshoal_targets::{Target, TargetError, distinct, exclude, pick};

use crate::args::HostArgs;
use crate::retry::{self, RetryError};

use files::MAX_FILE;
pub(crate) use files::contents;
pub(crate) use known_names::{config_names, known_hosts_names};
pub(crate) use lists::Lists;

/// The variable that names pdsh's default host file.
const WCOLL: &str = "WCOLL";

/// Why there is no host list.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HostsError {
    #[error(transparent)]
    Targets(#[from] TargetError),
    #[error(transparent)]
    Retry(#[from] RetryError),
    #[error("cannot read the host list {path}: {error}")]
    Unreadable { path: String, error: io::Error },
    #[error(
        "cannot read the host list {number}: there is no such file; -f names a file of hosts, and -p {number} is how \
         many run at a time"
    )]
    NumberOfHosts { number: String },
    #[error("cannot read the inventory {path}: {error}")]
    Inventory { path: String, error: io::Error },
    #[error(
        "{path} is a directory; --inventory takes a file, or a program that prints one for --list"
    )]
    InventoryDirectory { path: String },
    #[error("the program {program} {why}")]
    Program { program: String, why: String },
    #[error("hosts are read from standard input by -f -, not by -w -")]
    Dash,
    #[error("the host list {path} is larger than {MAX_FILE} octets")]
    TooLarge { path: String },
    #[error(
        "no hosts were named; use -w LIST as in -w 'web[1-40]', -g GROUP, -a, -f FILE, --hosts-from COMMAND, \
         --retry-failed KINDS or the environment variable {WCOLL}"
    )]
    NoneNamed,
    #[error("the list of hosts is empty: nothing to do")]
    Empty,
    #[error("the list of hosts is empty, since -x leaves all of them out: nothing to do")]
    AllExcluded,
    #[error("no host of the last run ended so: nothing to do")]
    NoneToRetry,
}

/// Whether the arguments say which hosts are meant.
pub(crate) fn are_in_arguments(args: &HostArgs) -> bool {
    let by_arguments = [
        args.list.len(),
        args.group.len(),
        args.file.len(),
        args.from.len(),
        args.retry_failed.len(),
    ];
    args.all || by_arguments.iter().sum::<usize>() > 0
}

/// Whether the user said which hosts are meant.
pub(crate) fn are_named(args: &HostArgs) -> bool {
    are_in_arguments(args) || std::env::var_os(WCOLL).is_some()
}

/// All targets of the run, each once, in the order given.
pub(crate) fn targets(args: &HostArgs) -> Result<Vec<Target>, HostsError> {
    if !are_named(args) {
        return Err(HostsError::NoneNamed);
    }
    let chosen = choose(args)?;
    match (chosen.targets.is_empty(), chosen.any_named) {
        (false, _) => Ok(chosen.targets),
        (true, true) => Err(HostsError::AllExcluded),
        (true, false) if args.retry_failed.is_empty() => Err(HostsError::Empty),
        (true, false) => Err(HostsError::NoneToRetry),
    }
}

/// What the arguments choose; none is an answer, too.
pub(crate) struct Chosen {
    /// Each once, in the order given.
    pub(crate) targets: Vec<Target>,
    /// Whether there were any before exclusions.
    any_named: bool,
}

/// The hosts that the arguments, or else WCOLL, choose.
pub(crate) fn choose(args: &HostArgs) -> Result<Chosen, HostsError> {
    let mut lists = Lists::new(args)?;
    let named = named(args, &mut lists)?;
    let named = lists.complete(named);
    let any_named = !named.is_empty();
    let excluded = excluded(args, &mut lists, &named)?;
    let targets = distinct(exclude(named, &excluded));
    let targets = match args.pick {
        Some(count) => pick(targets, count, random),
        None => targets,
    };
    Ok(Chosen { targets, any_named })
}

/// What lists in the form of `-w` name, with the groups and inventories of the hosts, from whom their globs choose.
pub(crate) fn among(
    targets: &[Target],
    named: &[String],
    args: &HostArgs,
) -> Result<Vec<Target>, HostsError> {
    let mut lists = Lists::new(args)?;
    lists.choose_from(targets.to_vec());
    let mut found = Vec::new();
    for list in named {
        found.extend(lists.list(list)?);
    }
    Ok(found)
}

fn named(args: &HostArgs, lists: &mut Lists) -> Result<Vec<Target>, HostsError> {
    let mut targets = Vec::new();
    for list in &args.list {
        targets.extend(lists.list(list)?);
    }
    for groups in &args.group {
        targets.extend(lists.groups(groups)?);
    }
    if args.all {
        targets.extend(lists.all()?);
    }
    for path in &args.file {
        targets.extend(files::read(path)?);
    }
    for command in &args.from {
        targets.extend(files::from_command(command)?);
    }
    if !args.retry_failed.is_empty() {
        let past = retry::targets(args.of.as_deref(), results_path(), &args.retry_failed)?;
        targets.extend(past);
    }
    match std::env::var_os(WCOLL) {
        Some(wcoll) if !are_in_arguments(args) => files::read(&PathBuf::from(wcoll)),
        _ => Ok(targets),
    }
}

/// Whom `-x` and `-X` leave out; their globs choose from the hosts that were named.
fn excluded(
    args: &HostArgs,
    lists: &mut Lists,
    named: &[Target],
) -> Result<Vec<Target>, HostsError> {
    let mut excluded = Vec::new();
    if !args.exclude.is_empty() {
        lists.choose_from(named.to_vec());
    }
    for list in &args.exclude {
        excluded.extend(lists.list(list)?);
    }
    for groups in &args.exclude_group {
        excluded.extend(lists.groups_to_leave_out(groups)?);
    }
    Ok(excluded)
}

fn random() -> u64 {
    let mut octets = [0; 8];
    sshoal_crypto::random(&mut octets);
    u64::from_ne_bytes(octets)
}

/// Where the results of the last run are (XDG_STATE_HOME).
pub(crate) fn results_path() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name);
    last_run_path(
        variable("XDG_STATE_HOME").as_deref(),
        variable("HOME").as_deref(),
    )
}
