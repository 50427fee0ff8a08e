//! Small files that several hosts get: read once, and kept while others may still want them, within a budget.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, OnceLock};

use sshoal_transfer::{SmallFile, SmallProblem};

/// Octets that are kept, a file's bookkeeping included.
const KEPT: usize = 32 * 1024 * 1024;
/// What a file takes beside its contents.
const BOOKKEEPING: usize = 256;

/// Read by the first host that wants it; others wait for that.
type Slot = OnceLock<Result<SmallFile, SmallProblem>>;

/// What has been read, by the entry's number.
#[derive(Debug, Default)]
pub(super) struct SmallFiles(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    files: HashMap<usize, Arc<Slot>>,
    /// Those that have been read, the oldest first, and what they take.
    read: VecDeque<(usize, usize)>,
    octets: usize,
}

impl SmallFiles {
    /// What `read` makes of the entry, or has made of it for another host.
    pub(super) fn read(
        &self,
        entry: usize,
        read: impl FnOnce() -> Result<SmallFile, SmallProblem>,
    ) -> Result<SmallFile, SmallProblem> {
        let slot = self.lock().files.entry(entry).or_default().clone();
        let mut is_new = false;
        let file = slot.get_or_init(|| {
            is_new = true;
            read()
        });
        if is_new {
            let octets = file.as_ref().map_or(0, |file| file.data.len());
            self.keep(entry, octets + BOOKKEEPING);
        }
        file.clone()
    }

    /// Keeps one file more, and lets old ones go.
    fn keep(&self, entry: usize, octets: usize) {
        let mut kept = self.lock();
        kept.read.push_back((entry, octets));
        kept.octets += octets;
        while kept.octets > KEPT
            && let Some((entry, octets)) = kept.read.pop_front()
        {
            kept.octets -= octets;
            kept.files.remove(&entry);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Kept> {
        match self.0.lock() {
            Ok(kept) => kept,
            // What is in it is whole after every statement.
            Err(poisoned) => poisoned.into_inner(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_file_is_read_once_while_it_is_kept() {
        let files = SmallFiles::default();
        let file = |octet| SmallFile {
            data: Arc::new(vec![octet; 1 << 20]),
            mode: 0o644,
            modified: 1,
            hash: None,
        };
        assert_eq!(files.read(0, || Ok(file(1))).unwrap().data[0], 1);
        assert_eq!(files.read(0, || Ok(file(2))).unwrap().data[0], 1);
        for entry in 1..40 {
            files.read(entry, || Ok(file(3))).unwrap();
        }
        assert_eq!(files.read(0, || Ok(file(2))).unwrap().data[0], 2);
        let kept = files.lock();
        assert!(kept.octets <= KEPT && kept.files.len() < 40);
    }
}
