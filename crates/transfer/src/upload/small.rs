//! Small files, in batches: an archive into tar(1) on the host (`stream`), each file under its part's name beside its
//! target, all of a batch brought to the disk at once, and renamed over SFTP.
//!
//! ```text
//! Look (not in a folder that we have made) -> read here -> archive -> on the disk -> Rename
//! ```
//!
//! Where the host runs no such command (internal-sftp alone, no shell, no tar, files seen elsewhere), and where a batch does
//! not arrive whole, its files go over SFTP as large ones do: what fails is found and named there.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::stream::{self, Stage, Stream, Word};
use super::{Asked, Entry, Kind, Upload, UploadPlan};
use crate::Trouble;
use crate::part_name::PartTag;
use crate::path::join;
use crate::sftp::{Attributes, Extension, FileType, Open, Reply, Request, StatusCode};

/// The largest file that goes with others.
pub const MAX_SMALL: u64 = 64 * 1024;
/// Files that are worth a process on the host.
const FEWEST: usize = 64;
/// Set-user-ID, set-group-ID, sticky (stat(2)).
const SPECIAL_BITS: u32 = 0o7000;
/// Octets, and files, after which a batch is brought to the disk.
const BATCH_OCTETS: u64 = 16 * 1024 * 1024;
const BATCH_FILES: usize = 8192;
/// Batches that are being filled: one cannot use more than its channel's window.
const MOST_FILLING: usize = 2;
/// Octets for which a second one is worth its opening.
const WORTH_A_SECOND: u64 = 4 * 1024 * 1024;
/// Sessions open at a time, those included whose files are being brought to the disk.
const MOST_OPEN: usize = 4;
/// Files that are read by one job.
const GROUP: usize = 128;
/// Requests about small files in flight: so many fit a round trip of 50 ms at the pace of sftp-server.
const REQUESTS: usize = 768;

/// How small files go to hosts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Method {
    /// In batches where there are many and the host allows it.
    #[default]
    Auto,
    /// Each by itself over SFTP.
    Sftp,
    /// In batches, however few there are, where the host allows it.
    Tar,
}

/// Small files that are to be read for a stream: [`Upload::provide_small`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmallGroup {
    /// For which stream.
    pub stream: usize,
    /// Which of the plan's entries.
    pub entries: Vec<usize>,
}

/// A small file, read whole and found unchanged afterwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmallFile {
    /// All of it.
    pub data: Arc<Vec<u8>>,
    /// Permissions.
    pub mode: u32,
    /// Last modification, seconds since 1970.
    pub modified: u32,
}

/// Why a small file was not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SmallProblem {
    /// It is larger than [`MAX_SMALL`] by now.
    Grown,
    /// It changed meanwhile.
    Changed,
    /// What the system said.
    Failed(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SmallStep {
    Look,
    Rename,
    /// The answer does not matter.
    Remove,
    /// The same, and it is about no entry.
    RemoveProof,
}

/// How far the agreement with the host is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Undecided,
    /// A file is being made that proves to a stream that it sees what SFTP sees.
    Proving,
    /// Streams are opened.
    Open,
    /// All batches have arrived: their names are being brought to the disk.
    Syncing,
    /// No more streams.
    Closed,
    /// There never were any.
    Unused,
}

/// Small files of one upload.
pub(super) struct Small {
    way: Way,
    /// What streams unpack in: the target's folder.
    pub(super) base: Vec<u8>,
    /// The next of the plan's entries.
    next: usize,
    looking: usize,
    /// Files that may go, with the permissions of what they replace.
    ready: VecDeque<(usize, Option<u32>)>,
    groups: VecDeque<SmallGroup>,
    streams: Vec<Stream>,
    /// Permissions of what files replace that are being read.
    replaced: HashMap<usize, u32>,
    umask: u32,
    /// Files for which the first one is worth it.
    fewest: usize,
    /// How many may be filled at a time.
    filling: usize,
    /// Files that wait for their names.
    arrived: VecDeque<usize>,
    /// Parts that are to go.
    unwanted: VecDeque<usize>,
    asked: usize,
    has_renamed: bool,
    proof_made: bool,
    /// Files that go over SFTP after all.
    pub(super) for_sftp: VecDeque<usize>,
    pub(super) octets_left: u64,
}

