//! Octets of files: read ahead for each channel, written in requests as large as the server bears, divided where a channel
//! has nothing else to do.

use std::sync::Arc;

use super::files::{File, FileStep, QUEUED, Stage, Writer};
use super::{Asked, Block, Upload, UploadNeed};
use crate::Trouble;
use crate::sftp::{Attributes, Open, Request};

impl Upload {
    /// A channel without work takes half of what another has still to begin.
    pub(super) fn help(&mut self, channel: usize) {
        let most = |file: &File| {
            let spans = file.writers.iter().map(|writer| writer.span.left());
            spans.max().unwrap_or(0)
        };
        let is_large = |file: &&mut File| {
            let known = file
                .opened
                .as_ref()
                .is_some_and(|opened| opened.size.is_some());
            known && file.stage == Stage::Write && file.channel != channel
        };
        let Some((&entry, file)) = self
            .files
            .iter_mut()
            .filter(|(_, file)| is_large(file))
            .max_by_key(|(_, file)| most(file))
        else {
            return;
        };
        let largest = file
            .writers
            .iter_mut()
            .max_by_key(|writer| writer.span.left());
        let Some(span) = largest.and_then(|writer| writer.span.give_half()) else {
            return;
        };
        let writer = file.writers.len();
        let part = file.part.clone();
        file.writers.push(Writer::new(channel, span));
        let request = Request::Open {
            path: &part,
            how: Open::Write,
            attributes: Attributes::default(),
        };
        self.ask_file(channel, entry, FileStep::Open { writer }, request);
    }

    /// Whether a channel has nothing to do and would get nothing.
    pub(super) fn is_idle(&self, channel: usize) -> bool {
        let it = &self.channels[channel];
        it.files == 0
            && it.work.ahead == 0
            && it.client.pending() == 0
            && self.next >= self.plan.entries.len()
    }

    /// Asks for what the channel is to write next: files in the order in which they were begun.
    pub(super) fn read_ahead(&mut self, channel: usize) {
        let most = self.plan.ahead;
        if self.channels[channel].work.ahead >= most {
            return;
        }
        let block = self.plan.block as u64;
        let mut entries: Vec<usize> = self.files.keys().copied().collect();
        entries.sort_unstable();
        for entry in entries {
            let Some(file) = self
                .files
                .get_mut(&entry)
                .filter(|file| file.stage == Stage::Write)
            else {
                continue;
            };
            let todo = file.todo.as_deref();
            for (number, writer) in file.writers.iter_mut().enumerate() {
                let is_ready = writer.channel == channel && writer.handle.is_some();
                while is_ready
                    && self.channels[channel].work.ahead < most
                    && let Some((offset, len)) = writer.span.take_of(todo, block)
                {
                    writer.open += 1;
                    self.channels[channel].work.ahead += 1;
                    self.needs.push_back(UploadNeed::Read {
                        entry,
                        channel,
                        writer: number,
                        offset,
                        len: len as usize,
                    });
                }
            }
            // An empty file has nothing to wait for.
            self.go_on(entry);
        }
    }

    /// The answer to [`UploadNeed::Read`].
    pub fn provide_data(&mut self, need: UploadNeed, data: Result<Arc<Vec<u8>>, String>) {
        let UploadNeed::Read {
            entry,
            channel,
            writer,
            offset,
            len: wanted,
        } = need
        else {
            return;
        };
        self.channels[channel].work.ahead -= 1;
        let Some(file) = self
            .files
            .get_mut(&entry)
            .filter(|file| file.stage == Stage::Write)
        else {
            return self.advance();
        };
        let is_stream = file
            .opened
            .as_ref()
            .is_some_and(|opened| opened.size.is_none());
        match data {
            Err(error) => self.fail_file(
                entry,
                Trouble::Local {
                    doing: "reading",
                    error,
                },
            ),
            Ok(data) if data.len() < wanted && !is_stream => {
                self.fail_file(entry, Trouble::Changed)
            }
            Ok(data) => {
                let it = &mut file.writers[writer];
                if data.len() < wanted {
                    it.span.end = it.span.at.min(it.span.end);
                }
                match data.is_empty() {
                    true => it.open -= 1,
                    false => {
                        self.channels[channel].work.ahead += 1;
                        self.channels[channel].work.blocks.push_back(Block {
                            entry,
                            writer,
                            offset,
                            data,
                            written: 0,
                        });
                    }
                }
                self.go_on(entry);
            }
        }
        self.advance();
    }

    /// Puts blocks into the channel's queue while that is short.
    pub(super) fn write_blocks(&mut self, channel: usize) {
        while self.channels[channel].client.transmit().len() < QUEUED
            && !self.channels[channel].client.is_full()
            && let Some(mut block) = self.channels[channel].work.blocks.pop_front()
        {
            let it = &mut self.channels[channel];
            let file = self.files.get_mut(&block.entry);
            let file = file.filter(|file| file.stage == Stage::Write);
            let open = file.and_then(|file| {
                let writer = &mut file.writers[block.writer];
                Some((
                    &mut file.unanswered,
                    &mut writer.open,
                    writer.handle.as_ref()?,
                ))
            });
            let Some((unanswered, open, handle)) = open else {
                it.work.ahead -= 1;
                continue;
            };
            let most = it.client.limits().write as usize;
            let rest = &block.data[block.written..];
            let data = &rest[..rest.len().min(most)];
            let step = FileStep::Write {
                writer: block.writer,
                offset: block.offset + block.written as u64,
                octets: data.len() as u32,
            };
            let request = Request::Write {
                handle,
                offset: block.offset + block.written as u64,
                data,
            };
            let entry = block.entry;
            it.client.request(request, Asked::File { entry, step });
            *unanswered += 1;
            let len = data.len();
            block.written += len;
            self.left = self.left.saturating_sub(len as u64);
            match block.written == block.data.len() {
                true => it.work.ahead -= 1,
                false => {
                    // Its rest is another write to be confirmed.
                    *open += 1;
                    it.work.blocks.push_front(block);
                }
            }
        }
    }
}
