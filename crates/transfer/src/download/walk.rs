//! Listing folders: several at a time, the deepest first, and no faster than files are fetched.

mod reads;

use std::collections::VecDeque;

use super::{Asked, Download, DownloadEvent, DownloadNeed, Item, MAX_FOLDERS};
use crate::owners::Owners;
use crate::path::{MAX_PATH, is_plain_name, join};
use crate::sftp::{Attributes, FileType, Handle, Name, Reply, Request, StatusCode};
use crate::{Trouble, glob};
use reads::Reads;

/// Folders listed at a time.
const LISTINGS: usize = 16;
/// Files that may be found and not begun: then no folder is begun.
const QUEUE: usize = 4096;
/// The same, after which those that are begun wait, too: some more than what two batches of small files take. What is asked
/// for already still comes, at most [`LISTINGS`] times [`MOST_READS`](reads::MOST_READS) packets.
const MOST_FOUND: usize = 5 * QUEUE;

/// A folder that is listed, or is to be.
pub(super) struct Listing {
    item: Item,
    purpose: Purpose,
    handle: Option<Handle>,
    reads: Reads,
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
        }
    }
}

impl Download {
    /// Begins listings while there is room, and reads on in those that are begun.
    pub(super) fn list_folders(&mut self) {
        self.begin_listings();
        let mut begun: Vec<u64> = self.listings.keys().copied().collect();
        begun.sort_unstable();
        for id in begun {
            self.read_folder(id);
        }
    }

    /// Files that are found and not begun.
    fn found(&self) -> usize {
        self.queue.len() + self.small.waiting() + self.accounts.waiting()
    }

    fn begin_listings(&mut self) {
        while self.listings.len() < LISTINGS
            && self.found() < QUEUE
            && let Some(listing) = self.to_list.pop()
        {
            let id = self.id();
            match listing.purpose {
                Purpose::Tree => self.needs.push_back(DownloadNeed::Folder {
                    id,
                    path: listing.item.local.clone(),
                }),
                Purpose::Search { .. } => self.open_folder(id, &listing.item.remote),
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
        let is_full = self.found() >= MOST_FOUND || self.channels[0].client.is_full();
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
            if listing.reads.unanswered == 0 {
                let trouble = listing.reads.end.take().flatten();
                self.end_listing(id, trouble);
            }
            return;
        }
        if is_full {
            return;
        }
        let (unanswered, most) = (listing.reads.unanswered, listing.reads.most());
        listing.reads.unanswered = unanswered.max(most);
        let is_alone = most == 1;
        for _ in unanswered..most {
            let step = ListingStep::Read { is_alone };
            self.ask(
                Request::Readdir { handle: &handle },
                Asked::Listing { id, step },
            );
        }
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
            (ListingStep::Close, _) => drop(self.listings.remove(&id)),
        }
    }

    fn handle_read(&mut self, id: u64, is_alone: bool, reply: Reply) {
        let Some(listing) = self.listings.get_mut(&id) else {
            return;
        };
        let reads = &mut listing.reads;
        reads.unanswered -= 1;
        match reply {
            Reply::Names(names) if names.is_empty() => {
                reads.stop(Some(Trouble::BadName(String::new())));
            }
            Reply::Names(names) => {
                reads.answered += 1;
                for name in names {
                    self.take_name(id, name);
                }
            }
            Reply::Status(status) if status.code == StatusCode::Eof => reads.reach_end(is_alone),
            Reply::Status(status) => {
                reads.fail(is_alone, Trouble::remote("listing the folder", &status));
            }
            _ => reads.stop(None),
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
        match trouble {
            Some(trouble) => self.failed(remote, trouble),
            None if self.interrupted => {}
            None if self.finishes_folders() => match self.folders.len() < MAX_FOLDERS {
                true => self.folders.push((local, attributes)),
                false => self.failed(remote, too_many("folders")),
            },
            None => self.done(local, false),
        }
    }

    /// One name of a folder.
    fn take_name(&mut self, id: u64, name: Name) {
        if matches!(name.name.as_slice(), b"." | b"..") || self.interrupted {
            return;
        }
        let Some(listing) = self.listings.get(&id) else {
            return;
        };
        let folder = listing.item.clone();
        if !is_plain_name(&name.name) {
            let shown = String::from_utf8_lossy(&name.name).into_owned();
            return self.failed(folder.remote, Trouble::BadName(shown));
        }
        if let Purpose::Search {
            base,
            parts,
            pattern,
        } = &listing.purpose
        {
            if parts
                .front()
                .is_some_and(|part| glob::matches(part, &name.name))
            {
                let rest = parts.iter().skip(1).cloned().collect();
                let (base, pattern) = (join(base, &name.name), pattern.clone());
                self.search(base, rest, pattern);
            }
            return;
        }
        let item = Item {
            remote: join(&folder.remote, &name.name),
            local: join(&folder.local, &name.name),
            below: join(&folder.below, &name.name),
            attributes: name.attributes,
        };
        if !self.plan.excludes.covers(&item.below) {
            self.take_item(item);
        }
    }

    /// Something that is to be fetched.
    pub(super) fn take_item(&mut self, item: Item) {
        if item.remote.len() > MAX_PATH || item.local.len() > MAX_PATH {
            return self.failed(item.remote, Trouble::TooLong);
        }
        let Some(item) = self.await_owner(item) else {
            return;
        };
        match item.attributes.file_type() {
            FileType::File => {
                let size = item.attributes.size.unwrap_or(0);
                self.left = self.left.saturating_add(size);
                self.events.push_back(DownloadEvent::Found(size));
                self.queue.extend(self.small.take(item));
            }
            FileType::Folder if self.to_list.len() < MAX_FOLDERS => {
                self.to_list.push(Listing::new(item, Purpose::Tree));
            }
            FileType::Folder => self.failed(item.remote, too_many("folders")),
            FileType::Link if self.links.len() < MAX_FOLDERS => self.links.push(item),
            FileType::Link => self.failed(item.remote, too_many("symbolic links")),
            FileType::BlockDevice | FileType::CharacterDevice | FileType::Special => {
                self.failed(item.remote, Trouble::Special);
            }
            FileType::Unknown => {
                self.open += 1;
                let Item {
                    remote,
                    local,
                    below,
                    ..
                } = item;
                let path = remote.clone();
                let asked = Asked::Unknown {
                    remote,
                    local,
                    below,
                };
                self.ask(Request::Lstat { path: &path }, asked);
            }
        }
    }

    /// What a server did not say in its list.
    pub(super) fn handle_unknown(
        &mut self,
        remote: Vec<u8>,
        local: Vec<u8>,
        below: Vec<u8>,
        reply: Reply,
    ) {
        self.open -= 1;
        match reply {
            _ if self.interrupted => {}
            Reply::Attributes(attributes) if attributes.file_type() != FileType::Unknown => {
                self.take_item(Item {
                    remote,
                    local,
                    below,
                    attributes,
                });
            }
            // A server without types has files to offer, or says of each why not.
            Reply::Attributes(attributes) => self.take_item(Item {
                remote,
                local,
                below,
                attributes: Attributes {
                    mode: Some(0o100_644),
                    ..attributes
                },
            }),
            Reply::Status(status) => {
                self.failed(remote, Trouble::remote("looking at it", &status));
            }
            _ => self.failed(remote, Trouble::Special),
        }
    }
}

fn too_many(what: &'static str) -> Trouble {
    Trouble::TooMany {
        what,
        limit: MAX_FOLDERS,
    }
}

#[cfg(test)]
mod tests;
