//! One line of a known_hosts file taken apart, without decoding anything.
//!
//! The grammar is that of `hostkeys_foreach_file` (hostfile.c): an optional marker, host
//! patterns or a hashed name, a key type, a base64 key, a comment.

use crate::key::{self, KeyType};
use crate::pattern;

/// `|1|` + base64 of 20 bytes + `|` + base64 of 20 bytes.
const HASHED_LEN: usize = 3 + HASHED_HALF + 1 + HASHED_HALF;
/// Base64 of SHA-1's 20 bytes.
const HASHED_HALF: usize = 28;
const HASHED_MAGIC: &[u8] = b"|1|";

/// What stands at the start of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Marker {
    /// No marker: the key is the host's own.
    None,
    /// `@cert-authority`: the key signs the host's certificates.
    CertAuthority,
    /// `@revoked`, or a damaged line that was meant so: the key must never be accepted.
    Revoked,
}

/// A line as its parts.
pub(crate) enum Line<'a> {
    /// Empty, or a comment.
    Blank,
    /// A line that can be understood, though its key is not decoded yet. Without a marker that key may be of a type that is
    /// not known here: the host is known all the same.
    Entry {
        marker: Marker,
        hosts: &'a [u8],
        key_type: Option<KeyType>,
        key: &'a [u8],
    },
    /// Not understood: it grants nothing.
    Broken {
        why: &'static str,
        damaged: Damaged<'a>,
    },
}

/// What a line that is not understood may have been meant to take away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Damaged<'a> {
    /// Nothing: it would have granted trust.
    Grant,
    /// The line is marked `@revoked`; this follows the marker.
    Revoked(&'a [u8]),
    /// A marker cannot be read, or `@revoked` stands where no marker belongs.
    PerhapsRevoked(&'a [u8]),
}

/// Takes `line`, without its line feed, apart.
pub(crate) fn parse(line: &[u8]) -> Line<'_> {
    let line = line.trim_ascii();
    match line.first() {
        None | Some(b'#') => return Line::Blank,
        Some(b'@') => return parse_marked(line),
        Some(_) => {}
    }
    match fields(line) {
        Ok((hosts, ..)) if mentions_revoked(hosts) => Line::Broken {
            why: "@revoked does not stand alone at the start of the line",
            damaged: Damaged::PerhapsRevoked(line),
        },
        Ok((hosts, key_type, key)) => Line::Entry {
            marker: Marker::None,
            hosts,
            key_type,
            key,
        },
        Err(why) if mentions_revoked(line) => Line::Broken {
            why,
            damaged: Damaged::PerhapsRevoked(line),
        },
        Err(why) => Line::Broken {
            why,
            damaged: Damaged::Grant,
        },
    }
}

/// `check_markers` (hostfile.c) skips a line with an unknown or a second marker. So do we for
/// trust; but a marker that cannot be read may have been meant to revoke.
fn parse_marked(line: &[u8]) -> Line<'_> {
    let (word, rest) = split_word(line);
    let marker = match word {
        b"@cert-authority" => Marker::CertAuthority,
        b"@revoked" => Marker::Revoked,
        _ => {
            let why = "the marker is unknown";
            return Line::Broken {
                why,
                damaged: Damaged::PerhapsRevoked(rest),
            };
        }
    };
    if rest.first() == Some(&b'@') {
        let why = "a line can have one marker only";
        return Line::Broken {
            why,
            damaged: Damaged::PerhapsRevoked(rest),
        };
    }
    // `check_markers` ends a marker at the line's first space, and at a tab only if there is none:
    // an authority behind a tab is not trusted there, and so not here.
    let (_, separator) = line.split_at(word.len());
    if marker == Marker::CertAuthority && separator.starts_with(b"\t") && rest.contains(&b' ') {
        let why = "a tab follows the marker where ssh wants a space";
        return Line::Broken {
            why,
            damaged: Damaged::Grant,
        };
    }
    let fields = fields(rest).and_then(|fields| match fields.1 {
        Some(_) => Ok(fields),
        None => Err(UNKNOWN_TYPE),
    });
    match (fields, marker) {
        (Ok((hosts, key_type, key)), _) => Line::Entry {
            marker,
            hosts,
            key_type,
            key,
        },
        (Err(why), Marker::Revoked) => Line::Broken {
            why,
            damaged: Damaged::Revoked(rest),
        },
        (Err(why), _) => Line::Broken {
            why,
            damaged: Damaged::Grant,
        },
    }
}