impl Small {
    /// Where it is worth it, octets are counted as those of streams from the beginning.
    pub(super) fn new(plan: &UploadPlan) -> Small {
        let fewest = match plan.method {
            Method::Auto => FEWEST,
            Method::Sftp => usize::MAX,
            Method::Tar => 1,
        };
        let files = plan.entries.iter();
        let files = files.filter(|entry| is_small(entry, plan.preserve));
        let (count, octets) = files.fold((0, 0), |(count, octets), entry| {
            (count + 1, octets + entry.size())
        });
        let is_worth_it = count >= fewest;
        Small {
            way: match is_worth_it {
                true => Way::Undecided,
                false => Way::Unused,
            },
            base: Vec::new(),
            next: 0,
            looking: 0,
            ready: VecDeque::new(),
            groups: VecDeque::new(),
            streams: Vec::new(),
            replaced: HashMap::new(),
            umask: 0o022,
            fewest,
            filling: match octets >= WORTH_A_SECOND {
                true => MOST_FILLING,
                false => 1,
            },
            arrived: VecDeque::new(),
            unwanted: VecDeque::new(),
            asked: 0,
            has_renamed: false,
            proof_made: false,
            for_sftp: VecDeque::new(),
            octets_left: if is_worth_it { octets } else { 0 },
        }
    }

    /// Whether an entry is none that channels begin of themselves.
    pub(super) fn takes(&self, entry: &Entry, preserve: bool) -> bool {
        self.way != Way::Unused && is_small(entry, preserve)
    }

    fn is_over(&self) -> bool {
        matches!(self.way, Way::Closed | Way::Unused)
            && self.asked == 0
            && self.arrived.is_empty()
            && self.unwanted.is_empty()
            && self.for_sftp.is_empty()
            && self
                .streams
                .iter()
                .all(|it| it.stage == Stage::Over && it.reading == 0)
    }

    /// Whether no file is left that could join a batch.
    fn is_exhausted(&self, entries: usize) -> bool {
        self.next >= entries && self.looking == 0 && self.ready.is_empty()
    }

    /// Whether nothing is left that a stream would be opened for.
    fn has_rest(&self, entries: usize) -> bool {
        let is_last = self.next >= entries && self.looking == 0;
        is_last
            && (self.ready.is_empty() || self.streams.is_empty() && self.ready.len() < self.fewest)
    }

    fn open(&self) -> usize {
        let streams = self.streams.iter();
        streams.filter(|stream| stream.stage != Stage::Over).count()
    }

    fn being_filled(&self) -> usize {
        let streams = self.streams.iter();
        streams
            .filter(|stream| !matches!(stream.stage, Stage::Complete | Stage::Over))
            .count()
    }
}

/// Bits for set-user-ID and the like are not kept by every tar (BusyBox').
fn is_small(entry: &Entry, preserve: bool) -> bool {
    let has_bits = preserve && entry.mode & SPECIAL_BITS != 0;
    matches!(entry.kind, Kind::File { size } if size <= MAX_SMALL) && !has_bits
}

impl Upload {
    /// What a stream's session runs.
    pub fn stream_command(&self) -> String {
        stream::command(self.plan.preserve)
    }

    /// Whether one more stream should be opened: [`add_stream`](Self::add_stream).
    pub fn wants_stream(&self) -> bool {
        let small = &self.small;
        let is_open = match small.way {
            Way::Proving | Way::Open => {
                let is_worth_it = small.ready.len() >= small.fewest.max(1)
                    || !small.ready.is_empty() && !small.streams.is_empty();
                is_worth_it && small.being_filled() < small.filling
            }
            Way::Syncing => small.open() == 0,
            _ => false,
        };
        is_open && small.open() < MOST_OPEN && !self.interrupted
    }

