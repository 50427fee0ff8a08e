//! SSH for a whole shoal of hosts: argument parsing, composition, exit status. Nothing else.

mod args;
mod completion;
mod copy;
mod defaults;
mod dry_run;
mod each;
mod explain;
mod fan_out;
mod hosts;
mod hosts_command;
mod known_hosts;
mod manual;
mod observer;
mod prompt;
mod quick_parse;
mod retry;
mod run;
mod say;
mod script;
mod template;
mod terminal;
mod tips;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Command};
use crate::say::say;

/// Wrong usage, configuration or host list: nothing was run (docs/exit-status.md).
const USAGE: u8 = sshoal_report::USAGE;

fn main() -> ExitCode {
    let arguments = match defaults::with_defaults(std::env::args_os().collect()) {
        Ok(arguments) => arguments,
        Err(error) => {
            say(error);
            return ExitCode::from(USAGE);
        }
    };
    let cli =
        match quick_parse::parse(&arguments).map_or_else(|| Cli::try_parse_from(&arguments), Ok) {
            Ok(cli) => cli,
            Err(error) => tips::explained(error, &arguments).exit(),
        };
    match execute(&cli) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            say(error);
            ExitCode::from(USAGE)
        }
    }
}

fn execute(cli: &Cli) -> Result<u8, Box<dyn std::error::Error>> {
    match &cli.command {
        Command::Run(args) => {
            trace(args.output.verbose);
            run::run(args)
        }
        Command::Each(args) => {
            trace(args.output.verbose);
            each::run(args)
        }
        Command::Put(args) => {
            trace(args.options.shown.verbose);
            copy::put(args)
        }
        Command::Get(args) => {
            trace(args.options.shown.verbose);
            copy::get(args)
        }
        Command::KnownHosts(args) => known_hosts::run(args),
        Command::Hosts(args) => hosts_command::run(args),
        Command::Explain(args) => explain::run(args),
        Command::CompleteHosts(args) => completion::run(args),
        Command::Completions { shell } => manual::completions(*shell),
        Command::Man { command } => manual::page(command.as_deref()),
    }
}

/// `-vv` shows the names of the messages of each host's connection, `-vvv` phases as well; never what is in them.
fn trace(verbose: u8) {
    let level = match verbose {
        0 | 1 => return,
        2 => tracing::Level::DEBUG,
        _ => tracing::Level::TRACE,
    };
    tracing_subscriber::fmt()
        .with_max_level(level)
        // It would say so on standard error, and panic there.
        .log_internal_errors(false)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
}
