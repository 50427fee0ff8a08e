//! Brings a list of local things to one host.
//!
//! The phases: `target` finds out where things go on this host, `owners` which numbers its users have, `folders` makes the folders
//! (`closed` opens those that are there and shut), `files` sends files (their
//! beginnings in `opening`, or in `resuming` where a part is there already, their octets in `contents`, their ends in
//! `settling` and `placing`), `links` makes symbolic and hard links, `deleting` removes what is surplus, and `folders` again gives folders their modes
//! and times. What fails is told and left out; the rest goes on. Where the target is a block device there is but `device` after `target`.

mod closed;
mod comparing;
mod contents;
mod deleting;
mod device;
mod files;
mod folders;
mod links;
mod lost;
mod need;
mod opening;
mod owners;
mod placing;
mod plan;
mod resuming;
mod settling;
mod small;
mod target;
mod verifying;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use sshoal_journal::Segments;

pub use need::{UploadEvent, UploadNeed};
pub use plan::{Entry, Kind, LeftOut, Opened, UploadPlan, UploadRoot};
pub use resuming::CHECKPOINT;
pub(crate) use small::FEWEST;
pub use small::{MAX_SMALL, Method, SmallFile, SmallGroup, SmallProblem};

use crate::channels::Channels;
use crate::hashing::HostHashes;
use crate::owners::ListStep;
use crate::part_name::{PartTag, part_name};
use crate::path::{MAX_PATH, join};
use crate::sftp::{Pieces, Reply, Request, SftpError, SharedOctets};
use crate::{MAX_TOLD, Remote, Tally, Trouble};
use closed::{Closed, Place};
use comparing::Comparison;
use deleting::{DeleteStep, Deleting};
use device::{DevicePut, DeviceStep};
use files::{File, FileStep};
use links::LinkStep;
use owners::OwnerBook;
use small::{Small, SmallStep};
use target::TargetStep;

/// Requests about folders and links in flight: what sftp-server does in a round trip of tens of milliseconds.
const SMALL_REQUESTS: usize = 512;

/// An upload to one host.
pub struct Upload {
    plan: Arc<UploadPlan>,
    tag: PartTag,
    /// What marks of parts are made of, and how many there have been.
    seed: Option<u64>,
    marks: u64,
    channels: Channels<Asked, Ahead>,
    phase: Phase,
    /// Where each root goes on this host.
    roots: Vec<Vec<u8>>,
    /// The next entry of this phase to look at.
    next: usize,
    /// Files that are being sent.
    files: HashMap<usize, File>,
    /// Folders that could not be made.
    broken: HashSet<usize>,
    /// Folders that were not there before.
    new_folders: HashSet<usize>,
    /// Folders that were, with the mode and the time that are to be kept.
    like_folders: HashSet<usize>,
    closed: HashMap<Place, Closed>,
    /// How often folders have been made again, below closed ones.
    folder_tries: HashMap<usize, usize>,
    /// What the host's file system told where the server had no word for it.
    found_out: Option<Remote>,
    small: Small,
    deleting: Deleting,
    /// Where the target is one.
    device: Option<Box<DevicePut>>,
    hashes: HostHashes,
    owners: OwnerBook,
    /// Those of links that are there.
    link_owners: HashMap<usize, (u32, u32)>,
    /// Why links did not get their names.
    refused_links: HashMap<usize, Trouble>,
    /// Files that are hashed at both ends before they are sent.
    comparisons: HashMap<usize, Comparison>,
    /// Files that failed: hard links to them fail, too.
    failed_files: HashSet<usize>,
    /// Hard links that wait for their phase, and links under way.
    links_open: usize,
    needs: VecDeque<UploadNeed>,
    proven: VecDeque<(usize, Segments)>,
    over: VecDeque<usize>,
    events: VecDeque<UploadEvent>,
    tally: Tally,
    /// Failures that have been told one by one, and those that have not.
    told: usize,
    untold: u64,
    /// Octets of files' contents that are still to be sent or found unchanged, as the plan has them.
    left: u64,
    /// Octets of files' contents that have been sent and not confirmed.
    on_the_way: u64,
    interrupted: bool,
    end_told: bool,
    /// Whether what was read last did not have to be waited for.
    reads_at_once: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Target,
    Device,
    /// Hashes must be had: the host has to say that it has them.
    Hashes,
    Owners,
    Folders,
    Files,
    Links,
    Deleting,
    FolderAttributes,
    Ended,
}

/// What is ready to be written to a channel.
#[derive(Default)]
struct Ahead {
    blocks: VecDeque<Block>,
    /// Blocks that are being read for it, or wait in `blocks`.
    ahead: usize,
    /// Octets that it has begun and that are not proven.
    unproven: u64,
}

/// Octets of a file that are to be written.
struct Block {
    entry: usize,
    writer: usize,
    offset: u64,
    data: SharedOctets,
    len: usize,
    /// Octets that are written already.
    written: usize,
}

