//! The command line: the one definition behind parsing, `--help`, man pages and completions.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueHint};

use sshoal_net::Transport;

use crate::ciphers::CiphersArgs;
use crate::completion::CompleteArgs;
use crate::copy::{GetArgs, PutArgs};
use crate::detached::{AttachArgs, DetachArgs};
use crate::explain::ExplainArgs;
use crate::hosts_command::HostsArgs;
use crate::kill::KillArgs;
use crate::known_hosts::KnownHostsArgs;
use crate::mpssh::MpsshArgs;
use crate::plan::PlanArgs;
use crate::retry::RetryKind;
use crate::rolling::RollingArgs;
use crate::runs::{JournalArgs, ResumeArgs, RunsArgs, ShowArgs};
use crate::warm::{DownArgs, StatusArgs, UpArgs};
use crate::why::WhyArgs;

/// SSH for a whole shoal of hosts.
#[derive(Debug, Parser)]
#[command(
    name = "sshoal",
    version,
    about,
    max_term_width = 100,
    propagate_version = true,
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
    /// Run a command on this machine for each of many hosts.
    Each(Box<EachArgs>),
    /// Run a command on many hosts as mpssh does: its flags, its host file, its output.
    Mpssh(Box<MpsshArgs>),
    /// Copy files and folders to many hosts.
    Put(Box<PutArgs>),
    /// Copy files and folders from many hosts, into a folder for each.
    Get(Box<GetArgs>),
    /// List the runs that are kept, and how far each is.
    Runs(RunsArgs),
    /// Show a run again, in any form.
    Show(Box<ShowArgs>),
    /// Go on with a run that was interrupted, or whose sshoal was killed.
    Resume(ResumeArgs),
    /// Follow the commands of a run that was begun with --detach, or end them.
    Attach(Box<AttachArgs>),
    /// Run, explain and check plans: named steps in their order.
    Plan(PlanArgs),
    /// Log in to hosts and keep the connections, for ssh, scp, rsync and git to share.
    Up(Box<UpArgs>),
    /// End connections that up keeps.
    Down(DownArgs),
    /// Show the connections that up keeps.
    Status(StatusArgs),
    /// Measure all ciphers and MACs to a host, and say which to use.
    Ciphers(Box<CiphersArgs>),
    /// Say why the login to a host is slow: where its time goes, and what to change.
    Why(Box<WhyArgs>),
    /// Look into known_hosts files and change them.
    KnownHosts(KnownHostsArgs),
    /// Expand, fold, count and split host lists; list groups.
    Hosts(Box<HostsArgs>),
    /// Show what would be done for hosts, and which line of which file says so.
    Explain(Box<ExplainArgs>),
    /// Print what a host list may go on with: for completions.
    #[command(hide = true)]
    CompleteHosts(CompleteArgs),
    /// Print a shell's completions.
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
        /// Under which name the program is called.
        #[arg(value_enum, default_value_t = Program::Sshoal)]
        program: Program,
    },
    /// Print a manual page, as man(1) reads it: `sshoal man run | man -l -`.
    Man {
        /// The command whose page it is; without it, the page of sshoal itself.
        command: Option<String>,
    },
}

/// The names of the program.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum Program {
    Sshoal,
    Mpssh,
}

/// What both kinds of run end with.
pub(crate) const EXIT_STATUS: &str = "Exit status: 0 all hosts succeeded; 1 a command failed somewhere; 2 wrong usage; \
    3 a host could not be reached or failed otherwise; 130 interrupted. See docs/exit-status.md.";

