//! Files' contents: begun here, opened there, read in spans by one channel or several (`contents`), looked at again, put in
//! place (`settling`).

use std::ops::Range;

use sshoal_journal::Segments;

use super::hashes::Hashes;
use super::{Asked, Begun, Download, DownloadEvent, DownloadNeed, Item, LocalFile};
use crate::Trouble;
use crate::ranges::Span;
use crate::sftp::{Attributes, Handle, Open, Reply, Request, Status, StatusCode};

/// Files that one channel has under way.
const FILES_A_CHANNEL: usize = 64;

/// A file that is being fetched.
pub(super) struct File {
    pub(super) item: Item,
    pub(super) channel: usize,
    pub(super) stage: Stage,
    /// What it was when it was opened.
    pub(super) opened: Attributes,
    pub(super) readers: Vec<Reader>,
    /// Octets that somebody has to read whose own are done: their reader has gone.
    pub(super) returned: Vec<Span>,
    /// Requests without a reply.
    pub(super) unanswered: usize,
    /// Writes here without an answer.
    pub(super) writing: usize,
    /// Whether it has been begun here.
    pub(super) begun: bool,
    /// Octets fetched.
    pub(super) octets: u64,
    /// What an earlier transfer has proven to be here.
    pub(super) proven: Segments,
    /// What is to be fetched, in order, if that is not all of it.
    pub(super) todo: Option<Vec<Range<u64>>>,
    pub(super) hashes: Hashes,
    pub(super) trouble: Option<Trouble>,
}

/// One channel's work on a file.
pub(super) struct Reader {
    pub(super) channel: usize,
    pub(super) handle: Option<Handle>,
    pub(super) span: Span,
    /// What a server gave less of than was asked for.
    pub(super) again: Vec<(u64, u32)>,
    /// Whether the server would not open the file on its channel.
    pub(super) is_refused: bool,
    /// Requests without a reply.
    pub(super) reading: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// What is here has its size: both ends hash it.
    Compare,
    /// It is here, and gets its owner, mode and times.
    Touch,
    BeginHere,
    Open,
    Stat,
    Read,
    /// A file of no known size, as those of /proc: until its end.
    ReadOn,
    StatAgain,
    /// Both ends hash it.
    Verify,
    FinishHere,
    CleanUp,
}

/// What a request about a file was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileStep {
    Open {
        reader: usize,
    },
    Stat,
    /// Whether what a further handle leads to is the same file.
    StatFurther,
    Read {
        reader: usize,
        offset: u64,
        len: u32,
    },
    StatAgain,
    /// The answer does not matter.
    Close,
}

impl Download {
    /// Begins files while there is room, and reads on.
    pub(super) fn fetch_files(&mut self) {
        for channel in 0..self.channels.len() {
            if !self.channels[channel].client.is_ready() {
                continue;
            }
            let is_retired = self.channels.is_retired(channel);
            while !is_retired
                && self.has_room_for_file(channel)
                && let Some(item) = self.queue.pop_front()
            {
                self.begin_file(channel, item);
            }
            if !is_retired && self.is_idle(channel) {
                self.help(channel);
            }
            self.read_on(channel);
        }
    }

    fn has_room_for_file(&self, channel: usize) -> bool {
        let it = &self.channels[channel];
        let most = match self.plan.in_order {
            true => 1,
            false => FILES_A_CHANNEL.min(it.client.limits().handles),
        };
        it.files < most && !it.client.is_full()
    }

    fn is_idle(&self, channel: usize) -> bool {
        let it = &self.channels[channel];
        let has_work = |file: &File| {
            let mut own = file.readers.iter().filter(|it| it.channel == channel);
            own.any(|it| it.span.left() > 0 || !it.again.is_empty())
        };
        it.client.is_ready() && self.queue.is_empty() && !self.files.values().any(has_work)
    }

    fn begin_file(&mut self, channel: usize, item: Item) {
        let file = LocalFile(self.id());
        // Nothing is known of those that seem to be empty.
        let size = item.attributes.size.filter(|&size| size > 0);
        let compared = size.filter(|_| self.plan.hashing.compares && !item.is_device());
        let path = item.local.clone();
        self.channels[channel].files += 1;
        self.files.insert(
            file,
            File {
                item,
                channel,
                stage: Stage::Compare,
                opened: Attributes::default(),
                readers: Vec::new(),
                returned: Vec::new(),
                unanswered: 0,
                writing: 0,
                begun: false,
                octets: 0,
                proven: Segments::default(),
                todo: None,
                hashes: Hashes::default(),
                trouble: None,
            },
        );
        match compared {
            Some(size) => self
                .needs
                .push_back(DownloadNeed::Compare { file, path, size }),
            None => self.begin_here(file),
        }
    }

