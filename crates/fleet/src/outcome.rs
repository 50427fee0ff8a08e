//! How a host ended: what became of its command, and where its time went.

use std::time::Duration;

use crate::{Failure, FailureKind, HostId};

/// What is known of the command when its host failed: `ExecFate` of the connection, as a result carries it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fate {
    /// Not all of the request left this side: the command did not run.
    NotSent,
    /// The server threw the request away and said so: the command did not run.
    ProvenDiscarded,
    /// The request left and nothing that came back settles what happened.
    MayHaveRun,
    /// The server confirmed that the command started.
    Ran,
}

impl Fate {
    /// Whether it is proven that the command did not run.
    pub fn is_proven_not_run(self) -> bool {
        matches!(self, Fate::NotSent | Fate::ProvenDiscarded)
    }
}

/// The end of one host.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The command ran and returned this status, 0 included (RFC 4254 section 6.10, `exit-status`).
    Exit(u32),
    /// A signal ended the command (RFC 4254 section 6.10, `exit-signal`).
    Signal {
        /// The signal's name without `SIG`, as the server gave it.
        name: String,
        /// Whether the server reports a core dump.
        core_dumped: bool,
        /// The server's explanation, often empty.
        message: String,
    },
    /// The host failed before its command gave a status.
    Failed {
        /// What went wrong.
        failure: Failure,
        /// What is known of the command.
        fate: Fate,
    },
    /// The run was interrupted before this host's command was sent.
    NotStarted,
}

impl Outcome {
    /// The kind to count and select this host by: `None` for exit status 0 and for hosts not started.
    pub fn failure_kind(&self) -> Option<FailureKind> {
        match self {
            Outcome::Exit(0) | Outcome::NotStarted => None,
            Outcome::Exit(_) => Some(FailureKind::Exit),
            Outcome::Signal { .. } => Some(FailureKind::Signal),
            Outcome::Failed { failure, .. } => Some(failure.kind),
        }
    }

    /// Whether the command ran and succeeded.
    pub fn is_success(&self) -> bool {
        *self == Outcome::Exit(0)
    }
}

/// What was seen of a command that had to end: whether anything of it still runs on its host.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum KillVerdict {
    /// The host's process list has nothing of it any more.
    Gone,
    /// The same, but it took SIGKILL.
    GoneAfterKill,
    /// Nobody looked, or something is left; and why, or what.
    NotConfirmed(String),
}

impl KillVerdict {
    /// The verdict's name: `gone`, `gone-after-kill`, `not-confirmed`.
    pub fn name(&self) -> &'static str {
        match self {
            KillVerdict::Gone => "gone",
            KillVerdict::GoneAfterKill => "gone-after-kill",
            KillVerdict::NotConfirmed(_) => "not-confirmed",
        }
    }
}

/// Where a host's time went. Phases are those of the last attempt, without the time spent waiting at gates;
/// `None` means that the phase was not entered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct PhaseTimes {
    /// Turning the name into addresses.
    pub lookup: Option<Duration>,
    /// TCP, or the channel through a jump host.
    pub connect: Option<Duration>,
    /// Identification, key exchange and authentication together.
    pub login: Option<Duration>,
    /// The part of `login` up to the end of the key exchange.
    pub key_exchange: Option<Duration>,
    /// The rest of `login`.
    pub authentication: Option<Duration>,
    /// From authenticated to the command's start.
    pub session: Option<Duration>,
    /// From the command's start to its end.
    pub command: Option<Duration>,
    /// Time spent waiting at gates, in the last attempt.
    pub waited: Duration,
    /// From the first start of the host to its end, with all attempts, back-offs and waits.
    pub total: Option<Duration>,
}

impl PhaseTimes {
    /// Whether the session was one on a connection that was there already.
    pub fn is_warm(&self) -> bool {
        self.session.is_some() && self.connect.is_none() && self.login.is_none()
    }
}

/// One host's final result: every host of a run yields exactly one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HostResult {
    /// The host.
    pub host: HostId,
    /// How it ended.
    pub outcome: Outcome,
    /// How often it was started; 0 if the run was interrupted, or its jump host given up, before its turn.
    pub attempts: u32,
    /// Where the time went.
    pub times: PhaseTimes,
}