/// `sshoal run`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS)]
pub(crate) struct RunArgs {
    /// Standard input for the command on every host: a file, or - for our own. Without it: nothing.
    #[arg(long, value_name = "FILE")]
    pub(crate) stdin: Option<PathBuf>,
    /// Run a local script; what follows are its arguments. No file is left on the hosts; while it runs, ps shows its text.
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
    /// Leave %h, %u, %p and %n in the command and in the script's arguments alone.
    #[arg(long, conflicts_with = "fill_script")]
    pub(crate) literal: bool,
    /// Fill in %h, %u, %p and %n in the script, too, and not only in its arguments.
    #[arg(long, requires = "script")]
    pub(crate) fill_script: bool,
    /// Run as root by sudo; its password is asked for once.
    #[arg(long)]
    pub(crate) sudo: bool,
    /// Lend our terminal to the command; with a single host only. Its exit status becomes ours.
    #[arg(short = 't', long, conflicts_with_all = ["stdin", "sudo", "gather", "diff", "json"])]
    pub(crate) tty: bool,
    /// Log in to all hosts, also to those whose connections `sshoal up` keeps (docs/warm.md).
    #[arg(long)]
    pub(crate) no_pool: bool,
    /// Show what would be done, and do nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// The command. %h, %u, %p and %n stand for host, user, port and the host's name as given; %%h is a plain %h. Without
    /// one: each host's RemoteCommand.
    #[arg(
        trailing_var_arg = true,
        value_name = "COMMAND",
        value_hint = ValueHint::CommandWithArguments
    )]
    pub(crate) command: Vec<OsString>,
    #[command(flatten)]
    pub(crate) hosts: HostArgs,
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
    #[command(flatten)]
    pub(crate) login: LoginArgs,
    #[command(flatten)]
    pub(crate) pace: PaceArgs,
    #[command(flatten)]
    pub(crate) kill: KillArgs,
    #[command(flatten)]
    pub(crate) detach: DetachArgs,
    #[command(flatten)]
    pub(crate) rolling: RollingArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) journal: JournalArgs,
}

/// `sshoal each`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS)]
pub(crate) struct EachArgs {
    /// Standard input for every command: a file, or - for our own. Without it: nothing.
    #[arg(long, value_name = "FILE")]
    pub(crate) stdin: Option<PathBuf>,
    /// Show what would be done, and do nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// The command, without a shell. In each of its words %h, %u, %p and %n stand for host, user, port and the host's
    /// name as given; %%h is a plain %h.
    #[arg(
        trailing_var_arg = true,
        value_name = "COMMAND",
        value_hint = ValueHint::CommandWithArguments
    )]
    pub(crate) command: Vec<OsString>,
    #[command(flatten)]
    pub(crate) hosts: HostArgs,
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
    #[command(flatten)]
    pub(crate) pace: PaceArgs,
    #[command(flatten)]
    pub(crate) rolling: RollingArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) journal: JournalArgs,
}

/// Which hosts.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Which hosts")]
pub(crate) struct HostArgs {
    /// Hosts: names, ranges as in web[1-40], user@host:port, @group, ^file, web*, /regex/; comma separated.
    #[arg(short = 'w', long = "hosts", value_name = "LIST", value_hint = ValueHint::Hostname)]
    pub(crate) list: Vec<String>,
    /// Hosts of these groups, or that a query of the genders file finds; comma separated.
    #[arg(short = 'g', long, value_name = "GROUP", value_hint = ValueHint::Hostname)]
    pub(crate) group: Vec<String>,
    /// All hosts of the inventory, the genders file or the default group source.
    #[arg(short = 'a', long)]
    pub(crate) all: bool,
    /// A file with a host a line, JSON or CSV; - is standard input.
    #[arg(short = 'f', long = "hosts-file", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Vec<PathBuf>,
    /// A shell command that prints hosts, in the form of a file of -f.
    #[arg(long = "hosts-from", value_name = "COMMAND", value_hint = ValueHint::CommandString)]
    pub(crate) from: Vec<String>,
    /// An Ansible inventory, or a program that prints one: its groups, and how its hosts are reached. May be repeated.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) inventory: Vec<PathBuf>,
    /// The hosts of the last run that ended so: failure kinds, comma separated, not-started, or all (but those whose
    /// command may have run).
    #[arg(long, value_name = "KINDS", value_delimiter = ',', conflicts_with_all = ["list", "group", "all", "file", "from"])]
    pub(crate) retry_failed: Vec<RetryKind>,
    /// The run whose hosts --retry-failed means, in place of the last one: as sshoal runs calls it.
    #[arg(long, value_name = "RUN", requires = "retry_failed")]
    pub(crate) of: Option<String>,
    /// Hosts to leave out, in the form of -w.
    #[arg(short = 'x', long = "exclude", value_name = "LIST", value_hint = ValueHint::Hostname)]
    pub(crate) exclude: Vec<String>,
    /// Groups to leave out, in the form of -g.
    #[arg(short = 'X', long, value_name = "GROUP", value_hint = ValueHint::Hostname)]
    pub(crate) exclude_group: Vec<String>,
    /// Only so many of the hosts, chosen at random.
    #[arg(long, value_name = "N")]
    pub(crate) pick: Option<usize>,
}

