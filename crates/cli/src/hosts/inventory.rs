//! Ansible inventories and genders files: where they are, and how they are read.

use std::fs;
use std::io::{self, Read};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use rustix::fs::{Access, access};
use sshoal_targets::{Genders, Inventory};

use super::files::MAX_FILE;
use super::{HostsError, program, supply::AT_ONCE, vars_files};

/// pdsh's genders module: the file, and the directory that a relative one is in.
const GENDERS_FILE: &str = "PDSH_GENDERS_FILE";
const GENDERS_DIR: &str = "PDSH_GENDERS_DIR";

/// All inventories as one: what a later one says of a host or group counts more than what an earlier one says. The
/// variables that stand beside each are about the hosts and groups of all.
pub(super) fn read_all(paths: &[PathBuf]) -> Result<Inventory, HostsError> {
    let mut all = Inventory::default();
    let mut have_variables = Vec::new();
    for path in paths {
        let (inventory, is_printed) = read(path, &all)?;
        all = all.merge(&path.display().to_string(), inventory)?;
        // What `ansible-inventory` prints has them already.
        have_variables.extend((!is_printed).then_some(path));
    }
    for path in have_variables {
        vars_files::read(&mut all, path)?;
    }
    Ok(all)
}

/// The inventory in a file, or as a program prints it; and whether the file holds what `ansible-inventory` prints.
fn read(path: &Path, earlier: &Inventory) -> Result<(Inventory, bool), HostsError> {
    let label = path.display().to_string();
    let unreadable = |error| HostsError::Inventory {
        path: label.clone(),
        error,
    };
    if fs::metadata(path).map_err(unreadable)?.is_dir() {
        return Err(HostsError::InventoryDirectory { path: label });
    }
    let contents = contents(path).map_err(unreadable)?;
    let inventory = if is_program(path, &contents) {
        // A name without a slash would be looked for in PATH.
        let program = fs::canonicalize(path).map_err(unreadable)?;
        from_program(&program, &label)?
    } else {
        let is_json = contents.trim_ascii_start().starts_with(b"{");
        let extension = path.extension().and_then(|extension| extension.to_str());
        match extension {
            Some("yml" | "yaml") => Inventory::parse_yaml(&label, &contents)?,
            Some("json") => return Ok((Inventory::parse_list(&label, &contents)?, true)),
            _ if is_json => return Ok((Inventory::parse_list(&label, &contents)?, true)),
            _ => Inventory::parse_ini_after(earlier, &label, &contents)?,
        }
    };
    Ok((inventory, false))
}

/// As Ansible's plugin `script` does: what `--list` leaves out is asked for host by host.
fn from_program(program: &Path, label: &str) -> Result<Inventory, HostsError> {
    let output = |arguments: &[&str]| {
        program::output(Command::new(program).args(arguments)).map_err(|why| HostsError::Program {
            program: format!("{label} {}", arguments.join(" ")),
            why,
        })
    };
    let mut inventory = Inventory::parse_list(label, &output(&["--list"])?)?;
    if !inventory.lacks_host_variables() {
        return Ok(inventory);
    }
    let names: Vec<String> = inventory.host_names().map(str::to_owned).collect();
    for names in names.chunks(AT_ONCE) {
        let answers: Vec<Result<Vec<u8>, HostsError>> = thread::scope(|scope| {
            let asked: Vec<_> = names
                .iter()
                .map(|name| scope.spawn(|| output(&["--host", name])))
                .collect();
            asked
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
                .collect()
        });
        for (name, answer) in names.iter().zip(answers) {
            inventory.read_host_answer(name, &format!("{label} --host {name}"), &answer?)?;
        }
    }
    Ok(inventory)
}

/// Executable alone says little: on some file systems every file is.
fn is_program(path: &Path, contents: &[u8]) -> bool {
    let begins_so = contents.starts_with(b"#!") || contents.starts_with(b"\x7fELF");
    begins_so && access(path, Access::EXEC_OK).is_ok()
}

pub(super) fn contents(path: &Path) -> io::Result<Vec<u8>> {
    let mut contents = Vec::new();
    let file = fs::File::open(path)?;
    file.take(MAX_FILE + 1).read_to_end(&mut contents)?;
    match contents.len() as u64 > MAX_FILE {
        true => Err(io::Error::other(format!(
            "it is larger than {MAX_FILE} octets"
        ))),
        false => Ok(contents),
    }
}

/// The genders file that pdsh would read; `None` if there is none.
pub(super) fn genders() -> Result<Option<Genders>, HostsError> {
    let named = std::env::var_os(GENDERS_FILE).map(PathBuf::from);
    let directory = std::env::var_os(GENDERS_DIR).map_or_else(|| "/etc".into(), PathBuf::from);
    let path = directory.join(named.as_deref().unwrap_or(Path::new("genders")));
    let label = path.display().to_string();
    match contents(&path) {
        Ok(contents) => Ok(Some(Genders::parse(&label, &contents)?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound && named.is_none() => Ok(None),
        Err(error) => Err(HostsError::Unreadable { path: label, error }),
    }
}
