//! Files' contents: begun here, opened there, read in spans by one channel or several, looked at again, put in place.

use super::{Asked, Download, DownloadEvent, DownloadNeed, Item, LocalFile};
use crate::ranges::Span;
use crate::sftp::{Attributes, Data, Handle, Open, Reply, Request, Status, StatusCode};
use crate::{Remote, Trouble};

/// Files that one channel has under way.
const FILES_A_CHANNEL: usize = 64;

/// A file that is being fetched.
pub(super) struct File {
    item: Item,
    channel: usize,
    stage: Stage,
    /// What it was when it was opened.
    opened: Attributes,
    readers: Vec<Reader>,
    /// Requests without a reply.
    unanswered: usize,
    /// Writes here without an answer.
    writing: usize,
    /// Whether it has been begun here.
    begun: bool,
    /// Octets fetched.
    octets: u64,
    trouble: Option<Trouble>,
}

/// One channel's work on a file.
struct Reader {
    channel: usize,
    handle: Option<Handle>,
    span: Span,
    /// What a server gave less of than was asked for.
    again: Vec<(u64, u32)>,
    /// Requests without a reply.
    reading: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    BeginHere,
    Open,
    Stat,
    Read,
    /// A file of no known size, as those of /proc: until its end.
    ReadOn,
    StatAgain,
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
            while self.has_room_for_file(channel)
                && let Some(item) = self.queue.pop_front()
            {
                self.begin_file(channel, item);
            }
            if self.is_idle(channel) {
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
        it.files == 0 && it.in_flight == 0 && it.client.pending() == 0 && self.queue.is_empty()
    }

    fn begin_file(&mut self, channel: usize, item: Item) {
        let file = LocalFile(self.id());
        let Attributes { size, mode, .. } = item.attributes;
        self.needs.push_back(DownloadNeed::Begin {
            file,
            path: item.local.clone(),
            // Nothing is known of those that seem to be empty.
            like: size
                .filter(|&size| size > 0)
                .zip(item.attributes.modified()),
            mode: mode.map_or(0o644, |mode| mode & 0o777),
        });
        self.channels[channel].files += 1;
        self.files.insert(
            file,
            File {
                item,
                channel,
                stage: Stage::BeginHere,
                opened: Attributes::default(),
                readers: Vec::new(),
                unanswered: 0,
                writing: 0,
                begun: false,
                octets: 0,
                trouble: None,
            },
        );
    }

    fn ask_file(&mut self, channel: usize, file: LocalFile, step: FileStep, request: Request<'_>) {
        if let Some(it) = self.files.get_mut(&file) {
            it.unanswered += 1;
            self.channels[channel]
                .client
                .request(request, Asked::File { file, step });
        }
    }

