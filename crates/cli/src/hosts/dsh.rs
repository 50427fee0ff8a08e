//! The group files of dsh, which pdsh's module dshgroup reads, too: a file a group, a host a line.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sshoal_targets::{GroupTable, Target, parse_file};

use super::{HostsError, files};

/// The folders in which pdsh looks, with colons between them, in place of the usual two.
const PATH: &str = "DSHGROUP_PATH";

/// How another group's file is named; to whom does not know of it, it is a comment.
const INCLUDE: &str = "#include ";

/// All groups; `None` where there is no folder of them.
pub(super) fn table() -> Result<Option<GroupTable>, HostsError> {
    let folders = folders();
    let mut groups: BTreeMap<String, PathBuf> = BTreeMap::new();
    let mut any = false;
    for folder in &folders {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(unreadable(folder, error)),
        };
        any = true;
        for entry in entries {
            let path = entry.map_err(|error| unreadable(folder, error))?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            let is_hidden = |name: &&str| name.starts_with('.') || name.ends_with('~');
            if let Some(name) = name.filter(|name| !is_hidden(name) && path.is_file()) {
                // The folder that comes first counts.
                groups.entry(name.to_owned()).or_insert(path);
            }
        }
    }
    if !any {
        return Ok(None);
    }
    let mut table = GroupTable::default();
    for (name, path) in groups {
        let mut targets = Vec::new();
        add_file(&path, &folders, &mut BTreeSet::new(), &mut targets)?;
        table.insert(name, targets);
    }
    Ok(Some(table))
}

fn folders() -> Vec<PathBuf> {
    if let Some(path) = std::env::var_os(PATH) {
        return std::env::split_paths(&path).collect();
    }
    let own = std::env::var_os("HOME").map(|home| Path::new(&home).join(".dsh/group"));
    own.into_iter()
        .chain([PathBuf::from("/etc/dsh/group")])
        .collect()
}

/// The hosts of a file and of those that it includes; one that has been read already is passed over, as by pdsh.
fn add_file(
    path: &Path,
    folders: &[PathBuf],
    seen: &mut BTreeSet<PathBuf>,
    targets: &mut Vec<Target>,
) -> Result<(), HostsError> {
    if !seen.insert(path.to_owned()) {
        return Ok(());
    }
    let contents = files::contents(path)?;
    targets.extend(parse_file(&path.display().to_string(), &contents)?);
    let text = String::from_utf8_lossy(&contents);
    for name in text.lines().filter_map(|line| line.strip_prefix(INCLUDE)) {
        let name = name.trim().trim_matches(['"', '<', '>']);
        // An absolute name stays as it is when it is joined.
        let mut candidates = folders.iter().map(|folder| folder.join(name));
        let included = candidates.find(|path| path.is_file());
        let included = included.ok_or_else(|| {
            let missing = format!("{}, for {INCLUDE}{name}", path.display());
            unreadable(Path::new(&missing), io::ErrorKind::NotFound.into())
        })?;
        add_file(&included, folders, seen, targets)?;
    }
    Ok(())
}

fn unreadable(path: &Path, error: io::Error) -> HostsError {
    HostsError::Unreadable {
        path: path.display().to_string(),
        error,
    }
}
