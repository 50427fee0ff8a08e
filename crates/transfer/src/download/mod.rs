//! Fetches what one host has into a folder of this machine's.
//!
//! `sources` finds out what the user means, `lookups` what that is, `claims` which of several things gets a place here. `walk` lists
//! folders, within `limits`, `owners` finds out whom things belong to. `small` fetches small files in batches, `files` all others: their
//! octets in `contents`, their ends in `settling`; a block device is one whose size `device` has found out. `ending` makes links, the
//! last ones when nothing is written any more, and gives folders their modes and times, after `deleting` has had deleted what is surplus;
//! `telling` says what became of all.

mod claims;
mod contents;
mod deleting;
mod device;
mod ending;
mod files;
mod hashes;
mod limits;
mod lookups;
mod lost;
mod owners;
mod plan;
mod settling;
mod small;
mod sources;
mod telling;
mod walk;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::channels::Channels;
use crate::device::{Survey, SurveyStep};
use crate::hashing::HostHashes;
use crate::owners::{ListStep, Owner};
use crate::sftp::{Attributes, Pieces, Reply, Request, SftpError};
use crate::surplus::SurplusHere;
use crate::{Tally, Trouble};
use claims::Claims;
use ending::EndingFolder;
use files::{File, FileStep};
use limits::{Held, Limits, Octets};
use lookups::Lookups;
use owners::Accounts;
use small::Small;
use sources::Search;
use walk::{Listing, ListingStep};

pub use limits::{MAX_FOLDERS, MAX_HELD, MAX_KEPT, MAX_NAMES};
pub use plan::{Begun, DownloadEvent, DownloadNeed, DownloadPlan, Fetched, LocalFile};
pub use small::{FetchedSmall, SmallLook, SmallNeed, SmallNumber, SmallPart};

/// A download from one host.
pub struct Download {
    plan: Arc<DownloadPlan>,
    channels: Channels<Asked, Flight>,
    stage: Stage,
    limits: Limits,
    /// Octets of what is on its way, and of what is kept longer.
    held: Octets,
    kept: Octets,
    claims: Claims,
    lookups: Lookups,
    /// Folders that are to be listed, the last one first.
    to_list: Vec<Listing>,
    listings: HashMap<u64, Listing>,
    /// Patterns that are looked for.
    searches: HashMap<Vec<u8>, Search>,
    /// Block devices whose sizes are being found out.
    surveys: HashMap<u64, (Item, Survey)>,
    queue: VecDeque<Item>,
    small: Small,
    files: HashMap<LocalFile, File>,
    hashes: HostHashes,
    accounts: Accounts,
    /// What is surplus here, if that matters.
    surplus: Option<SurplusHere>,
    links: Vec<Item>,
    /// Links that are being made.
    linking: usize,
    /// Folders that are to get something at the end.
    folders: Vec<EndingFolder>,
    /// Paths of those that are getting it and whose listings have failed.
    failed_folders: Vec<Vec<u8>>,
    /// How deep those are that are getting it.
    depth: usize,
    /// Questions about sources, links and folders without an answer, of the server or of this machine.
    open: usize,
    next_id: u64,
    needs: VecDeque<DownloadNeed>,
    events: VecDeque<DownloadEvent>,
    tally: Tally,
    /// Failures that have been told one by one.
    told: usize,
    left: u64,
    interrupted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Sources,
    Files,
    Links,
    Deleting,
    Folders,
    Ended,
}

/// Something on the host, and where it goes.
#[derive(Debug)]
struct Item {
    remote: Vec<u8>,
    /// Relative to the host's folder.
    local: Vec<u8>,
    /// Relative to the source that it was found below.
    below: Vec<u8>,
    attributes: Attributes,
    held: Held,
}

/// What a channel has under way.
#[derive(Default)]
struct Flight {
    /// Octets asked for and not written yet.
    in_flight: usize,
}

