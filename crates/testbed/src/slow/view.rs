//! The files of a host, put where its keeper takes them from.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown};
use std::path::Path;

use super::plan::{ACCOUNT, Content, HOME, Owner, PlannedFile};

/// Where account numbers are looked for: among those of ordinary users.
const FIRST_UID: u32 = 29_022;

/// A number that no user or group of this machine's files has.
pub(super) fn free_uid() -> io::Result<u32> {
    let texts = [
        fs::read_to_string("/etc/passwd")?,
        fs::read_to_string("/etc/group")?,
    ];
    let taken: Vec<u32> = texts
        .iter()
        .flat_map(|text| text.lines())
        .filter_map(|line| line.split(':').nth(2)?.parse().ok())
        .collect();
    Ok((FIRST_UID..)
        .find(|uid| !taken.contains(uid))
        .expect("there are more numbers than users"))
}

/// The files with which this machine's users and one more are known.
pub(super) fn accounts(passwd_line: &str, uid: u32) -> io::Result<BTreeMap<String, PlannedFile>> {
    let with = |path: &str, line: &str, mode: u32| -> io::Result<(String, PlannedFile)> {
        let mut text = fs::read_to_string(path)?;
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text += &format!("{line}\n");
        let file = PlannedFile {
            content: Content::Text(text),
            owner: Owner::Root,
            mode,
        };
        Ok((path.to_owned(), file))
    };
    Ok(BTreeMap::from([
        with("/etc/passwd", passwd_line, 0o644)?,
        with("/etc/group", &format!("{ACCOUNT}:x:{uid}:"), 0o644)?,
        // `*` fits no password; `!` would be a locked account.
        with(
            "/etc/shadow",
            &format!("{ACCOUNT}:*:20000:0:99999:7:::"),
            0o600,
        )?,
    ]))
}

/// Writes all files below `folder`. Folders are root's, and open to all, but for those in the account's home.
pub(super) fn write(
    folder: &Path,
    files: &BTreeMap<String, PlannedFile>,
    uid: u32,
) -> io::Result<()> {
    fs::create_dir(folder)?;
    fs::set_permissions(folder, Permissions::from_mode(0o755))?;
    for place in ["/etc", "/home", "/run/sshd", "/var/log"] {
        make_folders(folder, place, uid)?;
    }
    for (path, file) in files {
        let (parent, _) = path.rsplit_once('/').unwrap_or_default();
        make_folders(folder, parent, uid)?;
        let at = folder.join(path.trim_start_matches('/'));
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{path}: {error}"));
        write_file(&at, file, uid).map_err(named)?;
    }
    Ok(())
}

fn make_folders(folder: &Path, path: &str, uid: u32) -> io::Result<()> {
    let mut there = folder.to_owned();
    let mut own = String::new();
    for part in path.split('/').filter(|part| !part.is_empty()) {
        there.push(part);
        own = format!("{own}/{part}");
        match DirBuilder::new().mode(0o755).create(&there) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            made => made?,
        }
        // Whatever the umask.
        fs::set_permissions(&there, Permissions::from_mode(0o755))?;
        if own.starts_with(HOME) {
            chown(&there, Some(uid), Some(uid))?;
        }
    }
    Ok(())
}

fn write_file(at: &Path, file: &PlannedFile, uid: u32) -> io::Result<()> {
    let mut written = File::create_new(at)?;
    match &file.content {
        Content::Text(text) => written.write_all(text.as_bytes())?,
        Content::Hole(length) => written.set_len(*length)?,
    }
    written.set_permissions(Permissions::from_mode(file.mode))?;
    match file.owner {
        Owner::Root => Ok(()),
        Owner::Account => chown(at, Some(uid), Some(uid)),
    }
}
