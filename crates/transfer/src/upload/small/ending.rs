//! The end of batches: named, or given up without a trace.

use super::stream::Stage;
use super::{REQUESTS, SmallStep, Verify, Way, is_small, manifest, proof};
use crate::path::join;
use crate::sftp::{Reply, Request, StatusCode};
use crate::upload::owners::{NO_OWNERS, Wanted};
use crate::upload::{Asked, Upload};
use crate::{Remote, Trouble};

impl Upload {
    /// A batch is on the disk, or is given up: what it was to bring goes over SFTP then, where failures have names.
    pub(super) fn batch_ended(&mut self, number: usize, is_whole: bool) {
        let it = &mut self.small.streams[number];
        let before = std::mem::replace(&mut it.stage, Stage::Over);
        if before == Stage::Over {
            return;
        }
        let entries = std::mem::take(&mut it.entries);
        let sizes = entries.iter().map(|&entry| self.plan.entries[entry].size());
        let octets: u64 = sizes.sum();
        self.on_the_way = self.on_the_way.saturating_sub(octets);
        if it.is_dropped || self.interrupted {
            self.small.unwanted.extend(entries);
        } else if is_whole {
            if it.has_manifest() {
                self.tally.verified += entries.len() as u64;
            } else if self.plan.hashing.verifies != Verify::Never && !entries.is_empty() {
                self.tally.why_unverified = self.hashes.why_over().or(self.tally.why_unverified);
            }
            self.small.arrived.extend(entries);
            if octets > 0 {
                self.moved(octets);
            }
        } else {
            self.small.for_sftp.extend(entries);
            self.not_taken(before);
        }
    }

    /// A stream that was never ready is one too many, or the first that shows that there can be none.
    fn not_taken(&mut self, stage: Stage) {
        let others = self.small.open();
        match stage {
            Stage::Opening | Stage::Greeted if others > 0 => self.small.filling = others,
            Stage::Opening | Stage::Greeted => {
                let has_worked = self.small.has_renamed || !self.small.arrived.is_empty();
                self.tally.why_no_batches =
                    (!has_worked).then_some("the host runs no tar for this account");
                self.close_streams();
            }
            _ => {
                self.tally.why_no_batches = Some("tar on the host did not unpack all of it");
                self.close_streams();
            }
        }
    }

    /// No more streams: what has not joined a batch goes over SFTP, what has is brought to its end.
    pub(super) fn close_streams(&mut self) {
        self.small.way = Way::Closed;
        let small = &mut self.small;
        for stream in small.streams.iter_mut() {
            match stream.stage {
                Stage::Filling if self.interrupted => stream.cut(),
                Stage::Filling => stream.complete(),
                Stage::Opening | Stage::Greeted => stream.stage = Stage::Over,
                Stage::Complete if self.interrupted => stream.is_dropped = true,
                Stage::Complete | Stage::Over => {}
            }
        }
        let ready = std::mem::take(&mut small.ready);
        if !self.interrupted {
            small
                .for_sftp
                .extend(ready.into_iter().map(|(entry, _)| entry));
            let entries = self.plan.entries.iter().enumerate().skip(small.next);
            let rest = entries.filter(|(_, entry)| is_small(entry, self.plan.preserve));
            small.for_sftp.extend(rest.map(|(number, _)| number));
        }
        small.next = self.plan.entries.len();
        small.octets_left = 0;
        self.remove_proof();
    }

    pub(super) fn remove_proof(&mut self) {
        if std::mem::take(&mut self.small.proof_made) {
            let path = join(&self.small.base, &proof(self.tag));
            self.small.asked += 1;
            let step = SmallStep::RemoveProof;
            self.ask(
                Request::Remove { path: &path },
                Asked::Small { entry: 0, step },
            );
        }
    }

    /// Gives files that are on the disk their names, and has parts that nobody wants removed.
    pub(super) fn name_small(&mut self) {
        while self.channels[0].client.pending() < REQUESTS {
            if let Some(entry) = self.small.unwanted.pop_front() {
                let part = self.part(&self.path(entry));
                self.ask_small(entry, SmallStep::Remove, Request::Remove { path: &part });
            } else if let Some(entry) = self.small.arrived.pop_front() {
                self.small.has_renamed = true;
                self.own_small(entry, None);
            } else {
                return;
            }
        }
    }

    /// Sets the owner of what is unpacked, then its name: tar(1) gives everything to the account. `has`: whom the part belongs to,
    /// if that has been looked at.
    fn own_small(&mut self, entry: usize, has: Option<(u32, u32)>) {
        let to = self.path(entry);
        let from = self.part(&to);
        let (step, request) = match self.owner_of_part(entry, has) {
            Wanted::Nothing => return self.rename_small(entry),
            Wanted::Look => (SmallStep::LookAtOwner, Request::Lstat { path: &from }),
            Wanted::Set(owner) => (SmallStep::Own, self.own(&from, owner)),
        };
        self.ask_small(entry, step, request);
    }

    fn rename_small(&mut self, entry: usize) {
        let to = self.path(entry);
        let from = self.part(&to);
        let (from, to) = (&from, &to);
        self.ask_small(entry, SmallStep::Rename, Request::PosixRename { from, to });
    }

    pub(super) fn handle_small_owner(&mut self, entry: usize, step: SmallStep, reply: &Reply) {
        let trouble = match reply {
            Reply::Attributes(part) if part.owner.is_some() => {
                return self.own_small(entry, part.owner);
            }
            Reply::Status(status) => match status.code {
                StatusCode::Ok => return self.rename_small(entry),
                // Another program has tidied up.
                StatusCode::NoSuchFile => return self.small.for_sftp.push_back(entry),
                _ if step == SmallStep::Own => self.owner(entry).refused(status),
                _ => Trouble::remote("looking at its owner", status),
            },
            _ => Trouble::Remote {
                doing: "looking at its owner",
                why: Remote::Unsupported(NO_OWNERS.to_owned()),
            },
        };
        self.small.unwanted.push_back(entry);
        self.failed_files.insert(entry);
        self.failed(self.path(entry), trouble);
    }

    /// An archive with nothing in it brings the new names to the disk.
    pub(super) fn sync_names(&mut self) {
        let proof = proof(self.tag);
        let manifest = manifest(self.tag, self.small.streams.len());
        match self.small.streams.last_mut() {
            Some(it) if it.stage == Stage::Opening => {
                it.greet(&self.small.base, &proof, &manifest);
            }
            Some(it) if it.stage == Stage::Filling => {
                it.complete();
                self.close_streams();
            }
            _ => {}
        }
    }

    pub(in crate::upload) fn interrupt_small(&mut self) {
        if matches!(self.small.way, Way::Undecided) {
            self.small.way = Way::Unused;
        } else if self.small.way != Way::Unused {
            self.close_streams();
            self.small.for_sftp.clear();
            let arrived = std::mem::take(&mut self.small.arrived);
            self.small.unwanted.extend(arrived);
        }
    }
}
