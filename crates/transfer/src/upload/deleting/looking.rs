//! The first pass, and listings of what goes: which names in folders are surplus, and what keeps everything from being deleted.

use super::super::closed::Place;
use super::{DeleteStep, Folder, NAME};
use crate::Trouble;
use crate::path::{is_plain_name, join};
use crate::sftp::{FileType, Name, Reply, Request, StatusCode};
use crate::surplus::Surplus;
use crate::trouble::shown;
use crate::upload::Upload;

/// Folders listed at a time.
const LISTINGS: usize = 16;
/// Names that a host may tell in all, and octets of those that are surplus and remembered.
const MAX_NAMES: usize = 5_000_000;
const MAX_OCTETS: usize = 64 * 1024 * 1024;

impl Upload {
    /// Begins listings while there is room, and reads on in those that are begun.
    pub(super) fn list_surplus(&mut self, surplus: &Surplus) {
        let listed = |it: &&Folder| !it.is_listed;
        let mut listings = self.deleting.open.values().filter(listed).count();
        while listings < LISTINGS
            && self.has_room()
            && let Some(folder) = self.deleting.to_list.pop()
        {
            listings += 1;
            self.deleting.next_id += 1;
            let id = self.deleting.next_id;
            let path = &self.path_at(&folder.place);
            // The target may be a link, which the user has named; what goes has been looked at.
            let is_known = folder.place.is_empty() || folder.goes_from.is_some();
            self.deleting.open.insert(id, folder);
            match is_known {
                true => self.open_listing(id, surplus),
                false => self.ask_about(id, Request::Lstat { path }, DeleteStep::LookAtIt),
            }
        }
        for id in self.open_folders() {
            self.read_surplus(id, surplus);
        }
    }

    fn open_listing(&mut self, id: u64, surplus: &Surplus) {
        let Some(folder) = self.deleting.open.get(&id) else {
            return;
        };
        let path = &self.path_at(&folder.place);
        let entry = surplus.folder(&folder.place);
        if let Some(entry) = entry.filter(|_| !surplus.is_only_told()) {
            self.open_folder(0, Place::Entry(entry));
        }
        self.ask_about(id, Request::Opendir { path }, DeleteStep::List);
    }

    fn read_surplus(&mut self, id: u64, surplus: &Surplus) {
        let has_room = self.has_room();
        let Some(folder) = self.deleting.open.get_mut(&id) else {
            return;
        };
        let Some(handle) = folder.handle.clone() else {
            return;
        };
        if folder.reads.end.is_some() {
            if folder.reads.unanswered == 0 {
                folder.handle = None;
                let trouble = folder.reads.end.take().flatten();
                self.close(&handle);
                self.end_listing(id, trouble, surplus);
            }
            return;
        }
        if !has_room {
            return;
        }
        let (more, is_alone) = folder.reads.ask();
        for _ in 0..more {
            let step = DeleteStep::Read { is_alone };
            let handle = &handle;
            self.ask_about(id, Request::Readdir { handle }, step);
        }
    }

    /// All names are known, or none can be had.
    fn end_listing(&mut self, id: u64, trouble: Option<Trouble>, surplus: &Surplus) {
        let Some(folder) = self.deleting.open.get_mut(&id) else {
            return;
        };
        if folder.goes_from.is_some() {
            folder.is_listed = true;
            if let Some(trouble) = trouble {
                let names = std::mem::take(&mut folder.surplus);
                let octets = names.iter().map(|(name, _)| name.len() + NAME);
                self.deleting.octets -= octets.sum::<usize>();
                folder.is_needed = true;
                let path = join(&self.small.base, &folder.place);
                self.failed(path, trouble);
            }
            return;
        }
        let Some(folder) = self.deleting.open.remove(&id) else {
            return;
        };
        let lacks = !surplus.is_only_told() && folder.sent.len() < surplus.names(&folder.place);
        let trouble = trouble.or(lacks.then_some(Trouble::NamesMissing));
        match trouble {
            Some(trouble) => self.refuse(&folder.place, trouble),
            None if folder.surplus.is_empty() || self.deleting.is_refused => {}
            None => self.deleting.found.push((folder.place, folder.surplus)),
        }
    }

    pub(super) fn found_path(&mut self, reply: Reply) -> Option<Vec<u8>> {
        let doing = "finding out where it is";
        match reply {
            Reply::Names(mut names) if names.len() == 1 => return Some(names.remove(0).name),
            Reply::Status(status) => self.refuse(b"", Trouble::remote(doing, &status)),
            _ => self.refuse(b"", Trouble::BadName(String::new())),
        }
        None
    }

