//! `--delete`: what is surplus in the folders that were sent is removed, once all that was to be sent is in place.
//!
//! First all of them are looked through, and only then anything is removed: nothing is if anything has failed, if a name is missing
//! that was just sent (then the server does not tell names as they were given), or if a link stands in the place of one of the
//! folders (what went through it may be in another one of them, and look surplus there). A folder goes when all that is in it has
//! gone. No link is followed but the target, where that is one: whatever a listing says, a folder is looked at itself before it is
//! listed, for some servers tell there what a link leads to.

use std::collections::HashMap;
use std::sync::Arc;

use super::closed::Place;
use super::folders::OWN_USE;
use super::{Asked, Phase, Upload, UploadEvent};
use crate::Trouble;
use crate::path::{MAX_PATH, is_plain_name, join};
use crate::reads::Reads;
use crate::sftp::{Attributes, FileType, Handle, Name, Reply, Request, Status, StatusCode};
use crate::surplus::Surplus;
use crate::trouble::shown;

/// Folders listed at a time.
const LISTINGS: usize = 16;
/// Names that a host may tell in all, and octets of those that are surplus and remembered.
const MAX_NAMES: usize = 5_000_000;
const MAX_OCTETS: usize = 64 * 1024 * 1024;
/// Surplus folders that may wait to be listed before others are looked at, and folders with something surplus that are cleared at a time.
const MOST_WAITING: usize = 1024;
const CLEARED: usize = 64;
/// What a name takes beside its octets.
const NAME: usize = 32;

/// Names in a folder that are surplus, and whether each may be a folder.
type Names = Vec<(Vec<u8>, bool)>;

/// What is looked through on one host.
#[derive(Default)]
pub(super) struct Deleting {
    stage: Stage,
    /// Where the target and the account's home are, as the server has them.
    target: Option<Vec<u8>>,
    home: Option<Vec<u8>>,
    /// Folders that are to be listed, the next one last.
    to_list: Vec<Folder>,
    /// Those that are listed or cleared.
    open: HashMap<u64, Folder>,
    next_id: u64,
    /// What is surplus in folders of the sources'.
    found: Vec<(Vec<u8>, Names)>,
    /// Names told so far, and octets of `found`.
    names: usize,
    octets: usize,
    /// Nothing is removed: that was told.
    is_refused: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    New,
    /// Where the target is, is not known yet.
    Finding,
    Looking,
    Clearing,
}

/// A folder that is listed, or is to be.
struct Folder {
    place: Vec<u8>,
    /// The folder above, if this one goes, too.
    goes_from: Option<u64>,
    /// Its mode, if it was given more rights to be cleared.
    had_mode: Option<u32>,
    handle: Option<Handle>,
    reads: Reads,
    /// Names that the sources have, and that were told.
    sent: usize,
    surplus: Names,
    is_listed: bool,
    /// Requests about what is surplus, and folders in it, that are not settled.
    unsettled: usize,
    /// Something stays in it.
    is_needed: bool,
}

/// What was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DeleteStep {
    FindTarget,
    FindHome,
    /// Whether it is a folder.
    LookAtIt,
    List,
    Read {
        /// Whether no other one of the folder is asked for before it is answered.
        is_alone: bool,
    },
    /// What this is itself, which is surplus and may be a folder.
    Look {
        name: Vec<u8>,
    },
    Remove {
        name: Vec<u8>,
    },
    RemoveFolder,
}

impl Folder {
    fn new(place: Vec<u8>, goes_from: Option<u64>) -> Folder {
        Folder {
            place,
            goes_from,
            had_mode: None,
            handle: None,
            reads: Reads::default(),
            sent: 0,
            surplus: Vec::new(),
            is_listed: false,
            unsettled: 0,
            is_needed: false,
        }
    }
}

