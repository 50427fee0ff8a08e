//! A passenger's proxy mode, on its own side: its seat, and what it counts for.

use std::rc::Rc;
use std::sync::atomic::Ordering;

use sshoal_mux::{Passenger, PassengerError};

use crate::host::{HAS_ENDED, Host};
use crate::proxy::Proxied;
use crate::seat::{Seat, Wanted};

/// One passenger in proxy mode.
pub(crate) struct ProxiedSession {
    host: Rc<Host>,
    seat: Rc<Seat>,
}

/// What is to be expected of a passenger's connection.
pub(crate) enum Prospect {
    Open,
    /// Nothing more comes from the server; why.
    Over(String),
    /// The passenger has done what it may not.
    AtFault(String),
}

impl ProxiedSession {
    /// It waits for a place among the sessions like everybody.
    pub(crate) fn begin(host: &Rc<Host>) -> ProxiedSession {
        let seat = Seat::new(Wanted::Proxy(Proxied::default()));
        let counts = &host.entry.counts;
        counts.sessions.fetch_add(1, Ordering::Relaxed);
        counts.sessions_in_all.fetch_add(1, Ordering::Relaxed);
        host.note_use();
        host.admit(seat.clone());
        let host = host.clone();
        ProxiedSession { host, seat }
    }

    /// A packet of the passenger's.
    pub(crate) fn feed(&self, payload: Vec<u8>) {
        if let Some(proxied) = self.seat.proxied() {
            proxied.feed(payload);
            self.seat.serve_soon();
        }
    }

    /// Whether more packets are to be read.
    pub(crate) fn has_room(&self) -> bool {
        self.seat.proxied().is_some_and(Proxied::has_room)
    }

    /// Whether there is more than the passenger's socket was handed.
    pub(crate) fn has_more(&self) -> bool {
        self.seat.proxied().is_some_and(Proxied::has_more)
    }

    /// Hands on what the server has sent; returns whether more of that can come.
    pub(crate) fn advance<D>(
        &self,
        passenger: &mut Passenger<D>,
    ) -> Result<Prospect, PassengerError> {
        let Some(proxied) = self.seat.proxied() else {
            return Ok(Prospect::Open);
        };
        let octets = proxied.deliver(passenger)?;
        let received = &self.host.entry.counts.received;
        received.fetch_add(octets as u64, Ordering::Relaxed);
        let down = self.seat.down();
        let lost = || {
            let why = down.refusal.clone().or_else(|| down.lost.clone());
            why.unwrap_or_else(|| HAS_ENDED.to_owned())
        };
        Ok(match (proxied.fault(), down.is_closed) {
            (Some(fault), _) => Prospect::AtFault(fault),
            (None, true) => Prospect::Over(lost()),
            (None, false) => Prospect::Open,
        })
    }

    /// Waits until something may have changed.
    pub(crate) async fn news(&self) {
        self.seat.news.notified().await;
    }
}

impl Drop for ProxiedSession {
    fn drop(&mut self) {
        self.seat.leave();
        let sessions = &self.host.entry.counts.sessions;
        sessions.fetch_sub(1, Ordering::Relaxed);
        self.host.note_use();
    }
}
