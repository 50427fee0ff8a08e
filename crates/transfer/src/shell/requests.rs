//! A client's requests, read as an SFTP server reads them: draft-ietf-secsh-filexfer-02 sections 6 and 8, PROTOCOL section 4.

use std::collections::VecDeque;

use sshoal_wire::{DecodeError, Decoder};

use super::ShellError;
use crate::sftp::{Attributes, Packets, SftpError};

/// What is done of OpenSSH's extensions, with their versions.
pub(super) const EXTENSIONS: [(&[u8], &[u8]); 6] = [
    (b"posix-rename@openssh.com", b"1"),
    (b"statvfs@openssh.com", b"2"),
    (b"hardlink@openssh.com", b"1"),
    (b"fsync@openssh.com", b"1"),
    (b"lsetstat@openssh.com", b"1"),
    (b"limits@openssh.com", b"1"),
];
/// What a request takes beside its octets of a file.
const OVERHEAD: usize = 256;

/// What is asked for; handles are ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wanted {
    /// STAT or LSTAT.
    Look {
        follow: bool,
        path: Vec<u8>,
    },
    LookOpen(u32),
    OpenRead(Vec<u8>),
    OpenWrite(Vec<u8>),
    OpenNew(Vec<u8>, u32),
    OpenFolder(Vec<u8>),
    Names(u32),
    Close(u32),
    Limits,
    Read {
        handle: u32,
        offset: u64,
        len: u32,
    },
    Write {
        handle: u32,
        offset: u64,
        data: Vec<u8>,
    },
    Set {
        path: Vec<u8>,
        attributes: Attributes,
        is_link: bool,
    },
    SetOpen(u32, Attributes),
    Sync(u32),
    Remove(Vec<u8>),
    MakeFolder(Vec<u8>, u32),
    RemoveFolder(Vec<u8>),
    Rename {
        from: Vec<u8>,
        to: Vec<u8>,
        replaces: bool,
    },
    Symlink {
        target: Vec<u8>,
        link: Vec<u8>,
    },
    Hardlink {
        from: Vec<u8>,
        to: Vec<u8>,
    },
    LinkTarget(Vec<u8>),
    WholePath(Vec<u8>),
    Filesystem(Vec<u8>),
    /// What is not done here.
    Nothing,
}

impl Wanted {
    fn moves(&self) -> bool {
        matches!(self, Wanted::Read { .. } | Wanted::Write { .. })
    }

    fn takes(&self) -> usize {
        match self {
            Wanted::Write { data, .. } => data.len() + OVERHEAD,
            _ => OVERHEAD,
        }
    }
}

/// Requests in their order, with their identifiers.
#[derive(Debug, Default)]
pub(super) struct Requests {
    packets: Packets,
    queue: VecDeque<(u32, Wanted)>,
    held: usize,
}

impl Requests {
    /// Octets that those take which wait.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    pub(super) fn handle(&mut self, mut octets: &[u8]) -> Result<(), ShellError> {
        while !octets.is_empty() {
            let Some(packet) = self.packets.next(&mut octets)? else {
                continue;
            };
            if let Some(request) = read(&packet).map_err(SftpError::from)? {
                self.held += request.1.takes();
                self.queue.push_back(request);
            }
        }
        Ok(())
    }

    /// The next one, unless it moves octets of a file and may not.
    pub(super) fn pop(&mut self, may_move: bool) -> Option<(u32, Wanted)> {
        self.pop_if(|wanted| may_move || !wanted.moves())
    }

    /// One more path to be looked at in the same way.
    pub(super) fn pop_look(&mut self, follows: bool, may: bool) -> Option<(u32, Vec<u8>)> {
        let is_alike =
            |it: &Wanted| may && matches!(it, Wanted::Look { follow, .. } if *follow == follows);
        match self.pop_if(is_alike)? {
            (id, Wanted::Look { path, .. }) => Some((id, path)),
            _ => None,
        }
    }

    /// One more part of a file that begins there.
    pub(super) fn pop_read(&mut self, of: u32, at: u64) -> Option<(u32, u32)> {
        let follows = |it: &Wanted| matches!(it, Wanted::Read { handle, offset, .. } if (*handle, *offset) == (of, at));
        match self.pop_if(follows)? {
            (id, Wanted::Read { len, .. }) => Some((id, len)),
            _ => None,
        }
    }

    /// Octets for a file that go there.
    pub(super) fn pop_write(&mut self, of: u32, at: u64) -> Option<(u32, Vec<u8>)> {
        let follows = |it: &Wanted| matches!(it, Wanted::Write { handle, offset, .. } if (*handle, *offset) == (of, at));
        match self.pop_if(follows)? {
            (id, Wanted::Write { data, .. }) => Some((id, data)),
            _ => None,
        }
    }

    /// Requests that come before all others again.
    pub(super) fn put_back(&mut self, requests: Vec<(u32, Wanted)>) {
        for request in requests.into_iter().rev() {
            self.held += request.1.takes();
            self.queue.push_front(request);
        }
    }

    fn pop_if(&mut self, is_wanted: impl FnOnce(&Wanted) -> bool) -> Option<(u32, Wanted)> {
        let (_, wanted) = self.queue.front()?;
        if !is_wanted(wanted) {
            return None;
        }
        self.held -= wanted.takes();
        self.queue.pop_front()
    }
}

