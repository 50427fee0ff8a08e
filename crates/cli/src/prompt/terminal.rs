//! Asking on /dev/tty, with or without echo. The terminal gets its settings back however the question ends.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, getpid, kill_process};
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr,
    tcsetattr,
};
use sshoal_net::Secret;
use zeroize::Zeroize;

use super::PromptError;
use super::hidden_line::{EditingKeys, HiddenLine, Typed};

/// How soon a question disappears that nobody wants answered any more.
const LOOK_UP: Duration = Duration::from_millis(100);

/// Longest line that the terminal hands over (termios(3), canonical mode).
const MAX_LINE: usize = 4096;

fn open() -> Result<File, PromptError> {
    let mut options = OpenOptions::new();
    let tty = options.read(true).write(true).open("/dev/tty");
    tty.map_err(|_| PromptError::Nowhere)
}

/// Whether there is a terminal.
pub(super) fn is_there() -> bool {
    open().is_ok()
}

/// Asks for a line that is shown as it is typed, if there is a terminal: the terminal itself does the editing, and makes
/// signals of its keys.
pub(super) fn ask_openly(question: &str, wanted: &dyn Fn() -> bool) -> Result<Secret, PromptError> {
    let mut tty = open()?;
    // What was typed before the question is no answer to it.
    tcflush(&tty, QueueSelector::IFlush).map_err(io::Error::from)?;
    tty.write_all(question.as_bytes())?;
    while wanted() {
        if !is_readable(&tty)? {
            continue;
        }
        let mut line = [0; MAX_LINE];
        let length = tty.read(&mut line)?;
        return match length {
            0 => Err(PromptError::Declined),
            length => Ok(Secret::new(line[..length].to_vec())),
        };
    }
    tty.write_all(b"\n")?;
    Err(PromptError::Declined)
}

/// Asks without showing what is typed, if there is a terminal.
pub(super) fn ask(question: &str, wanted: &dyn Fn() -> bool) -> Result<Secret, PromptError> {
    let tty = open()?;
    let hidden = Hidden::new(&tty)?;
    (&tty).write_all(question.as_bytes())?;
    let typed = read_line(&tty, hidden.editing_keys(), wanted);
    // The user's own end of line was not shown either.
    (&tty).write_all(b"\n")?;
    drop(hidden);
    match typed? {
        Typed::Line(secret) if !secret.expose().is_empty() => Ok(secret),
        Typed::Interrupted => {
            // The whole run is meant, not only the question.
            kill_process(getpid(), Signal::INT).map_err(io::Error::from)?;
            Err(PromptError::Interrupted)
        }
        _ => Err(PromptError::Declined),
    }
}

fn read_line(mut tty: &File, keys: EditingKeys, wanted: &dyn Fn() -> bool) -> io::Result<Typed> {
    let mut line = HiddenLine::new(keys);
    loop {
        if !wanted() {
            return Ok(Typed::Ended);
        }
        if !is_readable(tty)? {
            continue;
        }
        let mut octet = [0];
        if tty.read(&mut octet)? == 0 {
            return Ok(Typed::Ended);
        }
        let typed = line.handle(octet[0]);
        octet.zeroize();
        match typed {
            Typed::More => {}
            end => return Ok(end),
        }
    }
}

/// Waits a moment for the user.
fn is_readable(tty: &File) -> io::Result<bool> {
    let mut waiting = [PollFd::new(tty, PollFlags::IN)];
    let moment = Timespec {
        tv_sec: 0,
        tv_nsec: LOOK_UP.subsec_nanos().into(),
    };
    match poll(&mut waiting, Some(&moment)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// A terminal that shows nothing and edits nothing: keys that would send signals come to us, because a signal's
/// default is to end the program and leave the terminal mute. Undone when dropped.
struct Hidden<'a> {
    tty: &'a File,
    before: Termios,
}

impl<'a> Hidden<'a> {
    fn new(tty: &'a File) -> io::Result<Self> {
        let before = tcgetattr(tty)?;
        let mut mute = before.clone();
        mute.local_modes -=
            LocalModes::ECHO | LocalModes::ECHONL | LocalModes::ICANON | LocalModes::ISIG;
        mute.special_codes[SpecialCodeIndex::VMIN] = 1;
        mute.special_codes[SpecialCodeIndex::VTIME] = 0;
        // What was typed before the question is no answer to it.
        tcsetattr(tty, OptionalActions::Flush, &mute)?;
        Ok(Hidden { tty, before })
    }

    fn editing_keys(&self) -> EditingKeys {
        let codes = &self.before.special_codes;
        EditingKeys {
            erase: codes[SpecialCodeIndex::VERASE],
            kill: codes[SpecialCodeIndex::VKILL],
            interrupt: codes[SpecialCodeIndex::VINTR],
            end: codes[SpecialCodeIndex::VEOF],
        }
    }
}

impl Drop for Hidden<'_> {
    fn drop(&mut self) {
        // A terminal that is gone needs no settings.
        let _ = tcsetattr(self.tty, OptionalActions::Flush, &self.before);
    }
}
