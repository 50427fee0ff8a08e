//! One host's transfer: the sans-I/O part joined with this machine's files.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sshoal_journal::Segments;
use sshoal_transfer::sftp::{Dialect, Pieces, SftpError, SharedOctets};
use sshoal_transfer::{
    Download, DownloadEvent, DownloadNeed, Fetched, FetchedSmall, FileHash, LocalFile, SmallFile,
    SmallGroup, SmallProblem, Tally, Trouble, Upload, UploadEvent, UploadNeed, Verify,
};

use super::accounts::Accounts;
use super::asking::{About, Conversation};
use super::batches::Batches;
use super::changed::Changed;
use super::device::Target;
use super::disk::Jobs;
use super::folder::{Folder, Part};
use super::keeper::Keeper;
use super::performing::{Noted, note, perform_download, perform_upload, read_at_once, read_small};
use super::plan::{Get, GetTarget, Put};
use super::printed::Printed;
use super::small_parts::perform_small;
use super::source::{OpenFile, Source};
use super::writing::Writing;

/// Octets of contents for which it is worth waking up.
const CONTENTS: usize = 128 * 1024;
/// Octets of answers: those to about three quarters of a megabyte, less than two channels have under way.
const ANSWERS: usize = 512;

/// What happened, for the user.
#[derive(Debug)]
pub(super) enum Happened {
    /// So many octets more have arrived.
    Moved(u64),
    /// Something failed: its path on the host.
    Failed(Vec<u8>, Trouble),
    /// It was surplus, and is gone or would be: its path on the side that things go to.
    Deleted(Vec<u8>),
    /// All is over.
    Ended,
}

/// What a job came to.
pub(super) enum Answer {
    Opened(usize, Result<(Arc<OpenFile>, Option<Segments>), String>),
    Data(UploadNeed, Result<SharedOctets, String>),
    /// Whether it is the same, and its hash if that was asked for.
    Checked(usize, Result<(bool, Option<FileHash>), String>),
    Hashed(usize, Result<FileHash, String>),
    Forgotten(usize, Result<(), String>),
    Noted,
    Begun(LocalFile, Result<Option<Arc<Part>>, String>),
    Fetched(Fetched),
    Written(LocalFile, Vec<Fetched>),
    FetchedSmall(FetchedSmall),
    /// All folders that something was put into are on the disk.
    Synced(Result<(), String>),
    Discarded,
    Small(SmallGroup, Vec<Result<SmallFile, SmallProblem>>),
}

/// Either way.
pub(super) enum Engine {
    Put {
        upload: Box<Upload>,
        source: Arc<Source>,
        open: HashMap<usize, Arc<OpenFile>>,
        keeper: Option<Arc<Keeper>>,
    },
    Get {
        download: Box<Download>,
        into: Into,
    },
}

/// Where a download goes.
pub(super) enum Into {
    Folder {
        folder: Folder,
        parts: HashMap<LocalFile, Writing>,
        /// Where something was put.
        changed: Changed,
        paths: HashMap<LocalFile, Vec<u8>>,
        accounts: Arc<Accounts>,
    },
    Device(Target),
    Output(Printed),
}

impl Into {
    /// With what it means for a device that has been begun.
    fn explained(&self, trouble: Trouble) -> Trouble {
        match self {
            Into::Device(target) => target.half_written(&trouble.to_string()).unwrap_or(trouble),
            _ => trouble,
        }
    }
}

/// The same call either way.
macro_rules! either {
    ($engine:expr, $it:ident => $call:expr) => {
        match $engine {
            Engine::Put { upload: $it, .. } => $call,
            Engine::Get { download: $it, .. } => $call,
        }
    };
}

impl Engine {
    /// `host` is its place in the run, `account` what tells it from others that may have the same file system.
    pub(super) fn put(put: &Put, host: usize, account: &str) -> Engine {
        // Fowler, Noll and Vo's hash, FNV-1a: the same in every run.
        let salt = account.bytes().fold(0x811c_9dc5, |hash: u32, octet| {
            (hash ^ u32::from(octet)).wrapping_mul(0x0100_0193)
        });
        let mut seed = [0; 8];
        sshoal_crypto::random(&mut seed);
        let mut upload = Box::new(Upload::new(put.upload.clone(), salt));
        upload.set_seed(u64::from_be_bytes(seed));
        Engine::Put {
            upload,
            source: put.source.clone(),
            open: HashMap::new(),
            keeper: keeper(&put.journals, host),
        }
    }