/// What a request was for.
#[derive(Debug)]
enum Asked {
    Expand {
        source: Vec<u8>,
    },
    Source {
        item: Item,
        /// The one that led to it.
        pattern: Option<Vec<u8>>,
    },
    Listing {
        id: u64,
        step: ListingStep,
    },
    Device {
        id: u64,
        step: SurveyStep,
    },
    Listed(Item),
    File {
        file: LocalFile,
        step: FileStep,
    },
    Link {
        remote: Vec<u8>,
        local: Vec<u8>,
        owner: Owner,
    },
    AccountNames,
    AccountList(ListStep),
    Small {
        id: u64,
    },
}

impl Download {
    /// A download over one channel, the first; its number is 0.
    pub fn new(plan: Arc<DownloadPlan>) -> Download {
        let mut hashes = HostHashes::new();
        if plan.hashing.is_used() {
            hashes.want();
        }
        let surplus = deleting::surplus(&plan);
        Download {
            small: Small::new(&plan),
            plan,
            hashes,
            accounts: Accounts::default(),
            channels: Channels::new(),
            stage: Stage::Sources,
            limits: Limits::default(),
            held: Octets::default(),
            kept: Octets::default(),
            claims: Claims::default(),
            lookups: Lookups::default(),
            to_list: Vec::new(),
            listings: HashMap::new(),
            searches: HashMap::new(),
            surveys: HashMap::new(),
            queue: VecDeque::new(),
            files: HashMap::new(),
            surplus,
            links: Vec::new(),
            linking: 0,
            folders: Vec::new(),
            failed_folders: Vec::new(),
            depth: 0,
            open: 0,
            next_id: 0,
            needs: VecDeque::new(),
            events: VecDeque::new(),
            tally: Tally::default(),
            told: 0,
            left: 0,
            interrupted: false,
        }
    }

    /// One more channel; returns its number.
    pub fn add_channel(&mut self) -> usize {
        self.channels.add()
    }

    /// The same for a channel of another connection to the same server, which has started there.
    pub fn join_channel(&mut self) -> usize {
        self.channels.join()
    }

    /// The server has refused a further channel: it is done without.
    pub fn refuse_channel(&mut self, channel: usize) {
        self.channels.refuse(channel);
    }

    /// Octets of contents that are still to be fetched, as far as is known.
    pub fn octets_left(&self) -> u64 {
        self.left
    }

    /// The same without what goes by streams.
    pub fn octets_left_for_channels(&self) -> u64 {
        self.left.saturating_sub(self.small.octets_left())
    }

    /// How far it is.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// It is so late, by any clock that does not go backwards: how much is to be under way is found out by it.
    pub fn set_time(&mut self, now: Duration) {
        self.channels.set_time(now);
    }

    /// Takes what came on a channel.
    ///
    /// # Errors
    ///
    /// The server breaks the protocol: the download is over.
    pub fn handle_input(&mut self, channel: usize, input: &[u8]) -> Result<(), SftpError> {
        self.channels.handle_input(channel, input)?;
        while let Some((asked, reply)) = self.channels.poll_reply(channel) {
            self.handle_reply(channel, asked, reply);
        }
        self.advance();
        Ok(())
    }

