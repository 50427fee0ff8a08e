//! `group_vars` and `host_vars` beside an Ansible inventory (`find_vars_files`, parsing/dataloader.py).

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sshoal_targets::Inventory;

use super::HostsError;
use super::inventory::contents;

/// How the name of a file may go on behind that of a group or host; the first that is there counts.
const ENDINGS: [&str; 4] = ["", ".yml", ".yaml", ".json"];

/// Deepest folder below that of a group or host.
const MAX_DEPTH: usize = 16;

/// Reads the variables that stand beside the inventory at `path`.
pub(super) fn read(inventory: &mut Inventory, path: &Path) -> Result<(), HostsError> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let names: Vec<String> = inventory.group_names().map(str::to_owned).collect();
    each_file(
        &folder.join("group_vars"),
        &names,
        |name, label, contents| Ok(inventory.read_group_vars(name, label, contents)?),
    )?;
    let names: Vec<String> = inventory.host_names().map(str::to_owned).collect();
    each_file(
        &folder.join("host_vars"),
        &names,
        |name, label, contents| Ok(inventory.read_host_vars(name, label, contents)?),
    )
}

/// Hands over the files of each name, in the order in which they count.
fn each_file(
    folder: &Path,
    names: &[String],
    mut read: impl FnMut(&str, &str, &[u8]) -> Result<(), HostsError>,
) -> Result<(), HostsError> {
    // One look into the folder: an inventory may have a hundred thousand hosts.
    let unreadable = |path: &Path| {
        let path = path.display().to_string();
        move |error| HostsError::Inventory { path, error }
    };
    let there: HashSet<OsString> = match entries(folder) {
        Ok(entries) => entries.into_iter().collect(),
        Err(error) if is_no_folder(&error) => return Ok(()),
        Err(error) => return Err(unreadable(folder)(error)),
    };
    for name in names.iter().filter(|name| !name.contains('/')) {
        let mut endings = ENDINGS
            .iter()
            .map(|ending| OsString::from(format!("{name}{ending}")));
        let Some(found) = endings.find(|file| there.contains(file)) else {
            continue;
        };
        let mut files = Vec::new();
        let found = folder.join(found);
        add_files(&found, 0, &mut files).map_err(unreadable(&found))?;
        for path in files {
            let contents = contents(&path).map_err(unreadable(&path))?;
            read(name, &path.display().to_string(), &contents)?;
        }
    }
    Ok(())
}

fn is_no_folder(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn entries(folder: &Path) -> io::Result<Vec<OsString>> {
    fs::read_dir(folder)?
        .map(|entry| Ok(entry?.file_name()))
        .collect()
}

/// A file, or all of a folder in the order of their names: those with one of the endings or none, hidden files and
/// backups left out. A folder in it has no ending.
fn add_files(path: &Path, depth: usize, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if !fs::metadata(path)?.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    if depth > MAX_DEPTH {
        return Err(io::Error::other(format!(
            "more than {MAX_DEPTH} folders within each other"
        )));
    }
    let mut names = entries(path)?;
    names.sort();
    for name in names {
        let text = name.to_string_lossy();
        if text.starts_with('.') || text.ends_with('~') {
            continue;
        }
        let below = path.join(&name);
        let ending = below.extension().map_or(String::new(), |ending| {
            format!(".{}", ending.to_string_lossy())
        });
        let is_folder = fs::metadata(&below)?.is_dir();
        let is_wanted = match is_folder {
            true => ending.is_empty(),
            false => ENDINGS.contains(&ending.as_str()),
        };
        if is_wanted {
            add_files(&below, depth + 1, files)?;
        }
    }
    Ok(())
}
