//! Names that this account's ssh knows: of ssh_config and of known_hosts.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use sshoal_targets::{Target, distinct};

/// Most files of ssh_config that are read for their names.
const MAX_FILES: usize = 1000;

/// The names of `Host` lines in ssh_config and what it includes. What cannot be read names nobody.
pub(crate) fn config_names() -> Vec<Target> {
    let ssh = home().join(".ssh");
    let system = PathBuf::from("/etc/ssh");
    let mut open = vec![
        (system.join("ssh_config"), system),
        (ssh.join("config"), ssh),
    ];
    let (mut names, mut seen) = (Vec::new(), BTreeSet::new());
    while let Some((path, directory)) = open.pop() {
        if seen.len() == MAX_FILES || !seen.insert(path.clone()) {
            continue;
        }
        let found = sshoal_targets::ssh_config_names(&fs::read(&path).unwrap_or_default());
        names.extend(found.names);
        for include in found.includes.iter().rev() {
            let pattern = match include.strip_prefix("~/") {
                Some(path) => home().join(path),
                None => directory.join(include),
            };
            let paths = pattern.to_str().and_then(|text| glob::glob(text).ok());
            let included: Vec<PathBuf> = paths.into_iter().flatten().flatten().collect();
            open.extend(
                included
                    .into_iter()
                    .rev()
                    .map(|path| (path, directory.clone())),
            );
        }
    }
    distinct(names)
}

/// The plain names of the known_hosts files that ssh reads without a configuration.
pub(crate) fn known_hosts_names() -> Vec<Target> {
    let ssh = home().join(".ssh");
    let system = PathBuf::from("/etc/ssh");
    let files = [
        ssh.join("known_hosts"),
        ssh.join("known_hosts2"),
        system.join("ssh_known_hosts"),
        system.join("ssh_known_hosts2"),
    ];
    let contents = files.iter().filter_map(|path| fs::read(path).ok());
    distinct(
        contents
            .flat_map(|contents| sshoal_targets::known_hosts_names(&contents))
            .collect(),
    )
}

fn home() -> PathBuf {
    std::env::var_os("HOME").map_or_else(|| "/".into(), PathBuf::from)
}
