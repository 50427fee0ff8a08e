//! A block device as the target: surveyed, claimed, and written from its beginning to its end by dd(1) in a session of its own
//! (`session`), or over SFTP where the host runs no such command (`sftp`). Nothing is made beside it and nothing renamed: what is
//! cut leaves it half-written.
//!
//! ```text
//! Survey -> open here -> Claim -> Session -> Write -> check here -> Settle
//!                                    \__________________________ over SFTP: the same with an fsync
//! ```
//!
//! The claim is the kernel's: it gives the device, opened with O_EXCL, to nobody while it is mounted, swapped to, or part of a
//! RAID or a volume group, and lets nobody mount it while we have it. dd opens it beside that.

mod contents;
mod session;
mod sftp;

use std::collections::VecDeque;

use sshoal_journal::Segments;

use super::{Asked, Kind, Opened, Phase, Upload, UploadNeed};
use crate::device::{Device, Segment, Session, Survey, SurveyStep};
use crate::owners::Owners;
use crate::sftp::{Attributes, Handle, Open, Reply, Request, SharedOctets, Status, StatusCode};
use crate::{Remote, Trouble, Verify};
use contents::Contents;
pub(super) use session::command;

/// The only entry.
const IMAGE: usize = 0;

/// A block device that is being written.
pub(super) struct DevicePut {
    path: Vec<u8>,
    stage: Stage,
    survey: Survey,
    device: Device,
    /// Octets of the device.
    room: u64,
    /// What keeps others away.
    claim: Option<Handle>,
    session: Option<Session>,
    /// Whether the image is open here.
    is_open: bool,
    contents: Contents,
    /// What the session has been told to write, and not confirmed.
    segments: VecDeque<Segment>,
    written: Segments,
    /// Octets that are told to have arrived.
    moved: u64,
    /// Requests without a reply.
    unanswered: usize,
    /// What has failed while it is found out what is on the medium.
    failing: Option<Trouble>,
    trouble: Option<Trouble>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Survey,
    OpenHere,
    Claim,
    /// A session is opened, and has yet to say that it writes.
    Session,
    Write(Way),
    /// A write over SFTP has failed.
    Prove,
    CheckHere,
    Settle,
    CleanUp,
    Over,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    Session,
    Sftp,
}

/// What a request about a device was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeviceStep {
    Survey(SurveyStep),
    Claim,
    Write {
        offset: u64,
        octets: u32,
    },
    Sync,
    Prove,
    /// The answer does not matter.
    Close,
}

impl DevicePut {
    fn new(path: Vec<u8>, kind: &Kind, block: usize, ahead: usize) -> DevicePut {
        let size = match kind {
            Kind::File { size } | Kind::Device { size } => Some(*size),
            _ => None,
        };
        DevicePut {
            stage: Stage::Survey,
            survey: Survey::whole(&path),
            path,
            device: Device::default(),
            room: 0,
            claim: None,
            session: None,
            is_open: false,
            contents: Contents::new(size, block, ahead),
            segments: VecDeque::new(),
            written: Segments::default(),
            moved: 0,
            unanswered: 0,
            failing: None,
            trouble: None,
        }
    }

    /// Octets from the beginning that are written for certain.
    fn written_to(&self) -> u64 {
        let first = self.written.iter().next();
        let first = first.filter(|it| it.start == 0 && self.failing.is_none());
        first.map_or(0, |it| it.end)
    }
}

impl Upload {
    /// What a block device is left as if nothing more is done, if anything has been written to it and not all of it.
    pub fn half_written(&self) -> Option<Trouble> {
        let device = self.device.as_ref()?;
        let is_half = device.contents.has_begun() && device.stage < Stage::CheckHere;
        is_half.then(|| Trouble::DeviceHalfWritten {
            at: device.written_to(),
            why: "the transfer was cut".to_owned(),
        })
    }

    /// The target is a block device.
    pub(super) fn begin_device(&mut self) {
        let plan = self.plan.clone();
        let path = self.roots[0].clone();
        let refusal = match plan.hashing.verifies {
            _ if plan.owners != Owners::Makers => Some(Trouble::DeviceOwner),
            _ if !plan.writes_devices => Some(Trouble::DeviceNotConfirmed),
            Verify::Always => Some(Trouble::DeviceNotVerified),
            _ => None,
        };
        if let Some(trouble) = refusal {
            self.failed(path, trouble);
            self.left = 0;
            self.phase = Phase::Ended;
            return;
        }
        let kind = &plan.entries[IMAGE].kind;
        let device = DevicePut::new(path, kind, plan.block, plan.ahead);
        self.device = Some(Box::new(device));
        (self.phase, self.next) = (Phase::Device, 0);
    }

