//! `ansible_ssh_common_args` and `ansible_ssh_extra_args`: words of ssh's command line, as far as they are settings.

use crate::{Target, TargetProblem, options::apply_option, words::words};

/// The flags of ssh that are understood, each with a value, and the keyword of ssh_config that they set; `-o` has its own.
const FLAGS: [(char, &str); 5] = [
    ('o', ""),
    ('J', "ProxyJump"),
    ('p', "Port"),
    ('l', "User"),
    ('i', "IdentityFile"),
];

/// Sets what the words say. What is set already stays, since ssh takes the first of several values.
pub(super) fn apply(target: &mut Target, arguments: &str) -> Result<(), TargetProblem> {
    let words = words(arguments).map_err(|_| TargetProblem::UnclosedQuote)?;
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        let unknown = || TargetProblem::SshArgument(word.to_owned());
        let (keyword, joined) = flag(word).ok_or_else(unknown)?;
        let value = match joined {
            "" => words.next().ok_or_else(unknown)?,
            joined => joined,
        };
        let (keyword, value) = match keyword {
            "" => {
                setting(value).ok_or_else(|| TargetProblem::SshArgument(format!("-o {value}")))?
            }
            keyword => (keyword, value),
        };
        apply_option(target, keyword, value)?;
    }
    Ok(())
}

/// The keyword of a flag, and what is joined to it: `-p22`.
fn flag(word: &str) -> Option<(&'static str, &str)> {
    let mut characters = word.strip_prefix('-')?.chars();
    let letter = characters.next()?;
    let (_, keyword) = FLAGS.iter().find(|(known, _)| *known == letter)?;
    Some((keyword, characters.as_str()))
}

/// `Keyword=value`, `Keyword = value` or `Keyword value` (process_config_line, readconf.c).
fn setting(text: &str) -> Option<(&str, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| c == '=' || c.is_whitespace())?;
    let (keyword, rest) = text.split_at(end);
    let rest = rest.trim_start();
    Some((keyword, rest.strip_prefix('=').unwrap_or(rest).trim()))
}
