//! What a client asks for: draft-ietf-secsh-filexfer-02 sections 6 and 8, PROTOCOL section 4.

use sshoal_wire::Put;

use super::{Attributes, Dialect, Extension, Handle};

/// How to open a file (draft section 6.3, pflags).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Open {
    /// To read.
    Read,
    /// To write, a file that must not be there yet (SSH_FXF_CREAT and SSH_FXF_EXCL).
    CreateNew,
    /// To write, a file that is there, from any offset.
    Write,
    /// To write, a block device that nobody else uses: O_EXCL without O_CREAT (open(2)).
    Claim,
}

impl Open {
    fn flags(self) -> u32 {
        const READ: u32 = 0x1;
        const WRITE: u32 = 0x2;
        const CREAT: u32 = 0x8;
        const EXCL: u32 = 0x20;
        match self {
            Open::Read => READ,
            Open::CreateNew => WRITE | CREAT | EXCL,
            Open::Write => WRITE,
            Open::Claim => WRITE | EXCL,
        }
    }
}

/// One request. Paths are octets; those that do not begin with a slash are relative to the user's home.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)] // the fields are those of the draft
pub enum Request<'a> {
    /// SSH_FXP_OPEN.
    Open {
        path: &'a [u8],
        how: Open,
        attributes: Attributes,
    },
    /// SSH_FXP_CLOSE.
    Close { handle: &'a Handle },
    /// SSH_FXP_READ.
    Read {
        handle: &'a Handle,
        offset: u64,
        len: u32,
    },
    /// SSH_FXP_WRITE; its `len` octets of data follow.
    Write {
        handle: &'a Handle,
        offset: u64,
        len: u32,
    },
    /// SSH_FXP_LSTAT: of a symbolic link itself.
    Lstat { path: &'a [u8] },
    /// SSH_FXP_STAT: of what a symbolic link leads to.
    Stat { path: &'a [u8] },
    /// SSH_FXP_FSTAT.
    Fstat { handle: &'a Handle },
    /// SSH_FXP_SETSTAT.
    Setstat {
        path: &'a [u8],
        attributes: Attributes,
    },
    /// SSH_FXP_FSETSTAT.
    Fsetstat {
        handle: &'a Handle,
        attributes: Attributes,
    },
    /// SSH_FXP_OPENDIR.
    Opendir { path: &'a [u8] },
    /// SSH_FXP_READDIR.
    Readdir { handle: &'a Handle },
    /// SSH_FXP_REMOVE: a file or a symbolic link.
    Remove { path: &'a [u8] },
    /// SSH_FXP_MKDIR.
    Mkdir {
        path: &'a [u8],
        attributes: Attributes,
    },
    /// SSH_FXP_RMDIR.
    Rmdir { path: &'a [u8] },
    /// SSH_FXP_REALPATH.
    Realpath { path: &'a [u8] },
    /// SSH_FXP_RENAME: fails if `to` is there.
    Rename { from: &'a [u8], to: &'a [u8] },
    /// SSH_FXP_READLINK.
    Readlink { path: &'a [u8] },
    /// SSH_FXP_SYMLINK; the order of its paths is the server's [`Dialect`].
    Symlink { target: &'a [u8], link: &'a [u8] },
    /// posix-rename@openssh.com: replaces `to` in one step.
    PosixRename { from: &'a [u8], to: &'a [u8] },
    /// hardlink@openssh.com.
    Hardlink { from: &'a [u8], to: &'a [u8] },
    /// fsync@openssh.com.
    Fsync { handle: &'a Handle },
    /// statvfs@openssh.com.
    Statvfs { path: &'a [u8] },
    /// lsetstat@openssh.com: of a symbolic link itself.
    Lsetstat {
        path: &'a [u8],
        attributes: Attributes,
    },
    /// limits@openssh.com.
    Limits,
    /// expand-path@openssh.com: `~` and `~user`.
    ExpandPath { path: &'a [u8] },
    /// users-groups-by-id@openssh.com: names of numbers.
    UsersGroupsById { users: &'a [u32], groups: &'a [u32] },
}

/// What a request may be answered by, beside SSH_FXP_STATUS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    Status,
    Handle,
    Data { at_most: u32 },
    Names,
    Attributes,
    Limits,
    Filesystem,
    Accounts,
}

const EXTENDED: u8 = 200;

impl Request<'_> {
    /// As the draft calls it, for messages to people.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Request::Open { .. } => "OPEN",
            Request::Close { .. } => "CLOSE",
            Request::Read { .. } => "READ",
            Request::Write { .. } => "WRITE",
            Request::Lstat { .. } => "LSTAT",
            Request::Stat { .. } => "STAT",
            Request::Fstat { .. } => "FSTAT",
            Request::Setstat { .. } => "SETSTAT",
            Request::Fsetstat { .. } => "FSETSTAT",
            Request::Opendir { .. } => "OPENDIR",
            Request::Readdir { .. } => "READDIR",
            Request::Remove { .. } => "REMOVE",
            Request::Mkdir { .. } => "MKDIR",
            Request::Rmdir { .. } => "RMDIR",
            Request::Realpath { .. } => "REALPATH",
            Request::Rename { .. } => "RENAME",
            Request::Readlink { .. } => "READLINK",
            Request::Symlink { .. } => "SYMLINK",
            extended => extended.extension().map_or("EXTENDED", Extension::name),
        }
    }

    /// The extension that it is a request of.
    pub(crate) fn extension(&self) -> Option<Extension> {
        Some(match self {
            Request::PosixRename { .. } => Extension::PosixRename,
            Request::Hardlink { .. } => Extension::Hardlink,
            Request::Fsync { .. } => Extension::Fsync,
            Request::Statvfs { .. } => Extension::Statvfs,
            Request::Lsetstat { .. } => Extension::Lsetstat,
            Request::Limits => Extension::Limits,
            Request::ExpandPath { .. } => Extension::ExpandPath,
            Request::UsersGroupsById { .. } => Extension::UsersGroupsById,
            _ => return None,
        })
    }

    /// Octets of a file that it carries, or asks for.
    pub(crate) fn contents(&self) -> usize {
        match self {
            Request::Read { len, .. } | Request::Write { len, .. } => *len as usize,
            _ => 0,
        }
    }

    pub(crate) fn expected(&self) -> Expected {
        match self {
            Request::Open { .. } | Request::Opendir { .. } => Expected::Handle,
            Request::Read { len, .. } => Expected::Data { at_most: *len },
            Request::Lstat { .. } | Request::Stat { .. } | Request::Fstat { .. } => {
                Expected::Attributes
            }
            Request::Readdir { .. }
            | Request::Realpath { .. }
            | Request::Readlink { .. }
            | Request::ExpandPath { .. } => Expected::Names,
            Request::Statvfs { .. } => Expected::Filesystem,
            Request::Limits => Expected::Limits,
            Request::UsersGroupsById { .. } => Expected::Accounts,
            _ => Expected::Status,
        }
    }

    fn number(&self) -> u8 {
        match self {
            Request::Open { .. } => 3,
            Request::Close { .. } => 4,
            Request::Read { .. } => 5,
            Request::Write { .. } => 6,
            Request::Lstat { .. } => 7,
            Request::Fstat { .. } => 8,
            Request::Setstat { .. } => 9,
            Request::Fsetstat { .. } => 10,
            Request::Opendir { .. } => 11,
            Request::Readdir { .. } => 12,
            Request::Remove { .. } => 13,
            Request::Mkdir { .. } => 14,
            Request::Rmdir { .. } => 15,
            Request::Realpath { .. } => 16,
            Request::Stat { .. } => 17,
            Request::Rename { .. } => 18,
            Request::Readlink { .. } => 19,
            Request::Symlink { .. } => 20,
            _ => EXTENDED,
        }
    }

    /// Octets that belong to the packet and follow what [`encode`](Self::encode) appends.
    fn data_len(&self) -> u32 {
        match *self {
            Request::Write { len, .. } => len,
            _ => 0,
        }
    }

    /// Appends the packet, its length before it.
    pub(crate) fn encode(&self, id: u32, dialect: Dialect, out: &mut Vec<u8>) {
        let start = out.len();
        out.put_u32(0);
        out.put_u8(self.number());
        out.put_u32(id);
        if let Some(extension) = self.extension() {
            out.put_string(extension.name().as_bytes());
        }
        self.encode_fields(dialect, out);
        let len = (out.len() - start - 4) as u32 + self.data_len();
        out[start..start + 4].copy_from_slice(&len.to_be_bytes());
    }

    fn encode_fields(&self, dialect: Dialect, out: &mut Vec<u8>) {
        match *self {
            Request::Open {
                path,
                how,
                attributes,
            } => {
                out.put_string(path);
                out.put_u32(how.flags());
                attributes.encode(out);
            }
            Request::Close { handle }
            | Request::Fstat { handle }
            | Request::Readdir { handle }
            | Request::Fsync { handle } => out.put_string(handle.octets()),
            Request::Read {
                handle,
                offset,
                len,
            }
            | Request::Write {
                handle,
                offset,
                len,
            } => {
                out.put_string(handle.octets());
                out.put_u64(offset);
                out.put_u32(len);
            }
            Request::Lstat { path }
            | Request::Stat { path }
            | Request::Opendir { path }
            | Request::Remove { path }
            | Request::Rmdir { path }
            | Request::Realpath { path }
            | Request::Readlink { path }
            | Request::Statvfs { path }
            | Request::ExpandPath { path } => out.put_string(path),
            Request::Setstat { path, attributes }
            | Request::Mkdir { path, attributes }
            | Request::Lsetstat { path, attributes } => {
                out.put_string(path);
                attributes.encode(out);
            }
            Request::Fsetstat { handle, attributes } => {
                out.put_string(handle.octets());
                attributes.encode(out);
            }
            Request::Rename { from, to }
            | Request::PosixRename { from, to }
            | Request::Hardlink { from, to } => {
                out.put_string(from);
                out.put_string(to);
            }
            Request::Symlink { target, link } => {
                let (first, second) = match dialect {
                    Dialect::OpenSsh => (target, link),
                    Dialect::Draft => (link, target),
                };
                out.put_string(first);
                out.put_string(second);
            }
            Request::Limits => {}
            Request::UsersGroupsById { users, groups } => {
                for numbers in [users, groups] {
                    out.put_u32(4 * numbers.len() as u32);
                    numbers.iter().for_each(|&number| out.put_u32(number));
                }
            }
        }
    }
}
