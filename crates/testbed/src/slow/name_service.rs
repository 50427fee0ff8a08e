//! A name service that takes its time, compiled where it is used.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::kind::Kind;
use super::plan::RUNS;

const SOURCE: &str = include_str!("name_service.c");
/// Where it is on the host. `keeper.sh` tells the dynamic linker.
const FOLDER: &str = "etc/directory";
const LINKER: &str = "etc/ld.so.conf.d/00-directory.conf";

/// Puts it among the host's files, below `files`, with so many milliseconds for each lookup.
pub(super) fn put(files: &Path, milliseconds: u64) -> io::Result<()> {
    let folder = files.join(FOLDER);
    let linker = files.join(LINKER);
    fs::create_dir_all(&folder)?;
    fs::create_dir_all(linker.parent().expect("a file has a folder"))?;
    for open in [&folder, linker.parent().expect("a file has a folder")] {
        fs::set_permissions(open, Permissions::from_mode(0o755))?;
    }
    fs::write(&linker, format!("/{FOLDER}\n"))?;
    fs::set_permissions(&linker, Permissions::from_mode(0o644))?;
    let library = folder.join("libnss_directory.so.2");
    compile(&library, milliseconds)?;
    fs::set_permissions(&library, Permissions::from_mode(0o755))
}

fn compile(library: &Path, milliseconds: u64) -> io::Result<()> {
    let mut compiler = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-x", "c", "-"])
        .arg(format!("-DMILLISECONDS={milliseconds}"))
        .arg(format!("-DRUNS=\"{RUNS}\""))
        .arg(format!("-DNAME=\"{}\"", Kind::NameService.row().name))
        .arg("-o")
        .arg(library)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = compiler.stdin.take() {
        // A compiler that ends early says why.
        let _ = stdin.write_all(SOURCE.as_bytes());
    }
    let output = compiler.wait_with_output()?;
    match output.status.success() {
        true => Ok(()),
        false => Err(io::Error::other(
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )),
    }
}