impl Upload {
    pub(super) fn delete_surplus(&mut self) {
        let surplus = match &self.plan.surplus {
            Some(surplus) if !self.interrupted => surplus.clone(),
            _ => {
                let waiting = std::mem::take(&mut self.deleting.to_list).into_iter();
                let open = std::mem::take(&mut self.deleting.open).into_values();
                for folder in open.chain(waiting) {
                    if let Some(handle) = &folder.handle {
                        self.close(handle);
                    }
                    if let Some(mode) = folder.had_mode {
                        self.set_mode(&folder.place, mode);
                    }
                }
                return self.end_deleting();
            }
        };
        if self.deleting.stage == Stage::New {
            if self.tally.failed > 0 {
                self.tell_nothing_deleted();
                return self.end_deleting();
            }
            self.deleting.stage = Stage::Finding;
            let path = &self.small.base.clone();
            self.ask_about(0, Request::Realpath { path }, DeleteStep::FindTarget);
            self.ask_about(0, Request::Realpath { path: b"." }, DeleteStep::FindHome);
        }
        if self.deleting.stage == Stage::Finding {
            let (target, home) = (&self.deleting.target, &self.deleting.home);
            let (Some(target), Some(_), false) = (target, home, self.deleting.is_refused) else {
                if self.deleting.is_refused {
                    self.tell_nothing_deleted();
                    self.end_deleting();
                }
                return;
            };
            if target == b"/" && surplus.scopes().iter().any(|scope| scope.is_empty()) {
                self.refuse(b"", Trouble::WholeHost);
                self.tell_nothing_deleted();
                return self.end_deleting();
            }
            self.deleting.stage = Stage::Looking;
            let scopes = surplus.scopes().iter().rev();
            let scopes = scopes.map(|place| Folder::new(place.clone(), None));
            self.deleting.to_list = scopes.collect();
        }
        loop {
            self.clear_folders(&surplus);
            self.list_surplus(&surplus);
            if !self.deleting.to_list.is_empty() || !self.deleting.open.is_empty() {
                return;
            }
            if self.deleting.stage == Stage::Looking && !self.deleting.is_refused {
                self.deleting.stage = Stage::Clearing;
            }
            if self.deleting.found.is_empty() {
                break;
            }
            self.take_found();
        }
        if self.deleting.stage == Stage::Looking {
            self.tell_nothing_deleted();
        }
        self.end_deleting();
    }

    /// Some of the folders in which something is surplus are next.
    fn take_found(&mut self) {
        let first = self.deleting.found.len().saturating_sub(CLEARED);
        for (place, surplus) in self.deleting.found.split_off(first) {
            self.deleting.next_id += 1;
            let folder = Folder {
                surplus,
                is_listed: true,
                ..Folder::new(place, None)
            };
            self.deleting.open.insert(self.deleting.next_id, folder);
        }
    }

    fn tell_nothing_deleted(&mut self) {
        self.failed(self.small.base.clone(), Trouble::NothingDeleted);
    }

    /// Why nothing is removed on this host.
    fn refuse(&mut self, place: &[u8], trouble: Trouble) {
        self.deleting.is_refused = true;
        self.deleting.found = Vec::new();
        self.deleting.to_list = Vec::new();
        self.failed(self.path_at(place), trouble);
    }

    /// Folders get their modes and times when no request is on its way any more.
    fn end_deleting(&mut self) {
        if self.channels[0].client.pending() > 0 {
            // What is told is told once.
            self.deleting.stage = Stage::Clearing;
            return;
        }
        self.deleting = Deleting::default();
        self.phase = match self.plan.only_tells() {
            true => Phase::Ended,
            false => Phase::FolderAttributes,
        };
    }

    /// Where a place is on this host.
    fn path_at(&self, place: &[u8]) -> Vec<u8> {
        join(&self.small.base, place)
    }

    fn ask_about(&mut self, id: u64, request: Request<'_>, step: DeleteStep) {
        self.ask(request, Asked::Delete { id, step });
    }

    fn close(&mut self, handle: &Handle) {
        self.ask(Request::Close { handle }, Asked::Forget);
    }

