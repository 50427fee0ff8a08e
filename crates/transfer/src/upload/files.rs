//! Files' contents: each into a part beside its target, by one channel or several, then checked, settled and renamed.
//!
//! ```text
//! Look -> open here -> Create -> Write (one span a writer) -> check here -> Settle (modes, times, fsync, close) -> Rename
//!   \_________________________________________________________________________________________________________ CleanUp
//! ```

use std::sync::Arc;

use super::{Asked, Block, Kind, Opened, Phase, Upload, UploadNeed};
use crate::ranges::Span;
use crate::sftp::{Attributes, Extension, FileType, Handle, Open, Reply, Request, StatusCode};
use crate::{Remote, Trouble};

/// Files that one channel has under way.
const FILES_A_CHANNEL: usize = 64;
/// Octets that wait in a channel's queue before more blocks are put into it.
const QUEUED: usize = 256 * 1024;

/// A file that is being sent.
pub(super) struct File {
    pub(super) path: Vec<u8>,
    part: Vec<u8>,
    /// The channel that made the part, and settles and renames it.
    channel: usize,
    /// Permissions of what it replaces.
    replaces: Option<u32>,
    opened: Option<Opened>,
    writers: Vec<Writer>,
    stage: Stage,
    /// Requests without a reply.
    unanswered: usize,
    /// Whether the part may be there.
    made: bool,
    /// Whether what an earlier transfer left has been removed.
    cleared: bool,
    trouble: Option<Trouble>,
    octets: u64,
}

/// One channel's work on a file.
struct Writer {
    channel: usize,
    handle: Option<Handle>,
    span: Span,
    /// Whether the handle is another writer's.
    borrows: bool,
    /// Blocks that are being read, wait to be written or are not confirmed.
    open: usize,
}

impl Writer {
    fn new(channel: usize, span: Span) -> Writer {
        Writer {
            channel,
            handle: None,
            span,
            borrows: false,
            open: 0,
        }
    }

