//! What a flag of another program is called here: the tips below the parser's messages.

use std::ffi::OsString;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory};

use crate::args::Cli;
use crate::mpssh;

/// Programs, their flags that we do not have, and what to do here.
#[rustfmt::skip]
const LACKED: &[(&str, &[&str], &str)] = &[
    ("pssh", &["-H", "--host"], "write -w HOST,..."),
    ("pssh", &["--askpass"], "write --ask-pass"),
    ("pssh", &["-O"], "write -o KEY=VALUE"),
    ("pssh", &["--extra-arg", "--extra-args"], "write -o KEY=VALUE"),
    ("pssh", &["-I", "--send-input"], "write --stdin -"),
    ("pssh", &["-P", "--print", "--inline", "--inline-stdout"], "output is shown without a flag"),
    ("pssh", &["--host-glob"], "write -w 'GLOB', or behind a list -w 'LIST&GLOB'"),
    ("pssh", &["--par"], "write -p N"),
    ("pssh", &["-e"], "write --outdir DIR, for DIR/HOST.out and DIR/HOST.err"),
    ("pssh and clush", &["--errdir"], "write --outdir DIR, for DIR/HOST.out and DIR/HOST.err"),
    ("pssh and clush", &["--user"], "write -l USER"),
    ("pdsh and clush", &["-R"], "all goes by SSH; for a command on this machine there is sshoal each"),
    ("pdsh and clush", &["-N"], "--outdir and --json keep output without the host before each line"),
    ("clush", &["--worker"], "all goes by SSH; for a command on this machine there is sshoal each"),
    ("clush", &["--fanout"], "write -p N"),
    ("clush", &["--hostfile", "--machinefile"], "write -f FILE"),
    ("clush", &["--dshbak", "-B"], "write -b"),
    ("clush", &["--maxrc"], "write -S"),
    ("clush", &["--connect_timeout"], "write --connect-timeout SECONDS"),
    ("clush", &["--command_timeout"], "write -u SECONDS"),
    ("clush", &["--options"], "write -o KEY=VALUE"),
    ("clush", &["-O"], "defaults stand in ~/.config/sshoal/config.toml"),
    ("clush", &["-P", "--progress"], "progress is shown on a terminal without a flag"),
    ("clush", &["-n", "--nostdin"], "nothing is read without --stdin"),
    ("clush", &["-c", "--copy", "--rcopy", "--dest"], "write sshoal put LOCAL REMOTE, or sshoal get REMOTE LOCALDIR"),
    ("clush", &["-r", "--regroup"], "sshoal hosts list shows groups; -b folds names to ranges"),
    ("mpssh", &["-r"], "write --script FILE"),
    ("mpssh", &["--file"], "write -f FILE"),
    ("mpssh", &["--procs"], "write -p N"),
    ("mpssh", &["--conntmout"], "write --connect-timeout SECONDS"),
    ("mpssh", &["--label"], "write -f FILE, with a file for each; sshoal mpssh has labels"),
    ("mpssh", &["-e", "--exit"], "statuses other than 0 are in the summary; -v shows a line for each host"),
    ("mpssh", &["-E", "--no-err"], "write 2>/dev/null"),
    ("mpssh.py", &["-O"], "write -o KEY=VALUE, or with --transport openssh --ssh-word -FLAG"),
    ("mpssh", &["-O", "--no-out"], "write >/dev/null"),
    ("mpssh", &["-s", "--nokeychk"], "write -o StrictHostKeyChecking=no"),
];

/// Our flags that another program has for something else, as they show by what is wrong about their values.
#[rustfmt::skip]
const MEANT_OTHERWISE: &[(&str, &str, &str)] = &[
    ("--timeout", "-u of mpssh", "write -l USER"),
    ("--identity", "-i of pssh", "output is shown without a flag; here -i names a private key file"),
    ("--exclude", "-x of pssh", "write -o KEY=VALUE; here -x names hosts to leave out"),
    ("--hosts", "-w -HOST of pdsh", "write -x HOST"),
    ("--option", "-o of clush", "write -o Port=2222 in place of -o '-p 2222'"),
    ("--option", "-o of pssh and mpssh", "write --outdir DIR"),
];

/// The parser's error with our tips, or another one that says more.
pub(crate) fn explained(mut error: clap::Error, arguments: &[OsString]) -> clap::Error {
    let mut cli = Cli::command();
    cli.build();
    if error.kind() == ErrorKind::DisplayHelp {
        return help_for(&cli, arguments).unwrap_or(error);
    }
    // Of what follows `--` it would make a command, to be run on every host.
    error.remove(ContextKind::Suggested);
    let command = named(&cli, arguments);
    // What has commands of its own has nothing in common with those programs.
    if command.has_subcommands() && command.get_name() != cli.get_name() {
        return error;
    }
    let tips = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(flag)) if error.kind() == ErrorKind::UnknownArgument => {
            unknown(&cli, arguments, flag)
        }
        Some(ContextValue::String(flag)) if is_about_a_value(error.kind()) => {
            misused(command, flag)
        }
        _ if error.kind() == ErrorKind::InvalidSubcommand => no_command(&error),
        _ => Vec::new(),
    };
    if !tips.is_empty() {
        error.remove(ContextKind::SuggestedArg);
        let tips = tips.into_iter().map(StyledStr::from).collect();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    error
}

