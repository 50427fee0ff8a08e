//! Further connections to a host, its lanes: each carries a share of the transfer.
//!
//! They are made once the first one transfers, as it was made: to the same address or through the same jump hosts, with
//! what logged it in, and only to a server with the host key that was verified. Where it is one that `sshoal up` keeps they are the
//! only ones that log in. `growth` says how many; `lane` is one of them. One that fails or ends is done without.

mod growth;
mod lane;

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use sshoal_fleet::{Failure, Limits};
use sshoal_proto::HostKeyQuestion;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::channels::{LaneId, Transfer};
use super::plan::Way;
use crate::plan::NativePlan;
use crate::worker::Worker;
use growth::{Growth, Now, Sender};
use lane::{Connected, Making, Origin};

/// Connections of all hosts together, for transfers.
const IN_ALL: usize = 128;
/// Connections that a host gets at most, unless the user wants more.
const UNASKED: usize = 32;

/// How many logins of further connections there may be at a time, on all hosts.
#[derive(Clone)]
pub(crate) struct LaneLimits {
    logins: Arc<Semaphore>,
    signatures: Arc<Semaphore>,
}

impl LaneLimits {
    pub(crate) fn new(limits: &Limits) -> Self {
        LaneLimits {
            logins: Arc::new(Semaphore::new(limits.logins as usize)),
            signatures: Arc::new(Semaphore::new(limits.signatures as usize)),
        }
    }

    /// A place among the logins; the semaphore is never closed.
    pub(crate) async fn login(&self) -> Option<OwnedSemaphorePermit> {
        self.logins.clone().acquire_owned().await.ok()
    }

    /// A place among the signatures that agents are asked for at a time.
    pub(crate) async fn signature(&self) -> Option<OwnedSemaphorePermit> {
        self.signatures.clone().acquire_owned().await.ok()
    }
}

/// How many connections one of `hosts` may have at most, if the user wants `wanted`.
pub(crate) fn most(hosts: usize, wanted: Option<usize>) -> usize {
    let share = (IN_ALL / hosts.max(1)).max(1);
    share.min(wanted.unwrap_or(UNASKED))
}

/// A host's further connections.
pub(crate) struct Lanes<'a> {
    origin: Origin<'a>,
    host_key: Rc<HostKeyQuestion>,
    growth: Growth,
    each: Vec<Lane<'a>>,
    last: LaneId,
}

/// One of them.
struct Lane<'a> {
    id: LaneId,
    stage: Stage<'a>,
}

