//! Folders of the server in memory: how it lists them, and what clients asked for.

use super::{EOF, FAILURE, FakeChannel, FakeServer, MISSING, Node, names, number, status};
use crate::sftp::Attributes;

/// A request for names.
const READDIR: u8 = 12;

/// How a server answers several READDIRs that come together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Readdirs {
    /// One after the other.
    #[default]
    InOrder,
    /// The last one first.
    Backwards,
    /// The first of each folder; the others fail.
    OneAtATime,
    /// None of a folder's after the first: they fail, whether they come together or not.
    Once,
}

/// How folders are listed.
#[derive(Debug, Default)]
pub(crate) struct Listings {
    /// Names that one READDIR gives at the most; all if nothing is said.
    pub(crate) at_once: Option<usize>,
    pub(crate) how: Readdirs,
    /// Names come without the types of what they stand for.
    pub(crate) hides_types: bool,
    /// Names come with what links lead to.
    pub(crate) follows_links: bool,
    /// A name that is not told, whatever the folder.
    pub(crate) hidden: Option<Vec<u8>>,
    /// A name that listings have twice.
    pub(crate) repeated: Option<Vec<u8>>,
    /// Folders have no end: names follow that stand for nothing.
    pub(crate) is_endless: bool,
    /// READDIRs so far, how often some came together, and the most that did.
    pub(crate) asked: usize,
    pub(crate) flights: usize,
    pub(crate) most: usize,
    /// Folders that one of this flight was about.
    listed: Vec<u32>,
}

impl Listings {
    /// Takes note of all that came together, and puts the answers in the order in which they are given.
    pub(super) fn arrange(&mut self, answers: &mut [(u8, Vec<u8>)]) {
        self.listed.clear();
        let places = answers.iter().enumerate();
        let places = places.filter(|(_, (kind, _))| *kind == READDIR);
        let places: Vec<usize> = places.map(|(place, _)| place).collect();
        self.asked += places.len();
        self.flights += usize::from(!places.is_empty());
        self.most = self.most.max(places.len());
        if self.how == Readdirs::Backwards {
            let half = places.len() / 2;
            for (first, last) in places.iter().zip(places.iter().rev()).take(half) {
                answers.swap(*first, *last);
            }
        }
    }

    /// Whether a READDIR of this folder fails, of which so many names have been told.
    fn refuses(&mut self, handle: u32, told: usize) -> bool {
        let is_second = self.listed.contains(&handle);
        self.listed.push(handle);
        match self.how {
            Readdirs::InOrder | Readdirs::Backwards => false,
            Readdirs::OneAtATime => is_second,
            Readdirs::Once => told > 0,
        }
    }
}

impl FakeServer {
    pub(super) fn open_folder(
        &mut self,
        channel: &mut FakeChannel,
        id: u32,
        path: &[u8],
        out: &mut Vec<u8>,
    ) {
        if let Some((path, node)) = self.replaces_when_listed.take() {
            self.nodes.insert(path, node);
        }
        match self.attributes(path).and_then(|found| found.mode) {
            Some(mode) if mode & 0o040_000 != 0 => {
                self.give_handle(channel, id, path.to_vec(), out);
            }
            _ => status(out, id, MISSING),
        }
    }

    pub(super) fn read_folder(
        &mut self,
        channel: &mut FakeChannel,
        id: u32,
        handle: &[u8],
        out: &mut Vec<u8>,
    ) {
        let handle = number(handle);
        let (path, told) = channel.handles.get_mut(&handle).expect("a handle");
        if self.listings.refuses(handle, *told) {
            return status(out, id, FAILURE);
        }
        let found = self.names_in(path);
        let rest = found.get(*told..).unwrap_or_default();
        if rest.is_empty() && self.listings.is_endless {
            let endless = (*told..*told + 1000).map(|number| {
                let name = format!("endless{number}").into_bytes();
                (name, Attributes::default())
            });
            let endless: Vec<_> = endless.collect();
            *told += endless.len();
            return names(out, id, &endless);
        }
        if rest.is_empty() {
            return status(out, id, EOF);
        }
        let rest = &rest[..rest.len().min(self.listings.at_once.unwrap_or(rest.len()))];
        *told += rest.len();
        names(out, id, rest);
    }

    fn names_in(&self, path: &[u8]) -> Vec<(Vec<u8>, Attributes)> {
        let prefix = match path {
            b"." => Vec::new(),
            b"/" => b"/".to_vec(),
            path => [path, b"/"].concat(),
        };
        if !self.reaches(&[path, b"/."].concat()) {
            return Vec::new();
        }
        let mut found = vec![
            (b".".to_vec(), Attributes::default()),
            (b"..".to_vec(), Attributes::default()),
        ];
        let below = self.nodes.range(prefix.clone()..);
        for (path, _) in below.take_while(|(path, _)| path.starts_with(&prefix)) {
            let name = &path[prefix.len()..];
            let is_hidden = self.listings.hidden.as_deref() == Some(name);
            if !name.is_empty() && !name.contains(&b'/') && !is_hidden {
                let mut attributes = self.attributes(path).expect("it is there");
                if self.listings.follows_links
                    && let Some(Node::Link(target)) = self.nodes.get(path)
                    && let Some(there) = self.attributes(target)
                {
                    attributes = there;
                }
                if self.listings.hides_types {
                    attributes.mode = None;
                }
                if self.listings.repeated.as_deref() == Some(name) {
                    found.push((name.to_vec(), attributes));
                }
                found.push((name.to_vec(), attributes));
            }
        }
        let plain = Attributes {
            mode: Some(0o100_644),
            ..Attributes::default()
        };
        found.extend(self.bad_names.iter().map(|name| (name.clone(), plain)));
        found
    }
}
