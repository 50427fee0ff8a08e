//! The hash of a file that comes in blocks, most of them in order.
//!
//! Blocks are hashed as they come. One that comes a little early waits for its turn. Where the order is lost, because another
//! channel works elsewhere in the file, because a part of it was there already or is a hole, the rest is read again in the
//! end: out of the kernel's memory, most often.

use std::collections::BTreeMap;
use std::io;
use std::ops::Deref;
use std::sync::{Mutex, MutexGuard};

use sshoal_crypto::{Digest, HashAlgorithm};
use sshoal_transfer::FileHash;

use super::disk::Stop;

/// How far ahead of its turn a block may be, octets: as much as one channel has under way.
const EARLY: u64 = 4 * 1024 * 1024;
/// Blocks that may wait for their turn.
const MOST_EARLY: usize = 32;
/// Octets read again at a time.
const CHUNK: usize = 256 * 1024;

/// A file's hash so far; `B` is what a block is kept as.
pub(super) struct BlockHash<B>(Mutex<State<B>>);

struct State<B> {
    digest: Digest,
    /// Octets that are hashed.
    at: u64,
    early: BTreeMap<u64, B>,
    is_lost: bool,
}

impl<B> std::fmt::Debug for BlockHash<B> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("BlockHash")
    }
}

impl<B> BlockHash<B>
where
    B: Deref,
    B::Target: AsRef<[u8]>,
{
    pub(super) fn new() -> Self {
        BlockHash(Mutex::new(State {
            digest: Digest::new(HashAlgorithm::Sha256),
            at: 0,
            early: BTreeMap::new(),
            is_lost: false,
        }))
    }

    /// Blocks that follow are none that the file begins with.
    pub(super) fn out_of_order(self) -> Self {
        self.lock().is_lost = true;
        self
    }

    /// Takes a block.
    pub(super) fn add(&self, offset: u64, block: B) {
        let mut state = self.lock();
        let ahead = offset.checked_sub(state.at);
        if state.is_lost || ahead.is_none_or(|ahead| ahead > EARLY) {
            return;
        }
        state.early.insert(offset, block);
        loop {
            let at = state.at;
            let Some(block) = state.early.remove(&at) else {
                break;
            };
            let octets: &[u8] = (*block).as_ref();
            if octets.is_empty() {
                break;
            }
            state.digest.update(octets);
            state.at += octets.len() as u64;
        }
        if state.early.len() > MOST_EARLY {
            state.early.clear();
            state.is_lost = true;
        }
    }

    /// The hash of the whole file; `read` reads from an offset, less only at the end, and is asked for what is not hashed yet.
    ///
    /// # Errors
    ///
    /// Those of `read`; or `stop` was ordered, which is looked at before each read.
    pub(super) fn finish(
        &self,
        stop: &Stop,
        mut read: impl FnMut(u64, &mut [u8]) -> io::Result<usize>,
    ) -> io::Result<FileHash> {
        let state = self.lock();
        let (mut digest, mut at) = (state.digest.clone(), state.at);
        drop(state);
        let mut chunk = vec![0; CHUNK];
        loop {
            stop.check()?;
            let octets = read(at, &mut chunk)?;
            digest.update(&chunk[..octets]);
            at += octets as u64;
            if octets < CHUNK {
                return Ok(hash(digest));
            }
        }
    }

    /// What is in it is whole whenever a block begins or ends; a panic between them is a defect that the hash shows.
    fn lock(&self) -> MutexGuard<'_, State<B>> {
        match self.0.lock() {
            Ok(state) => state,
            Err(poisoned) => poisoned.into_inner(),
        }
    }
}

/// The hash of what is there.
pub(super) fn hash_of(octets: &[u8]) -> FileHash {
    let mut digest = Digest::new(HashAlgorithm::Sha256);
    digest.update(octets);
    hash(digest)
}

fn hash(digest: Digest) -> FileHash {
    let output = digest.finish();
    let mut octets = [0; 32];
    octets.copy_from_slice(output.as_ref());
    FileHash(octets)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const BLOCK: usize = 100_000;

    /// Hashes blocks that come in this order; returns the hash, and how many octets had to be read again.
    fn hashed(contents: &[u8], order: &[usize]) -> (FileHash, usize) {
        let hash = BlockHash::new();
        for number in order {
            let block = contents.chunks(BLOCK).nth(*number).unwrap();
            hash.add((number * BLOCK) as u64, block.to_vec());
        }
        let mut again = 0;
        let finished = hash.finish(&Stop::default(), |offset, chunk| {
            let rest = &contents[(offset as usize).min(contents.len())..];
            let len = rest.len().min(chunk.len());
            chunk[..len].copy_from_slice(&rest[..len]);
            again += len;
            Ok(len)
        });
        (finished.unwrap(), again)
    }

    #[test]
    fn blocks_in_any_order_make_the_same_hash() {
        let contents: Vec<u8> = (0..10_050_000).map(|at| (at / 7) as u8).collect();
        let blocks = contents.len().div_ceil(BLOCK);
        let expected = hash_of(&contents);
        let in_order: Vec<usize> = (0..blocks).collect();
        let swapped: Vec<usize> = (0..blocks).map(|at| (at ^ 3).min(blocks - 1)).collect();
        let mut halves = Vec::new();
        for at in 0..blocks / 2 {
            halves.extend([at, blocks / 2 + at]);
        }
        let backwards: Vec<usize> = (0..blocks).rev().collect();
        for (order, again) in [
            (&in_order, 0..1),
            (&swapped, 0..BLOCK * 4),
            // The second half ran ahead.
            (&halves, contents.len() / 3..contents.len() * 2 / 3),
            (&backwards, contents.len() / 2..contents.len() + 1),
        ] {
            let (hash, octets) = hashed(&contents, order);
            assert_eq!(hash, expected);
            assert!(
                again.contains(&octets),
                "{octets} were read again: {order:?}"
            );
        }
        assert_eq!(hashed(&contents, &[]).0, expected);
        assert_eq!(hashed(&[], &[]).0, hash_of(&[]));
    }

    #[test]
    fn what_was_there_before_is_read_again() {
        let hash = BlockHash::new().out_of_order();
        hash.add(0, b"not this".to_vec());
        let finished = hash.finish(&Stop::default(), |offset, chunk| {
            assert_eq!(offset, 0);
            chunk[..2].copy_from_slice(b"it");
            Ok(2)
        });
        assert_eq!(finished.unwrap(), hash_of(b"it"));
    }

    #[test]
    fn no_more_waits_than_the_limit() {
        let hash = BlockHash::new();
        for number in 1..200 {
            hash.add(number, vec![0]);
        }
        let state = hash.lock();
        assert!(state.is_lost && state.early.is_empty());
    }

    #[test]
    fn an_error_is_told() {
        let hash = BlockHash::<Vec<u8>>::new();
        let failed = hash.finish(&Stop::default(), |_, _| Err(io::Error::other("gone")));
        assert_eq!(failed.unwrap_err().to_string(), "gone");
    }

    #[test]
    fn what_nobody_wants_any_more_ends_at_the_next_block() {
        let (hash, stop) = (BlockHash::<Vec<u8>>::new(), Stop::default());
        let mut reads = 0;
        let stopped = hash.finish(&stop, |_, chunk| {
            reads += 1;
            if reads == 3 {
                stop.order();
            }
            Ok(chunk.len())
        });
        assert_eq!((stopped.is_err(), reads), (true, 3));
    }
}
