//! The user's terminal, lent to a remote program (`-t`).

use std::io;

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use sshoal_proto::Pty;

/// TTY_OP_END (RFC 4254 section 8): the server's own modes are kept.
const NO_MODES: &[u8] = &[0];
/// What a terminal is taken for whose size is not known.
const USUAL_SIZE: (u32, u32) = (80, 24);

/// A pseudo-terminal like the one we run on.
pub(crate) fn pty() -> Pty {
    let (columns, rows) = match tcgetwinsize(io::stdin()) {
        Ok(size) if size.ws_col > 0 => (size.ws_col.into(), size.ws_row.into()),
        _ => USUAL_SIZE,
    };
    Pty {
        term: std::env::var("TERM").unwrap_or_else(|_| "dumb".to_owned()),
        columns,
        rows,
        modes: NO_MODES.to_vec(),
    }
}

/// While it lives, the terminal passes every key on as it is; dropping it restores what was.
pub(crate) struct RawMode(Termios);

impl RawMode {
    /// `None` if standard input is no terminal.
    pub(crate) fn enter() -> Option<RawMode> {
        let before = tcgetattr(io::stdin()).ok()?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Drain, &raw).ok()?;
        Some(RawMode(before))
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // Without a terminal there is nothing left to restore.
        let _ = tcsetattr(io::stdin(), OptionalActions::Drain, &self.0);
    }
}
