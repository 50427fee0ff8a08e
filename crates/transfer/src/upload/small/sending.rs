//! Small files on their way into batches.

use super::stream::{Stage, Stream};
use super::{
    BATCH_FILES, BATCH_OCTETS, GROUP, REQUESTS, SPECIAL_BITS, SmallFile, SmallGroup, SmallProblem,
    SmallStep, Way, is_small, manifest, proof,
};
use crate::Trouble;
use crate::path::join;
use crate::sftp::{Attributes, Extension, FileType, Open, Reply, Request, StatusCode};
use crate::upload::comparing::SETTING;
use crate::upload::opening::OWN_READ;
use crate::upload::{Asked, Upload};

impl Upload {
    /// Does what can be done now about small files; returns whether all of it is done.
    pub(in crate::upload) fn send_small(&mut self) -> bool {
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
    pub(in crate::upload) fn handle_proof(&mut self, reply: Reply) {
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
            && self.small.ready.len() + self.small.looking < BATCH_FILES
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
                self.small_joins(number, None);
                continue;
            }
            let path = self.path(number);
            self.small.looking += 1;
            self.ask_small(number, SmallStep::Look, Request::Lstat { path: &path });
        }
    }

    pub(in crate::upload) fn ask_small(
        &mut self,
        entry: usize,
        step: SmallStep,
        request: Request<'_>,
    ) {
        self.small.asked += 1;
        self.ask(request, Asked::Small { entry, step });
    }

    pub(in crate::upload) fn handle_small(&mut self, entry: usize, step: SmallStep, reply: Reply) {
        self.small.asked -= 1;
        match (step, reply) {
            (SmallStep::Look, reply) => {
                self.small.looking -= 1;
                self.handle_small_seen(entry, &reply);
            }
            (SmallStep::Touch | SmallStep::TouchOwner, Reply::Status(status)) => {
                let trouble = match step {
                    SmallStep::TouchOwner => self.owner(entry).refused(&status),
                    _ => Trouble::remote(SETTING, &status),
                };
                let is_ok = status.code == StatusCode::Ok;
                self.handle_small_touched(entry, (!is_ok).then_some(trouble));
            }
            (SmallStep::LookAtOwner | SmallStep::Own, reply) => {
                self.handle_small_owner(entry, step, &reply);
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
            (SmallStep::Touch | SmallStep::TouchOwner | SmallStep::Rename, _) => {}
            (SmallStep::Remove | SmallStep::RemoveProof, _) => {}
        }
    }

    fn handle_small_seen(&mut self, entry: usize, reply: &Reply) {
        let mut replaces = None;
        if let Reply::Attributes(there) = reply {
            match there.file_type() {
                FileType::Folder => return self.small_failed(entry, Trouble::FolderInTheWay),
                FileType::BlockDevice | FileType::CharacterDevice => {
                    return self.small_failed(entry, Trouble::DeviceInTheWay);
                }
                FileType::File => {
                    let plan = &self.plan;
                    let it = &plan.entries[entry];
                    if plan.hashing.compares && it.has_size_of(there) && !self.interrupted {
                        // Nothing ends before both ends have answered.
                        self.small.asked += 1;
                        self.small.looking += 1;
                        return self.compare(entry, *there, true);
                    }
                    if !plan.hashing.compares && it.is_like(there, plan.preserve) {
                        return self.small_is_there(entry, there);
                    }
                    replaces = there.permissions();
                }
                _ => {}
            }
        }
        self.small_joins(entry, replaces);
    }

    /// A file that is there has been hashed at both ends.
    pub(in crate::upload) fn small_is_seen(&mut self) {
        self.small.asked -= 1;
        self.small.looking -= 1;
    }

    /// A file is to be sent.
    pub(in crate::upload) fn small_joins(&mut self, entry: usize, replaces: Option<u32>) {
        // Hashes are held against a list of lines.
        let has_lines = self.verifies() && self.path(entry).contains(&b'\n');
        match self.small.way {
            _ if self.interrupted => {}
            _ if has_lines => self.small_goes_alone(entry),
            // Nothing tells a batch when its folder is open.
            _ if !self.is_folder_open(entry) => {
                self.open_folder_of(0, entry);
                self.small_goes_alone(entry);
            }
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
                it.greet(&small.base, &proof(self.tag), &manifest(self.tag, number));
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
                Ok(file) if it.stage == Stage::Filling && self.may_join(&file, replaced) => {
                    self.put_small(number, entry, replaced, &file);
                }
                Ok(_) | Err(SmallProblem::Grown) => self.small_goes_alone(entry),
                Err(SmallProblem::Changed) => self.small_failed(entry, Trouble::Changed),
                Err(SmallProblem::Failed(error)) => {
                    let doing = "reading";
                    self.small_failed(entry, Trouble::Local { doing, error });
                }
            }
        }
        self.advance();
    }

    /// Permissions of a file's part, which is unpacked with those that it is to have.
    fn mode_of_small(&self, file: &SmallFile, replaced: Option<u32>) -> u32 {
        match (self.plan.preserve, replaced) {
            (true, _) => file.mode & 0o7777,
            (false, Some(replaced)) => replaced & 0o777,
            (false, None) => file.mode & 0o777 & !self.small.umask,
        }
    }

    /// Whether a file may be unpacked as it is to be: without bits that a tar loses, and, if it is hashed then, readable.
    fn may_join(&self, file: &SmallFile, replaced: Option<u32>) -> bool {
        let mode = self.mode_of_small(file, replaced);
        mode & SPECIAL_BITS == 0 && (mode & OWN_READ != 0 || !self.verifies())
    }

    fn put_small(&mut self, stream: usize, entry: usize, replaced: Option<u32>, file: &SmallFile) {
        let mode = self.mode_of_small(file, replaced);
        let part = self.part(&self.path(entry));
        let below = part
            .strip_prefix(self.small.base.as_slice())
            .unwrap_or(&part);
        let below = below.strip_prefix(b"/").unwrap_or(below);
        let it = &mut self.small.streams[stream];
        it.put(below, mode, file.modified, &file.data, file.hash);
        it.entries.push(entry);
        self.on_the_way += self.plan.entries[entry].size();
        self.small_leaves(entry);
    }

    /// A file that joins no batch.
    fn small_goes_alone(&mut self, entry: usize) {
        let size = self.plan.entries[entry].size();
        self.small.octets_left = self.small.octets_left.saturating_sub(size);
        self.small.for_sftp.push_back(entry);
    }

    /// Its octets are not to be sent any more.
    pub(in crate::upload) fn small_leaves(&mut self, entry: usize) {
        let size = self.plan.entries[entry].size();
        self.left = self.left.saturating_sub(size);
        self.small.octets_left = self.small.octets_left.saturating_sub(size);
    }

    pub(in crate::upload) fn small_failed(&mut self, entry: usize, trouble: Trouble) {
        self.small_leaves(entry);
        self.failed_files.insert(entry);
        self.failed(self.path(entry), trouble);
    }
}
