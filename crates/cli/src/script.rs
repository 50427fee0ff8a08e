//! `--script FILE [ARG...]`: a local script on the hosts, without leaving a file behind. `--sudo`: as root.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Longest command line, octets. The remote shell gets it as one argument, and Linux allows 128 KiB for one with
/// its NUL (MAX_ARG_STRLEN); some are left for the hosts' names.
pub(crate) const MAX_LINE: usize = 124 * 1024;

/// Why a script cannot be sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ScriptError {
    #[error("cannot read the script {path}: {error}")]
    Unreadable { path: PathBuf, error: io::Error },
    #[error(
        "the command line, quoted, is longer than the {MAX_LINE} octets that a shell takes; copy what is long to the \
         hosts as a file"
    )]
    TooLong,
    #[error(
        "the script {path} wants the interpreter {interpreter:?}; supported are shells, python, perl and ruby"
    )]
    Interpreter { path: PathBuf, interpreter: String },
    #[error("the script {path} has a NUL octet: only text can be sent")]
    NotText { path: PathBuf },
}

/// The command line that runs the script, `interpreter -c 'script' name`; arguments may follow.
///
/// The script travels inside the command, so standard input stays free, and no file is written anywhere.
pub(crate) fn with_interpreter(path: &Path) -> Result<Vec<u8>, ScriptError> {
    let script = read(path)?;
    let interpreter = interpreter(&script);
    let program = interpreter.first().map_or("sh", String::as_str);
    let program = program.rsplit('/').next().unwrap_or(program);
    let name = path.file_name().unwrap_or(path.as_os_str()).as_bytes();
    // What stands between the script and its arguments: a shell's $0; or what keeps perl from taking them for its own.
    let (flag, behind): (&str, Option<&[u8]>) =
        match program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.') {
            "sh" | "bash" | "dash" | "ksh" | "mksh" | "zsh" | "ash" => ("-c", Some(name)),
            "python" => ("-c", None),
            "perl" | "ruby" => ("-e", Some(b"--")),
            _ => {
                return Err(ScriptError::Interpreter {
                    path: path.to_owned(),
                    interpreter: interpreter.join(" "),
                });
            }
        };
    let mut words: Vec<&[u8]> = interpreter.iter().map(String::as_bytes).collect();
    words.extend([flag.as_bytes(), &script]);
    words.extend(behind);
    let words: Vec<Vec<u8>> = words.into_iter().map(quoted).collect();
    Ok(words.join(&b' '))
}

/// The arguments as they follow a command line.
pub(crate) fn arguments(arguments: &[OsString]) -> Vec<u8> {
    let words = arguments.iter().map(|argument| quoted(argument.as_bytes()));
    words
        .flat_map(|word| [b" ".to_vec(), word].concat())
        .collect()
}

fn read(path: &Path) -> Result<Vec<u8>, ScriptError> {
    let mut script = Vec::new();
    let read =
        File::open(path).and_then(|file| file.take(MAX_LINE as u64 + 1).read_to_end(&mut script));
    match read {
        Err(error) => Err(ScriptError::Unreadable {
            path: path.to_owned(),
            error,
        }),
        Ok(_) if script.contains(&0) => Err(ScriptError::NotText {
            path: path.to_owned(),
        }),
        Ok(octets) if octets > MAX_LINE => Err(ScriptError::TooLong),
        Ok(_) => Ok(script),
    }
}

/// The words behind `#!`, without `env`; `/bin/sh` if there is no such line.
fn interpreter(script: &[u8]) -> Vec<String> {
    let first = script
        .split(|&octet| octet == b'\n')
        .next()
        .unwrap_or_default();
    let line = first.strip_prefix(b"#!").unwrap_or_default();
    let mut words: Vec<String> = String::from_utf8_lossy(line)
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    if words.first().is_some_and(|word| word.ends_with("/env")) {
        words.remove(0);
        words.retain(|word| word != "-S");
    }
    // `#!/bin/sh -` ends the options; ours has yet to come.
    words.retain(|word| word != "-" && word != "--");
    match words.is_empty() {
        true => vec!["/bin/sh".to_owned()],
        false => words,
    }
}

/// For a POSIX shell: runs `$1` as root, in place of the shell, with [`sudo_input`] at the beginning of standard input.
pub(crate) const AS_ROOT: &str = "if sudo -kn -- /bin/sh -c : </dev/null 2>/dev/null; \
    then IFS= read -r p; IFS= read -r p; unset p; exec sudo -kn -- /bin/sh -c \"$1\"; \
    else IFS= read -r p; \
    printf '%s\\n' \"$p\" 2>/dev/null | sudo -kS -p '' -- /bin/sh -c : || exit; \
    unset p; exec sudo -kS -p '' -- /bin/sh -c \"$1\"; fi";

/// What precedes the command's own input on standard input: the password, on two lines.
pub(crate) fn sudo_input(password: &[u8]) -> Vec<u8> {
    [password, b"\n", password, b"\n"].concat()
}

/// The command line that runs `command` as root, with [`sudo_input`] at the beginning of standard input.
///
/// Where sudo wants no password, the shell takes those lines away. Where it does, sudo asks again after a wrong one
/// (passwd_tries, sudoers(5)), and would take the command's own input for the next attempts. So a first sudo gets
/// the first line and nothing behind it; only if that was right, a second one reads the second line from standard
/// input, an octet at a time (tgetpass.c, getln), and the command sees what comes behind. No argument list ever
/// holds the password: printf is part of the shell.
pub(crate) fn with_sudo(command: &[u8]) -> Vec<u8> {
    let words = [
        b"exec /bin/sh -c".to_vec(),
        quoted(AS_ROOT.as_bytes()),
        b"sudo".to_vec(),
        quoted(command),
    ];
    words.join(&b' ')
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

    use std::fs;
    use std::process::Command;

    use super::*;

    /// What /bin/sh, as sshd would start it, makes of the script.
    fn run(script: &str, arguments: &[&str]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("script.x");
        fs::write(&path, script).unwrap();
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        let line = [
            with_interpreter(&path).unwrap(),
            super::arguments(&arguments),
        ]
        .concat();
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
            run("#!/usr/bin/perl -w\nprint \"@ARGV\";", &["-x", "y"]),
            "-x y"
        );
        assert_eq!(
            run("#!/bin/sh -e -\nfalse || echo \"$-\" | tr -cd e", &[]),
            "e"
        );
    }

    #[test]
    fn other_interpreters_and_binaries_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        fs::write(&path, "#!/usr/bin/awk -f\n").unwrap();
        assert!(matches!(
            with_interpreter(&path),
            Err(ScriptError::Interpreter { .. })
        ));
        fs::write(&path, "\x7fELF\0").unwrap();
        assert!(matches!(
            with_interpreter(&path),
            Err(ScriptError::NotText { .. })
        ));
        fs::write(&path, vec![b'#'; MAX_LINE + 1]).unwrap();
        assert!(matches!(with_interpreter(&path), Err(ScriptError::TooLong)));
    }
}
