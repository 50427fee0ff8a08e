//! The subcommands, a file each: a clap `Args` struct with `run(self) -> CommandResult`.

use std::error::Error;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod running;
mod simulate;
mod simulate_part;
mod slow_hosts;
mod sshd;
mod stay;
mod wan;
mod with_hosts;

/// What a subcommand ends with: the exit status, or an error to print.
pub(crate) type CommandResult = Result<ExitCode, Box<dyn Error>>;

/// Hosts to try sshoal on: real, simulated, slow and faulty ones.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Simulate(simulate::Simulate),
    #[command(hide = true)]
    SimulatePart(simulate_part::SimulatePart),
    SlowHosts(slow_hosts::SlowHosts),
    Sshd(sshd::Sshd),
    Wan(wan::Wan),
    WithHosts(with_hosts::WithHosts),
    WithSshd(sshd::WithSshd),
}

impl Command {
    pub(crate) fn run(self) -> CommandResult {
        match self {
            Command::Simulate(command) => command.run(),
            Command::SimulatePart(command) => command.run(),
            Command::SlowHosts(command) => command.run(),
            Command::Sshd(command) => command.run(),
            Command::Wan(command) => command.run(),
            Command::WithHosts(command) => command.run(),
            Command::WithSshd(command) => command.run(),
        }
    }
}
