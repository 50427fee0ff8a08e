//! How the process that keeps the connections comes about: `sshoal up` starts itself once more, as a leader of a session of
//! its own, without a terminal. It has no threads before it has left, and asks nobody anything by itself.

use std::io::{self, Read, Write};
use std::process::{Command, Stdio};

use rustix::process::setsid;
use rustix::stdio::{dup2_stderr, dup2_stdout};

/// What the new process says once: that it hears questions, or that another one has come before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    Hears,
    IsSecond,
}

const HEARS: u8 = b'h';
const IS_SECOND: u8 = b's';

/// Starts one, and waits until it has said which.
pub(super) fn start() -> io::Result<Standing> {
    let mut process = Command::new(std::env::current_exe()?)
        .args(["up", "--daemon"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut said = [0];
    if let Some(mut pipe) = process.stdout.take()
        && pipe.read(&mut said)? == 1
    {
        // It goes on without us: whoever starts orphans waits for them.
        return Ok(match said[0] {
            HEARS => Standing::Hears,
            _ => Standing::IsSecond,
        });
    }
    let status = process.wait()?;
    let why = format!("the process that is to keep the connections has ended: {status}");
    Err(io::Error::other(why))
}

/// Leaves the terminal and the session.
pub(super) fn leave() -> io::Result<()> {
    // It leads no process group: whoever started it does.
    Ok(setsid().map(drop)?)
}

/// Says how it stands, to whoever waits in [`start`], and nothing more.
pub(super) fn say(standing: Standing) -> io::Result<()> {
    let word = match standing {
        Standing::Hears => HEARS,
        Standing::IsSecond => IS_SECOND,
    };
    let mut out = io::stdout();
    out.write_all(&[word])?;
    out.flush()?;
    let mut options = std::fs::OpenOptions::new();
    let nothing = options.read(true).write(true).open("/dev/null")?;
    dup2_stderr(&nothing)?;
    Ok(dup2_stdout(&nothing)?)
}
