//! How `sshoal up` goes to the background: it starts itself once more, which asks what there is to be asked on the
//! terminal, and once all hosts are settled leaves the terminal and says so. Threads do not survive a fork; this way there
//! are none yet.

use std::io::{self, Read, Write};
use std::process::{Command, Stdio};

use rustix::process::setsid;
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

/// Starts this command line once more, and waits until it has settled; returns its exit status.
pub(super) fn start() -> io::Result<u8> {
    let mut process = Command::new(std::env::current_exe()?)
        .args(std::env::args_os().skip(1))
        .arg("--detach")
        .stdout(Stdio::piped())
        .spawn()?;
    let mut said = Vec::new();
    if let Some(mut pipe) = process.stdout.take() {
        pipe.read_to_end(&mut said)?;
    }
    match said.as_slice() {
        [status] => Ok(*status),
        // It has ended and not settled.
        _ => {
            let code = process.wait()?.code();
            Ok(code.map_or(sshoal_report::INTERRUPTED, |code| code as u8))
        }
    }
}

/// Leaves the terminal, with this exit status for whoever waits in [`start`].
pub(super) fn leave(status: u8) -> io::Result<()> {
    // It leads no process group: whoever started it does.
    setsid()?;
    let nothing = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")?;
    dup2_stdin(&nothing)?;
    dup2_stderr(&nothing)?;
    let mut out = io::stdout();
    out.write_all(&[status])?;
    out.flush()?;
    Ok(dup2_stdout(&nothing)?)
}
