//! The user's terminal, lent to a remote program (`-t`).

use std::io;
use std::panic;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

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

/// The settings to go back to, while the terminal is lent.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// While it lives, the terminal passes every key on as it is. Dropping it takes the terminal back, and so does a
/// panic anywhere, before it says its words.
pub(crate) struct RawMode(());

impl RawMode {
    /// `None` if standard input is no terminal.
    pub(crate) fn enter() -> Option<RawMode> {
        static HOOK: Once = Once::new();
        let before = tcgetattr(io::stdin()).ok()?;
        let mut raw = before.clone();
        raw.make_raw();
        HOOK.call_once(|| {
            let usual = panic::take_hook();
            panic::set_hook(Box::new(move |panic| {
                take_back();
                usual(panic);
            }));
        });
        *settings() = Some(before);
        let lent = RawMode(());
        tcsetattr(io::stdin(), OptionalActions::Drain, &raw).ok()?;
        Some(lent)
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        take_back();
    }
}

/// Makes the terminal what it was before it was lent.
pub(crate) fn take_back() {
    if let Some(before) = settings().take() {
        // Without a terminal there is nothing left to restore.
        let _ = tcsetattr(io::stdin(), OptionalActions::Drain, &before);
    }
}

fn settings() -> MutexGuard<'static, Option<Termios>> {
    BEFORE.lock().unwrap_or_else(PoisonError::into_inner)
}
