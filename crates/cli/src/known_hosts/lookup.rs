//! `sshoal known-hosts lookup`: serves ssh as KnownHostsCommand (ssh_config(5)), so it must be quick, print nothing but
//! lines, and end well where nothing is known.

use std::collections::HashSet;
use std::error::Error;
use std::path::Path;

use sshoal_net::{IndexCache, KnownHostsFiles};

use super::args::LookupArgs;
use super::files;
use crate::manual::print;
use crate::say::say;

pub(super) fn run(args: &LookupArgs) -> Result<u8, Box<dyn Error>> {
    if args.ssh_config {
        let lines = ssh_config(&std::env::current_exe()?, &args.files.files)?;
        return Ok(print(lines.as_bytes()));
    }
    let (empty, named): (Vec<_>, Vec<_>) = args.hosts.iter().cloned().partition(String::is_empty);
    if !empty.is_empty() {
        // A line for `*` would match it. It is no error all the same: ssh would give up its connection for any status but 0.
        say("an empty name is no host's: it was not looked up");
    }
    let hosts = files::host_names(&named);
    let cache = (!args.no_index_cache).then(IndexCache::of_user).flatten();
    let paths = files::paths(&args.files)?;
    let (read, _) = KnownHostsFiles::read_for(&paths, &hosts, cache.as_ref())?;
    let mut printed = HashSet::new();
    let mut out = Vec::new();
    for host in &hosts {
        for entry in read.known().lookup(host).iter() {
            if printed.insert(entry.location()) {
                out.extend(entry.line_text());
                out.push(b'\n');
            }
        }
    }
    Ok(print(&out))
}

/// With UserKnownHostsFile set to none ssh reads the user's files not at all, and asks for each host's lines.
fn ssh_config(program: &Path, files: &[String]) -> Result<String, String> {
    // ssh expands tokens in the arguments, not in the program.
    let mut command = quoted(&program.to_string_lossy())?.replace("%%", "%");
    command.push_str(" known-hosts lookup");
    for file in files {
        let file = std::path::absolute(file).map_err(|error| format!("{file}: {error}"))?;
        command.push_str(" -f ");
        command.push_str(&quoted(&file.to_string_lossy())?);
    }
    Ok(format!(
        "Host *\n    KnownHostsCommand {command} -- %H\n    UserKnownHostsFile none\n"
    ))
}

/// A word of a command in ssh_config, where % begins a token and blanks part words (misc.c, argv_split).
fn quoted(word: &str) -> Result<String, String> {
    if word.contains(['"', '\'', '\\', '\n', '\r', '\u{fffd}']) {
        return Err(format!(
            "{word:?} cannot be named in ssh_config; use a path without quotes and such"
        ));
    }
    let word = word.replace('%', "%%");
    Ok(
        match word.contains(char::is_whitespace) || word.contains('#') {
            true => format!("\"{word}\""),
            false => word,
        },
    )
}
