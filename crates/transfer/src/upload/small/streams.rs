//! Streams as their sessions see them: octets out, words in, the end.

use super::stream::{self, Stage, Stream, Word};
use super::{MOST_OPEN, SmallGroup, Verify, Way};
use crate::upload::{Upload, device};

/// Why the files of batches are not verified.
const NO_CHECKER: &str = "the host has neither sha256sum nor shasum for this account";

impl Upload {
    /// What a stream's session runs.
    pub fn stream_command(&self) -> String {
        if self.device.is_some() {
            return device::command();
        }
        stream::command(self.plan.preserve, self.verifies())
    }

    /// Whether one more stream should be opened: [`add_stream`](Self::add_stream).
    pub fn wants_stream(&self) -> bool {
        if let Some(device) = &self.device {
            return device.wants_session();
        }
        let small = &self.small;
        let is_open = match small.way {
            Way::Proving | Way::Open => {
                let is_worth_it = small.ready.len() >= small.fewest.max(1)
                    || !small.ready.is_empty() && !small.streams.is_empty();
                is_worth_it && small.being_filled() < small.filling
            }
            Way::Syncing => small.open() == 0,
            _ => false,
        };
        is_open && small.open() < MOST_OPEN && !self.interrupted
    }

    /// One more stream; returns its number.
    pub fn add_stream(&mut self) -> usize {
        if let Some(device) = &mut self.device {
            device.add_session();
            return 0;
        }
        self.small.streams.push(Stream::new());
        self.advance();
        self.small.streams.len() - 1
    }

    /// Octets for a stream.
    pub fn stream_transmit(&self, stream: usize) -> &[u8] {
        if let Some(device) = &self.device {
            return device.transmit();
        }
        self.small.streams[stream].transmit()
    }

    /// So many of them have left.
    pub fn stream_transmitted(&mut self, stream: usize, octets: usize) {
        if self.device.is_some() {
            return self.device_transmitted(octets);
        }
        self.small.streams[stream].transmitted(octets);
        self.advance();
    }

    /// Whether nothing follows what there is for a stream: its end is to be told.
    pub fn stream_is_complete(&self, stream: usize) -> bool {
        if let Some(device) = &self.device {
            return device.is_complete();
        }
        matches!(
            self.small.streams[stream].stage,
            Stage::Complete | Stage::Over
        )
    }

    /// Whether more for a stream is being read.
    pub fn stream_is_about_to_send(&self, stream: usize) -> bool {
        if let Some(device) = &self.device {
            return device.is_reading();
        }
        self.small.streams[stream].reading > 0
    }

    /// Takes what came on a stream.
    pub fn handle_stream_input(&mut self, stream: usize, input: &[u8]) {
        if self.device.is_some() {
            return self.hear_device(input);
        }
        for word in self.small.streams[stream].hear(input) {
            match word {
                Word::Ready { umask, checks } => {
                    self.small.umask = umask;
                    self.handle_ready(stream, checks);
                }
                Word::End(is_whole) => self.batch_ended(stream, is_whole),
            }
        }
        self.advance();
    }

    /// The host takes an archive, and `checks` hashes of what is in it, or does not.
    fn handle_ready(&mut self, stream: usize, checks: bool) {
        self.small.streams[stream].checks = checks;
        match self.plan.hashing.verifies {
            Verify::Auto if !checks => self.tally.why_unverified = Some(NO_CHECKER),
            Verify::Always if !checks => {
                self.batch_ended(stream, false);
                self.close_streams();
                self.tally.why_no_batches = Some(NO_CHECKER);
            }
            _ => {}
        }
    }

    /// A stream was refused, or nothing more comes of it.
    pub fn end_stream(&mut self, stream: usize) {
        if self.device.is_some() {
            return self.device_session_ended();
        }
        self.batch_ended(stream, false);
        self.advance();
    }

    /// Does without streams that the host has not taken up.
    pub fn give_up_streams(&mut self) {
        if self.device.is_some() {
            return self.give_up_device_session();
        }
        for stream in 0..self.small.streams.len() {
            if matches!(
                self.small.streams[stream].stage,
                Stage::Opening | Stage::Greeted
            ) {
                self.batch_ended(stream, false);
            }
        }
        self.advance();
    }

    /// Whether the host has yet to say that it takes a stream.
    pub fn awaits_stream(&self) -> bool {
        if let Some(device) = &self.device {
            return device.awaits_ready();
        }
        let mut streams = self.small.streams.iter();
        streams.any(|stream| matches!(stream.stage, Stage::Opening | Stage::Greeted))
    }

    /// The next small files to be read.
    pub fn poll_small(&mut self) -> Option<SmallGroup> {
        self.small.groups.pop_front()
    }

    /// Whether a stream's answer is waited for.
    pub(in crate::upload) fn awaits_batch(&self) -> bool {
        if let Some(device) = &self.device {
            return device.awaits_host();
        }
        let mut streams = self.small.streams.iter();
        streams.any(|stream| match stream.stage {
            Stage::Opening | Stage::Over => false,
            // It does not take what there is.
            Stage::Filling => !stream.transmit().is_empty(),
            Stage::Greeted | Stage::Complete => true,
        })
    }
}
