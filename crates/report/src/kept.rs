//! One stream of one host, kept until the host ends, up to a limit.

use std::io;

use crate::{capture::Capture, spill::Spill};

/// The most that is kept of one stream of one host, in bytes. What comes after it is counted and dropped:
/// a host that never stops must not fill the disk.
pub const MAX_KEPT: u64 = 1024 * 1024 * 1024;

/// Output that waits to be shown.
#[derive(Default)]
pub(crate) struct Kept {
    pub(crate) capture: Capture,
    /// How many bytes came after [`MAX_KEPT`].
    pub(crate) dropped: u64,
}

impl Kept {
    pub(crate) fn push(&mut self, bytes: &[u8], spill: &mut Spill) -> io::Result<()> {
        self.push_limited(bytes, MAX_KEPT, spill)
    }

    fn push_limited(&mut self, bytes: &[u8], limit: u64, spill: &mut Spill) -> io::Result<()> {
        let room = usize::try_from(limit - self.capture.len()).unwrap_or(usize::MAX);
        let (kept, dropped) = bytes.split_at(room.min(bytes.len()));
        self.dropped += dropped.len() as u64;
        if kept.is_empty() {
            Ok(())
        } else {
            self.capture.push(kept, spill)
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.capture.is_empty()
    }

    /// The output as lines: the last one ended, and a line that tells of what was dropped.
    pub(crate) fn into_lines(self, spill: &mut Spill) -> io::Result<Capture> {
        let Kept {
            mut capture,
            dropped,
        } = self;
        if capture.last().is_some_and(|byte| byte != b'\n') {
            capture.push(b"\n", spill)?;
        }
        if dropped > 0 {
            let note = format!("[sshoal: {dropped} more bytes were not kept]\n");
            capture.push(note.as_bytes(), spill)?;
        }
        Ok(capture)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io::Read as _;

    use super::*;

    #[test]
    fn what_exceeds_the_limit_is_counted_and_told() {
        let mut spill = Spill::new(std::env::temp_dir());
        let mut kept = Kept::default();
        for piece in [&b"0123"[..], b"456789", b"abc"] {
            kept.push_limited(piece, 6, &mut spill).unwrap();
        }
        assert_eq!(kept.dropped, 7);
        let mut text = String::new();
        let lines = kept.into_lines(&mut spill).unwrap();
        lines.reader(&spill).read_to_string(&mut text).unwrap();
        assert_eq!(text, "012345\n[sshoal: 7 more bytes were not kept]\n");
    }
}
