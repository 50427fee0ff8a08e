//! Why a host failed, in the words a user selects by (`--retry-failed throttled,refused`).

use std::fmt;
use std::str::FromStr;

/// What went wrong with a host, as one of a fixed set of names.
///
/// The kinds answer two questions for the user: what to repair, and whether running the command again is
/// safe. For the second, see [`FailureKind::command_may_have_run`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FailureKind {
    /// `resolve`: the name has no address, or looking it up took too long.
    Resolve,
    /// `refused`: the host answered that nothing listens on the port.
    Refused,
    /// `unreachable`: there is no route to the host, or a router said so.
    Unreachable,
    /// `connect-timeout`: no answer to the TCP connection before the deadline.
    ConnectTimeout,
    /// `throttled`: the server turned the connection away for now (MaxStartups, PerSourcePenalties).
    Throttled,
    /// `protocol`: what the server sent breaks the SSH protocol, or is not SSH.
    Protocol,
    /// `no-common-algorithm`: both sides speak SSH but share no algorithm of some sort.
    NoCommonAlgorithm,
    /// `host-key-unknown`: no known_hosts line vouches for the server's key.
    HostKeyUnknown,
    /// `host-key-changed`: known_hosts has another key for this host.
    HostKeyChanged,
    /// `host-key-revoked`: a `@revoked` line names the server's key.
    HostKeyRevoked,
    /// `auth-denied`: the server accepted none of the keys and methods offered.
    AuthDenied,
    /// `password-expired`: the server wants a new password before it lets anyone in.
    PasswordExpired,
    /// `agent`: the ssh-agent did not sign.
    Agent,
    /// `login-timeout`: connected, but not ready to run the command before the deadline.
    LoginTimeout,
    /// `closed`: the connection ended before the command was sent, for no reason that was given.
    Closed,
    /// `channel-refused`: logged in, but the server opened no session (MaxSessions).
    ChannelRefused,
    /// `lost`: the connection ended while the command may have run.
    Lost,
    /// `command-timeout`: the command did not end before its deadline.
    CommandTimeout,
    /// `signal`: a signal ended the command.
    Signal,
    /// `exit`: the command ran and its exit status is not 0.
    Exit,
    /// `transfer`: not everything could be copied.
    Transfer,
    /// `internal`: this program failed, not the host.
    Internal,
}

/// How a kind of failure is treated when nothing of the command has reached the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Retry {
    /// Trying again gives the same answer.
    Never,
    /// Once more after a short wait: a service that restarts, or a firewall that limits by rejecting or resetting.
    /// A host that is simply down must not hold up the end of the run with a whole back-off.
    Once,
    /// As often as [`RetryPolicy`](crate::RetryPolicy) says: the server itself asked for patience.
    BackOff,
}

/// One kind's row in the table.
struct Row {
    kind: FailureKind,
    name: &'static str,
    meaning: &'static str,
    remedy: &'static str,
    retry: Retry,
    may_have_run: bool,
}

