//! The flags of `sshoal up`, `down` and `status`.

use std::time::Duration;

use clap::{Args, ValueHint};

use crate::args::{ConfigArgs, HostArgs, LoginArgs, some_seconds};

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
    /// Seconds without a session after which all connections end; without it they stay.
    #[arg(long, value_name = "SECONDS", value_parser = some_seconds, allow_negative_numbers = true)]
    pub(crate) idle: Option<Duration>,
    /// Stay in the foreground, for a supervisor such as systemd.
    #[arg(long)]
    pub(crate) foreground: bool,
    /// Print the lines for ~/.ssh/config by which ssh, scp, rsync and git share the connections, and do nothing else.
    #[arg(long)]
    pub(crate) ssh_config: bool,
    /// Said by ourselves to the process that goes to the background.
    #[arg(long, hide = true)]
    pub(crate) detach: bool,
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
    #[arg(long)]
    pub(crate) json: bool,
}
