//! What an upload is to bring: the same for all hosts.

use std::ops::Range;
use std::sync::Arc;

use sshoal_journal::Segments;

use super::small::Method;
use crate::Trouble;
use crate::hashing::Hashing;
use crate::owners::{Names, Owners};
use crate::part_name::PartTag;
use crate::sftp::Attributes;
use crate::surplus::Surplus;

/// What to bring to hosts.
#[derive(Debug, Clone)]
pub struct UploadPlan {
    /// Where to, on the host: as the user typed it.
    pub target: Vec<u8>,
    /// What the user named.
    pub roots: Vec<UploadRoot>,
    /// Everything, each folder before what is in it.
    pub entries: Vec<Entry>,
    /// What of the sources is not among them: told already, and a failure of every host's.
    pub left_out: Vec<LeftOut>,
    /// Whether modes and times are kept.
    pub preserve: bool,
    /// Whom everything is to belong to.
    pub owners: Owners,
    /// What this machine calls the users and groups of the entries, if owners are kept by name.
    pub names: Names,
    /// How small files go.
    pub method: Method,
    /// Whether a block device may be written, if the target is one.
    pub writes_devices: bool,
    /// What hashes are used for.
    pub hashing: Hashing,
    /// What is removed at the end, if anything is.
    pub surplus: Option<Arc<Surplus>>,
    /// Tells this transfer's parts from others'.
    pub tag: PartTag,
    /// Octets read at a time.
    pub block: usize,
    /// Blocks that one channel may have read ahead of what it has sent.
    pub ahead: usize,
}

/// Something that the user named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadRoot {
    /// What it is called in a folder; empty if only what is in it is meant.
    pub name: Vec<u8>,
    /// Whether it is a folder.
    pub is_folder: bool,
}

/// Something in a folder that could not be read here when the list was made, or is nothing that can be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// Where it is, here.
    pub path: Vec<u8>,
    /// Why.
    pub trouble: Trouble,
}

/// A file, a folder or a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Which of the roots it belongs to.
    pub root: usize,
    /// The path below its root; empty for the root itself.
    pub path: Vec<u8>,
    /// The entry of the folder that it is in, if that is to be made, too.
    pub folder: Option<usize>,
    /// What it is.
    pub kind: Kind,
    /// Permissions.
    pub mode: u32,
    /// Numbers of user and group.
    pub owner: (u32, u32),
    /// Last access and last modification, seconds since 1970.
    pub times: (u32, u32),
}

/// What an entry is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A folder.
    Folder,
    /// A regular file of so many octets.
    File {
        /// Its size when the list was made.
        size: u64,
    },
    /// A block device of so many octets, named by the user.
    Device {
        /// Its size.
        size: u64,
    },
    /// What ends when it ends: a pipe.
    Stream,
    /// A symbolic link.
    Link {
        /// What it says.
        target: Vec<u8>,
    },
    /// Another name of a file that stands before it in the list.
    HardLink {
        /// That file's entry.
        to: usize,
        /// Its size when the list was made.
        size: u64,
    },
}

/// What a file is when it is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// Octets; `None` for a stream.
    pub size: Option<u64>,
    /// Where it has data, in order, if it has holes (lseek(2), SEEK_DATA).
    pub data: Option<Vec<Range<u64>>>,
    /// What of it an earlier transfer has proven to be in its part on the host: not sent again if the part is still there.
    /// `None` if nobody keeps a journal of it.
    pub proven: Option<Segments>,
    /// Permissions.
    pub mode: u32,
    /// Last access and last modification, seconds since 1970.
    pub times: (u32, u32),
}

impl UploadPlan {
    /// Whether the target is a folder to put things into, whatever it is on the host.
    pub(super) fn goes_into_folder(&self) -> bool {
        self.target.ends_with(b"/") || self.roots.len() > 1 || self.roots[0].is_folder
    }

    /// Whether there is any file among the entries.
    pub(super) fn has_contents(&self) -> bool {
        let mut entries = self.entries.iter();
        entries.any(|entry| !matches!(entry.kind, Kind::Folder | Kind::Link { .. }))
    }

    /// Whether nothing is done but to tell what is surplus.
    pub(super) fn only_tells(&self) -> bool {
        self.surplus.as_ref().is_some_and(|it| it.is_only_told())
    }

    /// Octets of all files.
    pub fn octets(&self) -> u64 {
        self.entries.iter().map(Entry::size).sum()
    }
}

impl Entry {
    /// Octets of its contents, as far as they are known. Another name of a file has none of its own.
    pub fn size(&self) -> u64 {
        match self.kind {
            Kind::File { size } | Kind::Device { size } => size,
            _ => 0,
        }
    }

    /// Whether that is what is on the host, by all that a glance tells. Times that are not kept are those of the copying, and tell
    /// nothing: a file that is changed in the second of its copy has that very time.
    pub(super) fn is_like(&self, there: &Attributes, preserve: bool) -> bool {
        preserve
            && self.has_size_of(there)
            && there.modified() == Some(self.times.1)
            && there.permissions() == Some(self.mode & 0o7777)
    }

    /// Whether as much is on the host: it may be the same.
    pub(super) fn has_size_of(&self, there: &Attributes) -> bool {
        let size = match self.kind {
            Kind::File { size } | Kind::HardLink { size, .. } => size,
            _ => return false,
        };
        there.size == Some(size)
    }

    /// Whether what is on the host has the mode and the time that are to be kept, if they are.
    pub(super) fn is_kept(&self, there: &Attributes, preserve: bool) -> bool {
        let is_same = there.modified() == Some(self.times.1)
            && there.permissions() == Some(self.mode & 0o7777);
        !preserve || is_same
    }

    /// The mode and the times that are to be kept.
    pub(super) fn kept(&self) -> Attributes {
        Attributes {
            mode: Some(self.mode & 0o7777),
            times: Some(self.times),
            ..Attributes::default()
        }
    }
}
