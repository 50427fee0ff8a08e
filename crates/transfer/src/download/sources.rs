//! What the user means: paths, patterns, homes.

use std::collections::VecDeque;

use super::lookups::Lookup;
use super::walk::Purpose;
use super::{Asked, Download, Item, Stage};
use crate::glob;
use crate::path::{MAX_PATH, file_name, join, without_slashes};
use crate::sftp::{Attributes, Extension, FileType, Reply, Request};
use crate::{Remote, Trouble};

/// One pattern.
#[derive(Debug, Default)]
pub(super) struct Search {
    /// Folders that are still to be listed for it, and paths to be looked at.
    open: usize,
    found: bool,
}

impl Download {
    /// Begins with all sources at once.
    pub(super) fn ask_for_sources(&mut self) {
        self.stage = Stage::Files;
        let plan = self.plan.clone();
        for source in &plan.sources {
            match source.as_slice() {
                // Paths that do not begin with a slash begin at the user's home.
                b"" | b"~" | b"~/" => self.look_for(b"./"),
                [b'~', b'/', below @ ..] => self.look_for(below),
                [b'~', ..] if self.channels[0].client.has(Extension::ExpandPath) => {
                    let user = source.split(|&octet| octet == b'/').next();
                    let path = user.unwrap_or(source);
                    self.open += 1;
                    let source = source.clone();
                    self.ask(Request::ExpandPath { path }, Asked::Expand { source });
                }
                [b'~', ..] => {
                    let why = Remote::Unsupported("~user (expand-path@openssh.com)".to_owned());
                    let doing = "looking for the home folder";
                    self.failed(source.clone(), Trouble::Remote { doing, why });
                }
                source => self.look_for(source),
            }
        }
    }

    pub(super) fn handle_expanded(&mut self, source: &[u8], reply: Reply) {
        self.open -= 1;
        let user = source.iter().position(|&octet| octet == b'/');
        let below = &source[user.unwrap_or(source.len())..];
        match reply {
            Reply::Names(names) if !names.is_empty() => {
                // What the server says is a path and no pattern.
                let escaped = names[0].name.iter().flat_map(|&octet| match octet {
                    b'*' | b'?' | b'[' | b'\\' => vec![b'\\', octet],
                    octet => vec![octet],
                });
                let path: Vec<u8> = escaped.chain(below.iter().copied()).collect();
                self.look_for(&path);
            }
            Reply::Status(status) => {
                let trouble = Trouble::remote("looking for the home folder", &status);
                self.failed(source.to_vec(), trouble);
            }
            _ => self.failed(source.to_vec(), Trouble::NoMatch),
        }
    }

    fn look_for(&mut self, pattern: &[u8]) {
        if !glob::is_pattern(pattern) {
            return self.look_at_source(pattern.to_vec(), None);
        }
        let base: &[u8] = if pattern.starts_with(b"/") { b"/" } else { b"" };
        let parts = pattern.split(|&octet| octet == b'/');
        let parts: Vec<Vec<u8>> = parts
            .filter(|part| !part.is_empty())
            .map(<[u8]>::to_vec)
            .collect();
        self.search(base.to_vec(), parts.into(), pattern.to_vec());
    }

    /// Goes on with a pattern, of which `base` is found.
    pub(super) fn search(
        &mut self,
        mut base: Vec<u8>,
        mut parts: VecDeque<Vec<u8>>,
        pattern: Vec<u8>,
    ) {
        self.searches.entry(pattern.clone()).or_default().open += 1;
        while let Some(plain) = parts.front().and_then(|part| glob::literal(part)) {
            base = join(&base, &plain);
            parts.pop_front();
        }
        if parts.is_empty() {
            if pattern.ends_with(b"/") {
                base.push(b'/');
            }
            return self.look_at_source(base, Some(pattern));
        }
        let added = match base.len() {
            ..=MAX_PATH => self.add_search(base.clone(), parts, pattern.clone()),
            _ => Err(Trouble::TooLong),
        };
        if let Err(trouble) = added {
            self.failed(base, trouble);
            self.end_search(&pattern, true);
        }
    }