/// `-h hosts.txt`, as with pssh: help is not what was wanted, and a script must not take it for success.
fn help_for(cli: &Command, arguments: &[OsString]) -> Option<clap::Error> {
    let at = arguments.iter().position(|argument| argument == "-h")?;
    let file = arguments.get(at + 1)?.to_str()?;
    let command = named(cli, arguments);
    let name = match command.get_name() {
        name if has(command, "-f") => name,
        name if name == cli.get_name() => "run",
        _ => return None,
    };
    (!file.starts_with('-')).then(|| {
        let message = format!(
            "-h shows the help and takes no value; a file of hosts is named by -f, as in sshoal {name} -f {file}"
        );
        command.clone().error(ErrorKind::UnknownArgument, message)
    })
}

/// The command that the arguments begin with, or the whole program.
fn named<'a>(cli: &'a Command, arguments: &[OsString]) -> &'a Command {
    arguments
        .get(1)
        .and_then(|name| cli.find_subcommand(name))
        .unwrap_or(cli)
}

fn unknown(cli: &Command, arguments: &[OsString], flag: &str) -> Vec<String> {
    let command = named(cli, arguments);
    if command.get_name() == cli.get_name() {
        return vec![COMMAND_FIRST.to_owned()];
    }
    if cli.find_subcommand("run").is_some_and(|run| has(run, flag)) {
        let why = match command.get_name() {
            mpssh::NAME => "sshoal mpssh has those of mpssh alone (docs/mpssh.md)".to_owned(),
            name @ ("put" | "get") => format!("sshoal {name} copies files and runs no command"),
            name @ ("ciphers" | "why") => format!("sshoal {name} runs no command of yours"),
            name => format!("sshoal {name} does not log in anywhere"),
        };
        return vec![format!("{flag} is a flag of sshoal run; {why}")];
    }
    let lacked = LACKED.iter().filter(|(_, flags, _)| flags.contains(&flag));
    let lacked = lacked.filter_map(|(program, _, here)| Some((program, advice(command, here)?)));
    lacked
        .map(|(program, here)| format!("for the {flag} of {program}: {here}"))
        .collect()
}

/// What a row says, in the flags of this command; `None` if it names one that the command does not have.
fn advice(command: &Command, here: &str) -> Option<String> {
    let here = match command.get_name() {
        // There -p is for modes and times.
        "put" | "get" => here.replace("-p N", "--parallel N"),
        _ => here.to_owned(),
    };
    let is_flag = |word: &&str| word.starts_with("--") || word.len() == 2 && word.starts_with('-');
    let mut flags = here.split([' ', ',', ';']).filter(is_flag);
    flags.all(|flag| has(command, flag)).then_some(here)
}

fn has(command: &Command, flag: &str) -> bool {
    command.get_arguments().any(|argument| {
        let long = argument.get_long().map(|long| format!("--{long}"));
        let short = argument.get_short().map(|short| format!("-{short}"));
        [long, short].iter().flatten().any(|own| own == flag)
    })
}

fn is_about_a_value(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::InvalidValue | ErrorKind::ValueValidation)
}

/// `flag` as the parser shows it, with its value's name.
fn misused(command: &Command, flag: &str) -> Vec<String> {
    let name = flag.split(' ').next().unwrap_or_default();
    let meant = MEANT_OTHERWISE.iter().filter(|(own, _, _)| *own == name);
    let meant = meant.filter_map(|(_, other, here)| Some((other, advice(command, here)?)));
    meant
        .map(|(other, here)| format!("for the {other}: {here}"))
        .collect()
}

/// What to say where the command is missing.
const COMMAND_FIRST: &str =
    "a command of sshoal comes first, as in sshoal run -w 'web[1-40]' uptime";

fn no_command(error: &clap::Error) -> Vec<String> {
    match error.get(ContextKind::SuggestedSubcommand) {
        Some(_) => Vec::new(),
        None if error.get(ContextKind::InvalidSubcommand)
            == Some(&ContextValue::String("help".to_owned())) =>
        {
            vec!["help is shown by sshoal --help, sshoal run --help and so on".to_owned()]
        }
        None => vec![COMMAND_FIRST.to_owned()],
    }
}

#[cfg(test)]
mod tests;
