//! Writing what a host has into its folder, and nowhere else: every folder on the way is opened by its name in the one
//! above it, and no link is followed, whoever made it.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, Stat, Timespec, Timestamps, Uid, chmod, chownat,
    fchmod, fchown, fstat, fsync, ftruncate, futimens, mkdirat, openat, readlinkat, renameat,
    statat, symlinkat, unlinkat,
};
use rustix::io::Errno;
use sshoal_journal::Segments;
use sshoal_transfer::sftp::Data;
use sshoal_transfer::{FileHash, Owner, PartTag, part_name};

use super::at_once::is_in_memory;
use super::block_hash::BlockHash;
use super::disk::Stop;
use super::keeper::Keeper;
use super::lent::Lent;
use super::progress::Progress;
use super::source::read_at;

/// How files are called until they are whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartNames(pub PartTag);

/// What a part's owner may do until it is settled, whatever the file is to be: a later transfer goes on with it.
const OWN_USE: Mode = Mode::RUSR.union(Mode::WUSR);
/// A host does not decide what runs as whom here: set-user-ID and set-group-ID are not kept.
const KEPT_MODE: u32 = 0o1777;

/// Octets of nothing but zeros that are left out: a hole in the file.
pub(super) const LEAST_HOLE: usize = 4096;

/// A host's folder.
#[derive(Debug, Clone)]
pub(super) struct Folder {
    path: PathBuf,
    parts: PartNames,
    keeper: Option<Arc<Keeper>>,
    /// Whether files are hashed while they are written.
    hashes: bool,
    /// Modes of folders that could not be written into.
    lent: Arc<Lent>,
    /// Small files that are in their parts.
    small: Arc<Mutex<SmallParts>>,
}

/// By path which file each part is, and the other way round. None is open: when one is removed, the next one may have its number.
#[derive(Debug, Default)]
struct SmallParts {
    by_path: HashMap<Vec<u8>, Identity>,
    by_identity: HashMap<Identity, Vec<u8>>,
}

/// A file that is being written.
#[derive(Debug)]
pub(super) struct Part {
    file: File,
    folder: OwnedFd,
    name: Vec<u8>,
    part: Vec<u8>,
    /// Where the file is to be.
    place: PathBuf,
    /// Permissions that it gets at its end, if none are kept: those of what it replaces, or those that it was made with and
    /// its owner has more than.
    settles: Option<Mode>,
    /// Octets that it has from an earlier transfer: zeros are no holes there.
    old_len: u64,
    progress: Option<Progress>,
    /// Whether it is written at once: nothing waits for a disk, and nothing is hashed.
    pub(super) is_near: bool,
    /// What has been written so far, if it is hashed.
    written: Option<BlockHash<Data>>,
}

/// Owners, modes and times that are to be set.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kept {
    pub(super) owner: Owner,
    pub(super) mode: Option<u32>,
    pub(super) times: Option<(u32, u32)>,
}

impl Folder {
    pub(super) fn new(path: PathBuf, parts: PartNames, keeper: Option<Arc<Keeper>>) -> Folder {
        Folder {
            lent: Arc::new(Lent::new(&path)),
            path,
            parts,
            keeper,
            hashes: false,
            small: Arc::default(),
        }
    }

    /// The same, with files hashed while they are written: what arrives is to be verified.
    pub(super) fn hashing(self, hashes: bool) -> Folder {
        Folder { hashes, ..self }
    }

    /// What a file is called until it is whole.
    pub(super) fn part(&self, name: &[u8]) -> Vec<u8> {
        part_name(name, self.parts.0)
    }

    pub(super) fn keeper(&mut self) -> Option<Arc<Keeper>> {
        self.keeper.take()
    }

    /// A small file is in its part, which is this file.
    pub(super) fn note_small(&self, path: &[u8], part: Identity) {
        let mut small = self.small.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(earlier) = small.by_path.remove(path) {
            small.by_identity.remove(&earlier);
        }
        if let Some(before) = small.by_identity.insert(part, path.to_vec()) {
            // Its part has gone.
            small.by_path.remove(&before);
        }
        small.by_path.insert(path.to_vec(), part);
    }

    /// Which file that was; `None` if it has gone since.
    pub(super) fn forget_small(&self, path: &[u8]) -> Option<Identity> {
        let mut small = self.small.lock().unwrap_or_else(PoisonError::into_inner);
        let part = small.by_path.remove(path)?;
        small.by_identity.remove(&part);
        Some(part)
    }

