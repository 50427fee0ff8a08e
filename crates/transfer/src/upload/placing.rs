//! A part gets its name. Where the server has posix-rename@openssh.com that is one step. Others replace nothing (RENAME of the SFTP
//! drafts): what is there is put aside for a moment, and put back if the part cannot have its place.
//!
//! ```text
//! Rename -> in place
//!   \ refused -> SetAside -> Rename -> ClearAside -> in place
//!                    \ refused   \ refused -> PutBack
//!                     \___________________________\_ CleanUp
//! ```

use super::Upload;
use super::files::{FileStep, Stage};
use crate::part_name::old_name;
use crate::sftp::{Attributes, Extension, FileType, Reply, Request, Status, StatusCode};
use crate::trouble::shown;
use crate::{Remote, Trouble};

/// What is told of a rename that fails.
pub(super) const PLACING: &str = "putting it in place";

/// Whether what was there is under its other name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Aside {
    No,
    /// The answer went with its connection.
    Maybe,
    Yes,
}

impl Upload {
    pub(super) fn rename_part(&mut self, entry: usize) {
        let Some(file) = self.files.get_mut(&entry) else {
            return;
        };
        file.stage = Stage::Rename;
        let channel = file.channel;
        self.open_folder_of(channel, entry);
        self.ask_to_rename(entry);
    }

    /// The connection of a rename has ended; whether it was carried out is not known.
    pub(super) fn rename_part_again(&mut self, entry: usize) {
        if let Some(file) = self.files.get_mut(&entry) {
            file.renames_again = true;
            if file.aside == Aside::Yes {
                file.aside = Aside::Maybe;
            }
        }
        self.rename_part(entry);
    }

    fn ask_to_rename(&mut self, entry: usize) {
        let Some(file) = self.files.get(&entry) else {
            return;
        };
        let (channel, from, to) = (file.channel, file.part.clone(), file.path.clone());
        let (from, to) = (&from, &to);
        let request = match self.channels[channel].client.has(Extension::PosixRename) {
            true => Request::PosixRename { from, to },
            false => Request::Rename { from, to },
        };
        self.ask_file(channel, entry, FileStep::Rename, request);
    }

    pub(super) fn handle_renamed(&mut self, entry: usize, refused: Option<Status>) {
        let Some(status) = refused else {
            return self.has_its_name(entry);
        };
        let Some(file) = self.files.get_mut(&entry) else {
            return;
        };
        let trouble = Trouble::remote(PLACING, &status);
        let channel = file.channel;
        let (path, aside) = (file.path.clone(), old_name(&file.part));
        let (path, aside) = (&path, &aside);
        let replaces_nothing = !self.channels[channel].client.has(Extension::PosixRename);
        let (step, request) = if status.code == StatusCode::NoSuchFile && file.renames_again {
            (FileStep::LookInPlace, Request::Lstat { path })
        } else if file.aside == Aside::Yes {
            let (from, to) = (aside, path);
            (FileStep::PutBack, Request::Rename { from, to })
        } else if replaces_nothing && file.replaces.is_some() {
            file.aside = Aside::Yes;
            let (from, to) = (path, aside);
            (FileStep::SetAside, Request::Rename { from, to })
        } else {
            return self.fail_file(entry, trouble);
        };
        file.refusal = Some(trouble);
        self.ask_file(channel, entry, step, request);
    }

    pub(super) fn handle_set_aside(&mut self, entry: usize, refused: Option<Status>) {
        let Some(file) = self.files.get_mut(&entry) else {
            return;
        };
        match refused {
            None => self.ask_to_rename(entry),
            // It went aside before the connection of that request ended.
            Some(status) if status.code == StatusCode::NoSuchFile && file.renames_again => {
                let (channel, from, to) = (file.channel, old_name(&file.part), file.path.clone());
                let (from, to) = (&from, &to);
                let request = Request::Rename { from, to };
                self.ask_file(channel, entry, FileStep::PutBack, request);
            }
            Some(_) => {
                file.aside = Aside::No;
                self.fail_refused(entry);
            }
        }
    }

    pub(super) fn handle_put_back(&mut self, entry: usize, refused: Option<Status>) {
        let Some(file) = self.files.get_mut(&entry) else {
            return;
        };
        if refused.is_some_and(|status| status.code != StatusCode::NoSuchFile) {
            let name = shown(&old_name(&file.part));
            file.refusal = Some(Trouble::LeftAside { name });
        }
        self.fail_refused(entry);
    }

    /// The part is gone: it is in place if what is there is as large.
    pub(super) fn handle_looked_in_place(&mut self, entry: usize, reply: &Reply) {
        let size = self
            .files
            .get(&entry)
            .and_then(|file| file.opened.as_ref()?.size);
        let is_it = |there: &Attributes| {
            there.file_type() == FileType::File && size.is_none_or(|size| there.size == Some(size))
        };
        match reply {
            Reply::Attributes(there) if is_it(there) => self.has_its_name(entry),
            _ => self.fail_refused(entry),
        }
    }

    fn fail_refused(&mut self, entry: usize) {
        let refusal = self
            .files
            .get_mut(&entry)
            .and_then(|file| file.refusal.take());
        let gone = || Trouble::Remote {
            doing: PLACING,
            why: Remote::Missing,
        };
        self.fail_file(entry, refusal.unwrap_or_else(gone));
    }

    fn has_its_name(&mut self, entry: usize) {
        let Some(file) = self.files.get(&entry) else {
            return;
        };
        if file.aside == Aside::No {
            return self.file_done(entry, false);
        }
        let (channel, path) = (file.channel, old_name(&file.part));
        let request = Request::Remove { path: &path };
        self.ask_file(channel, entry, FileStep::ClearAside, request);
    }
}
