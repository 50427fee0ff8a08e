//! What passes between a fleet and the one who performs it: actions one way, events the other.

use std::fmt;

use crate::{Failure, Fate, HostId, JumpId, Outcome};

/// Where a host is on its way. A host enters phases in this order and may skip some (a warm connection
/// begins with `Session`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Turning the name into addresses. A started host is here until told otherwise.
    Lookup,
    /// TCP, or the channel through a jump host.
    Connect,
    /// Connected: identification, key exchange, authentication.
    Login,
    /// Authenticated: opening the channel, asking for the command.
    Session,
    /// The command runs.
    Command,
}

/// A point that a host may pass only when there is room.
///
/// While a host waits at a gate, no clock of its runs: waiting counts neither against a deadline nor as
/// time of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Gate {
    /// Before the first octet of a login, the connection standing. Passing it takes one of
    /// `Limits::logins` and gives back one of `Limits::connects`.
    Login,
    /// Before an agent is asked for a signature. [`Event::Left`] gives the place back.
    Signature,
    /// Before the first octet of the command is sent, be it pipelined behind the login or not.
    ///
    /// The place, one of `Limits::sessions`, is held since the start, so there is always room; but a run
    /// that has been interrupted lets nobody through, and a host that has not passed here is known not to
    /// have run its command.
    Session,
}

/// What the performer is to do now.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Action {
    /// Begin with the host's name lookup.
    Start {
        /// The host.
        host: HostId,
        /// 1 for the first attempt.
        attempt: u32,
    },
    /// Log in to this jump host and answer with [`JumpEvent::Up`], or with [`JumpEvent::Down`]. No host behind
    /// it is started before.
    Connect {
        /// The jump host.
        jump: JumpId,
        /// 1 for the first attempt, and for the first after it has been of use.
        attempt: u32,
    },
    /// All hosts of a batch have ended ([`Rolling`](crate::Rolling)). Answer with
    /// [`Fleet::begin_batch`](crate::Fleet::begin_batch) when the next may begin, or with
    /// [`Fleet::halt`](crate::Fleet::halt).
    AgreeToBatch {
        /// Batches that have begun so far, all of which have ended.
        ended: u32,
    },
    /// Let the host through the gate it waits at.
    Admit {
        /// The host.
        host: HostId,
        /// The gate.
        gate: Gate,
    },
    /// Tear down what there is of the host, then answer with [`Event::Failed`] and the command's fate. The
    /// failure in that answer is ignored: this one stands.
    Abort {
        /// The host.
        host: HostId,
        /// Why, and the host's result if its command may have run or a deadline passed.
        failure: Failure,
    },
    /// Ask the server to send the command SIGINT (RFC 4254 section 6.9), and go on waiting for its end. If
    /// the command has not been sent, treat this as an abort.
    Interrupt {
        /// The host.
        host: HostId,
    },
}

impl Action {
    /// The host it is about; `None` if that is a jump host or a batch.
    pub fn host(&self) -> Option<HostId> {
        match self {
            Action::Start { host, .. }
            | Action::Admit { host, .. }
            | Action::Abort { host, .. }
            | Action::Interrupt { host } => Some(*host),
            Action::Connect { .. } | Action::AgreeToBatch { .. } => None,
        }
    }
}

