//! Files' contents: each into a part beside its target, by one channel or several, then checked, settled and renamed.
//!
//! ```text
//! Look -> open here -> Create or Resume -> Write (one span a writer) -> check here -> Settle (owner, mode, times, fsync, close) -> Rename
//!   \       \_ Again (the part cannot be told from another file) _/              (a mode that the host could not hash it by) Verify -> SetMode _/
//!    \________________________________________________________________________________________________________ CleanUp
//! ```

use std::collections::VecDeque;
use std::ops::Range;

use super::opening::Mark;
use super::placing::Aside;
use super::resuming::{Progress, ResumeStep, Unproven};
use super::verifying::Hashes;
use super::{Asked, Kind, Opened, Phase, Upload, UploadNeed};
use crate::ranges::Span;
use crate::sftp::{Attributes, FileType, Handle, Reply, Request, StatusCode};
use crate::{Remote, Trouble};

/// Files that one channel has under way.
const FILES_A_CHANNEL: usize = 64;
/// Octets that wait in a channel's queue before more blocks are put into it.
pub(super) const QUEUED: usize = 256 * 1024;

/// A file that is being sent.
pub(super) struct File {
    pub(super) path: Vec<u8>,
    pub(super) part: Vec<u8>,
    /// The channel that made the part, and settles and renames it.
    pub(super) channel: usize,
    /// Permissions of what it replaces.
    pub(super) replaces: Option<u32>,
    /// Permissions that it is to have, as far as the server's umask leaves them.
    pub(super) mode: u32,
    /// The same, if they are set when it has been hashed.
    pub(super) late_mode: Option<u32>,
    pub(super) opened: Option<Opened>,
    pub(super) writers: Vec<Writer>,
    pub(super) mark: Mark,
    /// Octets that somebody has to write whose own are done: their writer has gone.
    pub(super) returned: Vec<Span>,
    pub(super) stage: Stage,
    /// Requests without a reply.
    pub(super) unanswered: usize,
    /// Whether the part may be there.
    pub(super) made: bool,
    /// Whether what an earlier transfer left has been removed.
    pub(super) cleared: bool,
    /// Whether the part may be in place already: the answer went with its connection.
    pub(super) renames_again: bool,
    /// Of what was there.
    pub(super) aside: Aside,
    /// Why the part did not get its name.
    pub(super) refusal: Option<Trouble>,
    pub(super) trouble: Option<Trouble>,
    pub(super) octets: u64,
    /// What is to be sent, in order, if that is not all of it.
    pub(super) todo: Option<Vec<Range<u64>>>,
    pub(super) progress: Progress,
    pub(super) hashes: Hashes,
    /// What is there already, and lacks this.
    pub(super) lacks: VecDeque<Attributes>,
    /// What the part is, if that had to be known.
    pub(super) part_is: Option<Attributes>,
}

/// One channel's work on a file.
pub(super) struct Writer {
    pub(super) channel: usize,
    pub(super) handle: Option<Handle>,
    /// What was opened by the part's path, and is not known to be the part.
    pub(super) unknown: Option<Handle>,
    /// Whether it is being opened, or looked at.
    pub(super) is_opening: bool,
    pub(super) span: Span,
    /// Whether the server would not open the file on its channel, or opened another.
    pub(super) is_refused: bool,
    /// Blocks that are being read, wait to be written or are not confirmed.
    pub(super) open: usize,
    pub(super) unproven: Unproven,
}

impl Writer {
    pub(super) fn new(channel: usize, span: Span) -> Writer {
        Writer {
            channel,
            handle: None,
            unknown: None,
            is_opening: false,
            span,
            is_refused: false,
            open: 0,
            unproven: Unproven::default(),
        }
    }

    /// The handle, and its channel.
    pub(super) fn opened(&self) -> Option<(usize, Handle)> {
        Some((self.channel, self.handle.clone()?))
    }

