//! From what went wrong below to what a user is told: kind, detail, remedy.

use std::io;
use std::time::Duration;

use sshoal_fleet::{Failure, FailureKind, Fate};
use sshoal_proto::{Connection, ConnectionError, ExecFate};
use sshoal_wire::reason;

use crate::trust::UnknownKey;

/// How an attempt at a host failed.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) failure: Failure,
    pub(crate) fate: ExecFate,
    /// Whether it says nothing about the host: the jump host's connection ended, or a shortcut was one too many.
    pub(crate) stranded: bool,
    /// Whether what was lost may be begun anew without harm.
    pub(crate) is_cut: bool,
    /// The user must be asked about the host's key, and may let it go on: the failure is what is left otherwise.
    pub(crate) asks: Option<Box<UnknownKey>>,
}

impl Ended {
    /// A failure of the host itself, or on the way to it.
    pub(crate) fn new(failure: Failure, fate: ExecFate) -> Self {
        Ended {
            failure,
            fate,
            stranded: false,
            is_cut: false,
            asks: None,
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
            is_cut: false,
            asks: None,
        }
    }
}

impl Ended {
    /// A shortcut may be to blame, and nothing of the command was carried out.
    pub(crate) fn misled(failure: Failure, fate: ExecFate) -> Self {
        Ended {
            failure,
            fate,
            stranded: true,
            is_cut: false,
            asks: None,
        }
    }
}

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Self {
        Ended::before_command(failure)
    }
}

/// Says of a copy what the fleet and a connection say of a command. `limit` is how long it was allowed to take.
pub(crate) fn tell_of_copy(failure: &mut Failure, limit: Option<Duration>) {
    if let (FailureKind::CommandTimeout, Some(limit)) = (failure.kind, limit) {
        failure.detail = format!("not everything was copied within {limit:?}");
    }
    // What is known better stays.
    if failure.remedy == failure.kind.remedy() {
        failure.remedy = failure.kind.remedy_of_copy().to_owned();
    }
}

