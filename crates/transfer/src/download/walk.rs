//! Listing folders: several at a time, the deepest first, and no faster than files are fetched.

mod names;

use std::collections::{HashSet, VecDeque};

use super::Asked;
use super::{Download, DownloadNeed, Item, MAX_FOLDERS};
use crate::Trouble;
use crate::owners::Owners;
use crate::path::{MAX_NAME, MAX_PATH};
use crate::reads::Reads;
use crate::sftp::{Handle, Name, Reply, Request, StatusCode};

/// Folders listed at a time.
const LISTINGS: usize = 16;
/// Files that may be found and not begun: then no folder is begun. So many folders may wait to be listed: then only the folder
/// that was begun last goes on.
const QUEUE: usize = 4096;
/// The same, after which those that are begun wait, too: some more than what two batches of small files take. What is asked
/// for already still comes, at most [`LISTINGS`] times [`MOST_READS`](crate::reads::MOST_READS) packets, and waits.
const MOST_FOUND: usize = 5 * QUEUE;
/// Links that are made last.
pub(super) const LAST_LINKS: usize = QUEUE;

/// A folder that is listed, or is to be.
pub(super) struct Listing {
    item: Item,
    purpose: Purpose,
    handle: Option<Handle>,
    reads: Reads,
    /// Names that have come and wait, and octets that they take.
    names: VecDeque<Name>,
    octets: usize,
    /// How many have come in all.
    come: usize,
    /// Hashes of those that have been taken.
    seen: HashSet<u64>,
    /// Whether ".", which did not come, has been asked for.
    was_asked_for: bool,
}

/// Why a folder is listed.
pub(super) enum Purpose {
    /// All of it is fetched.
    Tree,
    /// Some of its names are looked for.
    Search {
        /// The part of the pattern that is found, as the user would write it.
        base: Vec<u8>,
        /// The rest of it.
        parts: VecDeque<Vec<u8>>,
        /// All of it.
        pattern: Vec<u8>,
    },
}

/// What was asked about a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListingStep {
    Open,
    Read {
        /// Whether no other one of the folder is asked for before it is answered.
        is_alone: bool,
    },
    /// Whether names can be looked at in it, where none came, not even ".".
    Search,
    /// The answer does not matter.
    Close,
}

impl Listing {
    pub(super) fn new(item: Item, purpose: Purpose) -> Listing {
        Listing {
            item,
            purpose,
            handle: None,
            reads: Reads::default(),
            names: VecDeque::new(),
            octets: 0,
            come: 0,
            seen: HashSet::new(),
            was_asked_for: false,
        }
    }

    /// How many of its names are known.
    #[cfg(test)]
    pub(super) fn names_seen(&self) -> usize {
        self.seen.len()
    }

    /// Whether it has ended well without any name. OpenSSH's server leaves out what it cannot look at (sftp-server.c,
    /// `process_readdir`): in a folder that may be read and not searched that is all, "." as well.
    fn lacks_all(&self) -> bool {
        matches!(self.reads.end, Some(None)) && self.come == 0 && !self.was_asked_for
    }

    /// Whether names may be missing because they would be too long with its path: the server leaves those out, too.
    fn may_lack_names(&self) -> bool {
        self.item.remote.len() + 1 + MAX_NAME > MAX_PATH
    }

    /// Nothing is known any more of its names.
    fn forget_names(&mut self) {
        (self.names, self.seen) = (VecDeque::new(), HashSet::new());
        (self.octets, self.come) = (0, 0);
    }
}

impl Download {
    /// Takes what has come, begins listings while there is room, and reads on in those that are begun.
    pub(super) fn list_folders(&mut self) {
        for id in self.begun() {
            self.take_names(id);
        }
        self.begin_listings();
        for id in self.begun() {
            self.read_folder(id);
        }
    }

    /// Folders that are listed, in the order in which they were begun.
    fn begun(&self) -> Vec<u64> {
        let mut begun: Vec<u64> = self.listings.keys().copied().collect();
        begun.sort_unstable();
        begun
    }

