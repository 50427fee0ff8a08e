//! Octets of files: asked for as far as a channel may have them in flight, divided where a channel has nothing else to do.

use super::files::{File, FileStep, Reader, Stage};
use super::{Download, DownloadEvent, DownloadNeed, LocalFile};
use crate::ranges::{LEAST_DIVIDED, LEAST_STOLEN, Span};
use crate::sftp::{Data, Handle, Request};
use crate::{Remote, Trouble};

/// Octets that each of many channels may have asked for.
const LEAST_IN_FLIGHT: usize = 2 * 1024 * 1024;

impl Download {
    /// A channel without work takes what has no reader any more, or half of what another has still to begin.
    pub(super) fn help(&mut self, channel: usize) {
        let can_help = |it: &&mut File| {
            let refused = |reader: &Reader| reader.channel == channel && reader.is_refused;
            it.stage == Stage::Read && !it.readers.iter().any(refused)
        };
        let files = self.files.iter_mut();
        let largest = files
            .filter(|(_, it)| can_help(it))
            .max_by_key(|(_, it)| it.most_left());
        let Some((&file, it)) = largest else { return };
        let mut readers = it.readers.iter();
        let own = readers.position(|it| it.channel == channel && it.handle.is_some());
        let Some(span) = it.take_share(own.is_some()) else {
            return;
        };
        if let Some(own) = own {
            it.readers[own].span = span;
            return;
        }
        it.readers.push(Reader::new(channel, span));
        let reader = it.readers.len() - 1;
        self.open_remote(channel, file, reader);
    }

    /// A channel gets nothing more to do: what it has not asked for goes to others.
    pub fn retire_channel(&mut self, channel: usize) {
        self.channels.retire(channel);
        let files = self.files.values_mut();
        for file in files.filter(|file| file.stage == Stage::Read) {
            for at in 0..file.readers.len() {
                if file.readers[at].channel == channel {
                    let span = std::mem::take(&mut file.readers[at].span);
                    file.give_back(span);
                }
            }
        }
        self.advance();
    }

    /// Asks for what the channel may have in flight: files in the order in which they were begun.
    pub(super) fn read_on(&mut self, channel: usize) {
        let most = self.most_in_flight();
        let limit = self.channels[channel].client.limits().read;
        let limit = limit.min(u32::try_from(most).unwrap_or(limit));
        if self.channels[channel].work.in_flight + limit as usize > most {
            return;
        }
        let mut files: Vec<LocalFile> = self.files.keys().copied().collect();
        files.sort_unstable();
        for file in files {
            while self.channels[channel].work.in_flight + limit as usize <= most
                && !self.channels[channel].client.is_full()
                && self.channels[channel].client.has_room()
                && let Some((reader, handle, offset, len)) = self.next_read(channel, file, limit)
            {
                self.channels[channel].work.in_flight += len as usize;
                let step = FileStep::Read {
                    reader,
                    offset,
                    len,
                };
                let request = Request::Read {
                    handle: &handle,
                    offset,
                    len,
                };
                self.ask_file(channel, file, step, request);
            }
            // Where nothing is to be fetched there is nothing to wait for.
            self.go_on(file);
        }
    }

    /// What one channel may have asked for: all together no more than four alone may, but for a window's worth each.
    fn most_in_flight(&self) -> usize {
        let most = self.plan.in_flight.max(1);
        (4 * most / self.channels.open().max(1)).clamp(LEAST_IN_FLIGHT.min(most), most)
    }

    fn next_read(
        &mut self,
        channel: usize,
        file: LocalFile,
        limit: u32,
    ) -> Option<(usize, Handle, u64, u32)> {
        let it = self.files.get_mut(&file)?;
        let one_by_one = it.stage == Stage::ReadOn;
        if !one_by_one && it.stage != Stage::Read {
            return None;
        }
        // The first channel is never retired.
        let first = |it: &Reader| it.channel == 0 && it.is_refused;
        let takes_returned = !self.channels.is_retired(channel) || it.readers.iter().any(first);
        for (number, reader) in it.readers.iter_mut().enumerate() {
            if reader.channel != channel || (one_by_one && reader.reading > 0) {
                continue;
            }
            let Some(handle) = &reader.handle else {
                continue;
            };
            let next = reader.again.pop().or_else(|| {
                loop {
                    if reader.span.left() == 0 {
                        reader.span = match takes_returned {
                            true => it.returned.pop()?,
                            false => return None,
                        };
                    }
                    let next = reader.span.take_of(it.todo.as_deref(), limit.into());
                    if let Some((at, len)) = next {
                        return Some((at, len as u32));
                    }
                }
            });
            if let Some((offset, len)) = next {
                let handle = handle.clone();
                reader.reading += 1;
                return Some((number, handle, offset, len));
            }
        }
        None
    }

