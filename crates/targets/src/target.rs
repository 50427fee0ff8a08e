//! One host to reach, `user@host:port`, and lists of them without duplicates.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet, VecDeque},
    fmt,
    net::Ipv6Addr,
};

use crate::{MAX_NAME_LEN, MAX_TARGETS, TargetError, TargetProblem, pattern::Pattern};

/// One host as the user named it. What is not given here comes from ssh_config.
///
/// Its `Display` is the spec that parses back to it: `user@name:port`, an IPv6 address with a port in
/// brackets.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Target {
    /// The host's name, alias or address as written, without brackets.
    pub name: String,
    /// The user to log in as, when the spec names one.
    pub user: Option<String>,
    /// The port (1 to 65535), when the spec names one.
    pub port: Option<u16>,
    /// What else is said of this host, as `ssh -o` takes it: a keyword of ssh_config and its value. They come
    /// from files and inventories; a list has no way to write them, and `Display` leaves them out.
    pub options: Vec<(String, String)>,
}

impl Target {
    /// A host known by its name only.
    pub fn named(name: impl Into<String>) -> Target {
        Target {
            name: name.into(),
            ..Target::default()
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        match self.port {
            Some(port) if self.name.contains(':') => write!(f, "[{}]:{port}", self.name),
            Some(port) => write!(f, "{}:{port}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// Appends the targets that one spec stands for.
pub(crate) fn expand_spec(spec: &str, out: &mut Vec<Target>) -> Result<(), TargetError> {
    expand(spec, out).map_err(|problem| TargetError::new(spec, problem))
}

fn expand(spec: &str, out: &mut Vec<Target>) -> Result<(), TargetProblem> {
    let Spec {
        user,
        pattern,
        is_address,
        port,
    } = dissect(spec)?;
    let count = pattern.count()?;
    if out.len() + count > MAX_TARGETS {
        return Err(TargetProblem::TooMany);
    }
    out.reserve(count);
    pattern.expand(|name| {
        if name.len() > MAX_NAME_LEN {
            return Err(TargetProblem::NameTooLong);
        }
        if is_address {
            check_address(name)?;
        }
        out.push(Target {
            name: name.to_owned(),
            user: user.map(str::to_owned),
            port,
            options: Vec::new(),
        });
        Ok(())
    })
}

/// Splits at commas outside brackets.
pub(crate) fn split_specs(list: &str) -> impl Iterator<Item = &str> {
    let mut inside_brackets = false;
    list.split(move |c| {
        match c {
            '[' => inside_brackets = true,
            ']' => inside_brackets = false,
            _ => {}
        }
        !inside_brackets && c == ','
    })
}

/// What a spec is made of.
struct Spec<'a> {
    user: Option<&'a str>,
    pattern: Pattern<'a>,
    is_address: bool,
    port: Option<u16>,
}

/// Checks a spec without expanding it. Names that expansion makes too long, or no addresses, are not found.
pub(crate) fn check_spec(spec: &str) -> Result<(), TargetProblem> {
    dissect(spec)?.pattern.count().map(drop)
}

fn dissect(spec: &str) -> Result<Spec<'_>, TargetProblem> {
    let (user, host_port) = match spec.rsplit_once('@') {
        Some((user, host_port)) => (Some(checked_user(user)?), host_port),
        None => (None, spec),
    };
    let (host, port) = split_port(host_port)?;
    if host.is_empty() {
        return Err(TargetProblem::EmptyName);
    }
    if host.starts_with('-') {
        return Err(TargetProblem::LeadingDash);
    }
    let pattern = Pattern::parse(host)?;
    let is_address = host.contains(':');
    check_literals(&pattern, is_address)?;
    Ok(Spec {
        user,
        pattern,
        is_address,
        port,
    })
}

/// Takes `:port` off. An address with two or more colons has a port only behind brackets; a name may have it so,
/// too, as in known_hosts.
fn split_port(host_port: &str) -> Result<(&str, Option<u16>), TargetProblem> {
    let bracketed = host_port
        .strip_prefix('[')
        .and_then(|text| text.split_once(']'));
    let is_name = |(inside, behind): &(&str, &str)| behind.starts_with(':') && is_no_range(inside);
    if let Some((name, behind)) = bracketed.filter(is_name) {
        return Ok((name, Some(parse_port(&behind[1..])?)));
    }
    if let Some((address, behind)) = bracketed.filter(|(inside, _)| inside.contains(':')) {
        return match behind.strip_prefix(':') {
            Some(port) => Ok((address, Some(parse_port(port)?))),
            None if behind.is_empty() => Ok((address, None)),
            None => Err(TargetProblem::Address(host_port.to_owned())),
        };
    }
    match host_port.split_once(':') {
        Some((host, port)) if !port.contains(':') => Ok((host, Some(parse_port(port)?))),
        _ => Ok((host_port, None)),
    }
}

/// Whether what stands in brackets is a name or an IPv4 address, as known_hosts has it before a port.
fn is_no_range(inside: &str) -> bool {
    let is_of_name = |byte: u8| byte.is_ascii_alphabetic() || matches!(byte, b'.' | b'_');
    inside.bytes().any(is_of_name) && !inside.contains([':', '[', ','])
}

pub(crate) fn parse_port(text: &str) -> Result<u16, TargetProblem> {
    let digits_only = text.bytes().all(|b| b.is_ascii_digit());
    text.parse()
        .ok()
        .filter(|port| digits_only && *port != 0)
        .ok_or_else(|| TargetProblem::Port(text.to_owned()))
}

/// What OpenSSH's `valid_ruser` (ssh.c) refuses, and brackets, which would look like a range.
pub(crate) fn checked_user(user: &str) -> Result<&str, TargetProblem> {
    let refused =
        |c: char| c.is_control() || c.is_whitespace() || "'`\";&<>|(){}[]\\,#".contains(c);
    match user.chars().find(|c| refused(*c)) {
        _ if user.is_empty() => Err(TargetProblem::EmptyUser),
        _ if user.ends_with('@') => Err(TargetProblem::UserOfGroup),
        _ if user.starts_with('-') => Err(TargetProblem::LeadingDash),
        Some(c) => Err(TargetProblem::UserCharacter(c)),
        None => Ok(user),
    }
}

/// What OpenSSH's `valid_hostname` (ssh.c) refuses, and what globs, set operations, paths and options need.
fn check_literals(pattern: &Pattern<'_>, is_address: bool) -> Result<(), TargetProblem> {
    let refused = |c: char| {
        c.is_control()
            || c.is_whitespace()
            || "'`\"$\\;&<>|(){}*?!^/#@,=".contains(c)
            || (c == ':' && !is_address)
    };
    match pattern
        .literals()
        .flat_map(str::chars)
        .find(|c| refused(*c))
    {
        Some('=') => Err(TargetProblem::OptionAsHost),
        Some(c) => Err(TargetProblem::NameCharacter(c)),
        None => Ok(()),
    }
}

/// An IPv6 address, with a zone (`fe80::1%eth0`, RFC 4007 section 11) or without.
fn check_address(name: &str) -> Result<(), TargetProblem> {
    let (address, zone) = name
        .split_once('%')
        .map_or((name, None), |(address, zone)| (address, Some(zone)));
    if address.parse::<Ipv6Addr>().is_ok() && zone != Some("") {
        Ok(())
    } else {
        Err(TargetProblem::Address(name.to_owned()))
    }
}

/// Drops repeated targets: the first one is kept, the order stays. Targets are the same when user and port
/// are and the names differ at most in ASCII case; `web1` and `root@web1` are two targets.
pub fn distinct(mut targets: Vec<Target>) -> Vec<Target> {
    let mut seen = HashSet::with_capacity(targets.len());
    let is_new = |target| seen.insert(identity(target));
    let mut new: VecDeque<bool> = targets.iter().map(is_new).collect();
    targets.retain(|_| new.pop_front().unwrap_or_default());
    targets
}

/// What makes a target the same as another.
fn identity(target: &Target) -> (Cow<'_, str>, Option<&str>, Option<u16>) {
    let name = if target.name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(target.name.to_ascii_lowercase())
    } else {
        Cow::Borrowed(target.name.as_str())
    };
    (name, target.user.as_deref(), target.port)
}

/// Drops every target whose name is excluded, in any ASCII case. Users and ports of `excluded` are not
/// looked at: a host that is named there is left alone, however it would be reached.
pub fn exclude(mut targets: Vec<Target>, excluded: &[Target]) -> Vec<Target> {
    let names: HashSet<String> = excluded
        .iter()
        .map(|target| target.name.to_ascii_lowercase())
        .collect();
    targets.retain(|target| !names.contains(&target.name.to_ascii_lowercase()));
    targets
}

/// What each target is called in output, in order: its name, or its whole spec where the list has that name
/// more than once.
pub fn labels(targets: &[Target]) -> Vec<String> {
    let mut uses: HashMap<&str, usize> = HashMap::with_capacity(targets.len());
    for target in targets {
        *uses.entry(&target.name).or_default() += 1;
    }
    let label = |target: &Target| match uses[target.name.as_str()] {
        1 => target.name.clone(),
        _ => target.to_string(),
    };
    targets.iter().map(label).collect()
}
