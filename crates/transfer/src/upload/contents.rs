//! Octets of files: read ahead for each channel, written in requests as large as the server bears, divided where a channel
//! has nothing else to do.

use super::files::{File, FileStep, QUEUED, Stage, Writer};
use super::opening::Mark;
use super::resuming::MOST_UNPROVEN;
use super::{Asked, Block, Upload, UploadNeed};
use crate::Trouble;
use crate::ranges::{LEAST_DIVIDED, LEAST_STOLEN, Span};
use crate::sftp::SharedOctets;

/// Of less than this no further channel takes half.
pub(super) const LEAST_HELPED: u64 = 2 * LEAST_STOLEN;
/// Blocks that each of many channels may have read ahead.
const LEAST_AHEAD: usize = 2;

impl Upload {
    /// A channel without work takes what has no writer any more, or half of what another has still to begin.
    pub(super) fn help(&mut self, channel: usize) {
        let can_help = |file: &&mut File| {
            let known = file.opened.as_ref().and_then(|opened| opened.size);
            let refused = |writer: &Writer| writer.channel == channel && writer.is_refused;
            let is_known = file.stage == Stage::Write && known.is_some();
            is_known && file.mark.lets_help() && !file.writers.iter().any(refused)
        };
        let Some((&entry, file)) = self
            .files
            .iter_mut()
            .filter(|(_, file)| can_help(file))
            .max_by_key(|(_, file)| file.most_left())
        else {
            return;
        };
        let mut writers = file.writers.iter();
        let own = writers.position(|it| it.channel == channel && it.handle.is_some());
        match (own, file.mark) {
            (None, Mark::None | Mark::Asked(_)) if !file.has_share() => return,
            (None, Mark::None) => return self.mark_part(entry),
            (None, Mark::Asked(_)) => return,
            _ => {}
        }
        let Some(span) = file.take_share(own.is_some()) else {
            return;
        };
        if let Some(own) = own {
            file.writers[own].span = span;
            return;
        }
        let writer = file.writers.len();
        file.writers.push(Writer::new(channel, span));
        self.open_part(entry, writer);
    }

    /// A channel gets nothing more to do: what it has not begun goes to others.
    pub fn retire_channel(&mut self, channel: usize) {
        self.channels.retire(channel);
        let is_divided = |file: &&mut File| {
            let size = file.opened.as_ref().and_then(|opened| opened.size);
            file.stage == Stage::Write && size.is_some()
        };
        for file in self.files.values_mut().filter(is_divided) {
            for at in 0..file.writers.len() {
                if file.writers[at].channel == channel {
                    let span = std::mem::take(&mut file.writers[at].span);
                    file.give_back(span);
                }
            }
        }
        self.advance();
    }

    /// Whether a channel has nothing to do and would get nothing.
    pub(super) fn is_idle(&self, channel: usize) -> bool {
        let has_work = |file: &File| {
            file.writers
                .iter()
                .any(|it| it.channel == channel && it.span.left() > 0)
        };
        self.channels[channel].work.ahead == 0
            && self.next >= self.plan.entries.len()
            && self.small.for_sftp.is_empty()
            && !self.files.values().any(has_work)
    }

    /// Blocks that one channel may have read ahead: all together no more than two alone may. Where nothing is waited for,
    /// one: it is still in the processor's cache when it is sent.
    fn most_ahead(&self) -> usize {
        if self.reads_at_once {
            return 1;
        }
        let most = self.plan.ahead;
        (2 * most / self.channels.open().max(1)).clamp(LEAST_AHEAD.min(most), most)
    }

