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

/// The turn of the oldest piece; without a permit once nobody hears any more.
type Turn = Pin<Box<dyn Future<Output = Option<OwnedSemaphorePermit>>>>;

/// Pieces of output that wait for room, oldest first.
#[derive(Default)]
pub(crate) struct Outbox {
    pieces: VecDeque<(Stream, Vec<u8>)>,
    turn: Option<Turn>,
}

impl Outbox {
    pub(crate) fn push(&mut self, stream: Stream, octets: Vec<u8>) {
        self.pieces.push_back((stream, octets));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Hands on what there is room for; returns how many octets that were.
    pub(crate) fn deliver(&mut self, worker: &Worker, host: HostId) -> usize {
        let mut delivered = 0;
        while let Some((_, octets)) = self.pieces.front()
            && self.turn.is_none()
            && let Some(permit) = worker.room_now(octets.len())
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
        let wanted = octets.len();
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
