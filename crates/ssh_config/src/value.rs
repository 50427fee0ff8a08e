//! Arguments read by the form that their keyword asks for.

pub(crate) mod forms;
pub(crate) mod lists;
pub(crate) mod number;
pub(crate) mod words;

use std::time::Duration;
use std::vec::IntoIter;

use crate::algorithms::AlgorithmSpec;
use crate::environment::Environment;
use crate::expand;
use crate::forward::{Direction, Forward};
use crate::jump::{self, Hop};
use crate::keyword::Kind;
use crate::line;
use number::{integer, port, scaled, seconds, time_or_none};
use words::{Word, Words, is_word};

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
    Forward(Direction, Forward),
    AddKeys(AddKeysToAgent),
}

impl Value {
    /// The arguments as `ssh -G` has them, of keywords that have no field of their own.
    pub(crate) fn arguments(&self) -> Vec<String> {
        match self {
            Value::Number(number) => vec![number.to_string()],
            Value::Seconds(seconds) => {
                vec![seconds.map_or("none".into(), |seconds| seconds.to_string())]
            }
            Value::Text(text) => vec![text.clone()],
            Value::Words(words) => words.clone(),
            Value::Algorithms(spec) => vec![spec.to_string()],
            Value::Forward(direction, forward) => forward.arguments(*direction),
            Value::Hops(_) | Value::Rekey { .. } | Value::Variables(_) | Value::AddKeys(_) => {
                Vec::new()
            }
        }
    }
}

/// Whether a character stands in what a line says, comments left out; `rest` is the line behind the keyword.
pub(crate) fn contains(kind: Kind, rest: &str, character: char) -> bool {
    match kind {
        Kind::Command | Kind::ProxyJump => rest.contains(character),
        Kind::Addendum => addendum(rest).contains(character),
        Kind::Deprecated | Kind::Unsupported => false,
        _ => line::split_arguments(rest).is_some_and(|arguments| {
            let mut arguments = arguments.iter();
            arguments.any(|argument| argument.contains(character))
        }),
    }
}

/// Reads the arguments behind a keyword of `kind`; `rest` is the line behind the keyword.
pub(crate) fn read(kind: Kind, rest: &str, environment: &Environment) -> Result<Value, String> {
    let mut arguments = line::split_arguments(rest)
        .ok_or(line::OPEN_QUOTE)?
        .into_iter();
    let value = match kind {
        Kind::Command => return Ok(Value::Text(command(rest).into())),
        Kind::Addendum => return Ok(Value::Text(addendum(rest).into())),
        Kind::ProxyJump => return jump::parse(command(rest)).map(Value::Hops),
        Kind::Deprecated | Kind::Unsupported | Kind::Host | Kind::Match | Kind::Include => {
            return Ok(Value::Words(arguments.collect()));
        }
        kind => read_arguments(kind, &mut arguments, environment)?,
    };
    match arguments.next() {
        None => Ok(value),
        Some(extra) => Err(format!(
            "extra arguments at the end of the line, from \"{extra}\" on"
        )),
    }
}

