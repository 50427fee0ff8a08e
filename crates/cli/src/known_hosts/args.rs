//! The arguments of `sshoal known-hosts`.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand, ValueHint};

use crate::args::{at_least_one, key_and_value, some_seconds};

/// What `check`, `forget` and `import` end with.
const EXIT_STATUS: &str =
    "Exit status: 0 nothing is wrong; 1 something is; 2 it could not be done.";

/// What `fetch` ends with.
const FETCHED: &str =
    "Exit status: 0 all hosts showed keys; 2 it could not be done; 3 some host did not.";

/// `sshoal known-hosts`.
#[derive(Debug, Args)]
#[command(disable_help_subcommand = true)]
pub(crate) struct KnownHostsArgs {
    #[command(subcommand)]
    pub(crate) command: KnownHostsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KnownHostsCommand {
    /// Print the lines that apply to hosts, for ssh's KnownHostsCommand or to read.
    Lookup(LookupArgs),
    /// Write a small file for each host, for UserKnownHostsFile DIR/%h.
    Split(SplitArgs),
    /// Print the lines of known_hosts that hosts would have by the keys that they show now.
    Fetch(FetchArgs),
    /// Look for lines that are broken, weak, doubled or at odds.
    Check(CheckArgs),
    /// Remove hosts, as ssh-keygen -R does.
    Forget(ForgetArgs),
    /// Hash the names of all hosts, as ssh-keygen -H does.
    Hash(HashArgs),
    /// Add the lines of another file that are not there yet.
    Import(ImportArgs),
}

/// Which files are read.
#[derive(Debug, Args)]
pub(crate) struct FileArgs {
    /// A known_hosts file, in place of ~/.ssh/known_hosts and ~/.ssh/known_hosts2; may be repeated.
    #[arg(short = 'f', long = "known-hosts-file", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<String>,
}

/// Which file is changed.
#[derive(Debug, Args)]
pub(crate) struct EditArgs {
    /// The known_hosts file, in place of ~/.ssh/known_hosts.
    #[arg(short = 'f', long = "known-hosts-file", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<String>,
    /// Say what would be changed, and change nothing.
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LookupArgs {
    /// Hosts as known_hosts writes them: a name, an address, or `[name]:port`; name:port is understood, too.
    #[arg(value_name = "HOST", required_unless_present = "ssh_config", value_hint = ValueHint::Hostname)]
    pub(crate) hosts: Vec<String>,
    #[command(flatten)]
    pub(crate) files: FileArgs,
    /// Neither read nor write the index of known_hosts lines (docs/known-hosts-index.md).
    #[arg(long)]
    pub(crate) no_index_cache: bool,
    /// Print the lines of ssh_config that make ssh ask this command.
    #[arg(long, conflicts_with = "hosts")]
    pub(crate) ssh_config: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SplitArgs {
    /// Hosts: names, ranges as in web[1-40], `[name]:port`. Without any here or in a file, all that known_hosts names.
    #[arg(value_name = "HOST", value_hint = ValueHint::Hostname)]
    pub(crate) hosts: Vec<String>,
    /// A file with a host a line; - is standard input.
    #[arg(short = 'i', long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) input_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) files: FileArgs,
    /// The folder to write to, in place of ~/.ssh/known_hosts_single.
    #[arg(short = 'd', long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) output_dir: Option<PathBuf>,
    /// The same, as a name within ~/.ssh.
    #[arg(long, value_name = "NAME", conflicts_with = "output_dir", value_parser = name_in_folder)]
    pub(crate) dot_ssh_output_dir: Option<String>,
    /// Look the hosts' addresses up, and copy the lines of those as well: CheckHostIP needs them.
    #[arg(long)]
    pub(crate) addresses: bool,
    /// Say on standard error how many addresses have been looked up.
    #[arg(long)]
    pub(crate) progress: bool,
    /// Say what would be written, and write nothing.
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
    /// Neither read nor write the index of known_hosts lines (docs/known-hosts-index.md).
    #[arg(long)]
    pub(crate) no_index_cache: bool,
}

#[derive(Debug, Args)]
#[command(after_help = FETCHED)]
pub(crate) struct FetchArgs {
    /// Hosts: names, ranges as in web[1-40], host:port, ^file; comma separated.
    #[arg(value_name = "LIST", required_unless_present = "input_file", value_hint = ValueHint::Hostname)]
    pub(crate) hosts: Vec<String>,
    /// A file with a host a line; - is standard input.
    #[arg(short = 'i', long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) input_file: Option<PathBuf>,
    /// The ssh_config to read in place of ~/.ssh/config and /etc/ssh/ssh_config; "none" for none.
    #[arg(short = 'F', long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// An ssh_config option, as in ssh -o.
    #[arg(short = 'o', long, value_name = "KEY=VALUE", value_parser = key_and_value)]
    pub(crate) option: Vec<String>,
    /// Hosts at a time; 256 if not given.
    #[arg(short = 'p', long, value_name = "N", value_parser = at_least_one)]
    pub(crate) parallel: Option<u32>,
    /// Seconds for each of a host's connections.
    #[arg(short = 'u', long, value_name = "SECONDS", value_parser = some_seconds, default_value = "10")]
    pub(crate) timeout: Duration,
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS)]
pub(crate) struct CheckArgs {
    /// Hosts whose hashed lines are to be recognised, besides those that plain lines name: names, ranges, `[name]:port`.
    #[arg(value_name = "HOST", value_hint = ValueHint::Hostname)]
    pub(crate) hosts: Vec<String>,
    #[command(flatten)]
    pub(crate) files: FileArgs,
    /// Neither read nor write the index of known_hosts lines (docs/known-hosts-index.md).
    #[arg(long)]
    pub(crate) no_index_cache: bool,
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS)]
pub(crate) struct ForgetArgs {
    /// Hosts as known_hosts writes them: a name, an address, or `[name]:port`; name:port is understood, too.
    #[arg(value_name = "HOST", required = true, value_hint = ValueHint::Hostname, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) hosts: Vec<String>,
    #[command(flatten)]
    pub(crate) edit: EditArgs,
}

#[derive(Debug, Args)]
pub(crate) struct HashArgs {
    #[command(flatten)]
    pub(crate) edit: EditArgs,
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS)]
pub(crate) struct ImportArgs {
    /// The file whose lines are to be added; - is standard input.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) from: PathBuf,
    #[command(flatten)]
    pub(crate) edit: EditArgs,
}

/// A name that leads nowhere else.
fn name_in_folder(text: &str) -> Result<String, String> {
    match text {
        "" | "." | ".." => Err("it must be the name of a folder".to_owned()),
        text if text.contains('/') => {
            Err("it must be a name without slashes; --output-dir takes any folder".to_owned())
        }
        text => Ok(text.to_owned()),
    }
}