    /// Begins listings while there is room, and reads on in those that are begun.
    fn list_surplus(&mut self, surplus: &Surplus) {
        let listed = |it: &&Folder| !it.is_listed;
        let mut listings = self.deleting.open.values().filter(listed).count();
        while listings < LISTINGS
            && self.has_room()
            && let Some(folder) = self.deleting.to_list.pop()
        {
            listings += 1;
            self.deleting.next_id += 1;
            let id = self.deleting.next_id;
            let path = &self.path_at(&folder.place);
            // The target may be a link, which the user has named; what goes has been looked at.
            let is_known = folder.place.is_empty() || folder.goes_from.is_some();
            self.deleting.open.insert(id, folder);
            match is_known {
                true => self.open_listing(id, surplus),
                false => self.ask_about(id, Request::Lstat { path }, DeleteStep::LookAtIt),
            }
        }
        for id in self.open_folders() {
            self.read_surplus(id, surplus);
        }
    }

    fn open_listing(&mut self, id: u64, surplus: &Surplus) {
        let Some(folder) = self.deleting.open.get(&id) else {
            return;
        };
        let path = &self.path_at(&folder.place);
        let entry = surplus.folder(&folder.place);
        if let Some(entry) = entry.filter(|_| !surplus.is_only_told()) {
            self.open_folder(0, Place::Entry(entry));
        }
        self.ask_about(id, Request::Opendir { path }, DeleteStep::List);
    }

    /// The innermost come first: they were begun last.
    fn open_folders(&self) -> Vec<u64> {
        let mut open: Vec<u64> = self.deleting.open.keys().copied().collect();
        open.sort_unstable_by(|one, other| other.cmp(one));
        open
    }

    fn read_surplus(&mut self, id: u64, surplus: &Surplus) {
        let has_room = self.has_room();
        let Some(folder) = self.deleting.open.get_mut(&id) else {
            return;
        };
        let Some(handle) = folder.handle.clone() else {
            return;
        };
        if folder.reads.end.is_some() {
            if folder.reads.unanswered == 0 {
                folder.handle = None;
                let trouble = folder.reads.end.take().flatten();
                self.close(&handle);
                self.end_listing(id, trouble, surplus);
            }
            return;
        }
        if !has_room {
            return;
        }
        let (unanswered, most) = (folder.reads.unanswered, folder.reads.most());
        folder.reads.unanswered = unanswered.max(most);
        let is_alone = most == 1;
        for _ in unanswered..most {
            let step = DeleteStep::Read { is_alone };
            let handle = &handle;
            self.ask_about(id, Request::Readdir { handle }, step);
        }
    }

    /// All names are known, or none can be had.
    fn end_listing(&mut self, id: u64, trouble: Option<Trouble>, surplus: &Surplus) {
        let Some(folder) = self.deleting.open.get_mut(&id) else {
            return;
        };
        if folder.goes_from.is_some() {
            folder.is_listed = true;
            if let Some(trouble) = trouble {
                folder.surplus.clear();
                folder.is_needed = true;
                let path = join(&self.small.base, &folder.place);
                self.failed(path, trouble);
            }
            return;
        }
        let Some(folder) = self.deleting.open.remove(&id) else {
            return;
        };
        let lacks = !surplus.is_only_told() && folder.sent < surplus.names(&folder.place);
        let trouble = trouble.or(lacks.then_some(Trouble::NamesMissing));
        match trouble {
            Some(trouble) => self.refuse(&folder.place, trouble),
            None if folder.surplus.is_empty() || self.deleting.is_refused => {}
            None => self.deleting.found.push((folder.place, folder.surplus)),
        }
    }

    pub(super) fn handle_delete(&mut self, id: u64, step: DeleteStep, reply: Reply) {
        let Some(surplus) = self.plan.surplus.clone() else {
            return;
        };
        if self.interrupted {
            if let Reply::Handle(handle) = &reply {
                self.close(handle);
            }
            return;
        }
        match step {
            DeleteStep::FindTarget => self.deleting.target = self.found_path(reply),
            DeleteStep::FindHome => self.deleting.home = self.found_path(reply),
            DeleteStep::LookAtIt => self.handle_looked_at(id, &reply, &surplus),
            DeleteStep::List => self.handle_opened_surplus(id, reply, &surplus),
            DeleteStep::Read { is_alone } => {
                self.handle_surplus_names(id, is_alone, reply, &surplus);
            }
            DeleteStep::Look { name } => self.handle_surplus_seen(id, name, &reply),
            DeleteStep::Remove { name } => {
                self.settle_one(id);
                match is_gone(&reply) {
                    true => self.deleted(id, &name),
                    false => self.not_removed(id, &name, &reply),
                }
            }
            DeleteStep::RemoveFolder => self.handle_folder_removed(id, &reply),
        }
    }