    /// A folder in it; the host's own is made if it is not there, and can be written into if it is the user's.
    pub(super) fn open(&self, path: &[u8]) -> io::Result<OwnedFd> {
        std::fs::create_dir_all(&self.path)?;
        self.lent.lend_root();
        open_in(&self.path, path)
    }

    /// A folder in it, if it is there. Nothing is made.
    pub(super) fn open_there(&self, path: &[u8]) -> io::Result<Option<OwnedFd>> {
        match open_in(&self.path, path) {
            Ok(folder) => Ok(Some(folder)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Where a path in it is.
    pub(super) fn place(&self, path: &[u8]) -> PathBuf {
        place(&self.path, path)
    }

    /// What is told of a failure at this path: whose path and whose disk that is, for the host has the like.
    pub(super) fn told(&self, path: &[u8], error: &io::Error) -> String {
        told(&place(&self.path, path), error)
    }

    /// Modes that folders have only until all is over.
    pub(super) fn lent(&self) -> &Lent {
        &self.lent
    }

    /// Makes a folder, unless it is there: then it can be written into if it is the user's. The one above it is there.
    pub(super) fn make(&self, path: &[u8]) -> io::Result<()> {
        let (above, name) = split(path);
        let above = self.open(above)?;
        if name.is_empty() {
            return Ok(());
        }
        match mkdirat(&above, name, Mode::from_raw_mode(0o777)) {
            Ok(()) => Ok(()),
            Err(Errno::EXIST) => {
                self.lent.lend(&above, name, path);
                open_below(&above, name).map(drop)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The hash of what is there, if it is a regular file of this size that can be read.
    pub(super) fn hash(&self, path: &[u8], size: u64, stop: &Stop) -> io::Result<Option<FileHash>> {
        let Some(file) = self.open_file(path)? else {
            return Ok(None);
        };
        if file.metadata()?.len() != size {
            return Ok(None);
        }
        let hash = BlockHash::<Data>::new();
        hash.finish(stop, |offset, chunk| read_at(&file, chunk, offset))
            .map(Some)
    }

    /// Gives a file that has not to be fetched its owner and permissions, unless it has them. Links are not followed.
    pub(super) fn adjust(&self, path: &[u8], owner: Owner, mode: Option<u32>) -> io::Result<()> {
        let (above, name) = split(path);
        adjust_at(&self.open(above)?, name, owner, mode)
    }

    /// Gives a file that is there its owner, mode and times.
    pub(super) fn touch(&self, path: &[u8], kept: Kept) -> io::Result<()> {
        match self.open_file(path)? {
            Some(file) => keep(file.as_fd(), kept),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// A regular file that is there and can be read.
    fn open_file(&self, path: &[u8]) -> io::Result<Option<File>> {
        let (above, name) = split(path);
        let folder = self.open(above)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(file) = openat(folder, name, flags, Mode::empty()).map(File::from) else {
            return Ok(None);
        };
        Ok(file.metadata()?.is_file().then_some(file))
    }

    /// Begins a file; `None` if what is there has the size and the time of modification that are given, and `trusts_time`.
    pub(super) fn begin(
        &self,
        path: &[u8],
        like: Option<(u64, u32)>,
        trusts_time: bool,
        mode: u32,
    ) -> io::Result<Option<Part>> {
        let (above, name) = split(path);
        let folder = self.open(above)?;
        let replaces = match there(&folder, name, like.filter(|_| trusts_time))? {
            There::Unchanged => return Ok(None),
            There::File(mode) => Some(mode),
            There::Other => None,
        };
        let part = self.part(name);
        let mode = replaces.unwrap_or(Mode::from_raw_mode(mode & 0o777));
        let settles = |file: &File| match replaces {
            Some(replaced) => Ok::<_, io::Error>(Some(replaced)),
            None if mode.contains(OWN_USE) => Ok(None),
            // The umask has had a say in it.
            None => {
                let made = Mode::from_raw_mode(fstat(file)?.st_mode & 0o777);
                Ok(Some(made & (mode | !OWN_USE)))
            }
        };
        let noted = match (&self.keeper, like) {
            (Some(keeper), Some(like)) => Progress::begin(keeper, path, like)?,
            _ => None,
        };
        let left = noted
            .as_ref()
            .and_then(|progress| progress.open(&folder, &part));
        if let Some((file, old_len)) = left {
            return Ok(Some(Part {
                settles: settles(&file)?,
                is_near: is_in_memory(&file) && !self.hashes,
                file,
                folder,
                name: name.to_vec(),
                part,
                place: place(&self.path, path),
                old_len,
                progress: noted,
                written: self.hashes.then(|| BlockHash::new().out_of_order()),
            }));
        }
        let progress = noted.map(Progress::anew).transpose()?;
        let file = create(&folder, &part, mode | OWN_USE)?;
        Ok(Some(Part {
            settles: settles(&file)?,
            is_near: is_in_memory(&file) && !self.hashes,
            file,
            folder,
            name: name.to_vec(),
            part,
            place: place(&self.path, path),
            old_len: 0,
            progress,
            written: self.hashes.then(BlockHash::new),
        }))
    }

    /// Makes a symbolic link in place of a file or link; `true` if it is there already.
    pub(super) fn link(&self, path: &[u8], target: &[u8], owner: Owner) -> io::Result<bool> {
        let (above, name) = split(path);
        let folder = self.open(above)?;
        match look(&folder, name)? {
            Some(stat) if is_a(&stat, FileType::Directory) => {
                return Err(io::Error::other("a folder is there"));
            }
            Some(stat)
                if is_a(&stat, FileType::Symlink)
                    && readlinkat(&folder, name, Vec::new())?.as_bytes() == target =>
            {
                own_at(&folder, name, owner)?;
                return Ok(true);
            }
            Some(stat) if is_device(&stat) => return Err(device_in_the_way()),
            _ => {}
        }
        let part = self.part(name);
        match unlinkat(&folder, part.as_slice(), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        symlinkat(target, &folder, part.as_slice())?;
        let placed = own_at(&folder, &part, owner)
            .and_then(|()| Ok(renameat(&folder, part.as_slice(), &folder, name)?));
        if placed.is_err() {
            // What cannot be removed is told by its name.
            let _ = unlinkat(&folder, part.as_slice(), AtFlags::empty());
        }
        placed.map(|()| false)
    }

    /// Gives a folder its owner, mode and times, if they are to be kept, and brings what was put into it to the disk.
    pub(super) fn finish_folder(&self, path: &[u8], kept: Kept) -> io::Result<()> {
        let folder = self.open(path)?;
        fsync(&folder)?;
        // The host's own folder is ours, not the host's.
        if !path.is_empty() {
            keep(folder.as_fd(), kept)?;
        }
        // The mode that it had is not given back to one that has got another.
        if kept.mode.is_some() && !path.is_empty() {
            self.lent.forget(path);
        }
        Ok(())
    }
}

impl Part {
    /// What an earlier transfer has proven to be in it.
    pub(super) fn proven(&self) -> Segments {
        let progress = self.progress.as_ref();
        progress.map_or_else(Segments::default, |progress| progress.proven.clone())
    }

    /// What is told of a failure with it.
    pub(super) fn told(&self, error: &io::Error) -> String {
        told(&self.place, error)
    }

    /// Writes; `true` if it is time to note how far it is: [`note`](Self::note).
    pub(super) fn write(&self, offset: u64, data: &[u8]) -> io::Result<bool> {
        let is_hole = data.len() >= LEAST_HOLE && data.iter().all(|&octet| octet == 0);
        if !is_hole || offset < self.old_len {
            self.file.write_all_at(data, offset)?;
        }
        let octets = offset..offset + data.len() as u64;
        let progress = self.progress.as_ref();
        Ok(progress.is_some_and(|progress| progress.written(octets)))
    }

    /// Brings what is written to the disk, and notes it.
    pub(super) fn note(&self) -> io::Result<()> {
        let progress = self.progress.as_ref();
        progress.map_or(Ok(()), |progress| progress.note(&self.file))
    }

    /// Writes what is hashed in passing.
    pub(super) fn write_hashed(&self, offset: u64, data: Data) -> io::Result<bool> {
        let is_due = self.write(offset, &data)?;
        if let Some(written) = &self.written {
            written.add(offset, data);
        }
        Ok(is_due)
    }

    /// The hash of all that has been written, as the file of so many octets that it will be.
    pub(super) fn hash(&self, size: u64, stop: &Stop) -> io::Result<FileHash> {
        // Holes at its end.
        ftruncate(&self.file, size)?;
        let nothing = BlockHash::new();
        let written = self.written.as_ref().unwrap_or(&nothing);
        written.finish(stop, |offset, chunk| read_at(&self.file, chunk, offset))
    }

    /// Puts the file in place of what was there.
    pub(super) fn finish(&self, size: u64, kept: Kept) -> io::Result<()> {
        // Holes at its end.
        ftruncate(&self.file, size)?;
        if let Some(mode) = self.settles.filter(|_| kept.mode.is_none()) {
            fchmod(&self.file, mode)?;
        }
        keep(self.file.as_fd(), kept)?;
        fsync(&self.file)?;
        let (part, name) = (self.part.as_slice(), self.name.as_slice());
        expect(&self.folder, part, Some(Identity::of(&fstat(&self.file)?)))?;
        renameat(&self.folder, part, &self.folder, name)?;
        self.end();
        Ok(())
    }

    pub(super) fn discard(&self) {
        // What cannot be removed is told by its name.
        let _ = unlinkat(&self.folder, self.part.as_slice(), AtFlags::empty());
        self.end();
    }

    /// Nothing has to be known of it any more.
    fn end(&self) {
        self.progress.iter().for_each(Progress::end);
    }
}

/// Which file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Identity(u64, u64);

impl Identity {
    pub(super) fn of(stat: &Stat) -> Identity {
        Identity(stat.st_dev, stat.st_ino)
    }
}

/// Fails if that name is not this file's any more: where a file system takes two names for one, two files have one part.
pub(super) fn expect(folder: &OwnedFd, part: &[u8], file: Option<Identity>) -> io::Result<()> {
    match look(folder, part)? {
        Some(stat) if Some(Identity::of(&stat)) == file => Ok(()),
        _ => Err(io::Error::other(
            "something else has taken the name of its part: another program, or a file whose name is the same to this file system",
        )),
    }
}

/// Makes a part.
pub(super) fn create(folder: &OwnedFd, part: &[u8], mode: Mode) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let create = || openat(folder, part, flags, mode);
    let file = match create() {
        // An earlier transfer has left it.
        Err(Errno::EXIST) => {
            unlinkat(folder, part, AtFlags::empty())?;
            create()?
        }
        created => created?,
    };
    Ok(File::from(file))
}

/// Gives an open file what is to be kept.
pub(super) fn keep(file: impl AsFd, kept: Kept) -> io::Result<()> {
    if kept.owner.is_any() {
        let (user, group) = ids(kept.owner);
        fchown(&file, user, group).map_err(|error| not_owned(kept.owner, error))?;
    }
    if let Some(mode) = kept.mode {
        fchmod(&file, Mode::from_raw_mode(mode & KEPT_MODE))?;
    }
    if let Some((accessed, modified)) = kept.times {
        let time = |seconds: u32| Timespec {
            tv_sec: seconds.into(),
            tv_nsec: 0,
        };
        futimens(
            &file,
            &Timestamps {
                last_access: time(accessed),
                last_modification: time(modified),
            },
        )?;
    }
    Ok(())
}

/// Gives a regular file that has not to be fetched its owner and permissions, unless it has them.
pub(super) fn adjust_at(
    folder: &OwnedFd,
    name: &[u8],
    owner: Owner,
    mode: Option<u32>,
) -> io::Result<()> {
    own_at(folder, name, owner)?;
    let Some(mode) = mode.map(|mode| mode & KEPT_MODE) else {
        return Ok(());
    };
    // It may be one that its owner cannot read: what opens it opens nothing of its contents.
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(folder, name, flags, Mode::empty())?;
    let stat = fstat(&file)?;
    if is_a(&stat, FileType::RegularFile) && stat.st_mode & 0o7777 != mode {
        let by_number = format!("/proc/self/fd/{}", file.as_raw_fd());
        chmod(by_number, Mode::from_raw_mode(mode))?;
    }
    Ok(())
}

/// Gives what has this name its owner, unless it has that; a link itself.
pub(super) fn own_at(folder: &OwnedFd, name: &[u8], owner: Owner) -> io::Result<()> {
    let Some(stat) = look(folder, name)?.filter(|_| owner.is_any()) else {
        return Ok(());
    };
    if !owner.changes((stat.st_uid, stat.st_gid)) {
        return Ok(());
    }
    let (user, group) = ids(owner);
    let owned = chownat(folder, name, user, group, AtFlags::SYMLINK_NOFOLLOW);
    owned.map_err(|error| not_owned(owner, error))
}

/// As system calls take it. The number that stands for none is no account's.
fn ids(owner: Owner) -> (Option<Uid>, Option<Gid>) {
    let is_account = |number: &u32| *number != u32::MAX;
    (
        owner.user.filter(is_account).map(Uid::from_raw),
        owner.group.filter(is_account).map(Gid::from_raw),
    )
}

fn not_owned(owner: Owner, error: Errno) -> io::Error {
    let remedy = match error {
        Errno::PERM => "; it needs root here: run it as root, or leave --owner and --chown out",
        _ => "",
    };
    let error = io::Error::from(error);
    io::Error::new(
        error.kind(),
        format!("giving it to {owner}: {error}{remedy}"),
    )
}

/// Where a path in a host's folder is.
pub(super) fn place(root: &Path, path: &[u8]) -> PathBuf {
    match path {
        b"" => root.to_owned(),
        path => root.join(std::ffi::OsStr::from_bytes(path)),
    }
}

fn told(place: &Path, error: &io::Error) -> String {
    let what = match error.kind() {
        io::ErrorKind::StorageFull => "no space left on this machine's disk".to_owned(),
        io::ErrorKind::QuotaExceeded => "this machine's quota is used up".to_owned(),
        io::ErrorKind::ReadOnlyFilesystem => {
            "this machine's file system is mounted for reading only".to_owned()
        }
        _ => error.to_string(),
    };
    format!("{}: {what}", place.display())
}

/// A folder in the one at `root`.
pub(super) fn open_in(root: &Path, path: &[u8]) -> io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::RDONLY;
    let root = openat(CWD, root, flags, Mode::empty())?;
    let mut names = path
        .split(|&octet| octet == b'/')
        .filter(|name| !name.is_empty());
    names.try_fold(root, |folder, name| open_below(&folder, name))
}

fn open_below(folder: &OwnedFd, name: &[u8]) -> io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
    match openat(folder, name, flags, Mode::empty()) {
        Ok(folder) => Ok(folder),
        Err(Errno::LOOP | Errno::NOTDIR) => {
            let name = Path::new(std::ffi::OsStr::from_bytes(name));
            let text = format!("{} is there, and is no folder", name.display());
            Err(io::Error::other(text))
        }
        Err(error) => Err(error.into()),
    }
}

fn look(folder: &OwnedFd, name: &[u8]) -> io::Result<Option<Stat>> {
    match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// What is in the place of a file that is to be written.
pub(super) enum There {
    /// It has the size and the time of modification that are asked for.
    Unchanged,
    /// A file that has these permissions.
    File(Mode),
    /// Nothing, or what is replaced like nothing.
    Other,
}

/// `like`: octets and time of modification.
pub(super) fn there(folder: &OwnedFd, name: &[u8], like: Option<(u64, u32)>) -> io::Result<There> {
    Ok(match look(folder, name)? {
        Some(stat) if is_a(&stat, FileType::Directory) => {
            return Err(io::Error::other("a folder is there"));
        }
        Some(stat) if is_a(&stat, FileType::RegularFile) => {
            let is_like = like.is_some_and(|(size, modified)| {
                stat.st_size as u64 == size && stat.st_mtime == i64::from(modified)
            });
            match is_like {
                true => There::Unchanged,
                false => There::File(Mode::from_raw_mode(stat.st_mode & 0o777)),
            }
        }
        Some(stat) if is_device(&stat) => return Err(device_in_the_way()),
        _ => There::Other,
    })
}

fn is_device(stat: &Stat) -> bool {
    is_a(stat, FileType::BlockDevice) || is_a(stat, FileType::CharacterDevice)
}

fn device_in_the_way() -> io::Error {
    io::Error::other("a device is there, and is not replaced")
}

fn is_a(stat: &Stat, file_type: FileType) -> bool {
    FileType::from_raw_mode(stat.st_mode) == file_type
}

/// The folder that something is in, and its name there.
pub(super) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|&octet| octet == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b"", path),
    }
}

#[cfg(test)]
#[path = "folder_tests.rs"]
mod tests;
