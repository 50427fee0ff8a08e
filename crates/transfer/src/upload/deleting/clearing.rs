//! The second pass: what is surplus goes, folders when they are empty.

use super::super::folders::OWN_USE;
use super::{DeleteStep, Folder, NAME};
use crate::Trouble;
use crate::path::{MAX_PATH, join};
use crate::sftp::{Attributes, FileType, Reply, Request, Status, StatusCode};
use crate::surplus::Surplus;
use crate::upload::{Asked, Upload, UploadEvent};

/// Surplus folders that may wait to be listed before others are looked at.
const MOST_WAITING: usize = 1024;

impl Upload {
    pub(super) fn handle_surplus_seen(&mut self, id: u64, name: Vec<u8>, reply: &Reply) {
        self.settle_one(id);
        match reply {
            Reply::Attributes(there) if there.file_type() == FileType::Folder => {
                self.descend(id, &name, there);
            }
            Reply::Attributes(there) if there.file_type() != FileType::Unknown => {
                if let Some(folder) = self.deleting.open.get_mut(&id) {
                    self.deleting.octets += name.len() + NAME;
                    folder.surplus.push((name, false));
                }
            }
            reply if is_gone(reply) => {}
            reply => self.not_removed(id, &name, reply),
        }
    }

    /// A surplus folder in this one is to be listed. One that its owner has closed (`-p` gave it such a mode) is opened.
    fn descend(&mut self, id: u64, name: &[u8], there: &Attributes) {
        let Some(folder) = self.deleting.open.get_mut(&id) else {
            return;
        };
        let mut inner = Folder::new(join(&folder.place, name), Some(id));
        folder.unsettled += 1;
        let mode = there.permissions().unwrap_or(OWN_USE);
        if mode & OWN_USE != OWN_USE && !self.plan.only_tells() {
            inner.had_mode = Some(mode);
            self.set_mode(&inner.place, mode | OWN_USE);
        }
        self.deleting.to_list.push(inner);
    }

    /// What comes of it does not matter: who may not is refused what follows, which is told.
    pub(super) fn set_mode(&mut self, place: &[u8], mode: u32) {
        let path = &self.path_at(place);
        let attributes = Attributes {
            mode: Some(mode),
            ..Attributes::default()
        };
        self.ask(Request::Setstat { path, attributes }, Asked::Forget);
    }

    /// Removes what is surplus in folders that are listed, and those that go themselves and are empty.
    pub(super) fn clear_folders(&mut self, surplus: &Surplus) {
        for id in self.open_folders() {
            while self.has_room()
                && self.deleting.to_list.len() < MOST_WAITING
                && let Some(folder) = self.deleting.open.get_mut(&id)
                && folder.is_listed
                && let Some((name, may_be_folder)) = folder.surplus.pop()
            {
                self.deleting.octets -= name.len() + NAME;
                match may_be_folder {
                    true => self.look(id, name),
                    false if surplus.is_only_told() => self.deleted(id, &name),
                    false => self.remove(id, name),
                }
            }
            let folder = self.deleting.open.get(&id);
            if folder.is_some_and(|it| it.is_listed && it.surplus.is_empty() && it.unsettled == 0) {
                self.settle_folder(id, surplus);
            }
        }
    }

    /// The path of a name that is to be looked at or removed; its folder waits for the answer.
    fn path_to_change(&mut self, id: u64, name: &[u8]) -> Option<Vec<u8>> {
        let folder = self.deleting.open.get_mut(&id)?;
        let path = join(&join(&self.small.base, &folder.place), name);
        if path.len() > MAX_PATH {
            folder.is_needed = true;
            self.failed(path, Trouble::TooLong);
            return None;
        }
        folder.unsettled += 1;
        Some(path)
    }

    fn look(&mut self, id: u64, name: Vec<u8>) {
        if let Some(path) = &self.path_to_change(id, &name) {
            self.ask_about(id, Request::Lstat { path }, DeleteStep::Look { name });
        }
    }

    fn remove(&mut self, id: u64, name: Vec<u8>) {
        if let Some(path) = &self.path_to_change(id, &name) {
            self.ask_about(id, Request::Remove { path }, DeleteStep::Remove { name });
        }
    }

    /// Everything in it is settled.
    fn settle_folder(&mut self, id: u64, surplus: &Surplus) {
        let Some(folder) = self.deleting.open.get_mut(&id) else {
            return;
        };
        let goes = folder.goes_from.is_some() && !folder.is_needed;
        if goes && !surplus.is_only_told() {
            folder.unsettled += 1;
            let path = &join(&self.small.base, &folder.place);
            return self.ask_about(id, Request::Rmdir { path }, DeleteStep::RemoveFolder);
        }
        self.folder_settled(id, goes);
    }

    pub(super) fn handle_folder_removed(&mut self, id: u64, reply: &Reply) {
        let is_gone = is_gone(reply);
        if !is_gone && let Some(folder) = self.deleting.open.get(&id) {
            let path = self.path_at(&folder.place);
            self.failed(path, removal(reply));
        }
        self.folder_settled(id, is_gone);
    }

    /// A folder is gone, or stays.
    fn folder_settled(&mut self, id: u64, is_gone: bool) {
        let Some(folder) = self.deleting.open.remove(&id) else {
            return;
        };
        let Some(above) = folder.goes_from else {
            return;
        };
        match (is_gone, folder.had_mode) {
            (true, _) => self.tell_deleted([&folder.place, &b"/"[..]].concat()),
            (false, Some(mode)) => self.set_mode(&folder.place, mode),
            (false, None) => {}
        }
        if let Some(above) = self.deleting.open.get_mut(&above) {
            above.unsettled -= 1;
            above.is_needed |= !is_gone;
        }
    }

    fn settle_one(&mut self, id: u64) {
        if let Some(folder) = self.deleting.open.get_mut(&id) {
            folder.unsettled -= 1;
        }
    }

    fn deleted(&mut self, id: u64, name: &[u8]) {
        if let Some(folder) = self.deleting.open.get(&id) {
            self.tell_deleted(join(&folder.place, name));
        }
    }

    fn tell_deleted(&mut self, place: Vec<u8>) {
        self.tally.deleted += u64::from(!self.plan.only_tells());
        let path = self.path_at(&place);
        self.events.push_back(UploadEvent::Deleted { path });
    }

    fn not_removed(&mut self, id: u64, name: &[u8], reply: &Reply) {
        let Some(folder) = self.deleting.open.get_mut(&id) else {
            return;
        };
        folder.is_needed = true;
        let path = join(&join(&self.small.base, &folder.place), name);
        self.failed(path, removal(reply));
    }

    pub(super) fn handle_removed(&mut self, id: u64, name: &[u8], reply: &Reply) {
        self.settle_one(id);
        match is_gone(reply) {
            true => self.deleted(id, name),
            false => self.not_removed(id, name, reply),
        }
    }
}

/// Whether it is not there any more.
fn is_gone(reply: &Reply) -> bool {
    let Reply::Status(status) = reply else {
        return false;
    };
    matches!(status.code, StatusCode::Ok | StatusCode::NoSuchFile)
}

fn removal(reply: &Reply) -> Trouble {
    let doing = "deleting it";
    match reply {
        Reply::Status(status) => Trouble::remote(doing, status),
        // What it is, the server does not say.
        _ => Trouble::remote(
            doing,
            &Status {
                code: StatusCode::Failure,
                message: "what it is is not told".to_owned(),
            },
        ),
    }
}
