//! `--delete`: what is surplus in the folders that were sent is removed, once all that was to be sent is in place.
//!
//! Nothing is removed if anything has failed, nor in a folder in which a name is missing that was just sent: there the server does
//! not tell names as they were given. No link is followed but one that the user has named as the target. A folder goes when all
//! that is in it has gone.

use std::collections::HashMap;
use std::sync::Arc;

use super::closed::Place;
use super::{Asked, Phase, Upload, UploadEvent};
use crate::Trouble;
use crate::path::{MAX_PATH, is_plain_name, join};
use crate::reads::Reads;
use crate::sftp::{FileType, Handle, Name, Reply, Request, Status, StatusCode};
use crate::surplus::Surplus;
use crate::trouble::shown;

/// Folders listed at a time.
const LISTINGS: usize = 16;
/// Names that a host may tell in all.
const MAX_NAMES: usize = 5_000_000;

/// What is looked through on one host.
#[derive(Default)]
pub(super) struct Deleting {
    has_begun: bool,
    /// Folders that are to be listed, the next one last.
    to_list: Vec<Folder>,
    /// Those that are listed or cleared.
    open: HashMap<u64, Folder>,
    next_id: u64,
    /// Names told so far.
    names: usize,
}

/// A folder that is listed, or is to be.
struct Folder {
    place: Vec<u8>,
    /// The folder above, if this one goes, too.
    goes_from: Option<u64>,
    handle: Option<Handle>,
    reads: Reads,
    /// Names that the sources have, and that were told.
    sent: usize,
    /// What is surplus in it.
    surplus: Vec<(Vec<u8>, FileType)>,
    is_listed: bool,
    /// Requests about what is surplus, and folders in it, that are not settled.
    unsettled: usize,
    /// Something stays in it.
    is_needed: bool,
}

