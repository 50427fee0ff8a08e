//! `sshoal-testbed with-hosts`.

use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};

use clap::Args;
use sshoal_testbed::client_files::ClientFiles;
use sshoal_testbed::descriptors::descriptor_limit;
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

use super::CommandResult;
use super::running::Running;
use super::simulate::{FAULTS, SimulatedHosts};

/// Start simulated hosts, run a command, stop the hosts, and exit with the command's status.
///
/// {dir} in the command's words stands for the folder with hosts, known_hosts, id_ed25519 and
/// ssh_config. A command that a signal killed gives 128 + the signal's number, as in a shell.
#[derive(Debug, Args)]
#[command(after_long_help = FAULTS)]
pub(crate) struct WithHosts {
    #[command(flatten)]
    hosts: SimulatedHosts,
    #[command(flatten)]
    with: WithFiles,
}

/// A command to run beside hosts.
#[derive(Debug, Args)]
pub(super) struct WithFiles {
    /// Where to put the files that a client needs; without it a new folder that is removed again.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Print the hosts' counters as JSON on standard error at the end.
    #[arg(long)]
    pub(super) counters: bool,
    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

impl WithHosts {
    pub(crate) fn run(self) -> CommandResult {
        let soft_limit = descriptor_limit();
        let mut hosts = Running::start(&self.hosts.spec()?)?;
        let counters = self.with.counters;
        let status = run_with_files(self.with, hosts.client_files(), soft_limit)?;
        if counters {
            eprintln!("{}", hosts.report()?.line());
        }
        Ok(status)
    }
}

/// Writes the client's files, runs the command and returns its status. `soft_limit` is that of open
/// files from before the hosts were started.
pub(super) fn run_with_files(
    with: WithFiles,
    files: &ClientFiles,
    soft_limit: Option<u64>,
) -> CommandResult {
    let (dir, _temporary) = folder(with.dir)?;
    files.write(&dir)?;
    let words: Vec<OsString> = with.command.iter().map(|word| fill(word, &dir)).collect();
    Ok(exit_code(run_with_limit(&words, soft_limit)?))
}

/// The folder for the client's files, and what removes it again, if anything.
fn folder(given: Option<PathBuf>) -> io::Result<(PathBuf, Option<tempfile::TempDir>)> {
    match given {
        Some(dir) => Ok((dir, None)),
        None => {
            let temporary = tempfile::Builder::new()
                .prefix("sshoal-testbed.")
                .tempdir()?;
            Ok((temporary.path().to_owned(), Some(temporary)))
        }
    }
}

/// `word` with every `{dir}` replaced.
fn fill(word: &OsStr, dir: &Path) -> OsString {
    const PLACEHOLDER: &[u8] = b"{dir}";
    let mut rest = word.as_bytes();
    let mut filled = Vec::with_capacity(rest.len());
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix(PLACEHOLDER) {
            filled.extend_from_slice(dir.as_os_str().as_bytes());
            rest = after;
        } else {
            filled.push(rest[0]);
            rest = &rest[1..];
        }
    }
    OsString::from_vec(filled)
}

/// Runs the command with the soft limit of open files that this process began with: raising it is
/// the command's own affair, and often what is tried.
fn run_with_limit(words: &[OsString], limit: Option<u64>) -> Result<ExitStatus, Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    runtime.block_on(async {
        // Ctrl-C reaches the command, too: it decides what to do, and the hosts stay for it.
        let _interrupt = signal(SignalKind::interrupt())?;
        let limit = limit.map_or("unlimited".to_owned(), |limit| limit.to_string());
        let status = Command::new("/bin/sh")
            .args(["-c", "ulimit -S -n \"$0\" && exec \"$@\"", &limit])
            .args(words)
            .status()
            .await?;
        Ok(status)
    })
}

fn exit_code(status: ExitStatus) -> ExitCode {
    let number = match (status.code(), status.signal()) {
        (Some(code), _) => code,
        (None, signal) => 128 + signal.unwrap_or_default(),
    };
    ExitCode::from(u8::try_from(number).unwrap_or(u8::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_placeholder_is_filled() {
        let filled = |word: &str| fill(OsStr::new(word), Path::new("/d"));
        assert_eq!(filled("{dir}/hosts"), "/d/hosts");
        assert_eq!(filled("-F{dir}/a:{dir}"), "-F/d/a:/d");
        assert_eq!(filled("{di}{{dir}"), "{di}{/d");
    }
}
