//! The contents of what is sent, read once for all hosts that are about as far.
//!
//! Blocks are kept while hosts may still want them, within one budget for all. A host that has fallen behind reads for
//! itself, most often out of the kernel's memory: it delays nobody, and nothing is kept for it.

use std::collections::{HashMap, VecDeque};
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};

use rustix::fs::OFlags;
use sshoal_transfer::{FileHash, MAX_SMALL, Opened, SmallFile, SmallProblem};
use tokio::sync::watch;

use super::at_once::Reach;
use super::block_hash::{BlockHash, hash_of};
use super::blocks::{Block, Pool};
use super::device;
use super::disk::Stop;
use super::extents;
use super::small_files::SmallFiles;
use super::spool::Spool;
use crate::standard::standard_input;

/// Octets of blocks that are kept for hosts to come.
const KEPT: usize = 32 * 1024 * 1024;

/// The contents of a plan's entries.
#[derive(Debug)]
pub struct Source {
    /// By the entry's number.
    paths: Vec<PathBuf>,
    spool: Option<Arc<Spool>>,
    open: Mutex<HashMap<usize, Weak<OpenFile>>>,
    kept: Mutex<Kept>,
    small: SmallFiles,
    is_shared: bool,
    pool: Arc<Pool>,
    /// Whether files are hashed while they are read.
    hashes: bool,
    /// What has been hashed for some host, and which version of the file it was.
    hashed: Mutex<HashMap<usize, (Vec<u8>, FileHash)>>,
}

/// A file that some host reads.
#[derive(Debug)]
pub(super) struct OpenFile {
    contents: Contents,
    pub(super) opened: Opened,
    /// Whether it is a block device, of whose contents no time tells.
    pub(super) is_device: bool,
    /// What tells this version of this file from others.
    pub(super) identity: Vec<u8>,
    blocks: Mutex<HashMap<u64, Arc<Shared>>>,
    pool: Arc<Pool>,
    /// What has been read so far, if it is hashed.
    read: Option<BlockHash<Arc<Block>>>,
    /// Found out by the first host that wants it and does not give it up; others wait for that.
    hash: Mutex<Option<Result<FileHash, String>>>,
}

#[derive(Debug)]
enum Contents {
    File {
        file: File,
        version: Version,
        reach: Reach,
    },
    Spool {
        spool: Arc<Spool>,
        /// Goes with the file: who waits to read it hears of that.
        closing: watch::Sender<()>,
    },
}

/// Read by the first host that wants it; others wait for that.
type Shared = OnceLock<Result<Arc<Block>, String>>;

/// What changes when somebody writes to a file. The time of modification can be set back by whoever did (touch -r), that of
/// the last change, which is the kernel's own (inode(7)), cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Version {
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// Which blocks are kept, the oldest first.
#[derive(Debug, Default)]
struct Kept {
    blocks: VecDeque<(Weak<OpenFile>, u64, usize)>,
    octets: usize,
}

impl Source {
    /// The files of a plan's entries, in their order; for so many hosts.
    pub fn files(paths: Vec<PathBuf>, hosts: usize) -> Source {
        Source {
            paths,
            spool: None,
            open: Mutex::default(),
            kept: Mutex::default(),
            small: SmallFiles::default(),
            is_shared: hosts > 1,
            pool: Arc::default(),
            hashes: false,
            hashed: Mutex::default(),
        }
    }

    /// The same, with files hashed while they are read: what arrives is to be verified.
    pub fn hashing(self, hashes: bool) -> Source {
        Source { hashes, ..self }
    }

    /// Standard input, as the only entry.
    ///
    /// # Errors
    ///
    /// It is closed or carries no contents, no file can be made to keep it in, or no thread.
    pub fn standard_input(hosts: usize) -> io::Result<Source> {
        let stdin = standard_input()?;
        Ok(Source {
            spool: Some(Spool::start(stdin, hosts)?),
            ..Source::files(vec![PathBuf::from("-")], hosts)
        })
    }

