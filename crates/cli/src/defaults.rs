//! Defaults from `~/.config/sshoal/config.toml`: a table for each command, its keys the long flags.
//!
//! ```toml
//! [run]
//! parallel = 500
//! login = "root"
//! exclude = ["old1", "old2"]
//! gather = true
//! ```

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, CommandFactory};
use toml::{Table, Value};

use crate::args::Cli;

/// Flags that say what a run is about, or that it is meant: a default for one of them would do something that nobody typed.
const TYPED: [&str; 22] = [
    "hosts",
    "hosts-file",
    "hosts-from",
    "group",
    "all",
    "pick",
    "retry-failed",
    "of",
    "canary",
    "pause",
    "until",
    "until-timeout",
    "script",
    "fill-script",
    "stdin",
    "detach",
    "status",
    "kill",
    "remove",
    "survive",
    "yes",
    "delete",
];
/// Of several values for an ssh_config option the first counts, so defaults must come behind what the user typed: by
/// flags of their own.
const BEHIND: [(&str, &str); 2] = [("option", "default-option"), ("sshopt", "default-sshopt")];
/// May be given several times, but one that is typed is in place of a default: the hosts would be others.
const REPLACED: &str = "inventory";
/// A flag that means nothing beside that value of another one.
const MEANINGLESS: (&str, &str, &str) = ("kill-grace", "kill-where", "never");

/// Why the defaults cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DefaultsError {
    #[error("cannot read {path}: {error}")]
    Unreadable { path: PathBuf, error: io::Error },
    #[error("{path}: {}", .error.to_string().trim_end())]
    Syntax {
        path: PathBuf,
        error: Box<toml::de::Error>,
    },
    #[error("{path}: {name}: {problem}")]
    Refused {
        path: PathBuf,
        /// As in the file: `[command] key`.
        name: String,
        problem: String,
    },
}

/// The arguments with the file's defaults put between the command's name and the user's own flags, which
/// thereby win. A default that does not go together with one of them stands back.
pub(crate) fn with_defaults(arguments: Vec<OsString>) -> Result<Vec<OsString>, DefaultsError> {
    let Some(path) = path() else {
        return Ok(arguments);
    };
    // The file first: most have none, and all that the parser knows takes longer to put together.
    match fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(arguments),
        _ if concerned(&Cli::command(), &arguments).is_none() => Ok(arguments),
        Ok(text) => insert(arguments, &path, &text),
        Err(error) => Err(DefaultsError::Unreadable { path, error }),
    }
}

fn path() -> Option<PathBuf> {
    let absolute = |name| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let configuration =
        absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(configuration.join("sshoal").join("config.toml"))
}

fn insert(
    mut arguments: Vec<OsString>,
    path: &Path,
    text: &str,
) -> Result<Vec<OsString>, DefaultsError> {
    let cli = Cli::command();
    let Some(command) = concerned(&cli, &arguments) else {
        return Ok(arguments);
    };
    let table: Table = text.parse().map_err(|error| DefaultsError::Syntax {
        path: path.to_owned(),
        error: Box::new(error),
    })?;
    let refused = |name: String, problem: String| DefaultsError::Refused {
        path: path.to_owned(),
        name,
        problem,
    };
    let is_table =
        |name: &str, value: &Value| value.is_table() && cli.find_subcommand(name).is_some();
    if let Some((name, _)) = table.iter().find(|(name, value)| !is_table(name, value)) {
        let problem =
            "there is no such table; a command's defaults stand under its name, as in [run]";
        return Err(refused(name.clone(), problem.to_owned()));
    }
    let name = command.get_name();
    if let Some(Value::Table(table)) = table.get(name) {
        let defaults = Defaults::of(command, &arguments)
            .flags(table)
            .map_err(|(key, problem)| refused(format!("[{name}] {key}"), problem))?;
        arguments.splice(2..2, defaults.into_iter().map(OsString::from));
    }
    Ok(arguments)
}

/// The command that the arguments begin with, if it has flags to have defaults for.
fn concerned<'a>(cli: &'a Command, arguments: &[OsString]) -> Option<&'a Command> {
    let command = cli.find_subcommand(arguments.get(1)?)?;
    flags(command).next().map(|_| command)
}

/// A command's long flags.
fn flags(command: &Command) -> impl Iterator<Item = &str> {
    let arguments = command.get_arguments();
    arguments.filter_map(|argument| argument.get_long())
}

