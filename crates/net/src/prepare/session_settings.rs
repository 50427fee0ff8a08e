//! What ssh_config says of the session itself.

use sshoal_proto::Pty;
use sshoal_ssh_config::{RequestTty, Resolved, Session, SessionType};

use super::PrepareError;

/// TTY_OP_END (RFC 4254 section 8): the server's own modes are kept.
const NO_MODES: &[u8] = &[0];

/// RequestTTY force. Where nobody's terminal is lent, "yes" is as with ssh without a terminal: none.
pub(super) fn forced_pty(session: &Session) -> Option<Pty> {
    (session.request_tty.value == RequestTty::Force).then(|| Pty {
        term: std::env::var("TERM").unwrap_or_else(|_| "dumb".to_owned()),
        // Not known: RFC 4254 section 6.2 has them ignored.
        columns: 0,
        rows: 0,
        modes: NO_MODES.to_vec(),
    })
}

pub(super) fn refuse_unsupported(host: &str, resolved: &Resolved) -> Result<(), PrepareError> {
    let session_type = &resolved.session.session_type;
    let what = match session_type.value {
        SessionType::Default => return Ok(()),
        SessionType::None => "SessionType none (a session without a command)",
        SessionType::Subsystem => "SessionType subsystem",
    };
    Err(PrepareError::Unsupported {
        host: host.to_owned(),
        what,
        origin: session_type.origin.to_string(),
    })
}