    /// What is here is not known to be the same.
    pub(super) fn begin_here(&mut self, file: LocalFile) {
        let Some(it) = self.files.get_mut(&file) else {
            return;
        };
        it.stage = Stage::BeginHere;
        let attributes = it.item.attributes;
        let remote = it.item.remote.clone();
        let owner = self.owner_here(&remote, &attributes);
        let Some(it) = self.files.get(&file) else {
            return;
        };
        let Attributes { size, mode, .. } = attributes;
        self.needs.push_back(DownloadNeed::Begin {
            file,
            path: it.item.local.clone(),
            // A device's time is not that of its contents.
            like: size
                .filter(|&size| size > 0 && !it.item.is_device())
                .zip(it.item.attributes.modified()),
            size,
            // Times that are not kept are those of the copying.
            trusts_time: self.plan.preserve && !self.plan.hashing.compares,
            mode: mode.map_or(0o644, |mode| mode & 0o777),
            owner,
            keeps: attributes.permissions(),
        });
    }

    pub(super) fn ask_file(
        &mut self,
        channel: usize,
        file: LocalFile,
        step: FileStep,
        request: Request<'_>,
    ) {
        if let Some(it) = self.files.get_mut(&file) {
            it.unanswered += 1;
            self.channels[channel]
                .client
                .request(request, Asked::File { file, step });
        }
    }

    pub(super) fn handle_begun(&mut self, file: LocalFile, begun: Result<Begun, String>) {
        let Some(it) = self.files.get_mut(&file) else {
            return;
        };
        it.begun = matches!(begun, Ok(Begun::Ready(_)));
        match begun {
            Ok(Begun::Ready(_)) if it.stage == Stage::CleanUp => {
                self.needs.push_back(DownloadNeed::Discard { file });
                it.writing = 0;
                self.go_on(file);
            }
            Ok(Begun::Ready(proven)) => {
                it.proven = proven;
                it.stage = Stage::Open;
                let channel = it.channel;
                it.readers
                    .push(Reader::new(channel, Span { at: 0, end: 0 }));
                self.open_remote(channel, file, 0);
            }
            Ok(Begun::Unchanged) => self.is_unchanged(file),
            Err(error) => {
                it.writing = 0;
                self.fail_file(
                    file,
                    Trouble::Local {
                        doing: "making the file",
                        error,
                    },
                );
                self.go_on(file);
            }
        }
    }

    pub(super) fn is_unchanged(&mut self, file: LocalFile) {
        if let Some(it) = self.files.get(&file) {
            let size = it.item.attributes.size.unwrap_or(0);
            self.left = self.left.saturating_sub(size);
            self.end_file(file, Some(true));
        }
    }

    pub(super) fn open_remote(&mut self, channel: usize, file: LocalFile, reader: usize) {
        let Some(it) = self.files.get(&file) else {
            return;
        };
        let path = it.item.remote.clone();
        let request = Request::Open {
            path: &path,
            how: Open::Read,
            attributes: Attributes::default(),
        };
        self.ask_file(channel, file, FileStep::Open { reader }, request);
    }

    pub(super) fn handle_file(
        &mut self,
        channel: usize,
        file: LocalFile,
        step: FileStep,
        reply: Reply,
    ) {
        if let FileStep::Read { len, .. } = step {
            let got = match &reply {
                Reply::Data(data) => data.len(),
                _ => 0,
            };
            // What came is counted until it is written.
            self.channels[channel].work.in_flight -= len as usize - got;
        }
        let Some(it) = self.files.get_mut(&file) else {
            return;
        };
        it.unanswered -= 1;
        match (step, reply) {
            (FileStep::Close, _) => {}
            (FileStep::Open { reader }, Reply::Handle(handle)) => {
                self.handle_opened(file, reader, handle);
            }
            (FileStep::Open { reader }, Reply::Status(_)) if reader > 0 => {
                // It can be done without help.
                let helper = &mut it.readers[reader];
                helper.is_refused = true;
                let span = std::mem::take(&mut helper.span);
                it.give_back(span);
            }
            (FileStep::Stat, Reply::Attributes(attributes)) => self.handle_stat(file, attributes),
            (
                FileStep::Read {
                    reader,
                    offset,
                    len,
                },
                Reply::Data(data),
            ) => {
                self.handle_data(channel, file, reader, (offset, len), data);
            }
            (FileStep::Read { reader, offset, .. }, Reply::Status(status))
                if status.code == StatusCode::Eof =>
            {
                self.handle_end(file, reader, offset);
            }
            (FileStep::StatFurther, Reply::Attributes(now)) => self.handle_stat_further(file, &now),
            (FileStep::StatAgain, Reply::Attributes(now)) => self.handle_stat_again(file, &now),
            (_, Reply::Status(status)) => self.fail_step(file, step, &status),
            _ => {}
        }
        self.go_on(file);
    }

