//! The size of our terminal, for a session that has one (RFC 4254 section 6.7).

use std::io;

use rustix::termios::tcgetwinsize;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Tells when our terminal has changed its size.
pub(crate) struct WindowChanges(Option<Signal>);

impl WindowChanges {
    /// Nothing is told unless `wanted`.
    pub(crate) fn watch(wanted: bool) -> Self {
        WindowChanges(wanted.then(|| signal(SignalKind::window_change()).ok()).flatten())
    }

    /// The next size: columns and rows.
    pub(crate) async fn next(&mut self) -> (u32, u32) {
        while let Some(signal) = &mut self.0
            && signal.recv().await.is_some()
        {
            if let Ok(size) = tcgetwinsize(io::stdin()) {
                return (size.ws_col.into(), size.ws_row.into());
            }
        }
        std::future::pending().await
    }
}
