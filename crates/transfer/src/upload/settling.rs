//! The end of a file: settled, or given up without a trace.

use super::comparing::SETTING;
use super::files::{File, FileStep, Stage, Writer};
use super::opening::{FIRST_MARK, OWN_READ, OWN_USE};
use super::owners::{NO_OWNERS, Wanted};
use super::{Upload, UploadNeed};
use crate::hashing::{FileHash, Verify};
use crate::sftp::{Attributes, Extension, Handle, Reply, Request};
use crate::{Remote, Trouble};

/// What is told of a failure to close.
pub(super) const CLOSING: &str = "closing";
/// What is told of an fsync that fails.
pub(super) const SYNCING: &str = "writing to the disk";

impl Upload {
    /// The answer to [`UploadNeed::Check`].
    /// `hash` is the file's if it was to be told.
    pub fn provide_checked(
        &mut self,
        entry: usize,
        is_same: Result<bool, String>,
        hash: Option<FileHash>,
    ) {
        if self.device.is_some() {
            return self.device_checked(is_same);
        }
        let is_checked = |file: &&mut File| file.stage == Stage::CheckHere;
        if let Some(file) = self.files.get_mut(&entry).filter(is_checked) {
            file.hashes.here = hash;
            match is_same {
                Ok(true) => self.settle(entry),
                Ok(false) => self.fail_file(entry, Trouble::Changed),
                Err(error) => self.fail_file(
                    entry,
                    Trouble::Local {
                        doing: "looking at it again",
                        error,
                    },
                ),
            }
        }
        self.advance();
    }

    /// Owner; then mode, times and length; then everything to the disk. A mode by which the host cannot hash it is set later, and times
    /// with it: until then a part that is marked can be opened once more.
    pub(super) fn settle(&mut self, entry: usize) {
        let preserve = self.plan.preserve;
        let is_hashed = self.plan.hashing.verifies != Verify::Never;
        let is = self.files.get(&entry).and_then(|file| file.part_is);
        let wanted = self.owner_of_part(entry, is.and_then(|part| part.owner));
        let Some(file) = self.files.get_mut(&entry) else {
            return;
        };
        let Some((channel, handle)) = file.writers.iter().find_map(Writer::opened) else {
            return self.reopen(entry);
        };
        file.stage = Stage::Settle;
        let is_unknown = file.has_unknown_mode(preserve) || file.has_unknown_times(preserve);
        if wanted == Wanted::Look || is_unknown && is.is_none() {
            let request = Request::Fstat { handle: &handle };
            return self.ask_file(channel, entry, FileStep::LookAtPart, request);
        }
        let owner = match wanted {
            Wanted::Set(owner) => Some(owner),
            Wanted::Nothing | Wanted::Look => None,
        };
        let mode = file.final_mode(preserve);
        let Some(opened) = &file.opened else { return };
        file.late_mode = mode.filter(|mode| is_hashed && mode & OWN_READ == 0);
        let attributes = Attributes {
            // What ends in a hole.
            size: opened.size.filter(|_| file.todo.is_some()),
            mode: mode.filter(|_| file.late_mode.is_none()),
            times: file
                .final_times(preserve)
                .filter(|_| file.late_mode.is_none()),
            owner: None,
        };
        let is_kept_open = file.late_mode.is_some();
        let handles: Vec<(usize, Handle)> = file
            .writers
            .iter_mut()
            .filter_map(Writer::take_handle)
            .collect();
        if is_kept_open {
            file.keep_open((channel, handle));
        }
        for (number, (channel, handle)) in handles.iter().enumerate() {
            if number == 0 {
                if owner.is_some() {
                    let attributes = Attributes {
                        owner,
                        ..Attributes::default()
                    };
                    let request = Request::Fsetstat { handle, attributes };
                    self.ask_file(*channel, entry, FileStep::Own, request);
                }
                if attributes != Attributes::default() {
                    let request = Request::Fsetstat { handle, attributes };
                    self.ask_file(*channel, entry, FileStep::Settle(SETTING), request);
                }
                if is_kept_open {
                    continue;
                }
                if self.channels[*channel].client.has(Extension::Fsync) {
                    let request = Request::Fsync { handle };
                    self.ask_file(*channel, entry, FileStep::Settle(SYNCING), request);
                }
            }
            let request = Request::Close { handle };
            self.ask_file(*channel, entry, FileStep::Settle(CLOSING), request);
        }
        if is_kept_open {
            self.go_on(entry);
        }
    }

