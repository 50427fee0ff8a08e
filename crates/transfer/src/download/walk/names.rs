//! Names of folders: kept as they come, and taken no faster than what they stand for is fetched. Each is looked at before anything
//! is made of it.

use super::{Listing, OCTETS_OF_FOLDERS, Purpose, too_many};
use crate::download::lookups::Lookup;
use crate::download::{Download, DownloadEvent, Item, MAX_FOLDERS};
use crate::part_name::name_hash;
use crate::path::{MAX_NAME, MAX_PATH, is_plain_name, join};
use crate::sftp::{Attributes, FileType, Name};
use crate::trouble::shown;
use crate::{Trouble, glob};

/// What a name takes beside its octets.
const NAME: usize = 128;
/// What a folder that waits for its end takes beside its path, octets.
const FOLDER: usize = 72;

impl Listing {
    /// Whether a name may stand for something in this folder, which none has stood for yet.
    fn admit(&mut self, name: &[u8]) -> Result<(), Trouble> {
        if name.len() > MAX_NAME {
            let (len, beginning) = (name.len(), shown(name));
            return Err(Trouble::LongName { len, beginning });
        }
        if !is_plain_name(name) {
            return Err(Trouble::BadName(shown(name)));
        }
        match self.seen.insert(name_hash(name)) {
            true => Ok(()),
            false => Err(Trouble::Twice(shown(name))),
        }
    }
}

impl Download {
    /// Names that have come. Where there are too many the folder has no more of them for us.
    pub(super) fn add_names(&mut self, id: u64, names: Vec<Name>) {
        if self.interrupted {
            return;
        }
        let listings = self.listings.values();
        let (come, waiting) = listings.fold((0, 0), |(come, waiting), it| {
            (come + it.come, waiting + it.octets)
        });
        let octets: usize = names.iter().map(octets_of).sum();
        let limits = self.limits;
        let Some(listing) = self.listings.get_mut(&id) else {
            return;
        };
        let trouble = if come + names.len() > limits.names {
            too_many("names in folders that are listed at a time", limits.names)
        } else if waiting + octets > limits.held {
            too_many("octets of names that come at a time", limits.held)
        } else {
            listing.come += names.len();
            listing.octets += octets;
            return listing.names.extend(names);
        };
        listing.reads.stop(Some(trouble));
    }

    /// Takes names of a folder that have come, while there is room.
    pub(super) fn take_names(&mut self, id: u64) {
        while !self.is_full(id)
            && let Some(listing) = self.listings.get_mut(&id)
            && let Some(name) = listing.names.pop_front()
        {
            listing.octets -= octets_of(&name);
            self.take_name(id, name);
        }
    }

    /// Nothing more is taken of what has come.
    pub(in crate::download) fn forget_names(&mut self) {
        self.listings
            .values_mut()
            .for_each(|listing| listing.forget_names());
    }

    fn take_name(&mut self, id: u64, name: Name) {
        if matches!(name.name.as_slice(), b"." | b"..") {
            return;
        }
        let Some(listing) = self.listings.get_mut(&id) else {
            return;
        };
        if let Err(trouble) = listing.admit(&name.name) {
            let folder = listing.item.remote.clone();
            return self.failed(folder, trouble);
        }
        let folder = &listing.item;
        match &listing.purpose {
            Purpose::Search {
                base,
                parts,
                pattern,
            } => {
                let mut parts = parts.iter().cloned();
                if parts
                    .next()
                    .is_some_and(|part| glob::matches(&part, &name.name))
                {
                    let (base, pattern) = (join(base, &name.name), pattern.clone());
                    let parts = parts.collect();
                    self.search(base, parts, pattern);
                }
            }
            Purpose::Tree => {
                let is_outermost = folder.local.is_empty();
                let [remote, local, below] =
                    [&folder.remote, &folder.local, &folder.below].map(|it| join(it, &name.name));
                if self.plan.excludes.covers(&below) {
                    return;
                }
                if is_outermost && self.has_several_sources() {
                    match self.claim(&local, &remote) {
                        Ok(true) => {}
                        Ok(false) => return,
                        Err(trouble) => return self.failed(remote, trouble),
                    }
                }
                let paths = [remote, local, below];
                self.take_item(Item::new(paths, name.attributes, &self.held));
            }
        }
    }

    /// Something that is to be fetched.
    pub(in crate::download) fn take_item(&mut self, item: Item) {
        if item.remote.len() > MAX_PATH || item.local.len() > MAX_PATH {
            return self.failed(item.remote, Trouble::TooLong);
        }
        if self.lacks_name(&item) {
            return self.failed(item.remote, Trouble::NoFolderThere);
        }
        self.note_fetched(&item);
        let file_type = item.attributes.file_type();
        if self.only_tells() && matches!(file_type, FileType::File | FileType::Link) {
            return;
        }
        let Some(item) = self.await_owner(item) else {
            return;
        };
        match file_type {
            FileType::File => {
                let size = item.attributes.size.unwrap_or(0);
                self.left = self.left.saturating_add(size);
                self.events.push_back(DownloadEvent::Found(size));
                self.queue.extend(self.small.take(item));
            }
            FileType::Folder => {
                let remote = item.remote.clone();
                if let Err(trouble) = self.add_listing(item, Purpose::Tree) {
                    self.failed(remote, trouble);
                }
            }
            FileType::Link => self.links.push(item),
            FileType::BlockDevice | FileType::CharacterDevice | FileType::Special => {
                self.failed(item.remote, Trouble::Special);
            }
            FileType::Unknown => self.lookups.add(Lookup::Listed(item)),
        }
    }

    /// A folder that gets its owner, mode and times at the end. One that `has_failed`, and that was told, is closed as well, but it
    /// is not what the host has: it does not get its time.
    pub(super) fn finish_later(
        &mut self,
        remote: Vec<u8>,
        local: Vec<u8>,
        mut attributes: Attributes,
        has_failed: bool,
    ) {
        if has_failed {
            attributes.times = None;
        }
        let octets = local.len() + FOLDER;
        if self.folders.len() >= MAX_FOLDERS {
            return self.failed(remote, too_many("folders", MAX_FOLDERS));
        }
        if !self.has_room_to_keep(octets) {
            return self.failed(remote, too_many(OCTETS_OF_FOLDERS, self.limits.kept));
        }
        self.kept.keep(octets);
        let path = local.into_boxed_slice();
        self.folders.push((path, attributes, has_failed));
    }
}

/// What a name takes that has come and waits.
fn octets_of(name: &Name) -> usize {
    name.name.len() + NAME
}
