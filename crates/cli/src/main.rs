//! SSH for a whole shoal of hosts: argument parsing, composition, exit status. Nothing else.

mod args;
mod ciphers;
mod completion;
mod copy;
mod defaults;
mod detached;
mod dry_run;
mod each;
mod explain;
mod fan_out;
mod hosts;
mod hosts_command;
mod kill;
mod known_hosts;
mod manual;
mod mpssh;
mod observer;
mod plan;
mod prompt;
mod quick_parse;
mod retry;
mod rolling;
mod run;
mod runs;
mod say;
mod script;
mod template;
mod terminal;
mod tips;
mod transport;
mod warm;
mod watch;
mod why;

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use clap::Parser;
use zeroize::Zeroize;

use crate::args::{Cli, Command};
use crate::runs::Sitting;
use crate::say::say;

/// Wrong usage, configuration or host list: nothing was run (docs/exit-status.md).
const USAGE: u8 = sshoal_report::USAGE;

fn main() -> ExitCode {
    if let Some(answered) = askpass() {
        return answered;
    }
    let typed: Vec<OsString> = std::env::args_os().collect();
    let as_mpssh = mpssh::as_command(&typed);
    let is_mpssh = as_mpssh.is_some();
    let arguments = match defaults::with_defaults(as_mpssh.unwrap_or(typed)) {
        Ok(arguments) => arguments,
        Err(error) => {
            say(error);
            return ExitCode::from(USAGE);
        }
    };
    let cli = match parsed(&arguments, is_mpssh) {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    match execute(&cli, &arguments) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            say(error);
            ExitCode::from(match cli.command {
                Command::Mpssh(_) => mpssh::FAILED,
                _ => USAGE,
            })
        }
    }
}

/// The command line, quickly where that is possible.
fn parsed(arguments: &[OsString], is_mpssh: bool) -> Result<Cli, clap::Error> {
    quick_parse::parse(arguments).map_or_else(|| parse(arguments, is_mpssh), Ok)
}

/// The command line, or what is wrong with it.
fn parse(arguments: &[OsString], is_mpssh: bool) -> Result<Cli, clap::Error> {
    match is_mpssh {
        true => mpssh::parsed_alone(arguments).map(|args| Cli {
            command: Command::Mpssh(Box::new(args)),
        }),
        false => Cli::try_parse_from(arguments).map_err(|error| tips::explained(error, arguments)),
    }
}

/// Answers an ssh that asks for the password of the account, or a step of a plan that asks for sudo's, if this is what we were started for.
fn askpass() -> Option<ExitCode> {
    let place = std::env::var_os(sshoal_openssh::PASSWORD_VARIABLE);
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let answer = sshoal_openssh::answer(place.as_deref(), &arguments);
    let answer = answer.or_else(|| plan::answer(&arguments))?;
    let written = answer.is_some_and(|mut answer| {
        let is_written = io::stdout().write_all(&answer).is_ok();
        answer.zeroize();
        is_written
    });
    Some(match written {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

fn execute(cli: &Cli, arguments: &[OsString]) -> Result<u8, Box<dyn std::error::Error>> {
    if let Command::Run(_)
    | Command::Attach(_)
    | Command::Each(_)
    | Command::Mpssh(_)
    | Command::Resume(_) = &cli.command
    {
        // Before anything that takes long: to read configuration and known_hosts takes milliseconds, too.
        sshoal_net::lengthen_time_slice();
    }
    match &cli.command {
        Command::Run(args) => {
            trace(args.output.verbose);
            let arguments = args.detach.noted(arguments);
            run::run(args, &Sitting::First(&arguments))
        }
        Command::Attach(args) => {
            trace(args.output.verbose);
            detached::attach(args)
        }
        Command::Each(args) => {
            trace(args.output.verbose);
            each::run(args, &Sitting::First(arguments))
        }
        Command::Mpssh(args) => {
            trace(if args.debug { 2 } else { 0 });
            mpssh::run(args)
        }
        Command::Put(args) => {
            trace(args.options.shown.verbose);
            copy::put(args)
        }
        Command::Get(args) => {
            trace(args.options.shown.verbose);
            copy::get(args)
        }
        Command::Ciphers(args) => {
            trace(match args.verbose {
                0 => 0,
                verbose => verbose.saturating_add(1),
            });
            ciphers::run(args)
        }
        Command::Why(args) => {
            trace(match args.verbose {
                0 => 0,
                verbose => verbose.saturating_add(1),
            });
            why::run(args)
        }
        Command::Runs(args) => runs::list(args),
        Command::Show(args) => runs::show(args),
        Command::Resume(args) => runs::resume(args),
        Command::Plan(args) => plan::run(args),
        Command::Up(args) => {
            trace(args.verbose);
            warm::up(args)
        }
        Command::Down(args) => warm::down(args),
        Command::Status(args) => warm::status(args),
        Command::KnownHosts(args) => known_hosts::run(args),
        Command::Hosts(args) => hosts_command::run(args),
        Command::Explain(args) => explain::run(args),
        Command::CompleteHosts(args) => completion::run(args),
        Command::Completions { shell, program } => manual::completions(*shell, *program),
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