/// A command, and what the user has typed for it.
struct Defaults<'a> {
    command: &'a Command,
    typed: Option<ArgMatches>,
}

impl<'a> Defaults<'a> {
    fn of(command: &'a Command, arguments: &[OsString]) -> Self {
        let parser = command.clone().ignore_errors(true);
        Defaults {
            command,
            typed: parser.try_get_matches_from(&arguments[1..]).ok(),
        }
    }

    /// The flags that the command's table stands for; or which key is wrong, and why.
    fn flags(&self, table: &Table) -> Result<Vec<String>, (String, String)> {
        let mut all = Vec::new();
        for (key, value) in table {
            let refused = |problem| (key.clone(), problem);
            all.extend(self.default(key, value).map_err(refused)?);
            // Two keys that do not go together are the file's mistake, not that of who types a command.
            self.check(&all).map_err(refused)?;
        }
        Ok(all)
    }

    fn default(&self, key: &str, value: &Value) -> Result<Vec<String>, String> {
        if TYPED.contains(&key) {
            return Err("no default can be given for what a run is about".to_owned());
        }
        let behind = BEHIND.iter().find(|(name, _)| *name == key);
        let name = behind.map_or(key, |(_, behind)| behind);
        let mut arguments = self.command.get_arguments();
        let Some(argument) = arguments.find(|argument| argument.get_long() == Some(name)) else {
            return Err(format!(
                "sshoal {} has no flag --{key}",
                self.command.get_name()
            ));
        };
        let flags = flag(name, value)?;
        self.check(&flags)?;
        match self.stands_back(argument) {
            true => Ok(Vec::new()),
            false => Ok(flags),
        }
    }

    /// Has the command line's own parser look at the flags.
    fn check(&self, flags: &[String]) -> Result<(), String> {
        let arguments =
            std::iter::once(self.command.get_name()).chain(flags.iter().map(String::as_str));
        let parsed = self.command.clone().try_get_matches_from(arguments);
        parsed.map(drop).map_err(|error| {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            first.trim_start_matches("error: ").to_owned()
        })
    }

    /// Whether the user has typed a flag that does not go together with this one.
    fn stands_back(&self, argument: &Arg) -> bool {
        let Some(typed) = &self.typed else {
            return false;
        };
        let is_typed = |other: &&Arg| {
            typed.value_source(other.get_id().as_str()) == Some(ValueSource::CommandLine)
        };
        if argument.get_long() == Some(REPLACED) && is_typed(&argument) {
            return true;
        }
        let (meaningless, beside, value) = MEANINGLESS;
        let is_beside = |other: &Arg| {
            let values = || typed.get_raw(other.get_id().as_str()).into_iter().flatten();
            other.get_long() == Some(beside) && values().any(|it| it == value)
        };
        let mut others = self.command.get_arguments().filter(is_typed);
        if argument.get_long() == Some(meaningless) && others.any(is_beside) {
            return true;
        }
        let excludes = |one: &Arg, other: &Arg| {
            let excluded = self.command.get_arg_conflicts_with(one);
            excluded
                .iter()
                .any(|excluded| excluded.get_id() == other.get_id())
        };
        self.command
            .get_arguments()
            .filter(is_typed)
            .any(|other| excludes(other, argument) || excludes(argument, other))
    }
}

/// The flags that one key stands for.
fn flag(key: &str, value: &Value) -> Result<Vec<String>, String> {
    let with = |text: String| vec![format!("--{key}={text}")];
    let no_value =
        |what| format!("{what} is no value for a flag; use a string, a number, true or a list");
    match value {
        Value::Boolean(true) => Ok(vec![format!("--{key}")]),
        Value::Boolean(false) => Ok(Vec::new()),
        Value::String(text) => Ok(with(text.clone())),
        Value::Integer(number) => Ok(with(number.to_string())),
        Value::Float(number) => Ok(with(number.to_string())),
        Value::Array(values) => {
            let flags: Result<Vec<_>, _> = values.iter().map(|value| flag(key, value)).collect();
            flags.map(|flags| flags.concat())
        }
        Value::Table(_) => Err(no_value("a table")),
        Value::Datetime(_) => Err(no_value("a date")),
    }
}

#[cfg(test)]
mod tests;
