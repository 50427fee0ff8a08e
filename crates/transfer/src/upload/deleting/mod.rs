//! `--delete`: what is surplus in the folders that were sent is removed, once all that was to be sent is in place.
//!
//! First all of them are looked through, and only then anything is removed: nothing is if anything has failed, if a name is missing
//! that was just sent (then the server does not tell names as they were given), or if a link stands in the place of one of the
//! folders (what went through it may be in another one of them, and look surplus there). A folder goes when all that is in it has
//! gone. No link is followed but the target, where that is one: whatever a listing says, a folder is looked at itself before it is
//! listed, for some servers tell there what a link leads to.
//!
//! `looking` lists folders and finds what is surplus in them, `clearing` removes it.

mod clearing;
mod looking;

use std::collections::{HashMap, HashSet};

use super::{Asked, Phase, Upload};
use crate::Trouble;
use crate::path::join;
use crate::reads::Reads;
use crate::sftp::{Handle, Reply, Request};

/// Folders with something surplus that are cleared at a time.
const CLEARED: usize = 64;
/// What a name takes beside its octets.
const NAME: usize = 32;

/// Names in a folder that are surplus, and whether each may be a folder.
type Names = Vec<(Vec<u8>, bool)>;

/// What is looked through on one host.
#[derive(Default)]
pub(in crate::upload) struct Deleting {
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
    /// Names that the sources have, and that were told; each counts once, however often it was.
    sent: HashSet<Vec<u8>>,
    surplus: Names,
    is_listed: bool,
    /// Requests about what is surplus, and folders in it, that are not settled.
    unsettled: usize,
    /// Something stays in it.
    is_needed: bool,
}

/// What was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::upload) enum DeleteStep {
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
            sent: HashSet::new(),
            surplus: Vec::new(),
            is_listed: false,
            unsettled: 0,
            is_needed: false,
        }
    }
}

impl Upload {
    pub(in crate::upload) fn delete_surplus(&mut self) {
        let surplus = match &self.plan.surplus {
            Some(surplus) if !self.interrupted => surplus.clone(),
            _ => {
                let waiting = std::mem::take(&mut self.deleting.to_list).into_iter();
                let open = std::mem::take(&mut self.deleting.open).into_values();
                // The innermost first: what they are in may be closed to us afterwards.
                let mut folders: Vec<Folder> = open.chain(waiting).collect();
                folders.sort_unstable_by(|one, other| other.place.cmp(&one.place));
                for folder in folders {
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

    /// The innermost come first: they were begun last.
    fn open_folders(&self) -> Vec<u64> {
        let mut open: Vec<u64> = self.deleting.open.keys().copied().collect();
        open.sort_unstable_by(|one, other| other.cmp(one));
        open
    }

    pub(in crate::upload) fn handle_delete(&mut self, id: u64, step: DeleteStep, reply: Reply) {
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
            DeleteStep::Remove { name } => self.handle_removed(id, &name, &reply),
            DeleteStep::RemoveFolder => self.handle_folder_removed(id, &reply),
        }
    }
}