    /// Octets for a channel.
    pub fn transmit(&self, channel: usize) -> Pieces<'_> {
        self.channels.transmit(channel)
    }

    /// How many there are.
    pub fn waiting(&self, channel: usize) -> usize {
        self.channels.waiting(channel)
    }

    /// So many of them have left.
    pub fn transmitted(&mut self, channel: usize, octets: usize) {
        self.channels.transmitted(channel, octets);
    }

    /// What is needed of this machine.
    pub fn poll_need(&mut self) -> Option<DownloadNeed> {
        self.needs.pop_front()
    }

    /// The answer to a need.
    pub fn provide(&mut self, fetched: Fetched) {
        match fetched {
            Fetched::Folder { id, made } => self.handle_folder(id, made),
            Fetched::Accounts { users, groups } => self.handle_accounts(users, groups),
            Fetched::Compared { file, hash } => self.handle_compared(file, hash),
            Fetched::Touched { file, touched } => self.handle_touched(file, touched),
            Fetched::Hashed { file, hash } => self.handle_hashed(file, hash),
            Fetched::Begun { file, begun } => self.handle_begun(file, begun),
            Fetched::Written {
                file,
                channel,
                octets,
                written,
            } => self.handle_written(file, channel, octets, written),
            Fetched::Finished { file, finished } => self.handle_finished(file, finished),
            Fetched::Linked { path, linked } => self.handle_linked(path, linked),
            Fetched::Deleted { deleted, failed } => self.handle_deleted(deleted, failed),
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
        self.channels.await_server() || self.awaits_batch()
    }

    /// Whether replies are waited for on a channel.
    pub fn awaits(&self, channel: usize) -> bool {
        self.channels.awaits(channel)
    }

    /// Begins nothing more, and cleans up what is half done.
    pub fn interrupt(&mut self) {
        self.interrupted = true;
        self.queue.clear();
        self.to_list.clear();
        self.forget_names();
        self.lookups.interrupt();
        self.links.clear();
        self.folders.clear();
        self.accounts.interrupt();
        let mut files: Vec<LocalFile> = self.files.keys().copied().collect();
        files.sort_unstable();
        for file in files {
            self.fail_file(file, Trouble::Interrupted);
        }
        self.interrupt_small();
        if !self.channels.are_ready() {
            self.end();
        }
        self.hashes.close("it was interrupted");
        self.advance();
    }

    /// Does what can be done now.
    fn advance(&mut self) {
        if !self.channels.are_ready() {
            return;
        }
        self.take_hashes();
        self.go_through_stages();
        self.hashes.flush();
    }

    fn go_through_stages(&mut self) {
        loop {
            let stage = self.stage;
            match stage {
                Stage::Sources if !self.has_hashes() => return,
                Stage::Sources => self.ask_for_sources(),
                Stage::Files => {
                    self.list_folders();
                    self.look_up();
                    self.make_spare_links();
                    self.fetch_small();
                    self.fetch_files();
                    if self.is_all_fetched() {
                        self.stage = Stage::Links;
                    }
                }
                Stage::Links => self.make_links(),
                Stage::Deleting => self.delete_surplus(),
                Stage::Folders => self.finish_folders(),
                Stage::Ended => {}
            }
            if self.stage == stage {
                return;
            }
        }
    }

    /// Whether no more will be found.
    fn is_all_listed(&self) -> bool {
        self.open == 0
            && self.to_list.is_empty()
            && self.listings.is_empty()
            && self.lookups.waiting() == 0
    }

    fn is_all_fetched(&self) -> bool {
        self.is_all_listed()
            && self.queue.is_empty()
            && self.files.is_empty()
            && self.small.is_over()
    }

    fn handle_reply(&mut self, channel: usize, asked: Asked, reply: Reply) {
        match asked {
            Asked::Expand { source } => self.handle_expanded(&source, reply),
            Asked::Source { item, pattern } => self.handle_source(item, pattern, reply),
            Asked::Device { id, step } => self.handle_device(id, step, reply),
            Asked::Listing { id, step } => self.handle_listing(id, step, reply),
            Asked::Listed(item) => self.handle_listed(item, reply),
            Asked::File { file, step } => self.handle_file(channel, file, step, reply),
            Asked::Link {
                remote,
                local,
                owner,
            } => self.handle_link(remote, local, owner, reply),
            Asked::AccountNames => self.handle_account_names(reply),
            Asked::AccountList(step) => self.handle_account_list(step, reply),
            Asked::Small { id } => self.handle_small_seen_again(id, &reply),
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
}

#[cfg(test)]
mod claims_tests;
#[cfg(test)]
mod deleting_tests;
#[cfg(test)]
mod hashing_tests;
#[cfg(test)]
mod limits_tests;
#[cfg(test)]
mod owners_tests;
#[cfg(test)]
mod tests;
