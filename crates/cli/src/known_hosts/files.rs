//! Where known_hosts files are, and how what they say is shown.

use std::error::Error;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sshoal_known_hosts::{HostName, SALT_LEN};

use super::args::FileArgs;
use crate::manual::print;

/// The user's own files (UserKnownHostsFile, ssh_config(5)).
const NAMES: [&str; 2] = ["known_hosts", "known_hosts2"];

/// The files that are to be read.
pub(super) fn paths(args: &FileArgs) -> Result<Vec<String>, Box<dyn Error>> {
    match args.files.is_empty() {
        false => Ok(args.files.clone()),
        true => NAMES.map(in_ssh_folder).into_iter().collect(),
    }
}

/// The same; one that was named and is not there is a mistake.
pub(super) fn paths_that_are_there(args: &FileArgs) -> Result<Vec<String>, Box<dyn Error>> {
    for path in &args.files {
        fs::metadata(path).map_err(|error| format!("cannot read {path}: {error}"))?;
    }
    paths(args)
}

/// The file that is to be changed.
pub(super) fn path(file: Option<&String>) -> Result<String, Box<dyn Error>> {
    file.map_or_else(|| in_ssh_folder(NAMES[0]), |file| Ok(file.clone()))
}

fn in_ssh_folder(name: &str) -> Result<String, Box<dyn Error>> {
    let path = ssh_folder()?.join(name).into_os_string();
    let problem = |path| format!("{path:?} is not valid UTF-8; name the file with -f");
    Ok(path.into_string().map_err(problem)?)
}

/// `~/.ssh`.
pub(super) fn ssh_folder() -> Result<PathBuf, Box<dyn Error>> {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    let home = home.ok_or("HOME is not set; name the file with -f")?;
    Ok(Path::new(&home).join(".ssh"))
}

/// Hosts as known_hosts writes them; and as lists have them, `name:port`.
pub(super) fn host_names(words: &[String]) -> Vec<HostName<'_>> {
    let names = words
        .iter()
        .flat_map(|word| [Some(HostName::new(word)), host_and_port(word)]);
    names.flatten().collect()
}

/// An address with colons has its port behind brackets only.
fn host_and_port(word: &str) -> Option<HostName<'_>> {
    let (name, port) = word.split_once(':')?;
    let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let is_name = !name.is_empty() && !name.starts_with('[');
    let port = port.parse().ok().filter(|port| *port != 0)?;
    (is_name && is_port).then(|| HostName::with_port(name, port))
}

/// The whole of a file, or of standard input for `-`.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut content = Vec::new();
    let result = match path == Path::new("-") {
        true => io::stdin().lock().read_to_end(&mut content),
        false => fs::File::open(path).and_then(|mut file| file.read_to_end(&mut content)),
    };
    result.map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    Ok(content)
}

/// A fresh salt for a hashed name.
pub(super) fn salt() -> [u8; SALT_LEN] {
    let mut salt = [0; SALT_LEN];
    sshoal_crypto::random(&mut salt);
    salt
}

/// Prints lines for people: control characters, which a file may hold, are shown and not obeyed.
pub(super) fn print_lines(lines: &[String]) -> Result<u8, Box<dyn Error>> {
    let text: String = lines.iter().map(|line| visible(line) + "\n").collect();
    Ok(print(text.as_bytes()))
}

/// Says something beside the output.
pub(super) fn say(text: &str) {
    crate::say::say(visible(text));
}

fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c.is_control() {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
    }
    shown
}
