//! From what went wrong below to what a user is told: kind, detail, remedy.

use std::io;

use sshoal_fleet::{Failure, FailureKind, Fate};
use sshoal_proto::{ConnectionError, ExecFate, Phase};

/// How an attempt at a host failed.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) failure: Failure,
    pub(crate) fate: ExecFate,
}

impl Ended {
    /// A failure before anything of the command could have left.
    pub(crate) fn before_command(failure: Failure) -> Self {
        Ended {
            failure,
            fate: ExecFate::NotSent,
        }
    }
}

/// The fleet's name for what the connection knows.
pub(crate) fn fate(fate: ExecFate) -> Fate {
    match fate {
        ExecFate::NotSent => Fate::NotSent,
        ExecFate::ProvenDiscarded => Fate::ProvenDiscarded,
        ExecFate::MayHaveRun => Fate::MayHaveRun,
        ExecFate::Ran => Fate::Ran,
    }
}

/// A TCP connection that could not be made.
pub(crate) fn connecting(to: &str, error: &io::Error) -> Failure {
    let kind = match error.kind() {
        io::ErrorKind::ConnectionRefused => FailureKind::Refused,
        io::ErrorKind::TimedOut => FailureKind::ConnectTimeout,
        // A full accept queue of a local socket, or a reset by a firewall: the host is there.
        io::ErrorKind::ConnectionReset => FailureKind::Refused,
        _ => FailureKind::Unreachable,
    };
    Failure::new(kind, format!("connecting to {to}: {error}"))
}

/// A connection that ended by itself. `command` is what is known of the command then.
pub(crate) fn connection(error: &ConnectionError, command: ExecFate) -> Failure {
    let detail = error.to_string();
    if !command.safe_to_resend() {
        return Failure::new(FailureKind::Lost, detail);
    }
    let kind = match error {
        ConnectionError::NotSsh { said } if is_throttling(said) => FailureKind::Throttled,
        // sshd drops connections over MaxStartups without a word before 9.2, and in its penalty box.
        ConnectionError::Closed {
            during: Phase::Identification,
        } => FailureKind::Throttled,
        ConnectionError::NoCommonAlgorithm { .. } => FailureKind::NoCommonAlgorithm,
        ConnectionError::Disconnected { description, .. } if is_auth_denial(description) => {
            FailureKind::AuthDenied
        }
        ConnectionError::Sign(_) => FailureKind::AuthDenied,
        _ => FailureKind::Protocol,
    };
    Failure::new(kind, detail)
}

/// What sshd writes in place of its identification when it has too many connections (sshd.c).
fn is_throttling(said: &str) -> bool {
    ["Exceeded MaxStartups", "Not allowed at this time"]
        .iter()
        .any(|words| said.contains(words))
}

/// sshd's last words after MaxAuthTries (auth.c, auth_maxtries_exceeded).
fn is_auth_denial(description: &str) -> bool {
    description.contains("Too many authentication failures")
}

/// A stream that broke: reset, timed out by the kernel.
pub(crate) fn stream(error: &io::Error, command: ExecFate, during: Phase) -> Failure {
    let kind = match (command.safe_to_resend(), during) {
        (false, _) => FailureKind::Lost,
        (true, Phase::Identification) => FailureKind::Throttled,
        (true, _) => FailureKind::Protocol,
    };
    Failure::new(kind, format!("the connection broke {during}: {error}"))
}
