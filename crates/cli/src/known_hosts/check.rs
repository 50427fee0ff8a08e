//! `sshoal known-hosts check`.

use std::error::Error;

use sshoal_known_hosts::{Duplicate, HostName, SplitHost, TwoKeys};
use sshoal_net::{IndexCache, KnownHostsFiles};

use super::FOUND;
use super::args::CheckArgs;
use super::files;
use super::split::hosts_of;

pub(super) fn run(args: &CheckArgs) -> Result<u8, Box<dyn Error>> {
    let mut read = KnownHostsFiles::read(&files::paths_that_are_there(&args.files)?)?;
    let mut names = read.known().plain_names();
    for word in &args.hosts {
        names.extend(hosts_of(word)?.iter().flat_map(SplitHost::written));
    }
    let hosts: Vec<HostName<'_>> = names.iter().map(|name| HostName::new(name)).collect();
    let cache = (!args.no_index_cache).then(IndexCache::of_user).flatten();
    read.look_up_hashed(&hosts, cache.as_ref());
    let report = read.known().check(&names);
    let mut lines: Vec<String> = report.broken.iter().map(ToString::to_string).collect();
    lines.extend(report.weak.iter().map(ToString::to_string));
    for Duplicate { name, first, again } in &report.duplicates {
        lines.push(format!("{again}: {name} has this key at {first} already"));
    }
    for TwoKeys {
        name,
        key_type,
        first,
        other,
    } in &report.two_keys
    {
        let key_type = key_type.name();
        lines.push(format!(
            "{other}: {name} has another {key_type} key at {first}"
        ));
    }
    let status = files::print_lines(&lines)?;
    Ok(match lines.is_empty() {
        true => status,
        false => status.max(FOUND),
    })
}
