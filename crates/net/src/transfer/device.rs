//! This machine's block devices: how large one is, and one that a host's file is written to.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use rustix::fs::{OFlags, major, minor};
use sshoal_journal::Segments;
use sshoal_transfer::{Begun, DownloadNeed, Fetched, Trouble};

use super::disk::Jobs;
use super::engine::Answer;
use super::performing::PANICKED;

/// Octets of a file or a block device: stat(2) has 0 for the latter.
///
/// # Errors
///
/// The device does not tell.
pub(super) fn size(file: &File, metadata: &Metadata) -> io::Result<u64> {
    match metadata.file_type().is_block_device() {
        true => (&*file).seek(SeekFrom::End(0)),
        false => Ok(metadata.len()),
    }
}

/// Whether the kernel writes nothing to a block device, as it tells below /sys: opening it for writing succeeds all the same.
fn is_read_only(metadata: &Metadata) -> bool {
    let device = metadata.rdev();
    let told = format!("/sys/dev/block/{}:{}/ro", major(device), minor(device));
    std::fs::read(told).is_ok_and(|told| told.starts_with(b"1"))
}

/// A block device that one file is written to, from its beginning.
#[derive(Debug)]
pub(super) struct Target {
    path: PathBuf,
    /// Open from the moment at which the file's size is known.
    open: Arc<OnceLock<Open>>,
}

#[derive(Debug)]
struct Open {
    device: File,
    size: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Whether anything may have been written.
    has_begun: bool,
    written: Segments,
    is_whole: bool,
    /// Whether what the kernel has taken is not on the medium for certain.
    is_unproven: bool,
}

impl Target {
    pub(super) fn new(path: PathBuf) -> Target {
        Target {
            path,
            open: Arc::default(),
        }
    }

    /// What the device is left as, if it has been begun and is not whole.
    pub(super) fn half_written(&self, why: &str) -> Option<Trouble> {
        let open = self.open.get()?;
        let state = open.lock();
        let first = state.written.iter().next();
        let first = first.filter(|it| it.start == 0 && !state.is_unproven);
        let is_half = state.has_begun && !state.is_whole;
        is_half.then(|| Trouble::DeviceHalfWritten {
            at: first.map_or(0, |it| it.end),
            why: why.to_owned(),
        })
    }

    /// Has done what a download needs.
    pub(super) fn perform(&self, need: DownloadNeed, jobs: &Jobs<Answer>) {
        let panicked = || PANICKED.to_owned();
        let text = |error: io::Error| error.to_string();
        let open = self.open.clone();
        match need {
            DownloadNeed::Begin { file, size, .. } => {
                let path = self.path.clone();
                let answer = move |begun: Result<(), String>| {
                    let begun = begun.map(|()| Begun::Ready(Segments::default()));
                    Answer::Fetched(Fetched::Begun { file, begun })
                };
                jobs.perform(answer(Err(panicked())), move || {
                    answer(Open::claim(&path, size.unwrap_or(0)).and_then(|claimed| {
                        let is_second = open.set(claimed).is_err();
                        match is_second {
                            true => Err("a device takes the contents of one file".to_owned()),
                            false => Ok(()),
                        }
                    }))
                });
            }
            DownloadNeed::Write {
                file,
                channel,
                offset,
                data,
            } => {
                let octets = data.len();
                let answer = move |written| {
                    Answer::Fetched(Fetched::Written {
                        file,
                        channel,
                        octets,
                        written,
                    })
                };
                jobs.perform(answer(Err(panicked())), move || {
                    answer(open.get().map_or(Ok(()), |it| it.write(offset, &data)))
                });
            }
            DownloadNeed::Finish { file, .. } => {
                let answer = move |finished| Answer::Fetched(Fetched::Finished { file, finished });
                jobs.perform(answer(Err(panicked())), move || {
                    let synced = open.get().map_or(Ok(()), Open::finish);
                    answer(synced.map_err(text))
                });
            }
            DownloadNeed::Accounts { users, groups } => {
                jobs.answer(Answer::Fetched(Fetched::Accounts {
                    users: vec![None; users.len()],
                    groups: vec![None; groups.len()],
                }));
            }
            // Nothing is asked for hashes of a device.
            DownloadNeed::Compare { file, .. } => {
                let hash = Err(NO_TREE.to_owned());
                jobs.answer(Answer::Fetched(Fetched::Compared { file, hash }));
            }
            DownloadNeed::Touch { file, .. } => {
                let touched = Err(NO_TREE.to_owned());
                jobs.answer(Answer::Fetched(Fetched::Touched { file, touched }));
            }
            DownloadNeed::Hash { file, .. } => {
                let hash = Err(NO_TREE.to_owned());
                jobs.answer(Answer::Fetched(Fetched::Hashed { file, hash }));
            }
            // What is written stays.
            DownloadNeed::Delete { .. } => {
                let (deleted, failed) = (Vec::new(), Vec::new());
                jobs.answer(Answer::Fetched(Fetched::Deleted { deleted, failed }));
            }
            DownloadNeed::Discard { .. } => {}
            DownloadNeed::Folder { id, .. } => {
                let made = Err(NO_TREE.to_owned());
                jobs.answer(Answer::Fetched(Fetched::Folder { id, made }));
            }
            DownloadNeed::Link { path, .. } => {
                let linked = Err(NO_TREE.to_owned());
                jobs.answer(Answer::Fetched(Fetched::Linked { path, linked }));
            }
            DownloadNeed::FinishFolder { path, .. } => {
                let finished = Ok(());
                jobs.answer(Answer::Fetched(Fetched::FolderFinished { path, finished }));
            }
        }
    }
}

