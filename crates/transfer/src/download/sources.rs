//! What the user means: paths, patterns, homes.

use super::walk::{Listing, Purpose};
use super::{Asked, Download, Item, Stage};
use crate::glob;
use crate::path::{file_name, join, without_slashes};
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
        mut parts: std::collections::VecDeque<Vec<u8>>,
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
        let item = Item {
            remote: if base.is_empty() {
                b".".to_vec()
            } else {
                base.clone()
            },
            local: Vec::new(),
            below: Vec::new(),
            attributes: Attributes::default(),
        };
        self.to_list.push(Listing::new(
            item,
            Purpose::Search {
                base,
                parts,
                pattern,
            },
        ));
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
        self.open += 1;
        self.ask(
            Request::Stat { path: &path },
            Asked::Source {
                path: path.clone(),
                local,
                pattern,
            },
        );
    }

    pub(super) fn handle_source(
        &mut self,
        path: Vec<u8>,
        local: Vec<u8>,
        pattern: Option<Vec<u8>>,
        reply: Reply,
    ) {
        self.open -= 1;
        let is_there = matches!(reply, Reply::Attributes(_));
        if let Some(pattern) = &pattern {
            self.end_search(pattern, is_there);
        }
        if self.interrupted {
            return;
        }
        match reply {
            Reply::Attributes(attributes) => {
                if !local.is_empty() && !self.taken.insert(local.clone()) {
                    return self.failed(path, Trouble::SameName);
                }
                let item = Item {
                    remote: path,
                    local,
                    below: Vec::new(),
                    attributes,
                };
                match attributes.file_type() {
                    FileType::Folder if !self.plan.recursive => {
                        self.failed(item.remote, Trouble::Folder);
                    }
                    FileType::BlockDevice if pattern.is_none() => self.survey_device(item),
                    _ => self.take_item(item),
                }
            }
            Reply::Status(status) => {
                // Of a pattern such as */x it is no fault that some have no x.
                if pattern.is_none() || Remote::of(&status) != Remote::Missing {
                    self.failed(path, Trouble::remote("looking for it", &status));
                }
            }
            _ => self.failed(path, Trouble::NoMatch),
        }
    }
}
