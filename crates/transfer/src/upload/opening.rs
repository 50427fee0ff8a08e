//! The beginning of a file: opened here, its part made there, and opened by further channels.
//!
//! These open it by its path, at which somebody who may write to its folder may have put a link meanwhile, and at which another
//! machine behind the same address may have another file. So the part is marked first, by the handle of whoever made it: its time
//! of last access is set to one in the future. Writing does not change that, nor does reading where it is after all other times of
//! the file (mount(8), relatime); and nobody but a file's owner or root can set another time than the present one (utimensat(2)). What
//! is opened and does not have the mark is not written to.

use std::hash::Hasher;

use siphasher::sip::SipHasher13;

use super::contents::LEAST_HELPED;
use super::files::{File, FileStep, Stage, Writer};
use super::{Opened, Upload, UploadNeed};
use crate::Trouble;
use crate::ranges::Span;
use crate::sftp::{Attributes, FileType, Handle, Open, Reply, Request, Status, StatusCode};

/// The right to read, which whoever hashes a part there needs.
pub(super) const OWN_READ: u32 = 0o400;
/// What a part's owner may do until it is settled, whatever the file is to be: further channels open it, later transfers go on
/// with it, and programs on the host hash it.
pub(super) const OWN_USE: u32 = 0o600;

/// The first of the times that mark parts, seconds since 1970: the year 2036.
pub(super) const FIRST_MARK: u32 = 2_082_758_400;
/// How many there are: up to the last second that every file system and every server can tell.
const MARKS: u32 = i32::MAX as u32 - FIRST_MARK;

/// Whether further channels can tell the part from other files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// It has none yet.
    None,
    /// This time of last access is being set.
    Asked(u32),
    /// The host keeps it.
    Kept(u32),
    /// The host has made another time of it.
    Altered,
    /// It cannot be set.
    Refused,
}

impl Mark {
    /// Where nothing is to be had that nobody can foresee there is none.
    pub(super) fn first(seed: Option<u64>) -> Mark {
        seed.map_or(Mark::Refused, |_| Mark::None)
    }

    /// Whether further channels may write the part, or may yet.
    pub(super) fn lets_help(self) -> bool {
        matches!(self, Mark::None | Mark::Asked(_) | Mark::Kept(_))
    }

    /// Whether the part has another time of last access than it would have by itself.
    pub(super) fn is_set(self) -> bool {
        matches!(self, Mark::Asked(_) | Mark::Kept(_) | Mark::Altered)
    }

    /// What the part has after it was asked for.
    pub(super) fn seen(&mut self, reply: &Reply) {
        if let Mark::Asked(mark) = *self {
            *self = match Mark::Kept(mark).is_of(reply) {
                true => Mark::Kept(mark),
                false => Mark::Altered,
            };
        }
    }

