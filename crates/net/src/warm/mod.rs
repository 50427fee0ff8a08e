//! Hosts whose connections another process keeps (`sshoal up`): their commands go by one stream to each of its threads.
//!
//! ```text
//!   host task (errand.rs) --Order--> stream (stream.rs) --socket--> the keeper's thread
//!        ^--- mailbox <----News------/
//! ```
//!
//! All of that happens in the coordinator's thread. A transfer shares the connection itself (share.rs), in whatever thread performs
//! the host: it has channels there as on a connection of its own.
//!
//! A host whose keeper turns out not to have it, before its command can have left,
//! is begun anew with a connection of its own; so are all that have not begun when a keeper is gone.

mod errand;
mod share;
mod stream;

use std::cell::RefCell;
use std::collections::HashSet;
use std::io;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use sshoal_fleet::{Failure, FailureKind, HostId};
use sshoal_proto::ExecFate;

use crate::failures::Ended;
use crate::identity::Identity;
use crate::worker::Worker;

pub(crate) use errand::{run, serves};
pub(crate) use share::{logs_in_unasked, transfer};
use stream::Stream;

/// What `sshoal up` keeps is called in failures.
pub(crate) const KEPT: &str = "by the connection that `sshoal up` keeps";
/// What is said when the process that keeps connections is gone.
pub(crate) const KEEPER_GONE: &str =
    "the process that `sshoal up` left, which keeps the connection, has ended or hung up";

/// Which hosts of a run are reached by connections that are kept already.
pub enum WarmPlan {
    /// Their commands go by streams.
    Commands {
        /// Streams to the keepers.
        streams: Vec<UnixStream>,
        /// Where each host is kept, in the order of the run's; `None`: it is logged in to.
        berths: Vec<Option<WarmBerth>>,
    },
    /// Their transfers share the connections.
    Transfers {
        /// Whoever has them.
        sharing: Arc<dyn Sharing>,
        /// Whether each host is kept, in the order of the run's; if not, it is logged in to.
        kept: Vec<bool>,
    },
}

/// Who has connections shared.
pub trait Sharing: Send + Sync {
    /// That of a host of the run; `None` if it is not kept any more. May wait a moment for an answer.
    fn share(&self, host: HostId) -> Option<SharedConnection>;
}

/// A connection that somebody else has made and logged in.
pub struct SharedConnection {
    /// Where SSH packets come and go as in proxy mode (PROTOCOL.mux section 9).
    pub socket: UnixStream,
    /// The server's identification string.
    pub server: String,
    /// How long its packets need there and back, about.
    pub round_trip: Duration,
    /// The server's address; `None` behind a jump host.
    pub address: Option<SocketAddr>,
    /// The algorithm of its host key, which was verified, and the key.
    pub host_key: (String, Vec<u8>),
}

impl WarmPlan {
    /// Where a host is kept whose command goes by a stream.
    pub(crate) fn berth(&self, host: HostId) -> Option<WarmBerth> {
        match self {
            WarmPlan::Commands { berths, .. } => berths.get(host.0 as usize).copied().flatten(),
            WarmPlan::Transfers { .. } => None,
        }
    }

    /// Who has a host's connection shared.
    pub(crate) fn sharing(&self, host: HostId) -> Option<&Arc<dyn Sharing>> {
        match self {
            WarmPlan::Commands { .. } => None,
            WarmPlan::Transfers { sharing, kept } => {
                let is_kept = kept.get(host.0 as usize).copied().unwrap_or_default();
                is_kept.then_some(sharing)
            }
        }
    }

    /// The streams, which are handed out once.
    pub(crate) fn take_streams(&mut self) -> Vec<UnixStream> {
        match self {
            WarmPlan::Commands { streams, .. } => std::mem::take(streams),
            WarmPlan::Transfers { .. } => Vec::new(),
        }
    }
}

/// Where a host is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WarmBerth {
    /// By which of the streams.
    pub stream: usize,
    /// The host, by that keeper's number.
    pub host: u32,
    /// What the connection is made of.
    pub identity: Identity,
}

/// The keepers, for a thread that talks to them, and what it knows of its hosts.
#[derive(Default)]
pub(crate) struct Keepers {
    streams: Vec<Rc<Stream>>,
    /// Hosts that are not kept after all.
    cold: RefCell<HashSet<HostId>>,
}

impl Keepers {
    /// Begins to listen to them.
    pub(crate) fn begin(streams: Vec<UnixStream>) -> io::Result<Keepers> {
        let streams = streams.into_iter().map(Stream::begin);
        Ok(Keepers {
            streams: streams.collect::<io::Result<_>>()?,
            cold: RefCell::default(),
        })
    }

    /// The stream of a host that is kept there, as far as anybody knows.
    pub(crate) fn stream(&self, host: HostId, berth: WarmBerth) -> Option<&Rc<Stream>> {
        let stream = self.streams.get(berth.stream)?;
        (stream.is_open() && !self.is_cold(host)).then_some(stream)
    }

    /// Whether the host is not kept after all.
    pub(crate) fn is_cold(&self, host: HostId) -> bool {
        self.cold.borrow().contains(&host)
    }

    /// The host is logged in to when it is tried again.
    pub(crate) fn goes_cold(&self, host: HostId) {
        self.cold.borrow_mut().insert(host);
    }
}

/// Nothing of the host's was begun, and it is to be logged in to.
pub(crate) fn goes_cold(worker: &Worker, host: HostId, why: String) -> Ended {
    worker.keepers.goes_cold(host);
    Ended::stranded(Failure::new(FailureKind::Lost, why), ExecFate::NotSent)
}