type Fields<'a> = (&'a [u8], Option<KeyType>, &'a [u8]);

/// What is wrong with a key of a type that nobody knows.
pub(crate) const UNKNOWN_TYPE: &str = "the key type is unknown";

fn fields(text: &[u8]) -> Result<Fields<'_>, &'static str> {
    let (hosts, rest) = split_word(text);
    let (type_name, rest) = split_word(rest);
    let (key, _comment) = split_word(rest);
    if type_name.is_empty() || type_name[0] == b'#' {
        return Err("nothing follows the host names");
    }
    if let Some(why) = fault_of_hosts(hosts) {
        return Err(why);
    }
    let key_type = KeyType::from_name(type_name);
    if key_type.is_none() && !key::names_type(key, type_name) {
        return Err(if type_name.iter().all(u8::is_ascii_digit) {
            "keys of SSH protocol 1 are not supported"
        } else {
            UNKNOWN_TYPE
        });
    }
    if key.is_empty() || key[0] == b'#' {
        return Err("nothing follows the key type");
    }
    if !is_whole_base64(key) {
        return Err("the key is not whole base64");
    }
    Ok((hosts, key_type, key))
}

/// Why a host field can match nothing, if so.
pub(crate) fn fault_of_hosts(hosts: &[u8]) -> Option<&'static str> {
    if hosts.first() == Some(&b'|') {
        return hashed_halves(hosts)
            .is_none()
            .then_some("the hashed host name is malformed");
    }
    if hosts.len() > pattern::MAX_PATTERN
        && hosts
            .split(|&c| c == b',')
            .any(|item| item.len() > pattern::MAX_PATTERN)
    {
        return Some("a host pattern is too long");
    }
    memchr::memchr(0, hosts).map(|_| "the host names contain a NUL byte")
}

/// Salt and hash of a hashed name, in base64; `None` if `hosts` is not one (`extract_salt`,
/// hostfile.c; other spellings of the same bytes never match there, because whole strings are
/// compared).
pub(crate) fn hashed_halves(hosts: &[u8]) -> Option<(&[u8], &[u8])> {
    if hosts.len() != HASHED_LEN || !hosts.starts_with(HASHED_MAGIC) {
        return None;
    }
    let (salt, rest) = hosts[HASHED_MAGIC.len()..].split_at(HASHED_HALF);
    let hash = rest.strip_prefix(b"|")?;
    (is_sha1_in_base64(salt) && is_sha1_in_base64(hash)).then_some((salt, hash))
}

/// 20 bytes are 26 characters, one more with two bits to spare, which are zero, and padding.
fn is_sha1_in_base64(text: &[u8]) -> bool {
    const LAST: &[u8] = b"AEIMQUYcgkosw048";
    match text {
        [start @ .., last, b'='] => key::is_all_base64(start) && LAST.contains(last),
        _ => false,
    }
}

/// Whether damaged text speaks of revoking, in any case and even as UTF-16.
fn mentions_revoked(text: &[u8]) -> bool {
    const WORD: &[u8] = b"@revoked";
    if memchr::memchr(b'@', text).is_none() {
        return false;
    }
    let bare: Vec<u8> = text
        .iter()
        .filter(|&&c| c != 0)
        .map(u8::to_ascii_lowercase)
        .collect();
    bare.windows(WORD.len()).any(|part| part == WORD)
}

fn is_whole_base64(text: &[u8]) -> bool {
    let padding = text
        .iter()
        .rev()
        .take(2)
        .take_while(|&&c| c == b'=')
        .count();
    text.len().is_multiple_of(4) && key::is_all_base64(&text[..text.len() - padding])
}

/// The first word, and what follows it and the blanks behind it.
pub(crate) fn split_word(text: &[u8]) -> (&[u8], &[u8]) {
    let Some(end) = memchr::memchr2(b' ', b'\t', text) else {
        return (text, &[]);
    };
    let (word, rest) = text.split_at(end);
    let blanks = rest
        .iter()
        .take_while(|&&c| c == b' ' || c == b'\t')
        .count();
    (word, &rest[blanks..])
}

#[cfg(test)]
mod tests;
