//! `sshoal known-hosts split`: one small file a host, for `UserKnownHostsFile DIR/%h` of stock ssh.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;

use sshoal_known_hosts::{
    DEFAULT_PORT, HostName, KnownHosts, Split, SplitFile, SplitHost, split_config,
};
use sshoal_net::{IndexCache, KnownHostsFiles, replace_file};
use sshoal_targets::{Item, fold, parse_list};

use super::args::SplitArgs;
use super::files::{self, print_lines, say};
use crate::manual::print;

/// The folder within `~/.ssh`, if none is named.
const FOLDER: &str = "known_hosts_single";
/// Names that are looked up at a time: each waits for a name server most of the time.
const LOOKUPS: usize = 32;
/// After how many names `--progress` says so.
const PROGRESS_STEP: usize = 100;

pub(super) fn run(args: &SplitArgs) -> Result<u8, Box<dyn Error>> {
    let folder = folder(args)?;
    let mut read = KnownHostsFiles::read(&files::paths_that_are_there(&args.files)?)?;
    let mut hosts = hosts(args, read.known())?;
    if args.addresses {
        add_addresses(&mut hosts, args.progress);
    }
    let names: Vec<HostName<'_>> = hosts.iter().flat_map(names).collect();
    let cache = (!args.no_index_cache).then(IndexCache::of_user).flatten();
    read.look_up_hashed(&names, cache.as_ref());
    let split = read.known().split(&hosts);
    if args.dry_run {
        let line = |file: &SplitFile| {
            format!(
                "{}: {} lines",
                folder.join(&file.name).display(),
                file.lines
            )
        };
        let lines: Vec<String> = split.files.iter().map(line).collect();
        say_what_is_missing(&split, &folder);
        return print_lines(&lines);
    }
    let config = split_config(&folder.to_string_lossy())?;
    write(&split, &folder)?;
    say(&format!(
        "files in {}: {}",
        folder.display(),
        split.files.len()
    ));
    say_what_is_missing(&split, &folder);
    Ok(print(config.as_bytes()))
}

/// Where the files go; an absolute path, since ssh is started anywhere.
fn folder(args: &SplitArgs) -> Result<PathBuf, Box<dyn Error>> {
    match (&args.output_dir, &args.dot_ssh_output_dir) {
        (Some(folder), _) => Ok(std::path::absolute(folder)?),
        (None, name) => {
            let name = name.as_deref().unwrap_or(FOLDER);
            Ok(files::ssh_folder()?.join(name))
        }
    }
}

/// The hosts that are named here or in a file; else all that can be read in known_hosts.
fn hosts(args: &SplitArgs, known: &KnownHosts) -> Result<Vec<SplitHost>, Box<dyn Error>> {
    if args.hosts.is_empty() && args.input_file.is_none() {
        let hosts = known.split_hosts();
        let is_hashed = |hosts: &[u8]| hosts.starts_with(b"|");
        let hashed = known
            .entries()
            .filter(|entry| is_hashed(entry.hosts()))
            .count();
        if hashed > 0 {
            say(&format!(
                "the names of {hashed} hashed lines cannot be read; name the hosts, or a file of them with --input-file"
            ));
        }
        return match hosts.is_empty() {
            true => Err("known_hosts names no host that could be split off".into()),
            false => Ok(hosts),
        };
    }
    let mut hosts = Vec::new();
    for word in &args.hosts {
        hosts.extend(hosts_of(word)?);
    }
    if let Some(path) = &args.input_file {
        let content = files::read(path)?;
        for (number, line) in (1..).zip(String::from_utf8_lossy(&content).lines()) {
            let line = line.split('#').next().unwrap_or_default().trim();
            if !line.is_empty() {
                let found = hosts_of(line);
                hosts.extend(
                    found.map_err(|error| format!("{}:{number}: {error}", path.display()))?,
                );
            }
        }
    }
    Ok(hosts)
}

/// `[name]:port` as in known_hosts, or a list as everywhere here.
pub(super) fn hosts_of(word: &str) -> Result<Vec<SplitHost>, Box<dyn Error>> {
    if (word.starts_with('[') && word.contains("]:")) || word.parse::<IpAddr>().is_ok() {
        return Ok(vec![SplitHost::parse(word)]);
    }
    let host = |item| match item {
        Item::Target(target) => Ok(SplitHost {
            name: target.name.to_ascii_lowercase(),
            ports: BTreeSet::from([target.port.unwrap_or(DEFAULT_PORT)]),
            addresses: BTreeSet::new(),
        }),
        _ => Err(format!("{word:?} cannot be used here; name hosts, or ranges of them").into()),
    };
    parse_list(word)?.into_iter().map(host).collect()
}

/// All names under which ssh may ask for a host's key.
fn names(host: &SplitHost) -> impl Iterator<Item = HostName<'_>> {
    let names = std::iter::once(&host.name).chain(&host.addresses);
    names.flat_map(move |name| {
        let ports = host.ports.iter().copied().chain([DEFAULT_PORT]);
        ports.map(move |port| HostName::with_port(name, port))
    })
}

/// Looks the names up, many at a time; one that has no address is none the worse for it.
fn add_addresses(hosts: &mut [SplitHost], progress: bool) {
    let all = hosts.len();
    let queue = Mutex::new(hosts.iter_mut().enumerate());
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let look_up = || {
        while let Some((number, host)) = next() {
            if progress && number % PROGRESS_STEP == 0 {
                say(&format!("{number} of {all} names looked up"));
            }
            let found = (host.name.as_str(), 0).to_socket_addrs();
            let found = found.into_iter().flatten();
            host.addresses
                .extend(found.map(|address| address.ip().to_string()));
        }
    };
    thread::scope(|scope| {
        for _ in 0..LOOKUPS.min(all) {
            scope.spawn(look_up);
        }
    });
}

fn write(split: &Split, folder: &Path) -> Result<(), String> {
    let problem =
        |path: &Path, error: io::Error| format!("cannot write {}: {error}", path.display());
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder
        .create(folder)
        .map_err(|error| problem(folder, error))?;
    for file in &split.files {
        let path = folder.join(&file.name);
        replace_file(&path, &file.content).map_err(|error| problem(&path, error))?;
    }
    Ok(())
}

fn say_what_is_missing(split: &Split, folder: &Path) {
    if !split.missing.is_empty() {
        let (count, names) = (split.missing.len(), fold(&split.missing));
        say(&format!("{count} hosts are not in known_hosts: {names}"));
    }
    for name in split
        .missing
        .iter()
        .filter(|name| folder.join(name).exists())
    {
        let path = folder.join(name);
        say(&format!(
            "{} is left over from another time; remove it",
            path.display()
        ));
    }
    for name in &split.unsafe_names {
        say(&format!("{name:?} is no name for a file, and is left out"));
    }
}