    pub(super) fn handle_data(
        &mut self,
        channel: usize,
        file: LocalFile,
        reader: usize,
        (offset, len): (u64, u32),
        data: Data,
    ) {
        let Some(it) = self.files.get_mut(&file) else {
            return;
        };
        it.readers[reader].reading -= 1;
        let got = data.len() as u32;
        if it.stage == Stage::CleanUp {
            self.channels[channel].work.in_flight -= data.len();
            return;
        }
        if got == 0 {
            let why = Remote::Said("no octets, and not the end either".to_owned());
            return self.fail_file(
                file,
                Trouble::Remote {
                    doing: "reading",
                    why,
                },
            );
        }
        if got < len {
            match it.stage {
                // Where its end is not known, it goes on behind what came.
                Stage::ReadOn => it.readers[reader].span.at = offset + u64::from(got),
                _ => it.readers[reader]
                    .again
                    .push((offset + u64::from(got), len - got)),
            }
        }
        it.octets += u64::from(got);
        it.writing += 1;
        self.left = self.left.saturating_sub(got.into());
        self.needs.push_back(DownloadNeed::Write {
            file,
            channel,
            offset,
            data,
        });
    }

    /// The server has nothing at `offset` any more.
    pub(super) fn handle_end(&mut self, file: LocalFile, reader: usize, offset: u64) {
        let Some(it) = self.files.get_mut(&file) else {
            return;
        };
        it.readers[reader].reading -= 1;
        match it.stage {
            Stage::ReadOn => {
                it.readers[reader].span = Span {
                    at: offset,
                    end: offset,
                }
            }
            Stage::Read => self.fail_file(file, Trouble::Changed),
            _ => {}
        }
    }

    pub(super) fn handle_written(
        &mut self,
        file: LocalFile,
        channel: usize,
        octets: usize,
        written: Result<(), String>,
    ) {
        self.channels[channel].work.in_flight -= octets;
        let Some(it) = self.files.get_mut(&file) else {
            return;
        };
        it.writing -= 1;
        match written {
            Ok(()) => {
                self.tally.octets += octets as u64;
                self.events.push_back(DownloadEvent::Moved(octets as u64));
            }
            Err(error) => self.fail_file(
                file,
                Trouble::Local {
                    doing: "writing",
                    error,
                },
            ),
        }
        self.go_on(file);
    }

    /// Whether a large part of a file is still to be asked for: more than what comes now is on its way.
    pub fn moves_much(&self) -> bool {
        let is_large = |file: &File| file.stage == Stage::Read && file.most_left() >= LEAST_STOLEN;
        self.files.values().any(is_large)
    }
}

impl File {
    /// The largest span that is still to be begun.
    fn most_left(&self) -> u64 {
        let spans = self.readers.iter().map(|reader| reader.span);
        let spans = spans.chain(self.returned.iter().copied());
        spans.map(|span| span.left()).max().unwrap_or(0)
    }

    /// What a channel may have that has nothing to do; `is_open` if it has opened the file.
    fn take_share(&mut self, is_open: bool) -> Option<Span> {
        let least = match is_open {
            true => LEAST_DIVIDED,
            false => LEAST_STOLEN,
        };
        self.returned.pop().or_else(|| {
            let readers = self.readers.iter_mut();
            let largest = readers.max_by_key(|reader| reader.span.left());
            largest?.span.give_half(least)
        })
    }

    /// Octets that are not read after all.
    pub(super) fn give_back(&mut self, span: Span) {
        Span::merge(&mut self.returned, span);
    }
}
