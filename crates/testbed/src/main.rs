//! `sshoal-testbed`: hosts to try sshoal on. One file a subcommand, in `commands/`.

use std::process::ExitCode;

use clap::Parser;

mod commands;

fn main() -> ExitCode {
    match commands::Cli::parse().command.run() {
        Ok(status) => status,
        Err(error) => {
            eprintln!("sshoal-testbed: {error}");
            ExitCode::FAILURE
        }
    }
}
