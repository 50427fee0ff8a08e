//! Which thing of the host's goes to which place here: no two go to the same, for one would replace the other, or both would be
//! written at once. The same thing named twice, or found by two patterns, comes once.

use std::collections::{HashMap, HashSet};

use super::Download;
use crate::glob::is_pattern;
use crate::{Trouble, path};

/// What one claim takes beside its paths, octets.
const CLAIM: usize = 128;

/// What has been claimed so far.
#[derive(Debug, Default)]
pub(super) struct Claims {
    /// Paths on the host, by names in its folder here.
    named: HashMap<Vec<u8>, Vec<u8>>,
    /// Folders of which only what is in them is fetched.
    nameless: HashSet<Vec<u8>>,
}

impl Claims {
    /// Whether it is new: else the same thing has this place already.
    fn add(&mut self, local: &[u8], remote: Vec<u8>) -> Result<bool, Trouble> {
        if local.is_empty() {
            return Ok(self.nameless.insert(remote));
        }
        match self.named.get(local) {
            None => {
                self.named.insert(local.to_vec(), remote);
                Ok(true)
            }
            Some(first) if *first == remote => Ok(false),
            Some(first) => Err(Trouble::SameName {
                first: String::from_utf8_lossy(first).into_owned(),
            }),
        }
    }
}

impl Download {
    /// Claims a place for what is at `remote`; `false` if it has that place already.
    pub(super) fn claim(&mut self, local: &[u8], remote: &[u8]) -> Result<bool, Trouble> {
        let remote = path::plain(remote);
        let octets = local.len() + remote.len() + CLAIM;
        if !self.has_room_to_keep(octets) {
            return Err(Trouble::TooMany {
                what: "octets of what sources and patterns stand for",
                limit: self.limits.kept,
            });
        }
        let is_new = self.claims.add(local, remote)?;
        if is_new {
            self.kept.keep(octets);
        }
        Ok(is_new)
    }

    /// Whether there are several sources, which may lead to the same place.
    pub(super) fn has_several_sources(&self) -> bool {
        match self.plan.sources.as_slice() {
            [one] => is_pattern(one),
            _ => true,
        }
    }

    /// Whether so many octets more may be kept.
    pub(super) fn has_room_to_keep(&self, octets: usize) -> bool {
        self.kept.now() + octets <= self.limits.kept
    }
}