/// What has happened to a host.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Event {
    /// The host is now in this phase. Entering the present phase again changes nothing, but that a program of this
    /// machine ([`JumpId::PROGRAM`]) has been heard of by it, and that a host which was [queued](Event::Queued) goes on.
    Entered(Phase),
    /// The host waits for a turn of the performer's own: it holds no place that another may need, and has many times the
    /// deadline of its phase for that. Once it enters its phase again, all its time is before it.
    Queued,
    /// The first key exchange is complete: splits the time of [`Phase::Login`].
    KeysExchanged,
    /// The host waits at this gate until [`Action::Admit`].
    Reached(Gate),
    /// The host has no more use for the place it took at this gate. Only the signature gate needs it, the
    /// others' places go with the phase, and leaving those changes nothing.
    Left(Gate),
    /// The attempt has failed and nothing of it is left open.
    Failed {
        /// What went wrong.
        failure: Failure,
        /// Whether the connection vouches that another attempt cannot run the command twice.
        safe_to_retry: bool,
        /// What is known of the command.
        fate: Fate,
    },
    /// The attempt has ended for a reason that says nothing about the host, and nothing of it is left open: the jump
    /// host's connection has ended under it, or a shortcut was taken that the server does not bear. If
    /// the command is proven not to have run, the host is tried again with back-off, whatever the failure's kind.
    Stranded {
        /// What went wrong.
        failure: Failure,
        /// What is known of the command.
        fate: Fate,
    },
    /// The connection was lost in the midst of something that may be begun anew without harm, as copying files may, and
    /// nothing of the attempt is left open. The host is tried once more, or for as long as
    /// [`Deadlines::survive`](crate::Deadlines::survive) says; if that does not come so far, this failure is its end all the same.
    Cut {
        /// What went wrong.
        failure: Failure,
        /// What is known of what was begun.
        fate: Fate,
    },
    /// The attempt is over, nothing of it is left open, and nothing of the command was sent: the user must be asked
    /// something before there is another. The host holds nothing until [`Fleet::resume`](crate::Fleet::resume) or
    /// [`Fleet::give_up`](crate::Fleet::give_up).
    Held,
    /// The attempt is over, nothing of it is left open, nothing of a command was sent, and whoever performs the host will say
    /// when there is to be another one, whatever deadline has passed. As [`Event::Held`] beyond that.
    Parked,
    /// Whoever performed the attempt is gone and cannot say what it had done: a defect on this side. The command's
    /// fate is what the events before allow to conclude; there is no other attempt.
    Crashed(Failure),
    /// The host has ended, and nothing of it is left open.
    Finished(Outcome),
}

/// What has happened to a jump host. What comes unasked, or is about a jump host that no job names, is ignored.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum JumpEvent {
    /// It is logged in to: the hosts behind it may start.
    Up,
    /// It could not be logged in to, or its connection has ended since. It is tried again as a host would be that
    /// failed so, and one whose connection has ended with back-off; once it has had its attempts, every host
    /// behind it that has not ended fails with this failure.
    Down(Failure),
}

/// An event that makes no sense in the state its host is in. The fleet's state is unchanged.
///
/// Events about a host that has ended or is being aborted are no errors: they cross the fleet's decision on
/// their way, and are ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// The run has no such host.
    #[error("host {} is not part of this run", .0.0)]
    UnknownHost(HostId),
    /// The host has not been started, or waits for its next attempt or its user.
    #[error("host {} was not told to start", .0.0)]
    NotRunning(HostId),
    /// A phase cannot be entered from a later one.
    #[error("host {} is in phase {from} and cannot go back to {to}", .host.0)]
    Backwards {
        /// The host.
        host: HostId,
        /// The phase it is in.
        from: Phase,
        /// The phase it claims to enter.
        to: Phase,
    },
    /// A host waiting at a gate can only fail or finish.
    #[error("host {} waits at the {gate} gate and was not let through", .host.0)]
    Waiting {
        /// The host.
        host: HostId,
        /// The gate it waits at.
        gate: Gate,
    },
    /// A gate that the host has already passed, or that it is beyond.
    #[error("host {} is past the {gate} gate", .host.0)]
    PastGate {
        /// The host.
        host: HostId,
        /// The gate.
        gate: Gate,
    },
    /// The host holds no place of this gate.
    #[error("host {} did not pass the {gate} gate", .host.0)]
    NotPassed {
        /// The host.
        host: HostId,
        /// The gate.
        gate: Gate,
    },
}

impl fmt::Display for Phase {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Phase::Lookup => "lookup",
            Phase::Connect => "connect",
            Phase::Login => "login",
            Phase::Session => "session",
            Phase::Command => "command",
        })
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Gate::Login => "login",
            Gate::Signature => "signature",
            Gate::Session => "session",
        })
    }
}
