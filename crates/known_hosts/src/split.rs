//! One small known_hosts file a host, for `UserKnownHostsFile DIRECTORY/%h`.
//!
//! `ssh` reads a whole known_hosts file for every connection; a file of its own for each host
//! costs nothing. The caller resolves addresses and writes the files.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::host_name::{DEFAULT_PORT, HostName};
use crate::known_hosts::{Entry, KnownHosts};
use crate::line::Marker;
use crate::pattern;

/// Longest file name that common file systems take, in bytes.
const MAX_FILE_NAME: usize = 255;

/// A host that is to have a file of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SplitHost {
    /// What `%h` stands for: the host's name without its port.
    pub name: String,
    /// The ports at which it is reached; its bare name is always looked up as well.
    pub ports: BTreeSet<u16>,
    /// The addresses that belong to the name, whose lines `CheckHostIP` wants in the same file.
    pub addresses: BTreeSet<String>,
}

/// The files that known_hosts is split into.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// The files, in the order of their names.
    pub files: Vec<SplitFile>,
    /// Hosts of which nothing is known.
    pub missing: Vec<String>,
    /// Hosts whose names are no safe file names: they could lead out of the directory, hide, or
    /// be taken for an option.
    pub unsafe_names: Vec<String>,
}

/// A host's own known_hosts file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitFile {
    /// The file's name, without any directory: the host's name in lowercase, as `%h` has it.
    pub name: String,
    /// The lines that apply to the host, as they stand in the files that were split.
    pub content: Vec<u8>,
    /// How many lines that are.
    pub lines: usize,
}

/// A directory that cannot be written into an ssh_config.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the directory {0:?} cannot be named in ssh_config; choose one without quotes and line ends"
)]
pub struct DirectoryError(String);

impl SplitHost {
    /// A host out of a list: `name`, or `[name]:port` as known_hosts has it.
    pub fn parse(text: &str) -> SplitHost {
        let (name, port) = parse_written(text);
        SplitHost {
            name: name.to_ascii_lowercase(),
            ports: BTreeSet::from([port]),
            addresses: BTreeSet::new(),
        }
    }

    /// The names under which `ssh` asks for the host's key.
    pub fn written(&self) -> BTreeSet<String> {
        let ports = self.ports.iter().copied().chain([DEFAULT_PORT]);
        let names = || std::iter::once(&self.name).chain(&self.addresses);
        ports
            .flat_map(|port| names().map(move |name| HostName::with_port(name, port).written()))
            .collect()
    }
}

impl KnownHosts {
    /// The hosts that plain lines name, with the addresses that stand on the same lines. Hashed
    /// names cannot be told: then the names must come from elsewhere.
    pub fn split_hosts(&self) -> Vec<SplitHost> {
        let mut hosts: BTreeMap<String, SplitHost> = BTreeMap::new();
        for entry in self.entries().filter(is_plain) {
            let field = String::from_utf8_lossy(entry.hosts()).to_ascii_lowercase();
            let written = field.split(',').filter(|name| !name.is_empty());
            let named: Vec<(&str, u16)> = written.map(parse_written).collect();
            let is_address = |name: &str| name.parse::<IpAddr>().is_ok();
            for &(name, port) in &named {
                let host = hosts.entry(name.to_string()).or_default();
                host.name = name.to_string();
                host.ports.insert(port);
                if !is_address(name) {
                    let addresses = named.iter().filter(|(name, _)| is_address(name));
                    host.addresses
                        .extend(addresses.map(|(name, _)| name.to_string()));
                }
            }
        }
        hosts.into_values().collect()
    }

    /// Splits the files into one for each host's name. Every line that applies to a host comes
    /// along, those with wildcards and markers too: nothing is trusted more or less than before.
    ///
    /// Of hashed lines, costs one HMAC for each name and line unless the hosts were
    /// [learned](Self::learn).
    pub fn split(&self, hosts: &[SplitHost]) -> Split {
        let mut split = Split::default();
        let mut names: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for host in hosts {
            let name = host.name.to_ascii_lowercase();
            names.entry(name).or_default().extend(host.written());
        }
        for (name, written) in names {
            if !is_safe_file_name(&name) {
                split.unsafe_names.push(name);
                continue;
            }
            let mut lines = BTreeMap::new();
            for written in &written {
                let matches = self.lookup_written(written);
                lines.extend(matches.ids().zip(matches.iter()));
            }
            let mut content = Vec::new();
            for entry in lines.values() {
                content.extend(entry.line_text());
                content.push(b'\n');
            }
            match lines.len() {
                0 => split.missing.push(name),
                lines => split.files.push(SplitFile {
                    name,
                    content,
                    lines,
                }),
            }
        }
        split
    }
}

/// The ssh_config lines that make `ssh` use the files in `directory`.
pub fn split_config(directory: &str) -> Result<String, DirectoryError> {
    if directory.is_empty() || directory.contains(['"', '\n', '\r', '\0']) {
        return Err(DirectoryError(directory.to_string()));
    }
    let directory = directory.trim_end_matches('/');
    let escaped = directory.replace('\\', "\\\\").replace('%', "%%");
    Ok(format!("Host *\n    UserKnownHostsFile \"{escaped}/%h\"\n"))
}

fn is_plain(entry: &Entry<'_>) -> bool {
    let hosts = entry.hosts();
    entry.marker() == Marker::None && !hosts.starts_with(b"|") && pattern::is_plain_list(hosts)
}

/// A name as known_hosts has it: `[name]:port`, or the bare name.
fn parse_written(text: &str) -> (&str, u16) {
    let with_port = text
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("]:"))
        .and_then(|(name, port)| Some((name, port.parse().ok()?)));
    with_port.unwrap_or((text, DEFAULT_PORT))
}

/// Letters, digits, and what else host names and addresses are made of; no path, no hidden file,
/// no option.
fn is_safe_file_name(name: &str) -> bool {
    let safe = |c: u8| c.is_ascii_alphanumeric() || b"._-:".contains(&c);
    !name.is_empty()
        && name.len() <= MAX_FILE_NAME
        && !name.starts_with(['.', '-'])
        && name.bytes().all(safe)
}

#[cfg(test)]
mod tests;
