//! What is open: paths by number, and of folders the names that have come.

use std::collections::{HashMap, VecDeque};

use super::ShellError;
use crate::MAX_HELD;
use crate::sftp::Attributes;

/// What is open on one channel.
#[derive(Debug, Default)]
pub(super) struct Handles {
    open: HashMap<u32, (Vec<u8>, Open)>,
    last: u32,
}

/// What is known of something open.
#[derive(Debug)]
pub(super) enum Open {
    /// Which one it is: the numbers of its device and inode.
    File(String),
    Folder(Listing),
}

/// A folder's names on their way.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) names: VecDeque<(Vec<u8>, Attributes)>,
    /// Requests for names that have not come yet.
    pub(super) asked: VecDeque<u32>,
    /// Whether all have come.
    pub(super) is_whole: bool,
    /// Why no more of them come.
    pub(super) failed: Option<String>,
    /// Octets that the names take which have not been told.
    held: usize,
}

/// What a name takes beside its octets.
const OVERHEAD: usize = 64;

impl Handles {
    pub(super) fn open(&mut self, path: Vec<u8>, open: Open) -> u32 {
        self.last = self.last.wrapping_add(1);
        self.open.insert(self.last, (path, open));
        self.last
    }

    /// The path of what is open, and of a file which one it is; `None` if nothing is.
    pub(super) fn opened(&self, handle: u32) -> Option<(&[u8], Option<&str>)> {
        let (path, open) = self.open.get(&handle)?;
        match open {
            Open::File(identity) => Some((path, Some(identity))),
            Open::Folder(_) => Some((path, None)),
        }
    }

    /// A file's path, and which one it is.
    pub(super) fn file(&self, handle: u32) -> Option<(&[u8], &str)> {
        let (path, identity) = self.opened(handle)?;
        Some((path, identity?))
    }

    pub(super) fn listing(&mut self, handle: u32) -> Option<&mut Listing> {
        match self.open.get_mut(&handle)? {
            (_, Open::Folder(listing)) => Some(listing),
            _ => None,
        }
    }

    /// Returns whether it was open.
    pub(super) fn close(&mut self, handle: u32) -> bool {
        self.open.remove(&handle).is_some()
    }
}

impl Listing {
    /// Names that have come: the host goes on to tell them whether they are asked for or not.
    pub(super) fn add(&mut self, names: Vec<(Vec<u8>, Attributes)>) -> Result<(), ShellError> {
        self.held += names
            .iter()
            .map(|(name, _)| name.len() + OVERHEAD)
            .sum::<usize>();
        if self.held > MAX_HELD {
            return Err(ShellError::TooMuch("names of a folder"));
        }
        self.names.extend(names);
        Ok(())
    }

    /// No more than so many names, nor octets of them but for the first.
    pub(super) fn take(&mut self, (most, octets): (usize, usize)) -> Vec<(Vec<u8>, Attributes)> {
        let mut all = 0;
        let fits = |(name, _): &&(Vec<u8>, Attributes)| {
            all += name.len() + OVERHEAD;
            all <= octets
        };
        let count = self.names.iter().take(most).take_while(fits).count();
        let taken: Vec<_> = self.names.drain(..count.max(1)).collect();
        self.held -= taken
            .iter()
            .map(|(name, _)| name.len() + OVERHEAD)
            .sum::<usize>();
        taken
    }
}