    pub(super) fn handle_begun(&mut self, file: LocalFile, begun: Result<bool, String>) {
        let Some(it) = self.files.get_mut(&file) else {
            return;
        };
        it.begun = begun == Ok(true);
        match begun {
            Ok(true) if it.stage == Stage::CleanUp => {
                self.needs.push_back(DownloadNeed::Discard { file });
                it.writing = 0;
                self.go_on(file);
            }
            Ok(true) => {
                it.stage = Stage::Open;
                let channel = it.channel;
                it.readers
                    .push(Reader::new(channel, Span { at: 0, end: 0 }));
                self.open_remote(channel, file, 0);
            }
            Ok(false) => {
                let size = it.item.attributes.size.unwrap_or(0);
                self.left = self.left.saturating_sub(size);
                self.end_file(file, Some(true));
            }
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

    fn open_remote(&mut self, channel: usize, file: LocalFile, reader: usize) {
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
            self.channels[channel].in_flight -= len as usize - got;
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
                let own = it.channel;
                let handle = it.readers[0].handle.clone();
                let it = &mut it.readers[reader];
                (it.channel, it.handle) = (own, handle);
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
            Stage::CleanUp => self.close_remote(file),
            _ => {}
        }
    }

    /// What it is now that it is open: what the list said may be long ago.
    fn handle_stat(&mut self, file: LocalFile, attributes: Attributes) {
        let Some(it) = self
            .files
            .get_mut(&file)
            .filter(|it| it.stage == Stage::Stat)
        else {
            return;
        };
        let listed = it.item.attributes.size.unwrap_or(0);
        let size = attributes.size.unwrap_or(0);
        self.left = self.left.saturating_sub(listed).saturating_add(size);
        if size > listed {
            self.events.push_back(DownloadEvent::Found(size - listed));
        }
        it.opened = attributes;
        it.item.attributes.size = Some(size);
        (it.stage, it.readers[0].span.end) = match size {
            0 => (Stage::ReadOn, u64::MAX),
            size => (Stage::Read, size),
        };
    }

    /// A channel without work takes half of what another has still to begin.
    fn help(&mut self, channel: usize) {
        let most = |it: &File| {
            let spans = it.readers.iter().map(|reader| reader.span.left());
            spans.max().unwrap_or(0)
        };
        let is_open = |it: &&mut File| it.stage == Stage::Read && it.channel != channel;
        let largest = self
            .files
            .iter_mut()
            .filter(|(_, it)| is_open(it))
            .max_by_key(|(_, it)| most(it));
        let Some((&file, it)) = largest else { return };
        let reader = it
            .readers
            .iter_mut()
            .max_by_key(|reader| reader.span.left());
        let Some(span) = reader.and_then(|reader| reader.span.give_half()) else {
            return;
        };
        it.readers.push(Reader::new(channel, span));
        let reader = it.readers.len() - 1;
        self.open_remote(channel, file, reader);
    }

    /// Asks for what the channel may have in flight: files in the order in which they were begun.
    fn read_on(&mut self, channel: usize) {
        let most = self.plan.in_flight.max(1);
        let limit = self.channels[channel].client.limits().read;
        let limit = limit.min(u32::try_from(most).unwrap_or(limit));
        if self.channels[channel].in_flight + limit as usize > most {
            return;
        }
        let mut files: Vec<LocalFile> = self.files.keys().copied().collect();
        files.sort_unstable();
        for file in files {
            while self.channels[channel].in_flight + limit as usize <= most
                && !self.channels[channel].client.is_full()
                && let Some((reader, handle, offset, len)) = self.next_read(channel, file, limit)
            {
                self.channels[channel].in_flight += len as usize;
                let step = FileStep::Read {
                    reader,
                    offset,
                    len,
                };
                let request = Request::Read {
                    handle: &handle,
                    offset,
                    len,
                };
                self.ask_file(channel, file, step, request);
            }
        }
    }

    fn next_read(
        &mut self,
        channel: usize,
        file: LocalFile,
        limit: u32,
    ) -> Option<(usize, Handle, u64, u32)> {
        let it = self.files.get_mut(&file)?;
        let one_by_one = it.stage == Stage::ReadOn;
        if !one_by_one && it.stage != Stage::Read {
            return None;
        }
        for (number, reader) in it.readers.iter_mut().enumerate() {
            if reader.channel != channel || (one_by_one && reader.reading > 0) {
                continue;
            }
            let Some(handle) = &reader.handle else {
                continue;
            };
            let next = reader.again.pop().or_else(|| {
                let (at, len) = reader.span.take(limit.into())?;
                Some((at, len as u32))
            });
            if let Some((offset, len)) = next {
                let handle = handle.clone();
                reader.reading += 1;
                return Some((number, handle, offset, len));
            }
        }
        None
    }

    fn handle_data(
        &mut self,
        channel: usize,
        file: LocalFile,
        reader: usize,
        (offset, len): (u64, u32),
        data: Data,
    ) {
        let Some(it) = self.files.get_mut(&file) else {
            return;
        };
        it.readers[reader].reading -= 1;
        let got = data.len() as u32;
        if it.stage == Stage::CleanUp {
            self.channels[channel].in_flight -= data.len();
            return;
        }
        if got == 0 {
            let why = Remote::Said("no octets, and not the end either".to_owned());
            return self.fail_file(
                file,
                Trouble::Remote {
                    doing: "reading",
                    why,
                },
            );
        }
        if got < len {
            match it.stage {
                // Where its end is not known, it goes on behind what came.
                Stage::ReadOn => it.readers[reader].span.at = offset + u64::from(got),
                _ => it.readers[reader]
                    .again
                    .push((offset + u64::from(got), len - got)),
            }
        }
        it.octets += u64::from(got);
        it.writing += 1;
        self.left = self.left.saturating_sub(got.into());
        self.needs.push_back(DownloadNeed::Write {
            file,
            channel,
            offset,
            data,
        });
    }

    /// The server has nothing at `offset` any more.
    fn handle_end(&mut self, file: LocalFile, reader: usize, offset: u64) {
        let Some(it) = self.files.get_mut(&file) else {
            return;
        };
        it.readers[reader].reading -= 1;
        match it.stage {
            Stage::ReadOn => {
                it.readers[reader].span = Span {
                    at: offset,
                    end: offset,
                }
            }
            Stage::Read => self.fail_file(file, Trouble::Changed),
            _ => {}
        }
    }

    pub(super) fn handle_written(
        &mut self,
        file: LocalFile,
        channel: usize,
        octets: usize,
        written: Result<(), String>,
    ) {
        self.channels[channel].in_flight -= octets;
        let Some(it) = self.files.get_mut(&file) else {
            return;
        };
        it.writing -= 1;
        match written {
            Ok(()) => {
                self.tally.octets += octets as u64;
                self.events.push_back(DownloadEvent::Moved(octets as u64));
            }
            Err(error) => self.fail_file(
                file,
                Trouble::Local {
                    doing: "writing",
                    error,
                },
            ),
        }
        self.go_on(file);
    }

    /// A file goes to its next stage when nothing of this one is open.
    fn go_on(&mut self, file: LocalFile) {
        let Some(it) = self.files.get_mut(&file) else {
            return;
        };
        let is_quiet = it.unanswered == 0 && it.writing == 0;
        match it.stage {
            Stage::Read | Stage::ReadOn if is_quiet => {
                let is_done = |reader: &Reader| reader.span.left() == 0 && reader.again.is_empty();
                if !it.readers.iter().all(is_done) {
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

    fn handle_stat_again(&mut self, file: LocalFile, now: &Attributes) {
        let Some(it) = self
            .files
            .get_mut(&file)
            .filter(|it| it.stage == Stage::StatAgain)
        else {
            return;
        };
        let then = &it.opened;
        // What has no size, as files of /proc, has no telling time either.
        let is_same = then.size.unwrap_or(0) == 0
            || (then.size, then.modified()) == (now.size, now.modified());
        if !is_same {
            return self.fail_file(file, Trouble::Changed);
        }
        it.stage = Stage::FinishHere;
        let preserve = self.plan.preserve;
        let need = DownloadNeed::Finish {
            file,
            size: it.octets,
            mode: it.opened.permissions().filter(|_| preserve),
            times: it.opened.times.filter(|_| preserve),
        };
        self.needs.push_back(need);
        self.close_remote(file);
    }

    pub(super) fn handle_finished(&mut self, file: LocalFile, finished: Result<(), String>) {
        match finished {
            Ok(()) => self.end_file(file, Some(false)),
            Err(error) => {
                let doing = "putting it in place";
                self.fail_file(file, Trouble::Local { doing, error });
            }
        }
    }

    /// Gives a file up: what there is of it goes, and what was there before stays.
    pub(super) fn fail_file(&mut self, file: LocalFile, trouble: Trouble) {
        let Some(it) = self.files.get_mut(&file) else {
            return;
        };
        let is_too_late = it.stage == Stage::FinishHere && trouble == Trouble::Interrupted;
        if it.stage == Stage::CleanUp || is_too_late {
            return;
        }
        // Its beginning is under way here, and is waited for as a write is.
        if it.stage == Stage::BeginHere && trouble == Trouble::Interrupted {
            it.writing = 1;
        }
        it.stage = Stage::CleanUp;
        it.trouble = Some(trouble);
        if it.begun {
            self.needs.push_back(DownloadNeed::Discard { file });
        }
        self.close_remote(file);
        self.go_on(file);
    }

    fn close_remote(&mut self, file: LocalFile) {
        let Some(it) = self.files.get_mut(&file) else {
            return;
        };
        let own = it.channel;
        let mut handles: Vec<(usize, Handle)> = Vec::new();
        for (number, reader) in it.readers.iter_mut().enumerate() {
            let Some(handle) = reader.handle.take() else {
                continue;
            };
            // A reader whose own was refused has the first one's.
            if number == 0 || reader.channel != own {
                handles.push((reader.channel, handle));
            }
        }
        for (channel, handle) in handles {
            self.ask_file(
                channel,
                file,
                FileStep::Close,
                Request::Close { handle: &handle },
            );
        }
    }

    /// `unchanged`: it is in place; `None`: it has failed.
    fn end_file(&mut self, file: LocalFile, unchanged: Option<bool>) {
        let Some(it) = self.files.remove(&file) else {
            return;
        };
        self.channels[it.channel].files -= 1;
        match (unchanged, it.trouble) {
            (Some(unchanged), _) => self.done(it.item.local, unchanged),
            (None, Some(trouble)) => {
                let size = it.item.attributes.size.unwrap_or(0);
                self.left = self.left.saturating_sub(size.saturating_sub(it.octets));
                self.failed(it.item.remote, trouble);
            }
            (None, None) => {}
        }
    }
}

impl Reader {
    fn new(channel: usize, span: Span) -> Reader {
        Reader {
            channel,
            handle: None,
            span,
            again: Vec::new(),
            reading: 0,
        }
    }
}
