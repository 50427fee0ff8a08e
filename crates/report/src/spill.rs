//! One unlinked temporary file for all output that is too much for memory: one descriptor, however many
//! hosts. It only grows at its end; what is read back and released is given back to the file system.

use std::{fs::File, io, os::unix::fs::FileExt as _, path::PathBuf};

use rustix::fs::{FallocateFlags, fallocate};

/// A piece of one host's output in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

/// The file, created when it is first needed, and the account of what all captures hold in memory.
pub(crate) struct Spill {
    dir: PathBuf,
    file: Option<File>,
    end: u64,
    /// Bytes in extents that are not released yet.
    live: u64,
    /// Bytes that captures hold in memory at present.
    pub(crate) in_memory: usize,
}

impl Spill {
    /// `dir` is where the file would be made; it never has a name there.
    pub(crate) fn new(dir: PathBuf) -> Spill {
        Spill {
            dir,
            file: None,
            end: 0,
            live: 0,
            in_memory: 0,
        }
    }

    pub(crate) fn append(&mut self, bytes: &[u8]) -> io::Result<Extent> {
        let result = self.write_at_end(bytes);
        result.map_err(|error| {
            let dir = self.dir.display();
            io::Error::new(
                error.kind(),
                format!("cannot keep output in a temporary file in {dir}: {error}; free space or set TMPDIR"),
            )
        })
    }

    fn write_at_end(&mut self, bytes: &[u8]) -> io::Result<Extent> {
        let file = match &self.file {
            Some(file) => file,
            None => self.file.insert(tempfile::tempfile_in(&self.dir)?),
        };
        file.write_all_at(bytes, self.end)?;
        let extent = Extent {
            offset: self.end,
            len: bytes.len() as u64,
        };
        self.end += extent.len;
        self.live += extent.len;
        Ok(extent)
    }

    /// Reads from within an extent.
    pub(crate) fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        match &self.file {
            Some(file) => file.read_exact_at(into, offset),
            None => Err(io::Error::other("an extent without a spill file")),
        }
    }

    /// Gives the space back. Nothing may read these extents afterwards.
    pub(crate) fn release(&mut self, extents: &[Extent]) -> io::Result<()> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        self.live -= extents.iter().map(|extent| extent.len).sum::<u64>();
        if self.live == 0 {
            self.end = 0;
            return file.set_len(0);
        }
        for extent in extents {
            // Holes only save space, and not every file system has them: a refusal costs nothing but that.
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            let _ = fallocate(file, flags, extent.offset, extent.len);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn space_is_given_back() {
        let mut spill = Spill::new(std::env::temp_dir());
        let first = spill.append(b"first").unwrap();
        let second = spill.append(b"second").unwrap();
        spill.release(&[first]).unwrap();
        let mut read = [0; 6];
        spill.read_at(second.offset, &mut read).unwrap();
        assert_eq!(&read, b"second", "what is not released stays");
        spill.release(&[second]).unwrap();
        assert_eq!(spill.file.as_ref().unwrap().metadata().unwrap().len(), 0);
        assert_eq!(spill.append(b"again").unwrap().offset, 0);
    }
}