    /// Whether it can be read again from its beginning.
    pub(super) fn is_repeatable(&self) -> bool {
        self.spool.is_none()
    }

    /// Why no host can have all of standard input, where that is because we cannot keep it.
    pub(crate) fn unkept(&self) -> Option<Arc<str>> {
        self.spool.as_ref().and_then(|spool| spool.unkept())
    }

    /// Opens an entry's file, or shares it with who has it open.
    pub(super) fn open(&self, entry: usize) -> Result<Arc<OpenFile>, String> {
        if let Some(spool) = &self.spool {
            let pool = self.pool.clone();
            let file = OpenFile::spooled(spool.clone(), pool, self.hashes);
            return Ok(Arc::new(file));
        }
        let shared = lock(&self.open).get(&entry).and_then(Weak::upgrade);
        if let Some(file) = shared {
            return Ok(file);
        }
        let path = self.paths.get(entry).ok_or("no such entry")?;
        let pool = self.pool.clone();
        let file = OpenFile::open(path, pool, self.hashes).map(Arc::new);
        let file = file.map_err(|error| error.to_string())?;
        if self.is_shared {
            lock(&self.open).insert(entry, Arc::downgrade(&file));
        }
        Ok(file)
    }

    /// Reads a small file whole, or shares what another host has read.
    pub(super) fn read_small(&self, entry: usize) -> Result<SmallFile, SmallProblem> {
        let Some(path) = self.paths.get(entry) else {
            return Err(SmallProblem::Failed("no such entry".to_owned()));
        };
        let read = || OpenFile::read_small(path, self.hashes);
        match self.is_shared {
            true => self.small.read(entry, read),
            false => read(),
        }
    }

    /// The hash of an entry's file, if nobody writes to it meanwhile.
    pub(super) fn hash(&self, entry: usize, stop: &Stop) -> Result<FileHash, String> {
        let file = self.open(entry)?;
        let known = lock(&self.hashed).get(&entry).cloned();
        if let Some((_, hash)) = known.filter(|(identity, _)| *identity == file.identity) {
            return Ok(hash);
        }
        let hash = file.hash(stop)?;
        match file.is_same()? {
            true if self.is_shared => {
                lock(&self.hashed).insert(entry, (file.identity.clone(), hash));
                Ok(hash)
            }
            true => Ok(hash),
            false => Err("it changed while it was read".to_owned()),
        }
    }

    /// Reads a block of a file; less than was asked for at its end.
    pub(super) fn read(
        &self,
        file: &Arc<OpenFile>,
        offset: u64,
        len: usize,
    ) -> Result<Arc<Block>, String> {
        if !self.is_shared {
            return file.read_block(offset, len);
        }
        let block = lock(&file.blocks).entry(offset).or_default().clone();
        let mut is_new = false;
        let data = block.get_or_init(|| {
            is_new = true;
            file.read_block(offset, len)
        });
        if is_new {
            self.keep(file, offset, len);
        }
        match data {
            // The end of another host's span.
            Ok(data) if octets(data) != len => file.read(offset, len).map(Arc::new),
            data => data.clone(),
        }
    }

    /// The same where nothing has to be waited for; `None` where it may.
    pub(super) fn read_at_once(
        &self,
        file: &Arc<OpenFile>,
        offset: u64,
        len: usize,
    ) -> Option<Arc<Block>> {
        if !self.is_shared {
            return file.read_at_once(offset, len).map(Arc::new);
        }
        let block = lock(&file.blocks).entry(offset).or_default().clone();
        match block.get() {
            Some(Ok(data)) if octets(data) == len => return Some(data.clone()),
            Some(_) => return None,
            None => {}
        }
        let data = file.read_at_once(offset, len).map(Arc::new)?;
        // Another host's thread may have been faster.
        if block.set(Ok(data.clone())).is_ok() {
            self.keep(file, offset, len);
        }
        Some(data)
    }

