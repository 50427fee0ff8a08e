//! Folders: made before everything else, given their owners, modes and times after everything else.

use super::closed::Place;
use super::{Asked, Kind, Phase, Upload};
use crate::owners::Owners;
use crate::path::parent;
use crate::sftp::{Attributes, FileType, Reply, Request, StatusCode};
use crate::{Remote, Trouble};

/// What we must be allowed to do in a folder to put something into it.
pub(super) const OWN_USE: u32 = 0o700;

impl Upload {
    pub(super) fn make_folders(&mut self) {
        let plan = self.plan.clone();
        if !self.interrupted {
            self.make_reachable(Place::Target);
        }
        while self.next < plan.entries.len() && !self.interrupted {
            let (entry, number) = (&plan.entries[self.next], self.next);
            if entry.kind != Kind::Folder {
                self.next += 1;
                continue;
            }
            if !self.has_room() {
                return;
            }
            self.next += 1;
            match self.hindrance(number) {
                Some(trouble) => self.folder_failed(number, trouble),
                None => self.make_folder(number),
            }
        }
        if self.channels[0].client.pending() == 0 {
            self.phase = Phase::Files;
        }
    }

    fn make_folder(&mut self, entry: usize) {
        let path = self.path(entry);
        let attributes = Attributes {
            mode: Some(self.plan.entries[entry].mode & 0o777 | OWN_USE),
            ..Attributes::default()
        };
        let request = Request::Mkdir {
            path: &path,
            attributes,
        };
        self.ask(request, Asked::MakeFolder { entry });
    }

    pub(super) fn handle_folder_made(&mut self, entry: usize, reply: Reply) {
        match reply {
            Reply::Status(status) if status.code == StatusCode::Ok => {
                self.new_folders.insert(entry);
                self.folder_is_there(entry);
            }
            // Most often it is there already, for which version 3 has no code.
            Reply::Status(status) => {
                let path = self.path(entry);
                let refused = Remote::of(&status);
                let asked = Asked::LookAtFolder { entry, refused };
                self.ask(Request::Stat { path: &path }, asked);
            }
            _ => self.folder_failed(entry, Trouble::NoFolderThere),
        }
    }

    pub(super) fn handle_folder_seen(&mut self, entry: usize, refused: Remote, reply: Reply) {
        match reply {
            Reply::Attributes(there) if there.file_type() == FileType::Folder => {
                if self.plan.entries[entry].is_kept(&there, self.plan.preserve) {
                    self.like_folders.insert(entry);
                }
                self.note_closed(Place::Entry(entry), &there);
                self.folder_is_there(entry);
            }
            Reply::Attributes(_) => self.folder_failed(entry, Trouble::NoFolderThere),
            Reply::Status(_) if !self.interrupted && self.makes_folder_again(entry) => {
                self.make_folder(entry);
            }
            Reply::Status(status) => {
                let refused = match status.code {
                    StatusCode::NoSuchFile => refused,
                    _ => Remote::of(&status),
                };
                if !self.may_explain(0, &refused) {
                    return self.folder_not_made(entry, refused);
                }
                let path = self.path(entry);
                let request = Request::Statvfs {
                    path: parent(&path),
                };
                self.ask(request, Asked::ExplainFolder { entry, refused });
            }
            _ => self.folder_failed(entry, Trouble::NoFolderThere),
        }
    }

    pub(super) fn folder_not_made(&mut self, entry: usize, why: Remote) {
        let doing = "making the folder";
        self.folder_failed(entry, Trouble::Remote { doing, why });
    }

    /// Whether folders are to get anything at the end.
    fn finishes_folders(&self) -> bool {
        (self.plan.preserve || self.plan.owners != Owners::Makers) && !self.interrupted
    }

    /// With something to be set it is not done yet.
    fn folder_is_there(&mut self, entry: usize) {
        if !self.finishes_folders() {
            self.folder_done(entry);
        }
    }

    fn folder_done(&mut self, entry: usize) {
        let is_like = self.like_folders.contains(&entry);
        self.done(entry, is_like);
    }

    fn folder_failed(&mut self, entry: usize, trouble: Trouble) {
        self.broken.insert(entry);
        self.failed(self.path(entry), trouble);
    }