/// The one table of failure kinds, in the order of a login.
const TABLE: &[Row] = &[
    Row {
        kind: FailureKind::Resolve,
        name: "resolve",
        meaning: "the host's name could not be turned into an address",
        remedy: "check the name's spelling, and the resolver with `getent ahosts NAME`",
        retry: Retry::Never,
        may_have_run: false,
    },
    Row {
        kind: FailureKind::Refused,
        name: "refused",
        meaning: "the host answered that nothing listens on this port",
        remedy: "check that sshd runs on the host and that the port is right: HOST:PORT, -o Port=, or Port in ssh_config",
        retry: Retry::Once,
        may_have_run: false,
    },
    Row {
        kind: FailureKind::Unreachable,
        name: "unreachable",
        meaning: "the network has no way to the host",
        remedy: "check that the host is up, and the route to it with `ip route get ADDRESS`",
        retry: Retry::Never,
        may_have_run: false,
    },
    Row {
        kind: FailureKind::ConnectTimeout,
        name: "connect-timeout",
        meaning: "the host did not answer the connection in time",
        remedy: "check that the host is up and that no firewall drops the port; a slow link needs a longer --connect-timeout",
        retry: Retry::Never,
        may_have_run: false,
    },
    Row {
        kind: FailureKind::Throttled,
        name: "throttled",
        meaning: "the server turns connections away for now",
        remedy: "lower the number of logins at a time (--logins), or raise MaxStartups or PerSourcePenalties in the server's sshd_config",
        retry: Retry::BackOff,
        may_have_run: false,
    },
    Row {
        kind: FailureKind::Protocol,
        name: "protocol",
        meaning: "what the server sent breaks the SSH protocol",
        remedy: "check that the port belongs to an SSH server: `nc HOST PORT` shows its first line",
        retry: Retry::Never,
        may_have_run: false,
    },
    Row {
        kind: FailureKind::NoCommonAlgorithm,
        name: "no-common-algorithm",
        meaning: "client and server share no algorithm",
        remedy: "update the server, or enable one of its algorithms in ssh_config",
        retry: Retry::Never,
        may_have_run: false,
    },
    Row {
        kind: FailureKind::HostKeyUnknown,
        name: "host-key-unknown",
        meaning: "no known_hosts line vouches for the server's key",
        remedy: "add the host's key to known_hosts after checking its fingerprint (-o StrictHostKeyChecking=ask shows it), or trust its certificate authority",
        retry: Retry::Never,
        may_have_run: false,
    },
    Row {
        kind: FailureKind::HostKeyChanged,
        name: "host-key-changed",
        meaning: "the server shows another key than known_hosts has",
        remedy: "find out whether the host was reinstalled; only then remove the old line with `ssh-keygen -R HOST`",
        retry: Retry::Never,
        may_have_run: false,
    },
    Row {
        kind: FailureKind::HostKeyRevoked,
        name: "host-key-revoked",
        meaning: "the server's key has been revoked",
        remedy: "treat the host as compromised until its key has been replaced",
        retry: Retry::Never,
        may_have_run: false,
    },
    Row {
        kind: FailureKind::AuthDenied,
        name: "auth-denied",
        meaning: "the server accepted none of the keys offered",
        remedy: "check the user name (-l) and that one of your public keys is in the account's authorized_keys",
        retry: Retry::Never,
        may_have_run: false,
    },
    Row {
        kind: FailureKind::PasswordExpired,
        name: "password-expired",
        meaning: "the account's password has expired",
        remedy: "log in with ssh and set a new password, or extend it on the host with `chage`",
        retry: Retry::Never,
        may_have_run: false,
    },
    Row {
        kind: FailureKind::Agent,
        name: "agent",
        meaning: "the ssh-agent did not sign",
        remedy: "check the agent with `ssh-add -l` and SSH_AUTH_SOCK; a busy agent needs fewer signatures at a time",
        retry: Retry::Never,
        may_have_run: false,
    },
    Row {
        kind: FailureKind::LoginTimeout,
        name: "login-timeout",
        meaning: "the server did not finish the login in time",
        remedy: "see with `ssh -v HOST` what the login waits for, or allow a longer one (--login-timeout)",
        retry: Retry::Never,
        may_have_run: false,
    },
    Row {
        kind: FailureKind::Closed,
        name: "closed",
        meaning: "the connection ended before the command was sent",
        remedy: "run it again; if it stays so, sshd's log on the host says why it hung up, unless a firewall did",
        retry: Retry::Once,
        may_have_run: false,
    },
    Row {
        kind: FailureKind::ChannelRefused,
        name: "channel-refused",
        meaning: "the server let the user in but opened no session",
        remedy: "check MaxSessions in the server's sshd_config, and the account's login shell",
        retry: Retry::Never,
        may_have_run: false,
    },
    Row {
        kind: FailureKind::Lost,
        name: "lost",
        meaning: "the connection ended while the command may have run",
        remedy: "find out on the host what the command did before running it again",
        retry: Retry::Never,
        may_have_run: true,
    },
    Row {
        kind: FailureKind::CommandTimeout,
        name: "command-timeout",
        meaning: "the command did not end in time",
        remedy: "look for what the command waits for, or allow it more time (-u)",
        retry: Retry::Never,
        may_have_run: true,
    },
    Row {
        kind: FailureKind::Signal,
        name: "signal",
        meaning: "a signal ended the command",
        remedy: "look for the sender: a crash, the kernel's out-of-memory killer, an operator",
        retry: Retry::Never,
        may_have_run: true,
    },
    Row {
        kind: FailureKind::Exit,
        name: "exit",
        meaning: "the command ran and reported a failure by its exit status",
        remedy: "read the command's output",
        retry: Retry::Never,
        may_have_run: true,
    },
    Row {
        kind: FailureKind::Transfer,
        name: "transfer",
        meaning: "not everything could be copied to or from the host",
        remedy: "see to what is named, and run it again; what was there before is as it was",
        retry: Retry::Never,
        may_have_run: true,
    },
    Row {
        kind: FailureKind::Internal,
        name: "internal",
        meaning: "this program failed, not the host",
        remedy: "report this defect with the message; the command did not run there and can be run again",
        retry: Retry::Never,
        may_have_run: false,
    },
];

