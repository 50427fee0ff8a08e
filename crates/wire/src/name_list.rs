//! Comma-separated lists of names (RFC 4251, section 5, `name-list`).

use std::fmt;

use crate::Problem;

/// Longest name list accepted, in bytes. The lists of a stock OpenSSH have less than 500.
pub const MAX_NAME_LIST_LEN: usize = 16 * 1024;

/// A list of algorithm or method names, in order of preference.
///
/// Every name is printable US-ASCII. Empty names, which RFC 4251 forbids and OpenSSH tolerates
/// (match.c, `match_list`), are skipped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct NameList<'a> {
    joined: &'a str,
}

impl<'a> NameList<'a> {
    /// A list for sending, from names already joined with commas; made of names that this program chose.
    ///
    /// # Panics
    /// If `joined` holds anything but printable US-ASCII: a mistake in this program, never a peer's doing.
    #[must_use]
    pub const fn new(joined: &'a str) -> Self {
        assert!(
            is_printable(joined.as_bytes()),
            "an algorithm name is printable US-ASCII"
        );
        Self { joined }
    }

    /// A list received.
    pub(crate) fn from_bytes(bytes: &'a [u8]) -> Result<Self, Problem> {
        if bytes.len() > MAX_NAME_LIST_LEN {
            return Err(Problem::TooLong {
                len: bytes.len(),
                limit: MAX_NAME_LIST_LEN,
            });
        }
        if !is_printable(bytes) {
            return Err(Problem::NotAscii);
        }
        let joined = std::str::from_utf8(bytes).map_err(|_| Problem::NotAscii)?;
        Ok(Self { joined })
    }

    /// The names, most preferred first.
    pub fn iter(self) -> impl Iterator<Item = &'a str> + Clone {
        self.joined.split(',').filter(|name| !name.is_empty())
    }

    /// The most preferred name.
    #[must_use]
    pub fn first(self) -> Option<&'a str> {
        self.iter().next()
    }

    /// Whether `name` is in the list. Names are compared byte by byte.
    #[must_use]
    pub fn contains(self, name: &str) -> bool {
        self.iter().any(|listed| listed == name)
    }

    /// Whether there is no name.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.first().is_none()
    }

    /// The list as it stands on the wire.
    #[must_use]
    pub fn as_str(self) -> &'a str {
        self.joined
    }
}

impl fmt::Debug for NameList<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "NameList({:?})", self.joined)
    }
}

impl fmt::Display for NameList<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.joined)
    }
}

/// RFC 4250, section 4.6.1: "printable US-ASCII ... without whitespace and control characters".
const fn is_printable(bytes: &[u8]) -> bool {
    let mut at = 0;
    while at < bytes.len() {
        if !bytes[at].is_ascii_graphic() {
            return false;
        }
        at += 1;
    }
    true
}
