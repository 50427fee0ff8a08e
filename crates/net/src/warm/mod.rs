//! Hosts whose connections another process keeps (`sshoal up`): their commands go by one stream to each of its threads.
//!
//! ```text
//!   host task (errand.rs) --Order--> stream (stream.rs) --socket--> the keeper's thread
//!        ^--- mailbox <----News------/
//! ```
//!
//! All of it happens in the coordinator's thread. A host whose keeper turns out not to have it, before its command can have left,
//! is begun anew with a connection of its own; so are all that have not begun when a keeper is gone.

mod errand;
mod stream;

use std::cell::RefCell;
use std::collections::HashSet;
use std::io;
use std::os::unix::net::UnixStream;
use std::rc::Rc;

use sshoal_fleet::HostId;

use crate::identity::Identity;

pub(crate) use errand::{run, serves};
use stream::Stream;

/// Which hosts of a run are reached by connections that are kept already.
pub struct WarmPlan {
    /// Streams to the keepers.
    pub streams: Vec<UnixStream>,
    /// Where each host is kept, in the order of the run's; `None`: it is logged in to.
    pub berths: Vec<Option<WarmBerth>>,
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

/// The keepers, for the thread that talks to them.
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
        (stream.is_open() && !self.cold.borrow().contains(&host)).then_some(stream)
    }

    /// The host is logged in to when it is tried again.
    fn goes_cold(&self, host: HostId) {
        self.cold.borrow_mut().insert(host);
    }
}