    fn found_path(&mut self, reply: Reply) -> Option<Vec<u8>> {
        let doing = "finding out where it is";
        match reply {
            Reply::Names(mut names) if names.len() == 1 => return Some(names.remove(0).name),
            Reply::Status(status) => self.refuse(b"", Trouble::remote(doing, &status)),
            _ => self.refuse(b"", Trouble::BadName(String::new())),
        }
        None
    }

    /// What is in the place of a folder that was sent.
    fn handle_looked_at(&mut self, id: u64, reply: &Reply, surplus: &Arc<Surplus>) {
        let trouble = match reply {
            Reply::Attributes(there) => match there.file_type() {
                FileType::Folder => return self.open_listing(id, surplus),
                FileType::Link => Trouble::LinkInTheWay,
                _ => Trouble::NoFolderThere,
            },
            Reply::Status(status)
                if status.code == StatusCode::NoSuchFile && surplus.is_only_told() =>
            {
                self.deleting.open.remove(&id);
                return;
            }
            Reply::Status(status) => Trouble::remote("looking at the folder", status),
            _ => Trouble::NoFolderThere,
        };
        self.end_listing(id, Some(trouble), surplus);
    }

    fn handle_opened_surplus(&mut self, id: u64, reply: Reply, surplus: &Arc<Surplus>) {
        let Some(folder) = self.deleting.open.get_mut(&id) else {
            return;
        };
        let trouble = match reply {
            Reply::Handle(handle) => {
                folder.handle = Some(handle);
                return;
            }
            // It has gone by itself.
            Reply::Status(status)
                if status.code == StatusCode::NoSuchFile && folder.goes_from.is_some() =>
            {
                None
            }
            Reply::Status(status) => Some(Trouble::remote("listing the folder", &status)),
            _ => Some(Trouble::NoFolderThere),
        };
        self.end_listing(id, trouble, surplus);
    }

    fn handle_surplus_names(
        &mut self,
        id: u64,
        is_alone: bool,
        reply: Reply,
        surplus: &Arc<Surplus>,
    ) {
        let Some(folder) = self.deleting.open.get_mut(&id) else {
            return;
        };
        let reads = &mut folder.reads;
        reads.unanswered -= 1;
        match reply {
            Reply::Names(names) if names.is_empty() => {
                reads.stop(Some(Trouble::BadName(String::new())));
            }
            Reply::Names(names) => {
                reads.answered += 1;
                for name in names {
                    self.take_surplus_name(id, name, surplus);
                }
            }
            Reply::Status(status) if status.code == StatusCode::Eof => reads.reach_end(is_alone),
            Reply::Status(status) => {
                reads.fail(is_alone, Trouble::remote("listing the folder", &status));
            }
            _ => reads.stop(Some(Trouble::BadName(String::new()))),
        }
    }

    fn take_surplus_name(&mut self, id: u64, name: Name, surplus: &Surplus) {
        let Name { name, attributes } = name;
        if matches!(name.as_slice(), b"." | b"..") {
            return;
        }
        self.deleting.names += 1;
        let names = self.deleting.names;
        let Some(folder) = self.deleting.open.get_mut(&id) else {
            return;
        };
        if !is_plain_name(&name) {
            return folder.reads.stop(Some(Trouble::BadName(shown(&name))));
        }
        let place = join(&folder.place, &name);
        let goes = folder.goes_from.is_some();
        if !goes && surplus.is_sent(&place) {
            folder.sent += 1;
            if surplus.folder(&place).is_some() {
                self.deleting.to_list.push(Folder::new(place, None));
            }
            return;
        }
        if surplus.is_spared(&place) {
            folder.is_needed = true;
            return;
        }
        let file_type = attributes.file_type();
        let may_be_folder = matches!(file_type, FileType::Folder | FileType::Unknown);
        self.deleting.octets += name.len() + NAME;
        folder.surplus.push((name, may_be_folder));
        let too_many = |what, limit| Some(Trouble::TooMany { what, limit });
        if names > MAX_NAMES {
            folder
                .reads
                .stop(too_many("names in the folders there", MAX_NAMES));
        }
        if self.deleting.octets > MAX_OCTETS {
            let what = "octets of names there that are to be deleted";
            folder.reads.stop(too_many(what, MAX_OCTETS));
        }
        if !goes && self.has_own_keys(&place, surplus) {
            self.refuse(&place, Trouble::OwnKeys);
        }
    }

