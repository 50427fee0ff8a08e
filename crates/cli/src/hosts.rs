//! The hosts of a run: lists, files, standard input, WCOLL, exclusions.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sshoal_report::{LastRunError, last_run_path};
use sshoal_targets::{Item, Target, TargetError, distinct, exclude, parse_file, parse_list};

use crate::args::HostArgs;
use crate::retry;

/// The variable that names pdsh's default host file.
const WCOLL: &str = "WCOLL";
/// Largest host file, octets: a million names fit.
const MAX_FILE: u64 = 256 * 1024 * 1024;

/// Why there is no host list.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HostsError {
    #[error(transparent)]
    Targets(#[from] TargetError),
    #[error(transparent)]
    LastRun(#[from] LastRunError),
    #[error("cannot read the host list {path}: {error}")]
    Unreadable { path: String, error: io::Error },
    #[error(
        "cannot read the host list {number}: there is no such file; -f names a file of hosts, and -p {number} is how \
         many run at a time"
    )]
    NumberOfHosts { number: String },
    #[error("hosts are read from standard input by -f -, not by -w -")]
    Dash,
    #[error("the host list {path} is larger than {MAX_FILE} octets")]
    TooLarge { path: String },
    #[error("{item} cannot be used in a host list")]
    Unsupported { item: String },
    #[error(
        "no hosts were named; use -w LIST as in -w 'web[1-40]', -f FILE, --retry-failed KINDS or the environment \
         variable {WCOLL}"
    )]
    NoneNamed,
    #[error("the list of hosts is empty: nothing to do")]
    Empty,
    #[error("the list of hosts is empty, since -x leaves all of them out: nothing to do")]
    AllExcluded,
    #[error("no host of the last run ended so: nothing to do")]
    NoneToRetry,
}

/// Whether the user said which hosts are meant.
pub(crate) fn are_named(args: &HostArgs) -> bool {
    let by_arguments = [args.list.len(), args.file.len(), args.retry_failed.len()];
    by_arguments.iter().sum::<usize>() > 0 || std::env::var_os(WCOLL).is_some()
}

/// All targets of the run, each once, in the order given.
pub(crate) fn targets(args: &HostArgs) -> Result<Vec<Target>, HostsError> {
    let mut targets = Vec::new();
    for list in &args.list {
        targets.extend(expand(list)?);
    }
    for path in &args.file {
        targets.extend(read(path)?);
    }
    if !args.retry_failed.is_empty() {
        targets.extend(retry::targets(results_path(), &args.retry_failed)?);
    } else if args.list.is_empty() && args.file.is_empty() {
        let wcoll = std::env::var_os(WCOLL).ok_or(HostsError::NoneNamed)?;
        targets.extend(read(&PathBuf::from(wcoll))?);
    }
    let mut excluded = Vec::new();
    for list in &args.exclude {
        excluded.extend(expand(list)?);
    }
    if targets.is_empty() {
        return Err(match args.retry_failed.is_empty() {
            true => HostsError::Empty,
            false => HostsError::NoneToRetry,
        });
    }
    let targets = distinct(exclude(targets, &excluded));
    match targets.is_empty() {
        true => Err(HostsError::AllExcluded),
        false => Ok(targets),
    }
}

/// Where the results of the last run are (XDG_STATE_HOME).
pub(crate) fn results_path() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name);
    last_run_path(
        variable("XDG_STATE_HOME").as_deref(),
        variable("HOME").as_deref(),
    )
}

fn expand(list: &str) -> Result<Vec<Target>, HostsError> {
    if list == "-" {
        return Err(HostsError::Dash);
    }
    let mut targets = Vec::new();
    for item in parse_list(list)? {
        match item {
            Item::Target(target) => targets.push(target),
            Item::File(path) => targets.extend(read(Path::new(&path))?),
            other => {
                return Err(HostsError::Unsupported {
                    item: format!("{other:?}"),
                });
            }
        }
    }
    Ok(targets)
}

fn read(path: &Path) -> Result<Vec<Target>, HostsError> {
    let label = path.display().to_string();
    let unreadable = |error: io::Error| match label.parse::<u32>() {
        // pdsh and clush have -f for what is -p here.
        Ok(_) if error.kind() == io::ErrorKind::NotFound => HostsError::NumberOfHosts {
            number: label.clone(),
        },
        _ => HostsError::Unreadable {
            path: label.clone(),
            error,
        },
    };
    let mut contents = Vec::new();
    if path == Path::new("-") {
        io::stdin()
            .lock()
            .take(MAX_FILE + 1)
            .read_to_end(&mut contents)
            .map_err(unreadable)?;
    } else {
        let file = fs::File::open(path).map_err(unreadable)?;
        file.take(MAX_FILE + 1)
            .read_to_end(&mut contents)
            .map_err(unreadable)?;
    }
    if contents.len() as u64 > MAX_FILE {
        return Err(HostsError::TooLarge { path: label });
    }
    let targets = parse_file(&label, &contents)?;
    // Users and ports are fields of their own; no other option reaches a connection yet.
    match targets.iter().find_map(|target| target.options.first()) {
        Some((keyword, _)) => Err(HostsError::Unsupported {
            item: format!("the option {keyword} of {label}"),
        }),
        None => Ok(targets),
    }
}
