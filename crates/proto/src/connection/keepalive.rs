//! Keepalive: ServerAliveInterval and ServerAliveCountMax (ssh_config(5), clientloop.c).

use std::time::{Duration, Instant};

use super::Connection;
use super::global_requests::Asker;
use crate::error::ConnectionError;

/// The request that OpenSSH uses; servers that do not know it answer REQUEST_FAILURE, which is as good.
const KEEPALIVE: &[u8] = b"keepalive@openssh.com";
/// The longest time between two requests to a server that is doubted.
const HASTE: Duration = Duration::from_secs(5);

/// When the server was last heard, and what it still owes.
pub(super) struct Keepalive {
    interval: Option<(Duration, u32)>,
    /// When octets last came, or a request was last sent.
    last_sign: Instant,
    /// Requests since the last packet from the server.
    unheeded: u32,
    /// Whether the server was doubted, and not heard since.
    is_doubted: bool,
    /// When octets last came.
    heard: Instant,
    /// When the request was sent whose reply is measured.
    asked: Option<Instant>,
    round_trip: Option<Duration>,
}

impl Keepalive {
    pub(super) fn new(interval: Option<(Duration, u32)>, now: Instant) -> Self {
        Keepalive {
            interval,
            last_sign: now,
            unheeded: 0,
            is_doubted: false,
            heard: now,
            asked: None,
            round_trip: None,
        }
    }

    /// Octets came.
    pub(super) fn handle_octets(&mut self, now: Instant) {
        (self.last_sign, self.heard) = (now, now);
    }

    /// A packet came: whatever it says, the server is alive (packet.c, `ssh_packet_set_alive_timeouts`).
    pub(super) fn handle_packet(&mut self) {
        (self.unheeded, self.is_doubted) = (0, false);
    }

    /// When to ask next.
    pub(super) fn due(&self) -> Option<Instant> {
        let (interval, _) = self.interval?;
        let interval = match self.is_doubted {
            true => interval.min(HASTE),
            false => interval,
        };
        self.last_sign.checked_add(interval)
    }

    /// How long the server last took to answer a request.
    pub(super) fn round_trip(&self) -> Option<Duration> {
        self.round_trip
    }

    /// A reply came.
    pub(super) fn handle_reply(&mut self) {
        if let Some(asked) = self.asked.take() {
            self.round_trip = Some(self.heard.saturating_duration_since(asked));
        }
    }
}

impl Connection {
    /// Sends a keepalive request if one is due.
    pub(super) fn keep_alive(&mut self, now: Instant) -> Result<(), ConnectionError> {
        let Some((_, most)) = self.keepalive.interval else {
            return Ok(());
        };
        if !matches!(self.login, super::Login::Authenticated)
            || self.keepalive.due().is_none_or(|due| now < due)
        {
            return Ok(());
        }
        if self.keepalive.unheeded >= most {
            return Err(ConnectionError::KeepaliveTimeout {
                unanswered: self.keepalive.unheeded,
            });
        }
        self.keepalive.unheeded += 1;
        // The next one is due an interval from now, whether or not anything is heard.
        self.keepalive.last_sign = now;
        self.send_measured(now)
    }

    /// Doubts that the server is there: asks it now, and, until it is heard, at least every 5 s. After as many requests as
    /// ever the connection ends. Does nothing where keepalive is off.
    pub(super) fn doubt(&mut self, now: Instant) -> Result<(), ConnectionError> {
        if self.keepalive.interval.is_none() || self.keepalive.is_doubted {
            return Ok(());
        }
        self.keepalive.is_doubted = true;
        self.keepalive.unheeded = 1;
        self.keepalive.last_sign = now;
        self.send_measured(now)
    }

    /// Sends a keepalive request. Of several that are under way the first one is measured.
    fn send_measured(&mut self, now: Instant) -> Result<(), ConnectionError> {
        if self.replies.count(Asker::Keepalive) == 0 {
            self.keepalive.asked = Some(now);
        }
        self.send_keepalive()
    }

    /// Sends a keepalive request, whether or not one is due.
    pub(super) fn send_keepalive(&mut self) -> Result<(), ConnectionError> {
        self.ask(Asker::Keepalive, KEEPALIVE, b"")
    }
}
