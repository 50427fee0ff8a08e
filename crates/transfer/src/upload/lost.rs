//! A channel whose connection has ended: what it had to do goes to others.

use super::files::{FileStep, Stage};
use super::opening::Mark;
use super::settling::CLOSING;
use super::{Asked, Upload};
use crate::ranges::Span;
use crate::sftp::Request;

/// The channel that gets the files of one that was lost.
const HEIR: usize = 0;

impl Upload {
    /// Whether the server has begun to speak SFTP on the first channel.
    pub fn has_begun(&self) -> bool {
        self.channels.are_ready()
    }

    /// A channel's connection has ended. What the server has not confirmed goes to others; a file that the channel had
    /// begun is taken over by the first one, which must not be lost.
    pub fn lose_channel(&mut self, channel: usize) {
        let unanswered = self.channels.lose(channel);
        let work = &mut self.channels[channel].work;
        let blocks = std::mem::take(&mut work.blocks);
        work.ahead -= blocks.len();
        for block in blocks {
            if let Some(file) = self.files.get_mut(&block.entry) {
                file.writers[block.writer].open -= 1;
                let rest = block.len - block.written;
                let at = block.offset + block.written as u64;
                file.give_back(Span::new(at, rest as u64));
            }
        }
        for asked in unanswered {
            if let Asked::File { entry, step } = asked {
                self.take_back(entry, step);
            }
        }
        let mut entries: Vec<usize> = self.files.keys().copied().collect();
        entries.sort_unstable();
        for entry in entries {
            self.leave_channel(entry, channel);
        }
        self.advance();
    }

    /// A request of which nobody knows whether it was carried out.
    fn take_back(&mut self, entry: usize, step: FileStep) {
        self.arrived(step);
        let Some(file) = self.files.get_mut(&entry) else {
            return;
        };
        file.unanswered -= 1;
        if let FileStep::Write {
            writer,
            offset,
            octets,
        } = step
        {
            file.writers[writer].open -= 1;
            file.give_back(Span::new(offset, octets.into()));
            self.left += u64::from(octets);
        }
        if step == FileStep::Checkpoint {
            file.forget_checkpoint();
        }
        // What matters was asked on one channel, whoever owns the file.
        let is_closing = step == FileStep::Settle(CLOSING);
        let is_settling = matches!(
            step,
            FileStep::Settle(_) | FileStep::LookAtPart | FileStep::Own
        ) && !is_closing;
        let is_awaited = matches!(file.stage, Stage::Settle | Stage::SetMode);
        if is_settling && is_awaited && !self.channels.is_lost(file.channel) {
            self.reopen(entry);
        }
    }

    /// A file goes on without a channel.
    fn leave_channel(&mut self, entry: usize, channel: usize) {
        let Some(file) = self.files.get_mut(&entry) else {
            return;
        };
        for writer in 0..file.writers.len() {
            let it = &mut file.writers[writer];
            if it.channel == channel {
                (it.handle, it.unknown, it.is_opening) = (None, None, false);
                self.channels[channel].work.unproven -= it.unproven.give_back();
                let span = std::mem::take(&mut it.span);
                file.give_back(span);
            }
        }
        if file.channel == channel {
            file.channel = HEIR;
            if let Some(first) = file.writers.first_mut() {
                let unproven = first.unproven.octets();
                self.channels[first.channel].work.unproven -= unproven;
                self.channels[HEIR].work.unproven += unproven;
                first.channel = HEIR;
            }
            self.channels[channel].files -= 1;
            self.channels[HEIR].files += 1;
            self.inherit(entry);
        } else {
            self.see_who_writes(entry);
        }
        self.go_on(entry);
    }

    /// Asks again for what the file waited for.
    fn inherit(&mut self, entry: usize) {
        let Some(file) = self.files.get_mut(&entry) else {
            return;
        };
        let path = file.path.clone();
        match file.stage {
            Stage::Look => {
                let request = Request::Lstat { path: &path };
                self.ask_file(HEIR, entry, FileStep::Look, request);
            }
            Stage::Resume => {
                file.writers.clear();
                self.resume(entry);
            }
            Stage::Create => {
                file.cleared = false;
                self.create_part(entry);
            }
            Stage::Touch => self.touch(entry),
            Stage::Write => self.open_again(entry),
            Stage::Reopen | Stage::Settle | Stage::SetMode => self.reopen(entry),
            Stage::Rename => self.rename_part_again(entry),
            Stage::CleanUp => self.close_up(entry),
            // It is this machine that is waited for.
            Stage::OpenHere | Stage::CheckHere | Stage::Forget | Stage::Again => {}
            // Or what hashes there, which has a session of its own.
            Stage::Compare | Stage::Verify => {}
        }
    }

    /// What is left to be done to a file needs a handle.
    pub(super) fn reopen(&mut self, entry: usize) {
        if let Some(file) = self.files.get_mut(&entry) {
            file.stage = Stage::Reopen;
            self.open_again(entry);
        }
    }

    /// The maker of the part has no handle any more.
    fn open_again(&mut self, entry: usize) {
        let mark = self.files.get(&entry).map(|file| file.mark);
        match mark {
            Some(Mark::Kept(_)) => self.open_part(entry, 0),
            Some(_) => self.begin_again(entry),
            None => {}
        }
    }
}
