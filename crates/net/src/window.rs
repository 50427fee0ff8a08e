//! The size of our terminal, for a session that has one (RFC 4254 section 6.7).

use std::io;

use rustix::termios::tcgetwinsize;
use sshoal_proto::Pty;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Tells when our terminal is not as large any more as the server was told.
pub(crate) struct WindowChanges {
    /// SIGWINCH.
    signal: Option<Signal>,
    told: (u32, u32),
}

impl WindowChanges {
    /// Nothing is told of a session without a terminal.
    pub(crate) fn watch(pty: Option<&Pty>) -> Self {
        WindowChanges {
            signal: pty.and_then(|_| signal(SignalKind::window_change()).ok()),
            told: pty.map_or((0, 0), |pty| (pty.columns, pty.rows)),
        }
    }

    /// The next size: columns and rows. Cancelling loses nothing.
    pub(crate) async fn next(&mut self) -> (u32, u32) {
        while let Some(signal) = &mut self.signal {
            match tcgetwinsize(io::stdin()) {
                Ok(size) if size.ws_col > 0 => {
                    let size = (size.ws_col.into(), size.ws_row.into());
                    if size != self.told {
                        self.told = size;
                        return size;
                    }
                }
                _ => {}
            }
            if signal.recv().await.is_none() {
                break;
            }
        }
        std::future::pending().await
    }
}
