//! Finding exact names: a hash table built once, after the last name.

use crate::pattern;

/// Which entries may name a host, found without looking at the others.
#[derive(Clone, Default)]
pub(crate) struct NameIndex {
    names: Vec<Name>,
    /// The first name of each chain, as a position in `names`; as many chains as a power of two.
    heads: Vec<u32>,
}

#[derive(Clone)]
struct Name {
    hash: u64,
    entry: u32,
    /// The next name of the chain.
    next: u32,
}

/// The end of a chain.
const END: u32 = u32::MAX;

impl NameIndex {
    /// Notes every name of an entry's plain list. [`seal`](Self::seal) must follow the last one.
    pub(crate) fn add(&mut self, hosts: &[u8], entry: u32) {
        let mut start = 0;
        for end in memchr::memchr_iter(b',', hosts).chain([hosts.len()]) {
            self.names.push(Name {
                hash: hash(&hosts[start..end]),
                entry,
                next: END,
            });
            start = end + 1;
        }
    }

    /// Chains what was added.
    pub(crate) fn seal(&mut self) {
        self.heads = vec![END; self.names.len().next_power_of_two()];
        let mask = self.heads.len() as u64 - 1;
        // From the last to the first, so that a chain is in the order of the entries.
        for (place, name) in self.names.iter_mut().enumerate().rev() {
            let head = &mut self.heads[(name.hash & mask) as usize];
            name.next = std::mem::replace(head, place as u32);
        }
    }

    /// The entries that name `name`, in order, each once, and now and then one that does not
    /// (hashes may collide): the caller compares.
    pub(crate) fn candidates(&self, name: &[u8]) -> impl Iterator<Item = u32> {
        let wanted = hash(name);
        let mask = self.heads.len().wrapping_sub(1) as u64;
        let head = self
            .heads
            .get((wanted & mask) as usize)
            .copied()
            .unwrap_or(END);
        let chain = std::iter::successors(self.names.get(head as usize), |name| {
            self.names.get(name.next as usize)
        });
        let mut last = None;
        chain
            .filter(move |name| name.hash == wanted)
            .filter(move |name| last.replace(name.entry) != Some(name.entry))
            .map(|name| name.entry)
    }
}

/// Whether an entry's host field can be indexed: no wildcard and no negation.
pub(crate) fn is_indexable(hosts: &[u8]) -> bool {
    pattern::is_plain_list(hosts)
}

/// A hash of the name that is the same for letters of either case: eight bytes a step, with the
/// bit that tells the cases apart set. That it also takes `[` for `{` costs nothing, because the
/// caller compares.
fn hash(name: &[u8]) -> u64 {
    const CASE: u64 = 0x2020_2020_2020_2020;
    const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
    let (chunks, rest) = name.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let mixed = chunks
        .iter()
        .chain([&last])
        .fold(name.len() as u64, |hash, chunk| {
            (hash.rotate_left(29) ^ (u64::from_le_bytes(*chunk) | CASE)).wrapping_mul(MIX)
        });
    mixed ^ (mixed >> 32)
}