    /// One more stream; returns its number.
    pub fn add_stream(&mut self) -> usize {
        self.small.streams.push(Stream::new());
        self.advance();
        self.small.streams.len() - 1
    }

    /// Octets for a stream.
    pub fn stream_transmit(&self, stream: usize) -> &[u8] {
        self.small.streams[stream].transmit()
    }

    /// So many of them have left.
    pub fn stream_transmitted(&mut self, stream: usize, octets: usize) {
        self.small.streams[stream].transmitted(octets);
        self.advance();
    }

    /// Whether nothing follows what there is for a stream: its end is to be told.
    pub fn stream_is_complete(&self, stream: usize) -> bool {
        matches!(
            self.small.streams[stream].stage,
            Stage::Complete | Stage::Over
        )
    }

    /// Whether more for a stream is being read.
    pub fn stream_is_about_to_send(&self, stream: usize) -> bool {
        self.small.streams[stream].reading > 0
    }

    /// Takes what came on a stream.
    pub fn handle_stream_input(&mut self, stream: usize, input: &[u8]) {
        for word in self.small.streams[stream].hear(input) {
            match word {
                Word::Ready(umask) => self.small.umask = umask,
                Word::End(is_whole) => self.batch_ended(stream, is_whole),
            }
        }
        self.advance();
    }

    /// A stream was refused, or nothing more comes of it.
    pub fn end_stream(&mut self, stream: usize) {
        self.batch_ended(stream, false);
        self.advance();
    }

    /// Does without streams that the host has not taken up.
    pub fn give_up_streams(&mut self) {
        for stream in 0..self.small.streams.len() {
            if matches!(
                self.small.streams[stream].stage,
                Stage::Opening | Stage::Greeted
            ) {
                self.batch_ended(stream, false);
            }
        }
        self.advance();
    }

    /// Whether the host has yet to say that it takes a stream.
    pub fn awaits_stream(&self) -> bool {
        let mut streams = self.small.streams.iter();
        streams.any(|stream| matches!(stream.stage, Stage::Opening | Stage::Greeted))
    }

    /// The next small files to be read.
    pub fn poll_small(&mut self) -> Option<SmallGroup> {
        self.small.groups.pop_front()
    }

    /// Whether a stream's answer is waited for.
    pub(super) fn awaits_batch(&self) -> bool {
        let mut streams = self.small.streams.iter();
        streams.any(|stream| match stream.stage {
            Stage::Opening | Stage::Over | Stage::Filling => false,
            Stage::Greeted | Stage::Complete => stream.transmit().is_empty(),
        })
    }

    /// Does what can be done now about small files; returns whether all of it is done.
    pub(super) fn send_small(&mut self) -> bool {
        if self.small.way == Way::Undecided {
            self.decide();
        }
        if matches!(self.small.way, Way::Proving | Way::Open) {
            self.look_at_small();
        }
        if self.small.way == Way::Open {
            self.fill_streams();
        }
        self.name_small();
        let small = &mut self.small;
        let rests = small.open() == 0 && small.asked == 0 && small.arrived.is_empty();
        match small.way {
            Way::Open if rests && small.has_rest(self.plan.entries.len()) => {
                match small.has_renamed {
                    true => small.way = Way::Syncing,
                    // All were there, or so few were not that they go by themselves.
                    false => self.close_streams(),
                }
            }
            Way::Syncing => self.sync_names(),
            _ => {}
        }
        self.small.is_over()
    }

    /// Whether it is possible as far as is known.
    fn decide(&mut self) {
        let base = &self.small.base;
        let is_possible = self.channels[0].client.has(Extension::PosixRename)
            && !base.is_empty()
            && !base.contains(&b'\n')
            && !self.interrupted;
        if !is_possible {
            self.small.way = Way::Unused;
            self.small.octets_left = 0;
            return;
        }
        self.small.way = Way::Proving;
        let path = join(&self.small.base, &proof(self.tag));
        let request = Request::Open {
            path: &path,
            how: Open::CreateNew,
            attributes: Attributes {
                mode: Some(0o600),
                ..Attributes::default()
            },
        };
        self.small.asked += 1;
        self.ask(request, Asked::Proof);
    }