enum Stage<'a> {
    Connecting(Making<'a>),
    Connected(Box<Connected<'a>>),
}

/// What the first connection has found out for further ones.
pub(crate) struct First {
    /// Whether it is somebody else's, and was there before.
    pub(crate) is_shared: bool,
    /// Where it goes; unknown behind a jump host.
    pub(crate) address: Option<SocketAddr>,
    pub(crate) round_trip: Duration,
    pub(crate) host_key: Rc<HostKeyQuestion>,
}

impl<'a> Lanes<'a> {
    /// `None` if the first connection is all that a host gets.
    pub(crate) fn begin(
        worker: &'a Rc<Worker>,
        plan: &'a NativePlan,
        first: First,
    ) -> Option<Box<Lanes<'a>>> {
        let transfer = worker.plan.transfer.as_ref()?;
        let most = most(worker.plan.hosts_at_once(), transfer.lanes);
        // Each would be a process of its own.
        let is_proxied = plan.endpoint.proxy_command.is_some();
        let gains_nothing = transfer.rate.is_some() && transfer.lanes.is_none();
        if most < 2 || is_proxied || gains_nothing {
            return None;
        }
        let sender = match transfer.way {
            Way::Put(_) => Sender::Us,
            Way::Get(_) => Sender::Host,
        };
        Some(Box::new(Lanes {
            origin: Origin {
                worker,
                plan,
                is_shared: first.is_shared,
                address: first.address,
            },
            host_key: first.host_key,
            growth: Growth::new(transfer.lanes, most, first.round_trip, sender),
            each: Vec::new(),
            last: LaneId::FIRST,
        }))
    }

    /// Does what there is to do; returns whether that may have made work for other connections.
    pub(crate) fn advance(&mut self, transfer: &mut Transfer) -> bool {
        let now = Instant::now();
        self.grow(transfer, now);
        let mut has_moved = false;
        for at in (0..self.each.len()).rev() {
            let Stage::Connected(connected) = &mut self.each[at].stage else {
                continue;
            };
            match connected.advance(transfer, now) {
                Ok(fed) => has_moved |= fed > 0,
                Err(failure) => {
                    self.lose(at, &failure, transfer);
                    has_moved = true;
                }
            }
        }
        has_moved
    }

    /// Begins connections if more are wanted; has those that came last do nothing more if they gain nothing.
    fn grow(&mut self, transfer: &mut Transfer, now: Instant) {
        let is_up =
            |lane: &&Lane<'_>| matches!(&lane.stage, Stage::Connected(lane) if lane.is_up());
        let up = self.each.iter().filter(is_up).count();
        let (moved, left) = transfer.progress();
        let wanted = self.growth.due(Now {
            at: now,
            moved,
            left,
            up: 1 + up,
            begun: self.each.len() - up,
        });
        if let Some(kept) = self.growth.take_kept() {
            let mut ids: Vec<LaneId> = self.each.iter().map(|lane| lane.id).collect();
            ids.sort_unstable_by_key(|id| id.0);
            for &id in ids.iter().skip(kept.saturating_sub(1)) {
                tracing::debug!(lane = id.0, "a further connection gains nothing");
                transfer.retire(id);
            }
        }
        for _ in 0..wanted {
            self.last = LaneId(self.last.0 + 1);
            let id = self.last;
            tracing::debug!(lane = id.0, "a further connection");
            let stage = Stage::Connecting(Box::pin(self.origin.connect()));
            self.each.push(Lane { id, stage });
        }
    }

    /// One has failed or ended; the others go on.
    fn lose(&mut self, at: usize, failure: &Failure, transfer: &mut Transfer) {
        let lane = self.each.swap_remove(at);
        tracing::debug!(
            lane = lane.id.0,
            detail = failure.detail,
            "a further connection is lost"
        );
        transfer.leave(lane.id);
        self.growth
            .handle_failure(Instant::now(), 1 + self.each.len());
    }

    /// When to come back if nothing happens before.
    pub(crate) fn wake(&self) -> Option<Instant> {
        let lanes = self.each.iter().filter_map(|lane| match &lane.stage {
            Stage::Connecting(_) => None,
            Stage::Connected(connected) => connected.wake(),
        });
        lanes.chain(self.growth.wake()).min()
    }

    /// Ready when something has happened on one of them.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>, transfer: &mut Transfer) -> Poll<()> {
        let mut has_happened = Poll::Pending;
        for at in (0..self.each.len()).rev() {
            let lane = &mut self.each[at];
            let polled = match &mut lane.stage {
                Stage::Connecting(making) => making.as_mut().poll(context).map(|made| {
                    let key = self.host_key.clone();
                    let channels = (transfer.channels_a_lane(), transfer.channel_request());
                    let made = Connected::begin(lane.id, channels, self.origin, key, made?)?;
                    lane.stage = Stage::Connected(Box::new(made));
                    Ok(())
                }),
                Stage::Connected(connected) => connected.poll(context, transfer),
            };
            match polled {
                Poll::Pending => continue,
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(failure)) => self.lose(at, &failure, transfer),
            }
            has_happened = Poll::Ready(());
        }
        has_happened
    }

    /// Says goodbye to all servers.
    pub(crate) fn hang_up(&mut self) {
        for lane in &mut self.each {
            if let Stage::Connected(connected) = &mut lane.stage {
                connected.hang_up();
            }
        }
    }
}