/// Says of a command on a connection that is kept what the fleet says of one behind a login: there was none, so it is the
/// server that is silent. `limit` is how long it was waited for.
pub(crate) fn tell_of_kept(failure: &mut Failure, limit: Option<Duration>) {
    let overdue = FailureKind::LoginTimeout;
    let may_have_run = || failure.detail.starts_with(&format!("{overdue}: "));
    let is_meant = match failure.kind {
        FailureKind::LoginTimeout => true,
        FailureKind::Lost => may_have_run(),
        _ => false,
    };
    if let (true, Some(limit)) = (is_meant, limit) {
        failure.detail =
            format!("no answer within {limit:?} on the connection that `sshoal up` keeps");
        failure.remedy = match failure.kind {
            FailureKind::Lost => failure.kind.remedy(),
            _ => "see with `sshoal status` how the connection is; --no-pool logs in anew",
        }
        .to_owned();
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
    let detail = format!("connecting to {to}: {error}");
    let kind = match error.kind() {
        io::ErrorKind::ConnectionRefused => FailureKind::Refused,
        io::ErrorKind::TimedOut => FailureKind::ConnectTimeout,
        // The connection stood, and was reset before we looked: a reset in answer to a SYN is ECONNREFUSED.
        io::ErrorKind::ConnectionReset => return turned_away(detail),
        _ => FailureKind::Unreachable,
    };
    Failure::new(kind, detail)
}

/// A jump host that opened no channel to `to` (RFC 4254 section 5.1). What hinders TCP, it says in its own words:
/// OpenSSH's are those of its system's gai_strerror(3) and strerror(3) (channels.c, connect_to_helper and
/// channel_post_connecting).
pub(crate) fn tunnel(jump: &str, to: &str, reason_code: u32, description: &str) -> Failure {
    let detail = format!("jump host {jump} did not connect to {to}: {description}");
    let kind = match reason_code {
        reason::OPEN_ADMINISTRATIVELY_PROHIBITED => {
            let remedy =
                "allow it with AllowTcpForwarding and PermitOpen in the jump host's sshd_config";
            return Failure::with_remedy(FailureKind::ChannelRefused, detail, remedy);
        }
        reason::OPEN_CONNECT_FAILED => hindrance(description),
        reason::OPEN_RESOURCE_SHORTAGE => FailureKind::Throttled,
        _ => FailureKind::ChannelRefused,
    };
    Failure::new(kind, detail)
}

/// A ProxyCommand that ended without a word of the server's, and what there is to say of that.
pub(crate) fn proxy(command: &str, words: &str) -> Failure {
    // What `ssh -W` says of a gate whose sshd has too many connections (kex.c; sshd.c).
    let is_turned_away = is_throttling(words)
        || ["kex_exchange_identification", "Connection reset by peer"]
            .iter()
            .any(|said| words.contains(said));
    match is_turned_away {
        true => turned_away(words.to_owned()),
        false => {
            let remedy = format!("see what it says by itself: {command}");
            Failure::with_remedy(hindrance(words), words, remedy)
        }
    }
}

/// What hindered TCP, by the words of somebody else who tried.
fn hindrance(words: &str) -> FailureKind {
    let says = |known: &[&str]| known.iter().any(|word| words.contains(word));
    match () {
        () if says(LOOKUP_FAILED) => FailureKind::Resolve,
        () if says(&["refused"]) => FailureKind::Refused,
        () if says(&["timed out"]) => FailureKind::ConnectTimeout,
        () => FailureKind::Unreachable,
    }
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
pub(crate) fn connection(
    error: &ConnectionError,
    command: ExecFate,
    connection: &Connection,
) -> Failure {
    let detail = error.to_string();
    if !command.safe_to_resend() {
        return Failure::new(FailureKind::Lost, detail);
    }
    let kind = match error {
        ConnectionError::NotSsh { said } if is_throttling(said) => FailureKind::Throttled,
        ConnectionError::Closed { .. } | ConnectionError::KeepaliveTimeout { .. } => {
            return hung_up(detail, connection);
        }
        ConnectionError::NoCommonAlgorithm { .. } => FailureKind::NoCommonAlgorithm,
        ConnectionError::Disconnected { description, .. } if is_auth_denial(description) => {
            FailureKind::AuthDenied
        }
        ConnectionError::Disconnected { reason_code, .. } => {
            return disconnected(*reason_code, detail);
        }
        ConnectionError::Sign(_) => FailureKind::AuthDenied,
        _ => FailureKind::Protocol,
    };
    Failure::new(kind, detail)
}

/// The stream ended or broke without a word on why, and the command has not been sent.
fn hung_up(detail: String, connection: &Connection) -> Failure {
    match connection.server_profile() {
        Some(_) => Failure::new(FailureKind::Closed, detail),
        None => turned_away(detail),
    }
}

/// The server hung up before its KEXINIT: it has done nothing but to take the connection or to drop it.
///
/// sshd before 9.2 drops what is over MaxStartups so, and its text on MaxStartups or penalties may be lost to a reset;
/// hosts.deny, firewalls and load balancers without a server look the same. They all want patience.
fn turned_away(detail: String) -> Failure {
    let remedy = "it looks like MaxStartups or PerSourcePenalties of sshd, or a firewall: lower the number of \
                  logins at a time (--logins), or raise those limits; else see sshd's log on the host";
    Failure::with_remedy(FailureKind::Throttled, detail, remedy)
}

/// SSH_MSG_DISCONNECT before the command was sent (RFC 4253 section 11.1).
fn disconnected(reason_code: u32, detail: String) -> Failure {
    let kind = match reason_code {
        reason::DISCONNECT_TOO_MANY_CONNECTIONS => FailureKind::Throttled,
        reason::DISCONNECT_NO_MORE_AUTH_METHODS_AVAILABLE
        | reason::DISCONNECT_ILLEGAL_USER_NAME => FailureKind::AuthDenied,
        reason::DISCONNECT_PROTOCOL_ERROR
        | reason::DISCONNECT_KEY_EXCHANGE_FAILED
        | reason::DISCONNECT_MAC_ERROR
        | reason::DISCONNECT_PROTOCOL_VERSION_NOT_SUPPORTED => {
            let remedy = "the server's log says what it did not like; a login with `ssh -v` shows whether others can";
            return Failure::with_remedy(FailureKind::Protocol, detail, remedy);
        }
        _ => FailureKind::Closed,
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
pub(crate) fn stream(error: &io::Error, command: ExecFate, connection: &Connection) -> Failure {
    let detail = format!("the connection broke {}: {error}", connection.phase());
    match command.safe_to_resend() {
        true => hung_up(detail, connection),
        false => Failure::new(FailureKind::Lost, detail),
    }
}
