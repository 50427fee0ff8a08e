//! Arguments read by the form that their keyword asks for.

use std::time::Duration;

use crate::algorithms::AlgorithmSpec;
use crate::environment::Environment;
use crate::expand;
use crate::jump::{self, Hop};
use crate::keyword::Kind;
use crate::line;

/// Judges a lowercase word.
pub(crate) type Choice = fn(&str) -> bool;

/// What a line sets its keyword to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Number(u32),
    /// Whole seconds; `None` for `none`, which leaves the keyword unset.
    Seconds(Option<u32>),
    /// A text or, from a choice, a lowercase word.
    Text(String),
    Words(Vec<String>),
    Algorithms(AlgorithmSpec),
    Hops(Vec<Hop>),
    Rekey {
        bytes: u64,
        interval: Option<u32>,
    },
    Variables(Vec<(String, String)>),
}

impl Value {
    /// The arguments as words, for keywords that are only recorded.
    pub(crate) fn arguments(&self) -> Vec<String> {
        match self {
            Value::Number(number) => vec![number.to_string()],
            Value::Seconds(Some(seconds)) => vec![seconds.to_string()],
            Value::Seconds(None) => vec!["none".into()],
            Value::Text(text) => vec![text.clone()],
            Value::Words(words) => words.clone(),
            Value::Algorithms(spec) => vec![spec.to_string()],
            Value::Hops(_) | Value::Rekey { .. } | Value::Variables(_) => Vec::new(),
        }
    }
}

/// Limits of `UserKnownHostsFile` and `GlobalKnownHostsFile` (`SSH_MAX_HOSTS_FILES`, readconf.h).
const MAX_HOSTS_FILES: usize = 32;

/// Reads the arguments behind a keyword of `kind`; `rest` is the line behind the keyword.
pub(crate) fn read(kind: Kind, rest: &str, environment: &Environment) -> Result<Value, String> {
    let mut arguments = line::split_arguments(rest)
        .ok_or(line::OPEN_QUOTE)?
        .into_iter();
    let value = match kind {
        Kind::Command => return Ok(Value::Text(command(rest).into())),
        Kind::ProxyJump => return jump::parse(command(rest)).map(Value::Hops),
        Kind::Choice(is_word) => Value::Text(choice(required(arguments.next())?, is_word)?),
        Kind::OneOf(words) => Value::Text(choice(required(arguments.next())?, |word| {
            words.contains(&word)
        })?),
        Kind::Integer => Value::Number(integer(&required(arguments.next())?)?),
        Kind::Time => Value::Seconds(time_or_none(&required(arguments.next())?)?),
        Kind::Text => Value::Text(required(arguments.next())?),
        Kind::Port => Value::Number(port(&required(arguments.next())?)?.into()),
        Kind::List => Value::Words(list(arguments.by_ref())?),
        Kind::Words => {
            let first = required(arguments.next())?;
            Value::Words([first].into_iter().chain(arguments.by_ref()).collect())
        }
        Kind::Algorithms => Value::Algorithms(AlgorithmSpec::parse(&required(arguments.next())?)?),
        Kind::RekeyLimit => rekey_limit(&required(arguments.next())?, arguments.next())?,
        Kind::SendEnv => Value::Words(send_env(arguments.by_ref())?),
        Kind::SetEnv => Value::Variables(set_env(arguments.by_ref())?),
        Kind::AgentPath => Value::Text(agent_path(required(arguments.next())?, environment)?),
        Kind::ForwardAgent => {
            let argument = required(arguments.next())?;
            match choice(argument.clone(), is_word::<bool>) {
                Ok(word) => Value::Text(word),
                Err(_) => Value::Text(agent_path(argument, environment)?),
            }
        }
        Kind::Ignored | Kind::Host | Kind::Match | Kind::Include => {
            return Ok(Value::Words(arguments.collect()));
        }
    };
    match arguments.next() {
        None => Ok(value),
        Some(extra) => Err(format!(
            "extra arguments at the end of the line, from \"{extra}\" on"
        )),
    }
}

fn required(argument: Option<String>) -> Result<String, String> {
    argument
        .filter(|text| !text.is_empty())
        .ok_or_else(|| "the argument is missing".into())
}

/// A command is the rest of the line, comments and quotes included (`parse_command`, readconf.c).
fn command(rest: &str) -> &str {
    rest.trim_start_matches([' ', '\t', '\r', '\n', '='])
}

fn choice(argument: String, is_word: impl Fn(&str) -> bool) -> Result<String, String> {
    let word = argument.to_ascii_lowercase();
    if is_word(&word) {
        Ok(word)
    } else {
        Err(format!("unsupported value \"{argument}\""))
    }
}

/// `atoi_err` (misc.c): 0 to 2^31-1.
fn integer(text: &str) -> Result<u32, String> {
    let digits = text
        .trim_start()
        .strip_prefix('+')
        .unwrap_or(text.trim_start());
    digits
        .parse::<u32>()
        .ok()
        .filter(|number| i32::try_from(*number).is_ok())
        .ok_or_else(|| format!("\"{text}\" is not a number from 0 to {}", i32::MAX))
}

