//! Names out of known_hosts and ssh_config: hosts that globs can choose from.

use std::net::IpAddr;

use crate::{Target, file::lines, target::check_spec};

/// The plain names of a known_hosts file, each line's in order; an entry `[name]:port` is a target with that
/// port. Hashed names, patterns and lines with a marker say no name. A line's addresses count only when it has
/// no name: they belong to the same host. What is no line of known_hosts is passed over.
pub fn known_hosts_names(contents: &[u8]) -> Vec<Target> {
    let mut targets = Vec::new();
    for (_, line) in lines(contents) {
        let line = String::from_utf8_lossy(line);
        let mut words = line.split_whitespace();
        let names = words.next().unwrap_or_default();
        let has_key = words.next().is_some() && words.next().is_some();
        if !has_key || names.starts_with(['#', '@', '|']) {
            continue;
        }
        let new: Vec<Target> = names.split(',').filter_map(known_hosts_name).collect();
        let is_name = |target: &Target| target.name.parse::<IpAddr>().is_err();
        let any_name = new.iter().any(is_name);
        targets.extend(
            new.into_iter()
                .filter(|target| is_name(target) || !any_name),
        );
    }
    targets
}

fn known_hosts_name(name: &str) -> Option<Target> {
    let (name, port) = match name.strip_prefix('[') {
        Some(bracketed) => {
            let (name, port) = bracketed.split_once("]:")?;
            (name, Some(port.parse().ok().filter(|port| *port != 0)?))
        }
        None => (name, None),
    };
    Some(Target {
        port,
        ..plain(name)?
    })
}

/// What `Host` lines name, and what else has to be read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConfigNames {
    /// The names without wildcards and negations, in order.
    pub names: Vec<Target>,
    /// The arguments of `Include`, as written: paths with wildcards, relative to the directory of the
    /// configuration.
    pub includes: Vec<String>,
}

/// The plain names of the `Host` lines of an ssh_config file (what shells complete for `ssh`). What is no line
/// of ssh_config is passed over.
pub fn ssh_config_names(contents: &[u8]) -> ConfigNames {
    let mut found = ConfigNames::default();
    for (_, line) in lines(contents) {
        let line = String::from_utf8_lossy(line);
        let line = line.trim();
        let end = line
            .find(|c: char| c.is_whitespace() || c == '=')
            .unwrap_or(line.len());
        let (keyword, arguments) = line.split_at(end);
        let arguments = arguments.trim_start_matches(|c: char| c.is_whitespace() || c == '=');
        let words = crate::words::words(arguments).unwrap_or_default();
        if keyword.eq_ignore_ascii_case("Host") {
            found
                .names
                .extend(words.iter().filter_map(|name| plain(name)));
        } else if keyword.eq_ignore_ascii_case("Include") {
            found.includes.extend(words);
        }
    }
    found
}

/// A name or an address, and nothing else that a list could mean.
fn plain(name: &str) -> Option<Target> {
    let is_port = name.contains(':') && name.parse::<IpAddr>().is_err();
    let is_plain = !is_port && !name.contains(['[', '@']) && check_spec(name).is_ok();
    is_plain.then(|| Target::named(name))
}
