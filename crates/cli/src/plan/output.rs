//! What steps write, on its way to our own standard output and error: lines, each with its step's name.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::sync::Mutex;

/// Octets that are read at a time.
const BLOCK: usize = 64 * 1024;

/// One of our streams. Who has begun a line there ends it before another writes.
#[derive(Clone)]
pub(super) struct Stream(Arc<Mutex<tokio::fs::File>>);

impl Stream {
    pub(super) fn of(stream: impl AsFd) -> io::Result<Stream> {
        let file = File::from(stream.as_fd().try_clone_to_owned()?);
        Ok(Stream(Arc::new(Mutex::new(tokio::fs::File::from_std(
            file,
        )))))
    }

    /// Writes whole lines.
    pub(super) async fn write(&self, lines: &[u8]) -> io::Result<()> {
        let mut file = self.0.lock().await;
        file.write_all(lines).await?;
        file.flush().await
    }
}

/// What stands before each line of a step.
#[derive(Clone)]
pub(super) enum Mark {
    /// `upgrade: `
    Prefix(String),
    /// Of an object of JSON, a first member: it takes the place of the brace.
    Member(String),
}

impl Mark {
    pub(super) fn of(step: &str, json: bool) -> Mark {
        match json {
            true => Mark::Member(format!("{{\"step\":\"{step}\",")),
            false => Mark::Prefix(format!("{step}: ")),
        }
    }

    /// What is written for a line's beginning, and how much of the line that stands for.
    fn before<'a>(&'a self, line: &[u8]) -> (&'a str, usize) {
        match self {
            Mark::Prefix(text) => (text, 0),
            Mark::Member(text) => (text, usize::from(line.first() == Some(&b'{'))),
        }
    }
}

/// Copies what a step writes to its end. Dropped or failed, it leaves the step a pipe that nobody reads.
pub(super) async fn copy(
    mut from: impl AsyncRead + Unpin,
    mark: Mark,
    to: Stream,
) -> io::Result<()> {
    let mut block = vec![0; BLOCK];
    loop {
        let mut filled = from.read(&mut block).await?;
        if filled == 0 {
            return Ok(());
        }
        // Whoever has begun a line ends it, however many blocks that takes.
        let mut file = to.0.lock().await;
        let mut begins = true;
        while filled > 0 {
            let lines = marked(&block[..filled], &mark, &mut begins);
            file.write_all(&lines).await?;
            if begins {
                break;
            }
            filled = from.read(&mut block).await?;
        }
        if !begins {
            file.write_all(b"\n").await?;
        }
        file.flush().await?;
    }
}

/// The octets with a mark wherever a line begins. `begins` tells whether the first one begins a line, and then whether what
/// comes next does.
fn marked(octets: &[u8], mark: &Mark, begins: &mut bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(octets.len() + octets.len() / 4);
    for line in octets.split_inclusive(|&octet| octet == b'\n') {
        let (text, replaced) = match *begins {
            true => mark.before(line),
            false => ("", 0),
        };
        out.extend_from_slice(text.as_bytes());
        out.extend_from_slice(&line[replaced..]);
        *begins = line.ends_with(b"\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_has_its_mark_wherever_blocks_end() {
        let mark = Mark::of("a", false);
        let mut begins = true;
        let out: Vec<u8> = ["one\n", "t", "wo\n\nth", "ree"]
            .iter()
            .flat_map(|block| marked(block.as_bytes(), &mark, &mut begins))
            .collect();
        assert_eq!(
            String::from_utf8_lossy(&out),
            "a: one\na: two\na: \na: three"
        );
        assert!(!begins);
        let mut begins = true;
        let out = marked(b"{\"x\":1}\n", &Mark::of("a", true), &mut begins);
        assert_eq!(String::from_utf8_lossy(&out), "{\"step\":\"a\",\"x\":1}\n");
    }
}
