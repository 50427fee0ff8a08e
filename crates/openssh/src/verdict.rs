//! What an ssh's end means: its exit status where the command has given one, and otherwise a failure by its own words.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use sshoal_fleet::{Failure, FailureKind, Fate};

use crate::log::{Facts, Log, Progress};

/// How a host ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The command's status.
    Exit(u32),
    /// A signal has ended the command; ssh does not say which.
    Signal,
    /// ssh failed.
    Failed(Failure, Fate),
}

/// What ssh exits with when it fails itself (ssh(1), EXIT STATUS).
const OWN_FAILURE: i32 = 255;

/// What ssh says, and what kind of failure that is. Earlier rows count: a cause stands before what follows from it.
///
/// From the messages of sshconnect.c, sshconnect2.c, kex.c, packet.c, clientloop.c, channels.c and mux.c; a ProxyCommand
/// or the ssh of a jump host may say the same on the standard error.
const WORDS: &[(&str, FailureKind)] = &[
    ("REVOKED HOST KEY", FailureKind::HostKeyRevoked),
    ("marked as revoked", FailureKind::HostKeyRevoked),
    ("revoked by file", FailureKind::HostKeyRevoked),
    (
        "has changed and you have requested",
        FailureKind::HostKeyChanged,
    ),
    ("IDENTIFICATION HAS CHANGED", FailureKind::HostKeyChanged),
    ("host key is known for", FailureKind::HostKeyUnknown),
    ("Host key verification failed", FailureKind::HostKeyUnknown),
    ("Could not resolve hostname", FailureKind::Resolve),
    ("Name or service not known", FailureKind::Resolve),
    ("name resolution", FailureKind::Resolve),
    ("Exceeded MaxStartups", FailureKind::Throttled),
    ("Not allowed at this time", FailureKind::Throttled),
    ("during banner exchange", FailureKind::LoginTimeout),
    ("Connection refused", FailureKind::Refused),
    ("Connection timed out", FailureKind::ConnectTimeout),
    ("Operation timed out", FailureKind::ConnectTimeout),
    ("No route to host", FailureKind::Unreachable),
    ("is unreachable", FailureKind::Unreachable),
    ("connect to host", FailureKind::Unreachable),
    ("Cannot assign requested address", FailureKind::Unreachable),
    ("no matching", FailureKind::NoCommonAlgorithm),
    ("Unable to negotiate", FailureKind::NoCommonAlgorithm),
    ("invalid characters", FailureKind::Protocol),
    ("invalid format", FailureKind::Protocol),
    ("No banner received", FailureKind::Protocol),
    ("No SSH identification", FailureKind::Protocol),
    ("Bad remote protocol version", FailureKind::Protocol),
    ("Protocol major versions differ", FailureKind::Protocol),
    ("Bad packet length", FailureKind::Protocol),
    ("Connection corrupted", FailureKind::Protocol),
    ("Corrupted MAC", FailureKind::Protocol),
    ("authentication code incorrect", FailureKind::Protocol),
    ("incorrect signature", FailureKind::Protocol),
    ("assword has expired", FailureKind::PasswordExpired),
    ("assword is expired", FailureKind::PasswordExpired),
    ("assword change required", FailureKind::PasswordExpired),
    ("agent refused operation", FailureKind::Agent),
    ("communication with agent failed", FailureKind::Agent),
    ("Permission denied (", FailureKind::AuthDenied),
    ("Too many authentication failures", FailureKind::AuthDenied),
    ("no more authentication methods", FailureKind::AuthDenied),
    ("open failed: ", FailureKind::ChannelRefused),
    ("request failed on channel", FailureKind::ChannelRefused),
    ("session request failed", FailureKind::ChannelRefused),
];

/// What to do about a program of which nothing is known.
const SILENT: &str = "it has told nothing of itself, so that nothing is known of the command: check what ssh was given (--ssh, -O)";

/// A server that hangs up: what that is depends on when it does.
const HUNG_UP: &[&str] = &[
    "Connection closed by",
    "closed by remote host",
    "Connection reset by",
    "Broken pipe",
    "Received disconnect",
];

impl Log {
    /// What ssh's end means. `told` is what came on its standard error before it was logged in: of a ProxyCommand, of the
    /// ssh of a jump host, of the server.
    pub fn end(&self, status: ExitStatus, told: &str) -> End {
        let facts = self.facts();
        match status.code() {
            Some(code) if facts.status || facts.opened && code != OWN_FAILURE => {
                End::Exit(code.cast_unsigned())
            }
            Some(_) if facts.signal => End::Signal,
            Some(code) => self.failed(&format!("ssh ended with status {code}"), told),
            None => {
                let signal = status.signal().unwrap_or_default();
                self.failed(&format!("ssh was ended by signal {signal}"), told)
            }
        }
    }

    fn failed(&self, ending: &str, told: &str) -> End {
        let fate = self.fate();
        let told: Vec<&str> = told.lines().map(str::trim).collect();
        let own: Vec<&str> = self.words().collect();
        // What is said on the way is nearer to the cause than what ssh makes of it.
        let lines = || told.iter().chain(&own).copied();
        let known = WORDS.iter().find_map(|(words, kind)| {
            let line = lines().find(|line| line.contains(words))?;
            Some((*kind, line))
        });
        let last = own.last().or(told.last()).copied().unwrap_or_default();
        if !self.facts().speaks {
            // Whatever stands on its standard error may be the command's.
            let failure = described(FailureKind::Lost, last, ending);
            return End::Failed(
                Failure::with_remedy(failure.kind, failure.detail, SILENT),
                fate,
            );
        }
        if !fate.is_proven_not_run() {
            let line = lines().find(|line| is_hang_up(line)).unwrap_or(last);
            return End::Failed(described(FailureKind::Lost, line, ending), fate);
        }
        let failure = match known {
            Some((kind, line)) => described(kind, line, ending),
            None => hung_up(
                &self.facts(),
                self.progress(),
                lines().find(|line| is_hang_up(line)),
                last,
                ending,
            ),
        };
        End::Failed(failure, fate)
    }
}

fn is_hang_up(line: &str) -> bool {
    HUNG_UP.iter().any(|words| line.contains(words))
}

fn described(kind: FailureKind, line: &str, ending: &str) -> Failure {
    let detail = match line {
        "" => ending.to_owned(),
        line => format!(
            "ssh: {}",
            line.trim_start_matches("debug1: ")
                .trim_start_matches("ssh: ")
        ),
    };
    Failure::new(kind, detail)
}

/// Before its KEXINIT a server has done nothing but to take the connection or to drop it: MaxStartups, penalties and
/// firewalls look like that, and want patience.
fn hung_up(
    facts: &Facts,
    progress: Option<Progress>,
    line: Option<&str>,
    last: &str,
    ending: &str,
) -> Failure {
    let Some(line) = line else {
        return described(FailureKind::Closed, last, ending);
    };
    if facts.proposed
        || progress < Some(Progress::Connected)
            && !facts.identified
            && !line.contains("exchange_identification")
    {
        return described(FailureKind::Closed, line, ending);
    }
    let remedy = "it looks like MaxStartups or PerSourcePenalties of sshd, or a firewall: lower the number of \
                  logins at a time (--logins), or raise those limits; else see sshd's log on the host";
    let failure = described(FailureKind::Throttled, line, ending);
    Failure::with_remedy(failure.kind, failure.detail, remedy)
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
