//! Shell completion: the parser's own scripts, and hosts and groups from a hidden command.

mod scripts;

use std::path::PathBuf;

use clap::Args;

use crate::args::HostArgs;
use crate::hosts::{Lists, config_names, known_hosts_names};
use crate::{manual, plan, retry};

pub(crate) use scripts::script;

/// `sshoal complete-hosts`, for the scripts.
#[derive(Debug, Args)]
pub(crate) struct CompleteArgs {
    /// Groups, as -g takes them, in place of hosts.
    #[arg(long, conflicts_with = "kinds")]
    groups: bool,
    /// Kinds of failure, as --retry-failed takes them, in place of hosts.
    #[arg(long)]
    kinds: bool,
    /// Runs that are kept, in place of hosts.
    #[arg(long, conflicts_with_all = ["groups", "kinds"])]
    runs: bool,
    /// Steps of the plan that the words name, in place of hosts.
    #[arg(long, conflicts_with_all = ["groups", "kinds", "runs"])]
    steps: bool,
    /// A list as far as it is typed.
    #[arg(allow_hyphen_values = true, default_value = "")]
    list: String,
    /// All words of the command line.
    #[arg(allow_hyphen_values = true)]
    words: Vec<PathBuf>,
}

/// Prints what the list may go on with, whole lists one a line. What cannot be found out is nothing.
pub(crate) fn run(args: &CompleteArgs) -> Result<u8, Box<dyn std::error::Error>> {
    let mut names = candidates(args);
    names.sort_unstable();
    names.dedup();
    let text: String = names.into_iter().map(|name| name + "\n").collect();
    Ok(manual::print(text.as_bytes()))
}

fn candidates(args: &CompleteArgs) -> Vec<String> {
    let (before, part) = args.list.split_at(last_operand(&args.list));
    if args.groups {
        return groups(before, part);
    }
    if args.kinds {
        return kinds(&args.list);
    }
    if args.runs {
        return runs(&args.list);
    }
    if args.steps {
        return steps(&args.list, &args.words);
    }
    if let Some(group) = part.strip_prefix('@') {
        return groups(&format!("{before}@"), group);
    }
    let (user, name) = part.split_at(part.rfind('@').map_or(0, |at| at + 1));
    let names = config_names().into_iter().chain(known_hosts_names());
    let names = names.map(|target| target.to_string());
    names
        .filter(|known| known.starts_with(name))
        .map(|known| format!("{before}{user}{known}"))
        .collect()
}

/// Groups of the source that is named, or of the default one.
fn groups(before: &str, part: &str) -> Vec<String> {
    let (source, group) = match part.split_once(':') {
        Some((source, group)) => (Some(source), group),
        None => (None, part),
    };
    let lists = Lists::new(&HostArgs::default());
    let known = lists.and_then(|mut lists| lists.group_names(source));
    let known = known.unwrap_or_default().into_iter();
    let prefix = source
        .map(|source| format!("{source}:"))
        .unwrap_or_default();
    known
        .filter(|known| known.starts_with(group))
        .map(|known| format!("{before}{prefix}{known}"))
        .collect()
}

/// Kinds of failure that are not in the list yet.
fn kinds(list: &str) -> Vec<String> {
    with_one_more(list, retry::names())
}

/// Steps that are not in the list yet, of the first word that is a plan.
fn steps(list: &str, words: &[PathBuf]) -> Vec<String> {
    let names = words.iter().find_map(|word| plan::step_names(word));
    let names = names.unwrap_or_default();
    with_one_more(list, names.iter().map(String::as_str))
}

/// The list with each of the names that it may go on with, and does not have.
fn with_one_more<'a>(list: &str, names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let (before, part) = list.split_at(list.rfind(',').map_or(0, |at| at + 1));
    let is_new = |name: &&str| !before.split(',').any(|known| known == *name);
    names
        .filter(|name| name.starts_with(part))
        .filter(is_new)
        .map(|name| format!("{before}{name}"))
        .collect()
}

/// Runs that are called so.
fn runs(begun: &str) -> Vec<String> {
    let folder = sshoal_net::runs_folder();
    let known = folder.and_then(|folder| sshoal_net::known_runs(&folder).ok());
    let known = known.unwrap_or_default().into_iter();
    let names = known.map(|run| run.to_string()).chain(["last".to_owned()]);
    names.filter(|name| name.starts_with(begun)).collect()
}

/// Where the last operand of a list begins, behind its operator or the minus sign of an exclusion.
fn last_operand(list: &str) -> usize {
    let mut inside_brackets = false;
    let mut start = 0;
    for (at, character) in list.char_indices() {
        match character {
            '[' => inside_brackets = true,
            ']' => inside_brackets = false,
            ',' | '!' | '&' | '^' | ' ' if !inside_brackets => start = at + 1,
            '-' if at == start => start = at + 1,
            _ => {}
        }
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_named_once() {
        assert_eq!(kinds("auth-d"), ["auth-denied"]);
        assert_eq!(kinds("auth-denied,not"), ["auth-denied,not-started"]);
        assert_eq!(kinds("auth-denied,auth-d"), [""; 0]);
        assert!(kinds("").len() > 5);
    }

    #[test]
    fn a_list_goes_on_with_its_last_operand() {
        for (list, operand) in [
            ("", ""),
            ("we", "we"),
            ("web1,we", "we"),
            ("@web!@ra", "@ra"),
            ("web[1,2", "web[1,2"),
            ("web1,-we", "we"),
            ("we-b", "we-b"),
        ] {
            assert_eq!(&list[last_operand(list)..], operand, "{list}");
        }
    }
}