    /// Does what can be done now.
    pub(super) fn write_device(&mut self) {
        while let Some(stage) = self.device.as_ref().map(|it| it.stage) {
            self.go_on_with_device();
            if self.device.as_ref().is_none_or(|it| it.stage == stage) {
                break;
            }
        }
    }

    fn go_on_with_device(&mut self) {
        let Some(device) = &mut self.device else {
            return;
        };
        while let Some((step, question)) = device.survey.poll_question() {
            device.unanswered += 1;
            let asked = Asked::Device(DeviceStep::Survey(step));
            self.channels[0].client.request(question.request(), asked);
        }
        match device.stage {
            Stage::Survey if device.survey.is_over() => self.judge_device(),
            Stage::Session if device.cannot_have_session() => {
                device.stage = Stage::Write(Way::Sftp);
            }
            Stage::Write(way) => {
                self.read_for_device();
                match way {
                    Way::Session => self.feed_session(),
                    Way::Sftp => self.write_over_sftp(),
                }
            }
            Stage::Settle | Stage::CleanUp if device.unanswered == 0 => self.end_device(),
            _ => {}
        }
    }

    /// Everything is known of the device.
    fn judge_device(&mut self) {
        let Some(it) = &mut self.device else { return };
        it.device = it.survey.device();
        match it.device.admits(it.contents.size()) {
            Err(trouble) => self.fail_device(trouble),
            Ok(room) => {
                it.room = room;
                it.stage = Stage::OpenHere;
                self.needs.push_back(UploadNeed::Open { entry: IMAGE });
            }
        }
    }

    /// The answer to [`UploadNeed::Open`].
    pub(super) fn device_opened(&mut self, opened: Result<Opened, String>) {
        let Some(it) = &mut self.device else { return };
        match opened {
            Ok(_) if it.stage != Stage::OpenHere => {
                self.needs.push_back(UploadNeed::Release { entry: IMAGE });
            }
            Ok(opened) => {
                it.is_open = true;
                it.contents.set_size(opened.size);
                match it.device.admits(opened.size) {
                    Ok(_) => self.claim_device(),
                    Err(trouble) => self.fail_device(trouble),
                }
            }
            Err(error) => {
                let doing = "opening";
                self.fail_device(Trouble::Local { doing, error });
            }
        }
        self.advance();
    }

    fn claim_device(&mut self) {
        let Some(it) = &mut self.device else { return };
        it.stage = Stage::Claim;
        let path = it.path.clone();
        let request = Request::Open {
            path: &path,
            how: Open::Claim,
            attributes: Attributes::default(),
        };
        self.ask_device(request, DeviceStep::Claim);
    }

    fn ask_device(&mut self, request: Request<'_>, step: DeviceStep) {
        if let Some(it) = &mut self.device {
            it.unanswered += 1;
            let asked = Asked::Device(step);
            self.channels[0].client.request(request, asked);
        }
    }

    pub(super) fn handle_device(&mut self, step: DeviceStep, reply: Reply) {
        let Some(it) = &mut self.device else { return };
        it.unanswered -= 1;
        let refused = match &reply {
            Reply::Status(status) if status.code != StatusCode::Ok => Some(status.clone()),
            _ => None,
        };
        match (step, reply, refused) {
            (DeviceStep::Survey(step), reply, _) => it.survey.handle(step, reply),
            (DeviceStep::Claim, Reply::Handle(handle), _) => {
                it.claim = Some(handle);
                match it.stage {
                    Stage::Claim => it.stage = Stage::Session,
                    _ => self.release_device(),
                }
            }
            (DeviceStep::Claim, _, Some(status)) => self.handle_not_claimed(&status),
            (DeviceStep::Write { .. }, _, Some(status)) => {
                self.prove_before_failing(Trouble::remote("writing", &status));
            }
            (DeviceStep::Write { offset, octets }, _, None) => {
                it.written.insert(offset..offset + u64::from(octets));
                let to = it.written.octets();
                self.device_moved(to);
            }
            (DeviceStep::Sync, _, Some(status)) => {
                // What the kernel took may be lost.
                it.written = Segments::default();
                self.fail_device(Trouble::remote("writing to the disk", &status));
            }
            (DeviceStep::Prove, _, refused) => self.fail_as_proven(refused.is_none()),
            (DeviceStep::Sync, _, None) => self.check_image(),
            (DeviceStep::Claim | DeviceStep::Close, ..) => {}
        }
    }