fn read_arguments(
    kind: Kind,
    arguments: &mut IntoIter<String>,
    environment: &Environment,
) -> Result<Value, String> {
    match kind {
        Kind::Form(form) => return form(arguments).map(Value::Text),
        Kind::List(items) => return items(arguments).map(Value::Words),
        Kind::SetEnv => return set_env(arguments).map(Value::Variables),
        _ => {}
    }
    let first = required(arguments.next())?;
    Ok(match kind {
        Kind::Choice(is_word) => Value::Text(choice(&first, is_word)?),
        Kind::OneOf(words) => Value::Text(one_of(&first, words)?.into()),
        Kind::Integer => Value::Number(integer(&first)?),
        Kind::Time => Value::Seconds(time_or_none(&first)?),
        Kind::Port => Value::Number(port(&first)?.into()),
        Kind::Algorithms(family) => {
            family.check(&first)?;
            Value::Algorithms(AlgorithmSpec::parse(&first)?)
        }
        Kind::RekeyLimit => rekey_limit(&first, arguments.next())?,
        Kind::AddKeysToAgent => add_keys_to_agent(&first, arguments.next())?,
        Kind::AgentPath => Value::Text(agent_path(first, environment)?),
        Kind::ForwardAgent => match choice(&first, is_word::<bool>) {
            Ok(word) => Value::Text(word),
            Err(_) => Value::Text(agent_path(first, environment)?),
        },
        Kind::Forward(direction) => forward(direction, first, arguments.next(), environment)?,
        _ => Value::Text(first),
    })
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

/// `VersionAddendum` is the rest of the line up to a `#`; `none` is empty.
fn addendum(rest: &str) -> &str {
    let text = rest.split('#').next().unwrap_or_default();
    match text.trim_matches([' ', '\t', '\r', '\n']) {
        none if none.eq_ignore_ascii_case("none") => "",
        text => text,
    }
}

fn choice(argument: &str, is_word: impl Fn(&str) -> bool) -> Result<String, String> {
    let word = argument.to_ascii_lowercase();
    if is_word(&word) {
        Ok(word)
    } else {
        Err(format!("unsupported value \"{argument}\""))
    }
}

fn one_of(argument: &str, words: Words) -> Result<&'static str, String> {
    let word = argument.to_ascii_lowercase();
    let row = words.iter().find(|row| row.0 == word);
    row.map(|row| row.1)
        .ok_or_else(|| format!("unsupported value \"{argument}\""))
}

/// `AddKeysToAgent`: a word, a time, or `confirm` and a time.
fn add_keys_to_agent(first: &str, second: Option<String>) -> Result<Value, String> {
    let word = AddKeys::of_word(&first.to_ascii_lowercase());
    let (choice, lifetime) = match (word, second.as_deref()) {
        (Some(choice), None) => (choice, None),
        (Some(AddKeys::Confirm), Some(time)) => (AddKeys::Confirm, Some(seconds(time)?)),
        (None, None) => (AddKeys::Yes, Some(seconds(first)?)),
        (_, Some(extra)) => return Err(format!("unsupported value \"{extra}\"")),
    };
    Ok(Value::AddKeys(AddKeysToAgent {
        choice,
        lifetime: lifetime.filter(|&time| time > 0).map(number::duration),
    }))
}

/// The listening end and the target; a `RemoteForward` needs none.
fn forward(
    direction: Direction,
    listen: String,
    target: Option<String>,
    environment: &Environment,
) -> Result<Value, String> {
    let target = target.filter(|target| !target.is_empty());
    let expand = |text: String| expand::variables(&text, environment);
    let forward = match (direction, target) {
        (Direction::Dynamic, None) => Forward::parse(&expand(listen)?, direction),
        (Direction::Remote, None) => Forward::parse_remote_dynamic(&expand(listen)?),
        (Direction::Local, None) => Err("the target is missing".into()),
        (Direction::Dynamic, Some(extra)) => Err(format!("\"{extra}\" is one too many")),
        (_, Some(target)) => Forward::parse(&expand(format!("{listen}:{target}"))?, direction),
    };
    Ok(Value::Forward(direction, forward?))
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

words::words! {
    /// What `AddKeysToAgent` wants to be done with a key that was used.
    AddKeys {
        /// Nothing.
        No "false": "no" | "false";
        /// It is added.
        Yes "true": "yes" | "true";
        /// It is added once the user agrees.
        Ask "ask": "ask";
        /// It is added, and each use is to be confirmed.
        Confirm "confirm": "confirm";
    }
}

/// `AddKeysToAgent`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddKeysToAgent {
    /// What to do.
    pub choice: AddKeys,
    /// How long the agent keeps the key; `None` for as long as it runs.
    pub lifetime: Option<Duration>,
}

/// `RekeyLimit`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RekeyLimit {
    /// Bytes after which keys are exchanged anew; `None` for the cipher's own limit.
    pub bytes: Option<u64>,
    /// Time after which keys are exchanged anew; `None` for never.
    pub interval: Option<Duration>,
}

#[cfg(test)]
mod tests;
