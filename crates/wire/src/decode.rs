//! Reading the data types of RFC 4251, section 5.

use crate::NameList;

/// Longest multiple-precision integer accepted, in bytes of magnitude: 16,384 bits, as OpenSSH's
/// `SSHBUF_MAX_BIGNUM` (sshbuf.h) and twice the largest Diffie-Hellman group in use.
pub const MAX_MPINT_LEN: usize = 2048;

/// A message that does not follow its format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the peer's {message} is malformed: {field} {problem}")]
pub struct DecodeError {
    /// The message being read, as the RFC names it without `SSH_MSG_`.
    pub message: &'static str,
    /// The field being read.
    pub field: &'static str,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The field claims more bytes than there are.
    #[error("needs {needed} bytes where {left} are left")]
    Truncated {
        /// Bytes that the field needs.
        needed: usize,
        /// Bytes that were left.
        left: usize,
    },
    /// The last field is read and bytes are left.
    #[error("is followed by {count} bytes that belong to no field")]
    TrailingBytes {
        /// How many.
        count: usize,
    },
    /// The field is longer than this implementation accepts.
    #[error("is {len} bytes long, more than the {limit} accepted")]
    TooLong {
        /// Length in bytes.
        len: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// A counted list has more elements than this implementation accepts.
    #[error("has {count} elements, more than the {limit} accepted")]
    TooMany {
        /// Elements claimed.
        count: u32,
        /// The limit.
        limit: u32,
    },
    /// A multiple-precision integer is negative; SSH's protocols use none.
    #[error("is a negative number")]
    Negative,
    /// A name list holds something other than printable US-ASCII.
    #[error("holds a byte that is not printable US-ASCII")]
    NotAscii,
    /// A text that must be one of a few words is none of them.
    #[error("is a name that this program does not know")]
    UnknownName,
    /// A text has an octet 0 in it. OpenSSH's server ends a connection for that (sshbuf-getput-basic.c, `sshbuf_get_cstring`).
    #[error("has an octet 0 in it, which no text has")]
    Nul,
}

/// Reads fields one after the other, borrowing from the input.
///
/// It remembers which message and field is being read, so that an error names both.
#[derive(Debug, Clone)]
pub struct Decoder<'a> {
    unread: &'a [u8],
    message: &'static str,
    field: &'static str,
}

impl<'a> Decoder<'a> {
    /// Reads `bytes`, called "data" in errors.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self::named("data", bytes)
    }

    /// Reads `bytes`, called `message` in errors.
    #[must_use]
    pub fn named(message: &'static str, bytes: &'a [u8]) -> Self {
        Self {
            unread: bytes,
            message,
            field: "message",
        }
    }

    /// Names the field that is read next, for errors.
    pub fn field(&mut self, field: &'static str) -> &mut Self {
        self.field = field;
        self
    }

    /// The error that `problem` in the current field is.
    #[must_use]
    pub fn error(&self, problem: Problem) -> DecodeError {
        DecodeError {
            message: self.message,
            field: self.field,
            problem,
        }
    }

    /// RFC 4251 `byte`.
    ///
    /// # Errors
    /// Truncated input.
    pub fn u8(&mut self) -> Result<u8, DecodeError> {
        self.array().map(u8::from_be_bytes)
    }

    /// RFC 4251 `uint32`.
    ///
    /// # Errors
    /// Truncated input.
    pub fn u32(&mut self) -> Result<u32, DecodeError> {
        self.array().map(u32::from_be_bytes)
    }

    /// RFC 4251 `uint64`.
    ///
    /// # Errors
    /// Truncated input.
    pub fn u64(&mut self) -> Result<u64, DecodeError> {
        self.array().map(u64::from_be_bytes)
    }

    /// RFC 4251 `boolean`: "all non-zero values MUST be interpreted as TRUE".
    ///
    /// # Errors
    /// Truncated input.
    pub fn boolean(&mut self) -> Result<bool, DecodeError> {
        self.u8().map(|byte| byte != 0)
    }

    /// RFC 4251 `byte[N]`.
    ///
    /// # Errors
    /// Truncated input.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        match self.unread.split_first_chunk() {
            Some((head, tail)) => {
                self.unread = tail;
                Ok(*head)
            }
            None => Err(self.truncated(N)),
        }
    }

    /// RFC 4251 `string`: any bytes, length first.
    ///
    /// # Errors
    /// Truncated input, a length beyond the input included.
    pub fn string(&mut self) -> Result<&'a [u8], DecodeError> {
        let claimed = self.u32()?;
        // A length that does not fit usize is beyond any input.
        let len = usize::try_from(claimed).unwrap_or(usize::MAX);
        match self.unread.split_at_checked(len) {
            Some((head, tail)) => {
                self.unread = tail;
                Ok(head)
            }
            None => Err(self.truncated(len)),
        }
    }

    /// RFC 4251 `mpint`: the magnitude, big-endian, without sign byte or leading zeros; empty for zero.
    ///
    /// # Errors
    /// Truncated input, a negative number, or one over [`MAX_MPINT_LEN`].
    pub fn mpint(&mut self) -> Result<&'a [u8], DecodeError> {
        let bytes = self.string()?;
        if bytes.first().is_some_and(|first| first & 0x80 != 0) {
            return Err(self.error(Problem::Negative));
        }
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        let magnitude = &bytes[zeros..];
        if magnitude.len() > MAX_MPINT_LEN {
            return Err(self.error(Problem::TooLong {
                len: magnitude.len(),
                limit: MAX_MPINT_LEN,
            }));
        }
        Ok(magnitude)
    }

    /// RFC 4251 `name-list`.
    ///
    /// # Errors
    /// Truncated input, a list over [`crate::MAX_NAME_LIST_LEN`], or bytes that no name may hold.
    pub fn name_list(&mut self) -> Result<NameList<'a>, DecodeError> {
        let bytes = self.string()?;
        NameList::from_bytes(bytes).map_err(|problem| self.error(problem))
    }

    /// All that is left: data whose format another field decides.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.unread)
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// Bytes are left that belong to no field.
    pub fn finish(self) -> Result<(), DecodeError> {
        match self.unread.len() {
            0 => Ok(()),
            count => Err(self.error(Problem::TrailingBytes { count })),
        }
    }

    /// The bytes not yet read.
    #[must_use]
    pub fn unread(&self) -> &'a [u8] {
        self.unread
    }

    fn truncated(&self, needed: usize) -> DecodeError {
        self.error(Problem::Truncated {
            needed,
            left: self.unread.len(),
        })
    }
}

#[cfg(test)]
mod tests;
