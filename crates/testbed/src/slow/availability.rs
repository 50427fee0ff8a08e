//! What this machine lacks for a kind, if anything.

use std::fs;
use std::path::{Path, PathBuf};

use super::kind::Kind;
use super::quota::Quota;

/// Where sshd is.
pub(super) const SSHD: &str = "/usr/sbin/sshd";

impl Kind {
    /// Whether this machine, as root, can show it.
    ///
    /// # Errors
    /// What is missing, in words.
    pub fn is_possible(self) -> Result<(), String> {
        match self {
            Kind::PamAccount | Kind::PamSession | Kind::CloseSession => {
                module("pam_exec.so").map(drop)
            }
            Kind::Lastlog => module("pam_lastlog.so").map(drop),
            Kind::Motd | Kind::MotdProcesses => mentions(
                &module("pam_motd.so")?,
                "update-motd.d",
                "runs no update-motd.d",
            ),
            Kind::Libwrap | Kind::LibwrapDead => {
                mentions(Path::new(SSHD), "libwrap.so", "is built without libwrap")
            }
            Kind::NameService => program("cc").and(program("ldconfig")),
            Kind::Bashrc | Kind::InteractiveProfile => shell("/bin/bash"),
            Kind::Zshenv => shell("/bin/zsh"),
            Kind::CpuQuota => Quota::is_possible(),
            _ => Ok(()),
        }
    }
}

/// The file of a PAM module.
fn module(name: &str) -> Result<PathBuf, String> {
    let mut folders: Vec<PathBuf> = ["/lib/security", "/usr/lib/security", "/usr/lib64/security"]
        .map(PathBuf::from)
        .into();
    // Debian's are in a folder for each architecture.
    for entry in fs::read_dir("/usr/lib").into_iter().flatten().flatten() {
        folders.push(entry.path().join("security"));
    }
    let mut files = folders.iter().map(|folder| folder.join(name));
    files
        .find(|file| file.exists())
        .ok_or_else(|| format!("PAM has no {name} here"))
}

fn mentions(file: &Path, words: &str, otherwise: &str) -> Result<(), String> {
    let bytes = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let is_there = bytes
        .windows(words.len())
        .any(|part| part == words.as_bytes());
    match is_there {
        true => Ok(()),
        false => Err(format!("{} {otherwise}", file.display())),
    }
}

fn program(name: &str) -> Result<(), String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    let is_there = folders
        .map(|folder| folder.join(name))
        .any(|file| file.exists());
    match is_there {
        true => Ok(()),
        false => Err(format!("there is no {name} here")),
    }
}

fn shell(path: &str) -> Result<(), String> {
    match Path::new(path).exists() {
        true => Ok(()),
        false => Err(format!("there is no {path} here")),
    }
}
