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
    last_heard: Instant,
    unanswered: u32,
}

impl Keepalive {
    pub(super) fn new(interval: Option<(Duration, u32)>, now: Instant) -> Self {
        Keepalive {
            interval,
            last_heard: now,
            unanswered: 0,
        }
    }

    pub(super) fn heard(&mut self, now: Instant) {
        self.last_heard = now;
    }

    pub(super) fn due(&self) -> Option<Instant> {
        let (interval, _) = self.interval?;
        Some(self.last_heard + interval)
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
        if self.keepalive.unanswered >= most {
            return Err(ConnectionError::KeepaliveTimeout {
                unanswered: self.keepalive.unanswered,
            });
        }
        self.keepalive.unanswered += 1;
        // The next one is due an interval from now, whether or not anything is heard.
        self.keepalive.last_heard = now;
        self.send(|out| {
            GlobalRequest {
                request_name: KEEPALIVE,
                want_reply: true,
                data: b"",
            }
            .encode(out)
        })
    }

    /// REQUEST_SUCCESS or REQUEST_FAILURE: keepalives are the only global requests this side makes.
    pub(super) fn handle_global_reply(
        &mut self,
        message: &'static str,
    ) -> Result<(), ConnectionError> {
        if self.keepalive.unanswered == 0 {
            return Err(Misbehaviour::UnaskedReply { message }.into());
        }
        self.keepalive.unanswered -= 1;
        Ok(())
    }
}
