//! The two streams we write to, kept from tearing each other: one writer, whole lines, status lines below them.

use std::io::{self, Write};

/// How much is collected before it is written, in bytes.
const WRITE_SIZE: usize = 32 * 1024;

/// Returns the cursor to the line's start and clears the line (ECMA-48 EL).
const ERASE_LINE: &[u8] = b"\r\x1b[K";
/// The same for the line above (CUU).
const ERASE_LINE_ABOVE: &[u8] = b"\x1b[A\x1b[K";

/// One of a host's output streams, and the stream of ours that it goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Where one of our streams leads. The writer is injected, so that tests see exact bytes.
pub struct Sink {
    writer: Box<dyn Write + Send>,
    terminal: Option<Terminal>,
}

/// What is special about a stream that leads to a terminal.
pub struct Terminal {
    /// Whether colours are wanted (see [`crate::color_wanted`]).
    pub color: bool,
    /// Asked for columns and rows whenever the status lines are drawn.
    pub size: Box<dyn Fn() -> (usize, usize) + Send>,
}

impl Sink {
    /// A pipe or a file: a host's bytes go there untouched.
    pub fn file(writer: impl Write + Send + 'static) -> Sink {
        Sink {
            writer: Box::new(writer),
            terminal: None,
        }
    }

    /// A terminal: a host's bytes go there sanitised.
    pub fn terminal(writer: impl Write + Send + 'static, terminal: Terminal) -> Sink {
        Sink {
            writer: Box::new(writer),
            terminal: Some(terminal),
        }
    }
}

/// Both streams of ours. Text is collected for one stream at a time, so their order is kept where both lead
/// to the same place.
pub(crate) struct Console {
    stdout: Sink,
    stderr: Sink,
    pending: Vec<u8>,
    pending_for: Stream,
    /// How many status lines are shown.
    status_lines: usize,
    /// Which streams a write has failed on: nothing more is written there.
    broken: [bool; 2],
}

impl Console {
    pub(crate) fn new(stdout: Sink, stderr: Sink) -> Console {
        Console {
            stdout,
            stderr,
            pending: Vec::with_capacity(WRITE_SIZE),
            pending_for: Stream::Stdout,
            status_lines: 0,
            broken: [false; 2],
        }
    }

    fn sink(&mut self, stream: Stream) -> &mut Sink {
        match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        }
    }

    fn terminal(&self, stream: Stream) -> Option<&Terminal> {
        match stream {
            Stream::Stdout => self.stdout.terminal.as_ref(),
            Stream::Stderr => self.stderr.terminal.as_ref(),
        }
    }

    pub(crate) fn is_terminal(&self, stream: Stream) -> bool {
        self.terminal(stream).is_some()
    }

    pub(crate) fn color(&self, stream: Stream) -> bool {
        self.terminal(stream).is_some_and(|terminal| terminal.color)
    }

    /// Columns and rows that there are for status lines; `None` where none is shown.
    pub(crate) fn status_size(&self) -> Option<(usize, usize)> {
        let terminal = self.stderr.terminal.as_ref();
        terminal.map(|terminal| (terminal.size)())
    }

    /// The buffer for text of a stream: callers append whole lines, then call [`Console::written`].
    pub(crate) fn text(&mut self, stream: Stream) -> io::Result<&mut Vec<u8>> {
        if self.pending_for != stream {
            self.flush()?;
            self.pending_for = stream;
        }
        Ok(&mut self.pending)
    }

    /// Writes what is pending once it is worth a system call.
    pub(crate) fn written(&mut self) -> io::Result<()> {
        if self.pending.len() >= WRITE_SIZE {
            self.flush()
        } else {
            Ok(())
        }
    }

    /// A writer into the pending text, for output that is too long to be built first.
    pub(crate) fn writer(&mut self, stream: Stream) -> ConsoleWriter<'_> {
        ConsoleWriter {
            console: self,
            stream,
        }
    }

    /// Writes all pending text, over the status line if that is in the way.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        if self.is_terminal(self.pending_for) {
            self.erase_status()?;
        }
        let pending = std::mem::take(&mut self.pending);
        let result = self.write(self.pending_for, &pending);
        self.pending = pending;
        self.pending.clear();
        self.pending.shrink_to(WRITE_SIZE * 2);
        result
    }

    /// Replaces the status lines; each fits the width, and all of them the height.
    pub(crate) fn draw_status(&mut self, lines: &[String]) -> io::Result<()> {
        self.flush()?;
        let mut text = erasure(std::mem::replace(&mut self.status_lines, lines.len()));
        // Whoever has made the terminal raw, a line begins at its left.
        text.extend_from_slice(lines.join("\r\n").as_bytes());
        self.write(Stream::Stderr, &text)
    }

    pub(crate) fn erase_status(&mut self) -> io::Result<()> {
        match std::mem::take(&mut self.status_lines) {
            0 => Ok(()),
            lines => self.write(Stream::Stderr, &erasure(lines)),
        }
    }

    /// After one failure nothing more is written to a stream: half a line must not be followed by another.
    fn write(&mut self, stream: Stream, bytes: &[u8]) -> io::Result<()> {
        if self.broken[stream as usize] {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let writer = &mut self.sink(stream).writer;
        let result = writer.write_all(bytes).and_then(|()| writer.flush());
        self.broken[stream as usize] = result.is_err();
        let name = match stream {
            Stream::Stdout => "standard output",
            Stream::Stderr => "standard error",
        };
        result
            .map_err(|error| io::Error::new(error.kind(), format!("cannot write {name}: {error}")))
    }
}

/// Erases so many lines, of which the cursor is in the last one.
fn erasure(lines: usize) -> Vec<u8> {
    [
        ERASE_LINE,
        &ERASE_LINE_ABOVE.repeat(lines.saturating_sub(1)),
    ]
    .concat()
}

/// Writes into one stream of a [`Console`], a bounded part at a time.
pub(crate) struct ConsoleWriter<'a> {
    console: &'a mut Console,
    stream: Stream,
}

impl Write for ConsoleWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(WRITE_SIZE);
        self.console
            .text(self.stream)?
            .extend_from_slice(&bytes[..count]);
        self.console.written()?;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.console.flush()
    }
}
