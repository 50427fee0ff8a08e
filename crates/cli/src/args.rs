//! The command line: the one definition behind parsing, `--help`, man pages and completions.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::retry::RetryKind;

/// SSH for a whole shoal of hosts.
#[derive(Debug, Parser)]
#[command(
    name = "sshoal",
    version,
    about,
    max_term_width = 100,
    disable_help_subcommand = true,
    args_override_self = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a command on many hosts.
    Run(Box<RunArgs>),
    /// Print a shell's completions.
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page (troff).
    #[command(hide = true)]
    Man,
}

/// `sshoal run`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 all hosts succeeded; 1 a command failed somewhere; 2 wrong usage; \
    3 a host could not be reached or failed otherwise; 130 interrupted. See docs/exit-status.md."
)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) hosts: HostArgs,
    #[command(flatten)]
    pub(crate) ssh: SshArgs,
    #[command(flatten)]
    pub(crate) pace: PaceArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// Standard input for the command on every host: a file, or - for our own. Without it: nothing.
    #[arg(long, value_name = "FILE")]
    pub(crate) stdin: Option<PathBuf>,
    /// Run a local script; what follows are its arguments. No file is left on the hosts.
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
    /// Leave %h, %u, %p and %n alone.
    #[arg(long)]
    pub(crate) literal: bool,
    /// Run as root by sudo; its password is asked for once.
    #[arg(long)]
    pub(crate) sudo: bool,
    /// A terminal for the command; with a single host only.
    #[arg(short = 't', long, conflicts_with_all = ["stdin", "sudo", "gather", "diff", "json", "outdir"])]
    pub(crate) tty: bool,
    /// Show what would be done, and do nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// The command. %h, %u, %p and %n stand for host, user, port and the host's name as given; %%h is a plain %h.
    #[arg(
        trailing_var_arg = true,
        required_unless_present = "script",
        value_name = "COMMAND"
    )]
    pub(crate) command: Vec<OsString>,
}

/// Which hosts.
#[derive(Debug, Args)]
pub(crate) struct HostArgs {
    /// Hosts: names, ranges as in web[1-40], user@host:port, ^file; comma separated.
    #[arg(short = 'w', long = "hosts", value_name = "LIST")]
    pub(crate) list: Vec<String>,
    /// A file with a host a line; - is standard input.
    #[arg(short = 'f', long = "hosts-file", value_name = "FILE")]
    pub(crate) file: Vec<PathBuf>,
    /// The hosts of the last run that ended so: failure kinds, comma separated, not-started, or all (but those whose
    /// command may have run).
    #[arg(long, value_name = "KINDS", value_delimiter = ',', conflicts_with_all = ["list", "file"])]
    pub(crate) retry_failed: Vec<RetryKind>,
    /// Hosts to leave out, in the form of -w.
    #[arg(short = 'x', long = "exclude", value_name = "LIST")]
    pub(crate) exclude: Vec<String>,
}

/// How to reach them: ssh's own flags.
#[derive(Debug, Args)]
pub(crate) struct SshArgs {
    /// The user to log in as.
    #[arg(short = 'l', long = "login", value_name = "USER")]
    pub(crate) user: Option<String>,
    /// A private key file; may be given several times.
    #[arg(short = 'i', long = "identity", value_name = "FILE")]
    pub(crate) identity: Vec<PathBuf>,
    /// The ssh_config to read in place of ~/.ssh/config and /etc/ssh/ssh_config; "none" for none.
    #[arg(short = 'F', long = "config", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Ask once for the password of the account, and use it on every host that takes one.
    #[arg(long)]
    pub(crate) ask_pass: bool,
    /// An ssh_config option, as in ssh -o.
    #[arg(short = 'o', long = "option", value_name = "KEY=VALUE")]
    pub(crate) option: Vec<String>,
}

/// How many at a time, and how long.
#[derive(Debug, Args)]
pub(crate) struct PaceArgs {
    /// Hosts at a time.
    #[arg(short = 'p', long = "parallel", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) parallel: Option<u32>,
    /// Logins in progress at a time.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) logins: Option<u32>,
    /// The least time between two starts, in milliseconds.
    #[arg(short = 'd', long, value_name = "MS", default_value_t = 0)]
    pub(crate) delay: u64,
    /// Seconds for a host's TCP connection (ConnectTimeout).
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) connect_timeout: Option<Duration>,
    /// Seconds for a host's login.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) login_timeout: Option<Duration>,
    /// Seconds for the command on each host; without it, as long as it takes.
    #[arg(short = 'u', long = "timeout", value_name = "SECONDS", value_parser = seconds)]
    pub(crate) command_timeout: Option<Duration>,
    /// Threads to work with.
    #[arg(long, value_name = "N", hide = true)]
    pub(crate) workers: Option<usize>,
}

/// What is shown.
#[derive(Debug, Args)]
pub(crate) struct OutputArgs {
    /// Gather identical output of several hosts under their folded names.
    #[arg(short = 'b', long = "gather", conflicts_with_all = ["json", "diff"])]
    pub(crate) gather: bool,
    /// Show the most common output, and how the others differ.
    #[arg(long, conflicts_with = "json")]
    pub(crate) diff: bool,
    /// One JSON object a line for each host (docs/json.md).
    #[arg(long)]
    pub(crate) json: bool,
    /// Write each host's output to DIR/HOST.out and DIR/HOST.err.
    #[arg(long, value_name = "DIR")]
    pub(crate) outdir: Option<PathBuf>,
    /// Only output and failures: no progress, no summary of a clean run.
    #[arg(short = 'q', long)]
    pub(crate) quiet: bool,
    /// Show more; twice for a protocol trace.
    #[arg(short = 'v', long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Exit with the largest status of any host.
    #[arg(short = 'S', long)]
    pub(crate) largest_status: bool,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text
        .parse()
        .map_err(|_| format!("{text:?} is no number of seconds"))?;
    Duration::try_from_secs_f64(seconds).map_err(|_| format!("{text:?} seconds is out of range"))
}
