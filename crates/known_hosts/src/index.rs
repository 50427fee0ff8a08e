//! Finding exact names: pairs of (hash of a name, entry), sorted once.

use crate::pattern;

/// Which entries may name a host, found without looking at the others.
#[derive(Default)]
pub(crate) struct NameIndex {
    pairs: Vec<(u64, u32)>,
}

impl NameIndex {
    /// Notes every name of an entry's plain list. [`seal`](Self::seal) must follow the last one.
    pub(crate) fn add(&mut self, hosts: &[u8], entry: u32) {
        for name in hosts.split(|&c| c == b',') {
            self.pairs.push((hash(name), entry));
        }
    }

    /// Sorts what was added; entries of one name stay in their order.
    pub(crate) fn seal(&mut self) {
        self.pairs.sort_unstable();
        self.pairs.dedup();
    }

    /// The entries that name `name`, in order, and now and then one that does not (hashes may
    /// collide): the caller compares.
    pub(crate) fn candidates(&self, name: &[u8]) -> impl Iterator<Item = u32> {
        let wanted = hash(name);
        let first = self.pairs.partition_point(|pair| pair.0 < wanted);
        self.pairs[first..]
            .iter()
            .take_while(move |pair| pair.0 == wanted)
            .map(|pair| pair.1)
    }
}

/// Whether an entry's host field can be indexed: no wildcard and no negation.
pub(crate) fn is_indexable(hosts: &[u8]) -> bool {
    pattern::is_plain_list(hosts)
}

/// FNV-1a of the name in lowercase.
fn hash(name: &[u8]) -> u64 {
    name.iter().fold(0xcbf2_9ce4_8422_2325, |hash, c| {
        (hash ^ u64::from(c.to_ascii_lowercase())).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
