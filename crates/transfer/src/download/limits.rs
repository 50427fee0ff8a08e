//! What a host may make us remember. A tree may be of any size: files, and links beyond the first few, are forgotten when they are
//! in place, and no more names are asked for than can be worked on. What has to be kept meanwhile has a limit each.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::Item;
use crate::MAX_TOLD;
use crate::sftp::Attributes;

/// Folders that wait to be listed, or for their owners, modes and times at the end.
pub const MAX_FOLDERS: usize = 1_000_000;
/// Octets of what is known and not in place yet, paths above all: at this many, no more names are taken.
pub const MAX_HELD: usize = 64 * 1024 * 1024;
/// Octets of what is kept longer: of folders that wait, and of what sources and patterns stand for.
pub const MAX_KEPT: usize = 128 * 1024 * 1024;
/// Names of the folders that are listed at a time, nine octets or so each: none of them may come twice.
pub const MAX_NAMES: usize = 5_000_000;

/// The limits of one download; tests have smaller ones.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) held: usize,
    pub(super) kept: usize,
    pub(super) names: usize,
    pub(super) told: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            held: MAX_HELD,
            kept: MAX_KEPT,
            names: MAX_NAMES,
            told: MAX_TOLD,
        }
    }
}

/// Octets that are held by something.
#[derive(Debug, Clone, Default)]
pub(super) struct Octets(Arc<AtomicUsize>);

impl Octets {
    /// How many there are.
    pub(super) fn now(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// So many more, until what is returned is dropped.
    pub(super) fn hold(&self, octets: usize) -> Held {
        self.keep(octets);
        Held {
            all: self.clone(),
            octets,
        }
    }

    /// So many more, for good.
    pub(super) fn keep(&self, octets: usize) {
        self.0.fetch_add(octets, Ordering::Relaxed);
    }
}

/// A share of [`Octets`].
#[derive(Debug)]
pub(super) struct Held {
    all: Octets,
    octets: usize,
}

impl Held {
    /// How many they are.
    pub(super) fn octets(&self) -> usize {
        self.octets
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.all.0.fetch_sub(self.octets, Ordering::Relaxed);
    }
}

/// What an item takes beside its paths, octets.
const ITEM: usize = 256;

impl Item {
    /// Something of these paths: on the host, here, and below what was named.
    pub(super) fn new(paths: [Vec<u8>; 3], attributes: Attributes, all: &Octets) -> Item {
        let [remote, local, below] = paths;
        // With the copies that are made of them on its way.
        let octets = 3 * remote.len() + 2 * local.len() + below.len() + ITEM;
        Item {
            remote,
            local,
            below,
            attributes,
            held: all.hold(octets),
        }
    }

    /// It counts among these from now on.
    pub(super) fn held_by(mut self, all: &Octets) -> Item {
        self.held = all.hold(self.held.octets());
        self
    }
}
