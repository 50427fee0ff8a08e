//! The flags of `ciphers`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};

use crate::args::{ConfigArgs, LoginArgs};

/// Each logs in once for each combination, and all are planned before the first.
const MOST_ROUNDS: u32 = 100;
/// Exit status of `ciphers`, in short.
const EXIT_STATUS: &str = "Exit status: 0 measured; 2 wrong usage; 3 the host could not be reached or let nothing be \
    measured; 130 interrupted. See docs/exit-status.md.";

/// `sshoal ciphers`.
#[derive(Debug, Args)]
#[command(
    after_help = EXIT_STATUS,
    // It logs in once at a time.
    mut_arg("logins", |arg| arg.hide(true))
)]
pub(crate) struct CiphersArgs {
    /// The host, as in -w of run.
    #[arg(value_name = "HOST", value_hint = ValueHint::Hostname)]
    pub(super) host: String,
    /// How often each combination is measured; the rounds are interleaved, and the median counts.
    #[arg(long, value_name = "N", value_parser = some_rounds, default_value_t = 3)]
    pub(super) rounds: u32,
    /// Seconds that each direction of a measurement takes, about.
    #[arg(long, value_name = "SECONDS", value_parser = a_while, default_value = "0.3")]
    pub(super) seconds: Duration,
    /// Only these ciphers, comma separated.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(super) cipher: Vec<String>,
    /// Only these MACs, comma separated.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(super) mac: Vec<String>,
    /// Do not measure key exchanges.
    #[arg(long)]
    pub(super) no_kex: bool,
    /// Draw a picture of the throughput, SVG.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) svg: Option<PathBuf>,
    /// One JSON object on one line (docs/json.md).
    #[arg(long)]
    pub(super) json: bool,
    /// Show the SSH messages, twice for all states.
    #[arg(short = 'v', long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    #[command(flatten)]
    pub(super) config: ConfigArgs,
    #[command(flatten)]
    pub(super) login: LoginArgs,
}

fn some_rounds(text: &str) -> Result<u32, String> {
    let rounds: Option<u32> = text.parse().ok();
    let rounds = rounds.filter(|rounds| (1..=MOST_ROUNDS).contains(rounds));
    rounds.ok_or_else(|| format!("it must be a whole number from 1 to {MOST_ROUNDS}"))
}

/// From a hundredth of a second to a minute.
fn a_while(text: &str) -> Result<Duration, String> {
    let seconds: Option<f64> = text.parse().ok();
    let seconds = seconds.filter(|seconds| (0.01..=60.0).contains(seconds));
    seconds
        .map(Duration::from_secs_f64)
        .ok_or_else(|| "it must be a number of seconds from 0.01 to 60".to_owned())
}