    /// Whom the part belongs to, half of which may stay, and what the server's umask has left of its mode.
    pub(super) fn handle_part_seen(&mut self, entry: usize, reply: &Reply) {
        let needs_owner = self.owner(entry).is_any();
        let is_awaited = |file: &&mut File| file.stage == Stage::Settle;
        let Some(file) = self.files.get_mut(&entry).filter(is_awaited) else {
            return;
        };
        let doing = "looking at its owner and mode";
        match reply {
            Reply::Attributes(part) if part.owner.is_some() || !needs_owner => {
                file.part_is = Some(*part);
                self.settle(entry);
            }
            Reply::Status(status) => self.fail_file(entry, Trouble::remote(doing, status)),
            _ => {
                let why = Remote::Unsupported(NO_OWNERS.to_owned());
                self.fail_file(entry, Trouble::Remote { doing, why });
            }
        }
    }

    /// What has arrived is what was sent, as far as that is asked: it gets the mode that would have kept the host from hashing it, and
    /// its name.
    pub(super) fn put_in_place(&mut self, entry: usize) {
        let preserve = self.plan.preserve;
        let Some(file) = self.files.get_mut(&entry) else {
            return;
        };
        let Some(mode) = file.late_mode else {
            return self.rename_part(entry);
        };
        let mut writers = file.writers.iter_mut();
        let Some((channel, handle)) = writers.find_map(Writer::take_handle) else {
            return self.reopen(entry);
        };
        file.stage = Stage::SetMode;
        let handle = &handle;
        let attributes = Attributes {
            mode: Some(mode),
            times: file.final_times(preserve),
            ..Attributes::default()
        };
        let request = Request::Fsetstat { handle, attributes };
        self.ask_file(channel, entry, FileStep::Settle(SETTING), request);
        if self.channels[channel].client.has(Extension::Fsync) {
            let request = Request::Fsync { handle };
            self.ask_file(channel, entry, FileStep::Settle(SYNCING), request);
        }
        let request = Request::Close { handle };
        self.ask_file(channel, entry, FileStep::Settle(CLOSING), request);
    }

    pub(super) fn file_done(&mut self, entry: usize, unchanged: bool) {
        let Some(file) = self.files.remove(&entry) else {
            return;
        };
        self.channels[file.channel].files -= 1;
        self.forget_progress(entry, &file);
        self.tally.verified += u64::from(file.hashes.are_equal);
        if unchanged {
            let size = self.plan.entries[entry].size();
            self.left = self.left.saturating_sub(size);
        }
        self.done(entry, unchanged);
    }

    /// Gives a file up: what there is of it goes, and what was there before stays.
    pub(super) fn fail_file(&mut self, entry: usize, trouble: Trouble) {
        let Some(file) = self.files.get_mut(&entry) else {
            return;
        };
        if file.stage == Stage::CleanUp
            || file.stage == Stage::Rename && trouble == Trouble::Interrupted
        {
            return;
        }
        let was_open = file.opened.is_some()
            && !matches!(
                file.stage,
                Stage::Reopen | Stage::Settle | Stage::Verify | Stage::SetMode | Stage::Rename
            );
        file.trouble = Some(trouble.clone());
        file.stage = Stage::CleanUp;
        let (channel, path) = (file.channel, file.path.clone());
        if was_open {
            self.needs.push_back(UploadNeed::Release { entry });
        }
        // Before its part goes, and with it the reason.
        if let Trouble::Remote { why, .. } = &trouble
            && self.may_explain(channel, why)
        {
            let folder = crate::path::parent(&path);
            self.ask_file(
                channel,
                entry,
                FileStep::Explain,
                Request::Statvfs { path: folder },
            );
        }
        self.close_up(entry);
        self.go_on(entry);
    }

