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

use toml::{Table, Value};

/// Why the defaults cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DefaultsError {
    #[error("cannot read {path}: {error}")]
    Unreadable { path: PathBuf, error: io::Error },
    #[error("{path}: {error}")]
    Syntax {
        path: PathBuf,
        error: Box<toml::de::Error>,
    },
    #[error(
        "{path}: [{command}] {key}: {what} is no value for a flag; use a string, a number, true or a list"
    )]
    Value {
        path: PathBuf,
        command: String,
        key: String,
        what: &'static str,
    },
}

/// The arguments with the file's defaults put between the command's name and the user's own flags, which
/// thereby win.
pub(crate) fn with_defaults(arguments: Vec<OsString>) -> Result<Vec<OsString>, DefaultsError> {
    let Some(path) = path() else {
        return Ok(arguments);
    };
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(arguments),
        Err(error) => return Err(DefaultsError::Unreadable { path, error }),
    };
    insert(arguments, &path, &text)
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
    let table: Table = text.parse().map_err(|error| DefaultsError::Syntax {
        path: path.to_owned(),
        error: Box::new(error),
    })?;
    let Some(command) = arguments
        .get(1)
        .and_then(|name| name.to_str())
        .map(str::to_owned)
    else {
        return Ok(arguments);
    };
    let Some(Value::Table(flags)) = table.get(&command) else {
        return Ok(arguments);
    };
    let mut defaults = Vec::new();
    for (key, value) in flags {
        let refuse = |what| DefaultsError::Value {
            path: path.to_owned(),
            command: command.clone(),
            key: key.clone(),
            what,
        };
        defaults.extend(flag(key, value).map_err(refuse)?);
    }
    arguments.splice(2..2, defaults.into_iter().map(OsString::from));
    Ok(arguments)
}

fn flag(key: &str, value: &Value) -> Result<Vec<String>, &'static str> {
    let with = |text: String| vec![format!("--{key}={text}")];
    match value {
        Value::Boolean(true) => Ok(vec![format!("--{key}")]),
        Value::Boolean(false) => Ok(Vec::new()),
        Value::String(text) => Ok(with(text.clone())),
        Value::Integer(number) => Ok(with(number.to_string())),
        Value::Float(number) => Ok(with(number.to_string())),
        Value::Array(values) => values
            .iter()
            .map(|value| flag(key, value))
            .collect::<Result<Vec<_>, _>>()
            .map(|flags| flags.concat()),
        Value::Table(_) => Err("a table"),
        Value::Datetime(_) => Err("a date"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn inserted(text: &str) -> Result<Vec<String>, String> {
        let arguments = ["sshoal", "run", "-w", "a", "true"]
            .map(OsString::from)
            .to_vec();
        insert(arguments, Path::new("config.toml"), text)
            .map(|arguments| {
                arguments
                    .into_iter()
                    .map(|argument| argument.into_string().unwrap())
                    .collect()
            })
            .map_err(|error| error.to_string())
    }

    #[test]
    fn flags_stand_before_the_users_own() {
        let text = "[run]\nparallel = 5\ngather = true\nquiet = false\nexclude = [\"x\", \"y\"]\n[hosts]\nother = 1\n";
        let expected = [
            "sshoal",
            "run",
            "--exclude=x",
            "--exclude=y",
            "--gather",
            "--parallel=5",
            "-w",
            "a",
            "true",
        ];
        let mut found = inserted(text).unwrap();
        found[2..6].sort();
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_no_flag_is_refused_by_name() {
        let error = inserted("[run]\n[run.parallel]\nx = 1\n").unwrap_err();
        assert!(
            error.contains("[run] parallel") && error.contains("a table"),
            "{error}"
        );
        assert!(inserted("[run\n").unwrap_err().contains("config.toml"));
    }
}
