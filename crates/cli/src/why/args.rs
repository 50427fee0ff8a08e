//! The flags of `why`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::args::{ConfigArgs, HostArgs, LoginArgs, at_least_one};

/// Each is a login by sshoal and one by ssh, and all are planned before the first.
const MOST_LOGINS: u32 = 100;
/// Exit status of `why`, in short.
const EXIT_STATUS: &str = "Exit status: 0 measured; 2 wrong usage; 3 a host could not be reached or logged in to; \
    130 interrupted. See docs/exit-status.md.";

/// `sshoal why`.
#[derive(Debug, Args)]
#[command(
    after_help = EXIT_STATUS,
    // As many as hosts are measured at a time.
    mut_arg("logins", |arg| arg.hide(true))
)]
pub(crate) struct WhyArgs {
    /// The host, as in -w of run.
    #[arg(value_name = "HOST", value_hint = ValueHint::Hostname)]
    pub(super) host: Option<String>,
    /// How often sshoal logs in, and ssh; in turns.
    #[arg(long, value_name = "N", value_parser = some_logins, default_value_t = 5)]
    pub(super) repeat: u32,
    /// Do not have ssh log in.
    #[arg(long)]
    pub(super) no_ssh: bool,
    /// Run nothing on the host but the command of each login, echo.
    #[arg(long)]
    pub(super) no_host: bool,
    /// Follow further logins on the host itself, as root: by its kernel, with a program that is brought there and leaves nothing
    /// (docs/why.md). Asks for sudo's password where that wants one.
    #[arg(long, conflicts_with = "no_host")]
    pub(super) trace: bool,
    /// Hosts that are measured at a time.
    #[arg(short = 'p', long = "parallel", value_name = "N", value_parser = at_least_one, default_value_t = 4, allow_negative_numbers = true)]
    pub(super) parallel: u32,
    /// One JSON object a line for each host (docs/json.md).
    #[arg(long)]
    pub(super) json: bool,
    /// Print a script that makes the changes on the host and here, to be read and run by you; of one host.
    #[arg(long, conflicts_with = "json")]
    pub(super) fix: bool,
    /// Say of each cause what has ruled it out, too.
    #[arg(long, conflicts_with_all = ["json", "fix"])]
    pub(super) causes: bool,
    /// Show the SSH messages, twice for all states.
    #[arg(short = 'v', long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    #[command(flatten)]
    pub(super) hosts: HostArgs,
    #[command(flatten)]
    pub(super) config: ConfigArgs,
    #[command(flatten)]
    pub(super) login: LoginArgs,
    /// Write the report as a page, which needs nothing but a browser.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) html: Option<PathBuf>,
    /// Write the phases, and the processes of --trace, for Perfetto or speedscope; of one host only.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) chrome_trace: Option<PathBuf>,
}

fn some_logins(text: &str) -> Result<u32, String> {
    let logins: Option<u32> = text.parse().ok();
    let logins = logins.filter(|logins| (1..=MOST_LOGINS).contains(logins));
    logins.ok_or_else(|| format!("it must be a whole number from 1 to {MOST_LOGINS}"))
}
