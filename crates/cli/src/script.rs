//! `--script FILE [ARG...]`: a local script on the hosts, without leaving a file behind.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Longest script, octets. The remote shell gets it as one argument, and Linux allows 128 KiB for one
/// (MAX_ARG_STRLEN); quoting may lengthen it.
const MAX_SCRIPT: usize = 96 * 1024;

/// Why a script cannot be sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ScriptError {
    #[error("cannot read the script {path}: {error}")]
    Unreadable { path: PathBuf, error: io::Error },
    #[error(
        "the script {path} is longer than {MAX_SCRIPT} octets; copy it to the hosts and run it there"
    )]
    TooLong { path: PathBuf },
    #[error(
        "the script {path} wants the interpreter {interpreter:?}; supported are shells, python, perl and ruby"
    )]
    Interpreter { path: PathBuf, interpreter: String },
    #[error("the script {path} has a NUL octet: only text can be sent")]
    NotText { path: PathBuf },
}

/// The command line that runs the script with its arguments: `interpreter -c 'script' name 'arg'...`.
///
/// The script travels inside the command, so standard input stays free, and no file is written anywhere.
pub(crate) fn command_line(path: &Path, arguments: &[OsString]) -> Result<Vec<u8>, ScriptError> {
    let script = fs::read(path).map_err(|error| ScriptError::Unreadable {
        path: path.to_owned(),
        error,
    })?;
    if script.len() > MAX_SCRIPT {
        return Err(ScriptError::TooLong {
            path: path.to_owned(),
        });
    }
    if script.contains(&0) {
        return Err(ScriptError::NotText {
            path: path.to_owned(),
        });
    }
    let interpreter = interpreter(&script);
    let program = interpreter
        .first()
        .map(|word| word.rsplit('/').next().unwrap_or(word))
        .unwrap_or("sh");
    let (flag, takes_name) =
        match program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.') {
            "sh" | "bash" | "dash" | "ksh" | "mksh" | "zsh" | "ash" => ("-c", true),
            "python" => ("-c", false),
            "perl" | "ruby" => ("-e", false),
            _ => {
                return Err(ScriptError::Interpreter {
                    path: path.to_owned(),
                    interpreter: interpreter.join(" "),
                });
            }
        };
    let mut words: Vec<Vec<u8>> = interpreter
        .iter()
        .map(|word| word.as_bytes().to_vec())
        .collect();
    words.push(flag.as_bytes().to_vec());
    words.push(script);
    if takes_name {
        words.push(
            path.file_name()
                .unwrap_or(path.as_os_str())
                .as_bytes()
                .to_vec(),
        );
    }
    words.extend(
        arguments
            .iter()
            .map(|argument| argument.as_bytes().to_vec()),
    );
    Ok(words
        .iter()
        .map(|word| quoted(word))
        .collect::<Vec<_>>()
        .join(&b' '))
}

/// The words behind `#!`, without `env`; `/bin/sh` if there is no such line.
fn interpreter(script: &[u8]) -> Vec<String> {
    let first = script
        .split(|&octet| octet == b'\n')
        .next()
        .unwrap_or_default();
    let words: Vec<String> = match first.strip_prefix(b"#!") {
        Some(line) => String::from_utf8_lossy(line)
            .split_whitespace()
            .map(str::to_owned)
            .collect(),
        None => Vec::new(),
    };
    match words.split_first() {
        None => vec!["/bin/sh".to_owned()],
        Some((env, rest)) if env.ends_with("/env") => {
            rest.iter().filter(|word| *word != "-S").cloned().collect()
        }
        Some(_) => words,
    }
}

/// The command line that runs `command` as root, taking the password from the first line of standard input.
///
/// sudo reads the password only where it wants one, so that it can never reach the command itself. It stands
/// in no argument list: `read` and `printf` belong to the shell.
pub(crate) fn with_sudo(command: &[u8]) -> Vec<u8> {
    const ASK_ONLY_IF_NEEDED: &str = "IFS= read -r p; \
        if sudo -kn true 2>/dev/null; then p=; exec sudo -n -- /bin/sh -c \"$1\"; fi; \
        { printf '%s\\n' \"$p\"; p=; exec cat; } | sudo -kS -p '' -- /bin/sh -c \"$1\"";
    let words = [
        b"exec".to_vec(),
        b"/bin/sh".to_vec(),
        b"-c".to_vec(),
        quoted(ASK_ONLY_IF_NEEDED.as_bytes()),
    ];
    let mut line = words.join(&b' ');
    line.extend_from_slice(b" sudo ");
    line.extend_from_slice(&quoted(command));
    line
}

/// A word for a POSIX shell: in single quotes unless it is plain.
pub(crate) fn quoted(word: &[u8]) -> Vec<u8> {
    let plain = |octet: &u8| octet.is_ascii_alphanumeric() || b"_-./:=@%+,".contains(octet);
    if !word.is_empty() && word.iter().all(plain) {
        return word.to_vec();
    }
    let mut quoted = vec![b'\''];
    for &octet in word {
        match octet {
            b'\'' => quoted.extend_from_slice(b"'\\''"),
            other => quoted.push(other),
        }
    }
    quoted.push(b'\'');
    quoted
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::process::Command;

    use super::*;

    /// What /bin/sh, as sshd would start it, makes of the script.
    fn run(script: &str, arguments: &[&str]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("script.x");
        fs::write(&path, script).unwrap();
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        let line = command_line(&path, &arguments).unwrap();
        let line = String::from_utf8(line).unwrap();
        let output = Command::new("/bin/sh")
            .args(["-c", &line])
            .output()
            .unwrap();
        assert!(output.status.success(), "{line}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn shell_scripts_get_their_name_and_arguments() {
        let script = "# it's a 'quoted' script\nprintf '%s|' \"$0\" \"$@\"\n";
        assert_eq!(
            run(script, &["a b", "", "it's", "$HOME;`id`"]),
            "script.x|a b||it's|$HOME;`id`|"
        );
    }

    #[test]
    fn the_first_line_chooses_the_interpreter() {
        assert_eq!(
            run("#!/usr/bin/env bash\necho ${BASH_VERSION:+bash}", &[]),
            "bash\n"
        );
        assert_eq!(
            run("#!/usr/bin/perl -w\nprint \"@ARGV\";", &["x", "y"]),
            "x y"
        );
        assert_eq!(
            run("#!/bin/sh -e\nfalse || echo \"$-\" | tr -cd e", &[]),
            "e"
        );
    }

    #[test]
    fn other_interpreters_and_binaries_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        fs::write(&path, "#!/usr/bin/awk -f\n").unwrap();
        assert!(matches!(
            command_line(&path, &[]),
            Err(ScriptError::Interpreter { .. })
        ));
        fs::write(&path, "\x7fELF\0").unwrap();
        assert!(matches!(
            command_line(&path, &[]),
            Err(ScriptError::NotText { .. })
        ));
        fs::write(&path, vec![b'#'; MAX_SCRIPT + 1]).unwrap();
        assert!(matches!(
            command_line(&path, &[]),
            Err(ScriptError::TooLong { .. })
        ));
    }
}