    /// Whether this is what is told of the part.
    fn is_of(self, reply: &Reply) -> bool {
        let (Mark::Kept(mark), Reply::Attributes(it)) = (self, reply) else {
            return false;
        };
        let accessed = it.times.map(|(accessed, _)| accessed);
        it.file_type() == FileType::File && accessed == Some(mark)
    }
}

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
        file.made = true;
        match file.stage {
            Stage::Create => {
                file.writers[writer].handle = Some(handle);
                file.stage = Stage::Write;
                self.mark_large_part(entry);
            }
            Stage::CleanUp => {
                file.writers[writer].handle = Some(handle);
                self.close_up(entry);
            }
            _ => {
                let it = &mut file.writers[writer];
                it.unknown = Some(handle.clone());
                let channel = it.channel;
                let request = Request::Fstat { handle: &handle };
                self.ask_file(channel, entry, FileStep::LookAtOpened { writer }, request);
            }
        }
    }

    pub(super) fn handle_not_opened(
        &mut self,
        channel: usize,
        entry: usize,
        writer: usize,
        refused: Option<Status>,
    ) {
        let Some(file) = self.files.get_mut(&entry) else {
            return;
        };
        let Some(status) = refused.filter(|_| file.stage != Stage::CleanUp) else {
            return;
        };
        if file.stage != Stage::Create {
            return self.refuse_writer(entry, writer);
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

    /// Marks a part that others are about to help with: nothing else is to be begun.
    pub(super) fn mark_large_part(&mut self, entry: usize) {
        let is_last = self.next >= self.plan.entries.len() && self.small.for_sftp.is_empty();
        let file = self.files.get(&entry);
        let size = file.and_then(|file| file.opened.as_ref()?.size);
        let is_large = size.is_some_and(|size| size >= LEAST_HELPED);
        if is_large && is_last && self.channels.open() > 1 {
            self.mark_part(entry);
        }
    }

    /// Marks the part, and looks whether it is marked; it is written on meanwhile.
    pub(super) fn mark_part(&mut self, entry: usize) {
        let (Some(seed), Some(file)) = (self.seed, self.files.get_mut(&entry)) else {
            return;
        };
        let maker = file.writers.first().and_then(Writer::opened);
        let (Mark::None, Some((channel, handle)), Some(opened)) = (file.mark, maker, &file.opened)
        else {
            return;
        };
        // Not by the path: one that is made anew is another, and on another machine there may be both.
        self.marks += 1;
        let mut hasher = SipHasher13::new_with_keys(seed, 0);
        hasher.write_u64(self.marks);
        let mark = FIRST_MARK + (hasher.finish() % u64::from(MARKS)) as u32;
        file.mark = Mark::Asked(mark);
        // What is written from now on gives it the host's own.
        let found = file.progress.found.and_then(|found| found.modified());
        let modified = found.unwrap_or(opened.times.1);
        let handle = &handle;
        let attributes = Attributes {
            times: Some((mark, modified)),
            ..Attributes::default()
        };
        let request = Request::Fsetstat { handle, attributes };
        self.ask_file(channel, entry, FileStep::Mark, request);
        let request = Request::Fstat { handle };
        self.ask_file(channel, entry, FileStep::LookAtMark, request);
    }

    /// Opens what is at the part's path, for a writer.
    pub(super) fn open_part(&mut self, entry: usize, writer: usize) {
        let Some(file) = self.files.get_mut(&entry) else {
            return;
        };
        let it = &mut file.writers[writer];
        it.is_opening = true;
        let (channel, part) = (it.channel, file.part.clone());
        let request = Request::Open {
            path: &part,
            how: Open::Write,
            attributes: Attributes::default(),
        };
        self.ask_file(channel, entry, FileStep::Open { writer }, request);
    }

    /// What was opened by the part's path is the part, or is closed again.
    pub(super) fn handle_opened_seen(&mut self, entry: usize, writer: usize, reply: &Reply) {
        let Some(file) = self.files.get_mut(&entry) else {
            return;
        };
        let is_part = file.mark.is_of(reply);
        let it = &mut file.writers[writer];
        // It may have been given up, and closed.
        let Some(handle) = it.unknown.take() else {
            return;
        };
        if is_part {
            it.handle = Some(handle);
            it.is_opening = false;
            if file.stage == Stage::Reopen {
                self.settle(entry);
            }
            return;
        }
        let channel = it.channel;
        let request = Request::Close { handle: &handle };
        self.ask_file(channel, entry, FileStep::CleanUp, request);
        self.refuse_writer(entry, writer);
    }

    /// A channel does without the file, and the file without it, if anybody else has it open.
    fn refuse_writer(&mut self, entry: usize, writer: usize) {
        let Some(file) = self.files.get_mut(&entry) else {
            return;
        };
        let it = &mut file.writers[writer];
        it.is_refused = true;
        it.is_opening = false;
        let span = std::mem::take(&mut it.span);
        file.give_back(span);
        self.see_who_writes(entry);
    }

    /// Sends a file anew that nobody has open, nor is about to; one that is whole is settled by whoever has it open.
    pub(super) fn see_who_writes(&mut self, entry: usize) {
        let Some(file) = self.files.get_mut(&entry) else {
            return;
        };
        let is_opening = file.writers.iter().any(|it| it.is_opening);
        let is_open = file.writers.iter().any(|it| it.handle.is_some());
        match file.stage {
            Stage::Write | Stage::Reopen if !is_open && !is_opening => self.begin_again(entry),
            Stage::Reopen if !is_opening => self.settle(entry),
            _ => {}
        }
    }

    /// Nobody can tell the part from another file any more: it goes, and another one is made.
    pub(super) fn begin_again(&mut self, entry: usize) {
        let Some(file) = self.files.get_mut(&entry) else {
            return;
        };
        // It is opened here once more: with what is proven by then.
        if file.stage == Stage::Write {
            self.needs.push_back(UploadNeed::Release { entry });
        }
        file.opened = None;
        file.stage = Stage::Again;
        self.go_on(entry);
    }

    /// Nothing of it is under way any more.
    pub(super) fn open_anew(&mut self, entry: usize) {
        let first = Mark::first(self.seed);
        let Some(file) = self.files.get_mut(&entry) else {
            return;
        };
        for writer in file.writers.drain(..) {
            self.channels[writer.channel].work.unproven -= writer.unproven.octets();
        }
        self.left += file.octets + file.progress.kept;
        file.octets = 0;
        file.progress = Default::default();
        file.hashes = Default::default();
        file.returned.clear();
        (file.mark, file.cleared, file.part_is) = (first, false, None);
        file.stage = Stage::OpenHere;
        // Of a part that may be gone before that is noted.
        self.proven.retain(|(of, _)| *of != entry);
        self.needs.push_back(UploadNeed::Open { entry });
    }
}

impl File {
    /// Whether nothing of it is asked for, here or there.
    pub(super) fn is_quiet(&self) -> bool {
        let is_read = self.writers.iter().any(|writer| writer.open > 0);
        self.unanswered == 0 && !is_read && !self.hashes.is_awaited()
    }
}
