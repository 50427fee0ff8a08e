//! Buffers for contents, used again and again: memory of their size would come fresh from the kernel each time, page by
//! page.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

/// Octets of buffers that are kept while nobody needs them.
const KEPT: usize = 8 * 1024 * 1024;
/// The least of a buffer that is kept: smaller ones the allocator keeps itself.
const LEAST: usize = 64 * 1024;

/// Buffers that nobody uses.
#[derive(Debug, Default)]
pub(super) struct Pool(Mutex<Vec<Vec<u8>>>);

/// Octets, in a buffer that goes back to its pool in the end.
pub(super) struct Block {
    buffer: Vec<u8>,
    len: usize,
    pool: Arc<Pool>,
}

impl Pool {
    /// So many octets, whatever they are: to be written to before they are read.
    pub(super) fn take(self: &Arc<Pool>, len: usize) -> Block {
        let kept = self.lock().pop_if(|buffer| buffer.len() >= len);
        Block {
            buffer: kept.unwrap_or_else(|| vec![0; len]),
            len,
            pool: self.clone(),
        }
    }

    /// Vectors are whole after every statement, whoever panicked.
    fn lock(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        match self.0.lock() {
            Ok(buffers) => buffers,
            Err(poisoned) => poisoned.into_inner(),
        }
    }
}

impl Block {
    /// Octets that are in a buffer already.
    pub(super) fn of(octets: Vec<u8>, pool: &Arc<Pool>) -> Block {
        Block {
            len: octets.len(),
            buffer: octets,
            pool: pool.clone(),
        }
    }

    pub(super) fn octets_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[..self.len]
    }

    /// Only the first `len` octets count.
    pub(super) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }
}

impl AsRef<[u8]> for Block {
    fn as_ref(&self) -> &[u8] {
        &self.buffer[..self.len]
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let buffer = std::mem::take(&mut self.buffer);
        let mut kept = self.pool.lock();
        // Those of a transfer are of one size, but for the last of each file.
        let is_usual = kept.last().is_none_or(|other| other.len() <= buffer.len());
        if buffer.len() >= LEAST && is_usual && (kept.len() + 1) * buffer.len() <= KEPT {
            kept.push(buffer);
        }
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} octets", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_used_again_and_no_more_is_kept_than_the_limit() {
        let pool = Arc::new(Pool::default());
        let first = pool.take(LEAST);
        let place = first.as_ref().as_ptr();
        drop(first);
        let mut again = pool.take(LEAST);
        assert_eq!(again.as_ref().as_ptr(), place);
        again.truncate(3);
        assert_eq!(again.as_ref().len(), 3);
        assert_eq!(pool.take(2 * LEAST).as_ref().len(), 2 * LEAST);
        let many: Vec<Block> = (0..KEPT / LEAST + 9).map(|_| pool.take(LEAST)).collect();
        drop(many);
        let kept: usize = pool.lock().iter().map(Vec::len).sum();
        assert!((KEPT / 2..=KEPT).contains(&kept), "{kept} octets are kept");
        drop(pool.take(LEAST - 1));
    }
}
