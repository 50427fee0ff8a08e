//! A host's output on its way to the observer, within the budget that all hosts share.
//!
//! While the observer does not keep up, output waits here, at most the channel's window of it: the connection goes on
//! reading, so that a server's keepalive requests are answered (ClientAliveInterval), and orders are obeyed.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use sshoal_fleet::HostId;
use sshoal_proto::Stream;
use tokio::sync::OwnedSemaphorePermit;

use crate::worker::{Output, Report, Worker};

/// Octets that pieces grow to while they wait: a packet's.
const PIECE: usize = 32 * 1024;
/// What a piece costs on its way to the observer, however small it is.
const PIECE_COST: usize = 512;

/// The turn of the oldest piece; without a permit once nobody hears any more.
type Turn = Pin<Box<dyn Future<Output = Option<OwnedSemaphorePermit>>>>;

/// Pieces of output that wait for room, oldest first.
#[derive(Default)]
pub(crate) struct Outbox {
    pieces: VecDeque<(Stream, Vec<u8>)>,
    turn: Option<Turn>,
}

impl Outbox {
    /// Takes what a server has sent. Small pieces become large ones while they wait: a server decides how small they
    /// are, and each costs memory of its own.
    pub(crate) fn push(&mut self, stream: Stream, octets: &[u8]) {
        // The oldest one may wait for just as much room as it needs.
        let is_free = self.turn.is_none() || self.pieces.len() > 1;
        match self.pieces.back_mut() {
            Some((last, piece))
                if is_free && *last == stream && piece.len() + octets.len() <= PIECE =>
            {
                piece.extend_from_slice(octets);
            }
            _ => self.pieces.push_back((stream, octets.to_vec())),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Hands on what there is room for; returns how many octets that were.
    pub(crate) fn deliver(&mut self, worker: &Worker, host: HostId) -> usize {
        let mut delivered = 0;
        while let Some((_, octets)) = self.pieces.front()
            && self.turn.is_none()
            && let Some(permit) = worker.room_now(octets.len().max(PIECE_COST))
        {
            delivered += self.pass(worker, host, Some(permit));
        }
        delivered
    }

    /// Hands the oldest piece on when there is room; returns how many octets that were. Never ready if there is none.
    pub(crate) fn poll_deliver(
        &mut self,
        worker: &Worker,
        host: HostId,
        context: &mut Context<'_>,
    ) -> Poll<usize> {
        let Some((_, octets)) = self.pieces.front() else {
            return Poll::Pending;
        };
        let wanted = octets.len().max(PIECE_COST);
        let turn = self
            .turn
            .get_or_insert_with(|| Box::pin(worker.room(wanted)));
        let permit = ready!(turn.as_mut().poll(context));
        self.turn = None;
        Poll::Ready(self.pass(worker, host, permit))
    }

    /// Hands everything on, room or not: the host is torn down, and what it wrote is not lost for that.
    pub(crate) fn deliver_regardless(&mut self, worker: &Worker, host: HostId) {
        self.turn = None;
        while !self.is_empty() {
            self.pass(worker, host, None);
        }
    }

    fn pass(
        &mut self,
        worker: &Worker,
        host: HostId,
        permit: Option<OwnedSemaphorePermit>,
    ) -> usize {
        let Some((stream, octets)) = self.pieces.pop_front() else {
            return 0;
        };
        let delivered = octets.len();
        worker.report(Report::Output(Output {
            host,
            stream,
            octets,
            _permit: permit,
        }));
        delivered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_one_octet_do_not_cost_one_each() {
        let mut outbox = Outbox::default();
        for octet in 0..=255u8 {
            for _ in 0..1024 {
                outbox.push(Stream::Stdout, &[octet]);
            }
        }
        assert_eq!(outbox.pieces.len(), 256 * 1024 / PIECE);
        outbox.push(Stream::Stderr, b"x");
        outbox.push(Stream::Stdout, b"y");
        assert_eq!(outbox.pieces.len(), 256 * 1024 / PIECE + 2);
        let all = |wanted: Stream| -> Vec<u8> {
            let of_it = outbox.pieces.iter().filter(|piece| piece.0 == wanted);
            of_it.flat_map(|piece| piece.1.clone()).collect()
        };
        let mut sent: Vec<u8> = (0..=255u8).flat_map(|octet| [octet; 1024]).collect();
        sent.push(b'y');
        assert!(all(Stream::Stdout) == sent, "in order and whole");
        assert_eq!(all(Stream::Stderr), b"x");
    }

    #[test]
    fn a_piece_that_waits_for_its_room_stays_as_large_as_that() {
        let mut outbox = Outbox::default();
        outbox.push(Stream::Stdout, b"a");
        outbox.turn = Some(Box::pin(std::future::pending()));
        outbox.push(Stream::Stdout, b"b");
        outbox.push(Stream::Stdout, b"c");
        let lengths: Vec<usize> = outbox.pieces.iter().map(|piece| piece.1.len()).collect();
        assert_eq!(lengths, [1, 2]);
    }
}
