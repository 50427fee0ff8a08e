//! Folders: made before everything else, given their owners, modes and times after everything else.

use super::{Asked, Kind, Phase, Upload};
use crate::Trouble;
use crate::owners::Owners;
use crate::sftp::{Attributes, FileType, Reply, Request, StatusCode};

/// What we must be allowed to do in a folder to put something into it.
const OWN_USE: u32 = 0o700;

impl Upload {
    pub(super) fn make_folders(&mut self) {
        let plan = self.plan.clone();
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
            if let Some(trouble) = self.hindrance(number) {
                self.folder_failed(number, trouble);
                continue;
            }
            let path = self.path(number);
            let attributes = Attributes {
                mode: Some(entry.mode & 0o777 | OWN_USE),
                ..Attributes::default()
            };
            let request = Request::Mkdir {
                path: &path,
                attributes,
            };
            self.ask(request, Asked::MakeFolder { entry: number });
        }
        if self.channels[0].client.pending() == 0 {
            self.phase = Phase::Files;
        }
    }

    pub(super) fn handle_folder_made(&mut self, entry: usize, reply: Reply) {
        match reply {
            Reply::Status(status) if status.code == StatusCode::Ok => {
                self.new_folders.insert(entry);
                self.folder_is_there(entry);
            }
            // Most often it is there already, for which version 3 has no code.
            _ => {
                let path = self.path(entry);
                self.ask(Request::Stat { path: &path }, Asked::LookAtFolder { entry });
            }
        }
    }

    pub(super) fn handle_folder_seen(&mut self, entry: usize, reply: Reply) {
        match reply {
            Reply::Attributes(there) if there.file_type() == FileType::Folder => {
                self.folder_is_there(entry);
            }
            Reply::Attributes(_) => self.folder_failed(entry, Trouble::NoFolderThere),
            Reply::Status(status) => {
                self.folder_failed(entry, Trouble::remote("making the folder", &status));
            }
            _ => self.folder_failed(entry, Trouble::NoFolderThere),
        }
    }

    /// Whether folders are to get anything at the end.
    fn finishes_folders(&self) -> bool {
        self.plan.preserve || self.plan.owners != Owners::Makers
    }

    /// With something to be set it is not done yet.
    fn folder_is_there(&mut self, entry: usize) {
        if !self.finishes_folders() {
            self.done(entry, false);
        }
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
        while self.next < count && self.finishes_folders() && !self.interrupted {
            let number = count - 1 - self.next;
            let entry = &plan.entries[number];
            if entry.kind != Kind::Folder || self.broken.contains(&number) {
                self.next += 1;
                continue;
            }
            if !self.has_room() {
                return;
            }
            self.next += 1;
            if self.owner(number).is_any() {
                let path = self.path(number);
                let asked = Asked::FolderOwnerSeen { entry: number };
                self.ask(Request::Lstat { path: &path }, asked);
            } else {
                self.keep_folder(number);
            }
        }
        if self.channels[0].client.pending() == 0 {
            self.phase = Phase::Ended;
        }
    }

    /// Gives it its mode and times, if these are kept.
    fn keep_folder(&mut self, entry: usize) {
        if !self.plan.preserve {
            return self.done(entry, false);
        }
        let path = self.path(entry);
        let request = Request::Setstat {
            path: &path,
            attributes: self.plan.entries[entry].kept(),
        };
        self.ask(request, Asked::FolderAttributes { entry });
    }

    /// Whom it belongs to. A link that leads to a folder, and the folder, keep their owners.
    pub(super) fn handle_folder_owner(&mut self, entry: usize, reply: &Reply) {
        let owner = match reply {
            _ if self.interrupted => return,
            Reply::Attributes(there) if there.file_type() == FileType::Folder => {
                self.owner(entry).missing(there.owner)
            }
            _ => None,
        };
        if let Some(owner) = owner {
            let path = &self.path(entry);
            let request = self.own(path, owner);
            self.ask(request, Asked::FolderOwned { entry });
        }
        if self.plan.preserve || owner.is_none() {
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
            _ if !self.plan.preserve => self.done(entry, false),
            // Its mode and times are under way.
            _ => {}
        }
    }

    pub(super) fn handle_folder_finished(&mut self, entry: usize, reply: Reply) {
        match reply {
            // Told already.
            _ if self.broken.contains(&entry) => {}
            Reply::Status(status) if status.code == StatusCode::Ok => self.done(entry, false),
            Reply::Status(status) => {
                let trouble = Trouble::remote("setting mode and times of the folder", &status);
                self.failed(self.path(entry), trouble);
            }
            _ => {}
        }
    }
}