/// One request; `None` for SSH_FXP_INIT, which the greeting answers.
fn read(packet: &[u8]) -> Result<Option<(u32, Wanted)>, DecodeError> {
    let mut from = Decoder::named("SFTP request", packet);
    let kind = from.field("type").u8()?;
    if kind == 1 {
        return Ok(None);
    }
    let id = from.field("request-id").u32()?;
    let wanted = match kind {
        3 => {
            let path = from.field("filename").string()?.to_vec();
            let flags = from.field("pflags").u32()?;
            let attributes = Attributes::decode(&mut from)?;
            match flags {
                0x1 => Wanted::OpenRead(path),
                0x2 => Wanted::OpenWrite(path),
                0x2a => Wanted::OpenNew(path, attributes.permissions().unwrap_or(0o666) & 0o777),
                // No program opens a block device that must not be in use.
                _ => Wanted::Nothing,
            }
        }
        4 => Wanted::Close(handle(&mut from)?),
        5 => Wanted::Read {
            handle: handle(&mut from)?,
            offset: from.field("offset").u64()?,
            len: from.field("len").u32()?,
        },
        6 => Wanted::Write {
            handle: handle(&mut from)?,
            offset: from.field("offset").u64()?,
            data: from.field("data").string()?.to_vec(),
        },
        7 | 17 => Wanted::Look {
            follow: kind == 17,
            path: path(&mut from)?,
        },
        8 => Wanted::LookOpen(handle(&mut from)?),
        9 => Wanted::Set {
            path: path(&mut from)?,
            attributes: Attributes::decode(&mut from)?,
            is_link: false,
        },
        10 => Wanted::SetOpen(handle(&mut from)?, Attributes::decode(&mut from)?),
        11 => Wanted::OpenFolder(path(&mut from)?),
        12 => Wanted::Names(handle(&mut from)?),
        13 => Wanted::Remove(path(&mut from)?),
        14 => {
            let path = path(&mut from)?;
            let mode = Attributes::decode(&mut from)?.permissions();
            Wanted::MakeFolder(path, mode.unwrap_or(0o777) & 0o777)
        }
        15 => Wanted::RemoveFolder(path(&mut from)?),
        16 => Wanted::WholePath(path(&mut from)?),
        18 => Wanted::Rename {
            from: path(&mut from)?,
            to: path(&mut from)?,
            replaces: false,
        },
        19 => Wanted::LinkTarget(path(&mut from)?),
        20 => Wanted::Symlink {
            target: path(&mut from)?,
            link: path(&mut from)?,
        },
        200 => extended(&mut from)?,
        _ => Wanted::Nothing,
    };
    Ok(Some((id, wanted)))
}

fn extended(from: &mut Decoder<'_>) -> Result<Wanted, DecodeError> {
    Ok(match from.field("extended-request").string()? {
        b"posix-rename@openssh.com" => Wanted::Rename {
            from: path(from)?,
            to: path(from)?,
            replaces: true,
        },
        b"hardlink@openssh.com" => Wanted::Hardlink {
            from: path(from)?,
            to: path(from)?,
        },
        b"fsync@openssh.com" => Wanted::Sync(handle(from)?),
        b"statvfs@openssh.com" => Wanted::Filesystem(path(from)?),
        b"lsetstat@openssh.com" => Wanted::Set {
            path: path(from)?,
            attributes: Attributes::decode(from)?,
            is_link: true,
        },
        b"limits@openssh.com" => Wanted::Limits,
        _ => Wanted::Nothing,
    })
}

fn path(from: &mut Decoder<'_>) -> Result<Vec<u8>, DecodeError> {
    Ok(from.field("path").string()?.to_vec())
}

/// A handle of ours; what is none is the one that is never open.
fn handle(from: &mut Decoder<'_>) -> Result<u32, DecodeError> {
    let octets = from.field("handle").string()?;
    Ok(octets.try_into().map_or(0, u32::from_be_bytes))
}