/// What a request was for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Asked {
    Target(TargetStep),
    MakeFolder {
        entry: usize,
    },
    LookAtFolder {
        entry: usize,
        /// Why it could not be made, if it is not there.
        refused: Remote,
    },
    /// What the file system may have to do with it.
    ExplainFolder {
        entry: usize,
        refused: Remote,
    },
    FolderOpened {
        place: Place,
    },
    TargetClosed,
    FolderOwnerSeen {
        entry: usize,
    },
    FolderOwned {
        entry: usize,
    },
    FolderAttributes {
        entry: usize,
    },
    Accounts(ListStep),
    File {
        entry: usize,
        step: FileStep,
    },
    Link {
        entry: usize,
        step: LinkStep,
    },
    Small {
        entry: usize,
        step: SmallStep,
    },
    Device(DeviceStep),
    Delete {
        id: u64,
        step: DeleteStep,
    },
    Proof,
    /// The answer does not matter.
    Forget,
}

impl Upload {
    /// An upload over one channel, the first; its number is 0. `salt` tells this host's parts from those of others that
    /// may have the same file system.
    pub fn new(plan: Arc<UploadPlan>, salt: u32) -> Upload {
        let left = plan.octets();
        let tally = Tally {
            failed: plan.left_out.len() as u64,
            ..Tally::default()
        };
        let small = Small::new(&plan);
        let mut hashes = HostHashes::new();
        if plan.hashing.is_used() && plan.has_contents() {
            hashes.want();
        }
        Upload {
            tag: PartTag(plan.tag.0 ^ salt),
            seed: None,
            marks: 0,
            plan,
            channels: Channels::new(),
            phase: Phase::Target,
            roots: Vec::new(),
            next: 0,
            files: HashMap::new(),
            broken: HashSet::new(),
            new_folders: HashSet::new(),
            like_folders: HashSet::new(),
            closed: HashMap::new(),
            folder_tries: HashMap::new(),
            found_out: None,
            small,
            deleting: Deleting::default(),
            device: None,
            hashes,
            owners: OwnerBook::new(),
            link_owners: HashMap::new(),
            refused_links: HashMap::new(),
            comparisons: HashMap::new(),
            failed_files: HashSet::new(),
            links_open: 0,
            needs: VecDeque::new(),
            proven: VecDeque::new(),
            over: VecDeque::new(),
            events: VecDeque::new(),
            tally,
            told: 0,
            untold: 0,
            left,
            on_the_way: 0,
            interrupted: false,
            end_told: false,
            reads_at_once: false,
        }
    }