    /// Whether what lets the account in is there, below or above, and would go.
    fn has_own_keys(&self, place: &[u8], surplus: &Surplus) -> bool {
        let (Some(target), Some(home)) = (&self.deleting.target, &self.deleting.home) else {
            return false;
        };
        let keys = join(home, b".ssh");
        let path = join(target, place);
        let is_below = |one: &[u8], other: &[u8]| {
            one.strip_prefix(other)
                .is_some_and(|rest| rest.starts_with(b"/"))
        };
        if keys == path || is_below(&path, &keys) {
            return true;
        }
        // On the way there something may be excluded.
        let below = |folder: &[u8]| Some(keys.strip_prefix(folder)?.strip_prefix(b"/")?.to_vec());
        is_below(&keys, &path)
            && below(&path).is_some_and(|rest| {
                let ends = (0..=rest.len()).filter(|&at| at == rest.len() || rest[at] == b'/');
                let mut places = ends.map(|end| join(place, &rest[..end]));
                !places.any(|place| surplus.is_spared(&place))
            })
    }

    fn handle_surplus_seen(&mut self, id: u64, name: Vec<u8>, reply: &Reply) {
        self.settle_one(id);
        match reply {
            Reply::Attributes(there) if there.file_type() == FileType::Folder => {
                self.descend(id, &name, there);
            }
            Reply::Attributes(there) if there.file_type() != FileType::Unknown => {
                if let Some(folder) = self.deleting.open.get_mut(&id) {
                    self.deleting.octets += name.len() + NAME;
                    folder.surplus.push((name, false));
                }
            }
            reply if is_gone(reply) => {}
            reply => self.not_removed(id, &name, reply),
        }
    }

    /// A surplus folder in this one is to be listed. One that its owner has closed (`-p` gave it such a mode) is opened.
    fn descend(&mut self, id: u64, name: &[u8], there: &Attributes) {
        let Some(folder) = self.deleting.open.get_mut(&id) else {
            return;
        };
        let mut inner = Folder::new(join(&folder.place, name), Some(id));
        folder.unsettled += 1;
        let mode = there.permissions().unwrap_or(OWN_USE);
        if mode & OWN_USE != OWN_USE && !self.plan.only_tells() {
            inner.had_mode = Some(mode);
            self.set_mode(&inner.place, mode | OWN_USE);
        }
        self.deleting.to_list.push(inner);
    }

    /// What comes of it does not matter: who may not is refused what follows, which is told.
    fn set_mode(&mut self, place: &[u8], mode: u32) {
        let path = &self.path_at(place);
        let attributes = Attributes {
            mode: Some(mode),
            ..Attributes::default()
        };
        self.ask(Request::Setstat { path, attributes }, Asked::Forget);
    }

    /// Removes what is surplus in folders that are listed, and those that go themselves and are empty.
    fn clear_folders(&mut self, surplus: &Surplus) {
        for id in self.open_folders() {
            while self.has_room()
                && self.deleting.to_list.len() < MOST_WAITING
                && let Some(folder) = self.deleting.open.get_mut(&id)
                && folder.is_listed
                && let Some((name, may_be_folder)) = folder.surplus.pop()
            {
                self.deleting.octets -= name.len() + NAME;
                match may_be_folder {
                    true => self.look(id, name),
                    false if surplus.is_only_told() => self.deleted(id, &name),
                    false => self.remove(id, name),
                }
            }
            let folder = self.deleting.open.get(&id);
            if folder.is_some_and(|it| it.is_listed && it.surplus.is_empty() && it.unsettled == 0) {
                self.settle_folder(id, surplus);
            }
        }
    }