    /// Asks for what the channel is to write next: files in the order in which they were begun.
    pub(super) fn read_ahead(&mut self, channel: usize) {
        let most = self.most_ahead();
        if self.channels[channel].work.ahead >= most {
            return;
        }
        let block = self.plan.block as u64;
        let proves = self.proves();
        let is_retired = self.channels.is_retired(channel);
        let mut entries: Vec<usize> = self.files.keys().copied().collect();
        entries.sort_unstable();
        let mut waits_for_proof = false;
        for entry in entries {
            let Some(file) = self
                .files
                .get_mut(&entry)
                .filter(|file| file.stage == Stage::Write)
            else {
                continue;
            };
            let is_noted = proves && file.is_noted();
            let todo = file.todo.as_deref();
            // The first channel is never retired.
            let is_alone = !file.mark.lets_help();
            let first = |it: &Writer| is_alone || it.channel == 0 && it.is_refused;
            let mut nothing = Vec::new();
            let returned = match is_retired && !file.writers.iter().any(first) {
                true => &mut nothing,
                false => &mut file.returned,
            };
            for (number, writer) in file.writers.iter_mut().enumerate() {
                let is_ready = writer.channel == channel && writer.handle.is_some();
                let work = &mut self.channels[channel].work;
                while is_ready && work.ahead < most {
                    if is_noted && work.unproven + block > MOST_UNPROVEN {
                        waits_for_proof = true;
                        break;
                    }
                    let next = next_data(&mut writer.span, returned, todo, block);
                    let Some((offset, len)) = next else { break };
                    if is_noted {
                        writer.unproven.begin(len);
                        work.unproven += len;
                    }
                    writer.open += 1;
                    work.ahead += 1;
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
        if waits_for_proof {
            self.prove_what_waits(channel);
        }
    }

    /// The answer to [`UploadNeed::Read`].
    pub fn provide_data(&mut self, need: UploadNeed, data: Result<SharedOctets, String>) {
        self.reads_at_once = false;
        self.take_data(need, data);
    }

    /// The same, for what did not have to be waited for.
    pub fn provide_data_at_once(&mut self, need: UploadNeed, data: SharedOctets) {
        self.reads_at_once = true;
        self.take_data(need, Ok(data));
    }

    fn take_data(&mut self, need: UploadNeed, data: Result<SharedOctets, String>) {
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
        if self.device.is_some() {
            return self.device_data(offset, wanted, data);
        }
        self.channels[channel].work.ahead -= 1;
        if let Some(file) = self.files.get_mut(&entry)
            && file.stage == Stage::Again
        {
            file.writers[writer].open -= 1;
            self.go_on(entry);
            return self.advance();
        }
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
            Ok(data) if octets_of(&data) < wanted && !is_stream => {
                self.fail_file(entry, Trouble::Changed)
            }
            Ok(data) => {
                let it = &mut file.writers[writer];
                let len = octets_of(&data);
                if len < wanted {
                    it.span.end = it.span.at.min(it.span.end);
                }
                match len {
                    0 => it.open -= 1,
                    _ if self.channels.is_lost(channel) => {
                        it.open -= 1;
                        file.give_back(Span::new(offset, len as u64));
                    }
                    _ => {
                        self.channels[channel].work.ahead += 1;
                        self.channels[channel].work.blocks.push_back(Block {
                            entry,
                            writer,
                            offset,
                            data,
                            len,
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
        while self.channels[channel].client.waiting() < QUEUED
            && !self.channels[channel].client.is_full()
            && self.channels[channel].client.has_room()
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
            let len = (block.len - block.written).min(most);
            let octets = (block.data.clone(), block.written..block.written + len);
            let offset = block.offset + block.written as u64;
            let step = FileStep::Write {
                writer: block.writer,
                offset,
                octets: len as u32,
            };
            let entry = block.entry;
            let asked = Asked::File { entry, step };
            it.client.write(handle, offset, octets, asked);
            *unanswered += 1;
            block.written += len;
            self.left = self.left.saturating_sub(len as u64);
            self.on_the_way += len as u64;
            match block.written == block.len {
                true => it.work.ahead -= 1,
                false => {
                    // Its rest is another write to be confirmed.
                    *open += 1;
                    it.work.blocks.push_front(block);
                }
            }
        }
    }

    /// Whether a large part of a file is still to be begun: answers to it can wait for each other.
    pub fn moves_much(&self) -> bool {
        let is_large = |file: &File| file.stage == Stage::Write && file.most_left() >= LEAST_STOLEN;
        self.files.values().any(is_large)
    }
}

impl File {
    /// The largest span that is still to be begun.
    fn most_left(&self) -> u64 {
        let spans = self.writers.iter().map(|writer| writer.span);
        let spans = spans.chain(self.returned.iter().copied());
        spans.map(|span| span.left()).max().unwrap_or(0)
    }

    /// Whether a channel that has not opened the file could have something of it.
    fn has_share(&self) -> bool {
        let mut writers = self.writers.iter();
        !self.returned.is_empty() || writers.any(|it| it.span.left() >= LEAST_HELPED)
    }

    /// What a channel may have that has nothing to do; `is_open` if it has opened the file.
    fn take_share(&mut self, is_open: bool) -> Option<Span> {
        let least = match is_open {
            true => LEAST_DIVIDED,
            false => LEAST_STOLEN,
        };
        self.returned.pop().or_else(|| {
            let writers = self.writers.iter_mut();
            let largest = writers.max_by_key(|writer| writer.span.left());
            largest?.span.give_half(least)
        })
    }

    /// Octets that are not written after all.
    pub(super) fn give_back(&mut self, span: Span) {
        Span::merge(&mut self.returned, span);
    }
}

pub(super) fn octets_of(data: &SharedOctets) -> usize {
    (**data).as_ref().len()
}

/// The next octets of a span, or of what was given back, that are to be sent.
fn next_data(
    span: &mut Span,
    returned: &mut Vec<Span>,
    todo: Option<&[std::ops::Range<u64>]>,
    block: u64,
) -> Option<(u64, u64)> {
    loop {
        match span.take_of(todo, block) {
            None => *span = returned.pop()?,
            next => return next,
        }
    }
}
