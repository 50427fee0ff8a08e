//! When this side starts a key re-exchange: RFC 4253 section 9, RFC 4344 section 3.

use std::time::Instant;

use crate::connection::{Connection, Login};
use crate::error::ConnectionError;

use super::Established;

impl Connection {
    /// Starts a re-exchange when a limit of keys, octets or time is reached.
    pub(in crate::connection) fn rekey_if_due(
        &mut self,
        now: Instant,
    ) -> Result<(), ConnectionError> {
        let Some(established) = self.rekeyable() else {
            return Ok(());
        };
        let late = self.rekey_due().is_some_and(|due| due <= now);
        if !late && !self.is_used_up(established) {
            return Ok(());
        }
        tracing::debug!("rekeying");
        self.start_key_exchange()
    }

    /// When the keys now in use will be too old.
    pub(in crate::connection) fn rekey_due(&self) -> Option<Instant> {
        self.rekeyable()?;
        self.last_exchange
            .checked_add(self.settings.rekey.interval?)
    }

    /// What was established, if the user is logged in and no exchange goes on. Before that OpenSSH's server may sign one
    /// exchange hash (monitor.c, MON_ONCE), and its client begins none (packet.c, ssh_packet_need_rekeying).
    fn rekeyable(&self) -> Option<&Established> {
        let logged_in = matches!(self.login, Login::Authenticated);
        self.established
            .as_deref()
            .filter(|_| logged_in && self.exchange.is_idle())
    }

    /// Whether the keys of either direction have protected as much as they may: a packet at least, as with OpenSSH, or the
    /// least of limits would let nothing through.
    fn is_used_up(&self, established: &Established) -> bool {
        let limits = &self.settings.rekey;
        let bytes = limits.bytes.unwrap_or(u64::MAX);
        [self.outgoing.used(), self.incoming.used()]
            .into_iter()
            .zip(established.limits)
            .filter(|(used, _)| used.packets > 0)
            .any(|(used, cipher_limit)| {
                used.packets >= limits.packets || used.bytes >= bytes.min(cipher_limit)
            })
    }
}
