//! The flags of `put` and `get`.

use std::convert::Infallible;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, ValueEnum, ValueHint};
use sshoal_net::{CongestionControl, CongestionError};
use sshoal_transfer::{Deletion, Hashing, Method, PatternError, Verify, check_exclude};

use super::owners::Chown;
use crate::args::{ConfigArgs, HostArgs, LoginArgs, PaceArgs};
use crate::rolling::RollingArgs;

/// Exit status of `put` and `get`, in short.
const EXIT_STATUS: &str = "Exit status: 0 everything was copied; 2 wrong usage; 3 a host could not be reached, or not \
    everything was copied; 130 interrupted. See docs/exit-status.md.";

/// `sshoal put`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS)]
pub(crate) struct PutArgs {
    /// Files and folders of this machine, or - for standard input; last of all where they go on the hosts. A folder goes
    /// into the target, and with a slash at its end what is in it does.
    #[arg(value_name = "LOCAL... REMOTE", value_hint = ValueHint::AnyPath)]
    pub(crate) paths: Vec<PathBuf>,
    /// Which of the kernel's congestion controls sends: auto is BBR on long ways, where the kernel has it and lets this account
    /// use it; system the kernel's default; or one by its name.
    #[arg(long, value_name = "auto|system|NAME", value_parser = congestion, default_value = "auto")]
    pub(crate) congestion: Congestion,
    #[command(flatten)]
    pub(crate) options: CopyArgs,
}

/// `--congestion`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Congestion {
    Auto,
    System,
    Named(String),
}

impl Congestion {
    /// What is used in place of the kernel's default.
    pub(crate) fn control(&self) -> Result<Option<CongestionControl>, CongestionError> {
        match self {
            Congestion::Auto => Ok(CongestionControl::automatic()),
            Congestion::System => Ok(None),
            Congestion::Named(name) => CongestionControl::named(name).map(Some),
        }
    }
}

fn congestion(text: &str) -> Result<Congestion, Infallible> {
    Ok(match text {
        "auto" => Congestion::Auto,
        "system" => Congestion::System,
        name => Congestion::Named(name.to_owned()),
    })
}

/// `--method`.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum MethodArg {
    Auto,
    Sftp,
    Tar,
}

impl From<MethodArg> for Method {
    fn from(method: MethodArg) -> Method {
        match method {
            MethodArg::Auto => Method::Auto,
            MethodArg::Sftp => Method::Sftp,
            MethodArg::Tar => Method::Tar,
        }
    }
}

/// `sshoal get`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS)]
pub(crate) struct GetArgs {
    /// Files, folders and patterns on the hosts; last of all the folder of this machine that gets a folder for each host,
    /// or - for standard output.
    #[arg(value_name = "REMOTE... LOCALDIR", value_hint = ValueHint::AnyPath)]
    pub(crate) paths: Vec<OsString>,
    #[command(flatten)]
    pub(crate) options: CopyArgs,
}

/// `-u`, where no command is run.
const TIMEOUT: &str =
    "Seconds for the files of each host; without it, or with 0, as long as it takes";

/// What both have.
#[derive(Debug, Args)]
#[command(
    // -p and --exclude are what users of cp and rsync expect; what `run` has under these names is long here.
    mut_arg("exclude", |arg| arg.long("exclude-hosts")),
    mut_arg("parallel", |arg| arg.short(None)),
    mut_arg("command_timeout", |arg| arg.help(TIMEOUT))
)]
pub(crate) struct CopyArgs {
    /// Folders, too, with all that is in them.
    #[arg(short = 'r', long)]
    pub(crate) recursive: bool,
    /// Keep modes and times; what has the same size and time already is then not copied again.
    #[arg(short = 'p', long)]
    pub(crate) preserve: bool,
    /// Keep user and group as well, by name where the other side knows it, else by number. Only root gives files away.
    #[arg(long, conflicts_with = "chown")]
    pub(crate) owner: bool,
    /// With --owner: by number alone.
    #[arg(long)]
    pub(crate) numeric_ids: bool,
    /// Give all that is copied to this user and group of the side that it goes to: names or numbers, one of them or both.
    #[arg(long, value_name = "USER[:GROUP]", value_parser = Chown::of)]
    pub(crate) chown: Option<Chown>,
    /// Tell what is there already by SHA-256 of both ends, not by size and time: files of equal size are hashed, and those
    /// with equal hashes not copied again.
    #[arg(long)]
    pub(crate) checksum: bool,
    /// Hash what has arrived at both ends before it is put in place: always (also without WHEN), on hosts that can (auto), or
    /// never.
    #[arg(long, value_name = "WHEN", default_value = "never", default_missing_value = "always", num_args = 0..=1, require_equals = true)]
    pub(crate) verify: VerifyArg,
    /// Leave out of folders what has such a name or, with a slash in it, such a path. May be given several times.
    #[arg(id = "exclude_files", long = "exclude", value_name = "GLOB", value_parser = OsStringValueParser::new().try_map(pattern))]
    pub(crate) exclude: Vec<OsString>,
    /// In folders that are copied, delete what the sources do not have, once everything is in place: not what --exclude leaves
    /// out, and nothing if anything failed. With --dry-run it is only shown.
    #[arg(long, requires = "recursive")]
    pub(crate) delete: bool,
    /// How small files go: in batches that tar on the host unpacks or makes, or each by itself over SFTP. auto takes tar for
    /// many files; where a host does not run it, everything goes over SFTP whatever is said here.
    #[arg(long, value_name = "HOW", default_value = "auto")]
    pub(crate) method: MethodArg,
    /// Octets a second for all hosts together: a number, or one with K, M or G behind it (1,024 each).
    #[arg(long, value_name = "RATE", value_parser = octets)]
    pub(crate) limit: Option<u64>,
    /// Connections to each host that carry the same transfer, the first included: a number, or auto for as many as gain.
    #[arg(long, value_name = "N|auto", value_parser = lanes, default_value = "auto")]
    pub(crate) lanes: Lanes,
    /// Write to a block device where that is the target: what it holds is lost.
    #[arg(long)]
    pub(crate) yes: bool,
    /// Log in to all hosts, also to those whose connections `sshoal up` keeps (docs/warm.md).
    #[arg(long)]
    pub(crate) no_pool: bool,
    /// Show what would be done, and do nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) hosts: HostArgs,
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
    #[command(flatten)]
    pub(crate) login: LoginArgs,
    #[command(flatten)]
    pub(crate) pace: PaceArgs,
    #[command(flatten)]
    pub(crate) rolling: RollingArgs,
    #[command(flatten)]
    pub(crate) shown: ShownArgs,
}

