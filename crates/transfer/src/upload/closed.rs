//! Folders that are there and lack a right of their owner's (`-p` gave one its mode, and a later run has more for it): where they are
//! the account's they get it for as long as something is put into them, and their own mode at the end. Others refuse that, and
//! stay as they are.

use super::folders::OWN_USE;
use super::{Asked, Upload};
use crate::sftp::{Attributes, Reply, Request, StatusCode};

/// The right to reach what is in a folder.
const OWN_SEARCH: u32 = 0o100;
/// Root, whom modes do not bind: what belongs to it is usable as it is, or not ours.
const ROOT: u32 = 0;

/// A folder whose owner may not do everything in it.
pub(super) struct Closed {
    /// Its own permissions.
    mode: u32,
    stage: Stage,
    /// Channels on which its rights have been asked for: what follows there finds them.
    asked: Vec<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Closed,
    Open,
    /// It is not ours.
    Refused,
}

impl Upload {
    /// A folder is there, and has these attributes.
    pub(super) fn note_closed(&mut self, entry: usize, there: &Attributes) {
        let mode = there.permissions().unwrap_or(OWN_USE);
        let is_roots = there.owner.is_some_and(|(user, _)| user == ROOT);
        if mode & OWN_USE == OWN_USE || is_roots || self.closed.contains_key(&entry) {
            return;
        }
        let closed = Closed {
            mode,
            stage: Stage::Closed,
            asked: Vec::new(),
        };
        self.closed.insert(entry, closed);
        // What is in it cannot even be looked at.
        if mode & OWN_SEARCH == 0 {
            self.open_folder(0, entry);
        }
    }

    /// Something is about to be made or renamed, on this channel, in the folder that an entry is in. Servers do what is asked on a
    /// channel in order: nothing has to be waited for.
    pub(super) fn open_folder_of(&mut self, channel: usize, entry: usize) {
        if let Some(folder) = self.plan.entries[entry].folder {
            self.open_folder(channel, folder);
        }
    }

    fn open_folder(&mut self, channel: usize, entry: usize) {
        let Some(it) = self.closed.get_mut(&entry) else {
            return;
        };
        if it.stage != Stage::Closed || it.asked.contains(&channel) {
            return;
        }
        it.asked.push(channel);
        let attributes = Attributes {
            mode: Some(it.mode | OWN_USE),
            ..Attributes::default()
        };
        let path = &self.path(entry);
        let request = Request::Setstat { path, attributes };
        let asked = Asked::FolderOpened { entry };
        self.channels[channel].client.request(request, asked);
    }

    pub(super) fn handle_folder_opened(&mut self, entry: usize, reply: &Reply) {
        let is_ok = matches!(reply, Reply::Status(status) if status.code == StatusCode::Ok);
        if let Some(it) = self.closed.get_mut(&entry) {
            it.stage = match is_ok {
                true => Stage::Open,
                false => Stage::Refused,
            };
        }
    }

    /// Whether things can be made by somebody else, in another session, in the folder that an entry is in.
    pub(super) fn is_folder_open(&self, entry: usize) -> bool {
        let folder = self.plan.entries[entry].folder;
        let closed = folder.and_then(|folder| self.closed.get(&folder));
        closed.is_none_or(|it| it.stage == Stage::Open)
    }

    /// What a folder had before it was opened, or may have been.
    pub(super) fn mode_to_restore(&self, entry: usize) -> Option<u32> {
        let it = self.closed.get(&entry)?;
        (it.stage != Stage::Refused && !it.asked.is_empty()).then_some(it.mode)
    }

    /// Opens the folder that a folder is to be made in, if it is closed or one above it is; `false` if that has been tried often
    /// enough: what was refused may be below what was opened meanwhile.
    pub(super) fn makes_folder_again(&mut self, entry: usize) -> bool {
        let mut closed_above = 0;
        let mut above = self.plan.entries[entry].folder;
        while let Some(folder) = above {
            let closed = self.closed.get(&folder);
            closed_above += usize::from(closed.is_some_and(|it| it.stage != Stage::Refused));
            above = self.plan.entries[folder].folder;
        }
        let tries = self.folder_tries.entry(entry).or_default();
        if *tries >= closed_above {
            return false;
        }
        *tries += 1;
        self.open_folder_of(0, entry);
        true
    }
}