/// `a2port` (misc.c), but of the services only ssh's own name.
fn port(text: &str) -> Result<u16, String> {
    if text == "ssh" {
        return Ok(22);
    }
    integer(text)
        .ok()
        .and_then(|number| u16::try_from(number).ok())
        .filter(|&port| port > 0)
        .ok_or_else(|| format!("bad port \"{text}\": give a number from 1 to 65535"))
}

fn time_or_none(text: &str) -> Result<Option<u32>, String> {
    if text == "none" {
        Ok(None)
    } else {
        seconds(text).map(Some)
    }
}

/// `convtime` (misc.c): `90`, `1m30s`, `1h`, `2d`, `1w`; seconds may have a fraction, which is
/// dropped.
fn seconds(text: &str) -> Result<u32, String> {
    let invalid = || format!("\"{text}\" is not a time: write 90, 1m30s, 2h or the like");
    let mut total = 0f64;
    let mut seen_seconds = false;
    let mut rest = text;
    if rest.is_empty() {
        return Err(invalid());
    }
    while !rest.is_empty() {
        let end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (number, after) = rest.split_at(end);
        let unit = after.chars().next();
        let per_unit = match unit.map(|c| c.to_ascii_lowercase()) {
            None | Some('s') if !seen_seconds => {
                seen_seconds = true;
                1f64
            }
            Some('m') => 60f64,
            Some('h') => 3600f64,
            Some('d') => 86_400f64,
            Some('w') => 604_800f64,
            _ => return Err(invalid()),
        };
        if number.contains('.') && (per_unit > 1f64 || number.ends_with('.')) {
            return Err(invalid());
        }
        total += number.parse::<f64>().map_err(|_| invalid())? * per_unit;
        rest = &after[unit.map_or(0, char::len_utf8)..];
    }
    if total > f64::from(i32::MAX) {
        return Err(invalid());
    }
    Ok(total as u32)
}

/// Several words, of which `none` must stand alone (`parse_char_array`, readconf.c).
fn list(arguments: impl Iterator<Item = String>) -> Result<Vec<String>, String> {
    let words: Vec<String> = arguments.collect();
    if words.is_empty() || words.iter().any(String::is_empty) {
        return Err("an argument is empty or missing".into());
    }
    if words.len() > 1 && words.iter().any(|word| word.eq_ignore_ascii_case("none")) {
        return Err("\"none\" must stand alone".into());
    }
    if words.len() > MAX_HOSTS_FILES {
        return Err(format!("more than {MAX_HOSTS_FILES} arguments"));
    }
    Ok(words)
}

/// `RekeyLimit BYTES [TIME]`; `default` and 0 are the cipher's own limit.
fn rekey_limit(bytes: &str, interval: Option<String>) -> Result<Value, String> {
    let bytes = match bytes {
        "default" => 0,
        text => scaled(text).ok_or_else(|| format!("bad number \"{text}\""))?,
    };
    if (1..16).contains(&bytes) {
        return Err("the RekeyLimit is too small".into());
    }
    let interval = match interval.as_deref() {
        None => None,
        Some(text) => time_or_none(text)?,
    };
    Ok(Value::Rekey { bytes, interval })
}

/// `scan_scaled` (fmt_scaled.c): a number with B, K, M, G, T, P or E behind it, powers of 1024;
/// a fraction counts only with such a unit.
fn scaled(text: &str) -> Option<u64> {
    let text = text.trim_start();
    let text = text.strip_prefix('+').unwrap_or(text);
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let mut units = unit.chars();
    let scale: u64 = match units.next().map(|c| c.to_ascii_uppercase()) {
        None | Some('B') => 1,
        Some(c) => 1024u64.checked_pow(" KMGTPE".find(c).filter(|&at| at > 0)? as u32)?,
    };
    if units.next().is_some_and(|c| c.is_ascii_alphanumeric()) || fraction.contains('.') {
        return None;
    }
    let whole: u64 = if whole.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    let fraction: f64 = if fraction.is_empty() {
        0.
    } else {
        format!("0.{fraction}").parse().ok()?
    };
    let bytes = whole
        .checked_mul(scale)?
        .checked_add((fraction * scale as f64) as u64)?;
    i64::try_from(bytes).is_ok().then_some(bytes)
}

fn send_env(arguments: impl Iterator<Item = String>) -> Result<Vec<String>, String> {
    let names: Vec<String> = arguments.collect();
    if names.is_empty()
        || names
            .iter()
            .any(|name| name.is_empty() || name.contains('='))
    {
        return Err("invalid environment variable name".into());
    }
    Ok(names)
}