    fn add_search(
        &mut self,
        base: Vec<u8>,
        parts: VecDeque<Vec<u8>>,
        pattern: Vec<u8>,
    ) -> Result<(), Trouble> {
        let remote = match base.is_empty() {
            true => b".".to_vec(),
            false => base.clone(),
        };
        // What it takes is about what an item's three paths do.
        let paths = [remote, Vec::new(), pattern.clone()];
        let item = Item::new(paths, Attributes::default(), &self.held);
        let purpose = Purpose::Search {
            base,
            parts,
            pattern,
        };
        self.add_listing(item, purpose)
    }

    /// A part of the search for a pattern has ended. A pattern that finds nothing anywhere has failed.
    pub(super) fn end_search(&mut self, pattern: &[u8], found: bool) {
        let Some(search) = self.searches.get_mut(pattern) else {
            return;
        };
        search.open -= 1;
        search.found |= found;
        if search.open > 0 {
            return;
        }
        let found = search.found;
        self.searches.remove(pattern);
        if !found && !self.interrupted {
            self.failed(pattern.to_vec(), Trouble::NoMatch);
        }
    }

    /// `pattern`: the one that led here.
    fn look_at_source(&mut self, source: Vec<u8>, pattern: Option<Vec<u8>>) {
        let path = without_slashes(&source).to_vec();
        // With a slash at its end a folder has no name of its own: what is in it goes where it would.
        let local = match file_name(&path) {
            b"" | b"." | b".." => Vec::new(),
            _ if source.ends_with(b"/") => Vec::new(),
            name => name.to_vec(),
        };
        let paths = [path, local, Vec::new()];
        let item = Item::new(paths, Attributes::default(), &self.held);
        self.lookups.add(Lookup::Source { item, pattern });
    }

    pub(super) fn handle_source(&mut self, mut item: Item, pattern: Option<Vec<u8>>, reply: Reply) {
        self.looked_up();
        let is_there = matches!(reply, Reply::Attributes(_));
        if let Some(pattern) = &pattern {
            self.end_search(pattern, is_there);
        }
        if self.interrupted {
            return;
        }
        match reply {
            Reply::Attributes(attributes) => {
                item.attributes = attributes;
                self.take_source(item, pattern.is_none());
            }
            Reply::Status(status) => {
                // Of a pattern such as */x it is no fault that some have no x.
                if pattern.is_none() || Remote::of(&status) != Remote::Missing {
                    self.failed(item.remote, Trouble::remote("looking for it", &status));
                }
            }
            _ => self.failed(item.remote, Trouble::NoMatch),
        }
    }

    /// What the user means is there. `is_named`: he has named it, and no pattern has found it.
    fn take_source(&mut self, item: Item, is_named: bool) {
        let file_type = item.attributes.file_type();
        let trouble = match file_type {
            FileType::Folder if !self.plan.recursive => Some(Trouble::Folder),
            FileType::BlockDevice if !is_named => Some(Trouble::Special),
            _ if self.lacks_name(&item) => Some(Trouble::NoFolderThere),
            _ => None,
        };
        // What is printed has no place.
        let place = match self.plan.in_order {
            true => &item.remote,
            false => &item.local,
        };
        let claimed = match trouble {
            None => self.claim(&place.clone(), &item.remote),
            Some(trouble) => Err(trouble),
        };
        match claimed {
            Ok(true) if file_type == FileType::BlockDevice => {
                self.note_fetched(&item);
                if !self.only_tells() {
                    self.survey_device(item);
                }
            }
            Ok(true) => {
                self.note_scope(&item);
                self.take_item(item);
            }
            Ok(false) => {}
            Err(trouble) => self.failed(item.remote, trouble),
        }
    }

    /// Whether it was named as a folder by a slash at its end, and is none: there is nothing that it could be called here.
    pub(super) fn lacks_name(&self, item: &Item) -> bool {
        let may_be_folder = matches!(
            item.attributes.file_type(),
            FileType::Folder | FileType::Unknown
        );
        item.local.is_empty() && !may_be_folder && !self.plan.in_order
    }
}
