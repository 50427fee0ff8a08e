//! Writing a device over SFTP, through the kernel's memory: in whole aligned blocks, too, so that nothing is read.

use std::ops::Range;

use sshoal_journal::Segments;

use super::{DeviceStep, Stage, Upload, Way};
use crate::Trouble;
use crate::sftp::{Extension, Request, SharedOctets};
use crate::upload::files::QUEUED;

/// What every write is a multiple of, but for the last one: a page, the kernel's own block.
const PAGE: u64 = 4096;

impl Upload {
    /// Puts what has been read into the channel's queue while that is short.
    pub(super) fn write_over_sftp(&mut self) {
        let Some(it) = &mut self.device else { return };
        let Some(handle) = it.claim.clone() else {
            return;
        };
        let client = &mut self.channels[0].client;
        let physical = it.device.geometry().physical();
        let most = u64::from(client.limits().write);
        let unit = [physical, PAGE]
            .into_iter()
            .filter(|unit| *unit <= most)
            .max();
        let most = unit.map_or(most, |unit| most / unit * unit);
        while client.waiting() < QUEUED && !client.is_full() && client.has_room() {
            let offset = it.contents.put;
            let write = |octets: &SharedOctets, range: Range<usize>| {
                let step = DeviceStep::Write {
                    offset,
                    octets: range.len() as u32,
                };
                let part = (octets.clone(), range);
                client.write(&handle, offset, part, super::Asked::Device(step));
            };
            match it.contents.hand_on(most, write) {
                Some(_) => it.unanswered += 1,
                None => break,
            }
        }
        if it.contents.is_over() && it.unanswered == 0 && it.stage == Stage::Write(Way::Sftp) {
            match self.channels[0].client.has(Extension::Fsync) {
                true => self.ask_device(Request::Fsync { handle: &handle }, DeviceStep::Sync),
                // The last one who closes it waits for it.
                false => self.check_image(),
            }
        }
    }
    /// A write has failed. What the kernel took before counts only if it gets to the medium.
    pub(super) fn prove_before_failing(&mut self, trouble: Trouble) {
        let Some(it) = &mut self.device else { return };
        if it.stage != Stage::Write(Way::Sftp) {
            return;
        }
        it.stage = Stage::Prove;
        it.failing = Some(trouble);
        let can_prove = self.channels[0].client.has(Extension::Fsync);
        match it.claim.clone().filter(|_| can_prove) {
            Some(handle) => self.ask_device(Request::Fsync { handle: &handle }, DeviceStep::Prove),
            None => self.fail_as_proven(false),
        }
    }

    /// What has been written is on the medium, or not.
    pub(super) fn fail_as_proven(&mut self, is_proven: bool) {
        let Some(it) = &mut self.device else { return };
        if !is_proven {
            it.written = Segments::default();
        }
        if let Some(trouble) = it.failing.take() {
            self.fail_device(trouble);
        }
    }
}
