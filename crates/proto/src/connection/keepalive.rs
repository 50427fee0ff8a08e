//! Keepalive: ServerAliveInterval and ServerAliveCountMax (ssh_config(5), clientloop.c).

use std::time::{Duration, Instant};

use sshoal_wire::GlobalRequest;

use super::Connection;
use crate::error::{ConnectionError, Misbehaviour};

/// The request that OpenSSH uses; servers that do not know it answer REQUEST_FAILURE, which is as good.
const KEEPALIVE: &[u8] = b"keepalive@openssh.com";

/// When the server was last heard, and what it still owes.
pub(super) struct Keepalive {
    interval: Option<(Duration, u32)>,
    /// When octets last came, or a request was last sent.
    last_sign: Instant,
    /// Requests since the last packet from the server.
    unheeded: u32,
    /// Requests that a reply may still come to.
    unanswered: u32,
}

impl Keepalive {
    pub(super) fn new(interval: Option<(Duration, u32)>, now: Instant) -> Self {
        Keepalive {
            interval,
            last_sign: now,
            unheeded: 0,
            unanswered: 0,
        }
    }

    /// Octets came.
    pub(super) fn handle_octets(&mut self, now: Instant) {
        self.last_sign = now;
    }

    /// A packet came: whatever it says, the server is alive (packet.c, `ssh_packet_set_alive_timeouts`).
    pub(super) fn handle_packet(&mut self) {
        self.unheeded = 0;
    }

    /// Requests that a reply may still come to.
    pub(super) fn unanswered(&self) -> u32 {
        self.unanswered
    }

    /// When to ask next.
    pub(super) fn due(&self) -> Option<Instant> {
        let (interval, _) = self.interval?;
        self.last_sign.checked_add(interval)
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
        self.keepalive.unanswered = self.keepalive.unanswered.saturating_add(1);
        // The next one is due an interval from now, whether or not anything is heard.
        self.keepalive.last_sign = now;
        self.send_request()
    }

    /// Sends a keepalive request that was not due.
    pub(super) fn send_keepalive(&mut self) -> Result<(), ConnectionError> {
        self.keepalive.unanswered = self.keepalive.unanswered.saturating_add(1);
        self.send_request()
    }

    fn send_request(&mut self) -> Result<(), ConnectionError> {
        self.send(|out| {
            GlobalRequest {
                request_name: KEEPALIVE,
                want_reply: true,
                data: b"",
            }
            .encode(out)
        })
    }

    /// REQUEST_SUCCESS with its data, or REQUEST_FAILURE: to a keepalive, or with the proof of host keys.
    pub(super) fn handle_global_reply(
        &mut self,
        message: &'static str,
        data: Option<&[u8]>,
    ) -> Result<(), ConnectionError> {
        if self.takes_proof(data) {
            return Ok(());
        }
        match self.keepalive.unanswered.checked_sub(1) {
            Some(unanswered) => {
                self.keepalive.unanswered = unanswered;
                Ok(())
            }
            None => Err(Misbehaviour::UnaskedReply { message }.into()),
        }
    }
}
