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

/// A folder that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Place {
    /// The target, where the user has named a folder to put things into.
    Target,
    /// An entry.
    Entry(usize),
}

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
    pub(super) fn note_closed(&mut self, place: Place, there: &Attributes) {
        let mode = there.permissions().unwrap_or(OWN_USE);
        let is_roots = there.owner.is_some_and(|(user, _)| user == ROOT);
        if mode & OWN_USE == OWN_USE || is_roots || self.closed.contains_key(&place) {
            return;
        }
        let closed = Closed {
            mode,
            stage: Stage::Closed,
            asked: Vec::new(),
        };
        self.closed.insert(place, closed);
        // Whether anything goes into the target is not known yet.
        if place != Place::Target {
            self.make_reachable(place);
        }
    }

    /// What is in a folder that lacks the right to search it cannot even be looked at.
    pub(super) fn make_reachable(&mut self, place: Place) {
        let closed = self.closed.get(&place);
        if closed.is_some_and(|it| it.mode & OWN_SEARCH == 0) {
            self.open_folder(0, place);
        }
    }

    /// The folder that an entry is in, if it is the target or in it.
    fn place_above(&self, entry: usize) -> Option<Place> {
        let entry = &self.plan.entries[entry];
        match entry.folder {
            Some(folder) => Some(Place::Entry(folder)),
            // Without a name it is the target itself.
            None => (!self.plan.roots[entry.root].name.is_empty()).then_some(Place::Target),
        }
    }

    /// Something is about to be made or renamed, on this channel, in the folder that an entry is in. Servers do what is asked on a
    /// channel in order: nothing has to be waited for.
    pub(super) fn open_folder_of(&mut self, channel: usize, entry: usize) {
        if let Some(place) = self.place_above(entry) {
            self.open_folder(channel, place);
        }
    }

    pub(super) fn open_folder(&mut self, channel: usize, place: Place) {
        let Some(it) = self.closed.get_mut(&place) else {
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
        let path = &self.path_of(place);
        let request = Request::Setstat { path, attributes };
        let asked = Asked::FolderOpened { place };
        self.channels[channel].client.request(request, asked);
    }

    /// Where it is on the host.
    pub(super) fn path_of(&self, place: Place) -> Vec<u8> {
        match place {
            Place::Target => self.small.base.clone(),
            Place::Entry(entry) => self.path(entry),
        }
    }

    pub(super) fn handle_folder_opened(&mut self, place: Place, reply: &Reply) {
        let is_ok = matches!(reply, Reply::Status(status) if status.code == StatusCode::Ok);
        if let Some(it) = self.closed.get_mut(&place) {
            it.stage = match is_ok {
                true => Stage::Open,
                false => Stage::Refused,
            };
        }
    }

    /// Whether things can be made by somebody else, in another session, in the folder that an entry is in.
    pub(super) fn is_folder_open(&self, entry: usize) -> bool {
        let place = self.place_above(entry);
        let closed = place.and_then(|place| self.closed.get(&place));
        closed.is_none_or(|it| it.stage == Stage::Open)
    }

    /// What a folder had before it was opened, or may have been.
    pub(super) fn mode_to_restore(&self, place: Place) -> Option<u32> {
        let it = self.closed.get(&place)?;
        (it.stage != Stage::Refused && !it.asked.is_empty()).then_some(it.mode)
    }

    /// Opens the folder that a folder is to be made in, if it is closed or one above it is; `false` if that has been tried often
    /// enough: what was refused may be below what was opened meanwhile.
    pub(super) fn makes_folder_again(&mut self, entry: usize) -> bool {
        let mut closed_above = 0;
        let mut above = self.place_above(entry);
        while let Some(place) = above {
            let closed = self.closed.get(&place);
            closed_above += usize::from(closed.is_some_and(|it| it.stage != Stage::Refused));
            above = match place {
                Place::Entry(folder) => self.place_above(folder),
                Place::Target => None,
            };
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
