//! What is known about a command whose bytes may have left.

/// What became of a session's command, as far as this side can prove it (DESIGN, invariant 3).
///
/// A caller may send the command again only if [`ExecFate::safe_to_resend`] says so. Retries, journals
/// and pools ask this and nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExecFate {
    /// Not every octet of the request was handed to the transport below: the server cannot have acted on it.
    NotSent,
    /// The server said that it threw the request away: UNIMPLEMENTED named its sequence number after
    /// authentication failed (RFC 4253 section 11.4), DISCONNECT came in place of USERAUTH_SUCCESS (RFC 4253
    /// section 11.1), OPEN_FAILURE refused its channel (RFC 4254 section 5.1), or CHANNEL_FAILURE refused the
    /// request itself (RFC 4254 section 5.4).
    ProvenDiscarded,
    /// The request left and nothing that came back settles what happened.
    MayHaveRun,
    /// The server confirmed that the command started: CHANNEL_SUCCESS, output, or an exit status.
    Ran,
}

impl ExecFate {
    /// Whether sending the command again cannot run it twice.
    pub fn safe_to_resend(self) -> bool {
        matches!(self, ExecFate::NotSent | ExecFate::ProvenDiscarded)
    }
}
