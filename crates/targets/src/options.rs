//! What is said of one host besides its name.

use crate::{
    Target, TargetProblem,
    target::{checked_user, parse_port},
};

/// Longest value of an option, in octets.
const MAX_VALUE: usize = 4096;

/// Most options of one host.
const MAX_OPTIONS: usize = 64;

/// Whether it may be a keyword of ssh_config: `IdentityFile`, `ForwardX11`.
pub(crate) fn is_keyword(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_alphabetic())
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Sets `keyword` of ssh_config for a target. `User` and `Port` become its own fields, unless its spec has said
/// them already: the nearest word to the name counts.
pub(crate) fn apply_option(
    target: &mut Target,
    keyword: &str,
    value: &str,
) -> Result<(), TargetProblem> {
    if !is_keyword(keyword) {
        return Err(TargetProblem::OptionKeyword(keyword.to_owned()));
    }
    let is_bad = |c: char| c.is_control() && c != '\t';
    if value.trim().is_empty() || value.len() > MAX_VALUE || value.contains(is_bad) {
        return Err(TargetProblem::OptionValue(keyword.to_owned()));
    }
    if keyword.eq_ignore_ascii_case("User") {
        let user = checked_user(value)?.to_owned();
        target.user.get_or_insert(user);
    } else if keyword.eq_ignore_ascii_case("Port") {
        let port = parse_port(value)?;
        target.port.get_or_insert(port);
    } else if target.options.len() == MAX_OPTIONS {
        return Err(TargetProblem::TooManyOptions(MAX_OPTIONS));
    } else {
        target.options.push((keyword.to_owned(), value.to_owned()));
    }
    Ok(())
}
