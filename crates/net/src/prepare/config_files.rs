//! Reads what the ssh_config loader asks for.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};

use rustix::process::getuid;
use sshoal_ssh_config::{Config, Environment, Loader, Need, Supply};

use super::{PrepareError, SshOptions};

/// Group and others may write.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Loads the configuration that ssh itself would read.
pub(super) fn load(ssh: &SshOptions) -> Result<Config, PrepareError> {
    let text = |path: &std::path::PathBuf| {
        path.to_str()
            .map(str::to_owned)
            .ok_or_else(|| PrepareError::PathNotUtf8(path.clone()))
    };
    let mut options = Vec::new();
    options.extend(ssh.jump.iter().map(|jump| format!("ProxyJump={jump}")));
    if ssh.forward_agent {
        options.push("ForwardAgent=yes".to_owned());
    }
    for identity in &ssh.identities {
        options.push(format!("IdentityFile=\"{}\"", text(identity)?));
    }
    options.extend(ssh.options.iter().cloned());
    let config_file = ssh.config_file.as_ref().map(text).transpose()?;
    let mut loader = Loader::new(&options, config_file.as_deref(), environment());
    supply_all(&mut loader);
    Ok(loader.finish()?)
}

/// Reads all that a loader needs.
pub(super) fn supply_all(loader: &mut Loader) {
    while let Some(need) = loader.poll_need() {
        loader.handle_supply(supply(&need));
    }
}

fn supply(need: &Need) -> Supply {
    match need {
        Need::File {
            path,
            check_permissions,
        } => read(path, *check_permissions),
        Need::Glob { pattern } => Supply::Paths(glob(pattern)),
    }
}

fn read(path: &str, check_permissions: bool) -> Supply {
    let result = fs::metadata(path).and_then(|metadata| {
        let foreign = metadata.uid() != 0 && metadata.uid() != getuid().as_raw();
        match check_permissions && (foreign || metadata.mode() & WRITABLE_BY_OTHERS != 0) {
            true => Ok(Supply::BadPermissions),
            // ssh finds no line in a folder.
            false if metadata.is_dir() => Ok(Supply::Content(Vec::new())),
            false => fs::read(path).map(Supply::Content),
        }
    });
    match result {
        Ok(supply) => supply,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Supply::Absent,
        Err(error) => Supply::Unreadable(error.to_string()),
    }
}

/// As glob(3) without flags: a name that begins with a dot is not met by a wildcard, nor a `/`.
fn glob(pattern: &str) -> Vec<String> {
    // The crate's own rule would hide dot files from a pattern that names their dot, too.
    let names_dot = |part: &str| part.starts_with('.') && part.contains(['*', '?', '[']);
    let options = glob::MatchOptions {
        case_sensitive: true,
        require_literal_separator: true,
        require_literal_leading_dot: !pattern.split('/').any(names_dot),
    };
    let Ok(paths) = glob::glob_with(&translated(pattern), options) else {
        return Vec::new();
    };
    paths
        .filter_map(|path| path.ok()?.to_str().map(str::to_owned))
        .collect()
}

/// A pattern of glob(3) as the crate writes it: several stars are one, and what a backslash quotes stands in brackets.
fn translated(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '*' if out.ends_with('*') => {}
            '\\' => match chars.next() {
                Some(quoted) if "*?[]".contains(quoted) => out.extend(['[', quoted, ']']),
                Some(quoted) => out.push(quoted),
                None => out.push(c),
            },
            _ => out.push(c),
        }
    }
    out
}

/// The user and machine that this program runs as and on.
pub(super) fn environment() -> Environment {
    let variables: HashMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let uid = getuid().as_raw();
    let account = account(uid);
    let variable = |name: &str| variables.get(name).cloned();
    Environment {
        local_user: account
            .as_ref()
            .map(|(name, _)| name.clone())
            .or_else(|| variable("LOGNAME"))
            .or_else(|| variable("USER"))
            .unwrap_or_default(),
        home: variable("HOME")
            .or(account.map(|(_, home)| home))
            .unwrap_or_else(|| "/".to_owned()),
        local_host: rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned(),
        uid,
        variables,
    }
}

/// The name of the user that this program runs as: whom ssh logs in as where nobody says otherwise.
pub fn local_user() -> String {
    environment().local_user
}

/// The home directory of a user by name.
pub(super) fn home_of(user: &str) -> Option<String> {
    passwd_line(user, |fields| {
        fields.first().is_some_and(|name| name == user)
    })?
    .into_iter()
    .nth(5)
}

/// Name and home of a user.
fn account(uid: u32) -> Option<(String, String)> {
    let own = |fields: &[String]| {
        fields
            .get(2)
            .is_some_and(|number| number.parse() == Ok(uid))
    };
    let mut fields = passwd_line(&uid.to_string(), own)?.into_iter();
    Some((fields.next()?, fields.nth(4)?))
}

/// The fields of a user's line in /etc/passwd, or as getent(1) has it: users of a directory service are known to NSS
/// alone.
fn passwd_line(key: &str, is_theirs: impl Fn(&[String]) -> bool) -> Option<Vec<String>> {
    let find = |text: &str| {
        let mut lines = text
            .lines()
            .map(|line| line.split(':').map(str::to_owned).collect::<Vec<_>>());
        lines.find(|fields| is_theirs(fields))
    };
    let file = fs::read_to_string("/etc/passwd").unwrap_or_default();
    find(&file).or_else(|| {
        let mut getent = Command::new("getent");
        getent.args(["passwd", "--", key]).stdin(Stdio::null());
        let output = getent.stderr(Stdio::null()).output().ok()?;
        find(&String::from_utf8_lossy(&output.stdout))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn patterns_are_those_of_glob() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.conf", ".hidden", "b*c", "sub/d", "sub/.e"] {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let found = |pattern: &str| {
            let base = folder.path().to_str().unwrap();
            let paths = glob(&format!("{base}/{pattern}"));
            let names = paths.iter().map(|path| path[base.len() + 1..].to_owned());
            names.collect::<Vec<_>>()
        };
        assert_eq!(found("*"), ["a.conf", "b*c", "sub"]);
        assert_eq!(found("**"), ["a.conf", "b*c", "sub"]);
        assert_eq!(found(".*en"), [".hidden"]);
        assert_eq!(found("*/*"), ["sub/d"]);
        assert_eq!(found("b\\*c"), ["b*c"]);
        assert_eq!(found("a\\*f"), Vec::<String>::new());
        assert_eq!(found("[!ab]*"), ["sub"]);
    }

    #[test]
    fn a_folder_has_no_lines() {
        let folder = tempfile::tempdir().unwrap();
        let supply = read(folder.path().to_str().unwrap(), false);
        assert!(matches!(supply, Supply::Content(lines) if lines.is_empty()));
    }

    #[test]
    fn accounts_are_found_by_number_and_by_name() {
        let (name, home) = account(0).unwrap();
        assert_eq!((name.as_str(), home_of(&name)), ("root", Some(home)));
        assert_eq!(home_of("nobody-has-this-name"), None);
        assert_eq!(home_of("-s"), None);
    }
}