    fn look(&mut self, id: u64, name: Vec<u8>) {
        let Some(folder) = self.deleting.open.get_mut(&id) else {
            return;
        };
        let path = &join(&join(&self.small.base, &folder.place), &name);
        if path.len() > MAX_PATH {
            folder.is_needed = true;
            return self.failed(path.clone(), Trouble::TooLong);
        }
        folder.unsettled += 1;
        self.ask_about(id, Request::Lstat { path }, DeleteStep::Look { name });
    }

    fn remove(&mut self, id: u64, name: Vec<u8>) {
        let Some(folder) = self.deleting.open.get_mut(&id) else {
            return;
        };
        let path = &join(&join(&self.small.base, &folder.place), &name);
        if path.len() > MAX_PATH {
            folder.is_needed = true;
            return self.failed(path.clone(), Trouble::TooLong);
        }
        folder.unsettled += 1;
        self.ask_about(id, Request::Remove { path }, DeleteStep::Remove { name });
    }

    /// Everything in it is settled.
    fn settle_folder(&mut self, id: u64, surplus: &Surplus) {
        let Some(folder) = self.deleting.open.get_mut(&id) else {
            return;
        };
        let goes = folder.goes_from.is_some() && !folder.is_needed;
        if goes && !surplus.is_only_told() {
            folder.unsettled += 1;
            let path = &join(&self.small.base, &folder.place);
            return self.ask_about(id, Request::Rmdir { path }, DeleteStep::RemoveFolder);
        }
        self.folder_settled(id, goes);
    }

    fn handle_folder_removed(&mut self, id: u64, reply: &Reply) {
        let is_gone = is_gone(reply);
        if !is_gone && let Some(folder) = self.deleting.open.get(&id) {
            let path = self.path_at(&folder.place);
            self.failed(path, removal(reply));
        }
        self.folder_settled(id, is_gone);
    }

    /// A folder is gone, or stays.
    fn folder_settled(&mut self, id: u64, is_gone: bool) {
        let Some(folder) = self.deleting.open.remove(&id) else {
            return;
        };
        let Some(above) = folder.goes_from else {
            return;
        };
        match (is_gone, folder.had_mode) {
            (true, _) => self.tell_deleted([&folder.place, &b"/"[..]].concat()),
            (false, Some(mode)) => self.set_mode(&folder.place, mode),
            (false, None) => {}
        }
        if let Some(above) = self.deleting.open.get_mut(&above) {
            above.unsettled -= 1;
            above.is_needed |= !is_gone;
        }
    }

    fn settle_one(&mut self, id: u64) {
        if let Some(folder) = self.deleting.open.get_mut(&id) {
            folder.unsettled -= 1;
        }
    }

    fn deleted(&mut self, id: u64, name: &[u8]) {
        if let Some(folder) = self.deleting.open.get(&id) {
            self.tell_deleted(join(&folder.place, name));
        }
    }

    fn tell_deleted(&mut self, place: Vec<u8>) {
        self.tally.deleted += u64::from(!self.plan.only_tells());
        let path = self.path_at(&place);
        self.events.push_back(UploadEvent::Deleted { path });
    }

    fn not_removed(&mut self, id: u64, name: &[u8], reply: &Reply) {
        let Some(folder) = self.deleting.open.get_mut(&id) else {
            return;
        };
        folder.is_needed = true;
        let path = join(&join(&self.small.base, &folder.place), name);
        self.failed(path, removal(reply));
    }
}

/// Whether it is not there any more.
fn is_gone(reply: &Reply) -> bool {
    let Reply::Status(status) = reply else {
        return false;
    };
    matches!(status.code, StatusCode::Ok | StatusCode::NoSuchFile)
}

fn removal(reply: &Reply) -> Trouble {
    let doing = "deleting it";
    match reply {
        Reply::Status(status) => Trouble::remote(doing, status),
        // What it is, the server does not say.
        _ => Trouble::remote(
            doing,
            &Status {
                code: StatusCode::Failure,
                message: "what it is is not told".to_owned(),
            },
        ),
    }
}