    /// `host` is its place in the run.
    pub(super) fn get(get: &Get, host: usize) -> Engine {
        let into = match &get.target {
            GetTarget::Device(path) => Into::Device(Target::new(path.clone())),
            GetTarget::Output => Into::Output(Printed::default()),
            GetTarget::Folders {
                hosts,
                parts,
                journals,
            } => Into::Folder {
                folder: Folder::new(hosts[host].clone(), *parts, keeper(journals, host))
                    .hashing(get.download.hashing.verifies != Verify::Never),
                parts: HashMap::new(),
                changed: Changed::default(),
                paths: HashMap::new(),
                accounts: get.accounts.clone(),
            },
        };
        Engine::Get {
            download: Box::new(Download::new(get.download.clone())),
            into,
        }
    }

    /// Takes the server for one that speaks so.
    pub(super) fn speak(&mut self, dialect: Dialect) {
        // No request of a download's differs.
        if let Engine::Put { upload, .. } = self {
            upload.speak(dialect);
        }
    }

    /// It is so late since the transfer was begun.
    pub(super) fn set_time(&mut self, now: Duration) {
        either!(self, it => it.set_time(now));
    }

    pub(super) fn handle_input(&mut self, channel: usize, input: &[u8]) -> Result<(), SftpError> {
        either!(self, it => it.handle_input(channel, input))
    }