    /// The kernel does not give it: EBUSY has no code of its own in version 3.
    fn handle_not_claimed(&mut self, status: &Status) {
        let trouble = match Remote::of(status) {
            Remote::Said(said) => Trouble::DeviceInUse(format!(
                "the kernel does not give it to one program alone ({said}); something holds it"
            )),
            _ => Trouble::remote("opening the block device", status),
        };
        self.fail_device(trouble);
    }

    /// All is on the device; asks whether it is what was to be there.
    fn check_image(&mut self) {
        if let Some(it) = &mut self.device
            && matches!(it.stage, Stage::Write(_))
        {
            it.stage = Stage::CheckHere;
            // The answer to this need closes it.
            it.is_open = false;
            self.needs.push_back(UploadNeed::Check {
                entry: IMAGE,
                hashes: false,
            });
        }
    }

    /// The answer to [`UploadNeed::Check`].
    pub(super) fn device_checked(&mut self, is_same: Result<bool, String>) {
        if self
            .device
            .as_ref()
            .is_some_and(|it| it.stage == Stage::CheckHere)
        {
            match is_same {
                Ok(true) => {
                    if let Some(it) = &mut self.device {
                        it.stage = Stage::Settle;
                    }
                    self.release_device();
                }
                Ok(false) => self.fail_device(Trouble::Changed),
                Err(error) => {
                    let doing = "looking at it again";
                    self.fail_device(Trouble::Local { doing, error });
                }
            }
        }
        self.advance();
    }

    /// Gives the claim back.
    fn release_device(&mut self) {
        let claim = self.device.as_mut().and_then(|it| it.claim.take());
        if let Some(handle) = claim {
            self.ask_device(Request::Close { handle: &handle }, DeviceStep::Close);
        }
    }

    /// Stops. What has been written stays.
    pub(super) fn fail_device(&mut self, trouble: Trouble) {
        let Some(it) = &mut self.device else { return };
        let is_too_late = it.stage >= Stage::CheckHere && trouble == Trouble::Interrupted;
        if it.stage >= Stage::CleanUp || is_too_late {
            return;
        }
        // What failed first is told, and nobody waits any more for what is proven.
        let failed = it.failing.take();
        if failed.is_some() {
            it.written = Segments::default();
        }
        let trouble = failed.unwrap_or(trouble);
        it.trouble = Some(match it.contents.has_begun() {
            true => Trouble::DeviceHalfWritten {
                at: it.written_to(),
                why: trouble.to_string(),
            },
            false => trouble,
        });
        it.stage = Stage::CleanUp;
        if let Some(session) = &mut it.session {
            session.cut();
        }
        if std::mem::take(&mut it.is_open) {
            self.needs.push_back(UploadNeed::Release { entry: IMAGE });
        }
        self.release_device();
    }

    fn end_device(&mut self) {
        let Some(it) = &mut self.device else { return };
        it.stage = Stage::Over;
        let (path, trouble) = (it.path.clone(), it.trouble.take());
        self.left = 0;
        match trouble {
            Some(trouble) => self.failed(path, trouble),
            None => self.done(IMAGE, false),
        }
        self.phase = Phase::Ended;
    }

    /// So many octets are known to have arrived.
    fn device_moved(&mut self, to: u64) {
        let Some(it) = &mut self.device else { return };
        let octets = to.saturating_sub(it.moved);
        it.moved += octets;
        if octets > 0 {
            self.left = self.left.saturating_sub(octets);
            self.moved(octets);
        }
    }

    /// The answer to [`UploadNeed::Read`].
    pub(super) fn device_data(
        &mut self,
        offset: u64,
        wanted: usize,
        data: Result<SharedOctets, String>,
    ) {
        let Some(it) = &mut self.device else { return };
        let taken = it.contents.take(offset, wanted, data);
        if matches!(it.stage, Stage::Write(_)) {
            let most = it.contents.known_to();
            let too_large = Trouble::DeviceTooSmall {
                image: most,
                size: it.room,
            };
            match taken {
                Err(trouble) => self.fail_device(trouble),
                Ok(()) if most > it.room => self.fail_device(too_large),
                Ok(()) => {}
            }
        }
        self.advance();
    }

    /// Asks for what is to be written next.
    fn read_for_device(&mut self) {
        let Some(it) = &mut self.device else { return };
        let waiting = match &it.session {
            Some(session) => session.transmit().len(),
            None => self.channels[0].client.waiting(),
        };
        let large = it.device.geometry().large();
        while let Some((offset, len)) = it.contents.next_read(waiting, large) {
            self.needs.push_back(UploadNeed::Read {
                entry: IMAGE,
                channel: 0,
                writer: 0,
                offset,
                len,
            });
        }
    }
}

#[cfg(test)]
mod tests;
