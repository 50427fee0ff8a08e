//! What a file is called until it is whole.

use std::fmt;
use std::hash::Hasher;
use std::str::FromStr;

use siphasher::sip::SipHasher13;

use crate::path::{MAX_NAME, file_name, join, parent};

/// Eight hexadecimal digits that tell the parts of one transfer from those of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartTag(pub u32);

impl fmt::Display for PartTag {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:08x}", self.0)
    }
}

impl FromStr for PartTag {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        u32::from_str_radix(text, 16).map(PartTag)
    }
}

/// Where the contents of `path` are until they are whole: `.NAME.TAG.part` in the same folder. A name that would be too long for
/// a file system is cut, and what it was told by a hash of it: names that begin alike have parts of their own.
pub fn part_name(path: &[u8], tag: PartTag) -> Vec<u8> {
    let suffix = format!(".{tag}.part");
    let name = file_name(path);
    let room = MAX_NAME - 1 - suffix.len();
    let name = match name.len() <= room {
        true => [b".", name, suffix.as_bytes()].concat(),
        false => {
            let hash = format!("~{:016x}", name_hash(name));
            let kept = whole_characters(&name[..room - hash.len()]);
            [b".", kept, hash.as_bytes(), suffix.as_bytes()].concat()
        }
    };
    match parent(path) {
        b"." if !path.starts_with(b"./") => name,
        folder => join(folder, &name),
    }
}

/// Where what is there already is for the moment in which a part takes its place, if the server replaces nothing:
/// `.NAME.TAG.old`. It is no part, and so nothing that may go unasked.
pub(crate) fn old_name(part: &[u8]) -> Vec<u8> {
    let stem = part.strip_suffix(b".part").unwrap_or(part);
    [stem, b".old"].concat()
}

/// Whether a name is one that [`part_name`] gives, whatever the file and the transfer, or that of what goes beside batches of
/// small files: `.TAG.part` and `.TAG.NUMBER.part`.
pub(crate) fn is_part_name(name: &[u8]) -> bool {
    let inner = name
        .strip_prefix(b".")
        .and_then(|it| it.strip_suffix(b".part"));
    let Some(inner) = inner else {
        return false;
    };
    let is_digit = |octet: &u8| matches!(octet, b'0'..=b'9' | b'a'..=b'f');
    let is_tag = |text: &[u8]| text.len() == 8 && text.iter().all(is_digit);
    let Some(dot) = inner.iter().rposition(|&octet| octet == b'.') else {
        return is_tag(inner);
    };
    let (before, last) = (&inner[..dot], &inner[dot + 1..]);
    let is_number = !last.is_empty() && last.iter().all(u8::is_ascii_digit);
    is_tag(last) && !before.is_empty() || is_number && is_tag(before)
}

/// What tells names from each other: the same in each version of this program, so that what an earlier one has left is found.
pub(crate) fn name_hash(name: &[u8]) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write(name);
    hasher.finish()
}

/// Without the beginning of a character of UTF-8 at the end: some file systems take no half ones.
fn whole_characters(name: &[u8]) -> &[u8] {
    let is_first = |octet: &u8| octet & 0b1100_0000 != 0b1000_0000;
    match name.iter().rposition(is_first) {
        Some(last) if std::str::from_utf8(&name[last..]).is_err() => &name[..last],
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_beside_its_file() {
        let tag = PartTag(0x1f);
        assert_eq!(part_name(b"/etc/motd", tag), b"/etc/.motd.0000001f.part");
        assert_eq!(part_name(b"motd", tag), b".motd.0000001f.part");
        assert_eq!(part_name(b"/motd", tag), b"/.motd.0000001f.part");
        assert_eq!(tag.to_string().parse(), Ok(tag));
        let long = part_name(&[b'x'; 255], tag);
        assert_eq!(long.len(), MAX_NAME);
        for ours in [
            &long[..],
            b".motd.0000001f.part",
            b".0000001f.part",
            b".0000001f.12.part",
        ] {
            assert!(is_part_name(ours), "{}", ours.escape_ascii());
        }
        for other in [
            &b"motd.0000001f.part"[..],
            b".motd.0000001F.part",
            b".motd.000001f.part",
            b".motd.part",
            b"..0000001f.part",
            b".0000001f..part",
            b".000001f.12.part",
            b".part",
        ] {
            assert!(!is_part_name(other), "{}", other.escape_ascii());
        }
    }

    #[test]
    fn names_that_begin_alike_have_parts_of_their_own() {
        let tag = PartTag(1);
        let name = |end: &str| [&[b'x'; 240], end.as_bytes()].concat();
        let parts = ["A", "B", "AB", ""].map(|end| part_name(&name(end), tag));
        for (number, part) in parts.iter().enumerate() {
            assert!(part.len() <= MAX_NAME);
            assert!(!parts[..number].contains(part), "{number}");
        }
        // What an earlier version of this program has left is found by this name.
        assert!(
            parts[0].ends_with(b"~c686ccec2aa240e3.00000001.part"),
            "{}",
            parts[0].escape_ascii()
        );
    }

    #[test]
    fn no_character_is_cut_in_two() {
        for before in 0..4 {
            let name = format!("{}{}", "y".repeat(before), "\u{5831}".repeat(83));
            let part = part_name(name.as_bytes(), PartTag(1));
            assert!(
                std::str::from_utf8(&part).is_ok(),
                "{}",
                part.escape_ascii()
            );
            assert!(part.len() <= MAX_NAME);
        }
        // Names need not be UTF-8.
        assert_eq!(part_name(&[0x80; 250], PartTag(1)).len(), MAX_NAME);
        assert!(part_name(&[0xe5; 250], PartTag(1)).len() <= MAX_NAME);
    }
}