    /// What is in the place of a folder that was sent.
    pub(super) fn handle_looked_at(&mut self, id: u64, reply: &Reply, surplus: &Surplus) {
        let trouble = match reply {
            Reply::Attributes(there) => match there.file_type() {
                FileType::Folder => return self.open_listing(id, surplus),
                FileType::Link => Trouble::LinkInTheWay,
                _ => Trouble::NoFolderThere,
            },
            Reply::Status(status)
                if status.code == StatusCode::NoSuchFile && surplus.is_only_told() =>
            {
                self.deleting.open.remove(&id);
                return;
            }
            Reply::Status(status) => Trouble::remote("looking at the folder", status),
            _ => Trouble::NoFolderThere,
        };
        self.end_listing(id, Some(trouble), surplus);
    }

    pub(super) fn handle_opened_surplus(&mut self, id: u64, reply: Reply, surplus: &Surplus) {
        let Some(folder) = self.deleting.open.get_mut(&id) else {
            return;
        };
        let trouble = match reply {
            Reply::Handle(handle) => {
                folder.handle = Some(handle);
                return;
            }
            // It has gone by itself.
            Reply::Status(status)
                if status.code == StatusCode::NoSuchFile && folder.goes_from.is_some() =>
            {
                None
            }
            Reply::Status(status) => Some(Trouble::remote("listing the folder", &status)),
            _ => Some(Trouble::NoFolderThere),
        };
        self.end_listing(id, trouble, surplus);
    }

    pub(super) fn handle_surplus_names(
        &mut self,
        id: u64,
        is_alone: bool,
        reply: Reply,
        surplus: &Surplus,
    ) {
        let Some(folder) = self.deleting.open.get_mut(&id) else {
            return;
        };
        for name in folder.reads.take(is_alone, reply) {
            self.take_surplus_name(id, name, surplus);
        }
    }

    fn take_surplus_name(&mut self, id: u64, name: Name, surplus: &Surplus) {
        let Name { name, attributes } = name;
        if matches!(name.as_slice(), b"." | b"..") {
            return;
        }
        self.deleting.names += 1;
        let names = self.deleting.names;
        let Some(folder) = self.deleting.open.get_mut(&id) else {
            return;
        };
        if !is_plain_name(&name) {
            return folder.reads.stop(Some(Trouble::BadName(shown(&name))));
        }
        let too_many = |what, limit| Some(Trouble::TooMany { what, limit });
        if names > MAX_NAMES {
            let trouble = too_many("names in the folders there", MAX_NAMES);
            return folder.reads.stop(trouble);
        }
        let place = join(&folder.place, &name);
        let goes = folder.goes_from.is_some();
        if !goes && surplus.is_sent(&place) {
            if folder.sent.insert(name) && surplus.folder(&place).is_some() {
                self.deleting.to_list.push(Folder::new(place, None));
            }
            return;
        }
        if surplus.is_spared(&place) {
            folder.is_needed = true;
            return;
        }
        let file_type = attributes.file_type();
        let may_be_folder = matches!(file_type, FileType::Folder | FileType::Unknown);
        self.deleting.octets += name.len() + NAME;
        folder.surplus.push((name, may_be_folder));
        if self.deleting.octets > MAX_OCTETS {
            let what = "octets of names there that are to be deleted";
            folder.reads.stop(too_many(what, MAX_OCTETS));
        }
        if !goes && self.has_own_keys(&place, surplus) {
            self.refuse(&place, Trouble::OwnKeys);
        }
    }

    /// Whether what lets the account in is there, below or above, and would go.
    fn has_own_keys(&self, place: &[u8], surplus: &Surplus) -> bool {
        let (Some(target), Some(home)) = (&self.deleting.target, &self.deleting.home) else {
            return false;
        };
        let keys = join(home, b".ssh");
        let path = join(target, place);
        let is_below = |one: &[u8], other: &[u8]| {
            one.strip_prefix(other)
                .is_some_and(|rest| rest.starts_with(b"/"))
        };
        if keys == path || is_below(&path, &keys) {
            return true;
        }
        // On the way there something may be excluded.
        let below = |folder: &[u8]| Some(keys.strip_prefix(folder)?.strip_prefix(b"/")?.to_vec());
        is_below(&keys, &path)
            && below(&path).is_some_and(|rest| {
                let ends = (0..=rest.len()).filter(|&at| at == rest.len() || rest[at] == b'/');
                let mut places = ends.map(|end| join(place, &rest[..end]));
                !places.any(|place| surplus.is_spared(&place))
            })
    }
}