    pub(super) fn transmit(&self, channel: usize) -> Pieces<'_> {
        either!(self, it => it.transmit(channel))
    }

    pub(super) fn waiting(&self, channel: usize) -> usize {
        either!(self, it => it.waiting(channel))
    }

    pub(super) fn transmitted(&mut self, channel: usize, octets: usize) {
        either!(self, it => it.transmitted(channel, octets));
    }

    /// Whether large files are moved.
    pub(super) fn moves_much(&self) -> bool {
        either!(self, it => it.moves_much())
    }

    /// Octets that come together while large files are moved: contents, or answers to what was written.
    pub(super) fn expected(&self) -> usize {
        match self {
            Engine::Put { .. } => ANSWERS,
            Engine::Get { .. } => CONTENTS,
        }
    }

    /// Whether what waits for a channel is about to become more.
    pub(super) fn is_about_to_send(&self, channel: usize) -> bool {
        match self {
            Engine::Put { upload, .. } => upload.is_about_to_send(channel),
            Engine::Get { .. } => false,
        }
    }

    pub(super) fn add_channel(&mut self) -> usize {
        either!(self, it => it.add_channel())
    }

    pub(super) fn join_channel(&mut self) -> usize {
        either!(self, it => it.join_channel())
    }

    pub(super) fn refuse_channel(&mut self, channel: usize) {
        either!(self, it => it.refuse_channel(channel));
    }

    pub(super) fn retire_channel(&mut self, channel: usize) {
        either!(self, it => it.retire_channel(channel));
    }

    pub(super) fn lose_channel(&mut self, channel: usize) {
        either!(self, it => it.lose_channel(channel));
    }

    /// Whether the host speaks SFTP.
    pub(super) fn has_begun(&self) -> bool {
        either!(self, it => it.has_begun())
    }

    /// Whether all of it is there still when its connection is lost, and what is half done is nobody else's: neither standard
    /// input, nor what was printed, nor a block device.
    pub(super) fn is_repeatable(&self) -> bool {
        match self {
            Engine::Put { upload, source, .. } => {
                source.is_repeatable() && upload.half_written().is_none()
            }
            Engine::Get { into, .. } => matches!(into, Into::Folder { .. }),
        }
    }

    pub(super) fn awaits_server(&self) -> bool {
        either!(self, it => it.awaits_server())
    }

    /// The same on one channel.
    pub(super) fn awaits(&self, channel: usize) -> bool {
        either!(self, it => it.awaits(channel))
    }

    /// Whether the host has been asked on a channel to bring something to its disk, and has not said that it has.
    pub(super) fn awaits_disk(&self, channel: usize) -> bool {
        match self {
            Engine::Put { upload, .. } => upload.awaits_disk(channel),
            Engine::Get { .. } => false,
        }
    }

    pub(super) fn octets_left(&self) -> u64 {
        either!(self, it => it.octets_left())
    }

    /// The same without what goes by streams.
    pub(super) fn octets_left_for_channels(&self) -> u64 {
        either!(self, it => it.octets_left_for_channels())
    }

    /// What has streams beside its channels.
    pub(super) fn batches(&mut self) -> &mut dyn Batches {
        match self {
            Engine::Put { upload, .. } => &mut **upload,
            Engine::Get { download, .. } => &mut **download,
        }
    }

    /// What a block device is left as if nothing more is done.
    pub(super) fn half_written(&self) -> Option<Trouble> {
        match self {
            Engine::Put { upload, .. } => upload.half_written(),
            Engine::Get {
                into: Into::Device(target),
                ..
            } => target.half_written("the transfer was cut"),
            Engine::Get { .. } => None,
        }
    }

    /// What a session beside the SFTP channels is for, if there is such a one.
    pub(super) fn conversation(&mut self, about: About) -> Option<&mut dyn Conversation> {
        match (about, self) {
            (About::Hashes, Engine::Put { upload, .. }) => Some(upload.hashes()),
            (About::Hashes, Engine::Get { download, .. }) => Some(download.hashes()),
            (About::Accounts, Engine::Put { upload, .. }) => Some(upload.accounts()),
            // The server tells names.
            (About::Accounts, Engine::Get { .. }) => None,
        }
    }

    /// Takes note of what became of it.
    pub(super) fn handle_conversation(&mut self, about: About) {
        match (about, self) {
            (About::Accounts, Engine::Put { upload, .. }) => upload.handle_accounts(),
            (_, engine) => either!(engine, it => it.handle_hashes()),
        }
    }

    pub(super) fn tally(&self) -> Tally {
        either!(self, it => it.tally())
    }

    pub(super) fn interrupt(&mut self) {
        either!(self, it => it.interrupt());
    }

    /// The next thing that happened.
    pub(super) fn poll_happened(&mut self) -> Option<Happened> {
        match self {
            Engine::Put { upload, .. } => loop {
                return Some(match upload.poll_event()? {
                    UploadEvent::Done { .. } => continue,
                    UploadEvent::Failed { path, trouble } => Happened::Failed(path, trouble),
                    UploadEvent::Deleted { path } => Happened::Deleted(path),
                    UploadEvent::Moved(octets) => Happened::Moved(octets),
                    UploadEvent::Ended => Happened::Ended,
                });
            },
            Engine::Get { download, into } => loop {
                return Some(match download.poll_event()? {
                    DownloadEvent::Done { .. } | DownloadEvent::Found(_) => continue,
                    DownloadEvent::Failed { path, trouble } => {
                        Happened::Failed(path, into.explained(trouble))
                    }
                    DownloadEvent::Deleted { path } => Happened::Deleted(path),
                    DownloadEvent::Moved(octets) => Happened::Moved(octets),
                    DownloadEvent::Ended => Happened::Ended,
                });
            },
        }
    }

    /// Has done what is needed of this machine; returns what is to be printed.
    pub(super) fn perform(&mut self, jobs: &Jobs<Answer>) -> Vec<u8> {
        match self {
            Engine::Put {
                upload,
                source,
                open,
                keeper,
            } => {
                while let Some(need) = upload.poll_need() {
                    if let Some(data) = read_at_once(&need, source, open) {
                        upload.provide_data_at_once(need, data);
                        continue;
                    }
                    let key = match need {
                        UploadNeed::Open { entry } | UploadNeed::Forget { entry } => {
                            upload.path(entry)
                        }
                        _ => Vec::new(),
                    };
                    let noted = Noted { keeper, key };
                    perform_upload(need, source, open, noted, jobs);
                }
                while let Some((entry, segments)) = upload.poll_proven() {
                    if let Some(keeper) = keeper.clone() {
                        let key = upload.path(entry);
                        jobs.perform(Answer::Noted, move || {
                            keeper.prove(&key, &segments);
                            Answer::Noted
                        });
                    }
                }
                while let Some(entry) = upload.poll_over() {
                    if let Some(keeper) = keeper.clone() {
                        let key = upload.path(entry);
                        jobs.perform(Answer::Noted, move || {
                            keeper.end(&key);
                            Answer::Noted
                        });
                    }
                }
                while let Some(group) = upload.poll_small() {
                    read_small(group, source, jobs);
                }
                Vec::new()
            }
            Engine::Get { download, into } => {
                let mut printed = Vec::new();
                while let Some(need) = download.poll_need() {
                    match into {
                        Into::Output(output) => match need {
                            DownloadNeed::Begin { file, .. } => {
                                download.provide(output.begin(file))
                            }
                            DownloadNeed::Write {
                                file,
                                channel,
                                offset,
                                data,
                            } => printed.extend(output.write(file, channel, offset, &data)),
                            DownloadNeed::Finish { file, .. } => {
                                let finished = Ok(());
                                download.provide(Fetched::Finished { file, finished });
                            }
                            DownloadNeed::Discard { .. } => {}
                            DownloadNeed::Accounts { users, groups } => {
                                download.provide(Fetched::Accounts {
                                    users: vec![None; users.len()],
                                    groups: vec![None; groups.len()],
                                });
                            }
                            // There is nothing here to be compared, nor to be hashed once it is printed.
                            DownloadNeed::Compare { file, .. } => {
                                let hash = Ok(None);
                                download.provide(Fetched::Compared { file, hash });
                            }
                            DownloadNeed::Touch { file, .. } => {
                                let touched = Ok(());
                                download.provide(Fetched::Touched { file, touched });
                            }
                            DownloadNeed::Hash { file, .. } => {
                                let hash = Err("it is printed".to_owned());
                                download.provide(Fetched::Hashed { file, hash });
                            }
                            DownloadNeed::Delete { .. } => {
                                let (deleted, failed) = (Vec::new(), Vec::new());
                                download.provide(Fetched::Deleted { deleted, failed });
                            }
                            // Folders are not printed, and no link is met on the way to a file.
                            DownloadNeed::Folder { id, .. } => {
                                let made = Err("folders cannot be printed".to_owned());
                                download.provide(Fetched::Folder { id, made });
                            }
                            DownloadNeed::Link { path, .. } => {
                                let linked = Err("links cannot be printed".to_owned());
                                download.provide(Fetched::Linked { path, linked });
                            }
                            DownloadNeed::FinishFolder { path, .. } => {
                                let finished = Ok(());
                                download.provide(Fetched::FolderFinished { path, finished });
                            }
                        },
                        Into::Device(target) => target.perform(need, jobs),
                        Into::Folder {
                            folder,
                            parts,
                            changed,
                            paths,
                            accounts,
                        } => {
                            note(&need, changed, paths);
                            let fetched = perform_download(need, folder, parts, accounts, jobs);
                            if let Some(fetched) = fetched {
                                download.provide(fetched);
                            }
                        }
                    }
                }
                if let Into::Folder {
                    folder,
                    changed,
                    parts,
                    ..
                } = into
                {
                    for (&file, writing) in parts {
                        writing.go_on(file, jobs);
                    }
                    while let Some(need) = download.poll_small() {
                        perform_small(need, folder, changed, jobs);
                    }
                }
                printed
            }
        }
    }

    /// The observer has taken everything that was printed.
    pub(super) fn confirm_printed(&mut self) {
        if let Engine::Get {
            download,
            into: Into::Output(printed),
        } = self
        {
            while let Some(fetched) = printed.confirm() {
                download.provide(fetched);
            }
        }
    }
}

/// The host's journal.
fn keeper(journals: &[PathBuf], host: usize) -> Option<Arc<Keeper>> {
    let path = journals.get(host)?;
    Some(Arc::new(Keeper::new(path.clone())))
}
