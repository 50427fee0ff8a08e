//! A channel whose connection has ended: what it had to do goes to others.

use super::files::{FileStep, Stage};
use super::{Asked, Download, LocalFile};
use crate::ranges::Span;

/// The channel that gets the files of one that was lost.
const HEIR: usize = 0;

impl Download {
    /// Whether the server has begun to speak SFTP on the first channel.
    pub fn has_begun(&self) -> bool {
        self.channels.are_ready()
    }

    /// A channel's connection has ended. What has not come goes to others; a file that the channel had begun is taken over
    /// by the first one, which must not be lost.
    pub fn lose_channel(&mut self, channel: usize) {
        for asked in self.channels.lose(channel) {
            if let Asked::File { file, step } = asked {
                self.take_back(channel, file, step);
            }
        }
        let mut files: Vec<LocalFile> = self.files.keys().copied().collect();
        files.sort_unstable();
        for file in files {
            self.leave_channel(file, channel);
        }
        self.advance();
    }

    /// A request that nobody answers any more.
    fn take_back(&mut self, channel: usize, file: LocalFile, step: FileStep) {
        if let FileStep::Read { len, .. } = step {
            self.channels[channel].work.in_flight -= len as usize;
        }
        let Some(it) = self.files.get_mut(&file) else {
            return;
        };
        it.unanswered -= 1;
        if let FileStep::Read {
            reader,
            offset,
            len,
        } = step
        {
            it.readers[reader].reading -= 1;
            match it.stage {
                Stage::ReadOn => it.readers[reader].span.at = offset,
                _ => it.give_back(Span::new(offset, len.into())),
            }
        }
    }

    /// A file goes on without a channel.
    fn leave_channel(&mut self, file: LocalFile, channel: usize) {
        let Some(it) = self.files.get_mut(&file) else {
            return;
        };
        let knows_its_end = it.stage != Stage::ReadOn;
        for reader in 0..it.readers.len() {
            let reader = &mut it.readers[reader];
            if reader.channel != channel {
                continue;
            }
            reader.handle = None;
            if knows_its_end {
                let span = std::mem::take(&mut reader.span);
                let again = std::mem::take(&mut reader.again);
                it.give_back(span);
                for (offset, len) in again {
                    it.give_back(Span::new(offset, len.into()));
                }
            }
        }
        if it.channel == channel {
            it.channel = HEIR;
            if let Some(first) = it.readers.first_mut() {
                first.channel = HEIR;
            }
            self.channels[channel].files -= 1;
            self.channels[HEIR].files += 1;
            self.inherit(file);
        }
        self.go_on(file);
    }

    /// Opens the file again if it is still needed.
    fn inherit(&mut self, file: LocalFile) {
        let Some(it) = self.files.get_mut(&file) else {
            return;
        };
        it.stage = match it.stage {
            Stage::Open | Stage::Stat => Stage::Open,
            Stage::Read | Stage::StatAgain => Stage::Read,
            Stage::ReadOn => Stage::ReadOn,
            // It is this machine that is waited for, or nobody.
            Stage::BeginHere | Stage::FinishHere | Stage::CleanUp => return,
            // Or what hashes there, which has a session of its own.
            Stage::Compare | Stage::Touch | Stage::Verify => return,
        };
        self.open_remote(HEIR, file, 0);
    }
}