impl CopyArgs {
    /// What becomes of what is surplus.
    pub(crate) fn deletion(&self) -> Deletion {
        match (self.delete, self.dry_run) {
            (false, _) => Deletion::None,
            (true, true) => Deletion::Told,
            (true, false) => Deletion::Done,
        }
    }

    /// What hashes are used for.
    pub(crate) fn hashing(&self) -> Hashing {
        Hashing {
            compares: self.checksum,
            verifies: match self.verify {
                VerifyArg::Auto => Verify::Auto,
                VerifyArg::Always => Verify::Always,
                VerifyArg::Never => Verify::Never,
            },
        }
    }
}

/// `--verify`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum VerifyArg {
    Auto,
    Always,
    Never,
}

/// What is shown.
#[derive(Debug, Args)]
#[command(next_help_heading = "What is shown")]
pub(crate) struct ShownArgs {
    /// One JSON object a line for each host (docs/json.md).
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress, no summary. The exit status tells of failures.
    #[arg(short = 'q', long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Show a line for each host that ends; -vv shows the SSH messages too, -vvv all states.
    #[arg(short = 'v', long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

/// `--lanes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lanes {
    /// As many as gain.
    Auto,
    /// So many, if the host lets them in.
    Number(usize),
}

impl Lanes {
    pub(crate) fn number(self) -> Option<usize> {
        match self {
            Lanes::Auto => None,
            Lanes::Number(number) => Some(number),
        }
    }
}

fn lanes(text: &str) -> Result<Lanes, String> {
    match (text, text.parse()) {
        ("auto", _) => Ok(Lanes::Auto),
        (_, Ok(number @ 1..=128)) => Ok(Lanes::Number(number)),
        _ => Err("give a number from 1 to 128, or auto".to_owned()),
    }
}

/// `--exclude`: a pattern that cannot be read, or that is empty, of a variable that is not set, would leave nothing out.
fn pattern(text: OsString) -> Result<OsString, PatternError> {
    check_exclude(text.as_bytes()).map(|()| text)
}

fn octets(text: &str) -> Result<u64, String> {
    let (number, unit) = match text.trim_end_matches(['b', 'B', 'i']) {
        text if text.ends_with(['k', 'K']) => (&text[..text.len() - 1], 1 << 10),
        text if text.ends_with(['m', 'M']) => (&text[..text.len() - 1], 1 << 20),
        text if text.ends_with(['g', 'G']) => (&text[..text.len() - 1], 1 << 30),
        text => (text, 1),
    };
    let number: f64 = number
        .trim()
        .parse()
        .map_err(|_| format!("{text:?} is no number of octets; write for example 10M"))?;
    let octets = number * f64::from(unit);
    match (1.0..1e18).contains(&octets) {
        true => Ok(octets as u64),
        false if octets < 1.0 => Err("it must be at least 1 octet a second".to_owned()),
        false => Err("it must be less than 10^18 octets a second".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_a_number_or_found_out() {
        assert_eq!(lanes("auto"), Ok(Lanes::Auto));
        assert_eq!(lanes("12").map(Lanes::number), Ok(Some(12)));
        for text in ["", "0", "129", "many", "-1"] {
            assert!(lanes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rates_are_numbers_with_units() {
        for (text, number) in [
            ("1", 1),
            ("10k", 10_240),
            ("1.5M", 1_572_864),
            ("2GiB", 2 << 30),
            ("3 MB", 3 << 20),
        ] {
            assert_eq!(octets(text), Ok(number), "{text}");
        }
        for text in ["", "M", "-1", "0", "1T", "nan", "1e18"] {
            assert!(octets(text).is_err(), "{text}");
        }
    }
}
