//! Host files and what programs print of hosts: lists, JSON, CSV.

use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::process::Command;

use sshoal_targets::{Target, TargetError, parse_csv, parse_file, parse_json};

use super::{HostsError, program};

/// Largest host file, octets: a million names fit.
pub(crate) const MAX_FILE: u64 = 256 * 1024 * 1024;

/// The hosts of a file; `-` is standard input.
pub(super) fn read(path: &Path) -> Result<Vec<Target>, HostsError> {
    let contents = contents(path)?;
    Ok(parse(&path.display().to_string(), &contents)?)
}

/// The hosts that a shell command prints.
pub(super) fn from_command(command: &str) -> Result<Vec<Target>, HostsError> {
    let mut shell = Command::new("/bin/sh");
    let output = program::output(shell.args(["-c", command]));
    let output = output.map_err(|why| HostsError::Program {
        program: command.to_owned(),
        why,
    })?;
    Ok(parse(command, &output)?)
}

/// A file's octets, no more of them than a host file may have.
pub(crate) fn contents(path: &Path) -> Result<Vec<u8>, HostsError> {
    let label = path.display().to_string();
    let unreadable = |error: io::Error| match label.parse::<u32>() {
        // pdsh and clush have -f for what is -p here.
        Ok(_) if error.kind() == io::ErrorKind::NotFound => HostsError::NumberOfHosts {
            number: label.clone(),
        },
        _ => HostsError::Unreadable {
            path: label.clone(),
            error,
        },
    };
    let mut contents = Vec::new();
    if path == Path::new("-") {
        io::stdin()
            .lock()
            .take(MAX_FILE + 1)
            .read_to_end(&mut contents)
            .map_err(unreadable)?;
    } else {
        let file = fs::File::open(path).map_err(unreadable)?;
        file.take(MAX_FILE + 1)
            .read_to_end(&mut contents)
            .map_err(unreadable)?;
    }
    match contents.len() as u64 > MAX_FILE {
        true => Err(HostsError::TooLarge { path: label }),
        false => Ok(contents),
    }
}

/// JSON and CSV are known by the file's name, JSON also by how it begins: no list of hosts begins so.
fn parse(label: &str, contents: &[u8]) -> Result<Vec<Target>, TargetError> {
    match Path::new(label)
        .extension()
        .and_then(|extension| extension.to_str())
    {
        Some("json" | "jsonl") => parse_json(label, contents),
        Some("csv") => parse_csv(label, contents),
        _ if is_json(contents) => parse_json(label, contents),
        _ => parse_file(label, contents),
    }
}

fn is_json(contents: &[u8]) -> bool {
    let text = contents.trim_ascii_start();
    match text.split_first() {
        Some((b'{', _)) => true,
        // An address in brackets may begin a list: [::1]:22.
        Some((b'[', inside)) => {
            let first = inside.trim_ascii_start().first();
            first.is_none_or(|first| matches!(first, b'"' | b'{' | b']'))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn names(label: &str, contents: &str) -> Vec<String> {
        let targets = parse(label, contents.as_bytes()).unwrap();
        targets.iter().map(Target::to_string).collect()
    }

    #[test]
    fn the_form_is_known_by_name_or_beginning() {
        assert_eq!(names("hosts", "web[1-2]\n"), ["web1", "web2"]);
        assert_eq!(names("hosts", "[::1]:22\n"), ["[::1]:22"]);
        assert_eq!(names("hosts", " [\"a\", \"b\"]"), ["a", "b"]);
        assert_eq!(
            names("x", "{\"host\": \"a\", \"user\": \"u\"}\n{\"host\": \"b\"}"),
            ["u@a", "b"]
        );
        assert_eq!(names("x.csv", "host,port\na,23\n"), ["a:23"]);
        assert_eq!(names("x.json", "\"a\""), ["a"]);
        assert!(parse("x.csv", b"host,port\na,none\n").is_err());
    }
}