    /// A proof that an earlier transfer left is as good.
    pub(super) fn handle_proof(&mut self, reply: Reply) {
        self.small.asked -= 1;
        match reply {
            Reply::Handle(handle) => {
                self.ask(Request::Close { handle: &handle }, Asked::Forget);
            }
            Reply::Status(status) if status.code == StatusCode::Failure => {}
            _ => return self.close_streams(),
        }
        self.small.proof_made = true;
        match self.small.way {
            Way::Proving => self.small.way = Way::Open,
            // Streams were given up meanwhile.
            _ => self.remove_proof(),
        }
    }

    /// What is there now of files that may go; nothing is in a folder that we have made.
    fn look_at_small(&mut self) {
        let plan = self.plan.clone();
        while let Some(entry) = plan.entries.get(self.small.next)
            && self.channels[0].client.pending() < REQUESTS
            && self.small.ready.len() < BATCH_FILES
            && !self.interrupted
        {
            let number = self.small.next;
            self.small.next += 1;
            if !is_small(entry, self.plan.preserve) {
                continue;
            }
            if let Some(trouble) = self.hindrance(number) {
                self.small_failed(number, trouble);
                continue;
            }
            if entry
                .folder
                .is_some_and(|folder| self.new_folders.contains(&folder))
            {
                self.small.ready.push_back((number, None));
                continue;
            }
            let path = self.path(number);
            self.small.looking += 1;
            self.ask_small(number, SmallStep::Look, Request::Lstat { path: &path });
        }
    }

    fn ask_small(&mut self, entry: usize, step: SmallStep, request: Request<'_>) {
        self.small.asked += 1;
        self.ask(request, Asked::Small { entry, step });
    }

    pub(super) fn handle_small(&mut self, entry: usize, step: SmallStep, reply: Reply) {
        self.small.asked -= 1;
        match (step, reply) {
            (SmallStep::Look, reply) => {
                self.small.looking -= 1;
                self.handle_small_seen(entry, &reply);
            }
            (SmallStep::Rename, Reply::Status(status)) => match status.code {
                StatusCode::Ok => self.done(entry, false),
                // Another program has tidied up.
                StatusCode::NoSuchFile => self.small.for_sftp.push_back(entry),
                _ => {
                    self.small.unwanted.push_back(entry);
                    let trouble = Trouble::remote("putting it in place", &status);
                    self.failed_files.insert(entry);
                    self.failed(self.path(entry), trouble);
                }
            },
            (SmallStep::Rename | SmallStep::Remove | SmallStep::RemoveProof, _) => {}
        }
    }

    fn handle_small_seen(&mut self, entry: usize, reply: &Reply) {
        let mut replaces = None;
        if let Reply::Attributes(there) = reply {
            match there.file_type() {
                FileType::Folder => return self.small_failed(entry, Trouble::FolderInTheWay),
                FileType::File => {
                    let plan = &self.plan;
                    if plan.entries[entry].is_like(there, plan.preserve) {
                        self.small_leaves(entry);
                        return self.done(entry, true);
                    }
                    replaces = there.permissions();
                }
                _ => {}
            }
        }
        match self.small.way {
            _ if self.interrupted => {}
            Way::Proving | Way::Open => self.small.ready.push_back((entry, replaces)),
            _ => self.small.for_sftp.push_back(entry),
        }
    }

