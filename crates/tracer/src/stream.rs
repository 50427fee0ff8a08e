//! What goes to the other side: a line that says what follows, then frames. A frame is a letter, its length in four octets, most
//! significant first, and its content. What each letter means is told where the frames are read (crate `sshoal-trace`).

use std::io::{self, StdoutLock, Write};

/// The first line. Whatever a shell has written before is skipped up to it.
pub(crate) const FIRST_LINE: &[u8] = b"sshoal-trace 1\n";

/// Standard output.
pub(crate) struct Stream<'a>(StdoutLock<'a>);

impl Stream<'_> {
    /// Says what follows.
    ///
    /// # Errors
    ///
    /// Nobody reads it.
    pub(crate) fn begin() -> io::Result<Stream<'static>> {
        let mut stream = Stream(io::stdout().lock());
        stream.0.write_all(FIRST_LINE)?;
        stream.0.flush()?;
        Ok(stream)
    }

    /// One frame.
    ///
    /// # Errors
    ///
    /// Nobody reads it.
    pub(crate) fn send(&mut self, letter: u8, content: &[u8]) -> io::Result<()> {
        let length = u32::try_from(content.len()).map_err(io::Error::other)?;
        self.0.write_all(&[letter])?;
        self.0.write_all(&length.to_be_bytes())?;
        self.0.write_all(content)
    }

    /// What was sent is on its way.
    ///
    /// # Errors
    ///
    /// Nobody reads it.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