    /// What parts are marked by, so that further channels know them: a number that nobody can foresee, for this host alone.
    /// Without it, each file is sent by one channel.
    pub fn set_seed(&mut self, seed: u64) {
        self.seed = Some(seed);
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

    /// Octets of files' contents that are still to be sent or confirmed, as far as is known.
    pub fn octets_left(&self) -> u64 {
        self.left.saturating_add(self.on_the_way)
    }

    /// Octets that are still to be sent by channels, those of streams left out.
    pub fn octets_left_for_channels(&self) -> u64 {
        // A device is written from its beginning to its end, and by a session of its own.
        let may_be_device = self.phase == Phase::Target && self.plan.writes_devices;
        if may_be_device || self.phase == Phase::Device {
            return 0;
        }
        self.left.saturating_sub(self.small.octets_left)
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
    /// The server breaks the protocol: the upload is over.
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
        self.write_blocks(channel);
        self.advance();
    }

    /// Whether more octets for the channel are about to come without any of the server's: it may wait for them, so that
    /// packets are filled.
    pub fn is_about_to_send(&self, channel: usize) -> bool {
        let channel = &self.channels[channel];
        channel.work.ahead > 0 && !channel.client.is_full() && channel.client.has_room()
    }

    /// What is needed of this machine.
    pub fn poll_need(&mut self) -> Option<UploadNeed> {
        self.needs.pop_front()
    }

    /// An entry, and all that is proven by now to be in its part: to be noted, for a transfer that begins where this one was
    /// cut. Only of entries whose [`Opened::proven`] is given.
    pub fn poll_proven(&mut self) -> Option<(usize, Segments)> {
        self.proven.pop_front()
    }

    /// An entry of which something was to be noted, and that is in place or given up: nothing has to be known of it any more.
    pub fn poll_over(&mut self) -> Option<usize> {
        self.over.pop_front()
    }

    /// What became of things.
    pub fn poll_event(&mut self) -> Option<UploadEvent> {
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
        if !self.channels.are_ready() {
            self.phase = Phase::Ended;
            self.tell_end();
        }
        let mut entries: Vec<usize> = self.files.keys().copied().collect();
        entries.sort_unstable();
        for entry in entries {
            self.fail_file(entry, Trouble::Interrupted);
        }
        self.interrupt_small();
        self.fail_device(Trouble::Interrupted);
        self.hashes.close("it was interrupted");
        self.owners.close();
        self.advance();
    }

    /// Does what can be done now.
    fn advance(&mut self) {
        if !self.channels.are_ready() {
            return;
        }
        self.take_hashes();
        loop {
            let phase = self.phase;
            match phase {
                Phase::Target => self.find_target(),
                Phase::Device => self.write_device(),
                Phase::Hashes => self.await_hashes(),
                Phase::Owners => self.find_owners(),
                Phase::Folders => self.make_folders(),
                Phase::Files => self.send_files(),
                Phase::Links => self.make_links(),
                Phase::Deleting => self.delete_surplus(),
                Phase::FolderAttributes => self.finish_folders(),
                Phase::Ended => {}
            }
            if self.phase == phase {
                break;
            }
            self.next = 0;
        }
        self.hashes.flush();
        self.tell_end();
    }

    fn tell_end(&mut self) {
        if self.phase == Phase::Ended && !self.end_told {
            self.end_told = true;
            if self.untold > 0 {
                let (path, trouble) = (Vec::new(), Trouble::More(self.untold));
                self.events.push_back(UploadEvent::Failed { path, trouble });
            }
            self.events.push_back(UploadEvent::Ended);
        }
    }

    fn handle_reply(&mut self, channel: usize, asked: Asked, reply: Reply) {
        match asked {
            Asked::Target(step) => self.handle_target(step, reply),
            Asked::MakeFolder { entry } => self.handle_folder_made(entry, reply),
            Asked::LookAtFolder { entry, refused } => {
                self.handle_folder_seen(entry, refused, reply);
            }
            Asked::ExplainFolder { entry, refused } => {
                let why = match reply {
                    Reply::Filesystem(filesystem) => refused.explained(&filesystem),
                    _ => refused,
                };
                self.folder_not_made(entry, why);
            }
            Asked::FolderOpened { place } => self.handle_folder_opened(place, &reply),
            Asked::TargetClosed => self.handle_target_closed(&reply),
            Asked::FolderOwnerSeen { entry } => self.handle_folder_owner(entry, &reply),
            Asked::FolderOwned { entry } => self.handle_folder_owned(entry, &reply),
            Asked::FolderAttributes { entry } => self.handle_folder_finished(entry, reply),
            Asked::Accounts(step) => self.handle_list(step, reply),
            Asked::File { entry, step } => self.handle_file(channel, entry, step, reply),
            Asked::Link { entry, step } => self.handle_link(entry, step, reply),
            Asked::Small { entry, step } => self.handle_small(entry, step, reply),
            Asked::Device(step) => self.handle_device(step, reply),
            Asked::Delete { id, step } => self.handle_delete(id, step, reply),
            Asked::Proof => self.handle_proof(reply),
            Asked::Forget => {}
        }
    }

    /// Asks on the first channel, where everything goes that is about no contents.
    fn ask(&mut self, request: Request<'_>, asked: Asked) {
        self.channels[0].client.request(request, asked);
    }

    fn has_room(&self) -> bool {
        self.channels[0].client.pending() < SMALL_REQUESTS
    }

    /// Where an entry goes on the host: known from [`UploadNeed::Open`] on.
    pub fn path(&self, entry: usize) -> Vec<u8> {
        let entry = &self.plan.entries[entry];
        join(&self.roots[entry.root], &entry.path)
    }

    fn part(&self, path: &[u8]) -> Vec<u8> {
        part_name(path, self.tag)
    }

    /// Why an entry cannot even be begun.
    fn hindrance(&self, entry: usize) -> Option<Trouble> {
        let mut above = self.plan.entries[entry].folder;
        while let Some(folder) = above {
            if self.broken.contains(&folder) {
                return Some(Trouble::NoFolder);
            }
            above = self.plan.entries[folder].folder;
        }
        let entry = &self.plan.entries[entry];
        let len = self.roots[entry.root].len() + 1 + entry.path.len();
        (len > MAX_PATH).then_some(Trouble::TooLong)
    }

    fn done(&mut self, entry: usize, unchanged: bool) {
        match unchanged {
            true => self.tally.unchanged += 1,
            false => self.tally.done += 1,
        }
        self.events
            .push_back(UploadEvent::Done { entry, unchanged });
    }

    fn failed(&mut self, path: Vec<u8>, trouble: Trouble) {
        self.tally.failed += 1;
        match self.told < MAX_TOLD {
            true => {
                self.told += 1;
                self.events.push_back(UploadEvent::Failed { path, trouble });
            }
            false => self.untold += 1,
        }
    }

    fn moved(&mut self, octets: u64) {
        self.tally.octets += octets;
        self.events.push_back(UploadEvent::Moved(octets));
    }
}

#[cfg(test)]
mod closed_tests;
#[cfg(test)]
mod deleting_tests;
#[cfg(test)]
mod failing_tests;
#[cfg(test)]
mod hashing_tests;
#[cfg(test)]
mod lost_tests;
#[cfg(test)]
mod opening_tests;
#[cfg(test)]
mod owners_tests;
#[cfg(test)]
mod placing_tests;
#[cfg(test)]
mod resuming_tests;
#[cfg(test)]
pub(crate) mod tests;