    /// The handle, to be closed on its channel.
    pub(super) fn take_handle(&mut self) -> Option<(usize, Handle)> {
        let handle = self.handle.take().or_else(|| self.unknown.take());
        Some((self.channel, handle?))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Look,
    /// What is there has the size of what is to be sent: both ends hash it.
    Compare,
    /// It is the same, and gets its owner, mode and times.
    Touch,
    OpenHere,
    /// What an earlier transfer left is looked at, and opened.
    Resume,
    /// What was proven of it is forgotten, before it goes.
    Forget,
    Create,
    Write,
    CheckHere,
    /// Nobody can tell the part from another file: it is sent anew when nothing of it is under way.
    Again,
    /// The handle went with its connection.
    Reopen,
    Settle,
    /// The host hashes the part.
    Verify,
    /// It has, and could not by this mode.
    SetMode,
    Rename,
    CleanUp,
}

/// What a request about a file was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileStep {
    Look,
    /// The answer does not matter.
    Clear,
    Open {
        writer: usize,
    },
    /// Whether that is the part.
    LookAtOpened {
        writer: usize,
    },
    Mark,
    /// Whether the host keeps the mark.
    LookAtMark,
    Write {
        writer: usize,
        offset: u64,
        octets: u32,
    },
    Resume(ResumeStep),
    /// What has been written is on the disk.
    Checkpoint,
    Settle(&'static str),
    /// Whom the part belongs to, and which mode it has.
    LookAtPart,
    Own,
    Rename,
    /// What is there is out of the way.
    SetAside,
    /// It has its name again.
    PutBack,
    /// Nobody needs it any more; the answer does not matter.
    ClearAside,
    /// The part is not there any more.
    LookInPlace,
    /// What the file system says of a failure.
    Explain,
    /// The answer does not matter.
    CleanUp,
}

impl Upload {
    /// Begins files while there is room, and has idle channels help with large ones.
    pub(super) fn send_files(&mut self) {
        let are_small_done = self.send_small();
        for channel in 0..self.channels.len() {
            if !self.channels[channel].client.is_ready() {
                continue;
            }
            let is_retired = self.channels.is_retired(channel);
            while !is_retired
                && self.has_room_for_file(channel)
                && let Some(entry) = self.next_file()
            {
                self.begin_file(channel, entry);
            }
            if !is_retired && self.is_idle(channel) && !self.interrupted {
                self.help(channel);
            }
            self.read_ahead(channel);
            self.write_blocks(channel);
        }
        if self.files.is_empty()
            && are_small_done
            && (self.interrupted || self.next >= self.plan.entries.len())
        {
            self.phase = match self.interrupted {
                // What was opened for it is closed again.
                true => Phase::FolderAttributes,
                false => Phase::Links,
            };
        }
    }

    fn has_room_for_file(&self, channel: usize) -> bool {
        let channel = &self.channels[channel];
        let most = FILES_A_CHANNEL.min(channel.client.limits().handles);
        channel.files < most && channel.client.waiting() < QUEUED && !self.interrupted
    }

    /// The next entry with contents of its own.
    fn next_file(&mut self) -> Option<usize> {
        if let Some(entry) = self.small.for_sftp.pop_front() {
            return Some(entry);
        }
        let plan = self.plan.clone();
        while let Some(entry) = plan.entries.get(self.next) {
            let number = self.next;
            self.next += 1;
            let has_contents = match entry.kind {
                _ if self.small.takes(entry, plan.preserve) => false,
                Kind::File { .. } | Kind::Device { .. } | Kind::Stream => true,
                Kind::HardLink { .. } => !self.makes_hard_links(),
                Kind::Folder | Kind::Link { .. } => false,
            };
            if !has_contents {
                continue;
            }
            match self.hindrance(number) {
                None => return Some(number),
                Some(trouble) => {
                    self.left = self.left.saturating_sub(entry.size());
                    self.failed_files.insert(number);
                    self.failed(self.path(number), trouble);
                }
            }
        }
        None
    }

    fn begin_file(&mut self, channel: usize, entry: usize) {
        let path = self.path(entry);
        let file = File {
            part: self.part(&path),
            path,
            channel,
            replaces: None,
            mode: 0o600,
            late_mode: None,
            opened: None,
            writers: Vec::new(),
            mark: Mark::first(self.seed),
            returned: Vec::new(),
            stage: Stage::Look,
            unanswered: 0,
            made: false,
            cleared: false,
            renames_again: false,
            aside: Aside::No,
            refusal: None,
            trouble: None,
            octets: 0,
            todo: None,
            progress: Progress::default(),
            hashes: Hashes::default(),
            lacks: VecDeque::new(),
            part_is: None,
        };
        self.channels[channel].files += 1;
        let path = file.path.clone();
        self.files.insert(entry, file);
        self.ask_file(
            channel,
            entry,
            FileStep::Look,
            Request::Lstat { path: &path },
        );
    }

    pub(super) fn ask_file(
        &mut self,
        channel: usize,
        entry: usize,
        step: FileStep,
        request: Request<'_>,
    ) {
        if let Some(file) = self.files.get_mut(&entry) {
            file.unanswered += 1;
            let asked = Asked::File { entry, step };
            self.channels[channel].client.request(request, asked);
        }
    }

    /// What a request was about is not on its way any more, whatever became of it.
    pub(super) fn arrived(&mut self, step: FileStep) {
        if let FileStep::Write { octets, .. } = step {
            self.on_the_way = self.on_the_way.saturating_sub(octets.into());
        }
    }

