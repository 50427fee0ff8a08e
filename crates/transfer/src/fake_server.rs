//! An SFTP server in memory, for tests: it answers like OpenSSH's, and badly where it is told to.

use std::collections::BTreeMap;

use sshoal_wire::{Decoder, Put};

use crate::sftp::Attributes;

mod listing;
mod nodes;
mod rights;

pub(crate) use listing::{Listings, Readdirs};

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Node {
    Folder,
    File(Vec<u8>),
    Link(Vec<u8>),
    /// A block device.
    Device(Vec<u8>),
}

/// Tells something of an old name and a new one.
pub(crate) type OfNames = fn(&[u8], &[u8]) -> bool;

/// A server's files, and how it behaves.
#[derive(Default)]
pub(crate) struct FakeServer {
    pub(crate) nodes: BTreeMap<Vec<u8>, Node>,
    pub(crate) modes: BTreeMap<Vec<u8>, (u32, u32)>,
    /// Times of last access; those of modification where there is none.
    pub(crate) accessed: BTreeMap<Vec<u8>, u32>,
    /// Whom things belong to, and whom what is made belongs to; without the latter the server tells of no owners.
    pub(crate) owners: BTreeMap<Vec<u8>, (u32, u32)>,
    pub(crate) account: Option<(u32, u32)>,
    /// The account is not root.
    pub(crate) refuses_owners: bool,
    /// Modes bind the account, whose everything is.
    pub(crate) modes_bind: bool,
    /// Files that have several names: a number for each.
    pub(crate) inodes: BTreeMap<Vec<u8>, usize>,
    /// What users and groups are called, if the server says that by an extension.
    pub(crate) names: Option<Vec<(u32, &'static str)>>,
    /// What attributes have been set, in order.
    pub(crate) set: Vec<(Vec<u8>, Attributes)>,
    /// Octets that may still be written.
    pub(crate) room: Option<usize>,
    /// That there is no more is told once: then somebody has made room, but for what is under way.
    pub(crate) tells_room_once: bool,
    /// Without OpenSSH's extensions.
    pub(crate) is_plain: bool,
    /// Which renames it refuses, by the old name and the new one.
    pub(crate) refuses_renames: Option<OfNames>,
    /// Times of last access are not kept.
    pub(crate) forgets_access: bool,
    /// When contents are written; if none, that changes no time.
    pub(crate) written_at: Option<u32>,
    /// What an OPEN of what is there leads to in its place: a link has that for a moment.
    pub(crate) opens_instead: Option<Vec<u8>>,
    /// The one of them that leads to what is there all the same, counted from 1.
    pub(crate) opens_right: usize,
    /// How often what is there was opened to be written.
    pub(crate) opened_again: usize,
    /// FSTAT tells of another file than LSTAT.
    pub(crate) changes_when_opened: bool,
    /// So many times attributes cannot be set.
    pub(crate) refuses_attributes: usize,
    pub(crate) refuses_fsync: bool,
    /// The disk never has done what it is to do: FSYNC is not answered.
    pub(crate) holds_fsync: bool,
    /// Devices are mounted.
    pub(crate) holds_devices: bool,
    /// READ gives no more than so many octets.
    pub(crate) short_reads: Option<usize>,
    /// Names that READDIR gives beside those that are there.
    pub(crate) bad_names: Vec<Vec<u8>>,
    /// When something is looked at without links being followed, this is put in the place of what is there.
    pub(crate) replaces_when_looked_at: Option<(Vec<u8>, Node)>,
    /// The account's home, if it has one.
    pub(crate) home: Option<Vec<u8>>,
    /// When a folder is listed first, this is put in the place of what is there.
    pub(crate) replaces_when_listed: Option<(Vec<u8>, Node)>,
    /// How folders are listed, and how often that was asked for.
    pub(crate) listings: Listings,
    /// How many handles are open on all channels.
    pub(crate) open: usize,
    /// Links that were followed by an OPEN.
    pub(crate) links_opened: usize,
    /// The largest WRITE.
    pub(crate) largest_write: usize,
}

/// One channel to it.
#[derive(Default)]
pub(crate) struct FakeChannel {
    /// Its files are others under the same names: FSTAT tells a later time.
    pub(crate) sees_others: bool,
    input: Vec<u8>,
    /// Paths, and how many of a folder's names have been told.
    handles: BTreeMap<u32, (Vec<u8>, usize)>,
    next: u32,
}

const OK: u32 = 0;
const EOF: u32 = 1;
const MISSING: u32 = 2;
const DENIED: u32 = 3;
const FAILURE: u32 = 4;
const UNSUPPORTED: u32 = 8;
/// When everything was modified.
pub(crate) const MODIFIED: u32 = 1_000_000;

impl FakeServer {
    pub(crate) fn with(nodes: &[(&[u8], Node)]) -> FakeServer {
        let nodes = nodes
            .iter()
            .map(|(path, node)| (path.to_vec(), node.clone()));
        FakeServer {
            nodes: nodes.collect(),
            ..FakeServer::default()
        }
    }