/// What is known of them: ssh's own flags.
#[derive(Debug, Clone, Default, Args, serde::Serialize, serde::Deserialize)]
#[command(next_help_heading = "How to reach them")]
pub(crate) struct ConfigArgs {
    /// The user to log in as.
    #[arg(short = 'l', long = "login", value_name = "USER", value_hint = ValueHint::Username)]
    pub(crate) user: Option<String>,
    /// The ssh_config to read in place of ~/.ssh/config and /etc/ssh/ssh_config; "none" for none.
    #[arg(short = 'F', long = "config", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// An ssh_config option, as in ssh -o.
    #[arg(short = 'o', long = "option", value_name = "KEY=VALUE", value_parser = key_and_value)]
    pub(crate) option: Vec<String>,
    /// A name that ssh_config may ask for with "Match tagged": -P of ssh.
    #[arg(long, value_name = "NAME")]
    pub(crate) tag: Option<String>,
    /// Such options from our own configuration file: they count where no flag sets them.
    #[arg(long, hide = true, value_name = "KEY=VALUE")]
    pub(crate) default_option: Vec<String>,
}

impl ConfigArgs {
    /// All ssh_config options; the first one for a key counts.
    pub(crate) fn options(&self) -> Vec<String> {
        [self.option.as_slice(), &self.default_option].concat()
    }
}

/// How to log in to them.
#[derive(Debug, Clone, Default, Args, serde::Serialize, serde::Deserialize)]
#[command(next_help_heading = "How to log in")]
pub(crate) struct LoginArgs {
    /// A private key file; may be given several times.
    #[arg(short = 'i', long = "identity", value_name = "FILE")]
    pub(crate) identity: Vec<PathBuf>,
    /// Connect through these jump hosts, in this order. As with ssh, -l, -i and -o are not about them: set them up
    /// in ssh_config.
    #[arg(short = 'J', long = "jump", value_name = "[USER@]HOST[:PORT],...", value_hint = ValueHint::Hostname)]
    pub(crate) jump: Option<String>,
    /// Let processes on the hosts use the keys of our agent, to sign: hosts that you trust only.
    #[arg(short = 'A', long)]
    pub(crate) forward_agent: bool,
    /// Ask once for the password of the account, and use it on every host that takes one.
    #[arg(long)]
    pub(crate) ask_pass: bool,
    /// Logins in progress at a time; 256 if not given.
    #[arg(long, value_name = "N", value_parser = at_least_one, allow_negative_numbers = true)]
    pub(crate) logins: Option<u32>,
    /// Seconds for a host's TCP connection; 10 if not given.
    #[arg(long, value_name = "SECONDS", value_parser = some_seconds, allow_negative_numbers = true)]
    pub(crate) connect_timeout: Option<Duration>,
    /// Seconds for a host's login; 60 if not given.
    #[arg(long, value_name = "SECONDS", value_parser = some_seconds, allow_negative_numbers = true)]
    pub(crate) login_timeout: Option<Duration>,
    /// Neither read nor write the index of known_hosts lines (docs/known-hosts-index.md).
    #[arg(long)]
    pub(crate) no_index_cache: bool,
    /// How hosts are reached: auto is native, and by the installed ssh where ssh_config requires what native cannot do;
    /// native; openssh.
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = WhichTransport::Auto, hide_possible_values = true)]
    pub(crate) transport: WhichTransport,
    /// The ssh for hosts that go by it; ssh if not given.
    #[arg(long, value_name = "PROGRAM", value_hint = ValueHint::CommandName)]
    pub(crate) ssh: Option<OsString>,
    /// A word for the command line of that ssh, as it is; may be given several times.
    #[arg(long = "ssh-word", value_name = "WORD", allow_hyphen_values = true)]
    pub(crate) ssh_word: Vec<OsString>,
    /// Threads to work with.
    #[arg(long, value_name = "N", hide = true)]
    pub(crate) workers: Option<usize>,
}

