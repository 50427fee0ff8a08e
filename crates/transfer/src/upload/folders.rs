//! Folders: made before everything else, given their modes and times after everything else.

use super::{Asked, Kind, Phase, Upload};
use crate::Trouble;
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

    /// With modes and times to be kept it is not done yet.
    fn folder_is_there(&mut self, entry: usize) {
        if !self.plan.preserve {
            self.done(entry, false);
        }
    }

    fn folder_failed(&mut self, entry: usize, trouble: Trouble) {
        self.broken.insert(entry);
        self.failed(self.path(entry), trouble);
    }

    /// From the innermost outward: what is done in a folder changes its time.
    pub(super) fn finish_folders(&mut self) {
        let plan = self.plan.clone();
        let count = plan.entries.len();
        while self.next < count && plan.preserve && !self.interrupted {
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
            let path = self.path(number);
            let attributes = Attributes {
                mode: Some(entry.mode & 0o7777),
                times: Some(entry.times),
                ..Attributes::default()
            };
            let request = Request::Setstat {
                path: &path,
                attributes,
            };
            self.ask(request, Asked::FolderAttributes { entry: number });
        }
        if self.channels[0].client.pending() == 0 {
            self.phase = Phase::Ended;
        }
    }

    pub(super) fn handle_folder_finished(&mut self, entry: usize, reply: Reply) {
        match reply {
            Reply::Status(status) if status.code == StatusCode::Ok => self.done(entry, false),
            Reply::Status(status) => {
                let trouble = Trouble::remote("setting mode and times of the folder", &status);
                self.failed(self.path(entry), trouble);
            }
            _ => {}
        }
    }
}