    /// The handle, to be closed on its channel.
    fn take_handle(&mut self) -> Option<(usize, Handle)> {
        let handle = self.handle.take().filter(|_| !self.borrows)?;
        Some((self.channel, handle))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Look,
    OpenHere,
    Create,
    Write,
    CheckHere,
    Settle,
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
    Write {
        writer: usize,
        octets: u32,
    },
    Settle(&'static str),
    Rename,
    /// What the server would not replace is out of the way; the answer does not matter.
    Replace,
    /// What the file system says of a failure.
    Explain,
    /// The answer does not matter.
    CleanUp,
}

impl Upload {
    /// Begins files while there is room, and has idle channels help with large ones.
    pub(super) fn send_files(&mut self) {
        for channel in 0..self.channels.len() {
            if !self.channels[channel].client.is_ready() {
                continue;
            }
            while self.has_room_for_file(channel)
                && let Some(entry) = self.next_file()
            {
                self.begin_file(channel, entry);
            }
            if self.is_idle(channel) && !self.interrupted {
                self.help(channel);
            }
            self.read_ahead(channel);
            self.write_blocks(channel);
        }
        if self.files.is_empty() && (self.interrupted || self.next >= self.plan.entries.len()) {
            self.phase = match self.interrupted {
                true => Phase::Ended,
                false => Phase::Links,
            };
        }
    }

    fn has_room_for_file(&self, channel: usize) -> bool {
        let channel = &self.channels[channel];
        let most = FILES_A_CHANNEL.min(channel.client.limits().handles);
        channel.files < most && channel.client.transmit().len() < QUEUED && !self.interrupted
    }

    /// The next entry with contents of its own.
    fn next_file(&mut self) -> Option<usize> {
        let plan = self.plan.clone();
        while let Some(entry) = plan.entries.get(self.next) {
            let number = self.next;
            self.next += 1;
            let has_contents = match entry.kind {
                Kind::File { .. } | Kind::Stream => true,
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
            opened: None,
            writers: Vec::new(),
            stage: Stage::Look,
            unanswered: 0,
            made: false,
            cleared: false,
            trouble: None,
            octets: 0,
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

    fn ask_file(&mut self, channel: usize, entry: usize, step: FileStep, request: Request<'_>) {
        if let Some(file) = self.files.get_mut(&entry) {
            file.unanswered += 1;
            let asked = Asked::File { entry, step };
            self.channels[channel].client.request(request, asked);
        }
    }

    pub(super) fn handle_file(
        &mut self,
        channel: usize,
        entry: usize,
        step: FileStep,
        reply: Reply,
    ) {
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
            (FileStep::Clear | FileStep::CleanUp | FileStep::Replace, _) => {}
            (FileStep::Open { writer }, Reply::Handle(handle)) => {
                self.handle_opened(entry, writer, handle);
            }
            (FileStep::Open { writer }, _) => {
                self.handle_not_opened(channel, entry, writer, refused)
            }
            (FileStep::Write { writer, octets }, _) => match refused {
                Some(status) => self.fail_file(entry, Trouble::remote("writing", &status)),
                None => {
                    file.writers[writer].open -= 1;
                    file.octets += u64::from(octets);
                    self.moved(octets.into());
                }
            },
            (FileStep::Settle(doing), _) => {
                if let Some(status) = refused {
                    self.fail_file(entry, Trouble::remote(doing, &status));
                }
            }
            (FileStep::Rename, _) => match refused {
                Some(status) => {
                    self.handle_not_renamed(entry, &Trouble::remote("putting it in place", &status))
                }
                None => self.file_done(entry, false),
            },
            (FileStep::Explain, Reply::Filesystem(filesystem)) => {
                if let Some(Trouble::Remote { why, .. }) = &mut file.trouble {
                    *why = why.clone().explained(&filesystem);
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
                FileType::File => {
                    let plan = &self.plan;
                    if plan.entries[entry].is_like(there, plan.preserve) {
                        return self.file_done(entry, true);
                    }
                    file.replaces = there.permissions();
                }
                _ => {}
            }
        }
        if file.trouble.is_none() {
            file.stage = Stage::OpenHere;
            self.needs.push_back(UploadNeed::Open { entry });
        }
    }

    /// The answer to [`UploadNeed::Open`].
    pub fn provide_opened(&mut self, entry: usize, opened: Result<Opened, String>) {
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
        file.stage = Stage::Create;
        let mode = match (plan.preserve, file.replaces) {
            (false, Some(replaced)) => replaced & 0o777,
            _ => opened.mode & 0o777,
        };
        let (channel, part) = (file.channel, file.part.clone());
        let end = opened.size.unwrap_or(u64::MAX);
        file.writers.push(Writer::new(channel, Span { at: 0, end }));
        file.opened = Some(opened);
        self.create_part(channel, entry, &part, mode);
        self.advance();
    }

    /// A new file: what somebody else put there under this name is not followed.
    fn create_part(&mut self, channel: usize, entry: usize, part: &[u8], mode: u32) {
        let attributes = Attributes {
            mode: Some(mode),
            ..Attributes::default()
        };
        let request = Request::Open {
            path: part,
            how: Open::CreateNew,
            attributes,
        };
        self.ask_file(channel, entry, FileStep::Open { writer: 0 }, request);
    }

    fn handle_opened(&mut self, entry: usize, writer: usize, handle: Handle) {
        let Some(file) = self.files.get_mut(&entry) else {
            return;
        };
        file.writers[writer].handle = Some(handle);
        file.made = true;
        match file.stage {
            Stage::Create => file.stage = Stage::Write,
            Stage::CleanUp => self.close_up(entry),
            _ => {}
        }
    }

    fn handle_not_opened(
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
            let handle = file.writers[0].handle.clone();
            let it = &mut file.writers[writer];
            (it.channel, it.handle, it.borrows) = (file.channel, handle, true);
            return;
        }
        if status.code == StatusCode::Failure && !file.cleared {
            file.cleared = true;
            let part = file.part.clone();
            let mode = file
                .opened
                .as_ref()
                .map_or(0o600, |opened| opened.mode & 0o777);
            self.ask_file(
                channel,
                entry,
                FileStep::Clear,
                Request::Remove { path: &part },
            );
            return self.create_part(channel, entry, &part, mode);
        }
        self.fail_file(entry, Trouble::remote("making the file", &status));
    }

    /// A channel without work takes half of what another has still to begin.
    fn help(&mut self, channel: usize) {
        let most = |file: &File| {
            let spans = file.writers.iter().map(|writer| writer.span.left());
            spans.max().unwrap_or(0)
        };
        let is_large = |file: &&mut File| {
            let known = file
                .opened
                .as_ref()
                .is_some_and(|opened| opened.size.is_some());
            known && file.stage == Stage::Write && file.channel != channel
        };
        let Some((&entry, file)) = self
            .files
            .iter_mut()
            .filter(|(_, file)| is_large(file))
            .max_by_key(|(_, file)| most(file))
        else {
            return;
        };
        let largest = file
            .writers
            .iter_mut()
            .max_by_key(|writer| writer.span.left());
        let Some(span) = largest.and_then(|writer| writer.span.give_half()) else {
            return;
        };
        let writer = file.writers.len();
        let part = file.part.clone();
        file.writers.push(Writer::new(channel, span));
        let request = Request::Open {
            path: &part,
            how: Open::Write,
            attributes: Attributes::default(),
        };
        self.ask_file(channel, entry, FileStep::Open { writer }, request);
    }

    /// Whether a channel has nothing to do and would get nothing.
    fn is_idle(&self, channel: usize) -> bool {
        let it = &self.channels[channel];
        it.files == 0
            && it.ahead == 0
            && it.client.pending() == 0
            && self.next >= self.plan.entries.len()
    }

    /// Asks for what the channel is to write next: files in the order in which they were begun.
    fn read_ahead(&mut self, channel: usize) {
        let most = self.plan.ahead;
        if self.channels[channel].ahead >= most {
            return;
        }
        let block = self.plan.block as u64;
        let mut entries: Vec<usize> = self.files.keys().copied().collect();
        entries.sort_unstable();
        for entry in entries {
            let Some(file) = self
                .files
                .get_mut(&entry)
                .filter(|file| file.stage == Stage::Write)
            else {
                continue;
            };
            let data = file
                .opened
                .as_ref()
                .and_then(|opened| opened.data.as_deref());
            for (number, writer) in file.writers.iter_mut().enumerate() {
                let is_ready = writer.channel == channel && writer.handle.is_some();
                while is_ready
                    && self.channels[channel].ahead < most
                    && let Some((offset, len)) = next_data(&mut writer.span, data, block)
                {
                    writer.open += 1;
                    self.channels[channel].ahead += 1;
                    self.needs.push_back(UploadNeed::Read {
                        entry,
                        channel,
                        writer: number,
                        offset,
                        len: len as usize,
                    });
                }
            }
            // An empty file has nothing to wait for.
            self.go_on(entry);
        }
    }

    /// The answer to [`UploadNeed::Read`].
    pub fn provide_data(&mut self, need: UploadNeed, data: Result<Arc<Vec<u8>>, String>) {
        let UploadNeed::Read {
            entry,
            channel,
            writer,
            offset,
            len: wanted,
        } = need
        else {
            return;
        };
        self.channels[channel].ahead -= 1;
        let Some(file) = self
            .files
            .get_mut(&entry)
            .filter(|file| file.stage == Stage::Write)
        else {
            return self.advance();
        };
        let is_stream = file
            .opened
            .as_ref()
            .is_some_and(|opened| opened.size.is_none());
        match data {
            Err(error) => self.fail_file(
                entry,
                Trouble::Local {
                    doing: "reading",
                    error,
                },
            ),
            Ok(data) if data.len() < wanted && !is_stream => {
                self.fail_file(entry, Trouble::Changed)
            }
            Ok(data) => {
                let it = &mut file.writers[writer];
                if data.len() < wanted {
                    it.span.end = it.span.at.min(it.span.end);
                }
                match data.is_empty() {
                    true => it.open -= 1,
                    false => {
                        self.channels[channel].ahead += 1;
                        self.channels[channel].blocks.push_back(Block {
                            entry,
                            writer,
                            offset,
                            data,
                            written: 0,
                        });
                    }
                }
                self.go_on(entry);
            }
        }
        self.advance();
    }

    /// Puts blocks into the channel's queue while that is short.
    pub(super) fn write_blocks(&mut self, channel: usize) {
        while self.channels[channel].client.transmit().len() < QUEUED
            && !self.channels[channel].client.is_full()
            && let Some(mut block) = self.channels[channel].blocks.pop_front()
        {
            let it = &mut self.channels[channel];
            let file = self.files.get_mut(&block.entry);
            let file = file.filter(|file| file.stage == Stage::Write);
            let open = file.and_then(|file| {
                let writer = &mut file.writers[block.writer];
                Some((
                    &mut file.unanswered,
                    &mut writer.open,
                    writer.handle.as_ref()?,
                ))
            });
            let Some((unanswered, open, handle)) = open else {
                it.ahead -= 1;
                continue;
            };
            let most = it.client.limits().write as usize;
            let rest = &block.data[block.written..];
            let data = &rest[..rest.len().min(most)];
            let step = FileStep::Write {
                writer: block.writer,
                octets: data.len() as u32,
            };
            let request = Request::Write {
                handle,
                offset: block.offset + block.written as u64,
                data,
            };
            let entry = block.entry;
            it.client.request(request, Asked::File { entry, step });
            *unanswered += 1;
            let len = data.len();
            block.written += len;
            self.left = self.left.saturating_sub(len as u64);
            match block.written == block.data.len() {
                true => it.ahead -= 1,
                false => {
                    // Its rest is another write to be confirmed.
                    *open += 1;
                    it.blocks.push_front(block);
                }
            }
        }
    }

    /// A file goes to its next stage when nothing of this one is open.
    fn go_on(&mut self, entry: usize) {
        let Some(file) = self.files.get_mut(&entry) else {
            return;
        };
        match file.stage {
            Stage::Write => {
                let is_done = |writer: &Writer| writer.span.left() == 0 && writer.open == 0;
                if file.unanswered == 0 && file.writers.iter().all(is_done) {
                    file.stage = Stage::CheckHere;
                    self.needs.push_back(UploadNeed::Check { entry });
                }
            }
            Stage::Settle if file.unanswered == 0 => self.rename_part(entry),
            Stage::CleanUp if file.unanswered == 0 => self.file_failed(entry),
            _ => {}
        }
    }

    /// The answer to [`UploadNeed::Check`].
    pub fn provide_checked(&mut self, entry: usize, is_same: Result<bool, String>) {
        let is_checked = |file: &&File| file.stage == Stage::CheckHere;
        if self.files.get(&entry).filter(is_checked).is_some() {
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

    /// Modes, times and length; then everything to the disk.
    fn settle(&mut self, entry: usize) {
        let preserve = self.plan.preserve;
        let Some(file) = self.files.get_mut(&entry) else {
            return;
        };
        file.stage = Stage::Settle;
        let Some(opened) = &file.opened else { return };
        let attributes = Attributes {
            // What ends in a hole.
            size: opened.size.filter(|_| opened.data.is_some()),
            mode: match (preserve, file.replaces) {
                (true, _) => Some(opened.mode & 0o7777),
                (false, Some(replaced)) => Some(replaced & 0o777),
                (false, None) => None,
            },
            times: preserve.then_some(opened.times),
            owner: None,
        };
        let handles: Vec<(usize, Handle)> = file
            .writers
            .iter_mut()
            .filter_map(Writer::take_handle)
            .collect();
        for (number, (channel, handle)) in handles.iter().enumerate() {
            if number == 0 {
                if attributes != Attributes::default() {
                    let request = Request::Fsetstat { handle, attributes };
                    self.ask_file(
                        *channel,
                        entry,
                        FileStep::Settle("setting mode and times"),
                        request,
                    );
                }
                if self.channels[*channel].client.has(Extension::Fsync) {
                    let request = Request::Fsync { handle };
                    self.ask_file(
                        *channel,
                        entry,
                        FileStep::Settle("writing to the disk"),
                        request,
                    );
                }
            }
            let request = Request::Close { handle };
            self.ask_file(*channel, entry, FileStep::Settle("closing"), request);
        }
    }

    fn rename_part(&mut self, entry: usize) {
        let Some(file) = self.files.get_mut(&entry) else {
            return;
        };
        file.stage = Stage::Rename;
        let (channel, from, to) = (file.channel, file.part.clone(), file.path.clone());
        let (from, to) = (&from, &to);
        let request = match self.channels[channel].client.has(Extension::PosixRename) {
            true => Request::PosixRename { from, to },
            false => Request::Rename { from, to },
        };
        self.ask_file(channel, entry, FileStep::Rename, request);
    }

    /// Without posix-rename@openssh.com servers replace nothing: then there is a moment without the file.
    fn handle_not_renamed(&mut self, entry: usize, trouble: &Trouble) {
        let Some(file) = self.files.get_mut(&entry) else {
            return;
        };
        let channel = file.channel;
        let is_simple = !self.channels[channel].client.has(Extension::PosixRename);
        if is_simple && file.replaces.take().is_some() {
            let (from, to) = (file.part.clone(), file.path.clone());
            self.ask_file(
                channel,
                entry,
                FileStep::Replace,
                Request::Remove { path: &to },
            );
            let request = Request::Rename {
                from: &from,
                to: &to,
            };
            return self.ask_file(channel, entry, FileStep::Rename, request);
        }
        self.fail_file(entry, trouble.clone());
    }

    fn file_done(&mut self, entry: usize, unchanged: bool) {
        let Some(file) = self.files.remove(&entry) else {
            return;
        };
        self.channels[file.channel].files -= 1;
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
        let said_little = matches!(
            &trouble,
            Trouble::Remote {
                why: Remote::Said(_),
                ..
            }
        );
        let was_open =
            file.opened.is_some() && !matches!(file.stage, Stage::Settle | Stage::Rename);
        file.trouble = Some(trouble);
        file.stage = Stage::CleanUp;
        let (channel, path) = (file.channel, file.path.clone());
        if was_open {
            self.needs.push_back(UploadNeed::Release { entry });
        }
        // Before its part goes, and with it the reason.
        if said_little && self.channels[channel].client.has(Extension::Statvfs) {
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
    fn close_up(&mut self, entry: usize) {
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

    fn file_failed(&mut self, entry: usize) {
        // Blocks of it may still be read: their readers are told apart by the file's writers.
        let Some(mut file) = self.files.remove(&entry) else {
            return;
        };
        for it in &mut self.channels {
            let before = it.blocks.len();
            it.blocks.retain(|block| block.entry != entry);
            it.ahead -= before - it.blocks.len();
        }
        self.channels[file.channel].files -= 1;
        self.failed_files.insert(entry);
        let size = self.plan.entries[entry].size();
        self.left = self.left.saturating_sub(size.saturating_sub(file.octets));
        if let Some(trouble) = file.trouble.take() {
            self.failed(file.path, trouble);
        }
    }
}

/// The next octets of a span that are data and not a hole.
fn next_data(
    span: &mut Span,
    data: Option<&[std::ops::Range<u64>]>,
    block: u64,
) -> Option<(u64, u64)> {
    let Some(data) = data else {
        return span.take(block);
    };
    let first = data.partition_point(|extent| extent.end <= span.at);
    match data.get(first) {
        Some(extent) => {
            span.at = span.at.max(extent.start).min(span.end);
            span.take(block.min(extent.end.saturating_sub(span.at)))
        }
        None => {
            span.at = span.end;
            None
        }
    }
}
