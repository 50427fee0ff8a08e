//! Ansible's ranges: `www[01:50]`, `db-[a:f]`, `n[1:9:2]`, with a port or not.

use std::net::Ipv6Addr;

use crate::{MAX_TARGETS, TargetProblem, number::Number};

/// The names of a pattern, and its port.
pub(super) fn expand(pattern: &str) -> Result<(Vec<String>, Option<&str>), TargetProblem> {
    let (pattern, port) = split_port(pattern);
    let mut names = vec![String::new()];
    let mut rest = pattern;
    if pattern.parse::<Ipv6Addr>().is_ok() {
        return Ok((vec![pattern.to_owned()], port));
    }
    while let Some((before, behind)) = rest.split_once('[') {
        let (inside, after) = behind
            .split_once(']')
            .ok_or(TargetProblem::UnclosedBracket)?;
        let values = values(inside)?;
        if names.len().saturating_mul(values.len()) > MAX_TARGETS {
            return Err(TargetProblem::TooMany);
        }
        let longer = |name: &String| {
            values
                .iter()
                .map(move |value| format!("{name}{before}{value}"))
                .collect()
        };
        names = names
            .iter()
            .flat_map(|name| -> Vec<String> { longer(name) })
            .collect();
        rest = after;
    }
    names.iter_mut().for_each(|name| name.push_str(rest));
    Ok((names, port))
}

/// Takes `:port` off; the colons of ranges and addresses are in brackets.
fn split_port(pattern: &str) -> (&str, Option<&str>) {
    let address = pattern
        .strip_prefix('[')
        .and_then(|text| text.split_once(']'));
    if let Some((address, behind)) =
        address.filter(|(address, _)| address.parse::<Ipv6Addr>().is_ok())
    {
        return (address, behind.strip_prefix(':'));
    }
    match pattern.rsplit_once(':') {
        Some((host, port))
            if !port.contains(']')
                && !host.ends_with(':')
                && host.parse::<Ipv6Addr>().is_err()
                && !is_bare_address(pattern) =>
        {
            (host, Some(port))
        }
        _ => (pattern, None),
    }
}

fn is_bare_address(pattern: &str) -> bool {
    pattern.parse::<Ipv6Addr>().is_ok()
}

/// `first:last` or `first:last:step`, numbers or single letters.
fn values(range: &str) -> Result<Vec<String>, TargetProblem> {
    let bad = || TargetProblem::InventoryRange(range.to_owned());
    let parts: Vec<&str> = range.split(':').collect();
    let (first, last, step) = match parts[..] {
        [first, last] => (first, last, "1"),
        [first, last, step] => (first, last, step),
        _ => return Err(bad()),
    };
    let step = Number::parse(step)
        .map(|step| step.value)
        .filter(|step| *step > 0)
        .ok_or_else(bad)?;
    let letter = |text: &str| match text.as_bytes() {
        [letter] if letter.is_ascii_alphabetic() => Some(*letter),
        _ => None,
    };
    if let (Some(first), Some(last)) = (letter(first), letter(last)) {
        // Letters of one case: from one to the other there are other characters.
        if first > last || first.is_ascii_uppercase() != last.is_ascii_uppercase() {
            return Err(bad());
        }
        let step = usize::try_from(step).map_err(|_| bad())?;
        return Ok((first..=last)
            .step_by(step)
            .map(|letter| char::from(letter).to_string())
            .collect());
    }
    let number = |text| Number::parse(text).ok_or_else(bad);
    let (first, last) = (
        number(if first.is_empty() { "0" } else { first })?,
        number(last)?,
    );
    if first.value > last.value || (first.is_padded() && first.digits != last.digits) {
        return Err(bad());
    }
    let count = (last.value - first.value) / step + 1;
    if count > MAX_TARGETS as u64 {
        return Err(TargetProblem::TooMany);
    }
    let text = |index| {
        let mut text = String::new();
        Number::padded(first.value + index * step, first.padding()).push_to(&mut text);
        text
    };
    Ok((0..count).map(text).collect())
}