    /// Keeps one block more, and lets old ones go.
    fn keep(&self, file: &Arc<OpenFile>, offset: u64, len: usize) {
        let mut kept = lock(&self.kept);
        kept.blocks.push_back((Arc::downgrade(file), offset, len));
        kept.octets += len;
        let mut gone = Vec::new();
        while kept.octets > KEPT
            && let Some((file, offset, len)) = kept.blocks.pop_front()
        {
            kept.octets -= len;
            gone.push((file, offset));
        }
        drop(kept);
        for (file, offset) in gone {
            if let Some(file) = file.upgrade() {
                lock(&file.blocks).remove(&offset);
            }
        }
    }
}

/// As most of /proc is.
fn of_untold_size() -> io::Error {
    io::Error::other(
        "its size is told as 0, and it has contents; `cat FILE | sshoal put - REMOTE` sends them",
    )
}

impl OpenFile {
    fn open(path: &Path, pool: Arc<Pool>, hashes: bool) -> io::Result<OpenFile> {
        let (file, metadata) = open(path)?;
        let is_device = metadata.file_type().is_block_device();
        if !is_device && metadata.size() == 0 && read_at(&file, &mut [0], 0)? > 0 {
            return Err(of_untold_size());
        }
        let reach = Reach::of(&file);
        let version = Version::of(&metadata);
        let opened = Opened {
            size: Some(device::size(&file, &metadata)?),
            data: extents::of(&file, &metadata),
            mode: metadata.mode() & 0o7777,
            times: (seconds(metadata.atime()), seconds(metadata.mtime())),
            proven: None,
        };
        let numbers = [metadata.dev(), metadata.ino(), metadata.size()];
        let (modified, changed) = (version.modified, version.changed);
        let times = [modified.0, modified.1, changed.0, changed.1];
        let identity = numbers.into_iter().flat_map(u64::to_be_bytes);
        let identity = identity.chain(times.into_iter().flat_map(i64::to_be_bytes));
        Ok(OpenFile {
            contents: Contents::File {
                file,
                version,
                reach,
            },
            is_device,
            opened,
            identity: identity.collect(),
            blocks: Mutex::default(),
            pool,
            read: hashes.then(BlockHash::new),
            hash: Mutex::default(),
        })
    }

    /// All of a file, if nobody writes to it meanwhile.
    fn read_small(path: &Path, hashes: bool) -> Result<SmallFile, SmallProblem> {
        let failed = |error: io::Error| SmallProblem::Failed(error.to_string());
        let (file, metadata) = open(path).map_err(failed)?;
        if metadata.size() > MAX_SMALL {
            return Err(SmallProblem::Grown);
        }
        // One octet more, by which a file that grows is known.
        let mut data = vec![0; metadata.size() as usize + 1];
        let filled = read_at(&file, &mut data, 0).map_err(failed)?;
        let now = file.metadata().map_err(failed)?;
        if metadata.size() == 0 && filled > 0 {
            return Err(failed(of_untold_size()));
        }
        if filled as u64 != metadata.size() || Version::of(&now) != Version::of(&metadata) {
            return Err(SmallProblem::Changed);
        }
        data.truncate(filled);
        Ok(SmallFile {
            hash: hashes.then(|| hash_of(&data)),
            data: Arc::new(data),
            mode: metadata.mode() & 0o7777,
            modified: seconds(metadata.mtime()),
        })
    }

    fn spooled(spool: Arc<Spool>, pool: Arc<Pool>, hashes: bool) -> OpenFile {
        OpenFile {
            contents: Contents::Spool {
                spool,
                closing: watch::Sender::default(),
            },
            opened: Opened {
                size: None,
                data: None,
                mode: 0o666,
                times: (0, 0),
                proven: None,
            },
            is_device: false,
            identity: Vec::new(),
            blocks: Mutex::default(),
            pool,
            read: hashes.then(BlockHash::new),
            hash: Mutex::default(),
        }
    }