    /// From the innermost outward: what is done in a folder changes its time, and nothing is done any more in one that belongs to
    /// somebody else by then.
    pub(super) fn finish_folders(&mut self) {
        let plan = self.plan.clone();
        let count = plan.entries.len();
        let finishes = self.finishes_folders();
        while self.next < count && (finishes || !self.closed.is_empty()) {
            let number = count - 1 - self.next;
            let is_folder = plan.entries[number].kind == Kind::Folder;
            let has_rest = finishes || self.mode_to_restore(Place::Entry(number)).is_some();
            if !is_folder || !has_rest || self.broken.contains(&number) {
                self.next += 1;
                continue;
            }
            if !self.has_room() {
                return;
            }
            self.next += 1;
            if finishes && self.owner(number).is_any() {
                let path = self.path(number);
                let asked = Asked::FolderOwnerSeen { entry: number };
                self.ask(Request::Lstat { path: &path }, asked);
            } else {
                self.keep_folder(number);
            }
        }
        if self.next == count {
            self.next += 1;
            self.close_target();
        }
        if self.channels[0].client.pending() == 0 {
            self.phase = Phase::Ended;
        }
    }

    /// Gives the target its mode back, unless it gets that of a source without a name of its own.
    fn close_target(&mut self) {
        let mut roots = self.plan.roots.iter();
        let has_source = roots.any(|root| root.is_folder && root.name.is_empty());
        if has_source && self.plan.preserve && !self.interrupted {
            return;
        }
        if let Some(mode) = self.mode_to_restore(Place::Target) {
            let path = &self.path_of(Place::Target);
            let attributes = Attributes {
                mode: Some(mode),
                ..Attributes::default()
            };
            self.ask(Request::Setstat { path, attributes }, Asked::TargetClosed);
        }
    }

    pub(super) fn handle_target_closed(&mut self, reply: &Reply) {
        if let Reply::Status(status) = reply
            && status.code != StatusCode::Ok
        {
            let trouble = Trouble::remote("giving the folder its mode back", status);
            self.failed(self.path_of(Place::Target), trouble);
        }
    }

    /// What a folder is to have at the end: its mode and times, if these are kept, or the mode that it had.
    fn rest_of_folder(&self, entry: usize) -> Option<Attributes> {
        if self.plan.preserve && !self.interrupted {
            return Some(self.plan.entries[entry].kept());
        }
        let mode = self.mode_to_restore(Place::Entry(entry));
        mode.map(|mode| Attributes {
            mode: Some(mode),
            ..Attributes::default()
        })
    }

    /// Gives it that.
    fn keep_folder(&mut self, entry: usize) {
        let Some(attributes) = self.rest_of_folder(entry) else {
            return self.folder_done(entry);
        };
        let path = self.path(entry);
        let request = Request::Setstat {
            path: &path,
            attributes,
        };
        self.ask(request, Asked::FolderAttributes { entry });
    }

    /// Whom it belongs to. A link that leads to a folder, and the folder, keep their owners.
    pub(super) fn handle_folder_owner(&mut self, entry: usize, reply: &Reply) {
        let owner = match reply {
            Reply::Attributes(there)
                if there.file_type() == FileType::Folder && !self.interrupted =>
            {
                self.owner(entry).missing(there.owner)
            }
            _ => None,
        };
        if let Some(owner) = owner {
            self.like_folders.remove(&entry);
            let path = &self.path(entry);
            let request = self.own(path, owner);
            self.ask(request, Asked::FolderOwned { entry });
        }
        if self.rest_of_folder(entry).is_some() || owner.is_none() && !self.interrupted {
            self.keep_folder(entry);
        }
    }

    pub(super) fn handle_folder_owned(&mut self, entry: usize, reply: &Reply) {
        match reply {
            Reply::Status(status) if status.code != StatusCode::Ok => {
                self.broken.insert(entry);
                let trouble = self.owner(entry).refused(status);
                self.failed(self.path(entry), trouble);
            }
            _ if self.rest_of_folder(entry).is_none() => self.folder_done(entry),
            // Its mode and times are under way.
            _ => {}
        }
    }

    pub(super) fn handle_folder_finished(&mut self, entry: usize, reply: Reply) {
        match reply {
            // Told already.
            _ if self.broken.contains(&entry) => {}
            Reply::Status(status) if status.code == StatusCode::Ok && self.finishes_folders() => {
                self.folder_done(entry);
            }
            Reply::Status(status) if status.code == StatusCode::Ok => {}
            Reply::Status(status) => {
                let trouble = Trouble::remote("setting mode and times of the folder", &status);
                self.failed(self.path(entry), trouble);
            }
            _ => {}
        }
    }
}
