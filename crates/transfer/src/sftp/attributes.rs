//! File attributes: draft-ietf-secsh-filexfer-02 section 5.

use sshoal_wire::{DecodeError, Decoder, Problem, Put};

const SIZE: u32 = 0x1;
const UIDGID: u32 = 0x2;
const PERMISSIONS: u32 = 0x4;
const ACMODTIME: u32 = 0x8;
const EXTENDED: u32 = 0x8000_0000;
/// Extended attributes that one file may have; no server is known that sends any.
const MAX_EXTENDED: u32 = 64;

/// The bits of a mode that say what kind of file it is (stat(2), S_IFMT).
const TYPE_MASK: u32 = 0o170_000;

/// What is known of a file, or is to be set. Absent members are unknown, or stay as they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Octets.
    pub size: Option<u64>,
    /// Numbers of user and group.
    pub owner: Option<(u32, u32)>,
    /// Permissions with the type's bits, as st_mode.
    pub mode: Option<u32>,
    /// Last access and last modification, seconds since 1970.
    pub times: Option<(u32, u32)>,
}

/// What kind of file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileType {
    /// A regular file.
    File,
    /// A directory.
    Folder,
    /// A symbolic link.
    Link,
    /// A block device.
    BlockDevice,
    /// A character device.
    CharacterDevice,
    /// A socket or a named pipe.
    Special,
    /// The server does not say.
    Unknown,
}

impl Attributes {
    /// The kind of file, as far as the mode says.
    pub fn file_type(&self) -> FileType {
        match self.mode.map(|mode| mode & TYPE_MASK) {
            None | Some(0) => FileType::Unknown,
            Some(0o100_000) => FileType::File,
            Some(0o040_000) => FileType::Folder,
            Some(0o120_000) => FileType::Link,
            Some(0o060_000) => FileType::BlockDevice,
            Some(0o020_000) => FileType::CharacterDevice,
            Some(_) => FileType::Special,
        }
    }

    /// The permissions alone, with the bits for set-user-ID and the like.
    pub fn permissions(&self) -> Option<u32> {
        self.mode.map(|mode| mode & 0o7777)
    }

    /// Last modification.
    pub fn modified(&self) -> Option<u32> {
        self.times.map(|(_, modified)| modified)
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let flag = |is_there, flag| if is_there { flag } else { 0 };
        out.put_u32(
            flag(self.size.is_some(), SIZE)
                | flag(self.owner.is_some(), UIDGID)
                | flag(self.mode.is_some(), PERMISSIONS)
                | flag(self.times.is_some(), ACMODTIME),
        );
        if let Some(size) = self.size {
            out.put_u64(size);
        }
        if let Some((user, group)) = self.owner {
            out.put_u32(user);
            out.put_u32(group);
        }
        if let Some(mode) = self.mode {
            out.put_u32(mode);
        }
        if let Some((accessed, modified)) = self.times {
            out.put_u32(accessed);
            out.put_u32(modified);
        }
    }

    pub(crate) fn decode(from: &mut Decoder<'_>) -> Result<Attributes, DecodeError> {
        let flags = from.field("flags").u32()?;
        let mut attributes = Attributes::default();
        if flags & SIZE != 0 {
            attributes.size = Some(from.field("size").u64()?);
        }
        if flags & UIDGID != 0 {
            attributes.owner = Some((from.field("uid").u32()?, from.field("gid").u32()?));
        }
        if flags & PERMISSIONS != 0 {
            attributes.mode = Some(from.field("permissions").u32()?);
        }
        if flags & ACMODTIME != 0 {
            attributes.times = Some((from.field("atime").u32()?, from.field("mtime").u32()?));
        }
        if flags & EXTENDED != 0 {
            let count = from.field("extended_count").u32()?;
            if count > MAX_EXTENDED {
                return Err(from.error(Problem::TooMany {
                    count,
                    limit: MAX_EXTENDED,
                }));
            }
            for _ in 0..count {
                from.field("extended_type").string()?;
                from.field("extended_data").string()?;
            }
        }
        Ok(attributes)
    }
}