    fn fail_step(&mut self, file: LocalFile, step: FileStep, status: &Status) {
        let doing = match step {
            FileStep::Open { .. } => "opening",
            FileStep::Read { .. } => "reading",
            _ => "looking at it",
        };
        self.fail_file(file, Trouble::remote(doing, status));
    }

    fn handle_opened(&mut self, file: LocalFile, reader: usize, handle: Handle) {
        let Some(it) = self.files.get_mut(&file) else {
            return;
        };
        let channel = it.readers[reader].channel;
        it.readers[reader].handle = Some(handle.clone());
        match it.stage {
            Stage::Open => {
                it.stage = Stage::Stat;
                let request = Request::Fstat { handle: &handle };
                self.ask_file(channel, file, FileStep::Stat, request);
            }
            // By its name, under which there may be another file by now. What comes meanwhile comes for nothing then.
            Stage::Read => {
                let request = Request::Fstat { handle: &handle };
                self.ask_file(channel, file, FileStep::StatFurther, request);
            }
            Stage::CleanUp => self.close_remote(file),
            _ => {}
        }
    }

    /// What it is now that it is open: what the list said may be long ago.
    fn handle_stat(&mut self, file: LocalFile, mut attributes: Attributes) {
        let Some(it) = self
            .files
            .get_mut(&file)
            .filter(|it| it.stage == Stage::Stat)
        else {
            return;
        };
        let seen = it.item.attributes;
        if it.item.is_device() {
            if seen.mode != attributes.mode {
                return self.fail_file(file, Trouble::Changed);
            }
            // As surveyed: the server says nothing of it.
            attributes.size = seen.size;
        }
        let is_same = (seen.size, seen.modified()) == (attributes.size, attributes.modified());
        if !it.proven.is_empty() && !is_same {
            // What is proven is of what it was.
            return self.fail_file(file, Trouble::Changed);
        }
        let listed = seen.size.unwrap_or(0);
        let size = attributes.size.unwrap_or(0);
        self.left = self.left.saturating_sub(listed).saturating_add(size);
        if size > listed {
            self.events.push_back(DownloadEvent::Found(size - listed));
        }
        it.opened = attributes;
        it.item.attributes.size = Some(size);
        if !it.proven.is_empty() {
            it.todo = Some(it.proven.missing(std::slice::from_ref(&(0..size))));
            it.octets = it.proven.octets();
            self.left = self.left.saturating_sub(it.octets);
        }
        (it.stage, it.readers[0].span.end) = match size {
            0 => (Stage::ReadOn, u64::MAX),
            size => (Stage::Read, size),
        };
    }

    /// A file goes to its next stage when nothing of this one is open.
    pub(super) fn go_on(&mut self, file: LocalFile) {
        let Some(it) = self.files.get_mut(&file) else {
            return;
        };
        let is_quiet = it.unanswered == 0 && it.writing == 0;
        match it.stage {
            Stage::Read | Stage::ReadOn if is_quiet => {
                let is_done = |reader: &Reader| reader.span.left() == 0 && reader.again.is_empty();
                if !it.readers.iter().all(is_done) || !it.returned.is_empty() {
                    return;
                }
                let Some(handle) = it.readers[0].handle.clone() else {
                    return;
                };
                it.stage = Stage::StatAgain;
                let channel = it.channel;
                let request = Request::Fstat { handle: &handle };
                self.ask_file(channel, file, FileStep::StatAgain, request);
            }
            Stage::CleanUp if is_quiet => self.end_file(file, None),
            _ => {}
        }
    }
}

impl Reader {
    pub(super) fn new(channel: usize, span: Span) -> Reader {
        Reader {
            channel,
            handle: None,
            span,
            again: Vec::new(),
            is_refused: false,
            reading: 0,
        }
    }
}
