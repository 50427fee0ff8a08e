//! Going on where an earlier transfer was cut.
//!
//! An octet is proven when the server has confirmed that it was written, and has afterwards confirmed an fsync of the part
//! (fsync@openssh.com): then it outlives the connection, this program and a reboot of the host. A part that is there is
//! taken over only if it is a regular file, as long as what is proven, ours to change, and the same before and after it was
//! opened. Otherwise what was proven is forgotten, and the file sent whole.

use std::ops::Range;

use sshoal_journal::Segments;

use super::files::{File, FileStep, Stage, Writer};
use super::opening::OWN_USE;
use super::{Asked, Upload, UploadNeed};
use crate::Trouble;
use crate::ranges::Span;
use crate::sftp::{
    Attributes, Extension, FileType, Handle, Open, Reply, Request, Status, StatusCode,
};

/// Octets of a file that the server has confirmed, and that it is then to bring to its disk.
pub const CHECKPOINT: u64 = 8 * 1024 * 1024;
/// Octets that one channel may have begun and that are not proven, of all files of which a journal is kept: what had come since the
/// last fsync, and what comes while that goes on. No more than this is sent twice after a cut.
pub(super) const MOST_UNPROVEN: u64 = 2 * CHECKPOINT;

/// How far a file is.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Octets of an earlier transfer's that are not sent again.
    pub(super) kept: u64,
    /// What is confirmed.
    written: Segments,
    /// Octets confirmed since the last fsync was asked for.
    since: u64,
    /// What is proven when the fsync that is asked for is confirmed.
    asked: Option<Segments>,
    /// What the part was before it was opened.
    pub(super) found: Option<Attributes>,
}

/// What one writer has begun of a file of which a journal is kept, and nobody has proven.
#[derive(Debug, Default)]
pub(super) struct Unproven {
    /// All of it, octets.
    begun: u64,
    /// What of that is confirmed since the last fsync was asked for.
    confirmed: u64,
    /// What of that was confirmed then.
    asked: u64,
}

/// What is asked about a part that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResumeStep {
    Look,
    Open,
    LookAgain,
    /// Setting its mode: whoever may do that owns it.
    Own,
}

impl Upload {
    /// Looks at the part that an earlier transfer has left.
    pub(super) fn resume(&mut self, entry: usize) {
        let Some(file) = self.files.get_mut(&entry) else {
            return;
        };
        file.stage = Stage::Resume;
        // It may be there, and goes with the file if that is given up.
        file.made = true;
        let (channel, part) = (file.channel, file.part.clone());
        let step = FileStep::Resume(ResumeStep::Look);
        self.ask_file(channel, entry, step, Request::Lstat { path: &part });
    }

    pub(super) fn handle_resumed(&mut self, entry: usize, step: ResumeStep, reply: Reply) {
        let Some(file) = self.files.get_mut(&entry) else {
            return;
        };
        let (channel, part) = (file.channel, file.part.clone());
        if let (ResumeStep::Open, Reply::Handle(handle)) = (step, &reply) {
            let mut writer = Writer::new(channel, Span { at: 0, end: 0 });
            writer.handle = Some(handle.clone());
            file.writers.push(writer);
        }
        if file.stage != Stage::Resume {
            // It has been given up meanwhile.
            if step == ResumeStep::Open {
                self.close_up(entry);
            }
            return;
        }
        let handle = file.writers.first().and_then(|first| first.handle.clone());
        let ask = |step| FileStep::Resume(step);
        match (step, reply, handle) {
            (ResumeStep::Look, Reply::Attributes(found), _) if file.may_be_resumed(&found) => {
                file.progress.found = Some(found);
                let request = Request::Open {
                    path: &part,
                    how: Open::Write,
                    attributes: Attributes::default(),
                };
                self.ask_file(channel, entry, ask(ResumeStep::Open), request);
            }
            (ResumeStep::Open, Reply::Handle(handle), _) => {
                let request = Request::Fstat { handle: &handle };
                self.ask_file(channel, entry, ask(ResumeStep::LookAgain), request);
            }
            (ResumeStep::LookAgain, Reply::Attributes(now), Some(handle))
                if file.progress.found == Some(now) =>
            {
                // The mode that it has, which the server's umask had a say in.
                let attributes = Attributes {
                    mode: now.permissions().or(Some(file.mode | OWN_USE)),
                    ..Attributes::default()
                };
                let handle = &handle;
                let request = Request::Fsetstat { handle, attributes };
                self.ask_file(channel, entry, ask(ResumeStep::Own), request);
            }
            (ResumeStep::Own, Reply::Status(status), Some(_)) if status.code == StatusCode::Ok => {
                self.go_on_with_part(entry);
            }
            _ => self.begin_anew(entry),
        }
    }

