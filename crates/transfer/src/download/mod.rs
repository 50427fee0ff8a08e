//! Fetches what one host has into a folder of this machine's.
//!
//! `sources` finds out what the user means, `walk` lists folders, `files` fetches contents, `ending` makes links once
//! nothing is written any more, so that none of them can lead a file elsewhere, and gives folders their modes and times.

mod ending;
mod files;
mod sources;
mod walk;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use crate::glob::Excludes;
use crate::sftp::{Attributes, Client, Data, Reply, Request, SftpError};
use crate::{Tally, Trouble};
use files::{File, FileStep};
use sources::Search;
use walk::{Listing, ListingStep};

/// Folders, and links, that one source may have: a hostile server cannot make us remember more.
pub const MAX_FOLDERS: usize = 1_000_000;

/// What to fetch.
#[derive(Debug, Clone)]
pub struct DownloadPlan {
    /// Paths and patterns on the host, as the user typed them.
    pub sources: Vec<Vec<u8>>,
    /// Whether folders are fetched with all that is in them.
    pub recursive: bool,
    /// Whether modes and times are kept.
    pub preserve: bool,
    /// What is left out.
    pub excludes: Excludes,
    /// Whether one file is fetched after the other, each from its beginning: to be printed.
    pub in_order: bool,
    /// Octets of one channel that may be asked for and not written yet.
    pub in_flight: usize,
}

/// A local file of a download, by a number of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocalFile(pub u64);

/// What a download needs of this machine. Paths are relative to the host's folder; none leads out of it. Each is
/// answered by [`Download::provide`] with its [`Fetched`], in any order, but for `Discard`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DownloadNeed {
    /// Make a folder, unless it is there: [`Fetched::Folder`].
    Folder {
        /// To be given back.
        id: u64,
        /// Where.
        path: Vec<u8>,
    },
    /// Begin a file: [`Fetched::Begun`].
    Begin {
        /// Which.
        file: LocalFile,
        /// Where.
        path: Vec<u8>,
        /// Octets and time of modification on the host: a file that has both already is unchanged.
        like: Option<(u64, u32)>,
        /// Permissions, before this machine's umask.
        mode: u32,
    },
    /// Write: [`Fetched::Written`].
    Write {
        /// Which file.
        file: LocalFile,
        /// To be given back.
        channel: usize,
        /// Where in it.
        offset: u64,
        /// What.
        data: Data,
    },
    /// All octets are written: give it its length, mode and times, bring it to the disk, put it in place:
    /// [`Fetched::Finished`].
    Finish {
        /// Which.
        file: LocalFile,
        /// Octets.
        size: u64,
        /// Permissions, if they are to be kept.
        mode: Option<u32>,
        /// Last access and modification, if they are to be kept.
        times: Option<(u32, u32)>,
    },
    /// Give a file up that was begun, and remove what there is of it.
    Discard {
        /// Which.
        file: LocalFile,
    },
    /// Make a symbolic link in place of a file or link: [`Fetched::Linked`].
    Link {
        /// Where.
        path: Vec<u8>,
        /// What it says.
        target: Vec<u8>,
    },
    /// Give a folder its mode and times: [`Fetched::FolderFinished`].
    FinishFolder {
        /// Where.
        path: Vec<u8>,
        /// Permissions.
        mode: Option<u32>,
        /// Last access and modification.
        times: Option<(u32, u32)>,
    },
}

/// What became of a [`DownloadNeed`]; errors are the system's words.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)] // each member is one of the need's
pub enum Fetched {
    Folder {
        id: u64,
        made: Result<(), String>,
    },
    /// `true` if there is something to be written, `false` if the file is unchanged.
    Begun {
        file: LocalFile,
        begun: Result<bool, String>,
    },
    Written {
        file: LocalFile,
        channel: usize,
        octets: usize,
        written: Result<(), String>,
    },
    Finished {
        file: LocalFile,
        finished: Result<(), String>,
    },
    /// `true` if it was there already.
    Linked {
        path: Vec<u8>,
        linked: Result<bool, String>,
    },
    FolderFinished {
        path: Vec<u8>,
        finished: Result<(), String>,
    },
}