    /// Greets streams, has files read for them, and ends batches that are full.
    fn fill_streams(&mut self) {
        let share = (self.plan.block * self.plan.ahead / (2 * self.small.filling)).max(1);
        let count = self.plan.entries.len();
        for number in 0..self.small.streams.len() {
            let small = &mut self.small;
            let it = &mut small.streams[number];
            if it.stage == Stage::Opening {
                it.greet(&small.base, &proof(self.tag));
            }
            if it.stage != Stage::Filling {
                continue;
            }
            let is_full =
                |it: &Stream| it.octets >= BATCH_OCTETS || it.entries.len() >= BATCH_FILES;
            while it.reading < 2
                && it.transmit().len() < share
                && !is_full(it)
                && !small.ready.is_empty()
            {
                let mut entries = Vec::new();
                let mut octets = 0;
                while octets < share as u64
                    && entries.len() < GROUP
                    && let Some((entry, replaces)) = small.ready.pop_front()
                {
                    octets += self.plan.entries[entry].size();
                    small.replaced.extend(replaces.map(|mode| (entry, mode)));
                    entries.push(entry);
                }
                it.reading += 1;
                it.octets += octets;
                small.groups.push_back(SmallGroup {
                    stream: number,
                    entries,
                });
            }
            let is_full = is_full(it);
            if it.reading == 0 && (is_full || small.is_exhausted(count)) {
                small.streams[number].complete();
            }
        }
    }

    /// The answer to [`poll_small`](Self::poll_small): what became of each of the group's entries.
    pub fn provide_small(
        &mut self,
        group: &SmallGroup,
        files: Vec<Result<SmallFile, SmallProblem>>,
    ) {
        let number = group.stream;
        self.small.streams[number].reading -= 1;
        for (&entry, file) in group.entries.iter().zip(files) {
            let replaced = self.small.replaced.remove(&entry);
            if self.interrupted {
                continue;
            }
            let it = &self.small.streams[number];
            match file {
                Ok(file)
                    if it.stage == Stage::Filling
                        && (file.mode & SPECIAL_BITS == 0 || !self.plan.preserve) =>
                {
                    self.put_small(number, entry, replaced, &file);
                }
                Ok(_) | Err(SmallProblem::Grown) => {
                    let size = self.plan.entries[entry].size();
                    self.small.octets_left = self.small.octets_left.saturating_sub(size);
                    self.small.for_sftp.push_back(entry);
                }
                Err(SmallProblem::Changed) => self.small_failed(entry, Trouble::Changed),
                Err(SmallProblem::Failed(error)) => {
                    let doing = "reading";
                    self.small_failed(entry, Trouble::Local { doing, error });
                }
            }
        }
        self.advance();
    }

    fn put_small(&mut self, stream: usize, entry: usize, replaced: Option<u32>, file: &SmallFile) {
        let mode = match (self.plan.preserve, replaced) {
            (true, _) => file.mode & 0o7777,
            (false, Some(replaced)) => replaced & 0o777,
            (false, None) => file.mode & 0o777 & !self.small.umask,
        };
        let part = self.part(&self.path(entry));
        let below = part
            .strip_prefix(self.small.base.as_slice())
            .unwrap_or(&part);
        let below = below.strip_prefix(b"/").unwrap_or(below);
        let it = &mut self.small.streams[stream];
        it.put(below, mode, file.modified, &file.data);
        it.entries.push(entry);
        self.small_leaves(entry);
    }

    /// Its octets are not to be sent any more.
    fn small_leaves(&mut self, entry: usize) {
        let size = self.plan.entries[entry].size();
        self.left = self.left.saturating_sub(size);
        self.small.octets_left = self.small.octets_left.saturating_sub(size);
    }

    fn small_failed(&mut self, entry: usize, trouble: Trouble) {
        self.small_leaves(entry);
        self.failed_files.insert(entry);
        self.failed(self.path(entry), trouble);
    }

    /// A batch is on the disk, or is given up: what it was to bring goes over SFTP then, where failures have names.
    fn batch_ended(&mut self, number: usize, is_whole: bool) {
        let it = &mut self.small.streams[number];
        let before = std::mem::replace(&mut it.stage, Stage::Over);
        if before == Stage::Over {
            return;
        }
        let entries = std::mem::take(&mut it.entries);
        if it.is_dropped || self.interrupted {
            self.small.unwanted.extend(entries);
        } else if is_whole {
            let sizes = entries.iter().map(|&entry| self.plan.entries[entry].size());
            let octets: u64 = sizes.sum();
            self.small.arrived.extend(entries);
            if octets > 0 {
                self.moved(octets);
            }
        } else {
            self.small.for_sftp.extend(entries);
            self.not_taken(before);
        }
    }

