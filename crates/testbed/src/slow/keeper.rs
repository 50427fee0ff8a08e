//! The process that keeps a host: in a mount namespace of its own, with everything of the host as its children.
//!
//! It is a shell script, `keeper.sh`, for what it does has to be done even if this process is killed: when its
//! standard input ends it kills whatever runs in its namespace, and removes the host's folder and control group.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::Pid;

use super::SlowError;

const SCRIPT: &str = include_str!("keeper.sh");

#[derive(Debug)]
pub(super) struct Keeper {
    process: Child,
    server: Pid,
    log: PathBuf,
}

impl Keeper {
    /// Starts the host whose files are in `folder`, and `sshd` in it; in the control group `group`, if there is to be one.
    pub(super) fn start(
        folder: &Path,
        group: Option<&Path>,
        sshd: &str,
    ) -> Result<Keeper, SlowError> {
        let log = folder.join("log");
        let system = |what: &str, source: io::Error| SlowError::System {
            what: what.to_owned(),
            source,
        };
        let outside = fs::read_link("/proc/self/ns/mnt")
            .map_err(|error| system("this process's mount namespace", error))?;
        let said = File::create(&log).map_err(|error| system("the log", error))?;
        let mut process = Command::new("unshare")
            .args(["--mount", "--propagation", "private", "sh", "-c", SCRIPT])
            .arg("keeper")
            .arg(folder)
            .arg(outside)
            .arg(group.unwrap_or(Path::new("")))
            .arg(sshd)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(said)
            // Ctrl-C is for this process to judge.
            .process_group(0)
            .spawn()
            .map_err(|error| system("unshare", error))?;
        let stdout = process.stdout.take().expect("standard output is piped");
        let mut line = String::new();
        // Nothing comes if it has failed; its log says why.
        let _ = BufReader::new(stdout).read_line(&mut line);
        let Some(server) = line.trim().parse().ok().and_then(Pid::from_raw) else {
            let _ = process.wait();
            let log = read(&log);
            return Err(SlowError::NoView { log });
        };
        Ok(Keeper {
            process,
            server,
            log,
        })
    }

    /// The listening server's process.
    pub(super) fn server(&self) -> Pid {
        self.server
    }

    /// Whether the server is there: one that has ended has no program any more.
    pub(super) fn runs(&self) -> bool {
        fs::read_link(self.proc().join("exe")).is_ok()
    }

    /// Whether the server listens for SIGHUP, by proc_pid_status(5): before it does, the signal would end it.
    pub(super) fn minds_hangups(&self) -> bool {
        let status = fs::read_to_string(self.proc().join("status")).unwrap_or_default();
        let caught = status
            .lines()
            .find_map(|line| line.strip_prefix("SigCgt:"))
            .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        caught.is_some_and(|mask| mask & 1 != 0)
    }

    /// The host's files as the host sees them.
    pub(super) fn root(&self) -> PathBuf {
        self.proc().join("root")
    }

    /// The host's mount namespace, as in `mnt:[4026532200]`; empty when it has gone.
    pub(super) fn namespace(&self) -> String {
        let link = format!("/proc/{}/ns/mnt", self.process.id());
        let name = fs::read_link(link).unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// What the server has said so far.
    pub(super) fn log(&self) -> String {
        read(&self.log)
    }

    fn proc(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}", self.server.as_raw_nonzero()))
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.process.stdin.take();
        // Only a process that has been waited for already cannot be.
        let _ = self.process.wait();
    }
}

fn read(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}