const NO_TREE: &str = "a device takes the contents of one file";

impl Open {
    /// Opens a device for ourselves alone: the kernel gives none that is mounted or otherwise held (open(2), O_EXCL).
    fn claim(path: &Path, wanted: u64) -> Result<Open, String> {
        let opened = OpenOptions::new()
            .write(true)
            .custom_flags((OFlags::EXCL | OFlags::NONBLOCK).bits() as i32)
            .open(path);
        let device = opened.map_err(|error| match error.raw_os_error() {
            Some(libc::EBUSY) => format!(
                "{} is in use: unmount it, or stop what holds it (lsblk shows that)",
                path.display()
            ),
            _ => format!("{}: {error}", path.display()),
        })?;
        let metadata = device.metadata().map_err(|error| error.to_string())?;
        if !metadata.file_type().is_block_device() {
            return Err(format!("{} is no block device any more", path.display()));
        }
        if is_read_only(&metadata) {
            return Err(Trouble::DeviceReadOnly.to_string());
        }
        let size = size(&device, &metadata).map_err(|error| error.to_string())?;
        match wanted > size {
            true => Err(too_small(wanted, size)),
            false => Ok(Open {
                device,
                size,
                state: Mutex::default(),
            }),
        }
    }

    /// Zeros, too: the device may hold anything.
    fn write(&self, offset: u64, data: &[u8]) -> Result<(), String> {
        let end = offset.saturating_add(data.len() as u64);
        if end > self.size {
            return Err(too_small(end, self.size));
        }
        self.lock().has_begun = true;
        if let Err(error) = self.device.write_all_at(data, offset) {
            // It is the first error that is told.
            let _ = self.sync();
            return Err(error.to_string());
        }
        self.lock().written.insert(offset..end);
        Ok(())
    }

    /// Brings what is written to the medium.
    fn sync(&self) -> io::Result<()> {
        let synced = self.device.sync_all();
        if synced.is_err() {
            self.lock().is_unproven = true;
        }
        synced
    }

    fn finish(&self) -> io::Result<()> {
        self.sync()?;
        self.lock().is_whole = true;
        Ok(())
    }

    /// What it holds is whole after every statement, whoever panicked.
    fn lock(&self) -> MutexGuard<'_, State> {
        match self.state.lock() {
            Ok(state) => state,
            Err(poisoned) => poisoned.into_inner(),
        }
    }
}

fn too_small(wanted: u64, size: u64) -> String {
    format!("the block device has {size} octets, and {wanted} are to be written")
}