    /// The part is as it was left: what is proven to be in it is not sent.
    fn go_on_with_part(&mut self, entry: usize) {
        let Some(file) = self.files.get_mut(&entry) else {
            return;
        };
        let Some(opened) = &file.opened else { return };
        let (Some(size), Some(proven)) = (opened.size, &opened.proven) else {
            return;
        };
        let all = 0..size;
        let wanted = opened.data.as_deref();
        file.todo = Some(proven.missing(wanted.unwrap_or(std::slice::from_ref(&all))));
        file.progress.kept = proven.octets();
        file.progress.written = proven.clone();
        file.writers[0].span = Span { at: 0, end: size };
        file.stage = Stage::Write;
        self.left = self.left.saturating_sub(file.progress.kept);
        self.mark_large_part(entry);
    }

    /// The part is not what was left: it goes, and before that all that is known of it.
    fn begin_anew(&mut self, entry: usize) {
        let Some(file) = self.files.get_mut(&entry) else {
            return;
        };
        file.stage = Stage::Forget;
        let handle = file.writers.pop().and_then(|mut first| first.take_handle());
        if let Some((channel, handle)) = handle {
            let request = Request::Close { handle: &handle };
            self.ask_file(channel, entry, FileStep::CleanUp, request);
        }
        self.needs.push_back(UploadNeed::Forget { entry });
    }

    /// The answer to [`UploadNeed::Forget`].
    pub fn provide_forgotten(&mut self, entry: usize, forgotten: Result<(), String>) {
        let is_awaited = |file: &&mut File| file.stage == Stage::Forget;
        if self.files.get_mut(&entry).filter(is_awaited).is_some() {
            match forgotten {
                Ok(()) => self.create_part(entry),
                Err(error) => {
                    let doing = "noting that it is sent anew";
                    self.fail_file(entry, Trouble::Local { doing, error });
                }
            }
        }
        self.advance();
    }

    /// Octets are written there.
    pub(super) fn confirm(&mut self, entry: usize, writer: usize, octets: Range<u64>) {
        let proves = self.proves();
        let Some(file) = self.files.get_mut(&entry) else {
            return;
        };
        if !proves || !file.is_noted() || file.stage != Stage::Write {
            return;
        }
        let len = octets.end - octets.start;
        file.progress.since += len;
        let octets = file.with_hole_before(octets);
        file.progress.written.insert(octets);
        let it = &mut file.writers[writer];
        it.unproven.confirmed += len;
        if file.progress.since >= CHECKPOINT && file.progress.asked.is_none() {
            let opened = it.opened();
            self.ask_for_proof(entry, opened);
        }
    }

    /// Has what is confirmed of a file brought to the disk, unless that goes on.
    fn ask_for_proof(&mut self, entry: usize, opened: Option<(usize, Handle)>) {
        let Some(file) = self.files.get_mut(&entry) else {
            return;
        };
        let (Some((channel, handle)), None) = (opened, &file.progress.asked) else {
            return;
        };
        file.progress.since = 0;
        file.progress.asked = Some(file.progress.written.clone());
        for writer in &mut file.writers {
            let it = &mut writer.unproven;
            it.asked = std::mem::take(&mut it.confirmed);
        }
        let request = Request::Fsync { handle: &handle };
        self.ask_file(channel, entry, FileStep::Checkpoint, request);
    }

    /// Whether the server can bring to its disk what it has confirmed.
    pub(super) fn proves(&self) -> bool {
        self.channels[0].client.has(Extension::Fsync)
    }

    /// Whether the server has been asked on a channel to bring something to its disk, and has not said that it has.
    pub fn awaits_disk(&self, channel: usize) -> bool {
        let is_fsync = |asked: &Asked| {
            let Asked::File { step, .. } = asked else {
                return matches!(asked, Asked::Device(_));
            };
            matches!(step, FileStep::Checkpoint | FileStep::Settle(_))
        };
        self.channels[channel].client.asked().any(is_fsync)
    }

