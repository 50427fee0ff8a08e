//! The flags of `sshoal up`, `down` and `status`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};

use crate::args::{ConfigArgs, HostArgs, LoginArgs, at_least_one, some_seconds};

/// `sshoal up`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 all hosts are logged in to; 2 wrong usage; 3 some hosts could not be logged in to, the others \
        are kept; 130 interrupted. See docs/warm.md."
)]
pub(crate) struct UpArgs {
    /// Host lists, in the form of -w.
    #[arg(value_name = "LIST", value_hint = ValueHint::Hostname)]
    pub(crate) lists: Vec<String>,
    /// Seconds without a session after which a host is hung up; without it connections stay.
    #[arg(long, value_name = "SECONDS", value_parser = some_seconds, allow_negative_numbers = true)]
    pub(crate) idle: Option<Duration>,
    /// Log in to a host when something needs it, and not before; with --idle, anew whenever it was hung up.
    #[arg(long)]
    pub(crate) lazy: bool,
    /// Do not log in again to hosts whose connection is lost, more than once at once.
    #[arg(long)]
    pub(crate) no_reconnect: bool,
    /// Most connections to all hosts together, of this up and all others.
    #[arg(long, value_name = "N", value_parser = at_least_one, allow_negative_numbers = true)]
    pub(crate) max_connections: Option<u32>,
    /// Megabytes of memory that the process may have in use when another connection is made.
    #[arg(long, value_name = "MB", value_parser = at_least_one, allow_negative_numbers = true)]
    pub(crate) max_memory: Option<u32>,
    /// Write how connections are into this file every 15 s, as Prometheus reads it.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) prometheus_file: Option<PathBuf>,
    /// Answer with the same whoever connects to this unix socket, by HTTP; it is made for you alone (0600).
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(crate) prometheus_socket: Option<PathBuf>,
    /// Stay in the foreground, for a supervisor such as systemd.
    #[arg(long)]
    pub(crate) foreground: bool,
    /// Print the lines for ~/.ssh/config by which ssh, scp, rsync and git share the connections, and do nothing else.
    #[arg(long)]
    pub(crate) ssh_config: bool,
    /// Said by ourselves to the process that keeps the connections.
    #[arg(long, hide = true)]
    pub(crate) daemon: bool,
    /// Say nothing of hosts that are logged in to.
    #[arg(short = 'q', long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// With --foreground: -vv shows the SSH messages, -vvv all states.
    #[arg(short = 'v', long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    #[command(flatten)]
    pub(crate) hosts: HostArgs,
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
    #[command(flatten)]
    pub(crate) login: LoginArgs,
}

/// `sshoal down`.
#[derive(Debug, Args)]
pub(crate) struct DownArgs {
    /// Hosts, in the form of -w and as they were named for up; without any, all.
    #[arg(value_name = "LIST", value_hint = ValueHint::Hostname)]
    pub(crate) lists: Vec<String>,
}

/// `sshoal status`.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// One JSON object (docs/warm.md).
    #[arg(long, conflicts_with = "prometheus")]
    pub(crate) json: bool,
    /// Prometheus' text format (docs/warm.md).
    #[arg(long)]
    pub(crate) prometheus: bool,
}
