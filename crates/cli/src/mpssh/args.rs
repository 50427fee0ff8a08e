//! The command line of mpssh: all of mpssh.py's, and what of the C program's does not clash with it.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, ValueHint};

use crate::args::at_least_one;

/// What the program says of itself where mpssh.py says what is different.
const EXIT_STATUS: &str = "Exit status: 0 the run went to its end, however the hosts fared; 1 it was interrupted, or \
    could not begin; 2 wrong usage. See docs/mpssh.md.";

/// Mass parallel SSH: mpssh's flags and output, on sshoal's engine.
#[derive(Debug, Parser)]
#[command(name = "mpssh", max_term_width = 100)]
pub(super) struct Mpssh {
    #[command(flatten)]
    pub(super) args: MpsshArgs,
}

/// `sshoal mpssh`.
#[derive(Debug, Args)]
#[command(
    after_help = EXIT_STATUS,
    args_override_self = true,
    disable_version_flag = true,
    infer_long_args = true
)]
pub(crate) struct MpsshArgs {
    /// The file with the hosts, one a line; - is standard input.
    #[arg(short = 'f', long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) file: Option<PathBuf>,
    /// The pause before each start of each of the parallel sessions, in milliseconds.
    #[arg(
        short = 'd',
        long,
        value_name = "MSEC",
        default_value_t = 50,
        allow_negative_numbers = true
    )]
    pub(super) delay: i64,
    /// Show exit codes of 0, too.
    #[arg(short = 'e', long, visible_alias = "exit")]
    pub(super) zeroexit: bool,
    /// Do not show exit codes other than 0.
    #[arg(short = 'E', long)]
    pub(super) ignexit: bool,
    /// Show non-printable characters; on a terminal as \x1b.
    #[arg(short = 'b', long)]
    pub(super) badchars_ok: bool,
    /// Do not say how many non-printable characters were left out.
    #[arg(short = 'B', long)]
    pub(super) silent_badchars: bool,
    /// Hosts at a time.
    #[arg(
        short = 'p',
        long,
        value_name = "NPROC",
        default_value_t = 100,
        value_parser = at_least_one,
        allow_negative_numbers = true
    )]
    pub(super) procs: u32,
    /// The user to log in as, whatever ssh_config says; without it, who calls.
    #[arg(short = 'u', long, value_hint = ValueHint::Username)]
    pub(super) user: Option<String>,
    /// The longest line, in octets; what is longer goes on in the next.
    #[arg(
        short = 'l',
        long,
        value_name = "CHARS",
        default_value_t = 80,
        value_parser = at_least_one,
        allow_negative_numbers = true
    )]
    pub(super) maxlen: u32,
    /// The ssh to start for each host, in place of sshoal's own.
    #[arg(short = 'S', long, value_name = "PATH", value_hint = ValueHint::ExecutablePath)]
    pub(super) sshbin: Option<PathBuf>,
    /// A flag of ssh without its dash, as in -O 'o Port=2222'; may be given several times.
    #[arg(short = 'O', long, value_name = "OPTION", allow_hyphen_values = true)]
    pub(super) sshopt: Vec<String>,
    /// Such flags from our own configuration file: they count where no -O sets the same.
    #[arg(long, hide = true, value_name = "OPTION", allow_hyphen_values = true)]
    pub(super) default_sshopt: Vec<String>,
    /// Show neither header nor closing line.
    #[arg(short = 'H', long)]
    pub(super) noheader: bool,
    /// Say more in the header.
    #[arg(short = 'v', long)]
    pub(super) verbose: bool,
    /// Show the SSH messages of each host's connection.
    #[arg(short = 'D', long)]
    pub(crate) debug: bool,
    /// Show the version.
    #[arg(short = 'V', long)]
    pub(super) version: bool,
    /// The command, as one word: quote it.
    #[arg(
        value_name = "COMMAND",
        value_hint = ValueHint::CommandName,
        conflicts_with = "script"
    )]
    pub(super) command: Option<OsString>,
    #[command(flatten)]
    pub(super) c: CArgs,
}

/// The flag of ssh that is always given: nobody is asked for anything.
const ASKS_NOBODY: &str = "o NumberOfPasswordPrompts=0";

impl MpsshArgs {
    /// The flags of ssh, without their dashes: those of `-O`, and what the C program has flags of its own for.
    pub(super) fn flags_of_ssh(&self) -> Vec<String> {
        let c = &self.c;
        let identity = c.identity.iter().map(|path| format!("i {path}"));
        let nokeychk = c.nokeychk.then(|| "o StrictHostKeyChecking=no".to_owned());
        let timeout = c.conntmout.map(|time| format!("o ConnectTimeout={time}"));
        let quiet = c.quiet.then(|| "q".to_owned());
        std::iter::once(ASKS_NOBODY.to_owned())
            .chain(self.sshopt.iter().cloned())
            .chain(identity)
            .chain(nokeychk)
            .chain(timeout)
            .chain(quiet)
            .chain(self.default_sshopt.iter().cloned())
            .collect()
    }
}

/// What the C program has besides; only by long names, since the short ones are taken or were never its own.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "As the mpssh in C")]
pub(super) struct CArgs {
    /// Only hosts behind the line %LABEL of the file, and those before any such line.
    #[arg(long)]
    pub(super) label: Option<String>,
    /// Write each host's output to DIR/HOST.out and DIR/HOST.err, untouched.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(super) outdir: Option<PathBuf>,
    /// Do not show the hosts' output.
    #[arg(long)]
    pub(super) blind: bool,
    /// Do not show the hosts' standard output.
    #[arg(long)]
    pub(super) no_out: bool,
    /// Do not show the hosts' standard error.
    #[arg(long)]
    pub(super) no_err: bool,
    /// Say nothing of why a host could not be reached but its exit code.
    #[arg(long)]
    pub(super) quiet: bool,
    /// Run a local script in place of a command; no file is left on the hosts.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) script: Option<PathBuf>,
    /// A private key file.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) identity: Option<String>,
    /// Accept any host key: StrictHostKeyChecking=no.
    #[arg(long)]
    pub(super) nokeychk: bool,
    /// Seconds for a connection: ConnectTimeout.
    #[arg(long, value_name = "SECONDS", value_parser = at_least_one, allow_negative_numbers = true)]
    pub(super) conntmout: Option<u32>,
}
