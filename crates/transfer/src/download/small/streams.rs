//! Streams as their sessions see them: octets out, octets in, the end.

use super::stream::{COMMAND, Stage, Stream};
use super::{GROUP, SmallNeed, WORTH_A_SECOND, Way};
use crate::download::Download;

impl Download {
    /// What a stream's session runs.
    pub fn stream_command(&self) -> String {
        COMMAND.to_owned()
    }

    /// Whether one more stream should be opened: [`add_stream`](Self::add_stream).
    pub fn wants_stream(&self) -> bool {
        let small = &self.small;
        let open = small.open();
        let is_rest = open == 0 && small.has_worked && self.is_all_looked_for();
        let fewest = if is_rest { 1 } else { small.fewest };
        let is_open = small.way == Way::Open && open < small.most && !self.interrupted;
        is_open
            && small.ready() >= fewest
            && (small.beginning() == 0 || small.ready_octets >= WORTH_A_SECOND)
    }

    /// One more stream; returns its number.
    pub fn add_stream(&mut self) -> usize {
        self.small.streams.push(Stream::new());
        self.advance();
        self.small.streams.len() - 1
    }

    /// Octets for a stream.
    pub fn stream_transmit(&self, stream: usize) -> &[u8] {
        self.small.streams[stream].transmit()
    }

    /// So many of them have left.
    pub fn stream_transmitted(&mut self, stream: usize, octets: usize) {
        self.small.streams[stream].transmitted(octets);
    }

    /// Whether nothing follows what there is for a stream: its end is to be told.
    pub fn stream_is_complete(&self, stream: usize) -> bool {
        !matches!(
            self.small.streams[stream].stage,
            Stage::Opening | Stage::Greeted
        )
    }

    /// Takes what came on a stream.
    pub fn handle_stream_input(&mut self, stream: usize, input: &[u8]) {
        self.hear_stream(stream, input);
        self.advance();
    }

    /// Octets of what came that are still to be kept from the host: they wait for this machine's disk, or for nothing.
    pub fn stream_holds(&self, stream: usize) -> usize {
        let stream = &self.small.streams[stream];
        match stream.is_cut {
            true => usize::MAX,
            false => stream.held,
        }
    }

    /// The host sends nothing more on a stream.
    pub fn end_stream_input(&mut self, stream: usize) {
        self.small.streams[stream].has_eof = true;
        self.end_if_known(stream);
    }

    /// A stream's command has ended with this status; none if by a signal.
    pub fn stream_exited(&mut self, stream: usize, status: Option<u32>) {
        self.small.streams[stream].status = Some(status.unwrap_or(u32::MAX));
        self.end_if_known(stream);
    }

    /// Some servers close a session late.
    fn end_if_known(&mut self, stream: usize) {
        let it = &self.small.streams[stream];
        if it.has_eof && it.status.is_some() {
            self.end_stream(stream);
        }
    }

    /// A stream was refused, or nothing more comes of it.
    pub fn end_stream(&mut self, stream: usize) {
        self.close_stream(stream);
        self.advance();
    }

    /// Does without streams that the host has not taken up.
    pub fn give_up_streams(&mut self) {
        for stream in 0..self.small.streams.len() {
            if matches!(
                self.small.streams[stream].stage,
                Stage::Opening | Stage::Greeted
            ) {
                self.close_stream(stream);
            }
        }
        self.advance();
    }

    /// Whether the host has yet to say that it takes a stream.
    pub fn awaits_stream(&self) -> bool {
        let mut streams = self.small.streams.iter();
        streams.any(|stream| matches!(stream.stage, Stage::Opening | Stage::Greeted))
    }

    /// What small files need of this machine.
    pub fn poll_small(&mut self) -> Option<SmallNeed> {
        let small = &mut self.small;
        if let Some(need) = small.needs.pop_front() {
            return Some(need);
        }
        if !small.to_place.is_empty() {
            let count = small.to_place.len().min(GROUP);
            let files = small.to_place.drain(..count).collect();
            return Some(SmallNeed::Place { files });
        }
        if !small.to_discard.is_empty() {
            let paths = std::mem::take(&mut small.to_discard);
            return Some(SmallNeed::Discard { paths });
        }
        None
    }

    /// Whether a stream's answer is waited for.
    pub(in crate::download) fn awaits_batch(&self) -> bool {
        let mut streams = self.small.streams.iter();
        streams.any(|it| matches!(it.stage, Stage::Greeted | Stage::Asked) && it.held == 0)
    }
}
