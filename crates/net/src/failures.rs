//! From what went wrong below to what a user is told: kind, detail, remedy.

use std::io;

use sshoal_fleet::{Failure, FailureKind, Fate};
use sshoal_proto::{ConnectionError, ExecFate, Phase};
use sshoal_wire::reason;

/// How an attempt at a host failed.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) failure: Failure,
    pub(crate) fate: ExecFate,
    /// Whether it was the jump host's connection that ended, which says nothing about the host.
    pub(crate) stranded: bool,
}

impl Ended {
    /// A failure of the host itself, or on the way to it.
    pub(crate) fn new(failure: Failure, fate: ExecFate) -> Self {
        Ended {
            failure,
            fate,
            stranded: false,
        }
    }

    /// A failure before anything of the command could have left.
    pub(crate) fn before_command(failure: Failure) -> Self {
        Ended::new(failure, ExecFate::NotSent)
    }

    /// The jump host's connection has ended under the host, for the reason that `failure` gives.
    pub(crate) fn stranded(failure: Failure, fate: ExecFate) -> Self {
        let failure = match fate.safe_to_resend() {
            true => failure,
            false => Failure::new(FailureKind::Lost, failure.detail),
        };
        Ended {
            failure,
            fate,
            stranded: true,
        }
    }
}

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Self {
        Ended::before_command(failure)
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

/// A jump host that opened no channel to `to` (RFC 4254 section 5.1). What hinders TCP, it says in its own words:
/// OpenSSH's are those of its system's gai_strerror(3) and strerror(3) (channels.c, connect_to_helper and
/// channel_post_connecting).
pub(crate) fn tunnel(jump: &str, to: &str, reason_code: u32, description: &str) -> Failure {
    let detail = format!("jump host {jump} did not connect to {to}: {description}");
    let says = |words: &[&str]| words.iter().any(|word| description.contains(word));
    let kind = match reason_code {
        reason::OPEN_ADMINISTRATIVELY_PROHIBITED => {
            let remedy =
                "allow it with AllowTcpForwarding and PermitOpen in the jump host's sshd_config";
            return Failure::with_remedy(FailureKind::ChannelRefused, detail, remedy);
        }
        reason::OPEN_CONNECT_FAILED if says(LOOKUP_FAILED) => FailureKind::Resolve,
        reason::OPEN_CONNECT_FAILED if says(&["refused"]) => FailureKind::Refused,
        reason::OPEN_CONNECT_FAILED if says(&["timed out"]) => FailureKind::ConnectTimeout,
        reason::OPEN_CONNECT_FAILED => FailureKind::Unreachable,
        reason::OPEN_RESOURCE_SHORTAGE => FailureKind::Throttled,
        _ => FailureKind::ChannelRefused,
    };
    Failure::new(kind, detail)
}

/// What jump hosts say of a name that has no address: glibc, musl, BSD and macOS, Go.
const LOOKUP_FAILED: &[&str] = &[
    "Name or service not known",
    "name resolution",
    "No address associated with",
    "Name does not resolve",
    "nodename nor servname",
    "no such host",
];

/// A failure of a jump host, for those behind it.
pub(crate) fn of_jump(jump: &str, failure: &Failure) -> Failure {
    Failure::with_remedy(
        failure.kind,
        format!("jump host {jump}: {}", failure.detail),
        failure.remedy.as_str(),
    )
}

/// The connection to a jump host that was logged in to has ended.
pub(crate) fn jump_lost(jump: &str, why: &str) -> Failure {
    let remedy =
        "check that the jump host and its sshd are up; what was not begun can be run again";
    let detail = format!("the connection to jump host {jump} was lost: {why}");
    Failure::with_remedy(FailureKind::Unreachable, detail, remedy)
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
