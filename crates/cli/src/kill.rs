//! How commands that must end are ended: `--kill-where`, `--kill-grace`.

use std::time::Duration;

use clap::{Args, ValueEnum};
use sshoal_net::{KillCondition, KillPlan, Secret};

use crate::args::seconds;

/// From SIGTERM to SIGKILL, unless the user says otherwise.
pub(crate) const GRACE: Duration = Duration::from_secs(5);

/// How a command is ended whose time is over, or that is interrupted.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "How many at a time, and how long")]
pub(crate) struct KillArgs {
    /// Where all processes of a command that must end are ended and looked after, by a second session: proven is where the server
    /// has shown that it runs what it is given, and no forced command; always; never.
    #[arg(long, value_name = "WHERE", value_enum, default_value_t = Where::Proven, hide_possible_values = true)]
    kill_where: Where,
    /// Seconds from SIGTERM to SIGKILL for a command that must end; 5 if not given.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    kill_grace: Option<Duration>,
}

/// `--kill-where`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Where {
    #[default]
    Proven,
    Always,
    Never,
}

impl KillArgs {
    /// Refuses a time that nobody would keep to.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        match (self.kill_where, self.kill_grace) {
            (Where::Never, Some(_)) => Err(
                "--kill-grace is a time that the second session keeps to, and --kill-where never does without one: leave out \
                 one of the two",
            ),
            _ => Ok(()),
        }
    }

    /// `sudo_password`: what `--sudo` has asked for, if it was given. `run`: what hosts call the run, if its commands outlive their
    /// connections.
    pub(crate) fn plan(
        &self,
        sudo_password: Option<Secret>,
        run: Option<String>,
    ) -> Option<KillPlan> {
        let condition = match self.kill_where {
            Where::Proven => KillCondition::Proven,
            Where::Always => KillCondition::Always,
            Where::Never => return None,
        };
        Some(KillPlan {
            grace: self.kill_grace.unwrap_or(GRACE),
            condition,
            by_sudo: sudo_password.is_some(),
            sudo_password,
            run,
        })
    }
}
