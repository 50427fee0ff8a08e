//! What can be read or written without a thread that waits for it: what is in memory.
//!
//! Handing a block to another thread and back costs more than copying it from or to the kernel's memory does.

use std::fs::File;
use std::io::IoSliceMut;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{FsWord, fstatfs};
use rustix::io::{Errno, ReadWriteFlags, preadv2};

/// Blocks that are read by threads after one that was not in memory, before it is tried again.
const PAUSE: u32 = 16;
/// File systems that are in memory as a whole (statfs(2)).
const TMPFS: FsWord = 0x0102_1994;
const RAMFS: FsWord = 0x8584_58f6;

/// Whether a file's file system is in memory as a whole, so that nothing waits for a disk.
pub(super) fn is_in_memory(file: &File) -> bool {
    fstatfs(file).is_ok_and(|found| [TMPFS, RAMFS].contains(&found.f_type))
}

/// How near a file's octets are.
#[derive(Debug)]
pub(super) struct Reach {
    flags: ReadWriteFlags,
    /// Blocks that need not be tried.
    far: AtomicU32,
}

impl Reach {
    /// Those of a file system in memory are never far; others may be in the kernel's memory, which it tells
    /// (preadv2(2), RWF_NOWAIT).
    pub(super) fn of(file: &File) -> Reach {
        Reach {
            flags: match is_in_memory(file) {
                true => ReadWriteFlags::empty(),
                false => ReadWriteFlags::NOWAIT,
            },
            far: AtomicU32::new(0),
        }
    }

    /// Whether it is worth trying.
    pub(super) fn may_be_near(&self) -> bool {
        let less = |far: u32| far.checked_sub(1);
        let changed = self
            .far
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        changed.is_err()
    }

    /// Fills `data` from there on, if all of it is in memory.
    pub(super) fn read(&self, file: &File, data: &mut [u8], offset: u64) -> bool {
        let len = data.len();
        let read = preadv2(file, &mut [IoSliceMut::new(data)], offset, self.flags);
        if read == Ok(len) {
            return true;
        }
        let pause = match read {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => u32::MAX,
            _ => PAUSE,
        };
        self.far.store(pause, Ordering::Relaxed);
        false
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn what_is_in_memory_is_read_and_what_is_not_there_is_left_to_others() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, b"0123456789").unwrap();
        let file = File::open(&path).unwrap();
        let reach = Reach::of(&file);
        let mut data = [0; 4];
        // Just written, it is in memory; where the file system does not tell, it counts as far.
        match reach.read(&file, &mut data, 3) {
            true => assert_eq!(&data, b"3456"),
            false => assert!(!reach.may_be_near()),
        }
        let reach = Reach::of(&file);
        assert!(!reach.read(&file, &mut data, 8), "there are two octets");
        let tried = (0..=PAUSE).position(|_| reach.may_be_near());
        assert!(tried.is_none_or(|after| after == PAUSE as usize));
    }
}
