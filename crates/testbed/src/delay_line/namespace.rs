//! Network namespaces made by `ip netns` (iproute2), each removed when its value is dropped.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use rustix::process::geteuid;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::spec::LineError;

/// Where `ip netns` keeps its namespaces.
const DIRECTORY: &str = "/run/netns";
/// Every namespace of ours is called `sshoal-PID-NUMBER-ROLE`.
const PREFIX: &str = "sshoal";

/// A network namespace of this process, with its loopback interface up.
#[derive(Debug)]
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// Make a namespace and give it a name of its own, which ends with `role`.
    pub(super) fn create(role: &str) -> Result<Namespace, LineError> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        if !geteuid().is_root() {
            return Err(LineError::NotRoot);
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}-{}-{number}-{role}", std::process::id());
        if path_of(&name).exists() {
            // A process that had our id before was killed, and its namespaces are still there.
            ip(&["netns", "delete", &name], "")?;
        }
        ip(&["netns", "add", &name], "")?;
        let namespace = Namespace { name };
        namespace.configure("link set lo up\n")?;
        Ok(namespace)
    }

    /// The name, as `ip netns` knows it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A command that will run `program` in this namespace. The program takes the place of `ip`, so that the
    /// child's process id is the program's.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name]).arg(program);
        command
    }

    /// Do some work on a thread in this namespace. A socket that it makes stays in the namespace wherever it
    /// is used afterwards.
    ///
    /// # Panics
    ///
    /// If the work does.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, LineError> {
        let namespace =
            File::open(path_of(&self.name)).map_err(LineError::system("open the namespace"))?;
        let in_namespace = || {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
                .map_err(|errno| LineError::system("enter the namespace")(errno.into()))?;
            Ok(work())
        };
        thread::scope(|scope| {
            scope
                .spawn(in_namespace)
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Give `ip` these lines of commands, to be done in this namespace.
    pub(super) fn configure(&self, lines: &str) -> Result<(), LineError> {
        ip(&["-n", &self.name, "-batch", "-"], lines)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // Nothing can be done about a failure here; `remove_abandoned` tries again later.
        let _ = ip(&["netns", "delete", &self.name], "");
    }
}

/// Remove the namespaces of delay lines whose process was killed before it could.
pub(super) fn remove_abandoned() {
    let Ok(entries) = fs::read_dir(DIRECTORY) else {
        return;
    };
    for name in entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
    {
        let owner = name.strip_prefix(PREFIX).and_then(|rest| {
            rest.strip_prefix('-')?
                .split('-')
                .next()?
                .parse::<u32>()
                .ok()
        });
        if owner.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists()) {
            // Another line that starts now may have been faster.
            let _ = ip(&["netns", "delete", &name], "");
        }
    }
}

fn path_of(name: &str) -> PathBuf {
    Path::new(DIRECTORY).join(name)
}

fn ip(arguments: &[&str], input: &str) -> Result<(), LineError> {
    let mut child = Command::new("ip")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(LineError::NoIpProgram)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A child that ended early says why on its standard error.
        let _ = stdin.write_all(input.as_bytes());
    }
    let mut message = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        stderr
            .read_to_string(&mut message)
            .map_err(LineError::system("read what `ip` says"))?;
    }
    let status = child.wait().map_err(LineError::system("wait for `ip`"))?;
    if status.success() {
        return Ok(());
    }
    Err(LineError::Ip {
        command: format!("ip {}", arguments.join(" ")),
        message: message.trim().to_owned(),
    })
}
