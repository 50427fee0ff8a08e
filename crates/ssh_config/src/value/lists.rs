//! Values that are several words (`process_config_line_depth`, readconf.c).

use std::vec::IntoIter;

use super::number::{port, seconds};
use crate::jump;

/// Reads a keyword's arguments.
pub(crate) type Items = fn(&mut IntoIter<String>) -> Result<Vec<String>, String>;

/// `parse_char_array` (readconf.c): `none` must stand alone, and no words at all say nothing.
pub(crate) fn files(arguments: &mut IntoIter<String>) -> Result<Vec<String>, String> {
    words(arguments, "none", |word| match word.as_str() {
        "" => Err("an argument is empty".into()),
        _ => Ok(word),
    })
}

/// At least one word; `none` must stand alone.
pub(crate) fn some_files(arguments: &mut IntoIter<String>) -> Result<Vec<String>, String> {
    at_least_one(files(arguments)?)
}

/// `LogVerbose`, of which ssh keeps the first word only.
pub(crate) fn log_verbose(arguments: &mut IntoIter<String>) -> Result<Vec<String>, String> {
    let mut words = files(arguments)?;
    words.truncate(1);
    Ok(words)
}

/// `SendEnv`
pub(crate) fn send_env(arguments: &mut IntoIter<String>) -> Result<Vec<String>, String> {
    let names: Vec<String> = arguments.collect();
    if names
        .iter()
        .any(|name| name.is_empty() || name.contains('='))
    {
        return Err("invalid environment variable name".into());
    }
    at_least_one(names)
}

/// `CanonicalDomains`
pub(crate) fn canonical_domains(arguments: &mut IntoIter<String>) -> Result<Vec<String>, String> {
    at_least_one(words(arguments, "none", |word| {
        let domain = word.to_ascii_lowercase();
        match is_domain(&domain) {
            true => Ok(domain.strip_suffix('.').unwrap_or(&domain).into()),
            false => Err(format!("\"{word}\" is not a domain name")),
        }
    })?)
}

/// `valid_domain` (misc.c)
pub(crate) fn is_domain(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && name.chars().all(is_part)
        && !name.contains("..")
}

/// `CanonicalizePermittedCNAMEs SOURCES:TARGETS...`, as pairs joined by a colon.
pub(crate) fn permitted_cnames(arguments: &mut IntoIter<String>) -> Result<Vec<String>, String> {
    at_least_one(words(arguments, "none", |word| {
        if word == "*" {
            return Ok("*:*".into());
        }
        match word.split_once(':') {
            Some((_, targets)) if !targets.is_empty() => Ok(word.to_ascii_lowercase()),
            _ => Err(format!("invalid permitted CNAME \"{word}\"")),
        }
    })?)
}

/// `ChannelTimeout TYPE=TIME...`
pub(crate) fn channel_timeouts(arguments: &mut IntoIter<String>) -> Result<Vec<String>, String> {
    at_least_one(words(arguments, "none", |word| {
        match word.split_once('=') {
            Some((kind, time)) if !kind.is_empty() => seconds(time).map(|_| word),
            _ => Err(format!("invalid channel timeout \"{word}\"")),
        }
    })?)
}

/// `PermitRemoteOpen HOST:PORT...`; `any` and `none` must stand alone.
pub(crate) fn permit_remote_open(arguments: &mut IntoIter<String>) -> Result<Vec<String>, String> {
    let words = words(arguments, "any", |word| {
        if word.eq_ignore_ascii_case("none") {
            return Ok(word);
        }
        let (_, rest) = jump::split_host(&word).ok_or("the host is missing")?;
        match rest {
            Some("*") => Ok(word),
            Some(number) => port(number).map(|_| word),
            None => Err(format!("\"{word}\" lacks its port")),
        }
    })?;
    if words.len() > 1 && words.iter().any(|word| word.eq_ignore_ascii_case("none")) {
        return Err("\"none\" must stand alone".into());
    }
    at_least_one(words)
}

fn words(
    arguments: &mut IntoIter<String>,
    alone: &str,
    read: impl Fn(String) -> Result<String, String>,
) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    for word in arguments.by_ref() {
        if word.eq_ignore_ascii_case(alone) {
            words.push(word);
        } else {
            words.push(read(word)?);
        }
    }
    let stands = |word: &String| word.eq_ignore_ascii_case(alone);
    if words.len() > 1 && words.iter().any(stands) {
        return Err(format!("\"{alone}\" must stand alone"));
    }
    Ok(words)
}

fn at_least_one(words: Vec<String>) -> Result<Vec<String>, String> {
    if words.is_empty() {
        Err("the argument is missing".into())
    } else {
        Ok(words)
    }
}