    pub(super) fn handle_file(
        &mut self,
        channel: usize,
        entry: usize,
        step: FileStep,
        reply: Reply,
    ) {
        self.arrived(step);
        let Some(file) = self.files.get_mut(&entry) else {
            return;
        };
        file.unanswered -= 1;
        let refused = match &reply {
            Reply::Status(status) if status.code != StatusCode::Ok => Some(status.clone()),
            _ => None,
        };
        match (step, reply) {
            (FileStep::Look, reply) => self.handle_looked(entry, &reply),
            (FileStep::Clear | FileStep::CleanUp, _) => {}
            (FileStep::Open { writer }, Reply::Handle(handle)) => {
                self.handle_opened(entry, writer, handle);
            }
            (FileStep::Open { writer }, _) => {
                self.handle_not_opened(channel, entry, writer, refused)
            }
            (FileStep::LookAtOpened { writer }, reply) => {
                self.handle_opened_seen(entry, writer, &reply);
            }
            (FileStep::Mark, _) => {
                if refused.is_some() {
                    file.mark = Mark::Refused;
                }
            }
            (FileStep::LookAtMark, reply) => file.mark.seen(&reply),
            (
                FileStep::Write {
                    writer,
                    offset,
                    octets,
                },
                _,
            ) => match refused {
                Some(status) => self.fail_file(entry, Trouble::remote("writing", &status)),
                None => {
                    file.writers[writer].open -= 1;
                    file.octets += u64::from(octets);
                    self.moved(octets.into());
                    self.confirm(entry, writer, offset..offset + u64::from(octets));
                }
            },
            (FileStep::Resume(step), reply) => self.handle_resumed(entry, step, reply),
            (FileStep::Checkpoint, _) => self.handle_checkpoint(entry, refused),
            (FileStep::Settle(doing), _) => {
                if let Some(status) = refused {
                    self.fail_file(entry, Trouble::remote(doing, &status));
                }
            }
            (FileStep::LookAtPart, reply) => self.handle_part_seen(entry, &reply),
            (FileStep::Own, _) => {
                if let Some(status) = refused {
                    let trouble = self.owner(entry).refused(&status);
                    self.fail_file(entry, trouble);
                }
            }
            (FileStep::Rename, _) => self.handle_renamed(entry, refused),
            (FileStep::SetAside, _) => self.handle_set_aside(entry, refused),
            (FileStep::PutBack, _) => self.handle_put_back(entry, refused),
            (FileStep::ClearAside, _) => self.file_done(entry, false),
            (FileStep::LookInPlace, reply) => self.handle_looked_in_place(entry, &reply),
            (FileStep::Explain, Reply::Filesystem(filesystem)) => {
                if let Some(Trouble::Remote { why, .. }) = &mut file.trouble {
                    *why = why.clone().explained(&filesystem);
                    match (&why, &self.found_out) {
                        // The parts of others that failed have made room again.
                        (Remote::Said(_), Some(before)) => *why = before.clone(),
                        (Remote::Said(_), None) => {}
                        _ => self.found_out = Some(why.clone()),
                    }
                }
            }
            (FileStep::Explain, _) => {}
        }
        self.go_on(entry);
    }

    /// What is there now.
    fn handle_looked(&mut self, entry: usize, reply: &Reply) {
        let Some(file) = self.files.get_mut(&entry) else {
            return;
        };
        if let Reply::Attributes(there) = reply {
            match there.file_type() {
                FileType::Folder => return self.fail_file(entry, Trouble::FolderInTheWay),
                FileType::BlockDevice | FileType::CharacterDevice => {
                    return self.fail_file(entry, Trouble::DeviceInTheWay);
                }
                FileType::File => {
                    file.replaces = there.permissions();
                    let is_like = match &self.plan.entries[entry] {
                        it if self.plan.hashing.compares => it.has_size_of(there),
                        it => it.is_like(there, self.plan.preserve),
                    };
                    if is_like && self.plan.hashing.compares {
                        file.stage = Stage::Compare;
                        return self.compare(entry, *there, false);
                    }
                    if is_like {
                        return self.file_is_there(entry, there);
                    }
                }
                _ => {}
            }
        }
        if file.trouble.is_none() {
            file.stage = Stage::OpenHere;
            self.needs.push_back(UploadNeed::Open { entry });
        }
    }

    /// A file goes to its next stage when nothing of this one is open.
    pub(super) fn go_on(&mut self, entry: usize) {
        let Some(file) = self.files.get_mut(&entry) else {
            return;
        };
        match file.stage {
            Stage::Write => {
                let is_done = |writer: &Writer| writer.span.left() == 0 && writer.open == 0;
                let is_done = file.writers.iter().all(is_done) && file.returned.is_empty();
                if file.unanswered == 0 && is_done {
                    file.stage = Stage::CheckHere;
                    // What ends in a hole gets its length when it is settled.
                    if file.todo.is_none() {
                        self.ask_for_hash(entry);
                    }
                    let hashes = self.verifies();
                    self.needs.push_back(UploadNeed::Check { entry, hashes });
                }
            }
            Stage::Again if file.is_quiet() => self.open_anew(entry),
            Stage::Settle if file.unanswered == 0 => self.verify_part(entry),
            Stage::SetMode if file.unanswered == 0 => self.rename_part(entry),
            Stage::Touch if file.unanswered == 0 => {
                file.lacks.pop_front();
                self.touch(entry);
            }
            Stage::CleanUp if file.unanswered == 0 => self.file_failed(entry),
            _ => {}
        }
    }
}
