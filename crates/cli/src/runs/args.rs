//! The flags about journals.

use clap::Args;

use crate::args::OutputArgs;
use crate::rolling::{Share, share};

/// What is kept of a run.
#[derive(Debug, Args)]
#[command(next_help_heading = "What is kept of it")]
pub(crate) struct JournalArgs {
    /// What the run's journal survives: write is the end of sshoal, whatever kills it; sync is a power loss, too, and costs time;
    /// off keeps none.
    #[arg(long, value_name = "HOW", value_enum, default_value_t = Journal::Write, hide_possible_values = true)]
    pub(crate) journal: Journal,
    /// Keep the hosts' output in the journal as well, for sshoal show.
    #[arg(long)]
    pub(crate) record: bool,
    #[command(flatten)]
    pub(crate) keep: KeepArgs,
}

/// `--journal`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Journal {
    Write,
    Sync,
    Off,
}

/// How long journals are kept.
#[derive(Debug, Args)]
pub(crate) struct KeepArgs {
    /// Days after which the journal of a run is removed; 30 if not given, 0 for never.
    #[arg(long, value_name = "DAYS")]
    pub(crate) keep_days: Option<u32>,
    /// Octets that all journals together may have, with K, M or G behind; the oldest go first. If not given: 1G.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) keep_size: Option<u64>,
}

/// `sshoal runs`.
#[derive(Debug, Args)]
pub(crate) struct RunsArgs {
    /// One JSON object a line for each run (docs/json.md).
    #[arg(long)]
    pub(crate) json: bool,
    /// Remove journals that are too old or too many, as each run does when it begins; never one of a run that is on.
    #[arg(long)]
    pub(crate) prune: bool,
    #[command(flatten)]
    pub(crate) keep: KeepArgs,
}

/// `sshoal show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The run: its identifier, the beginning of it, or "last".
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// `sshoal resume`.
#[derive(Debug, Args)]
#[command(after_help = crate::args::EXIT_STATUS)]
pub(crate) struct ResumeArgs {
    /// The run: its identifier, the beginning of it, or "last".
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// What becomes of hosts whose command may have run: rerun runs it there, perhaps for the second time; skip leaves them. If
    /// not given: asked on the terminal, and skip without one.
    #[arg(long, value_name = "WHAT", value_enum, hide_possible_values = true)]
    pub(crate) maybe_ran: Option<MaybeRan>,
    /// Hosts that may fail in the whole run, in place of what it was begun with: a number, or a part of all as in 10%.
    #[arg(long, value_name = "N|N%", value_parser = share, allow_negative_numbers = true)]
    pub(crate) max_failures: Option<Share>,
}

/// `--maybe-ran`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum MaybeRan {
    Rerun,
    Skip,
}

fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is no size; type for example 500M or 2G");
    let (number, unit) = match text.char_indices().last() {
        Some((at, 'K' | 'k')) => (&text[..at], 1 << 10),
        Some((at, 'M' | 'm')) => (&text[..at], 1 << 20),
        Some((at, 'G' | 'g')) => (&text[..at], 1 << 30),
        _ => (text, 1),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    number.checked_mul(unit).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_numbers_with_units() {
        for (text, octets) in [
            ("0", 0),
            ("17", 17),
            ("2k", 2048),
            ("3M", 3 << 20),
            ("1G", 1 << 30),
        ] {
            assert_eq!(size(text), Ok(octets));
        }
        for wrong in [
            "",
            "G",
            "1T",
            "-1",
            "1.5G",
            "99999999999999999999",
            "99999999999G",
        ] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
