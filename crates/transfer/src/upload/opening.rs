//! The beginning of a file: opened here, its part made there.

use super::files::{FileStep, Stage, Writer};
use super::{Opened, Upload, UploadNeed};
use crate::Trouble;
use crate::ranges::Span;
use crate::sftp::{Attributes, Handle, Open, Request, StatusCode};

/// The right to read, which whoever hashes a part there needs.
pub(super) const OWN_READ: u32 = 0o400;
/// What a part's owner may do until it is settled, whatever the file is to be: further channels open it, later transfers go on
/// with it, and programs on the host hash it.
pub(super) const OWN_USE: u32 = 0o600;

impl Upload {
    /// The answer to [`UploadNeed::Open`].
    pub fn provide_opened(&mut self, entry: usize, opened: Result<Opened, String>) {
        if self.device.is_some() {
            return self.device_opened(opened);
        }
        let plan = self.plan.clone();
        let Some(file) = self
            .files
            .get_mut(&entry)
            .filter(|file| file.stage == Stage::OpenHere)
        else {
            self.needs.push_back(UploadNeed::Release { entry });
            return;
        };
        let opened = match opened {
            Ok(opened) => opened,
            Err(error) => {
                let doing = "opening";
                self.fail_file(entry, Trouble::Local { doing, error });
                return self.advance();
            }
        };
        file.todo = opened.data.clone();
        file.mode = match (plan.preserve, file.replaces) {
            (false, Some(replaced)) => replaced & 0o777,
            _ => opened.mode & 0o777,
        };
        let is_resumed = opened.proven.as_ref().is_some_and(|it| !it.is_empty());
        file.opened = Some(opened);
        match is_resumed {
            true => self.resume(entry),
            false => self.create_part(entry),
        }
        self.advance();
    }

    /// A new file: what somebody else put there under this name is not followed.
    pub(super) fn create_part(&mut self, entry: usize) {
        let Some(file) = self.files.get_mut(&entry) else {
            return;
        };
        file.stage = Stage::Create;
        let end = file.opened.as_ref().and_then(|opened| opened.size);
        let (channel, part) = (file.channel, file.part.clone());
        if file.writers.is_empty() {
            let end = end.unwrap_or(u64::MAX);
            file.writers.push(Writer::new(channel, Span { at: 0, end }));
        }
        let attributes = Attributes {
            mode: Some(file.mode | OWN_USE),
            ..Attributes::default()
        };
        self.open_folder_of(channel, entry);
        let request = Request::Open {
            path: &part,
            how: Open::CreateNew,
            attributes,
        };
        self.ask_file(channel, entry, FileStep::Open { writer: 0 }, request);
    }

    pub(super) fn handle_opened(&mut self, entry: usize, writer: usize, handle: Handle) {
        let Some(file) = self.files.get_mut(&entry) else {
            return;
        };
        file.writers[writer].handle = Some(handle);
        file.made = true;
        match file.stage {
            Stage::Create => file.stage = Stage::Write,
            Stage::Reopen => self.settle(entry),
            Stage::CleanUp => self.close_up(entry),
            _ => {}
        }
    }

    pub(super) fn handle_not_opened(
        &mut self,
        channel: usize,
        entry: usize,
        writer: usize,
        refused: Option<crate::sftp::Status>,
    ) {
        let Some(file) = self.files.get_mut(&entry) else {
            return;
        };
        let Some(status) = refused.filter(|_| file.stage != Stage::CleanUp) else {
            return;
        };
        // It can be done without help.
        if writer > 0 {
            let it = &mut file.writers[writer];
            it.is_refused = true;
            let span = std::mem::take(&mut it.span);
            return file.give_back(span);
        }
        if status.code == StatusCode::Failure && file.stage == Stage::Create && !file.cleared {
            file.cleared = true;
            let part = file.part.clone();
            self.ask_file(
                channel,
                entry,
                FileStep::Clear,
                Request::Remove { path: &part },
            );
            return self.create_part(entry);
        }
        self.fail_file(entry, Trouble::remote("making the file", &status));
    }
}