/// `--transport`.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    clap::ValueEnum,
    serde::Serialize,
    serde::Deserialize,
)]
pub(crate) enum WhichTransport {
    #[default]
    Auto,
    Native,
    Openssh,
}

impl From<WhichTransport> for Transport {
    fn from(which: WhichTransport) -> Transport {
        match which {
            WhichTransport::Auto => Transport::Auto,
            WhichTransport::Native => Transport::Native,
            WhichTransport::Openssh => Transport::OpenSsh,
        }
    }
}

/// How many at a time, and how long.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "How many at a time, and how long")]
pub(crate) struct PaceArgs {
    /// Hosts at a time. If not given: 2048 with run, but 64 if more than that have a ProxyCommand; 64 with each.
    #[arg(short = 'p', long = "parallel", value_name = "N", value_parser = at_least_one, allow_negative_numbers = true)]
    pub(crate) parallel: Option<u32>,
    /// The least time between two starts, in milliseconds.
    #[arg(short = 'd', long, value_name = "MS", default_value_t = 0)]
    pub(crate) delay: u64,
    /// Seconds for the command of each host; without it, or with 0, as long as it takes.
    #[arg(short = 'u', long = "timeout", value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    pub(crate) command_timeout: Option<Duration>,
}

/// What is shown.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "What is shown")]
pub(crate) struct OutputArgs {
    /// Show lines as they come, behind their host's name: what is done without a flag.
    #[arg(long, conflicts_with_all = ["gather", "diff", "json"])]
    pub(crate) lines: bool,
    /// Gather identical output of several hosts under their folded names.
    #[arg(short = 'b', long = "gather", conflicts_with_all = ["diff", "json"])]
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
    /// Only the hosts' output: no progress, no summary. The exit status tells of failures.
    #[arg(short = 'q', long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Show a line for each host that ends; -vv shows the SSH messages too, -vvv all states.
    #[arg(short = 'v', long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Exit with the largest status of any host.
    #[arg(short = 'S', long)]
    pub(crate) largest_status: bool,
    /// What a plan gives its steps: their statuses are to tell what kind of end there was, whatever is configured.
    #[arg(long, hide = true)]
    pub(crate) as_step: bool,
}

/// ssh takes a blank in place of the equals sign, and so do we.
pub(crate) fn key_and_value(text: &str) -> Result<String, String> {
    match text
        .trim()
        .contains(|c: char| c == '=' || c.is_whitespace())
    {
        true => Ok(text.to_owned()),
        false => {
            Err("it must be an option of ssh_config and its value, such as Port=2222".to_owned())
        }
    }
}

pub(crate) fn at_least_one(text: &str) -> Result<u32, String> {
    text.parse()
        .ok()
        .filter(|number| *number > 0)
        .ok_or_else(|| format!("it must be a whole number from 1 to {}", u32::MAX))
}

pub(crate) fn some_seconds(text: &str) -> Result<Duration, String> {
    seconds(text).and_then(|time| match time.is_zero() {
        true => Err("it must be more than 0".to_owned()),
        false => Ok(time),
    })
}

pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text
        .parse()
        .map_err(|_| format!("{text:?} is no number of seconds"))?;
    Duration::try_from_secs_f64(seconds).map_err(|_| format!("{text:?} seconds is out of range"))
}
