//! This process's own standard streams as sinks.

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, IsTerminal, Write},
    os::fd::{AsFd, BorrowedFd},
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    termios::tcgetwinsize,
};

use crate::{Sink, Terminal};

/// Columns and rows assumed of a terminal that does not tell its own.
const DEFAULT_SIZE: (usize, usize) = (80, 24);

/// Whether to colour: only on a terminal that can, and not when `NO_COLOR` is set to anything
/// (<https://no-color.org>).
pub fn color_wanted(is_terminal: bool, no_color: Option<&OsStr>, term: Option<&OsStr>) -> bool {
    let refused = no_color.is_some_and(|value| !value.is_empty());
    is_terminal && !refused && term.is_none_or(|term| term != "dumb")
}

impl Sink {
    /// Standard output of this process, unbuffered.
    ///
    /// # Errors
    /// The descriptor cannot be duplicated: too many are open.
    pub fn stdout() -> io::Result<Sink> {
        own_stream(io::stdout().as_fd())
    }

    /// Standard error of this process, unbuffered.
    ///
    /// # Errors
    /// The descriptor cannot be duplicated: too many are open.
    pub fn stderr() -> io::Result<Sink> {
        own_stream(io::stderr().as_fd())
    }
}

fn own_stream(fd: BorrowedFd<'_>) -> io::Result<Sink> {
    let writer = PatientFile(File::from(fd.try_clone_to_owned()?));
    if !fd.is_terminal() {
        return Ok(Sink::file(writer));
    }
    let (no_color, term) = (std::env::var_os("NO_COLOR"), std::env::var_os("TERM"));
    let color = color_wanted(true, no_color.as_deref(), term.as_deref());
    let asked = writer.0.try_clone()?;
    let size = move || match tcgetwinsize(&asked) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
        Ok(size) if size.ws_col > 0 => (size.ws_col.into(), DEFAULT_SIZE.1),
        _ => DEFAULT_SIZE,
    };
    Ok(Sink::terminal(
        writer,
        Terminal {
            color,
            size: Box::new(size),
        },
    ))
}

/// A file that waits when it is full. Another program on the same terminal or pipe (ssh does) may have made
/// the open file non-blocking for us all; that must cost time, not output.
struct PatientFile(File);

impl Write for PatientFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.0.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    poll(&mut [PollFd::new(&self.0, PollFlags::OUT)], None)?;
                }
                result => return result,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io::Read as _;

    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

    use super::*;

    #[test]
    fn colour_is_for_terminals_that_want_it() {
        let set = |value: &'static str| Some(OsStr::new(value));
        assert!(color_wanted(true, None, set("xterm")));
        assert!(color_wanted(true, set(""), None));
        assert!(!color_wanted(true, set("1"), set("xterm")));
        assert!(!color_wanted(true, None, set("dumb")));
        assert!(!color_wanted(false, None, set("xterm")));
    }

    #[test]
    fn a_full_non_blocking_pipe_is_waited_for() {
        let (mut reader, writer) = io::pipe().unwrap();
        let flags = fcntl_getfl(&writer).unwrap();
        fcntl_setfl(&writer, flags | OFlags::NONBLOCK).unwrap();
        let bytes: Vec<u8> = (0..1_000_000u32).map(|n| n as u8).collect();
        let expected = bytes.clone();
        let writing = std::thread::spawn(move || {
            PatientFile(File::from(std::os::fd::OwnedFd::from(writer))).write_all(&bytes)
        });
        let mut read = Vec::new();
        reader.read_to_end(&mut read).unwrap();
        writing.join().unwrap().unwrap();
        assert!(read == expected);
    }
}