/// What was asked about a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DeleteStep {
    List,
    Read {
        /// Whether no other one of the folder is asked for before it is answered.
        is_alone: bool,
    },
    /// The server has not said what this is.
    Look {
        name: Vec<u8>,
        is_sent: bool,
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
                let mut open = self.deleting.open.values_mut();
                let handles: Vec<Handle> =
                    open.by_ref().filter_map(|it| it.handle.take()).collect();
                handles.iter().for_each(|handle| self.close(handle));
                return self.end_deleting();
            }
        };
        if !self.deleting.has_begun {
            self.deleting.has_begun = true;
            if self.tally.failed > 0 {
                let path = self.small.base.clone();
                self.failed(path, Trouble::NothingDeleted);
                return self.end_deleting();
            }
            let scopes = surplus.scopes().iter().rev();
            let scopes = scopes.map(|place| Folder::new(place.clone(), None));
            self.deleting.to_list = scopes.collect();
        }
        self.clear_folders(&surplus);
        self.list_surplus(&surplus);
        if self.deleting.to_list.is_empty() && self.deleting.open.is_empty() {
            self.end_deleting();
        }
    }

    /// Folders get their modes and times when no request is on its way any more.
    fn end_deleting(&mut self) {
        if self.channels[0].client.pending() > 0 {
            return;
        }
        self.deleting = Deleting {
            has_begun: true,
            ..Deleting::default()
        };
        self.phase = match &self.plan.surplus {
            Some(surplus) if surplus.is_only_told() => Phase::Ended,
            _ => Phase::FolderAttributes,
        };
    }

    /// Where a place is on this host.
    fn path_at(&self, place: &[u8]) -> Vec<u8> {
        join(&self.small.base, place)
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
            if let Some(entry) = surplus
                .folder(&folder.place)
                .filter(|_| !surplus.is_only_told())
            {
                self.open_folder(0, Place::Entry(entry));
            }
            self.deleting.next_id += 1;
            let id = self.deleting.next_id;
            let path = self.path_at(&folder.place);
            self.deleting.open.insert(id, folder);
            let step = DeleteStep::List;
            self.ask(Request::Opendir { path: &path }, Asked::Delete { id, step });
        }
        for id in self.open_folders() {
            self.read_surplus(id, surplus);
        }
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
            self.ask(Request::Readdir { handle }, Asked::Delete { id, step });
        }
    }

    fn close(&mut self, handle: &Handle) {
        self.ask(Request::Close { handle }, Asked::Forget);
    }

    /// All names are known, or none can be had.
    fn end_listing(&mut self, id: u64, trouble: Option<Trouble>, surplus: &Surplus) {
        let Some(folder) = self.deleting.open.get_mut(&id) else {
            return;
        };
        folder.is_listed = true;
        let goes = folder.goes_from.is_some();
        let lacks = !goes && !surplus.is_only_told() && folder.sent < surplus.names(&folder.place);
        let trouble = match trouble {
            None if lacks => Some(Trouble::NamesMissing),
            trouble => trouble,
        };
        if let Some(trouble) = trouble {
            folder.surplus.clear();
            folder.is_needed = true;
            let path = join(&self.small.base, &folder.place);
            self.failed(path, trouble);
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
            DeleteStep::List => self.handle_opened_surplus(id, reply, &surplus),
            DeleteStep::Read { is_alone } => {
                self.handle_surplus_names(id, is_alone, reply, &surplus)
            }
            DeleteStep::Look { name, is_sent } => {
                let file_type = match &reply {
                    Reply::Attributes(there) => there.file_type(),
                    _ => FileType::Unknown,
                };
                self.settle_one(id);
                match (is_sent, file_type) {
                    (true, FileType::Folder) => self.descend(id, &name, false),
                    (true, _) => {}
                    (false, FileType::Unknown) if is_gone(&reply) => {}
                    (false, FileType::Unknown) => self.not_removed(id, &name, &reply),
                    (false, file_type) => {
                        if let Some(folder) = self.deleting.open.get_mut(&id) {
                            folder.surplus.push((name, file_type));
                        }
                    }
                }
            }
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

    fn handle_opened_surplus(&mut self, id: u64, reply: Reply, surplus: &Arc<Surplus>) {
        let Some(folder) = self.deleting.open.get_mut(&id) else {
            return;
        };
        match reply {
            Reply::Handle(handle) => folder.handle = Some(handle),
            // Nothing was made that is only told of, and what goes may have gone by itself.
            Reply::Status(status)
                if status.code == StatusCode::NoSuchFile
                    && (surplus.is_only_told() || folder.goes_from.is_some()) =>
            {
                folder.is_listed = true;
            }
            Reply::Status(status) => {
                let trouble = Trouble::remote("listing the folder", &status);
                self.end_listing(id, Some(trouble), surplus);
            }
            _ => self.end_listing(id, Some(Trouble::NoFolderThere), surplus),
        }
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
        let is_too_much = self.deleting.names > MAX_NAMES;
        let Some(folder) = self.deleting.open.get_mut(&id) else {
            return;
        };
        if is_too_much {
            let (what, limit) = ("names in the folders there", MAX_NAMES);
            return folder.reads.stop(Some(Trouble::TooMany { what, limit }));
        }
        if !is_plain_name(&name) {
            return folder.reads.stop(Some(Trouble::BadName(shown(&name))));
        }
        let place = join(&folder.place, &name);
        let is_sent = surplus.is_sent(&place);
        match attributes.file_type() {
            _ if !is_sent && surplus.is_spared(&place) => folder.is_needed = true,
            file_type if !is_sent => folder.surplus.push((name, file_type)),
            file_type => {
                folder.sent += 1;
                match file_type {
                    // A link that leads to a folder is not followed.
                    FileType::Folder if surplus.folder(&place).is_some() => {
                        self.descend(id, &name, false)
                    }
                    FileType::Unknown if surplus.folder(&place).is_some() => {
                        self.look(id, name, true)
                    }
                    _ => {}
                }
            }
        }
    }

    /// A folder in this one is to be listed, and goes or stays.
    fn descend(&mut self, id: u64, name: &[u8], goes: bool) {
        let Some(folder) = self.deleting.open.get_mut(&id) else {
            return;
        };
        let place = join(&folder.place, name);
        let goes_from = goes.then_some(id);
        folder.unsettled += usize::from(goes);
        self.deleting.to_list.push(Folder::new(place, goes_from));
    }

    fn look(&mut self, id: u64, name: Vec<u8>, is_sent: bool) {
        let Some(folder) = self.deleting.open.get_mut(&id) else {
            return;
        };
        folder.unsettled += 1;
        let path = join(&join(&self.small.base, &folder.place), &name);
        let step = DeleteStep::Look { name, is_sent };
        self.ask(Request::Lstat { path: &path }, Asked::Delete { id, step });
    }

    /// Removes what is surplus in folders that are listed, and those that go themselves and are empty.
    fn clear_folders(&mut self, surplus: &Surplus) {
        for id in self.open_folders() {
            while self.has_room()
                && let Some(folder) = self.deleting.open.get_mut(&id)
                && folder.is_listed
                && let Some((name, file_type)) = folder.surplus.pop()
            {
                match file_type {
                    FileType::Folder => self.descend(id, &name, true),
                    FileType::Unknown => self.look(id, name, false),
                    _ if surplus.is_only_told() => self.deleted(id, &name),
                    _ => self.remove(id, name),
                }
            }
            let folder = self.deleting.open.get(&id);
            if folder.is_some_and(|it| it.is_listed && it.surplus.is_empty() && it.unsettled == 0) {
                self.settle_folder(id, surplus);
            }
        }
    }

    fn remove(&mut self, id: u64, name: Vec<u8>) {
        let Some(folder) = self.deleting.open.get_mut(&id) else {
            return;
        };
        let path = join(&join(&self.small.base, &folder.place), &name);
        if path.len() > MAX_PATH {
            folder.is_needed = true;
            return self.failed(path, Trouble::TooLong);
        }
        folder.unsettled += 1;
        let step = DeleteStep::Remove { name };
        self.ask(Request::Remove { path: &path }, Asked::Delete { id, step });
    }

    /// Everything in it is settled.
    fn settle_folder(&mut self, id: u64, surplus: &Surplus) {
        let Some(folder) = self.deleting.open.get_mut(&id) else {
            return;
        };
        let goes = folder.goes_from.is_some() && !folder.is_needed;
        if goes && !surplus.is_only_told() {
            folder.unsettled += 1;
            let path = join(&self.small.base, &folder.place);
            let step = DeleteStep::RemoveFolder;
            return self.ask(Request::Rmdir { path: &path }, Asked::Delete { id, step });
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
        if is_gone {
            self.tell_deleted([&folder.place, &b"/"[..]].concat());
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