    pub(crate) fn file(&self, path: &[u8]) -> Option<&[u8]> {
        match self.nodes.get(path) {
            Some(Node::File(contents)) => Some(contents),
            _ => None,
        }
    }

    /// A channel's connection ends: its handles go with it.
    pub(crate) fn hang_up(&mut self, channel: &mut FakeChannel) {
        self.open -= channel.handles.len();
        *channel = FakeChannel::default();
    }

    /// Takes what a client sent on a channel; returns the answers.
    pub(crate) fn handle(&mut self, channel: &mut FakeChannel, octets: &[u8]) -> Vec<u8> {
        channel.input.extend_from_slice(octets);
        let mut answers = Vec::new();
        while let Some((head, rest)) = channel.input.split_first_chunk() {
            let len = u32::from_be_bytes(*head) as usize;
            let Some(packet) = rest.get(..len).map(<[u8]>::to_vec) else {
                break;
            };
            channel.input.drain(..4 + len);
            let mut body = Vec::new();
            self.answer(channel, &packet, &mut body)
                .expect("a client's packet");
            answers.push((packet[0], body));
        }
        self.listings.arrange(&mut answers);
        let mut out = Vec::new();
        for (_, body) in answers.iter().filter(|(_, body)| !body.is_empty()) {
            out.put_string(body);
        }
        out
    }

    fn answer(
        &mut self,
        channel: &mut FakeChannel,
        packet: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), sshoal_wire::DecodeError> {
        let mut from = Decoder::new(packet);
        let kind = from.u8()?;
        if kind == 1 {
            out.put_u8(2);
            out.put_u32(3);
            if !self.is_plain {
                for (name, version) in [
                    ("posix-rename@openssh.com", "1"),
                    ("statvfs@openssh.com", "2"),
                    ("hardlink@openssh.com", "1"),
                    ("fsync@openssh.com", "1"),
                    ("limits@openssh.com", "1"),
                ] {
                    out.put_string(name.as_bytes());
                    out.put_string(version.as_bytes());
                }
                let further = [
                    (self.account.is_some(), "lsetstat@openssh.com"),
                    (self.names.is_some(), "users-groups-by-id@openssh.com"),
                ];
                for (_, name) in further.into_iter().filter(|(is_there, _)| *is_there) {
                    out.put_string(name.as_bytes());
                    out.put_string(b"1");
                }
            }
            return Ok(());
        }
        let id = from.u32()?;
        match kind {
            3 => self.open(channel, id, &mut from, out)?,
            4 => {
                let handle = number(from.string()?);
                let known = channel.handles.remove(&handle).is_some();
                self.open -= usize::from(known);
                status(out, id, if known { OK } else { FAILURE });
            }
            5 => self.read(channel, id, &mut from, out)?,
            6 => self.write(channel, id, &mut from, out)?,
            7 | 17 => {
                let path = from.string()?;
                // Sources are looked at with links followed, and then as they are.
                if kind == 7
                    && let Some((path, node)) = self.replaces_when_looked_at.take()
                {
                    self.nodes.insert(path, node);
                }
                match self.attributes(path) {
                    _ if !self.reaches(path) => status(out, id, DENIED),
                    Some(attributes) => attrs(out, id, &attributes),
                    None => status(out, id, MISSING),
                }
            }
            8 => {
                let (path, _) = channel.handles[&number(from.string()?)].clone();
                match self.attributes(&path) {
                    Some(mut attributes) => {
                        if self.changes_when_opened {
                            attributes.owner = Some((7, 7));
                        }
                        if channel.sees_others {
                            attributes.times = Some((MODIFIED + 1, MODIFIED + 1));
                        }
                        attrs(out, id, &attributes);
                    }
                    None => status(out, id, FAILURE),
                }
            }
            9 | 10 if self.refuses_attributes > 0 => {
                self.refuses_attributes -= 1;
                status(out, id, FAILURE);
            }
            9 | 10 => {
                let mut path = from.string()?.to_vec();
                if kind == 10 {
                    path = channel.handles[&number(&path)].0.clone();
                }
                let set = Attributes::decode(&mut from)?;
                let answer = self.set_attributes(path, set);
                status(out, id, answer);
            }
            11 => self.open_folder(channel, id, from.string()?, out),
            12 => self.read_folder(channel, id, from.string()?, out),
            13 => {
                let path = from.string()?;
                let is_there = !matches!(self.nodes.get(path), None | Some(Node::Folder));
                let is_done = is_there && self.may_change(path);
                if is_done {
                    self.nodes.remove(path);
                    self.owners.remove(path);
                    self.accessed.remove(path);
                    self.inodes.remove(path);
                }
                let refusal = if is_there { DENIED } else { MISSING };
                status(out, id, if is_done { OK } else { refusal });
            }
            14 => {
                let path = from.string()?.to_vec();
                let mode = Attributes::decode(&mut from)?.mode;
                let answer = self.make_folder(path, mode);
                status(out, id, answer);
            }
            15 => {
                let path = from.string()?.to_vec();
                let inside = [&path, &b"/"[..]].concat();
                let is_empty = !self.nodes.keys().any(|it| it.starts_with(&inside));
                let is_there = self.nodes.get(&path) == Some(&Node::Folder);
                let is_done = is_there && is_empty && self.may_change(&path);
                if is_done {
                    self.nodes.remove(&path);
                }
                status(out, id, if is_done { OK } else { FAILURE });
            }
            16 => {
                let path = from.string()?;
                let home = self.home.clone().filter(|_| path == b".");
                let path = home.unwrap_or_else(|| path.to_vec());
                names(out, id, &[(path, Attributes::default())]);
            }
            18 => {
                let (old, new) = (from.string()?, from.string()?);
                let is_free = !self.nodes.contains_key(new);
                let is_refused = self.refuses_renames.is_some_and(|it| it(old, new));
                // As sftp-server.c (process_rename) looks for it first.
                let is_there = self.nodes.contains_key(old);
                let is_done = is_free && !is_refused && self.rename(old, new);
                let refusal = if is_there { FAILURE } else { MISSING };
                status(out, id, if is_done { OK } else { refusal });
            }
            19 => match self.nodes.get(from.string()?) {
                Some(Node::Link(target)) => {
                    names(out, id, &[(target.clone(), Attributes::default())])
                }
                _ => status(out, id, FAILURE),
            },
            20 => {
                let (target, link) = (from.string()?.to_vec(), from.string()?.to_vec());
                let is_done = self.may_change(&link);
                if is_done {
                    self.nodes.insert(link, Node::Link(target));
                }
                status(out, id, if is_done { OK } else { DENIED });
            }
            200 => self.extended(id, &mut from, out)?,
            _ => status(out, id, UNSUPPORTED),
        }
        Ok(())
    }