impl FailureKind {
    /// All kinds, in the order in which a login can meet them; last what can come at any time.
    pub fn all() -> impl Iterator<Item = FailureKind> {
        TABLE.iter().map(|row| row.kind)
    }

    /// The name users type and results carry, in kebab-case.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// What the kind means, one sentence without a capital or a full stop.
    pub fn meaning(self) -> &'static str {
        self.row().meaning
    }

    /// What to do about it when nothing more particular is known.
    pub fn remedy(self) -> &'static str {
        self.row().remedy
    }

    /// The same where files are copied in place of a command that runs: that may simply be done again.
    pub fn remedy_of_copy(self) -> &'static str {
        match self {
            FailureKind::Lost => {
                "run the same again, from the same folder: large files go on where they were cut, and with -p what has \
                 arrived is left out"
            }
            FailureKind::CommandTimeout => {
                "allow it more time (-u), and run it again: with -p, what has arrived is not copied again"
            }
            FailureKind::Internal => {
                "report this defect with the message; the same can be run again, and what was there before is as it was"
            }
            other => other.remedy(),
        }
    }

    /// Whether the command may have been carried out on a host that failed in this way.
    ///
    /// `false` is a promise: a host reported with such a kind did not run the command, so that running it
    /// again there cannot run it twice. [`Fleet`](crate::Fleet) keeps it by turning every failure whose
    /// [`Fate`](crate::Fate) leaves the question open into [`FailureKind::Lost`].
    pub fn command_may_have_run(self) -> bool {
        self.row().may_have_run
    }

    /// Whether it is the way to a host that fails, or a host that is not up yet, rather than what it says.
    pub(crate) fn is_of_the_way(self) -> bool {
        matches!(
            self,
            FailureKind::Resolve
                | FailureKind::Refused
                | FailureKind::Unreachable
                | FailureKind::ConnectTimeout
                | FailureKind::Throttled
                | FailureKind::LoginTimeout
                | FailureKind::Closed
                | FailureKind::Lost
        )
    }

    /// How many attempts a host gets that keeps failing in this way, when a policy allows `attempts`.
    pub(crate) fn attempts(self, attempts: u32) -> u32 {
        match self.row().retry {
            Retry::Never => 1,
            Retry::Once => attempts.min(2),
            Retry::BackOff => attempts,
        }
    }

    fn row(self) -> &'static Row {
        // The table lists the kinds in the order of the enum; a test holds it to that.
        &TABLE[self as usize]
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for FailureKind {
    type Err = UnknownFailureKind;

    fn from_str(name: &str) -> Result<FailureKind, UnknownFailureKind> {
        FailureKind::all()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| UnknownFailureKind {
                name: name.to_owned(),
            })
    }
}

/// A name that is no failure kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is no kind of failure; the kinds are {}", every_name())]
pub struct UnknownFailureKind {
    /// What was given.
    pub name: String,
}

fn every_name() -> String {
    let names: Vec<&str> = FailureKind::all().map(FailureKind::name).collect();
    names.join(", ")
}

/// One host's failure: its kind, what happened, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{kind}: {detail}")]
pub struct Failure {
    /// The kind, for selecting and counting.
    pub kind: FailureKind,
    /// What was being done and what went wrong, for this host.
    pub detail: String,
    /// What the user can do about it.
    pub remedy: String,
}

impl Failure {
    /// A failure with its kind's own remedy.
    pub fn new(kind: FailureKind, detail: impl Into<String>) -> Failure {
        Failure::with_remedy(kind, detail, kind.remedy())
    }

    /// A failure for which something better than the kind's remedy is known.
    pub fn with_remedy(
        kind: FailureKind,
        detail: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Failure {
        Failure {
            kind,
            detail: detail.into(),
            remedy: remedy.into(),
        }
    }
}

#[cfg(test)]
#[path = "failure_tests.rs"]
mod tests;
