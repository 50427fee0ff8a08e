//! SHA-256 of files at both ends: unchanged ones are known by it (`--checksum`), and what has arrived is held against what was
//! sent (`--verify`). Nothing is hashed here: this machine's side is a need, the host's side is asked in a [`session`]
//! beside the SFTP channels.

mod command;
mod session;

use std::fmt;

pub(crate) use command::CHECKERS;
pub use session::HostHashes;
pub(crate) use session::{HashKey, HostHash};

/// Octets of a hash.
const LEN: usize = 32;

/// SHA-256 of a file's contents (FIPS 180-4).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FileHash(pub [u8; LEN]);

/// What hashes are used for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hashing {
    /// Whether files of equal size are unchanged if their hashes are equal, and only then; size and time say nothing then.
    pub compares: bool,
    /// Whether what has arrived is hashed at both ends before it is put in place.
    pub verifies: Verify,
}

/// When what has arrived is hashed at both ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Verify {
    /// Never.
    #[default]
    Never,
    /// Where the host has a program for it.
    Auto,
    /// Always: a host without such a program gets and gives nothing.
    Always,
}

impl Hashing {
    /// The flag that a host without a hashing program cannot be served with, if there is one.
    pub(crate) fn insists(&self) -> Option<&'static str> {
        match (self.compares, self.verifies) {
            (true, _) => Some("--checksum"),
            (false, Verify::Always) => Some("--verify=always"),
            (false, Verify::Never | Verify::Auto) => None,
        }
    }

    /// Whether the host is asked for any hash.
    pub(crate) fn is_used(&self) -> bool {
        self.compares || self.verifies != Verify::Never
    }
}

impl FileHash {
    /// What a line of a hashing program begins with. GNU's programs put a backslash before it if the name that follows has
    /// characters that are written as others.
    pub(crate) fn of_line(line: &[u8]) -> Option<FileHash> {
        let line = line.strip_prefix(b"\\").unwrap_or(line);
        let (digits, rest) = line.split_at_checked(2 * LEN)?;
        let ends = rest.first().is_none_or(|octet| *octet == b' ');
        let mut octets = [0; LEN];
        for (octet, pair) in octets.iter_mut().zip(digits.chunks_exact(2)) {
            *octet = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        ends.then_some(FileHash(octets))
    }
}

fn digit(octet: u8) -> Option<u8> {
    let digit = char::from(octet).to_digit(16)?;
    u8::try_from(digit).ok()
}

impl fmt::Display for FileHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|octet| write!(formatter, "{octet:02x}"))
    }
}

impl fmt::Debug for FileHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_what_a_line_begins_with() {
        let hash = FileHash([0xa5; LEN]);
        let digits = hash.to_string();
        for line in [
            digits.clone(),
            format!("{digits}  name"),
            format!("{digits} *name"),
            format!("\\{digits}  na\\nme"),
            digits.to_uppercase(),
        ] {
            assert_eq!(FileHash::of_line(line.as_bytes()), Some(hash), "{line}");
        }
        for line in [
            "",
            "-",
            &digits[1..],
            &format!("{digits}a"),
            &"g".repeat(64),
        ] {
            assert_eq!(FileHash::of_line(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn what_must_be_hashed_says_which_flag_wants_it() {
        let of = |compares, verifies| Hashing { compares, verifies }.insists();
        assert_eq!(of(false, Verify::Auto), None);
        assert_eq!(of(false, Verify::Always), Some("--verify=always"));
        assert_eq!(of(true, Verify::Never), Some("--checksum"));
    }
}
