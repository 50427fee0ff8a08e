//! Live output: each host's whole lines behind its name, as they come.
//!
//! A line is passed on when its newline is there, so lines are never torn and never mixed. What has come of
//! an unfinished line waits in a [`Capture`]: in memory up to 64 KiB, then in the spill file. A line longer
//! than [`LineStyle::max_line`] is broken there with a newline, and goes on behind the prefix again. A last line
//! without a newline gets one when its host ends.

use std::io;

use memchr::{memchr, memchr_iter, memrchr};

use crate::{
    capture::Capture,
    console::{Console, Stream},
    sanitise::push_visible,
    spill::Spill,
};

/// The longest line that stays one line by default, newline not counted, in bytes.
pub const MAX_LINE: u64 = 16 * 1024 * 1024;

const RED: &[u8] = b"\x1b[31m";
const PLAIN: &[u8] = b"\x1b[0m";

/// How a host's lines are shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LineStyle {
    /// Whether `host: ` stands before each line.
    pub(crate) prefix: bool,
    /// Where a line is broken: see [`MAX_LINE`].
    pub(crate) max_line: u64,
}

/// The unfinished lines of one host.
#[derive(Default)]
pub(crate) struct HostLines {
    stdout: Capture,
    stderr: Capture,
}

impl HostLines {
    fn unfinished(&mut self, stream: Stream) -> &mut Capture {
        match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        }
    }
}

/// Where lines go to, and how.
pub(crate) struct LineWriter<'a> {
    pub(crate) console: &'a mut Console,
    pub(crate) spill: &'a mut Spill,
    pub(crate) style: LineStyle,
    pub(crate) label: &'a str,
    pub(crate) stream: Stream,
}

impl LineWriter<'_> {
    /// Takes bytes of the stream as they came from the host.
    pub(crate) fn push(&mut self, lines: &mut HostLines, mut bytes: &[u8]) -> io::Result<()> {
        let unfinished = lines.unfinished(self.stream);
        if !unfinished.is_empty()
            && let Some(end) = memchr(b'\n', bytes)
        {
            self.append(unfinished, &bytes[..end])?;
            self.finish(unfinished)?;
            bytes = &bytes[end + 1..];
        }
        let whole = memrchr(b'\n', bytes).map_or(0, |last| last + 1);
        let mut start = 0;
        for end in memchr_iter(b'\n', &bytes[..whole]) {
            self.write_line(&bytes[start..end])?;
            start = end + 1;
        }
        self.append(unfinished, &bytes[whole..])
    }

    /// Ends the host's last line, if it has no newline.
    pub(crate) fn end(&mut self, lines: &mut HostLines) -> io::Result<()> {
        let unfinished = lines.unfinished(self.stream);
        if unfinished.is_empty() {
            Ok(())
        } else {
            self.finish(unfinished)
        }
    }

    /// Appends to the unfinished line, and breaks it wherever it would become too long.
    fn append(&mut self, unfinished: &mut Capture, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let room = self.style.max_line - unfinished.len();
            let count = usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len());
            if count == 0 {
                self.finish(unfinished)?;
                continue;
            }
            unfinished.push(&bytes[..count], self.spill)?;
            bytes = &bytes[count..];
        }
        Ok(())
    }

    /// Writes the unfinished line and begins an empty one.
    fn finish(&mut self, unfinished: &mut Capture) -> io::Result<()> {
        unfinished.push(b"\n", self.spill)?;
        let terminal = self.console.is_terminal(self.stream);
        self.write_prefix()?;
        let mut writer = self.console.writer(self.stream);
        if terminal {
            unfinished.write_visible(self.spill, &mut writer)?;
        } else {
            io::copy(&mut unfinished.reader(self.spill), &mut writer)?;
        }
        unfinished.clear(self.spill)
    }

    /// Writes one line that is all there, given without its newline; several if it is too long.
    fn write_line(&mut self, line: &[u8]) -> io::Result<()> {
        let max_line = usize::try_from(self.style.max_line).unwrap_or(usize::MAX);
        if line.len() <= max_line {
            return self.write_part(line);
        }
        line.chunks(max_line)
            .try_for_each(|part| self.write_part(part))
    }

    fn write_part(&mut self, line: &[u8]) -> io::Result<()> {
        let terminal = self.console.is_terminal(self.stream);
        self.write_prefix()?;
        let text = self.console.text(self.stream)?;
        if terminal {
            push_visible(line.strip_suffix(b"\r").unwrap_or(line), text);
        } else {
            text.extend_from_slice(line);
        }
        text.push(b'\n');
        self.console.written()
    }

    fn write_prefix(&mut self) -> io::Result<()> {
        if !self.style.prefix {
            return Ok(());
        }
        let red = self.stream == Stream::Stderr && self.console.color(self.stream);
        let terminal = self.console.is_terminal(self.stream);
        let text = self.console.text(self.stream)?;
        if red {
            text.extend_from_slice(RED);
        }
        if terminal {
            push_visible(self.label.as_bytes(), text);
        } else {
            text.extend_from_slice(self.label.as_bytes());
        }
        text.push(b':');
        if red {
            text.extend_from_slice(PLAIN);
        }
        text.push(b' ');
        Ok(())
    }
}

#[cfg(test)]
mod tests;