    /// A channel has so much to be proven that it begins nothing more: where nothing that is under way leads to that, it is asked for.
    pub(super) fn prove_what_waits(&mut self, channel: usize) {
        let waits = |file: &&File| {
            let mut writers = file.writers.iter();
            let is_its = writers.any(|it| it.channel == channel && it.unproven.confirmed > 0);
            file.stage == Stage::Write && is_its && file.writers.iter().all(|it| it.open == 0)
        };
        let files = self.files.iter();
        let waiting: Vec<usize> = files
            .filter(|(_, file)| waits(file))
            .map(|(&entry, _)| entry)
            .collect();
        for entry in waiting {
            let file = self.files.get(&entry);
            let opened = file.and_then(|file| file.writers.iter().find_map(Writer::opened));
            self.ask_for_proof(entry, opened);
        }
    }

    /// A file is whole or given up: nothing of it is sent twice by whoever goes on with others.
    pub(super) fn forget_progress(&mut self, entry: usize, file: &File) {
        if file.is_noted() {
            self.over.push_back(entry);
        }
        for writer in &file.writers {
            self.channels[writer.channel].work.unproven -= writer.unproven.begun;
        }
    }

    pub(super) fn handle_checkpoint(&mut self, entry: usize, refused: Option<Status>) {
        let Some(file) = self.files.get_mut(&entry) else {
            return;
        };
        let asked = file.progress.asked.take();
        match refused {
            // What the disk has not taken before it will not take at the end.
            Some(status) => self.fail_file(entry, Trouble::remote("writing to the disk", &status)),
            None => {
                for writer in &mut file.writers {
                    let octets = std::mem::take(&mut writer.unproven.asked);
                    writer.unproven.begun -= octets;
                    self.channels[writer.channel].work.unproven -= octets;
                }
                let opened = file.writers.iter().find_map(Writer::opened);
                let is_due = file.stage == Stage::Write && file.progress.since >= CHECKPOINT;
                self.proven.extend(asked.map(|segments| (entry, segments)));
                if is_due {
                    self.ask_for_proof(entry, opened);
                }
            }
        }
    }
}

impl File {
    /// Nobody knows whether the fsync that was asked for has been done: it is asked for again.
    pub(super) fn forget_checkpoint(&mut self) {
        self.progress.asked = None;
        self.progress.since = CHECKPOINT;
        for writer in &mut self.writers {
            let it = &mut writer.unproven;
            it.confirmed += std::mem::take(&mut it.asked);
        }
    }

    /// Octets that are written, with the hole before them, if there is one: nobody writes into that, and the part has it when they
    /// are there. So what lies on both sides of a hole becomes one segment.
    fn with_hole_before(&self, octets: Range<u64>) -> Range<u64> {
        let opened = self.opened.as_ref();
        let Some(data) = opened.and_then(|opened| opened.data.as_deref()) else {
            return octets;
        };
        let at = data.partition_point(|extent| extent.end <= octets.start);
        let begins = data
            .get(at)
            .is_some_and(|extent| extent.start == octets.start);
        let before = data[..at].last().map_or(0, |extent| extent.end);
        match begins {
            true => before..octets.end,
            false => octets,
        }
    }

    /// Whether a journal is kept of it.
    pub(super) fn is_noted(&self) -> bool {
        self.opened.as_ref().is_some_and(|it| it.proven.is_some())
    }

    /// Whether what is there may be the part that was left.
    fn may_be_resumed(&self, found: &Attributes) -> bool {
        let opened = self.opened.as_ref();
        let end = opened.and_then(|opened| Some(opened.proven.as_ref()?.end()));
        found.file_type() == FileType::File && found.size >= end && end.is_some()
    }
}

impl Unproven {
    /// So many octets are begun.
    pub(super) fn begin(&mut self, octets: u64) {
        self.begun += octets;
    }

    /// The writer's channel is lost: what is not confirmed has another one begin it. Returns how much less is begun.
    pub(super) fn give_back(&mut self) -> u64 {
        let confirmed = self.confirmed + self.asked;
        let rest = self.begun - confirmed;
        self.begun = confirmed;
        rest
    }

    /// What is begun and not proven.
    pub(super) fn octets(&self) -> u64 {
        self.begun
    }
}
