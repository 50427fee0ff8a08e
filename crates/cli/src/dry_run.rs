//! `--dry-run`: what would be done, one line a host.

use std::io::{self, Write};

/// Prints the lines; ends of lines within them are shown as `\\n`. A reader that has seen enough ends it quietly.
pub(crate) fn print(lines: impl Iterator<Item = Vec<u8>>) -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut written = lines.map(|line| {
        let parts: Vec<&[u8]> = line.split(|&octet| octet == b'\n').collect();
        out.write_all(&parts.join(&b"\\n"[..]))?;
        out.write_all(b"\n")
    });
    match written
        .try_for_each(|result| result)
        .and_then(|()| out.flush())
    {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}
