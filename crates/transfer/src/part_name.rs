//! What a file is called until it is whole.

use std::fmt;
use std::str::FromStr;

use crate::path::{file_name, join, parent};

/// The longest name that file systems take, octets (NAME_MAX).
const MAX_NAME: usize = 255;

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

/// Where the contents of `path` are until they are whole: `.NAME.TAG.part` in the same folder, the name cut to what a file
/// system takes.
pub fn part_name(path: &[u8], tag: PartTag) -> Vec<u8> {
    let suffix = format!(".{tag}.part");
    let name = file_name(path);
    let kept = name.len().min(MAX_NAME - 1 - suffix.len());
    let name = [b".", &name[..kept], suffix.as_bytes()].concat();
    match parent(path) {
        b"." if !path.starts_with(b"./") => name,
        folder => join(folder, &name),
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
    }
}