    fn extended(
        &mut self,
        id: u32,
        from: &mut Decoder<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), sshoal_wire::DecodeError> {
        match from.string()? {
            b"limits@openssh.com" => {
                out.put_u8(201);
                out.put_u32(id);
                for limit in [262_144, 261_120, 261_120, 100] {
                    out.put_u64(limit);
                }
            }
            b"lsetstat@openssh.com" => {
                let path = from.string()?.to_vec();
                let set = Attributes::decode(from)?;
                let answer = self.set_attributes(path, set);
                status(out, id, answer);
            }
            b"users-groups-by-id@openssh.com" => {
                out.put_u8(201);
                out.put_u32(id);
                for _ in 0..2 {
                    let mut names = Vec::new();
                    for number in from.string()?.chunks(4).map(number) {
                        let known = self.names.iter().flatten().find(|(it, _)| *it == number);
                        names.put_string(known.map_or("", |it| it.1).as_bytes());
                    }
                    out.put_string(&names);
                }
            }
            b"posix-rename@openssh.com" => {
                let (old, new) = (from.string()?, from.string()?);
                let is_done = self.rename(old, new);
                status(out, id, if is_done { OK } else { MISSING });
            }
            b"hardlink@openssh.com" => {
                let (old, new) = (from.string()?.to_vec(), from.string()?.to_vec());
                let node = self.nodes.get(&old).cloned();
                let node = node.filter(|_| self.may_change(&new));
                status(out, id, if node.is_some() { OK } else { MISSING });
                if let Some(node) = node {
                    self.link(&old, &new);
                    self.nodes.insert(new, node);
                }
            }
            b"fsync@openssh.com" if self.holds_fsync => {}
            b"fsync@openssh.com" => {
                status(out, id, if self.refuses_fsync { FAILURE } else { OK });
            }
            b"statvfs@openssh.com" => {
                out.put_u8(201);
                out.put_u32(id);
                let room = self.room.unwrap_or(1 << 40) as u64;
                if self.tells_room_once {
                    self.room = None;
                }
                for number in [4096, 1, 1 << 40, room, room, 100, 50, 50, 0, 0, 255] {
                    out.put_u64(number);
                }
            }
            _ => status(out, id, UNSUPPORTED),
        }
        Ok(())
    }