    /// What may have to be waited for, perhaps for ever, before so many octets can be read from there. It ends with the file
    /// itself, too: who waits must not hold that.
    pub(super) fn arrival(
        &self,
        offset: u64,
        len: usize,
    ) -> Option<impl Future<Output = ()> + use<>> {
        let Contents::Spool { spool, closing } = &self.contents else {
            return None;
        };
        let (arrival, mut closed) = (spool.arrival(offset + len as u64), closing.subscribe());
        Some(async move {
            tokio::select! {
                () = arrival => {}
                _ = closed.changed() => {}
            }
        })
    }

    fn read(&self, offset: u64, len: usize) -> Result<Block, String> {
        let file = match &self.contents {
            Contents::Spool { spool, .. } => {
                let data = spool.read(offset, len)?;
                return Ok(Block::of(data, &self.pool));
            }
            Contents::File { file, .. } => file,
        };
        let mut block = self.pool.take(len);
        let filled = read_at(file, block.octets_mut(), offset);
        block.truncate(filled.map_err(|error| error.to_string())?);
        Ok(block)
    }

    fn read_at_once(&self, offset: u64, len: usize) -> Option<Block> {
        let Contents::File { file, reach, .. } = &self.contents else {
            return None;
        };
        // Who hashes takes longer than who reads.
        if self.read.is_some() || !reach.may_be_near() {
            return None;
        }
        let mut block = self.pool.take(len);
        reach
            .read(file, block.octets_mut(), offset)
            .then_some(block)
    }

    /// The same, for a host: it is hashed in passing.
    fn read_block(&self, offset: u64, len: usize) -> Result<Arc<Block>, String> {
        let data = Arc::new(self.read(offset, len)?);
        if let Some(read) = &self.read {
            read.add(offset, data.clone());
        }
        Ok(data)
    }

    /// The hash of all of it; of standard input, when all of it has been read.
    pub(super) fn hash(&self, stop: &Stop) -> Result<FileHash, String> {
        let mut known = lock(&self.hash);
        if let Some(hash) = &*known {
            return hash.clone();
        }
        let nothing = BlockHash::new();
        let read = self.read.as_ref().unwrap_or(&nothing);
        let hash = read.finish(stop, |offset, chunk| match &self.contents {
            Contents::File { file, .. } => read_at(file, chunk, offset),
            // All of it came in order.
            Contents::Spool { .. } => Ok(0),
        });
        let hash = hash.map_err(|error| error.to_string());
        // Of one host's giving up another one is to know nothing.
        if !stop.is_ordered() {
            *known = Some(hash.clone());
        }
        hash
    }

    /// Whether nobody has written to it since it was opened.
    pub(super) fn is_same(&self) -> Result<bool, String> {
        match &self.contents {
            Contents::Spool { .. } => Ok(true),
            Contents::File { file, version, .. } => match file.metadata() {
                Ok(metadata) => Ok(Version::of(&metadata) == *version),
                Err(error) => Err(error.to_string()),
            },
        }
    }
}

fn open(path: &Path) -> io::Result<(File, Metadata)> {
    let file = OpenOptions::new()
        .read(true)
        // A link in a tree is sent as a link, and a pipe in a file's place must not be waited for.
        .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32)
        .open(path)?;
    let metadata = file.metadata()?;
    let is_device = metadata.file_type().is_block_device();
    match metadata.is_file() || is_device {
        true => Ok((file, metadata)),
        false => Err(io::Error::other("it is no regular file any more")),
    }
}

fn octets(block: &Arc<Block>) -> usize {
    (**block).as_ref().len()
}

/// Fills `data` from there on; returns how much of it, less only at the file's end.
pub(super) fn read_at(file: &File, data: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < data.len() {
        match file.read_at(&mut data[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(octets) => filled += octets,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

impl Version {
    fn of(metadata: &Metadata) -> Version {
        Version {
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// A time as SFTP has it: whole seconds from 1970 to 2106.
pub(super) fn seconds(time: i64) -> u32 {
    u32::try_from(time.max(0)).unwrap_or(u32::MAX)
}

/// What is in these locks is whole after every statement, whoever panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    match mutex.lock() {
        Ok(guard) => guard,
        Err(poisoned) => poisoned.into_inner(),
    }
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