/// What became of something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DownloadEvent {
    /// It is in place, or was there unchanged.
    Done {
        /// The path here, relative to the host's folder.
        path: Vec<u8>,
        /// Whether nothing had to be done.
        unchanged: bool,
    },
    /// It is not there, or as it was before.
    Failed {
        /// The path on the host.
        path: Vec<u8>,
        /// Why.
        trouble: Trouble,
    },
    /// So many octets more are known to be fetched.
    Found(u64),
    /// So many octets more are here.
    Moved(u64),
    /// Everything has ended; the channels may be closed.
    Ended,
}

/// A download from one host.
pub struct Download {
    plan: Arc<DownloadPlan>,
    channels: Vec<Channel>,
    stage: Stage,
    /// Names that sources have taken in the host's folder.
    taken: HashSet<Vec<u8>>,
    /// Folders that are to be listed, the last one first.
    to_list: Vec<Listing>,
    listings: HashMap<u64, Listing>,
    /// Patterns that are looked for.
    searches: HashMap<Vec<u8>, Search>,
    queue: VecDeque<Item>,
    files: HashMap<LocalFile, File>,
    links: Vec<Item>,
    folders: Vec<(Vec<u8>, Attributes)>,
    /// Questions about sources, links and folders without an answer, of the server or of this machine.
    open: usize,
    next_id: u64,
    needs: VecDeque<DownloadNeed>,
    events: VecDeque<DownloadEvent>,
    tally: Tally,
    left: u64,
    interrupted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Sources,
    Files,
    Links,
    Folders,
    Ended,
}

/// Something on the host, and where it goes.
#[derive(Debug, Clone)]
struct Item {
    remote: Vec<u8>,
    /// Relative to the host's folder.
    local: Vec<u8>,
    /// Relative to the source that it was found below.
    below: Vec<u8>,
    attributes: Attributes,
}

struct Channel {
    client: Client<Asked>,
    /// Octets asked for and not written yet.
    in_flight: usize,
    /// Files whose first reader it is.
    files: usize,
    refused: bool,
}

/// What a request was for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Asked {
    Expand {
        source: Vec<u8>,
    },
    Source {
        path: Vec<u8>,
        local: Vec<u8>,
        pattern: Option<Vec<u8>>,
    },
    Listing {
        id: u64,
        step: ListingStep,
    },
    Unknown {
        remote: Vec<u8>,
        local: Vec<u8>,
        below: Vec<u8>,
    },
    File {
        file: LocalFile,
        step: FileStep,
    },
    Link {
        remote: Vec<u8>,
        local: Vec<u8>,
    },
}

impl Download {
    /// A download over one channel, the first; its number is 0.
    pub fn new(plan: Arc<DownloadPlan>) -> Download {
        Download {
            plan,
            channels: vec![Channel::new()],
            stage: Stage::Sources,
            taken: HashSet::new(),
            to_list: Vec::new(),
            listings: HashMap::new(),
            searches: HashMap::new(),
            queue: VecDeque::new(),
            files: HashMap::new(),
            links: Vec::new(),
            folders: Vec::new(),
            open: 0,
            next_id: 0,
            needs: VecDeque::new(),
            events: VecDeque::new(),
            tally: Tally::default(),
            left: 0,
            interrupted: false,
        }
    }

    /// One more channel; returns its number.
    pub fn add_channel(&mut self) -> usize {
        self.channels.push(Channel::new());
        self.channels.len() - 1
    }

    /// The server has refused a further channel: it is done without.
    pub fn refuse_channel(&mut self, channel: usize) {
        self.channels[channel].refused = true;
    }

    /// Octets of contents that are still to be fetched, as far as is known.
    pub fn octets_left(&self) -> u64 {
        self.left
    }

    /// How far it is.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Takes what came on a channel.
    ///
    /// # Errors
    ///
    /// The server breaks the protocol: the download is over.
    pub fn handle_input(&mut self, channel: usize, input: &[u8]) -> Result<(), SftpError> {
        self.channels[channel].client.handle_input(input)?;
        while let Some((asked, reply)) = self.channels[channel].client.poll_reply() {
            self.handle_reply(channel, asked, reply);
        }
        self.advance();
        Ok(())
    }

    /// Octets for a channel.
    pub fn transmit(&self, channel: usize) -> &[u8] {
        self.channels[channel].client.transmit()
    }

