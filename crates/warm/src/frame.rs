//! Frames: a uint32 length, then so many octets, of which the first is the kind.

use sshoal_wire::{DecodeError, Put};

/// Longest frame, octets behind its length: a command line of 128 KiB (the most that a Linux shell takes as one argument) with its
/// environment, and the largest packet of output.
pub const MAX_FRAME_LEN: usize = 512 * 1024;

/// Octets of the length.
const LENGTH_LEN: usize = 4;

/// What is wrong with what the other end sent. It is not listened to any more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A frame without a kind, or over [`MAX_FRAME_LEN`].
    #[error("a frame of {len} octets, where 1 to {MAX_FRAME_LEN} are accepted")]
    Length {
        /// Its length in octets.
        len: usize,
    },
    /// A kind that is not known.
    #[error("a frame of the unknown kind {kind}")]
    Kind {
        /// Its number.
        kind: u8,
    },
    /// A frame that does not follow its format.
    #[error(transparent)]
    Malformed(#[from] DecodeError),
}

/// The frames in what was read.
#[derive(Debug)]
pub struct Frames<'a> {
    unread: &'a [u8],
    taken: usize,
}

impl<'a> Frames<'a> {
    /// Of octets that begin with a frame.
    #[must_use]
    pub fn of(octets: &'a [u8]) -> Frames<'a> {
        Frames {
            unread: octets,
            taken: 0,
        }
    }

    /// The next frame, kind and fields; `None` if no more is whole.
    ///
    /// # Errors
    ///
    /// Its length is none that a frame may have.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator would go on after an error"
    )]
    pub fn next(&mut self) -> Result<Option<&'a [u8]>, FrameError> {
        let Some((length, rest)) = self.unread.split_first_chunk::<LENGTH_LEN>() else {
            return Ok(None);
        };
        let len = u32::from_be_bytes(*length) as usize;
        if len == 0 || len > MAX_FRAME_LEN {
            return Err(FrameError::Length { len });
        }
        let Some((frame, rest)) = rest.split_at_checked(len) else {
            return Ok(None);
        };
        self.unread = rest;
        self.taken += LENGTH_LEN + len;
        Ok(Some(frame))
    }

    /// How many octets the frames so far had. What is behind them is the beginning of another.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.taken
    }
}

/// Appends a frame, whose fields `write` appends.
pub(crate) fn encode(kind: u8, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.put_u32(0);
    out.put_u8(kind);
    write(out);
    let len = (out.len() - at - LENGTH_LEN) as u32;
    out[at..at + LENGTH_LEN].copy_from_slice(&len.to_be_bytes());
}
