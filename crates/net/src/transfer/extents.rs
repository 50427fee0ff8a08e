//! Where a file has data: lseek(2), SEEK_DATA and SEEK_HOLE.

use std::fs::{File, Metadata};
use std::ops::Range;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{SeekFrom, seek};

/// Holes that are left out of one file. One with more is sent whole.
const MAX_EXTENTS: usize = 100_000;

/// The parts of a sparse file that are data, in order. `None` for one without holes, or where nobody can tell.
pub(super) fn of(file: &File, metadata: &Metadata) -> Option<Vec<Range<u64>>> {
    let size = metadata.size();
    // st_blocks counts 512 octets (stat(3type)).
    if metadata.blocks().saturating_mul(512) >= size {
        return None;
    }
    let mut extents = Vec::new();
    let mut at = 0;
    while at < size && extents.len() < MAX_EXTENTS {
        let start = match seek(file, SeekFrom::Data(at)) {
            Ok(start) => start,
            // Only a hole is left.
            Err(rustix::io::Errno::NXIO) => return Some(extents),
            Err(_) => return None,
        };
        let end = seek(file, SeekFrom::Hole(start)).ok()?;
        extents.push(start..end.min(size));
        at = end;
    }
    (at >= size).then_some(extents)
}