    /// What is found and not begun.
    fn found(&self) -> usize {
        self.queue.len()
            + self.small.waiting()
            + self.accounts.waiting()
            + self.lookups.waiting()
            + self.links.len().saturating_sub(LAST_LINKS)
    }

    /// Whether no more names of this folder are taken or asked for: what is known is to be fetched first, or listed.
    fn is_full(&self, id: u64) -> bool {
        // While folders wait one goes on, for else none would ever end.
        let is_last = || self.listings.keys().all(|&other| other <= id);
        self.found() >= MOST_FOUND
            || self.held.now() >= self.limits.held
            || self.to_list.len() >= QUEUE && !is_last()
    }

    fn begin_listings(&mut self) {
        while self.listings.len() < LISTINGS
            && self.found() < QUEUE
            && self.held.now() < self.limits.held
            && let Some(listing) = self.to_list.pop()
        {
            let id = self.id();
            match listing.purpose {
                Purpose::Tree if !self.only_tells() => self.needs.push_back(DownloadNeed::Folder {
                    id,
                    path: listing.item.local.clone(),
                }),
                Purpose::Tree | Purpose::Search { .. } => {
                    self.open_folder(id, &listing.item.remote)
                }
            }
            self.listings.insert(id, listing);
        }
    }

    /// The folder is there on this side, or not.
    pub(super) fn handle_folder(&mut self, id: u64, made: Result<(), String>) {
        let Some(listing) = self.listings.get(&id) else {
            return;
        };
        let remote = listing.item.remote.clone();
        match made {
            Ok(()) if self.interrupted => drop(self.listings.remove(&id)),
            Ok(()) => self.open_folder(id, &remote),
            Err(error) => {
                self.listings.remove(&id);
                let doing = "making the folder";
                self.failed(remote, Trouble::Local { doing, error });
            }
        }
    }

    fn open_folder(&mut self, id: u64, path: &[u8]) {
        let step = ListingStep::Open;
        self.ask(Request::Opendir { path }, Asked::Listing { id, step });
    }

    /// Asks for more of a folder, as much as may be, or ends its listing once all is there that was asked for.
    fn read_folder(&mut self, id: u64) {
        let is_full = self.is_full(id) || self.channels[0].client.is_full();
        let Some(listing) = self.listings.get_mut(&id) else {
            return;
        };
        let Some(handle) = listing.handle.clone() else {
            return;
        };
        if self.interrupted {
            listing.reads.stop(None);
        }
        if listing.reads.end.is_some() {
            if listing.reads.unanswered == 0 && listing.names.is_empty() {
                match listing.lacks_all() && !self.interrupted {
                    true => self.ask_for_itself(id),
                    false => {
                        let trouble = listing.reads.end.take().flatten();
                        self.end_listing(id, trouble);
                    }
                }
            }
            return;
        }
        if is_full {
            return;
        }
        let (more, is_alone) = listing.reads.ask();
        for _ in 0..more {
            let step = ListingStep::Read { is_alone };
            self.ask(
                Request::Readdir { handle: &handle },
                Asked::Listing { id, step },
            );
        }
    }

    /// Asks for the folder by the name that it has in itself.
    fn ask_for_itself(&mut self, id: u64) {
        let Some(listing) = self.listings.get_mut(&id) else {
            return;
        };
        listing.was_asked_for = true;
        listing.reads.unanswered += 1;
        let path = [&listing.item.remote, b"/.".as_slice()].concat();
        let step = ListingStep::Search;
        self.ask(Request::Lstat { path: &path }, Asked::Listing { id, step });
    }