    /// Closes what is open on the host, and removes the part.
    pub(super) fn close_up(&mut self, entry: usize) {
        let Some(file) = self.files.get_mut(&entry) else {
            return;
        };
        let handles: Vec<(usize, Handle)> = file
            .writers
            .iter_mut()
            .filter_map(Writer::take_handle)
            .collect();
        let (channel, part, made) = (file.channel, file.part.clone(), file.made);
        for (channel, handle) in &handles {
            self.ask_file(
                *channel,
                entry,
                FileStep::CleanUp,
                Request::Close { handle },
            );
        }
        if made {
            self.ask_file(
                channel,
                entry,
                FileStep::CleanUp,
                Request::Remove { path: &part },
            );
        }
    }

    pub(super) fn file_failed(&mut self, entry: usize) {
        // Blocks of it may still be read: their readers are told apart by the file's writers.
        let Some(mut file) = self.files.remove(&entry) else {
            return;
        };
        for it in self.channels.iter_mut() {
            let before = it.work.blocks.len();
            it.work.blocks.retain(|block| block.entry != entry);
            it.work.ahead -= before - it.work.blocks.len();
        }
        self.channels[file.channel].files -= 1;
        self.forget_progress(entry, &file);
        self.failed_files.insert(entry);
        let size = self.plan.entries[entry].size();
        let there = file.octets + file.progress.kept;
        self.left = self.left.saturating_sub(size.saturating_sub(there));
        if let Some(trouble) = file.trouble.take() {
            self.failed(file.path, trouble);
        }
    }
}

impl File {
    /// Whether nobody has said by which mode it is to be put in place: that of the source without what the server's umask
    /// takes, and with less than the part was made with.
    fn has_unknown_mode(&self, preserve: bool) -> bool {
        !preserve && self.replaces.is_none() && self.mode & OWN_USE != OWN_USE
    }

    /// The mode that its part gets before its name; none if it has it.
    fn final_mode(&self, preserve: bool) -> Option<u32> {
        match (preserve, self.replaces) {
            (true, _) => Some(self.opened.as_ref()?.mode & 0o7777),
            (false, Some(replaced)) => Some(replaced & 0o777),
            (false, None) if self.has_unknown_mode(preserve) => {
                let made = self.part_is.and_then(|part| part.permissions());
                Some(made.unwrap_or(self.mode | OWN_USE) & (self.mode | !OWN_USE))
            }
            (false, None) => None,
        }
    }

    /// Whether nobody has said which times it is to have, and its mark has taken its own.
    fn has_unknown_times(&self, preserve: bool) -> bool {
        !preserve && self.has_marked_times()
    }

    /// Whether it has a mark, also one of an earlier run.
    fn has_marked_times(&self) -> bool {
        let found = self.progress.found.and_then(|found| found.times);
        self.mark.is_set() || found.is_some_and(|(accessed, _)| accessed >= FIRST_MARK)
    }

    /// The times that its part gets before its name; none if it has them. What is marked and keeps none was last read, as the host
    /// sees it, when it was last written.
    fn final_times(&self, preserve: bool) -> Option<(u32, u32)> {
        let opened = self.opened.as_ref()?;
        let written = self.part_is.and_then(|part| part.modified());
        match preserve {
            true => Some(opened.times),
            false if self.has_marked_times() => Some(written.map_or(opened.times, |it| (it, it))),
            false => None,
        }
    }

    /// A handle that is not closed yet.
    fn keep_open(&mut self, (channel, handle): (usize, Handle)) {
        let mut writers = self.writers.iter_mut();
        if let Some(writer) = writers.find(|writer| writer.channel == channel) {
            writer.handle = Some(handle);
        }
    }
}