/// The first of several values for one name holds.
fn set_env(arguments: impl Iterator<Item = String>) -> Result<Vec<(String, String)>, String> {
    let mut variables: Vec<(String, String)> = Vec::new();
    for argument in arguments {
        let (name, value) = argument.split_once('=').ok_or("SetEnv needs NAME=VALUE")?;
        if !variables.iter().any(|(have, _)| have == name) {
            variables.push((name.into(), value.into()));
        }
    }
    if variables.is_empty() {
        Err("SetEnv names nothing".into())
    } else {
        Ok(variables)
    }
}

/// A socket's path, or `$NAME` of the variable that holds it, or a word for the caller to know.
fn agent_path(text: String, environment: &Environment) -> Result<String, String> {
    expand::variables(&text, environment)?;
    let name = text.strip_prefix('$').filter(|name| !name.starts_with('{'));
    match name {
        Some(name) if !is_variable_name(name) => {
            Err(format!("invalid environment variable name \"{name}\""))
        }
        _ => Ok(text),
    }
}

/// `valid_env_name` (misc.c)
fn is_variable_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_')
}

/// The seconds of a time as a duration.
pub(crate) fn duration(seconds: u32) -> Duration {
    Duration::from_secs(seconds.into())
}

/// A setting that is one of a few words.
pub(crate) trait Word: Copy + 'static {
    /// The words in lowercase, several may mean the same.
    const WORDS: &'static [(&'static str, Self)];

    /// What a word means.
    fn of_word(word: &str) -> Option<Self> {
        Self::WORDS
            .iter()
            .find(|row| row.0 == word)
            .map(|row| row.1)
    }
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident: $($word:literal)|+;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$variant_doc])* $variant),* }

        impl Word for $name {
            const WORDS: &'static [(&'static str, Self)] = &[$($(($word, $name::$variant)),+),*];
        }
    };
}

impl Word for bool {
    const WORDS: &'static [(&'static str, bool)] = &[
        ("yes", true),
        ("true", true),
        ("no", false),
        ("false", false),
    ];
}

words! {
    /// `StrictHostKeyChecking`
    StrictHostKeyChecking {
        /// Never connect to a host whose key is not known or has changed.
        Yes: "yes" | "true";
        /// Ask about unknown hosts.
        Ask: "ask";
        /// Accept and remember unknown hosts, refuse changed keys.
        AcceptNew: "accept-new";
        /// Accept all; with a changed key without passwords and agent forwarding.
        No: "no" | "off" | "false";
    }
}

words! {
    /// `AddressFamily`
    AddressFamily {
        /// IPv4 and IPv6.
        Any: "any";
        /// IPv4 only.
        Inet: "inet";
        /// IPv6 only.
        Inet6: "inet6";
    }
}

words! {
    /// `RequestTTY`
    RequestTty {
        /// Never a terminal.
        No: "no" | "false";
        /// A terminal if standard input is one.
        Yes: "yes" | "true";
        /// A terminal always.
        Force: "force";
        /// A terminal for login sessions only.
        Auto: "auto";
    }
}

words! {
    /// `PubkeyAuthentication`
    PubkeyAuthentication {
        /// Not tried.
        No: "no" | "false";
        /// Tried, in the host-bound form where the server can.
        Yes: "yes" | "true";
        /// Tried in the plain form only (PROTOCOL section 3.1 turned off).
        Unbound: "unbound";
        /// Tried in the host-bound form.
        HostBound: "host-bound";
    }
}

words! {
    /// `LogLevel`
    LogLevel {
        /// Nothing.
        Quiet: "quiet";
        /// Errors that end the program.
        Fatal: "fatal";
        /// Errors.
        Error: "error";
        /// The default.
        Info: "info";
        /// More.
        Verbose: "verbose";
        /// As `-v`.
        Debug1: "debug" | "debug1";
        /// As `-vv`.
        Debug2: "debug2";
        /// As `-vvv`.
        Debug3: "debug3";
    }
}

/// `ForwardAgent`
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForwardAgent {
    /// The agent is not forwarded.
    No,
    /// The agent in use is forwarded.
    Yes,
    /// The agent at this path is forwarded.
    Socket(String),
    /// The agent whose path the environment variable of this name holds is forwarded.
    Variable(String),
}

/// `IdentityAgent`
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdentityAgent {
    /// No agent.
    None,
    /// The agent whose path the environment variable of this name holds: `SSH_AUTH_SOCK` unless
    /// configured.
    Variable(String),
    /// The agent at this path.
    Socket(String),
}

/// `RekeyLimit`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RekeyLimit {
    /// Bytes after which keys are exchanged anew; `None` for the cipher's own limit.
    pub bytes: Option<u64>,
    /// Time after which keys are exchanged anew; `None` for never.
    pub interval: Option<Duration>,
}

/// Whether a lowercase word is one of `T`'s.
pub(crate) fn is_word<T: Word>(word: &str) -> bool {
    T::of_word(word).is_some()
}

#[cfg(test)]
mod tests;