    pub(super) fn handle_listing(&mut self, id: u64, step: ListingStep, reply: Reply) {
        let Some(listing) = self.listings.get_mut(&id) else {
            return;
        };
        match (step, reply) {
            // What is to be read of it is asked for with that of all others.
            (ListingStep::Open, Reply::Handle(handle)) => listing.handle = Some(handle),
            (ListingStep::Open, Reply::Status(status)) => {
                let trouble = Trouble::remote("listing the folder", &status);
                self.end_listing(id, Some(trouble));
            }
            (ListingStep::Open, _) => self.end_listing(id, None),
            (ListingStep::Read { is_alone }, reply) => self.handle_read(id, is_alone, reply),
            (ListingStep::Search, reply) => {
                listing.reads.unanswered -= 1;
                if let Reply::Status(status) = reply
                    && status.code == StatusCode::PermissionDenied
                {
                    let trouble = Trouble::remote("looking at the names in the folder", &status);
                    listing.reads.end = Some(Some(trouble));
                }
            }
            (ListingStep::Close, _) => drop(self.listings.remove(&id)),
        }
    }

    fn handle_read(&mut self, id: u64, is_alone: bool, reply: Reply) {
        let Some(listing) = self.listings.get_mut(&id) else {
            return;
        };
        let names = listing.reads.take(is_alone, reply);
        if !names.is_empty() {
            self.add_names(id, names);
        }
    }

    /// Whether folders are to get anything at the end.
    fn finishes_folders(&self) -> bool {
        self.plan.preserve || self.plan.owners != Owners::Makers
    }

    fn end_listing(&mut self, id: u64, trouble: Option<Trouble>) {
        let Some(listing) = self.listings.get_mut(&id) else {
            return;
        };
        let is_whole = trouble.is_none() && listing.handle.is_some() && !self.interrupted;
        let trouble = match is_whole && listing.may_lack_names() {
            true => Some(Trouble::LongFolder),
            false => trouble,
        };
        listing.forget_names();
        let handle = listing.handle.take();
        let remote = listing.item.remote.clone();
        let pattern = match &listing.purpose {
            Purpose::Search { pattern, .. } => Some(pattern.clone()),
            Purpose::Tree => None,
        };
        let (local, attributes) = (listing.item.local.clone(), listing.item.attributes);
        match handle {
            Some(handle) => {
                let step = ListingStep::Close;
                self.ask(
                    Request::Close { handle: &handle },
                    Asked::Listing { id, step },
                );
            }
            None => drop(self.listings.remove(&id)),
        }
        if let Some(pattern) = pattern {
            // What was found here counts for itself; what is no folder has nothing below it.
            let is_told = trouble.filter(|trouble| !trouble.is_missing());
            let was_told = is_told.is_some();
            if let Some(trouble) = is_told {
                self.failed(remote, trouble);
            }
            return self.end_search(&pattern, was_told);
        }
        let has_failed = trouble.is_some();
        if let Some(trouble) = trouble {
            self.failed(remote.clone(), trouble);
        }
        match (self.interrupted, self.finishes_folders()) {
            (true, _) => {}
            _ if self.only_tells() => {}
            (false, true) => self.finish_later(remote, local, attributes, has_failed),
            (false, false) if has_failed => {}
            (false, false) => self.done(local, false),
        }
    }

    /// A folder that is to be listed.
    pub(super) fn add_listing(&mut self, item: Item, purpose: Purpose) -> Result<(), Trouble> {
        if self.to_list.len() >= MAX_FOLDERS {
            return Err(too_many("folders", MAX_FOLDERS));
        }
        if !self.has_room_to_keep(item.held.octets()) {
            return Err(too_many(OCTETS_OF_FOLDERS, self.limits.kept));
        }
        let item = item.held_by(&self.kept);
        self.to_list.push(Listing::new(item, purpose));
        Ok(())
    }
}

/// What is kept of folders.
pub(super) const OCTETS_OF_FOLDERS: &str = "octets of the paths of folders";

pub(super) fn too_many(what: &'static str, limit: usize) -> Trouble {
    Trouble::TooMany { what, limit }
}

#[cfg(test)]
mod tests;
