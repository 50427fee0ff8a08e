//! `sshoal hosts`: host lists and groups as text, for people and for pipes.

mod groups;

use std::fmt::Write as _;
use std::io::{self, IsTerminal};
use std::path::Path;

use clap::{Args, ValueEnum, ValueHint};
use serde::Serialize;
use serde_json::{Map, Value};
use sshoal_report::target_options;
use sshoal_targets::{Target, fold, split};

use crate::args::HostArgs;
use crate::hosts::{self, HostsError};
use crate::manual;

/// `sshoal hosts`.
#[derive(Debug, Args)]
#[command(
    after_help = "Without LIST and without a flag that names hosts, lists are read from standard input."
)]
pub(crate) struct HostsArgs {
    /// What to do: expand, fold, count, split, or list (groups, of the hosts in LIST if there are any).
    #[arg(value_enum, hide_possible_values = true)]
    action: Action,
    /// Host lists, in the form of -w; - is standard input.
    #[arg(value_name = "LIST", value_hint = ValueHint::Hostname)]
    lists: Vec<String>,
    /// What stands between two hosts, parts or groups; \n, \t and \0 are understood. A line feed if not given.
    #[arg(
        short = 'S',
        long,
        value_name = "TEXT",
        default_value = "\\n",
        hide_default_value = true
    )]
    separator: String,
    /// split: into how many parts.
    #[arg(short = 'n', long, value_name = "N", required_if_eq("action", "split"), value_parser = parts)]
    parts: Option<usize>,
    /// list: the groups of this source, and not of the default one.
    #[arg(short = 's', long, value_name = "SOURCE")]
    source: Option<String>,
    /// list: with the hosts of each group.
    #[arg(short = 'm', long)]
    members: bool,
    /// One JSON value in place of text.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    hosts: HostArgs,
}

/// What to do with hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Action {
    Expand,
    Fold,
    Count,
    Split,
    List,
}

/// A host in JSON, as `-f` reads it again.
#[derive(Serialize)]
struct Record<'a> {
    host: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    port: Option<u16>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    options: Map<String, Value>,
}

/// Prints what is asked for; returns the exit status.
pub(crate) fn run(args: &HostsArgs) -> Result<u8, Box<dyn std::error::Error>> {
    let separator = unescaped(&args.separator);
    let text = match args.action {
        Action::List => groups::list(args, &separator)?,
        action => {
            let targets = targets(args)?;
            match args.json {
                true => line(&json(action, args, &targets)?),
                false => text(action, args, &targets, &separator),
            }
        }
    };
    Ok(manual::print(text.as_bytes()))
}

/// The hosts that are named, perhaps none.
fn targets(args: &HostsArgs) -> Result<Vec<Target>, HostsError> {
    let mut named = args.hosts.clone();
    let is_silent = args.lists.is_empty() && !hosts::are_in_arguments(&named);
    for list in &args.lists {
        named.list.push(match list.as_str() {
            "-" => standard_input()?,
            list => list.to_owned(),
        });
    }
    if is_silent {
        if io::stdin().is_terminal() {
            return Err(HostsError::NoneNamed);
        }
        named.list.push(standard_input()?);
    }
    hosts::choose(&named).map(|chosen| chosen.targets)
}

/// The lists on standard input as one; `#` begins a comment.
fn standard_input() -> Result<String, HostsError> {
    let text = hosts::contents(Path::new("-"))?;
    let text = String::from_utf8(text).map_err(|error| HostsError::Unreadable {
        path: "-".to_owned(),
        error: io::Error::new(io::ErrorKind::InvalidData, error),
    })?;
    let lines = text.lines().map(|line| line.split('#').next());
    Ok(lines.flatten().collect::<Vec<_>>().join(" "))
}

fn text(action: Action, args: &HostsArgs, targets: &[Target], separator: &str) -> String {
    match action {
        Action::Count => line(&targets.len().to_string()),
        Action::Fold => line(&folded(targets)),
        Action::Split => joined(
            parts_of(args, targets).iter().map(|part| folded(part)),
            separator,
        ),
        Action::Expand | Action::List => joined(targets.iter(), separator),
    }
}

fn json(action: Action, args: &HostsArgs, targets: &[Target]) -> serde_json::Result<String> {
    match action {
        Action::Count => serde_json::to_string(&targets.len()),
        Action::Fold => serde_json::to_string(&folded(targets)),
        Action::Split => {
            let parts = parts_of(args, targets);
            let parts: Vec<String> = parts.iter().map(|part| folded(part)).collect();
            serde_json::to_string(&parts)
        }
        Action::Expand | Action::List => {
            let records = targets.iter().map(|target| Record {
                host: &target.name,
                user: target.user.as_deref(),
                port: target.port,
                options: target_options(target),
            });
            serde_json::to_string(&records.collect::<Vec<_>>())
        }
    }
}

fn parts_of<'a>(args: &HostsArgs, targets: &'a [Target]) -> Vec<&'a [Target]> {
    split(targets, args.parts.unwrap_or(1))
}

fn folded(targets: &[Target]) -> String {
    fold(targets.iter().map(Target::to_string))
}

/// A line, or nothing where there is nothing to say.
fn line(text: &str) -> String {
    match text.is_empty() {
        true => String::new(),
        false => format!("{text}\n"),
    }
}

/// Items with a separator between them, and a line feed at the end.
fn joined(items: impl Iterator<Item: std::fmt::Display>, separator: &str) -> String {
    let mut text = String::new();
    for (index, item) in items.enumerate() {
        if index > 0 {
            text.push_str(separator);
        }
        // A String takes all that is written.
        let _ = write!(text, "{item}");
    }
    line(&text)
}

/// `\n`, `\t`, `\0` and `\\` as shells leave them.
fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        let mut ahead = characters.clone();
        let meant = match (character, ahead.next()) {
            ('\\', Some('n')) => '\n',
            ('\\', Some('t')) => '\t',
            ('\\', Some('0')) => '\0',
            ('\\', Some('\\')) => '\\',
            _ => {
                out.push(character);
                continue;
            }
        };
        out.push(meant);
        characters = ahead;
    }
    out
}

fn parts(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "it must be a whole number from 1 on".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_may_be_written_as_in_c() {
        assert_eq!(unescaped(r", \n\t\\n\0\x\"), ", \n\t\\n\0\\x\\");
    }

    #[test]
    fn nothing_is_no_line() {
        assert_eq!(joined([""; 0].iter(), ","), "");
        assert_eq!(joined(["a", "b"].iter(), ", "), "a, b\n");
    }
}
