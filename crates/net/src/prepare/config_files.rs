//! Reads what the ssh_config loader asks for.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

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
    options.extend(ssh.user.iter().map(|user| format!("User={user}")));
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
            false => fs::read(path).map(Supply::Content),
        }
    });
    match result {
        Ok(supply) => supply,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Supply::Absent,
        Err(error) => Supply::Unreadable(error.to_string()),
    }
}

fn glob(pattern: &str) -> Vec<String> {
    let Ok(paths) = glob::glob(pattern) else {
        return Vec::new();
    };
    paths
        .filter_map(|path| path.ok()?.to_str().map(str::to_owned))
        .collect()
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

/// The home directory of a user by name.
pub(super) fn home_of(user: &str) -> Option<String> {
    let passwd = fs::read_to_string("/etc/passwd").ok()?;
    let mut lines = passwd.lines().map(|line| line.split(':'));
    let mut fields = lines.find(|fields| fields.clone().next() == Some(user))?;
    fields.nth(5).map(str::to_owned)
}

/// Name and home of a user in /etc/passwd. Users that only NSS knows are taken from USER and HOME.
fn account(uid: u32) -> Option<(String, String)> {
    let passwd = fs::read_to_string("/etc/passwd").ok()?;
    passwd.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let [name, _, number, _, _, home, ..] = fields.as_slice() else {
            return None;
        };
        (number.parse() == Ok(uid)).then(|| (name.to_string(), home.to_string()))
    })
}