    fn open(
        &mut self,
        channel: &mut FakeChannel,
        id: u32,
        from: &mut Decoder<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), sshoal_wire::DecodeError> {
        let mut path = from.string()?.to_vec();
        let flags = from.u32()?;
        let (creates, only_new) = (flags & 8 != 0, flags & 0x20 != 0);
        let mode = Attributes::decode(from)?.mode;
        if !self.may_open(&path, flags) {
            status(out, id, DENIED);
            return Ok(());
        }
        if flags == 2 {
            self.opened_again += 1;
            let instead = self.opens_instead.clone();
            let instead = instead.filter(|_| self.opened_again != self.opens_right);
            path = instead.unwrap_or(path);
        }
        let there = self.nodes.get(&path);
        let is_followed = !only_new && matches!(there, Some(Node::Link(_)));
        self.links_opened += usize::from(is_followed);
        match there {
            Some(Node::File(_)) if !only_new => {}
            Some(Node::Device(_)) if !(creates || only_new && self.holds_devices) => {}
            None if creates => {
                self.nodes.insert(path.clone(), Node::File(Vec::new()));
                self.note_mode(&path, mode);
            }
            None => {
                status(out, id, MISSING);
                return Ok(());
            }
            Some(_) => {
                status(out, id, FAILURE);
                return Ok(());
            }
        }
        self.give_handle(channel, id, path, out);
        Ok(())
    }

    fn give_handle(
        &mut self,
        channel: &mut FakeChannel,
        id: u32,
        path: Vec<u8>,
        out: &mut Vec<u8>,
    ) {
        channel.next += 1;
        self.open += 1;
        channel.handles.insert(channel.next, (path, 0));
        out.put_u8(102);
        out.put_u32(id);
        out.put_string(&channel.next.to_be_bytes());
    }

    fn read(
        &mut self,
        channel: &mut FakeChannel,
        id: u32,
        from: &mut Decoder<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), sshoal_wire::DecodeError> {
        let (path, _) = &channel.handles[&number(from.string()?)];
        let (offset, len) = (from.u64()? as usize, from.u32()? as usize);
        let len = len.min(self.short_reads.unwrap_or(len));
        match self.file(path).and_then(|contents| contents.get(offset..)) {
            Some(rest) if !rest.is_empty() => {
                out.put_u8(103);
                out.put_u32(id);
                out.put_string(&rest[..rest.len().min(len)]);
            }
            _ => status(out, id, EOF),
        }
        Ok(())
    }

    fn write(
        &mut self,
        channel: &mut FakeChannel,
        id: u32,
        from: &mut Decoder<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), sshoal_wire::DecodeError> {
        let (path, _) = channel.handles[&number(from.string()?)].clone();
        let (offset, data) = (from.u64()? as usize, from.string()?);
        self.largest_write = self.largest_write.max(data.len());
        if let Some(now) = self.written_at {
            let mode = self.modes.get(&path).map_or(0, |(mode, _)| *mode);
            self.modes.insert(path.clone(), (mode, now));
        }
        if let Some(room) = &mut self.room {
            if *room < data.len() {
                status(out, id, FAILURE);
                return Ok(());
            }
            *room -= data.len();
        }
        if let Some(Node::Device(contents)) = self.nodes.get_mut(&path) {
            contents[offset..offset + data.len()].copy_from_slice(data);
        }
        if let Some(Node::File(contents)) = self.nodes.get_mut(&path) {
            contents.resize(contents.len().max(offset + data.len()), 0);
            contents[offset..offset + data.len()].copy_from_slice(data);
        }
        status(out, id, OK);
        Ok(())
    }
}

fn number(handle: &[u8]) -> u32 {
    u32::from_be_bytes(handle.try_into().expect("a handle of ours"))
}

fn status(out: &mut Vec<u8>, id: u32, code: u32) {
    out.put_u8(101);
    out.put_u32(id);
    out.put_u32(code);
    out.put_string(b"");
    out.put_string(b"");
}

fn attrs(out: &mut Vec<u8>, id: u32, attributes: &Attributes) {
    out.put_u8(105);
    out.put_u32(id);
    attributes.encode(out);
}

fn names(out: &mut Vec<u8>, id: u32, names: &[(Vec<u8>, Attributes)]) {
    out.put_u8(104);
    out.put_u32(id);
    out.put_u32(names.len() as u32);
    for (name, attributes) in names {
        out.put_string(name);
        out.put_string(b"");
        attributes.encode(out);
    }
}