    /// So many of them have left.
    pub fn transmitted(&mut self, channel: usize, octets: usize) {
        self.channels[channel].client.transmitted(octets);
    }

    /// What is needed of this machine.
    pub fn poll_need(&mut self) -> Option<DownloadNeed> {
        self.needs.pop_front()
    }

    /// The answer to a need.
    pub fn provide(&mut self, fetched: Fetched) {
        match fetched {
            Fetched::Folder { id, made } => self.handle_folder(id, made),
            Fetched::Begun { file, begun } => self.handle_begun(file, begun),
            Fetched::Written {
                file,
                channel,
                octets,
                written,
            } => self.handle_written(file, channel, octets, written),
            Fetched::Finished { file, finished } => self.handle_finished(file, finished),
            Fetched::Linked { path, linked } => self.handle_linked(path, linked),
            Fetched::FolderFinished { path, finished } => {
                self.handle_folder_finished(path, finished)
            }
        }
        self.advance();
    }

    /// What became of things.
    pub fn poll_event(&mut self) -> Option<DownloadEvent> {
        self.events.pop_front()
    }

    /// Whether replies of the server's are waited for.
    pub fn awaits_server(&self) -> bool {
        let mut open = self.channels.iter().filter(|channel| !channel.refused);
        open.any(|channel| channel.client.pending() > 0)
    }

    /// Begins nothing more, and cleans up what is half done.
    pub fn interrupt(&mut self) {
        self.interrupted = true;
        self.queue.clear();
        self.to_list.clear();
        self.links.clear();
        self.folders.clear();
        let mut files: Vec<LocalFile> = self.files.keys().copied().collect();
        files.sort_unstable();
        for file in files {
            self.fail_file(file, Trouble::Interrupted);
        }
        if !self.channels[0].client.is_ready() {
            self.end();
        }
        self.advance();
    }

    /// Does what can be done now.
    fn advance(&mut self) {
        if !self.channels[0].client.is_ready() {
            return;
        }
        loop {
            let stage = self.stage;
            match stage {
                Stage::Sources => self.ask_for_sources(),
                Stage::Files => {
                    self.list_folders();
                    self.fetch_files();
                    if self.is_all_fetched() {
                        self.stage = Stage::Links;
                    }
                }
                Stage::Links => self.make_links(),
                Stage::Folders => self.finish_folders(),
                Stage::Ended => {}
            }
            if self.stage == stage {
                return;
            }
        }
    }

    fn is_all_fetched(&self) -> bool {
        self.open == 0
            && self.to_list.is_empty()
            && self.listings.is_empty()
            && self.queue.is_empty()
            && self.files.is_empty()
    }

    fn end(&mut self) {
        if self.stage != Stage::Ended {
            self.stage = Stage::Ended;
            self.events.push_back(DownloadEvent::Ended);
        }
    }

    fn handle_reply(&mut self, channel: usize, asked: Asked, reply: Reply) {
        match asked {
            Asked::Expand { source } => self.handle_expanded(&source, reply),
            Asked::Source {
                path,
                local,
                pattern,
            } => self.handle_source(path, local, pattern, reply),
            Asked::Listing { id, step } => self.handle_listing(id, step, reply),
            Asked::Unknown {
                remote,
                local,
                below,
            } => self.handle_unknown(remote, local, below, reply),
            Asked::File { file, step } => self.handle_file(channel, file, step, reply),
            Asked::Link { remote, local } => self.handle_link(remote, local, reply),
        }
    }

    /// Asks on the first channel, where everything goes that is about no contents.
    fn ask(&mut self, request: Request<'_>, asked: Asked) {
        self.channels[0].client.request(request, asked);
    }

    fn id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    fn done(&mut self, path: Vec<u8>, unchanged: bool) {
        match unchanged {
            true => self.tally.unchanged += 1,
            false => self.tally.done += 1,
        }
        self.events
            .push_back(DownloadEvent::Done { path, unchanged });
    }

    fn failed(&mut self, path: Vec<u8>, trouble: Trouble) {
        self.tally.failed += 1;
        self.events
            .push_back(DownloadEvent::Failed { path, trouble });
    }
}

impl Channel {
    fn new() -> Channel {
        Channel {
            client: Client::new(),
            in_flight: 0,
            files: 0,
            refused: false,
        }
    }
}

#[cfg(test)]
mod tests;
