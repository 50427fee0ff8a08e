//! `sshoal man`, `sshoal completions`: both come from the one definition of the command line.

use std::io::{self, Write};

use clap::CommandFactory;

use crate::args::{Cli, Program};
use crate::completion;
use crate::mpssh;
use crate::say::say;

/// A page that is not there.
#[derive(Debug, thiserror::Error)]
#[error(
    "there is no manual page for {wanted:?}; there are pages for {commands}, and one without a name"
)]
struct NoPage {
    wanted: String,
    commands: String,
}

/// Prints the manual page of a command, or of sshoal itself.
pub(crate) fn page(command: Option<&str>) -> Result<u8, Box<dyn std::error::Error>> {
    let mut cli = Cli::command();
    cli.build();
    let mpssh = mpssh::program();
    let page = match command {
        None => &cli,
        // It is looked for by the name that it is called by.
        Some(mpssh::NAME) => &mpssh,
        Some(wanted) => cli.find_subcommand(wanted).ok_or_else(|| NoPage {
            wanted: wanted.to_owned(),
            commands: cli
                .get_subcommands()
                .filter(|command| !command.is_hide_set())
                .map(clap::Command::get_name)
                .collect::<Vec<_>>()
                .join(", "),
        })?,
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(page.clone()).render(&mut text)?;
    Ok(print(&text))
}

/// Prints a shell's completions, for sshoal or for its other name.
pub(crate) fn completions(
    shell: clap_complete::Shell,
    program: Program,
) -> Result<u8, Box<dyn std::error::Error>> {
    let mut script = Vec::new();
    match program {
        Program::Sshoal => script = completion::script(shell).into_bytes(),
        Program::Mpssh => {
            clap_complete::generate(shell, &mut mpssh::program(), mpssh::NAME, &mut script);
        }
    }
    Ok(print(&script))
}

/// Prints what filters may read, and returns the exit status: who has read enough ends it quietly, and what cannot be written is no
/// wrong usage.
pub(crate) fn print(text: &[u8]) -> u8 {
    let mut out = io::stdout();
    status_of(out.write_all(text).and_then(|()| out.flush()))
}

/// The exit status of a command that has written its standard output.
pub(crate) fn status_of(written: io::Result<()>) -> u8 {
    match written {
        Ok(()) => sshoal_report::OK,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => sshoal_report::BROKEN_PIPE,
        Err(error) => {
            say(format!("cannot write standard output: {error}"));
            sshoal_report::OUTPUT_FAILED
        }
    }
}
