#![allow(clippy::unwrap_used)]

use clap::Parser;

use super::*;

/// What the user reads, from words separated by spaces.
fn said(line: &str) -> String {
    let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
    let error = Cli::try_parse_from(&arguments).unwrap_err();
    explained(error, &arguments).to_string()
}

#[test]
fn a_flag_that_we_lack_is_answered_with_what_to_write() {
    for (line, tip) in [
        (
            "sshoal run -H web1 uptime",
            "for the -H of pssh: write -w HOST,...",
        ),
        (
            "sshoal run --fanout 5 uptime",
            "for the --fanout of clush: write -p N",
        ),
        (
            "sshoal run --askpass uptime",
            "for the --askpass of pssh: write --ask-pass",
        ),
        (
            "sshoal run -w web1 -u root true",
            "for the -u of mpssh: write -l USER",
        ),
        (
            "sshoal run -i -w web1 true",
            "for the -i of pssh: output is shown",
        ),
        (
            "sshoal run -w -web1 true",
            "for the -w -HOST of pdsh: write -x HOST",
        ),
        (
            "sshoal each -w web1 --sudo true",
            "--sudo is a flag of sshoal run",
        ),
        (
            "sshoal mpssh -w web1 true",
            "-w is a flag of sshoal run; sshoal mpssh has those of mpssh alone",
        ),
        ("sshoal -w web1 true", COMMAND_FIRST),
        ("sshoal web1 true", COMMAND_FIRST),
        ("sshoal help run", "sshoal run --help"),
    ] {
        assert!(said(line).contains(tip), "{line}: {}", said(line));
    }
}

#[test]
fn copies_are_told_of_their_own_flags() {
    let copies = "copies files and runs no command";
    for line in ["sshoal put --sudo a b", "sshoal get --stdin - a b"] {
        assert!(said(line).contains(copies), "{}", said(line));
    }
    let ciphers = said("sshoal ciphers --sudo web1");
    assert!(ciphers.contains("runs no command of yours"), "{ciphers}");
    let parallel = said("sshoal put --fanout 5 a b");
    assert!(parallel.contains("write --parallel N"), "{parallel}");
    // They have no --outdir.
    let nothing = said("sshoal put -O out a b");
    assert!(!nothing.contains("--outdir") && nothing.contains("write -o KEY=VALUE"));
    let outdir = said("sshoal put -e err a b");
    assert!(!outdir.contains("--outdir"), "{outdir}");
}

#[test]
fn a_slip_is_corrected_by_the_parser_itself() {
    assert!(said("sshoal run --jsn true").contains("'--json'"));
    assert!(said("sshoal runn true").contains("'run'"));
}

#[test]
fn nobody_is_told_to_run_a_flag_as_a_command() {
    assert!(!said("sshoal run -w web1 -Z uptime").contains("-- -Z"));
}

#[test]
fn help_that_was_not_wanted_is_an_error() {
    let text = said("sshoal run -h hosts.txt uptime");
    assert!(
        text.starts_with("error: -h shows the help") && text.contains("run -f hosts.txt"),
        "{text}"
    );
    assert!(said("sshoal -h hosts.txt uptime").contains("run -f hosts.txt"));
    assert!(said("sshoal man -h run").starts_with("Print a manual page"));
    assert!(said("sshoal run -h").starts_with("Run a command"));
    assert!(said("sshoal run -w web1 --help").starts_with("Run a command"));
}

#[test]
fn no_row_is_about_a_flag_that_we_have() {
    let cli = Cli::command();
    let run = cli.find_subcommand("run").unwrap();
    for flag in LACKED.iter().flat_map(|(_, flags, _)| *flags) {
        assert!(!has(run, flag), "{flag}");
    }
    for (flag, _, _) in MEANT_OTHERWISE {
        assert!(has(run, flag), "{flag}");
    }
}
