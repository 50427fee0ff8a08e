//! One listening sshd process and its log.

use std::fs::{self, File};
use std::io;
use std::net::SocketAddrV4;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Pid;

/// Pause between two looks at a log.
const LOOK: Duration = Duration::from_millis(2);

#[derive(Debug)]
pub(super) struct Listener {
    process: Child,
    log: PathBuf,
    addresses: Vec<SocketAddrV4>,
}

/// Why a server does not listen where it should.
#[derive(Debug)]
pub(super) enum NotListening {
    /// Somebody else has the port on one of the addresses.
    AddressInUse,
    Ended,
    Late,
}

impl Listener {
    /// Starts `program` as a server that stays in the foreground and logs to `log`.
    pub(super) fn start(
        program: &Path,
        config: &Path,
        log: PathBuf,
        addresses: Vec<SocketAddrV4>,
    ) -> io::Result<Listener> {
        let process = Command::new(program)
            .args(["-D", "-e", "-f"])
            .arg(config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log)?)
            // Ctrl-C is meant for the clients.
            .process_group(0)
            .spawn()?;
        Ok(Listener {
            process,
            log,
            addresses,
        })
    }

    /// Waits until the server listens on all its addresses.
    ///
    /// It says so in its log after listen(2). Asking it by a connection would leave traces: a process,
    /// a place among MaxStartups, from 9.8 on a penalty.
    pub(super) fn wait(&mut self, deadline: Instant) -> Result<(), NotListening> {
        loop {
            // Looked at before the log, so that a dead server's log is complete.
            let ended = !matches!(self.process.try_wait(), Ok(None));
            let log = self.log();
            if log.lines().any(is_refused_port) {
                return Err(NotListening::AddressInUse);
            }
            if ended {
                return Err(NotListening::Ended);
            }
            if self.addresses.iter().all(|address| says(&log, address)) {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(NotListening::Late);
            }
            thread::sleep(LOOK);
        }
    }

    /// The whole log so far; empty if it cannot be read.
    pub(super) fn log(&self) -> String {
        let bytes = fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    pub(super) fn pid(&self) -> Pid {
        Pid::from_child(&self.process)
    }

    /// Waits for a server that has been killed.
    pub(super) fn reap(&mut self) {
        // Only a process that has been waited for already cannot be.
        let _ = self.process.wait();
    }
}

/// sshd.c, listen_on_addrs. At DEBUG1 a line without the end says that it is going to bind.
fn is_refused_port(line: &str) -> bool {
    line.contains("Bind to port ") && line.contains(" failed: ")
}

fn says(log: &str, address: &SocketAddrV4) -> bool {
    let line = format!(
        "Server listening on {} port {}.",
        address.ip(),
        address.port()
    );
    log.contains(&line)
}