    /// A stream that was never ready is one too many, or the first that shows that there can be none.
    fn not_taken(&mut self, stage: Stage) {
        let others = self.small.open();
        match stage {
            Stage::Opening | Stage::Greeted if others > 0 => self.small.filling = others,
            Stage::Opening | Stage::Greeted => {
                let has_worked = self.small.has_renamed || !self.small.arrived.is_empty();
                self.tally.why_no_batches =
                    (!has_worked).then_some("the host runs no tar for this account");
                self.close_streams();
            }
            _ => {
                self.tally.why_no_batches = Some("tar on the host did not unpack all of it");
                self.close_streams();
            }
        }
    }

    /// No more streams: what has not joined a batch goes over SFTP, what has is brought to its end.
    fn close_streams(&mut self) {
        self.small.way = Way::Closed;
        let small = &mut self.small;
        for stream in small.streams.iter_mut() {
            match stream.stage {
                Stage::Filling if self.interrupted => stream.cut(),
                Stage::Filling => stream.complete(),
                Stage::Opening | Stage::Greeted => stream.stage = Stage::Over,
                Stage::Complete if self.interrupted => stream.is_dropped = true,
                Stage::Complete | Stage::Over => {}
            }
        }
        let ready = std::mem::take(&mut small.ready);
        if !self.interrupted {
            small
                .for_sftp
                .extend(ready.into_iter().map(|(entry, _)| entry));
            let entries = self.plan.entries.iter().enumerate().skip(small.next);
            let rest = entries.filter(|(_, entry)| is_small(entry, self.plan.preserve));
            small.for_sftp.extend(rest.map(|(number, _)| number));
        }
        small.next = self.plan.entries.len();
        small.octets_left = 0;
        self.remove_proof();
    }

    fn remove_proof(&mut self) {
        if std::mem::take(&mut self.small.proof_made) {
            let path = join(&self.small.base, &proof(self.tag));
            self.small.asked += 1;
            let step = SmallStep::RemoveProof;
            self.ask(
                Request::Remove { path: &path },
                Asked::Small { entry: 0, step },
            );
        }
    }

    /// Gives files that are on the disk their names, and has parts that nobody wants removed.
    fn name_small(&mut self) {
        while self.channels[0].client.pending() < REQUESTS {
            if let Some(entry) = self.small.unwanted.pop_front() {
                let part = self.part(&self.path(entry));
                self.ask_small(entry, SmallStep::Remove, Request::Remove { path: &part });
            } else if let Some(entry) = self.small.arrived.pop_front() {
                let to = self.path(entry);
                let from = self.part(&to);
                let (from, to) = (&from, &to);
                self.small.has_renamed = true;
                self.ask_small(entry, SmallStep::Rename, Request::PosixRename { from, to });
            } else {
                return;
            }
        }
    }

    /// An archive with nothing in it brings the new names to the disk.
    fn sync_names(&mut self) {
        let proof = proof(self.tag);
        match self.small.streams.last_mut() {
            Some(it) if it.stage == Stage::Opening => it.greet(&self.small.base, &proof),
            Some(it) if it.stage == Stage::Filling => {
                it.complete();
                self.close_streams();
            }
            _ => {}
        }
    }

    pub(super) fn interrupt_small(&mut self) {
        if matches!(self.small.way, Way::Undecided) {
            self.small.way = Way::Unused;
        } else if self.small.way != Way::Unused {
            self.close_streams();
            self.small.for_sftp.clear();
            let arrived = std::mem::take(&mut self.small.arrived);
            self.small.unwanted.extend(arrived);
        }
    }
}

/// The file that is made over SFTP, and seen by streams: no part of any file is called like this.
fn proof(tag: PartTag) -> Vec<u8> {
    format!(".{tag}.part").into_bytes()
}

#[cfg(test)]
#[path = "small_tests.rs"]
mod tests;
